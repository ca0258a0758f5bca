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
_TOUCHING = """
SELECT r.id, combined_degree FROM relationships r
WHERE source_id IN (SELECT unnest($ids::JSON::VARCHAR[]))
   OR target_id IN (SELECT unnest($ids::JSON::VARCHAR[]))
ORDER BY combined_degree DESC, weight DESC, id LIMIT $limit
"""
_NEXT_TO = """
WITH frontier AS (SELECT unnest($ids::JSON::VARCHAR[]) AS id,
                         generate_subscripts($ids::JSON::VARCHAR[], 1) AS place),
touching AS (
    SELECT r.id, place, weight, target_id AS far_end FROM relationships r
    JOIN frontier f ON f.id = source_id
    UNION ALL
    SELECT r.id, place, weight, source_id FROM relationships r JOIN frontier f ON f.id = target_id)
SELECT id, arg_min(far_end, place) AS far_end FROM touching
ANTI JOIN (SELECT unnest($taken::JSON::VARCHAR[]) AS id) taken USING (id)
GROUP BY id ORDER BY min(place), max(weight) DESC, id LIMIT $limit
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
def relationships_by_degree(index: Release, entities: Ranking, limit: int) -> Ranking:
    """Rank the relationships that touch the given entities by the degrees of their ends, summed.

    That is the score; of those with the same, the heaviest comes first.
    """
    found = index.rows(_TOUCHING, ids=list(entities), limit=limit)
    return {row["id"]: float(row["combined_degree"]) for row in found}


@operator
def relationships_by_score(index: Release, entities: Ranking, k: int) -> Ranking:
    """Rank the ``k`` relationships with the highest score: the sum of those of their ends."""
    import numpy as np

    graph = index.graph
    edges, scores = graph.edges("links"), graph.weigh_entities(entities)
    summed = scores[edges.one] + scores[edges.two]
    order = np.argsort(-summed, kind="stable")[:k]
    found = order[summed[order] > 0]
    ids = map(bytes.decode, edges.ids[found].tolist())
    return dict(zip(ids, summed[found].tolist(), strict=True))


@operator
def relationships_within(index: Release, entities: Ranking, hops: int, limit: int) -> Ranking:
    """Rank the relationships up to ``hops`` steps from the given entities; each step halves 1.

    Within a step, those of the entity reached first come first, then the heaviest.
    """
    found: Ranking = {}
    reached, frontier = dict.fromkeys(entities), list(entities)
    for hop in range(hops):
        if not frontier or len(found) >= limit:
            break
        rows = index.rows(_NEXT_TO, ids=frontier, taken=list(found), limit=limit - len(found))
        found |= {row["id"]: 0.5**hop for row in rows}
        frontier = [end for end in dict.fromkeys(r["far_end"] for r in rows) if end not in reached]
        reached |= dict.fromkeys(frontier)
    return found


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
