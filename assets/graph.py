"""The graph: who is who, then entities and relationships, merged from all batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg
import duckdb

from graphrag_pipeline.assets.common import (
    INDEX_POOL,
    OWNERS,
    check,
    column_schema,
    facts,
    markdown_table,
    picture,
    stage,
    storage,
    warning,
)
from graphrag_pipeline.assets.ingestion import extractions
from graphrag_pipeline.graph.descriptions import update_graph
from graphrag_pipeline.graph.resolution.resolving import resolve_entities
from graphrag_pipeline.pages import pictures
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource

GROUP = "graph"
ALIASES = dg.AssetKey(["graph", "entity_aliases"])
ENTITIES = dg.AssetKey(["graph", "entities"])
RELATIONSHIPS = dg.AssetKey(["graph", "relationships"])
_MADE_FROM = [extractions, ALIASES]
_DECIDED = "every_pair_decided"

_ALIAS_FACTS = """
SELECT count(*) AS "dagster/row_count", count(DISTINCT canonical_id) AS merged_into,
       count(*) FILTER (method = 'rule') AS by_rule, count(*) FILTER (method = 'user') AS by_user,
       count(*) FILTER (method = 'model') AS by_model, min(confidence) AS least_confidence
FROM entity_aliases
"""
_ALIAS_PREVIEW = """
SELECT title, canonical_title AS same_as, method, rule, confidence, evidence FROM entity_aliases
ORDER BY confidence, title LIMIT 10
"""
_APART_PREVIEW = """
SELECT one_title AS one, two_title AS two, reason, evidence FROM entities_kept_apart
ORDER BY reason = 'alike', one_title, two_title LIMIT 10
"""
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


def _spec(
    key: dg.AssetKey, description: str, made_from: Sequence[dg.AssetsDefinition | dg.AssetKey]
) -> dg.AssetSpec:
    return dg.AssetSpec(
        key,
        deps=made_from,
        description=description,
        kinds={"python", "duckdb"},
        owners=OWNERS,
        group_name=GROUP,
        metadata=storage(key.path[-1]),
    )


@dg.multi_asset(
    name="resolution",
    specs=[
        _spec(
            ALIASES,
            "Titles that mean the same thing, with the evidence: by rule, model or aliases.csv.",
            [extractions],
        )
    ],
    check_specs=[
        dg.AssetCheckSpec(
            _DECIDED,
            asset=ALIASES,
            description="Warns of pairs the model gave no answer to; the next run asks again.",
        )
    ],
    pool=INDEX_POOL,
)
def entity_aliases(index: IndexResource) -> dg.MaterializeResult:
    """Decide which titles mean the same thing."""
    with stage("resolution") as clock, index.spending() as spent:
        done = resolve_entities(index.store, index.settings)
    with index.get_connection() as con:
        told = {
            "kept_apart": done.kept_apart,
            "changed": done.changed,
            "titles_not_in_the_corpus": ", ".join(done.absent) or "none",
            **facts(con, _ALIAS_FACTS),
            **column_schema(con, "entity_aliases"),
            "preview": markdown_table(con, _ALIAS_PREVIEW),
            "looked_alike": markdown_table(con, _APART_PREVIEW),
        }
    what = "pairs the model gave no answer to"
    return dg.MaterializeResult(
        asset_key=ALIASES,
        metadata={**told, **spent.metadata, "seconds": clock.seconds},
        check_results=[warning(ALIASES, _DECIDED, done.failed, what)],
    )


@dg.multi_asset(
    name="graph",
    specs=[
        _spec(
            ENTITIES, "Nodes: one per entity, with all titles that are folded into it.", _MADE_FROM
        ),
        _spec(
            RELATIONSHIPS,
            "Undirected edges, weighted by the instances that support them.",
            _MADE_FROM,
        ),
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
        entities = _result(con, ENTITIES, {**told, **done.entities})
        relationships = _result(con, RELATIONSHIPS, {**told, **done.relationships})
        degrees = pictures.degree_picture(con)
    drawn = picture(index.home, degrees)
    yield entities._replace(metadata={**drawn, **(entities.metadata or {})})
    yield relationships


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
