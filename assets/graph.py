"""The graph: entities and relationships, merged from all batches."""

from __future__ import annotations

import time
from collections.abc import Iterator

import dagster as dg

from assets.common import (
    INDEX_POOL,
    OWNERS,
    check,
    counts_metadata,
    storage,
    table_metadata,
)
from assets.ingestion import extractions
from graphrag_pipeline import invariants, progress
from graphrag_pipeline.config import fingerprint, load_settings
from graphrag_pipeline.graph import GRAPH_VERSION, merge_graph
from resources import IndexResource

GROUP = "graph"
ENTITIES = dg.AssetKey(["graph", "entities"])
RELATIONSHIPS = dg.AssetKey(["graph", "relationships"])
_VERSION = fingerprint(GRAPH_VERSION, load_settings().graph)

_ENTITY_PREVIEW = """
SELECT title, type, frequency, degree, description FROM entities
ORDER BY degree DESC, title LIMIT 15
"""
_RELATIONSHIP_PREVIEW = """
SELECT source, target, weight, pmi, description FROM relationships
ORDER BY weight DESC, source, target LIMIT 15
"""


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            ENTITIES,
            deps=[extractions],
            description="Nodes: one per distinct entity, merged by normalised title.",
            kinds={"duckdb"},
            owners=OWNERS,
            group_name=GROUP,
            code_version=_VERSION,
            metadata=storage("entities"),
        ),
        dg.AssetSpec(
            RELATIONSHIPS,
            deps=[extractions],
            description="Undirected edges, weighted by the instances that support them.",
            kinds={"duckdb"},
            owners=OWNERS,
            group_name=GROUP,
            code_version=_VERSION,
            metadata=storage("relationships"),
        ),
    ],
    check_specs=[
        dg.AssetCheckSpec("ids_unique", asset=ENTITIES, blocking=True),
        dg.AssetCheckSpec("entities_have_sources", asset=ENTITIES, blocking=True),
        dg.AssetCheckSpec("relationship_ids_unique", asset=RELATIONSHIPS, blocking=True),
        dg.AssetCheckSpec("endpoints_exist", asset=RELATIONSHIPS, blocking=True),
    ],
    pool=INDEX_POOL,
)
def graph(index: IndexResource) -> Iterator[dg.MaterializeResult]:
    """Take in finished batches and merge all mentions into the graph."""
    started = time.perf_counter()
    progress.report("graph", 0, 1)
    settings = index.settings
    done = merge_graph(index.store, settings.graph, settings.chunks.encoding)
    seconds = {"seconds": round(time.perf_counter() - started, 3), "batches": len(done.batches)}
    progress.report("graph", 1, 1)
    with index.get_connection() as con:
        rows = {
            ENTITIES: (table_metadata(con, "entities", _ENTITY_PREVIEW), done.entities),
            RELATIONSHIPS: (
                table_metadata(con, "relationships", _RELATIONSHIP_PREVIEW),
                done.relationships,
            ),
        }
        unique = invariants.violations(con, invariants.ENTITY_IDS_UNIQUE)
        sources = invariants.violations(con, invariants.ENTITIES_HAVE_SOURCES)
        edges_unique = invariants.violations(con, invariants.RELATIONSHIP_IDS_UNIQUE)
        ends = invariants.violations(con, invariants.ENDPOINTS_EXIST)
    checks = {
        ENTITIES: [
            check(ENTITIES, "ids_unique", unique, "repeated ids"),
            check(ENTITIES, "entities_have_sources", sources, "entities without a chunk"),
        ],
        RELATIONSHIPS: [
            check(RELATIONSHIPS, "relationship_ids_unique", edges_unique, "repeated ids"),
            check(RELATIONSHIPS, "endpoints_exist", ends, "relationships without both ends"),
        ],
    }
    for key, (metadata, counts) in rows.items():
        yield dg.MaterializeResult(
            asset_key=key,
            metadata={**metadata, **counts_metadata(counts), **seconds},
            check_results=checks[key],
        )
