"""The RAPTOR tree: there where the settings ask for it."""

from __future__ import annotations

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
)
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.raptor.tree import update_tree

RAPTOR_TREE = dg.AssetKey(["hierarchies", "raptor_tree"])
CHUNK_VECTORS = dg.AssetKey(["embeddings", "chunks"])
GROUNDED = "summaries_lead_to_chunks"
MADE_OF = "no_summary_without_parts"
_FACTS = """
SELECT count(*) AS "dagster/row_count", coalesce(max(layer), 0) AS layers,
       avg(n_children) AS mean_children FROM raptor_nodes
"""
_LAYERS = """
SELECT layer, count(*) AS summaries, avg(n_children) AS mean_children,
       avg(n_tokens) AS mean_tokens, first(text ORDER BY n_children DESC, id) AS first
FROM raptor_nodes GROUP BY layer ORDER BY layer DESC
"""


def build_raptor(settings: Settings) -> list[dg.AssetsDefinition]:
    """Return the asset of the tree where the settings ask for it."""
    return [raptor_tree] if settings.hierarchies.raptor else []


@dg.asset(
    key=RAPTOR_TREE,
    deps=[CHUNK_VECTORS],
    group_name="hierarchies",
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("raptor_nodes"),
    check_specs=[
        dg.AssetCheckSpec(
            GROUNDED,
            asset=RAPTOR_TREE,
            blocking=True,
            description="Each is made of chunks, or of summaries of the layer below.",
        ),
        dg.AssetCheckSpec(
            MADE_OF,
            asset=RAPTOR_TREE,
            blocking=True,
            description="Each is made of two or more.",
        ),
    ],
)
def raptor_tree(index: IndexResource) -> dg.MaterializeResult:
    """Summaries of like chunks, of like summaries, and so on (RAPTOR)."""
    with stage("raptor_tree") as clock, index.spending() as spent:
        done = update_tree(index.store, index.home, index.settings)
    with index.get_connection() as con:
        ungrounded = invariants.violations(con, invariants.RAPTOR_LEADS_TO_CHUNKS)
        empty = invariants.violations(con, invariants.RAPTOR_NODES_HAVE_CHILDREN)
        told = {
            **facts(con, _FACTS),
            **column_schema(con, "raptor_nodes"),
            "layers_from_the_top": markdown_table(con, _LAYERS),
        }
    return dg.MaterializeResult(
        metadata={
            **told,
            "summarised": done.summarised,
            "reused": done.reused,
            "failed": done.failed,
            "layers_clustered_anew": done.refitted,
            "seconds": clock.seconds,
            **spent.metadata,
        },
        check_results=[
            check(RAPTOR_TREE, GROUNDED, ungrounded, "parts of summaries are not there"),
            check(RAPTOR_TREE, MADE_OF, empty, "summaries lack parts"),
        ],
    )
