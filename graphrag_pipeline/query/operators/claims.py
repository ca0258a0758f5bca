"""Claims about entities, as a model found them in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.ranking import Ranking
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.timing import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_OF_ENTITIES = """
SELECT c.id FROM claims c
JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS subject_id,
             generate_subscripts($ids::JSON::VARCHAR[], 1) AS place) USING (subject_id)
ORDER BY row_number() OVER (PARTITION BY place ORDER BY human_readable_id, c.id), place
LIMIT $limit
"""
_RECORDS = """
SELECT c.id, human_readable_id, chunk_id, subject_id, subject, object, type, status, start_date,
       end_date, description, source_text
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id) wanted JOIN claims c USING (id)
"""
_NAMED = (
    "chunk_id", "subject_id", "object", "type", "status", "start_date", "end_date", "source_text"
)  # fmt: skip


@operator
def claims_of(index: Release, entities: Ranking, limit: int) -> Ranking:
    """Rank the claims about the given entities: the first of each, best entity first, and so on.

    So no entity of many claims keeps out those of another. Scores are 1.
    """
    found = index.rows(_OF_ENTITIES, ids=list(entities), limit=limit)
    return {row["id"]: 1.0 for row in found}


@operator
def claim_records(index: Release, claims: Ranking) -> list[Record]:
    """Return the records of ranked claims, in their order; the title is the subject's."""
    rows = {row["id"]: row for row in index.rows(_RECORDS, ids=list(claims))}
    return [
        Record(
            kind="claim",
            id=key,
            number=row["human_readable_id"],
            title=row["subject"],
            text=row["description"],
            score=score,
            attributes={name: row[name] for name in _NAMED},
        )
        for key, score in claims.items()
        if (row := rows.get(key))
    ]
