"""Tables of a release as Parquet or CSV, one file each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.rows import FORMULA, UNSEEN
from graphrag_pipeline.exchange.exporting.writing import Exporter, Writer
from graphrag_pipeline.store.hierarchy import TABLES
from graphrag_pipeline.structures.registry import all_hierarchies

_NAMES = """
SELECT table_name, table_type = 'BASE TABLE' FROM information_schema.tables
WHERE table_catalog = 'published' AND table_schema = 'main' ORDER BY table_name
"""
_COLUMNS = """
SELECT column_name, data_type FROM information_schema.columns
WHERE table_catalog = 'published' AND table_schema = 'main' AND table_name = ?
"""
_NESTED = ("STRUCT", "MAP")
_INERT = f"""
regexp_replace(regexp_replace({{}}, '{UNSEEN}', '\ufffd', 'g'), '({FORMULA})', '''\\1')
"""


def write_tables(writer: Writer, names: Sequence[str], raw: bool, *, kind: str) -> None:
    """Write the tables or views ``names``, or all tables, as files of a ``kind``: parquet or csv.

    Of all tables, those that hierarchies share are written as the views of each hierarchy. In CSV
    nested columns are JSON, and texts are inert, as :func:`graphrag_pipeline.core.rows.write_csv`
    has them, unless ``raw``. Raises InputError for a name that is no table.
    """
    existing = dict(writer.con.execute(_NAMES).fetchall())
    for name in names:
        if name not in existing:
            raise InputError(f"there is no table {name}: there are {', '.join(existing)}")
    options = "FORMAT csv, HEADER" if kind == "csv" else "FORMAT parquet, COMPRESSION zstd"
    views = [
        view for hierarchy in all_hierarchies() for view in hierarchy.views if view in existing
    ]
    shared = {f"hierarchy_{name}" for name in TABLES}
    tables = [name for name, is_table in existing.items() if is_table and name not in shared]
    for name in dict.fromkeys(names or sorted([*tables, *views])):
        columns = _columns_of_csv(writer, name, raw) if kind == "csv" else "*"
        writer.copy(f"{name}.{kind}", f'SELECT {columns} FROM "{name}"', options)


def _columns_of_csv(writer: Writer, table: str, raw: bool) -> str:
    replaced = []
    for name, kind in writer.con.execute(_COLUMNS, [table]).fetchall():
        is_nested = kind.endswith("[]") or kind.startswith(_NESTED)
        if is_nested or (kind == "VARCHAR" and not raw):
            text = f'to_json("{name}")::VARCHAR' if is_nested else f'"{name}"'
            replaced.append(f'{text if raw else _INERT.format(text)} AS "{name}"')
    return f"* REPLACE ({', '.join(replaced)})" if replaced else "*"


PARQUET = Exporter(
    "tables-parquet",
    "SELECT * FROM '{path}/NAME.parquet' in DuckDB, or polars.read_parquet",
    tables=partial(write_tables, kind="parquet"),
)
CSV = Exporter(
    "tables-csv",
    "any spreadsheet or BI tool opens them",
    tables=partial(write_tables, kind="csv"),
)
