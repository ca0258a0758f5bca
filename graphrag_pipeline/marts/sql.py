"""SQL on what is published: one query, read only, with nothing outside the release in reach."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import duckdb

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.marts.build import asks_for_marts, marts_lacking
from graphrag_pipeline.query.control import Control
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.store.bare_names import folders_of
from graphrag_pipeline.store.index_store import connect_published

_SHOWS_TABLES = pattern_of(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
_INTERNAL = (
    *("batch_stages", "graph_batches", "identifiers", "meta"),
    *("hierarchy_communities", "hierarchy_failures", "hierarchy_members", "hierarchy_reports"),
    *("chnsw", "chunk_names", "chunk_titles", "description_summaries", "element_spans"),
    *("hirag_basis", "hirag_layers", "report_elements", "resolved_claims", "written_from"),
    *("resolved_entity_mentions", "resolved_relationship_mentions"),
)
"""Tables and views that the pipeline and the views for readers are made of."""
_OPTIONAL = {
    "attributed": "chnsw",
    "hirag": "hirag_entities",
    "raptor": "raptor_nodes",
    "similarity_edges": "similarity_edges",
    "synonym_edges": "synonym_edges",
}
"""How names of a structure begin, and the table that is empty where it was not asked for."""
_TABLES = f"""
SELECT shown.name, coalesce(t.comment, v.comment) AS about
FROM (SHOW TABLES) shown
LEFT JOIN duckdb_tables() t ON (t.database_name, t.table_name) = (current_database(), shown.name)
LEFT JOIN duckdb_views() v ON (v.database_name, v.view_name) = (current_database(), shown.name)
WHERE shown.name NOT IN {_INTERNAL} AND NOT EXISTS (
    FROM duckdb_tables() e
    JOIN (VALUES {", ".join(map(repr, _OPTIONAL.items()))}) o(prefix, place)
        ON (e.database_name, e.table_name) = (current_database(), o.place)
    WHERE e.estimated_size = 0 AND starts_with(shown.name, o.prefix)
)
ORDER BY shown.name
"""
_IDENTIFIER = pattern_of(rb'"((?:[^"]|"")+)"|\w+')
_NO_QUERIES = {
    *("enable_profiling", "disable_profiling", "enable_logging", "disable_logging", "write_log"),
    *("truncate_duckdb_logs", "checkpoint", "force_checkpoint"),
    *("query", "json_execute_serialized_sql"),
}
_NAMES = f"SELECT name FROM ({_TABLES})"


class PublishedSql:
    """A release that is open for SQL; use it as a context manager, or close it.

    It stays on its release when a new one is published. Nothing outside the file can be read or
    written. ``release`` names another that is kept, by its id or the beginning of it. With
    ``marts`` they are attached as ``marts``, if they are built. Raises InputError for an unknown
    release, NothingPublishedError when there is no release yet.
    """

    def __init__(self, home: Path, release: str | None = None, *, marts: bool = True) -> None:
        self._home = home
        path = Home(home).marts
        attached = {"marts": path} if marts and path.is_file() else {}
        self._con = connect_published(release_file(home, release), limits=None, **attached)
        self._con.execute("SET lock_configuration = true")

    def query(
        self, statement: str, *, most: int | None = None, control: Control | None = None
    ) -> tuple[list[str], list[tuple[object, ...]]]:
        """Run one SQL query; return column names and rows. JSON columns come as Python values.

        SHOW TABLES names what is there for readers: SHOW ALL TABLES names the rest, too. ``most``
        is how many rows are fetched; ``control`` may stop it. Raises InputError for SQL that fails
        or is no query, StoppedError where it was stopped.
        """
        control = control or Control()
        try:
            _check_is_query(self._con, statement)
            _check_calls(statement)
            shows_tables = _SHOWS_TABLES.fullmatch(statement)
            with control.running(self._con):
                result = self._con.execute(_NAMES if shows_tables else statement)
                columns = result.description or []
                rows = result.fetchall() if most is None else result.fetchmany(most)
        except (duckdb.Error, ValueError, OverflowError) as error:
            control.check()
            lacking = marts_lacking(self._home, statement)
            raise InputError(lacking or f"SQL: {str(error).strip()}") from None
        nested = [place for place, column in enumerate(columns) if str(column[1]) == "JSON"]
        return [column[0] for column in columns], _read_json(rows, nested)

    def folders(self) -> list[str]:
        """Return the folders outside the project that were indexed, the longest first."""
        return folders_of(self._con)

    def tables(self) -> tuple[list[str], list[tuple[object, ...]]]:
        """Return the names of the tables and views for readers, and what each holds."""
        return self.query(_TABLES)

    def close(self) -> None:
        """Let go of the release."""
        self._con.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def query_published(
    home: Path, statement: str, release: str | None = None
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Open what is published, run one SQL query, and close it; see :class:`PublishedSql`.

    The marts are attached for a statement that asks for them.
    """
    with PublishedSql(home, release, marts=asks_for_marts(statement)) as published:
        return published.query(statement)


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the statements of a text that end with a semicolon, without it, and what is left.

    A semicolon in a string, a quoted name or a comment ends nothing.
    """
    # Tokens are told by bytes.
    encoded = text.encode("utf-8", "replace")
    statements: list[str] = []
    start = 0
    for place, kind in duckdb.tokenize(encoded.decode()):
        if kind == duckdb.token_type.operator and encoded[place : place + 1] == b";":
            statements.append(encoded[start:place].decode().strip())
            start = place + 1
    return [statement for statement in statements if statement], encoded[start:].decode()


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


def _check_calls(statement: str) -> None:
    """Raise InputError for a call that is no query, though it stands in one.

    Such a function changes what DuckDB tells of itself, prints, or runs the SQL in a text.
    """
    text = statement.encode()
    starts = [start for start, _ in duckdb.tokenize(statement)]
    for start, following in itertools.pairwise(starts):
        name = _IDENTIFIER.match(text, start)
        if name and text[following : following + 1] == b"(":
            called = (name[1] or name[0]).decode().lower()
            if called in _NO_QUERIES:
                raise InputError(f"SQL: {called} is no query: leave it out")


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
