"""Two of one name, which the user tells apart by document: mentions under an id of their own.

The id of a mention is made from its title, wherever it stands. In documents that a line "split" of
``aliases.csv`` names it is made from both titles of the line, so that all that follows (rules, the
graph, what methods walk over) takes the two for two. What no line says any more gets its id back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.graph.resolution.user_aliases import SPLIT, UserRow
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.index_store import get_meta, set_meta

Lines = Sequence[tuple[str, str, str]]
"""The id of a title, the id of who is another, and a pattern of LIKE for documents."""

_BASES, _LINES, _PLACES = "split_bases", "split_lines", "split_places"
_MENTIONS = (
    ("entity_mentions", "entity_id"),
    ("relationship_mentions", "source_id"),
    ("relationship_mentions", "target_id"),
    ("claims", "subject_id"),
    ("chunk_names", "entity_id"),
)
LINKS = (("record_links", "source_id"), ("record_links", "target_id"))
TITLES = (("chunk_titles", "entity_id"),)

# The last line that names a document wins.
_SPLIT_DOCUMENTS = r"""
CREATE OR REPLACE TEMP TABLE split_documents AS
SELECT d.id AS document_id, s.base, arg_max(s.id, s.place) AS id
FROM {documents} d JOIN split_lines s
  ON d.uri LIKE s.pattern ESCAPE '\' OR d.source LIKE s.pattern ESCAPE '\'
GROUP BY ALL
"""
_SEPARATE = """
UPDATE {table} AS t SET {column} = w.id FROM (
    SELECT m.rowid AS row, coalesce(s.id, b.base, m.{column}) AS id
    FROM {table} m LEFT JOIN split_bases b ON b.id = m.{column}
    JOIN {chunks} c ON c.id = m.chunk_id
    LEFT JOIN split_documents s
      ON s.document_id = c.document_id AND s.base = coalesce(b.base, m.{column})
    WHERE m.{column} IN (SELECT unnest([id, base]) FROM split_bases)) w
WHERE t.rowid = w.row AND t.{column} <> w.id
"""


def note_splits(con: duckdb.DuckDBPyConnection, user: Sequence[UserRow]) -> Mapping[str, str]:
    """Keep what the user's lines say; return what each id of another is made from, also before.

    The documents are those that :func:`plan_take_in` shows.
    """
    bases = json.loads(get_meta(con, _BASES) or "{}")
    bases |= {row.split_id: row.a_id for row in user if row.action == SPLIT}
    if bases:
        set_meta(con, _BASES, json.dumps(bases, sort_keys=True))
        set_meta(con, _LINES, json.dumps(_lines(user)))
        set_meta(con, _PLACES, split_places(con, user, "next_documents"))
    return bases


def split_mentions(con: duckdb.DuckDBPyConnection, user: Sequence[UserRow]) -> None:
    """Give mentions that :func:`plan_take_in` shows the ids that the user's lines say.

    Call it in a transaction. Where there are no such lines, now and before, nothing is done.
    """
    if bases := note_splits(con, user):
        _find_documents(con, _lines(user), "next_documents")
        _put_bases(con, bases)
        for table, column in _MENTIONS:
            for schema in ("main", "staging"):
                _separate(con, f"{schema}.{table}", column, "next_chunks")


def split_in_fold(con: duckdb.DuckDBPyConnection, columns: Sequence[tuple[str, str]]) -> None:
    """Do the same for what the graph's fold looks up by title: ``LINKS`` or ``TITLES``."""
    if bases := json.loads(get_meta(con, _BASES) or "{}"):
        _find_documents(con, json.loads(get_meta(con, _LINES) or "[]"), "documents")
        _put_bases(con, bases)
        for table, column in columns:
            _separate(con, table, column, "chunks")


def split_places(
    con: duckdb.DuckDBPyConnection, user: Sequence[UserRow], documents: str = "documents"
) -> str:
    """Return a hash of who is another in which of these documents; empty without such lines."""
    lines = _lines(user)
    if not lines:
        return ""
    _find_documents(con, lines, documents)
    return fingerprint(*map(repr, con.execute("FROM split_documents ORDER BY ALL").fetchall()))


def forget_splits(con: duckdb.DuckDBPyConnection) -> None:
    """Forget what lines said, which may name documents that a reader of this index has not."""
    con.execute("DELETE FROM meta WHERE key IN (?, ?, ?)", [_BASES, _LINES, _PLACES])


def splits_state(con: duckdb.DuckDBPyConnection) -> str:
    """Return the hash of :func:`split_places` when mentions were split last."""
    return get_meta(con, _PLACES) or ""


def _lines(user: Sequence[UserRow]) -> Lines:
    return [
        (row.a_id, row.split_id, pattern)
        for row in user
        if row.action == SPLIT
        for pattern in _patterns(row.documents)
    ]


def _patterns(documents: str) -> list[str]:
    """Return patterns of LIKE for a name of documents, the end of one, a folder, or a file of many.

    >>> _patterns("people/*.md")[:3]
    ['people/%.md', '%/people/%.md', 'people/%.md/%']
    """
    name = re.sub(r"([\\%_])", r"\\\1", documents.rstrip("/")).replace("*", "%")
    return [before + name + after for after in ("", "/%", "#%") for before in ("", "%/")]


def _find_documents(con: duckdb.DuckDBPyConnection, lines: Lines, documents: str) -> None:
    rows = [(*line, place) for place, line in enumerate(lines)]
    columns = {"base": pl.String, "id": pl.String, "pattern": pl.String, "place": pl.Int64}
    put_rows(con, "split_lines", pl.DataFrame(rows, schema=columns, orient="row"))
    con.execute(_SPLIT_DOCUMENTS.format(documents=documents))


def _put_bases(con: duckdb.DuckDBPyConnection, bases: Mapping[str, str]) -> None:
    columns = {"id": pl.String, "base": pl.String}
    rows = pl.DataFrame([*bases.items()], schema=columns, orient="row")
    put_rows(con, "split_bases", rows)


def _separate(con: duckdb.DuckDBPyConnection, table: str, column: str, chunks: str) -> None:
    con.execute(_SEPARATE.format(table=table, column=column, chunks=chunks))
