"""The graph: who is who, then entities and relationships, merged from all batches."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from graphrag_pipeline.assets.ingestion import EXTRACTIONS
from graphrag_pipeline.assets.stages import (
    StageOutcome,
    StageTable,
    shown,
)
from graphrag_pipeline.graph.fold import GraphChanges
from graphrag_pipeline.graph.resolution.resolving import Resolution
from graphrag_pipeline.pages import pictures
from graphrag_pipeline.pipeline.stages import GRAPH, RESOLUTION
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.structure import Check, Preview

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


def _tell_of_aliases(index: IndexResource, resolution: Resolution) -> StageOutcome:
    metadata = {
        "kept_apart": resolution.kept_apart,
        "changed": resolution.changed,
        "titles_not_in_the_corpus": ", ".join(resolution.absent) or "none",
    }
    return StageOutcome(metadata, resolution.failed)


def _tell_of_graph(
    index: IndexResource, outcome: tuple[GraphChanges, Mapping[str, int]]
) -> StageOutcome:
    changes, summaries = outcome
    return StageOutcome(
        {"batches_taken_in": len(changes.batches), **summaries},
        of_table={ENTITIES: changes.entities, RELATIONSHIPS: changes.relationships},
    )


entity_aliases = shown(
    RESOLUTION,
    _tell_of_aliases,
    tables=[
        StageTable(
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
                    "",
                    "pairs the model gave no answer to",
                    warns=True,
                )
            ],
        )
    ],
)
graph = shown(
    GRAPH,
    _tell_of_graph,
    pictures=lambda con: {ENTITIES: [pictures.degree_picture(con)]},
    tables=[
        StageTable(
            key=ENTITIES,
            about="Nodes: one per entity, with all titles that are folded into it.",
            group=GROUP,
            made_from=[EXTRACTIONS, ALIASES],
            table="entities",
            facts=_ENTITY_FACTS,
            previews={"preview": Preview(_ENTITY_PREVIEW)},
        ),
        StageTable(
            key=RELATIONSHIPS,
            about="Undirected edges, weighted by the instances that support them.",
            group=GROUP,
            made_from=[EXTRACTIONS, ALIASES],
            table="relationships",
            facts=_RELATIONSHIP_FACTS,
            previews={"preview": Preview(_RELATIONSHIP_PREVIEW)},
        ),
    ],
)
