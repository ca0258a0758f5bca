"""HiRAG's hierarchical graph, if asked for: entities in layers, communities over all of them."""

from __future__ import annotations

import dagster as dg
import duckdb

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
from graphrag_pipeline.assets.embeddings import HIRAG_ENTITIES, embedding_key
from graphrag_pipeline.assets.graph import RELATIONSHIPS
from graphrag_pipeline.assets.reports import report_key
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.hirag.communities import (
    layered,
    update_hirag_communities,
    update_hirag_reports,
)
from graphrag_pipeline.structures.hirag.tables import HiragChanges, update_hirag

GROUP = "hierarchies"
HIRAG_COMMUNITIES = dg.AssetKey([GROUP, "hirag_communities"])
LINKED = "ends_are_entities"
GROUNDED = "every_entity_rests_on_text"
MEASURED = "sparsity_of_every_layer_known"
SUMMARISED = "no_summary_failed"
COVERED = "every_entity_covered_once"
REPORTED = "every_community_reported"
WRITTEN = "no_report_failed"
_ENTITY_FACTS = """
SELECT count(*) AS "dagster/row_count", max(layer) AS layers,
       (SELECT count(*) FROM hirag_relationships) AS relationships FROM hirag_entities
"""
_LAYERS = """
SELECT layer, n_nodes AS clustered, n_clusters AS clusters, n_entities AS entities,
       round(sparsity, 4)::VARCHAR AS sparsity FROM hirag_layers ORDER BY layer
"""
_PREVIEW = """
SELECT layer, title, type, size AS stands_for, description FROM hirag_entities
ORDER BY layer DESC, size DESC, title LIMIT 6
"""
_COMMUNITY_FACTS = """
SELECT count(*) AS "dagster/row_count", max(last_level) + 1 AS levels, max(size) AS largest,
       (SELECT count(*) FROM hirag_community_reports) AS reports FROM hirag_communities
"""
_REPORTS = """
SELECT r.title, r.rating, c.size AS entities, r.summary
FROM hirag_community_reports r JOIN hirag_communities c ON c.id = r.community_id
ORDER BY r.level, r.rating DESC, r.title LIMIT 6
"""
_LEVELS = "SELECT coalesce(max(last_level), -1) + 1 FROM hirag_communities"
_ALL_LEVELS = {"first": 0, "last": 1_000_000}


def build_hirag(settings: Settings) -> list[dg.AssetsDefinition]:
    """Return the assets of the hierarchical graph where the settings ask for it."""
    if not settings.hierarchies.hirag:
        return []
    return [hirag_entities, _communities_asset(settings.communities.levels)]


