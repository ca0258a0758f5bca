"""Blocks of titles decided by rules: those that share a spelling, a last name or an acronym."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import duckdb
import polars as pl

from graphrag_pipeline.graph.resolution.names import take_apart
from graphrag_pipeline.graph.resolution.pairs import Entity, Pair, as_json
from graphrag_pipeline.graph.resolution.persons import MOST_OF_A_NAME, resolve_bearers
from graphrag_pipeline.graph.resolution.spellings import (
    may_stand_for,
    resolve_acronym,
    resolve_alike,
)
from graphrag_pipeline.graph.resolution.state import ACRONYM, EXPLAINED, INITIALS, LAST
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.index_store import insert

_SLICE = 5_000
_BLOCKS = """
CREATE OR REPLACE TEMP TABLE blocks_to_decide AS
SELECT kind, key, sum(n) OVER (ORDER BY kind, key) // $slice AS slice FROM (
    SELECT b.kind, b.key, count(*) AS n FROM open_blocks b
    JOIN staging.resolution_keys k ON k.kind = b.kind AND k.key = b.key
    WHERE b.kind <> 'acronym' GROUP BY ALL)
WHERE n > 1 AND (kind <> 'last' OR n <= $most) UNION ALL
SELECT kind, key, -1 FROM open_blocks WHERE kind = 'acronym'
"""
_MEMBERS = """
SELECT b.kind, b.key, k.kind AS part, n.id, n.title, n.type, n.is_open
FROM blocks_to_decide b JOIN staging.resolution_keys k ON k.key = b.key AND (
    k.kind = b.kind OR (b.kind = 'acronym' AND k.kind IN ('initials', 'explained')))
JOIN staging.resolution_names n ON n.id = k.id
WHERE b.slice = $slice ORDER BY b.kind, b.key, part, n.id
"""
_DOCUMENTS = """
SELECT entity_id, list(DISTINCT hash(document_id))
FROM next_entity_mentions m SEMI JOIN borne ON borne.id = m.entity_id
JOIN next_chunks c ON c.id = m.chunk_id GROUP BY entity_id
"""
_NEAR = """
SELECT DISTINCT p.one_id, p.two_id FROM fitting p
JOIN next_entity_mentions m ON m.entity_id = p.one_id
SEMI JOIN next_entity_mentions o ON o.entity_id = p.two_id AND o.chunk_id = m.chunk_id
"""
_PAIRS = {
    **dict.fromkeys(("kind", "key", "one_id", "two_id", "rule"), pl.String),
    "confidence": pl.Float64,
    "evidence": pl.String,
    "nearness": pl.Float64,
}
Row = tuple[str, str, str, str, str, float, str, float]


def decide_blocks(con: duckdb.DuckDBPyConnection) -> None:
    """Put what rules say of the titles in ``open_blocks`` among the pairs."""
    con.execute(_BLOCKS, {"slice": _SLICE, "most": MOST_OF_A_NAME})
    numbers = con.execute("SELECT DISTINCT slice FROM blocks_to_decide ORDER BY slice").fetchall()
    for (number,) in numbers:
        members = con.execute(_MEMBERS, {"slice": number}).fetchall()
        is_acronyms = number < 0
        rows = _acronyms(con, members) if is_acronyms else _alike(con, members)
        put_pairs(con, list(rows))


def put_pairs(con: duckdb.DuckDBPyConnection, rows: Sequence[Row]) -> None:
    """Keep pairs that were found."""
    insert(con, "staging.resolution_pairs", pl.DataFrame(rows, schema=_PAIRS, orient="row"))


def pair_row(kind: str, key: str, pair: Pair, nearness: float = 0.0) -> Row:
    """Return a pair as it is kept."""
    ids = pair.one.id, pair.two.id
    return kind, key, *ids, pair.rule, pair.confidence, as_json(pair.evidence), nearness


def _documents(
    con: duckdb.DuckDBPyConnection, members: Sequence[tuple]
) -> dict[str, frozenset[int]]:
    """Return hashes of the documents that mention each of those who bear a last name."""
    borne = sorted({id for kind, _, _, id, *_ in members if kind == LAST})
    if not borne:
        return {}
    put_rows(con, "borne", pl.DataFrame({"id": borne}))
    return {id: frozenset(hashes) for id, hashes in con.execute(_DOCUMENTS).fetchall()}


def _alike(con: duckdb.DuckDBPyConnection, members: Sequence[tuple]) -> Iterator[Row]:
    documents = _documents(con, members)
    names: dict[str, Entity] = {}
    for (kind, key), rows in groupby(members, key=lambda row: row[:2]):
        block = []
        for _, _, _, id, title, type_, is_open in rows:
            if id not in names:
                told = documents.get(id, frozenset())
                names[id] = Entity(id, take_apart(title, type_), told, is_open=is_open)
            block.append(names[id])
        is_last = kind == LAST
        pairs = resolve_bearers(key, block) if is_last else resolve_alike(kind, key, block)
        yield from _rows(kind, key, pairs)


def _rows(kind: str, key: str, pairs: Iterable[Pair]) -> Iterator[Row]:
    for pair in pairs:
        if not pair.confidence or (pair.one.is_open and pair.two.is_open):
            yield pair_row(kind, key, pair)


def _acronyms(con: duckdb.DuckDBPyConnection, members: Sequence[tuple]) -> Iterator[Row]:
    """Decide blocks of acronyms, the titles with such initials and those the text explains."""
    questions: list[tuple[str, Entity, list[Entity], list[Entity]]] = []
    for (_, key), rows in groupby(members, key=lambda row: row[:2]):
        parts: dict[str, list[Entity]] = {ACRONYM: [], INITIALS: [], EXPLAINED: []}
        for _, _, part, id, title, type_, is_open in rows:
            parts[part].append(Entity(id, take_apart(title, type_), is_open=is_open))
        for short in parts[ACRONYM]:
            explained = may_stand_for(short, parts[EXPLAINED])
            questions.append((key, short, explained, may_stand_for(short, parts[INITIALS])))
    fitting = [(short.id, long.id) for _, short, _, fits in questions for long in fits]
    schema = {"one_id": pl.String, "two_id": pl.String}
    put_rows(con, "fitting", pl.DataFrame(fitting, schema=schema, orient="row"))
    together = set(con.execute(_NEAR).fetchall())
    for key, short, explained, fits in questions:
        near = [long for long in fits if (short.id, long.id) in together]
        yield from _rows(ACRONYM, key, resolve_acronym(short, explained, fits, near))
