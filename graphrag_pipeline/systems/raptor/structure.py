"""RAPTOR's tree as a structure: what the rest of the pipeline must know of it."""

from __future__ import annotations

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.estimates import Embedded, Estimate, Growth, ModelCalls
from graphrag_pipeline.structures.structure import (
    Check,
    Preview,
    Step,
    Structure,
    VectorTable,
)
from graphrag_pipeline.systems.raptor.summaries import STAGE
from graphrag_pipeline.systems.raptor.tree import (
    forget_mixtures,
    tree_current,
    tree_version,
    update_tree,
)

# Of 1,669 podcast transcripts: summaries for each full cluster's tokens of text, how full clusters
# are, and summaries that a new chunk changes.
_NODES, _FILLED, _TOUCHED = 3.5, 0.5, 6

LEADS_TO_CHUNKS = """
SELECT count(*) FROM raptor_edges e LEFT JOIN raptor_nodes n ON n.id = e.node_id
WHERE n.id IS NULL OR NOT CASE WHEN n.layer = 1 THEN child_id IN (SELECT id FROM chunks)
    ELSE (child_id, n.layer - 1) IN (SELECT (id, layer) FROM raptor_nodes) END
"""
NODES_HAVE_CHILDREN = """
SELECT count(*) FROM raptor_nodes n
WHERE n_children < 2 OR n_children <> (SELECT count(*) FROM raptor_edges e WHERE e.node_id = n.id)
"""
_FACTS = """
SELECT count(*) AS "dagster/row_count", coalesce(max(layer), 0) AS layers,
       avg(n_children) AS mean_children FROM raptor_nodes
"""
_LAYERS = """
SELECT layer, count(*) AS summaries, avg(n_children) AS mean_children,
       avg(n_tokens) AS mean_tokens, first(text ORDER BY n_children DESC, id) AS first
FROM raptor_nodes GROUP BY layer ORDER BY layer DESC
"""


def _estimate(settings: Settings, growth: Growth) -> Estimate:
    options, n = settings.hierarchies, _nodes(settings, growth)
    calls = ()
    if settings.reports.writer == "llm":
        read = _FILLED * options.raptor_cluster_tokens
        limit = "hierarchies.raptor_cluster_tokens"
        calls = (ModelCalls(STAGE, n, read, options.summary_tokens, limit),)
    return Estimate(calls, texts=[Embedded(n, n * options.summary_tokens)])


def _nodes(settings: Settings, growth: Growth) -> float:
    """Return how many summaries the tree will need: all, or those above new chunks."""
    if nodes := growth.rows.get("raptor_nodes"):
        return min(nodes, _TOUCHED * growth.grown.number)
    tokens = growth.indexed.tokens + growth.grown.tokens
    return _NODES * tokens / settings.hierarchies.raptor_cluster_tokens


TREE_VECTORS = VectorTable(
    "raptor_nodes",
    "SELECT id, text, layer AS level, NULL::VARCHAR AS batch FROM raptor_nodes",
    made_from=("raptor_nodes",),
    about="Vectors and full text of the summaries of the RAPTOR tree, in LanceDB.",
)
RAPTOR = Structure(
    "raptor",
    setting="hierarchies.raptor",
    steps=(
        Step(
            ("hierarchies", "raptor_tree"),
            "Summaries of like chunks, of like summaries, and so on (RAPTOR).",
            "raptor_nodes",
            lambda index: update_tree(index.store, index.vectors, index.settings),
            tree_current,
            "the RAPTOR tree",
            vectors=("chunks",),
            facts=_FACTS,
            previews={"layers_from_the_top": Preview(_LAYERS)},
            checks=(
                Check(
                    "summaries_lead_to_chunks",
                    "Each is made of chunks, or of summaries of the layer below.",
                    LEADS_TO_CHUNKS,
                    "parts of summaries are not there",
                ),
                Check(
                    "no_summary_without_parts",
                    "Each is made of two or more.",
                    NODES_HAVE_CHILDREN,
                    "summaries lack parts",
                ),
            ),
        ),
    ),
    vectors=(TREE_VECTORS,),
    tables=("raptor_nodes", "raptor_edges"),
    working=("staging.raptor_mixtures", "staging.raptor_fitted"),
    meta=("raptor",),
    version=tree_version,
    model_stages=(STAGE,),
    estimate=_estimate,
    cluster_anew=forget_mixtures,
)
