"""A release whose documents are named without the folders of this machine, for others to read.

The name of a document is its path, and outside the project that is a path of this machine's disk.
Who is told a document's name need not know where it lies: here it is the path within the folder
that was indexed. Addresses, and paths within the project, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.rows import sql_literal

if TYPE_CHECKING:
    import duckdb

DOCUMENTS = "memory.bare.documents"
"""The documents by their bare names, once :func:`bare_names` was called."""
SEARCH_PATH = "memory.bare,published.main"
"""Where tables are looked for then: first those with bare names."""

_NAMED = {
    "documents": ("uri", "source"),
    "document_names": ("source",),
    "source_names": ("source", "uri"),
    "batch_sources": ("uri",),
    "batches": ("root",),
    "quarantine": ("uri",),
}
"""Tables and views of a release, and their columns that hold paths."""
_COLUMNS = """
SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'published'
"""
_ROOTS = "SELECT DISTINCT root FROM published.batches WHERE starts_with(root, '/')"


def bare_names(con: duckdb.DuckDBPyConnection) -> None:
    """Show the documents of the release ``published`` by their bare names, on this connection.

    Cursors of it have to set :data:`SEARCH_PATH` themselves.
    """
    columns = set(con.execute(_COLUMNS).fetchall())
    roots = folders_of(con) if ("batches", "root") in columns else []
    con.execute("CREATE SCHEMA memory.bare")
    for table, names in _NAMED.items():
        if held := [name for name in names if (table, name) in columns]:
            shown = ", ".join(f"{_bare(name, roots)} AS {name}" for name in held)
            con.execute(
                f"CREATE VIEW memory.bare.{table} AS "
                f"SELECT * REPLACE ({shown}) FROM published.{table}"
            )
    con.execute(f"SET search_path = '{SEARCH_PATH}'")


def folders_of(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the folders outside the project that were indexed, the longest first."""
    roots = {root.rstrip("/") for (root,) in con.execute(_ROOTS).fetchall()}
    return sorted(roots, key=lambda root: (-len(root), root))


def _bare(column: str, roots: Sequence[str]) -> str:
    """Return the SQL of a bare name. What is in none of the folders is called by its last part."""
    cases = [f"WHEN NOT starts_with({column}, '/') THEN {column}"]
    for root in roots:
        folder = sql_literal(f"{root}/")
        cases.append(f"WHEN starts_with({column}, {folder}) THEN substr({column}, {len(root) + 2})")
    return f"CASE {' '.join(cases)} ELSE regexp_extract({column}, '[^/]*$') END"