def hirag_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of the assets of :func:`build_hirag`."""
    return [HIRAG_ENTITIES, HIRAG_COMMUNITIES] if settings.hierarchies.hirag else []


@dg.asset(
    key=HIRAG_ENTITIES,
    deps=[embedding_key("entities")],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("hirag_entities"),
    check_specs=[
        dg.AssetCheckSpec(
            LINKED, asset=HIRAG_ENTITIES, blocking=True, description="Both ends of every link are."
        ),
        dg.AssetCheckSpec(
            GROUNDED,
            asset=HIRAG_ENTITIES,
            blocking=True,
            description="Each leads down to entities with chunks.",
        ),
        dg.AssetCheckSpec(
            MEASURED, asset=HIRAG_ENTITIES, description="Each layer's clustering is recorded."
        ),
        dg.AssetCheckSpec(
            SUMMARISED,
            asset=HIRAG_ENTITIES,
            description="Warns of clusters that the model could not summarise.",
        ),
    ],
)
def hirag_entities(index: IndexResource) -> dg.MaterializeResult:
    """Entities that summarise clusters of entities, layer upon layer (HiRAG)."""
    with stage("hirag") as clock, index.spending() as spent:
        done = update_hirag(index.store, index.home, index.settings)
    with index.get_connection() as con:
        told = {
            **facts(con, _ENTITY_FACTS),
            **column_schema(con, "hirag_entities"),
            "layers": markdown_table(con, _LAYERS),
            "preview": markdown_table(con, _PREVIEW, longest=200),
        }
        checks = _entity_checks(con, done)
    counts = {**done.changes, "summarised": done.summarised}
    return dg.MaterializeResult(
        metadata={**told, **counts, **spent.metadata, "seconds": clock.seconds},
        check_results=checks,
    )


def _entity_checks(con: duckdb.DuckDBPyConnection, done: HiragChanges) -> list[dg.AssetCheckResult]:
    key = HIRAG_ENTITIES
    lost = invariants.violations(con, invariants.HIRAG_ENDS_EXIST)
    baseless = invariants.violations(con, invariants.HIRAG_RESTS_ON_TEXT)
    unknown = invariants.violations(con, invariants.HIRAG_SPARSITY_KNOWN)
    return [
        check(key, LINKED, lost, "links are of no entity"),
        check(key, GROUNDED, baseless, "entities rest on no chunk"),
        check(key, MEASURED, unknown, "layers have no sparsity"),
        warning(key, SUMMARISED, done.failed, "clusters are summarised by extraction instead"),
    ]


def _communities_asset(levels: int) -> dg.AssetsDefinition:
    # After the reports: what was removed is known until these have all been written.
    @dg.asset(
        key=HIRAG_COMMUNITIES,
        deps=[HIRAG_ENTITIES, RELATIONSHIPS, *(report_key(level) for level in range(levels))],
        group_name=GROUP,
        kinds={"python", "duckdb"},
        owners=OWNERS,
        pool=INDEX_POOL,
        metadata=storage("hirag_communities"),
        check_specs=[
            dg.AssetCheckSpec(
                COVERED,
                asset=HIRAG_COMMUNITIES,
                blocking=True,
                description="Each entity of each layer is in one community at each level.",
            ),
            dg.AssetCheckSpec(
                REPORTED,
                asset=HIRAG_COMMUNITIES,
                blocking=True,
                description="Each community of two or more entities has a report, or failed.",
            ),
            dg.AssetCheckSpec(
                WRITTEN,
                asset=HIRAG_COMMUNITIES,
                description="Warns of reports that the model could not write.",
            ),
        ],
    )
    def hirag_communities(index: IndexResource) -> dg.MaterializeResult:
        """Communities of the graph of all layers, with reports (HiRAG)."""
        with stage("hirag communities") as clock, index.spending() as spent:
            found = update_hirag_communities(index.store, index.settings)
            done = update_hirag_reports(index.store, index.settings)
        with index.get_connection() as con:
            uncovered, unreported = _broken(con)
            told = {
                **facts(con, _COMMUNITY_FACTS),
                **column_schema(con, "hirag_communities"),
                "preview": markdown_table(con, _REPORTS, longest=400),
            }
        counts = {"done": found.how or "unchanged", "written": done.written, "reused": done.reused}
        return dg.MaterializeResult(
            metadata={**told, **counts, **spent.metadata, "seconds": clock.seconds},
            check_results=[
                check(HIRAG_COMMUNITIES, COVERED, uncovered, "entities are not covered once"),
                check(HIRAG_COMMUNITIES, REPORTED, unreported, "communities have no report"),
                warning(HIRAG_COMMUNITIES, WRITTEN, done.failed, "reports failed"),
            ],
        )

    return hirag_communities


def _broken(con: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    row = con.execute(_LEVELS).fetchone()
    query = invariants.EVERY_ENTITY_COVERED_ONCE
    with layered(con):
        return (
            sum(
                invariants.violations(con, query, {"level": level})
                for level in range(row[0] if row else 0)
            ),
            invariants.violations(con, invariants.EVERY_COMMUNITY_REPORTED, _ALL_LEVELS),
        )
