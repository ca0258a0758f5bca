"""Chunks: the text that entities and relationships were found in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.ranking import Ranking
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.timing import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_OF_GRAPH = """
WITH support AS (
    SELECT chunk_id, weight FROM entity_chunks
    JOIN (SELECT unnest($entities::JSON::VARCHAR[]) AS entity_id,
                 unnest($entity_weights::JSON::DOUBLE[]) AS weight) USING (entity_id)
    UNION ALL
    SELECT chunk_id, weight FROM relationship_chunks
    JOIN (SELECT unnest($relationships::JSON::VARCHAR[]) AS relationship_id,
                 unnest($relationship_weights::JSON::DOUBLE[]) AS weight) USING (relationship_id))
SELECT chunk_id AS id, sum(weight) AS score FROM support
GROUP BY chunk_id ORDER BY score DESC, id LIMIT $limit
"""
_RECORDS = """
SELECT c.id, c.human_readable_id, c.document_id, d.title, d.uri, c.start_char, c.end_char, c.text
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id) wanted
JOIN chunks c USING (id) JOIN documents d ON d.id = c.document_id
"""

# Texts are what costs time to fetch, so only as many as can be used are.
_WITHIN = """
SELECT id FROM (
    SELECT id, place, coalesce(sum(n_tokens) OVER (
        ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS tokens_before
    FROM chunks JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id,
                             generate_subscripts($ids::JSON::VARCHAR[], 1) AS place) USING (id))
WHERE tokens_before < $budget ORDER BY place
"""


@operator
def chunks_of(
    index: Release, entities: Ranking, relationships: Ranking | None = None, *, limit: int
) -> Ranking:
    """Rank chunks by occurrence: the summed scores of the entities and relationships in each."""
    edges = relationships or {}
    found = index.rows(
        _OF_GRAPH,
        entities=list(entities),
        entity_weights=list(entities.values()),
        relationships=list(edges),
        relationship_weights=list(edges.values()),
        limit=limit,
    )
    return {row["id"]: row["score"] for row in found}


@operator
def every_chunk(index: Release) -> Ranking:
    """Return all chunks, in the order of documents and within them; scores are 1."""
    found = index.rows("SELECT id FROM chunks ORDER BY human_readable_id, id")
    return {row["id"]: 1.0 for row in found}


@operator
def chunks_within(index: Release, chunks: Ranking, budget: int) -> Ranking:
    """Return the first of ranked chunks, as many as could fit in a budget of tokens."""
    found = index.rows(_WITHIN, ids=list(chunks), budget=budget)
    return {row["id"]: chunks[row["id"]] for row in found}


@operator
def chunk_records(index: Release, chunks: Ranking) -> list[Record]:
    """Return the records of ranked chunks, in their order; the title is the document's."""
    rows = {row["id"]: row for row in index.rows(_RECORDS, ids=list(chunks))}
    return [
        Record(
            kind="chunk",
            id=key,
            number=row["human_readable_id"],
            title=row["title"],
            text=row["text"],
            score=score,
            attributes={
                name: row[name] for name in ("document_id", "uri", "start_char", "end_char")
            },
        )
        for key, score in chunks.items()
        if (row := rows.get(key))
    ]
