"""A file that an older program made, shown with the tables, columns and views that it lacks."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Set
from functools import cache

import duckdb

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.store.migrations import make_tables, migrations, schema_sql

_SCHEMA = "SELECT value FROM published.meta WHERE key = 'schema_version'"
_TABLES = """
SELECT table_name FROM duckdb_tables()
WHERE database_name = 'published' AND schema_name = 'main'
"""
_VIEWS = """
SELECT view_name FROM duckdb_views() WHERE database_name = 'published' AND NOT internal
"""
_COLUMNS = """
SELECT table_name, column_name, data_type, column_default FROM duckdb_columns()
WHERE schema_name = 'main' AND NOT internal ORDER BY table_name, column_index
"""
_MOVED = pattern_of(r"INSERT INTO (hierarchy_\w+) BY NAME\s+(SELECT [^;]+);")
_VIEW = pattern_of(r"CREATE OR REPLACE VIEW (\w+) AS")

Columns = Mapping[str, tuple[str, str]]
"""The type of each column of a table, and the SQL of its default."""


def add_what_older_lack(con: duckdb.DuckDBPyConnection) -> None:
    """Show the file ``published``, if an older program made it, as this program would have it.

    Tables that it lacks are empty, what it has under other names is there under those of today, and
    columns that it lacks have their defaults. All are temporary views, so that ``duckdb_tables()``
    still tells what the file has. A file of another kind, as the marts, lacks nothing.
    """
    try:
        row = con.execute(_SCHEMA).fetchone()
    except duckdb.CatalogException:
        return
    if row is None or not row[0].isdecimal() or int(row[0]) >= migrations()[-1][0]:
        return
    tables = {name for (name,) in con.execute(_TABLES).fetchall()}
    if "documents" in tables:
        _add_tables(con, tables)
        _add_views(con, tables)


def is_of_first_schema(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the file ``published`` lacks what every question asks for: cursors need it shown."""
    try:
        return con.execute(_SCHEMA).fetchone() == ("1",)
    except duckdb.CatalogException:
        return False


def _add_tables(con: duckdb.DuckDBPyConnection, tables: Set[str]) -> None:
    for name, columns in _todays_tables().items():
        if name not in tables:
            _add_table(con, name, columns)
        else:
            _add_columns(con, name, columns)
    if "community_reports" in tables:
        reports = {**_todays_tables()["hierarchy_reports"]}
        del reports["hierarchy"]
        _add_columns(con, "community_reports", reports)


def _add_table(con: duckdb.DuckDBPyConnection, name: str, columns: Columns) -> None:
    """Show a table that is lacking: what was kept under other names, or no rows."""
    rows = [f"SELECT {_values(columns, set())} WHERE false"]
    for number, query in enumerate(_former_places().get(name, ())):
        part = f"former_{name}_{number}"
        with contextlib.suppress(duckdb.CatalogException):
            con.execute(f"CREATE TEMP VIEW {part} AS {query}")
            rows.append(f"FROM {part}")
    con.execute(f'CREATE TEMP VIEW "{name}" AS {" UNION ALL BY NAME ".join(rows)}')


def _add_columns(con: duckdb.DuckDBPyConnection, name: str, columns: Columns) -> None:
    has = {column for column, *_ in con.execute(f'DESCRIBE published."{name}"').fetchall()}
    if lacking := _values(columns, has):
        con.execute(f'CREATE TEMP VIEW "{name}" AS SELECT *, {lacking} FROM published."{name}"')


def _values(columns: Columns, has: Set[str]) -> str:
    return ", ".join(
        f'({default or "NULL"})::{kind} AS "{column}"'
        for column, (kind, default) in columns.items()
        if column not in has
    )


def _add_views(con: duckdb.DuckDBPyConnection, tables: Set[str]) -> None:
    """Show the views that are lacking; one that was a table is shown as that."""
    views = {name for (name,) in con.execute(_VIEWS).fetchall()}
    for statement in con.extract_statements(schema_sql()):
        named = _VIEW.match(statement.query.lstrip())
        if named and named[1] not in views | tables:
            con.execute(statement.query.replace("CREATE OR REPLACE", "CREATE TEMP", 1))


@cache
def _todays_tables() -> Mapping[str, Columns]:
    """Return the columns of each table of this program's schema."""
    tables: dict[str, dict[str, tuple[str, str]]] = {}
    with duckdb.connect() as con:
        make_tables(con)
        names = {
            name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        }
        for table, column, kind, default in con.execute(_COLUMNS).fetchall():
            if table in names:
                tables.setdefault(table, {})[column] = (kind, default or "")
    return tables


@cache
def _former_places() -> Mapping[str, list[str]]:
    """Return the queries by which migrations moved the rows of other tables to one of today's."""
    places: dict[str, list[str]] = {}
    for _, _, sql in migrations():
        for table, query in _MOVED.findall(sql):
            places.setdefault(table, []).append(query)
    return places
