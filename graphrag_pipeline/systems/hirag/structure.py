"""HiRAG's hierarchical graph as a structure: its layers, and the communities over all of them."""

from __future__ import annotations

import duckdb

from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.graph.communities import forget_state, update_communities
from graphrag_pipeline.llm.estimates import (
    ENTITIES,
    ENTITY_TOKENS,
    REPORTS_PER_CHUNK,
    Embedded,
    Estimate,
    Growth,
    ModelCalls,
)
from graphrag_pipeline.store import hierarchy
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.structure import (
    Check,
    Outcome,
    Preview,
    Step,
    Structure,
    VectorTable,
)
from graphrag_pipeline.systems.hirag.communities import (
    LAYERED,
    communities_version,
    hirag_clustered,
    hirag_communities_current,
    update_hirag_reports,
)
from graphrag_pipeline.systems.hirag.tables import (
    forget_mixtures,
    hirag_current,
    hirag_version,
    update_hirag,
)
from graphrag_pipeline.systems.hirag.writing import STAGE

# Of 1,669 podcast transcripts: clusters for each full one's tokens of entities, how full clusters
# are, clusters that a new chunk changes, and tokens of an answer.
_CLUSTERS, _FILLED, _TOUCHED, _ANSWER = 4, 0.5, 15, 600

ENDS_EXIST = """
WITH nodes AS (SELECT id FROM entities UNION ALL SELECT id FROM hirag_entities)
SELECT count(*) FROM hirag_relationships
WHERE source_id NOT IN (SELECT id FROM nodes) OR target_id NOT IN (SELECT id FROM hirag_entities)
"""
RESTS_ON_TEXT = """
WITH RECURSIVE reached AS (
    SELECT target_id AS id FROM hirag_relationships SEMI JOIN entity_chunks ON entity_id = source_id
    UNION
    SELECT r.target_id FROM hirag_relationships r JOIN reached ON r.source_id = reached.id)
SELECT count(*) FROM hirag_entities ANTI JOIN reached USING (id)
"""
SPARSITY_KNOWN = """
SELECT count(DISTINCT layer) FROM hirag_entities ANTI JOIN hirag_layers USING (layer)
"""
ENTITIES_COVERED_ONCE = LAYERED.count(hierarchy.ENTITIES_COVERED_ONCE)
EVERY_COMMUNITY_REPORTED = LAYERED.count(hierarchy.COMMUNITIES_REPORTED)
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


def _update_communities(workspace: Workspace) -> Outcome:
    store, settings = workspace.store, workspace.settings
    communities = update_communities(store, settings.communities, LAYERED)
    reports = update_hirag_reports(store, settings)
    facts = {
        "done": communities.how or "unchanged",
        "written": reports.written,
        "reused": reports.reused,
    }
    return Outcome(facts, reports.failed)


def _estimate(settings: Settings, growth: Growth) -> Estimate:
    """As many reports change as of the others; of those that are not there yet all are new."""
    clusters = _clusters(settings, growth)
    calls = ()
    if settings.reports.writer == "llm":
        read = _FILLED * settings.reports.max_context_tokens
        calls = (ModelCalls(STAGE, clusters, read, _ANSWER, "reports.max_context_tokens"),)
    chunks = growth.indexed.full + growth.grown.full
    is_there = growth.rows.get("hirag_entities")
    return Estimate(
        calls,
        reports=growth.reports if is_there else chunks * REPORTS_PER_CHUNK,
        texts=[Embedded(clusters, clusters * ENTITY_TOKENS)],
    )


def _clusters(settings: Settings, growth: Growth) -> float:
    """Return how many clusters the layers will have to summarise: all, or those touched."""
    if clusters := growth.rows.get("hirag_entities"):
        return min(clusters, _TOUCHED * growth.grown.full)
    entities = (growth.indexed.full + growth.grown.full) * ENTITIES
    return _CLUSTERS * entities * ENTITY_TOKENS / settings.reports.max_context_tokens


def _cluster_anew(con: duckdb.DuckDBPyConnection) -> None:
    forget_mixtures(con)
    forget_state(con, LAYERED)


ENTITY_VECTORS = VectorTable(
    "hirag_entities",
    """SELECT id, title || chr(10) || description AS text, layer AS level, NULL::VARCHAR AS batch
       FROM hirag_entities""",
    made_from=("hirag_entities",),
    about="Vectors and full text of entities that summarise clusters, in LanceDB.",
)
_ENTITIES_STEP = Step(
    ("hierarchies", "hirag_entities"),
    "Entities that summarise clusters of entities, layer upon layer (HiRAG).",
    "hirag_entities",
    lambda index: update_hirag(index.store, index.vectors, index.settings),
    hirag_current,
    "the entities of hirag",
    vectors=("entities",),
    label="hirag",
    facts=_ENTITY_FACTS,
    previews={"layers": Preview(_LAYERS), "preview": Preview(_PREVIEW, longest=200)},
    checks=(
        Check(
            "ends_are_entities",
            "Both ends of every link are.",
            ENDS_EXIST,
            "links are of no entity",
        ),
        Check(
            "every_entity_rests_on_text",
            "Each leads down to entities with chunks.",
            RESTS_ON_TEXT,
            "entities rest on no chunk",
        ),
        Check(
            "sparsity_of_every_layer_known",
            "Each layer's clustering is recorded.",
            SPARSITY_KNOWN,
            "layers have no sparsity",
            blocking=False,
        ),
        Check(
            "no_summary_failed",
            "Warns of clusters that the model could not summarise.",
            "",
            "clusters are summarised by extraction instead",
            warns=True,
        ),
    ),
)
_COMMUNITIES_STEP = Step(
    ("hierarchies", "hirag_communities"),
    "Communities of the graph of all layers, with reports (HiRAG).",
    "hirag_communities",
    _update_communities,
    hirag_communities_current,
    "the communities of hirag",
    # After the reports: what was removed is known until these have all been written.
    made_from=("hirag_entities", "relationships", "community_reports"),
    label="hirag communities",
    facts=_COMMUNITY_FACTS,
    previews={"preview": Preview(_REPORTS, longest=400)},
    checks=(
        Check(
            "every_entity_covered_once",
            "Each entity of each layer is in one community at each level.",
            ENTITIES_COVERED_ONCE,
            "entities are not covered once",
        ),
        Check(
            "every_community_reported",
            "Each community of two or more entities has a report, or failed.",
            EVERY_COMMUNITY_REPORTED,
            "communities have no report",
        ),
        Check(
            "no_report_failed",
            "Warns of reports that the model could not write.",
            "",
            "reports failed",
            warns=True,
        ),
    ),
)
HIRAG = Structure(
    "hirag",
    setting="hierarchies.hirag",
    steps=(_ENTITIES_STEP, _COMMUNITIES_STEP),
    vectors=(ENTITY_VECTORS,),
    tables=(
        "hirag_entities",
        "hirag_relationships",
        "hirag_layers",
    ),
    hierarchy=LAYERED,
    has_stand_ins=True,
    clustered=hirag_clustered,
    working=(
        "hirag_basis",
        "staging.hirag_mixtures",
        "staging.hirag_nodes",
        "staging.hirag_summaries",
    ),
    meta=("hirag", "hirag:"),
    version=lambda settings: fingerprint(hirag_version(settings), communities_version(settings)),
    model_stages=(STAGE,),
    estimate=_estimate,
    cluster_anew=_cluster_anew,
)
