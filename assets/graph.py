"""The graph: entities and relationships, merged from all batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import dagster as dg
import duckdb

from assets.common import (
    INDEX_POOL,
    OWNERS,
    check,
    column_schema,
    facts,
    markdown_table,
    stage,
    storage,
)
from assets.ingestion import extractions
from graphrag_pipeline import invariants
from graphrag_pipeline.summaries import update_graph
from resources import IndexResource

GROUP = "graph"
ENTITIES = dg.AssetKey(["graph", "entities"])
RELATIONSHIPS = dg.AssetKey(["graph", "relationships"])

_ENTITY_FACTS = """
SELECT count(*) AS "dagster/row_count", count(DISTINCT type) AS types,
       count(*) FILTER (degree = 0) AS isolated, avg(degree) AS mean_degree FROM entities
"""
_RELATIONSHIP_FACTS = """
SELECT count(*) AS "dagster/row_count", avg(weight) AS mean_weight, max(weight) AS largest_weight
FROM relationships
"""
_ENTITY_PREVIEW = """
SELECT title, type, frequency, degree FROM entities ORDER BY degree DESC, title LIMIT 15
"""
_RELATIONSHIP_PREVIEW = """
SELECT source, target, weight, pmi FROM relationships
ORDER BY weight DESC, source, target LIMIT 12
"""
_SHOWN = {
    ENTITIES: (_ENTITY_FACTS, _ENTITY_PREVIEW),
    RELATIONSHIPS: (_RELATIONSHIP_FACTS, _RELATIONSHIP_PREVIEW),
}
_CHECKS = {
    "ids_unique": (ENTITIES, invariants.ENTITY_IDS_UNIQUE, "repeated ids"),
    "entities_have_sources": (
        ENTITIES,
        invariants.ENTITIES_HAVE_SOURCES,
        "entities without a chunk",
    ),
    "relationship_ids_unique": (
        RELATIONSHIPS,
        invariants.RELATIONSHIP_IDS_UNIQUE,
        "repeated ids",
    ),
    "endpoints_exist": (
        RELATIONSHIPS,
        invariants.ENDPOINTS_EXIST,
        "relationships without both ends",
    ),
}


def _spec(key: dg.AssetKey, description: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        key,
        deps=[extractions],
        description=description,
        kinds={"python", "duckdb"},
        owners=OWNERS,
        group_name=GROUP,
        metadata=storage(key.path[-1]),
    )


@dg.multi_asset(
    name="graph",
    specs=[
        _spec(ENTITIES, "Nodes: one per distinct entity, merged by normalised title."),
        _spec(RELATIONSHIPS, "Undirected edges, weighted by the instances that support them."),
    ],
    check_specs=[
        dg.AssetCheckSpec(name, asset=key, blocking=True, description=f"No {what}.")
        for name, (key, _, what) in _CHECKS.items()
    ],
    pool=INDEX_POOL,
)
def graph(index: IndexResource) -> Iterator[dg.MaterializeResult]:
    """Take in finished batches and merge all mentions into the graph."""
    with stage("graph") as clock, index.spending() as spent:
        done, summaries = update_graph(index.store, index.settings)
    told = {"batches_taken_in": len(done.batches), "seconds": clock.seconds, **summaries}
    told |= spent.metadata
    with index.get_connection() as con:
        results = [
            _result(con, ENTITIES, {**told, **done.entities}),
            _result(con, RELATIONSHIPS, {**told, **done.relationships}),
        ]
    yield from results


def _result(
    con: duckdb.DuckDBPyConnection, key: dg.AssetKey, told: Mapping[str, object]
) -> dg.MaterializeResult:
    query, preview = _SHOWN[key]
    metadata = {
        **told,
        **facts(con, query),
        **column_schema(con, key.path[-1]),
        "preview": markdown_table(con, preview),
    }
    checks = [
        check(key, name, invariants.violations(con, query), what)
        for name, (asset, query, what) in _CHECKS.items()
        if asset == key
    ]
    return dg.MaterializeResult(asset_key=key, metadata=metadata, check_results=checks)
