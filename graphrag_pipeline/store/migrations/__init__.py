"""The schema of the index and how an older one becomes it.

``schema.sql`` is the schema as it is today; a new index is made from it. An index made before is
brought up to it by the numbered files here, each applied once, in order, when it is opened. A
change of the schema is made in both; a change of comments only in ``schema.sql``, whose comments an
index is given anew whenever that file is another.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.identity import content_hash

_COMMENTS = "comments"


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
    """Return the SQL that makes the tables of a new index, with their comments."""
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
    elif version < newest:
        _bring_up(con, path, version)
    if version is not None:
        _bring_comments_up(con)


def _version(con: duckdb.DuckDBPyConnection, path: Path) -> int | None:
    try:
        row = con.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except duckdb.CatalogException:
        return None
    if row is None or not row[0].isdecimal():
        raise StorageError(f"{path} is not an index of this program: move it away and index again")
    return int(row[0])


def _make(con: duckdb.DuckDBPyConnection, version: int) -> None:
    con.execute("BEGIN")
    con.execute(schema_sql())
    con.execute("INSERT INTO meta VALUES ('schema_version', ?)", [str(version)])
    con.execute("INSERT INTO meta VALUES (?, ?)", [_COMMENTS, content_hash(schema_sql())])
    con.execute("COMMIT")


def _bring_comments_up(con: duckdb.DuckDBPyConnection) -> None:
    wanted = content_hash(schema_sql())
    known = con.execute("SELECT value FROM meta WHERE key = ?", [_COMMENTS]).fetchone()
    if known == (wanted,):
        return
    con.execute("BEGIN")
    for statement in con.extract_statements(schema_sql()):
        if statement.query.lstrip().startswith("COMMENT ON"):
            con.execute(statement)
    con.execute("DELETE FROM meta WHERE key = ?", [_COMMENTS])
    con.execute("INSERT INTO meta VALUES (?, ?)", [_COMMENTS, wanted])
    con.execute("COMMIT")


def _bring_up(con: duckdb.DuckDBPyConnection, path: Path, version: int) -> None:
    step = ""
    con.execute("BEGIN")
    try:
        for number, name, sql in migrations():
            if number > version:
                step = name
                con.execute(sql)
        con.execute(
            "UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(migrations()[-1][0])]
        )
        con.execute("COMMIT")
    except duckdb.Error as error:
        con.execute("ROLLBACK")
        raise StorageError(
            f"{path} (schema {version}) cannot be brought up to date, step {step}: "
            f"{str(error).splitlines()[0]}; it is as it was: move it away and index again"
        ) from error
