"""Relationships of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.query.operators.ranking import Ranking
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.timing import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

# Links: how many of the given entities the far end of an out-of-network relationship touches.
_OF_ENTITIES = """
WITH given AS (SELECT unnest($ids::JSON::VARCHAR[]) AS id),
touching AS (
    SELECT r.id, combined_degree, s.id IS NOT NULL AND t.id IS NOT NULL AS in_network,
           CASE WHEN s.id IS NULL THEN source_id ELSE target_id END AS far_end
    FROM relationships r
    LEFT JOIN given s ON s.id = source_id LEFT JOIN given t ON t.id = target_id
    WHERE s.id IS NOT NULL OR t.id IS NOT NULL),
linked AS (
    SELECT *, CASE WHEN in_network THEN 0 ELSE count(*) OVER (PARTITION BY in_network, far_end) END
           AS links FROM touching)
SELECT id, combined_degree FROM linked
ORDER BY in_network DESC, links DESC, combined_degree DESC, id LIMIT $limit
"""
_RECORDS = """
SELECT r.id, human_readable_id, source_id, target_id, source, target, description, weight,
       combined_degree
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id) wanted JOIN relationships r USING (id)
"""


@operator
def relationships_of(index: Release, entities: Ranking, limit: int) -> Ranking:
    """Rank the relationships that touch the given entities; scores are combined degrees.

    Those between two of them come first, by combined degree; then those to other entities, which
    rank by how many of the given entities they link, then by combined degree.
    """
    found = index.rows(_OF_ENTITIES, ids=list(entities), limit=limit)
    return {row["id"]: float(row["combined_degree"]) for row in found}


@operator
def relationship_records(index: Release, relationships: Ranking) -> list[Record]:
    """Return the records of ranked relationships, in their order."""
    rows = {row["id"]: row for row in index.rows(_RECORDS, ids=list(relationships))}
    return [
        Record(
            kind="relationship",
            id=key,
            number=row["human_readable_id"],
            title=f"{row['source']} – {row['target']}",
            text=row["description"],
            score=score,
            attributes={
                name: row[name] for name in ("source_id", "target_id", "weight", "combined_degree")
            },
        )
        for key, score in relationships.items()
        if (row := rows.get(key))
    ]
