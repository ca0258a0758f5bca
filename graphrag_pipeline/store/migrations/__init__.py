"""The schema of the index and how an older one becomes it.

``schema.sql`` is the schema as it is today; a new index is made from it. An index made before is
brought up to it by the numbered files here, each applied once, in order, when it is opened. A
change of a table is made in both, one of views and comments only in ``schema.sql``: an index is
given these anew whenever that file is another. A column of a view that has no comment there has
that of the column it shows.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError, first_line
from graphrag_pipeline.core.identity import content_hash
from graphrag_pipeline.core.rows import sql_literal

_COMMENTS = "comments"
_GIVEN_ANEW = ("COMMENT ON", "CREATE OR REPLACE VIEW")
# The column of the same name in the first table of a view's query that has it.
_UNCOMMENTED = """
SELECT c.table_name, c.column_name,
       arg_min(t.comment, (instr(v.sql, ' ' || t.table_name || ' '), t.table_oid))
FROM duckdb_views() v
JOIN duckdb_columns() c ON c.table_oid = v.view_oid AND c.comment IS NULL
JOIN duckdb_columns() t ON t.column_name = c.column_name AND t.comment IS NOT NULL
    AND t.schema_name = v.schema_name AND contains(v.sql, ' ' || t.table_name || ' ')
WHERE NOT v.internal GROUP BY ALL
"""


@cache
def migrations() -> tuple[tuple[int, str, str], ...]:
    """Return (version, name, SQL) of every migration, in order; ``0002_x.sql`` leads to 2."""
    files = sorted(
        (
            file
            for file in resources.files("graphrag_pipeline.store.migrations").iterdir()
            if file.name.endswith(".sql")
        ),
        key=lambda file: file.name,
    )
    return tuple(
        (int(file.name[:4]), file.name[5:].removesuffix(".sql"), file.read_text()) for file in files
    )


@cache
def schema_sql() -> str:
    """Return the SQL of the tables and views of a new index, and of their comments."""
    return resources.files("graphrag_pipeline.store").joinpath("schema.sql").read_text()


def ensure_schema(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Make the tables of a new index, or bring those of an older one up to date.

    Raises StorageError if the index was made by a newer program, or cannot be brought up to date;
    it is then as it was.
    """
    newest = migrations()[-1][0]
    version = _version(con, path)
    if version is None:
        _make(con, newest)
    elif version < migrations()[0][0] - 1:
        raise StorageError(
            f"{path} has schema version {version}, too old for this program: move the folder away "
            "and index again"
        )
    elif version > newest:
        raise StorageError(
            f"{path} was made by a newer version of this program (schema {version}, this one knows "
            f"{newest}): update graphrag-pipeline"
        )
    elif version < newest or not comments_current(con):
        _bring_up(con, path, version)


def _version(con: duckdb.DuckDBPyConnection, path: Path) -> int | None:
    try:
        row = con.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except duckdb.CatalogException:
        return None
    if row is None or not row[0].isdecimal():
        raise StorageError(f"{path} is not an index of this program: move it away and index again")
    return int(row[0])


def make_tables(con: duckdb.DuckDBPyConnection) -> None:
    """Make the tables and views of a new index, with their comments."""
    con.execute(schema_sql())
    _comment_views(con)


def _make(con: duckdb.DuckDBPyConnection, version: int) -> None:
    con.execute("BEGIN")
    make_tables(con)
    con.execute(
        "INSERT INTO meta VALUES ('schema_version', ?), (?, ?)",
        [str(version), _COMMENTS, content_hash(schema_sql())],
    )
    con.execute("COMMIT")


def comments_current(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether views and comments of a file are those of this program."""
    known = con.execute("SELECT value FROM meta WHERE key = ?", [_COMMENTS]).fetchone()
    return known == (content_hash(schema_sql()),)


def _bring_up(con: duckdb.DuckDBPyConnection, path: Path, version: int) -> None:
    """Apply the migrations after ``version``, and give views and comments anew: all or nothing."""
    step = ""
    con.execute("BEGIN")
    try:
        for number, name, sql in migrations():
            if number > version:
                step = name
                con.execute(sql)
        step = "views and comments"
        for statement in con.extract_statements(schema_sql()):
            if statement.query.lstrip().startswith(_GIVEN_ANEW):
                con.execute(statement)
        _comment_views(con)
        con.execute("DELETE FROM meta WHERE key IN ('schema_version', ?)", [_COMMENTS])
        con.execute(
            "INSERT INTO meta VALUES ('schema_version', ?), (?, ?)",
            [str(migrations()[-1][0]), _COMMENTS, content_hash(schema_sql())],
        )
        con.execute("COMMIT")
    except duckdb.Error as error:
        con.execute("ROLLBACK")
        raise StorageError(
            f"{path} (schema {version}) cannot be brought up to date, step {step}: "
            f"{first_line(error)}; it is as it was: move it away and index again"
        ) from error


def _comment_views(con: duckdb.DuckDBPyConnection) -> None:
    """Give columns of views that have no comment that of the column they show."""
    for view, column, comment in con.execute(_UNCOMMENTED).fetchall():
        con.execute(f"COMMENT ON COLUMN {view}.{column} IS {sql_literal(comment)}")
