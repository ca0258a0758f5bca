"""The graph: who is who, then entities and relationships, merged from all batches."""

from __future__ import annotations

import dagster as dg
import duckdb

from graphrag_pipeline.assets.ingestion import EXTRACTIONS
from graphrag_pipeline.assets.stages import Check, Outcome, Pictures, Preview, Stage, Table
from graphrag_pipeline.graph.descriptions import update_graph
from graphrag_pipeline.graph.resolution.resolving import resolve_entities
from graphrag_pipeline.pages import pictures
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource

GROUP = "graph"
ALIASES = dg.AssetKey(["graph", "entity_aliases"])
ENTITIES = dg.AssetKey(["graph", "entities"])
RELATIONSHIPS = dg.AssetKey(["graph", "relationships"])

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


def decide_aliases(index: IndexResource) -> Outcome:
    """Decide which titles mean the same thing."""
    resolution = resolve_entities(index.workspace)
    metadata = {
        "kept_apart": resolution.kept_apart,
        "changed": resolution.changed,
        "titles_not_in_the_corpus": ", ".join(resolution.absent) or "none",
    }
    return Outcome(metadata, resolution.failed)


def merge(index: IndexResource) -> Outcome:
    """Take in finished batches and merge all mentions into the graph."""
    outcome, summaries = update_graph(index.workspace)
    return Outcome(
        {"batches_taken_in": len(outcome.batches), **summaries},
        of_table={ENTITIES: outcome.entities, RELATIONSHIPS: outcome.relationships},
    )


def _pictures(con: duckdb.DuckDBPyConnection) -> Pictures:
    return {ENTITIES: [pictures.degree_picture(con)]}


entity_aliases = Stage(
    name="resolution",
    work=decide_aliases,
    tables=[
        Table(
            key=ALIASES,
            about="Titles that mean the same thing, with the evidence: by rule, model or "
            "aliases.csv.",
            group=GROUP,
            made_from=[EXTRACTIONS],
            table="entity_aliases",
            facts=_ALIAS_FACTS,
            previews={
                "preview": Preview(_ALIAS_PREVIEW),
                "looked_alike": Preview(_APART_PREVIEW),
            },
            checks=[
                Check(
                    "every_pair_decided",
                    "Warns of pairs the model gave no answer to; the next run asks again.",
                    "pairs the model gave no answer to",
                    warns=True,
                )
            ],
        )
    ],
)
graph = Stage(
    name="graph",
    work=merge,
    pictures=_pictures,
    tables=[
        Table(
            key=ENTITIES,
            about="Nodes: one per entity, with all titles that are folded into it.",
            group=GROUP,
            made_from=[EXTRACTIONS, ALIASES],
            table="entities",
            facts=_ENTITY_FACTS,
            previews={"preview": Preview(_ENTITY_PREVIEW)},
            checks=[
                Check(
                    "ids_unique", "No repeated ids.", "repeated ids", invariants.ENTITY_IDS_UNIQUE
                ),
                Check(
                    "entities_have_sources",
                    "No entities without a chunk.",
                    "entities without a chunk",
                    invariants.ENTITIES_HAVE_SOURCES,
                ),
            ],
        ),
        Table(
            key=RELATIONSHIPS,
            about="Undirected edges, weighted by the instances that support them.",
            group=GROUP,
            made_from=[EXTRACTIONS, ALIASES],
            table="relationships",
            facts=_RELATIONSHIP_FACTS,
            previews={"preview": Preview(_RELATIONSHIP_PREVIEW)},
            checks=[
                Check(
                    "relationship_ids_unique",
                    "No repeated ids.",
                    "repeated ids",
                    invariants.RELATIONSHIP_IDS_UNIQUE,
                ),
                Check(
                    "endpoints_exist",
                    "No relationships without both ends.",
                    "relationships without both ends",
                    invariants.ENDPOINTS_EXIST,
                ),
            ],
        ),
    ],
)
