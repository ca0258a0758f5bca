"""SQL on what is published: one query, read only, with nothing outside the release in reach."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.marts.build import marts_asked_for, marts_lacking
from graphrag_pipeline.releases.kept import release_file
from graphrag_pipeline.store.index_store import connect_published


def query_published(
    home: Path, statement: str, release: str | None = None
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Run one SQL query on what is published; return column names and rows.

    ``release`` names another release that is kept, by its id or the beginning of it. JSON columns
    come as Python values. Nothing outside the file can be read or written. Raises InputError for
    SQL that fails or is no query and for an unknown release, NothingPublishedError when there is
    no release yet. The marts are attached as ``marts`` for a statement that asks for them.
    """
    con = connect_published(release_file(home, release), **marts_asked_for(home, statement))
    try:
        con.execute("SET lock_configuration = true")
        _check_is_query(con, statement)
        result = con.execute(statement)
        columns = result.description or []
        rows = result.fetchall()
    except (duckdb.Error, ValueError, OverflowError) as error:
        lacking = marts_lacking(home, statement)
        raise InputError(lacking or f"SQL: {str(error).strip()}") from None
    finally:
        con.close()
    nested = [place for place, column in enumerate(columns) if str(column[1]) == "JSON"]
    return [column[0] for column in columns], _read_json(rows, nested)


def _check_is_query(con: duckdb.DuckDBPyConnection, statement: str) -> None:
    kinds = [part.type for part in con.extract_statements(statement)]
    if not kinds:
        raise InputError("SQL: there is no statement")
    # PIVOT is parsed into the creation of a temporary type and a query.
    helpers = all(kind == duckdb.StatementType.CREATE for kind in kinds[:-1])
    if len(kinds) > 1 and not helpers:
        raise InputError("SQL: one statement at a time, please")
    if kinds[-1] not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise InputError(
            "SQL: only queries run on the published index: SELECT, FROM, WITH, PIVOT, SHOW, "
            "DESCRIBE, SUMMARIZE, EXPLAIN"
        )


def _read_json(rows: list[tuple[object, ...]], columns: Sequence[int]) -> list[tuple[object, ...]]:
    if not columns:
        return rows
    return [
        tuple(
            json.loads(value) if place in columns and isinstance(value, str) else value
            for place, value in enumerate(row)
        )
        for row in rows
    ]
