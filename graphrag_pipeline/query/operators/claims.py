"""Claims about entities, as a model found them in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.ranking import Ranking, best, decoded, in_turn
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_OF_ENTITIES = """
SELECT id, subject_id FROM claims WHERE subject_id IS NOT NULL ORDER BY human_readable_id, id
"""
_RECORDS = """
SELECT id, human_readable_id, chunk_id, subject_id, subject, object, type, status, start_date,
       end_date, description, source_text FROM claims
"""
_NAMED = (
    "chunk_id", "subject_id", "object", "type", "status", "start_date", "end_date", "source_text"
)  # fmt: skip


@operator
def claims_of(index: Release, entities: Ranking, limit: int) -> Ranking:
    """Rank the claims about the given entities: the first of each, best entity first, and so on.

    So no entity of many claims keeps out those of another. Scores are 1.
    """
    table = index.kept(_OF_ENTITIES)
    rows, places = table.having("subject_id", entities)
    by_entity: dict[int, list[str]] = {}
    for key, place in zip(decoded(table.ids("id")[rows]), places.tolist(), strict=True):
        by_entity.setdefault(place, []).append(key)
    return best(in_turn(*(dict.fromkeys(ids, 1.0) for ids in by_entity.values())), limit)


@operator
def claim_records(index: Release, claims: Ranking) -> list[Record]:
    """Return the records of ranked claims, in their order; the title is the subject's."""
    rows = index.records(_RECORDS, claims)
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
