"""What every asset tells Dagster about the table it wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

import dagster as dg
import duckdb

OWNERS = ["team:graphrag"]
INDEX_POOL = "index_db"
VECTORS_POOL = "vectors"
_CELL = 120


def storage(table: str) -> dict[str, object]:
    """Return the definition metadata of an asset kept in a table of the index."""
    return {"dagster/table_name": f"index.main.{table}", "dagster/storage_kind": "duckdb"}


def table_metadata(
    con: duckdb.DuckDBPyConnection, table: str, preview: str | None = None
) -> dict[str, object]:
    """Return row count, column schema and, where a query is given, a preview as a table."""
    row = con.execute(f"SELECT count(*) FROM {table}").fetchone()
    found: dict[str, object] = {
        "dagster/row_count": row[0] if row else 0,
        "dagster/column_schema": column_schema(con, table),
    }
    if preview:
        found["preview"] = markdown_table(con, preview)
    return found


def column_schema(con: duckdb.DuckDBPyConnection, table: str) -> dg.TableSchema:
    """Return a table's columns with types and comments."""
    rows = con.execute(
        """SELECT column_name, data_type, coalesce(comment, '') FROM duckdb_columns()
           WHERE table_name = ? AND schema_name = 'main' ORDER BY column_index""",
        [table],
    ).fetchall()
    return dg.TableSchema(
        columns=[dg.TableColumn(name, kind, description=about or None) for name, kind, about in rows]
    )


def markdown_table(con: duckdb.DuckDBPyConnection, query: str) -> dg.MetadataValue:
    """Return the rows of one of the project's own queries as a Markdown table."""
    result = con.execute(query)
    names = [column[0] for column in result.description or []]
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in result.fetchall()]
    return dg.MetadataValue.md("\n".join(lines))


def counts_metadata(counts: Mapping[str, int]) -> dict[str, int]:
    """Return what a stage did, or that it had nothing to do."""
    return {name: int(number) for name, number in counts.items()}


def check(asset: dg.AssetKey, name: str, broken: int, what: str) -> dg.AssetCheckResult:
    """Return the result of an invariant of which ``broken`` rows stand against it."""
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=name,
        passed=broken == 0,
        severity=dg.AssetCheckSeverity.ERROR,
        description="holds" if broken == 0 else f"{broken} {what}",
        metadata={"violations": broken},
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        text = f"{value:.3g}"
    elif isinstance(value, datetime):
        text = value.isoformat(sep=" ", timespec="seconds")
    else:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
    flat = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return flat if len(flat) <= _CELL else flat[: _CELL - 1] + "…"
