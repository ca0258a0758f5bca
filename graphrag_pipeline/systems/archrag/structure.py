"""ArchRAG's attributed communities as a structure: the edges between what is alike, the communities
with their reports, and the index over entities and communities.
"""

from __future__ import annotations

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.estimates import ENTITIES, Estimate, Growth
from graphrag_pipeline.store import hierarchy
from graphrag_pipeline.structures.structure import (
    Check,
    Preview,
    Step,
    Structure,
)
from graphrag_pipeline.systems.archrag.communities import (
    COMMUNITY_VECTORS,
    attributed_current,
    attributed_version,
    forget_clusters,
    update_attributed,
)
from graphrag_pipeline.systems.archrag.index import chnsw_current, update_chnsw
from graphrag_pipeline.systems.archrag.reports import ATTRIBUTED_COMMUNITIES
from graphrag_pipeline.systems.archrag.similarity import similarity_current, update_similarity

# Attributed communities for each entity: 1,670 for 7,269, 103 for 529.
_COMMUNITIES = 0.2

SIMILAR_EXIST = """
SELECT count(*) FROM similarity_edges
WHERE source_id NOT IN (SELECT id FROM entities) OR target_id NOT IN (SELECT id FROM entities)
"""
ENTITIES_COVERED_ONCE = ATTRIBUTED_COMMUNITIES.count(hierarchy.ENTITIES_COVERED_ONCE)
LEAD_TO_ENTITIES = ATTRIBUTED_COMMUNITIES.sql(
    """SELECT count(*) FROM {communities} c ANTI JOIN (
           SELECT community_id FROM {members} SEMI JOIN entities e ON e.id = entity_id) m
       ON m.community_id = c.id"""
)
CHNSW_HOLDS_EVERY_NODE = """
WITH nodes AS (
    SELECT 0 AS layer, count(*) AS n FROM entities UNION ALL
    SELECT level, count(*) FROM attributed_communities WHERE full_content IS NOT NULL GROUP BY ALL)
SELECT coalesce(sum(abs(coalesce(n, 0) - coalesce(n_nodes, 0))), 0)
FROM nodes FULL JOIN chnsw USING (layer)
"""
_SIMILAR_FACTS = """
SELECT count(*) AS "dagster/row_count", min(similarity) AS least, max(similarity) AS most
FROM similarity_edges
"""
_SIMILAR_PREVIEW = """
SELECT s.title AS entity, t.title AS alike, similarity FROM similarity_edges
JOIN entities s ON s.id = source_id JOIN entities t ON t.id = target_id
ORDER BY similarity DESC, 1, 2 LIMIT 8
"""
_COMMUNITY_FACTS = 'SELECT count(*) AS "dagster/row_count" FROM attributed_communities'
_LEVELS = """
SELECT level, count(*) AS communities, count(full_content) AS reports, max(size) AS most_entities,
       max(n_members) AS most_members
FROM attributed_communities GROUP BY level ORDER BY level
"""
_COMMUNITY_PREVIEW = """
SELECT level, title, size AS entities, summary FROM attributed_communities
WHERE full_content IS NOT NULL ORDER BY level DESC, rating DESC, title LIMIT 6
"""
_INDEX_FACTS = """
SELECT count(*) AS "dagster/row_count", coalesce(sum(octet_length(links)), 0) / 1e6 AS size_mb
FROM chnsw
"""


def _estimate(settings: Settings, growth: Growth) -> Estimate:
    """As many reports change as of the others; of those that are not there yet all are new."""
    chunks = growth.indexed.full + growth.grown.full
    everything = chunks * ENTITIES * _COMMUNITIES
    is_there = growth.rows.get("attributed_communities")
    return Estimate(reports=min(growth.reports, everything) if is_there else everything)


_SIMILARITY = Step(
    ("hierarchies", "similarity_edges"),
    "Entities that are alike by vector although nothing links them.",
    "similarity_edges",
    lambda index: update_similarity(index.store, index.vectors),
    lambda con, settings: similarity_current(con),
    "similarity edges",
    made_from=("relationships",),
    vectors=("entities",),
    label="similarity",
    facts=_SIMILAR_FACTS,
    previews={"preview": Preview(_SIMILAR_PREVIEW)},
    checks=(
        Check(
            "ends_are_entities", "Both ends are entities.", SIMILAR_EXIST, "pairs are of no entity"
        ),
    ),
    is_counted=False,
)
_COMMUNITIES_STEP = Step(
    ("hierarchies", "attributed_communities"),
    "Communities of what is linked and alike, level upon level, with a report on each.",
    "attributed_communities",
    lambda index: update_attributed(index.store, index.vectors, index.settings),
    attributed_current,
    "attributed communities",
    made_from=("relationships", "similarity_edges"),
    label="attributed communities",
    facts=_COMMUNITY_FACTS,
    previews={"levels": Preview(_LEVELS), "preview": Preview(_COMMUNITY_PREVIEW, longest=200)},
    checks=(
        Check(
            "every_entity_in_one_community_per_level",
            "No more and no fewer than one.",
            ENTITIES_COVERED_ONCE,
            "times an entity is in none or in several",
        ),
        Check(
            "every_community_leads_to_entities",
            "Down through its members.",
            LEAD_TO_ENTITIES,
            "communities hold no entity",
        ),
        Check(
            "no_report_failed",
            "Warns of reports that could not be written.",
            "",
            "reports failed: the next run asks again",
            warns=True,
        ),
    ),
)
_INDEX = Step(
    ("hierarchies", "chnsw"),
    "The C-HNSW over entities and communities: one layer each, searched from the top down.",
    "chnsw",
    lambda index: update_chnsw(index.store, index.vectors),
    lambda con, settings: chnsw_current(con),
    "the C-HNSW",
    vectors=("entities", "attributed_communities"),
    label="C-HNSW",
    facts=_INDEX_FACTS,
    checks=(
        Check(
            "every_node_in_one_layer",
            "Entities and reported communities.",
            CHNSW_HOLDS_EVERY_NODE,
            "nodes are missing, or too many",
        ),
    ),
    is_counted=False,
)
ATTRIBUTED = Structure(
    "attributed",
    setting="hierarchies.attributed",
    steps=(_SIMILARITY, _COMMUNITIES_STEP, _INDEX),
    vectors=(COMMUNITY_VECTORS,),
    tables=("similarity_edges", "chnsw"),
    hierarchy=ATTRIBUTED_COMMUNITIES,
    working=(
        "staging.similarity_nearest",
        "staging.similarity_searched",
        "staging.attributed_clusters",
    ),
    meta=("similarity_edges", "similarity_searched", "attributed", "chnsw"),
    version=attributed_version,
    estimate=_estimate,
    cluster_anew=forget_clusters,
)
