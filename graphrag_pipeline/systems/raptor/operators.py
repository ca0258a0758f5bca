"""Summaries of the RAPTOR tree, and the chunks below them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.chunks import chunk_records
from graphrag_pipeline.query.operators.ranking import (
    Ranking,
    VectorTable,
    best,
    check_kept,
    decoded,
    highest,
    most_similar,
    nearest,
)
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_NODES: tuple[VectorTable, ...] = ("raptor_nodes", "chunks")
_PLACES_EACH = 3
_MOST_CHUNKS = 1000

_ROOTS = """
SELECT id FROM {table} ANTI JOIN (SELECT child_id AS id FROM raptor_edges) USING (id) ORDER BY id
"""
_CHILDREN = """
SELECT DISTINCT child_id AS id FROM raptor_edges
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS node_id) USING (node_id) ORDER BY id
"""
_EDGES = "SELECT node_id, child_id FROM raptor_edges ORDER BY ALL"
_SUMMARIES = "SELECT id, human_readable_id, layer, text FROM raptor_nodes"
_BELOW = """
WITH RECURSIVE below AS (
    SELECT node_id AS id, child_id FROM raptor_edges
    SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS node_id) USING (node_id)
    UNION
    SELECT below.id, e.child_id FROM below JOIN raptor_edges e ON e.node_id = below.child_id)
SELECT id, list(child_id ORDER BY child_id) AS chunks FROM below
SEMI JOIN chunks c ON c.id = child_id GROUP BY id
"""


@operator
def best_of_tree(index: Release, question: str, k: int) -> Ranking:
    """Rank the ``k`` chunks and summaries, of all layers together, most similar to a question.

    Raises InputError where the release has no tree.
    """
    check_kept(index, "raptor_nodes", "RAPTOR tree", "hierarchies.raptor")
    near = (nearest(index, table, question, k) for table in _NODES)
    return best(highest(*near), k)


@operator
def down_the_tree(index: Release, question: str, k: int) -> Ranking:
    """Rank the ``k`` most similar of what has no summary above it, of their parts, and so on.

    Where vectors know words only, a summary, then mostly sentences of its chunks, is as similar as
    the best chunk below it, by BM25. Raises InputError where the release has no tree.
    """
    check_kept(index, "raptor_nodes", "RAPTOR tree", "hierarchies.raptor")
    ranking: Ranking = {}
    best_below = _best_below(index, question) if index.lexical else None
    roots = (index.rows(_ROOTS.format(table=table)) for table in _NODES)
    ids = [row["id"] for rows in roots for row in rows]
    while ids:
        if best_below is None:
            near = [most_similar(index, table, question, ids, k) for table in _NODES]
        else:
            near = [{key: best_below.get(key, 0.0) for key in ids}]
        layer = best(highest(*near), k)
        ranking |= layer
        ids = [row["id"] for row in index.rows(_CHILDREN, ids=list(layer))]
    return highest(ranking)


@operator
def tree_records(index: Release, question: str, ranking: Ranking) -> list[Record]:
    """Return the records of ranked chunks and summaries, in their order.

    A summary's ``chunk_ids`` are those below it that are most similar to the question.
    """
    summaries = index.records(_SUMMARIES, ranking)
    places = _places(index, question, summaries)
    chunks = {record.id: record for record in chunk_records(index, ranking)}
    return [
        chunks[key] if key in chunks else _record(summaries[key], score, places.get(key, []))
        for key, score in ranking.items()
        if key in chunks or key in summaries
    ]


def _best_below(index: Release, question: str) -> Ranking:
    """Score the chunks that share words with a question by BM25, and each node by its best one."""
    hits = index.search_text("chunks", question, _MOST_CHUNKS)
    scores = layer = dict(zip(hits["id"].to_pylist(), hits["score"].to_pylist(), strict=True))
    edges = index.kept(_EDGES)
    while layer:
        rows, places = edges.having("child_id", layer)
        values = list(layer.values())
        layer = {}
        for parent, place in zip(decoded(edges.ids("node_id")[rows]), places.tolist(), strict=True):
            if values[place] > scores.get(parent, 0.0):
                scores[parent] = layer[parent] = values[place]
    return scores


def _record(row: Mapping[str, object], score: float, chunk_ids: list[str]) -> Record:
    return Record(
        kind="summary",
        id=str(row["id"]),
        number=int(str(row["human_readable_id"])),
        title=f"Layer {row['layer']}",
        text=str(row["text"]),
        score=score,
        attributes={"layer": row["layer"], "chunk_ids": chunk_ids},
    )


def _places(index: Release, question: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the best chunks below each of these summaries."""
    below = {row["id"]: row["chunks"] for row in index.rows(_BELOW, ids=list(ids))}
    scores = index.similarities(
        "chunks", question, sorted({chunk for chunks in below.values() for chunk in chunks})
    )
    return {
        key: sorted(chunks, key=lambda chunk: (-scores.get(chunk, 0.0), chunk))[:_PLACES_EACH]
        for key, chunks in below.items()
    }
