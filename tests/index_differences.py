"""Whether two index files hold the same rows: every table, but for what clocks say."""

from __future__ import annotations

from pathlib import Path

import duckdb

from graphrag_pipeline.store.index_store import memory_database

CLOCKS = ("TIMESTAMP", "DATE", "TIME")
"""How the types of columns begin that tell the time."""
DURATIONS = ("seconds",)
"""Columns that tell how long something took."""

_TABLES = """
SELECT schema_name || '.' || table_name AS name, list(column_name ORDER BY column_index) AS names,
       list(data_type ORDER BY column_index) AS types
FROM duckdb_columns() SEMI JOIN (SELECT table_oid FROM duckdb_tables()) USING (table_oid)
WHERE database_name = $database GROUP BY ALL
"""


def differing_tables(one: Path, other: Path) -> dict[str, tuple[int, int]]:
    """Return the tables of which one of two index files has rows that the other has not.

    By name with its schema: how many rows only the one has, and only the other, equal rows counted
    as often as they are there. A table that one lacks, or has with other columns, differs in all.
    """
    con = memory_database()
    try:
        for name, path in (("one", one), ("other", other)):
            literal = str(path).replace("'", "''")
            con.execute(f"ATTACH '{literal}' AS {name} (READ_ONLY)")
        tables, others = _tables(con, "one"), _tables(con, "other")
        differences = {
            table: (_only(con, table, "one", "other", tables, others),
                    _only(con, table, "other", "one", others, tables))
            for table in sorted({*tables, *others})
        }  # fmt: skip
    finally:
        con.close()
    return {table: only for table, only in differences.items() if any(only)}


def _tables(con: duckdb.DuckDBPyConnection, database: str) -> dict[str, tuple[str, ...]]:
    """Return the columns that count, by table."""
    rows = con.execute(_TABLES, {"database": database}).fetchall()
    return {
        table: tuple(
            f'"{name}"'
            for name, kind in zip(names, types, strict=True)
            if not kind.startswith(CLOCKS) and name not in DURATIONS
        )
        for table, names, types in rows
    }


def _only(
    con: duckdb.DuckDBPyConnection,
    table: str,
    here: str,
    there: str,
    tables: dict[str, tuple[str, ...]],
    others: dict[str, tuple[str, ...]],
) -> int:
    if table not in tables:
        return 0
    rows = f"SELECT {', '.join(tables[table])} FROM {here}.{table}"
    if others.get(table) == tables[table]:
        rows += f" EXCEPT ALL SELECT {', '.join(tables[table])} FROM {there}.{table}"
    row = con.execute(f"SELECT count(*) FROM ({rows})").fetchone()
    return row[0] if row else 0
