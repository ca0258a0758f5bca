"""ArchRAG's attributed communities, if asked for, and the index over entities and communities."""

from __future__ import annotations

from typing import Any

import dagster as dg

from graphrag_pipeline.assets.common import (
    INDEX_POOL,
    OWNERS,
    check,
    column_schema,
    facts,
    markdown_table,
    stage,
    storage,
    warning,
)
from graphrag_pipeline.assets.embeddings import ATTRIBUTED, embedding_key
from graphrag_pipeline.assets.graph import RELATIONSHIPS
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.archrag.communities import update_attributed
from graphrag_pipeline.structures.archrag.index import update_chnsw
from graphrag_pipeline.structures.archrag.similarity import update_similarity

GROUP = "hierarchies"
SIMILARITY = dg.AssetKey([GROUP, "similarity_edges"])
CHNSW = dg.AssetKey([GROUP, "chnsw"])
LINKED = "ends_are_entities"
COVERED = "every_entity_in_one_community_per_level"
GROUNDED = "every_community_leads_to_entities"
WRITTEN = "no_report_failed"
COMPLETE = "every_node_in_one_layer"
_SIMILAR_FACTS = """
SELECT count(*) AS "dagster/row_count", min(similarity) AS least, max(similarity) AS most
FROM similarity_edges
"""
_SIMILAR_PREVIEW = """
SELECT s.title AS entity, t.title AS alike, similarity FROM similarity_edges
JOIN entities s ON s.id = source_id JOIN entities t ON t.id = target_id
ORDER BY similarity DESC, 1, 2 LIMIT 8
"""
_LEVELS = """
SELECT level, count(*) AS communities, count(full_content) AS reports, max(size) AS most_entities,
       max(n_members) AS most_members
FROM attributed_communities GROUP BY level ORDER BY level
"""
_SIZE = "SELECT coalesce(sum(octet_length(links)), 0) / 1e6 AS size_mb FROM chnsw"
_COMMUNITY_PREVIEW = """
SELECT level, title, size AS entities, summary FROM attributed_communities
WHERE full_content IS NOT NULL ORDER BY level DESC, rating DESC, title LIMIT 6
"""


def build_attributed(settings: Settings) -> list[dg.AssetsDefinition]:
    """Return the assets of the attributed communities where the settings ask for them."""
    asked = settings.hierarchies.attributed
    return [similarity_edges, attributed_communities, chnsw] if asked else []


def attributed_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of the assets of :func:`build_attributed`."""
    return [SIMILARITY, ATTRIBUTED, CHNSW] if settings.hierarchies.attributed else []


@dg.asset(
    key=SIMILARITY,
    deps=[RELATIONSHIPS, embedding_key("entities")],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("similarity_edges"),
    check_specs=[
        dg.AssetCheckSpec(
            LINKED, asset=SIMILARITY, blocking=True, description="Both ends are entities."
        ),
    ],
)
def similarity_edges(index: IndexResource) -> dg.MaterializeResult:
    """Entities that are alike by vector although nothing links them."""
    with stage("similarity") as clock:
        done = update_similarity(index.store, index.home, index.settings)
    with index.get_connection() as con:
        broken = invariants.violations(con, invariants.SIMILAR_EXIST)
        told = {
            **facts(con, _SIMILAR_FACTS),
            **column_schema(con, "similarity_edges"),
            "preview": markdown_table(con, _SIMILAR_PREVIEW),
        }
    known = {"neighbours": done.neighbours, "threshold": done.threshold}
    return dg.MaterializeResult(
        metadata={
            **told,
            **{name: value for name, value in known.items() if value is not None},
            "searched": done.searched,
            "seconds": clock.seconds,
        },
        check_results=[check(SIMILARITY, LINKED, broken, "pairs are of no entity")],
    )


@dg.asset(
    key=ATTRIBUTED,
    deps=[RELATIONSHIPS, SIMILARITY],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("attributed_communities"),
    check_specs=[
        dg.AssetCheckSpec(
            COVERED, asset=ATTRIBUTED, blocking=True, description="No more and no fewer than one."
        ),
        dg.AssetCheckSpec(
            GROUNDED, asset=ATTRIBUTED, blocking=True, description="Down through its members."
        ),
        dg.AssetCheckSpec(
            WRITTEN, asset=ATTRIBUTED, description="Warns of reports that could not be written."
        ),
    ],
)
def attributed_communities(index: IndexResource) -> dg.MaterializeResult:
    """Communities of what is linked and alike, level upon level, with a report on each."""
    with stage("attributed communities") as clock, index.spending() as spent:
        done = update_attributed(index.store, index.home, index.settings)
    with index.get_connection() as con:
        covered = invariants.violations(con, invariants.ATTRIBUTED_COVER_ENTITIES_ONCE)
        grounded = invariants.violations(con, invariants.ATTRIBUTED_LEAD_TO_ENTITIES)
        told = {
            "dagster/row_count": con.table("attributed_communities").count("*").fetchall()[0][0],
            **column_schema(con, "attributed_communities"),
            "levels": markdown_table(con, _LEVELS),
            "preview": markdown_table(con, _COMMUNITY_PREVIEW, longest=200),
        }
    measured = {"modularity": done.modularity, "calinski_harabasz": done.calinski_harabasz}
    counts = {"written": done.written, "reused": done.reused, "removed": done.removed}
    return dg.MaterializeResult(
        metadata={
            **told,
            **counts,
            **{name: round(value, 4) for name, value in measured.items() if value is not None},
            **spent.metadata,
            "seconds": clock.seconds,
        },
        check_results=[
            check(ATTRIBUTED, COVERED, covered, "times an entity is in none or in several"),
            check(ATTRIBUTED, GROUNDED, grounded, "communities hold no entity"),
            warning(ATTRIBUTED, WRITTEN, done.failed, "reports failed: the next run asks again"),
        ],
    )


@dg.asset(
    key=CHNSW,
    deps=[embedding_key("entities"), embedding_key("attributed_communities")],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("chnsw"),
    check_specs=[
        dg.AssetCheckSpec(
            COMPLETE, asset=CHNSW, blocking=True, description="Entities and reported communities."
        ),
    ],
)
def chnsw(index: IndexResource) -> dg.MaterializeResult:
    """The C-HNSW over entities and communities: one layer each, searched from the top down."""
    with stage("C-HNSW") as clock:
        done = update_chnsw(index.store, index.home)
    with index.get_connection() as con:
        broken = invariants.violations(con, invariants.CHNSW_HOLDS_EVERY_NODE)
        told: dict[str, Any] = {**facts(con, _SIZE), **column_schema(con, "chnsw")}
    return dg.MaterializeResult(
        metadata={
            **told,
            "dagster/row_count": len(done.nodes),
            "nodes": ", ".join(map(str, done.nodes)),
            "built": done.built,
            "seconds": clock.seconds,
        },
        check_results=[check(CHNSW, COMPLETE, broken, "nodes are missing, or too many")],
    )
