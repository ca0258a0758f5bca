"""Embeddings: a LanceDB table with vectors and full text for each searchable table."""

from __future__ import annotations

import time
from collections.abc import Sequence

import dagster as dg

from assets.common import OWNERS, VECTORS_POOL, check
from assets.graph import ENTITIES, RELATIONSHIPS
from assets.reports import report_key
from graphrag_pipeline import invariants, progress
from graphrag_pipeline.config import EmbeddingSettings, fingerprint
from graphrag_pipeline.vector_index import TABLES, VECTORS_FOLDER, update_vectors
from resources import IndexResource

GROUP = "embeddings"


def embedding_key(table: str) -> dg.AssetKey:
    """Return the key of a vector table's asset."""
    return dg.AssetKey(["embeddings", table])


def build_embeddings(settings: EmbeddingSettings, levels: int) -> list[dg.AssetsDefinition]:
    """Return one asset per vector table."""
    # A chunk's vector waits for the graph: taking in a batch is what makes its chunks current.
    deps: dict[str, Sequence[dg.AssetKey]] = {
        "chunks": [dg.AssetKey("chunks"), ENTITIES],
        "entities": [ENTITIES],
        "relationships": [RELATIONSHIPS],
        "community_reports": [report_key(level) for level in range(levels)],
    }
    version = fingerprint("embeddings", settings)
    return [_embedding_asset(table, deps[table], version) for table in TABLES]


def _embedding_asset(
    table: str, deps: Sequence[dg.AssetKey], version: str
) -> dg.AssetsDefinition:
    key = embedding_key(table)

    @dg.asset(
        key=key,
        deps=deps,
        description=f"Vectors and full text of {table.replace('_', ' ')}, in LanceDB.",
        group_name=GROUP,
        kinds={"python", "lancedb"},
        owners=OWNERS,
        pool=VECTORS_POOL,
        code_version=version,
        metadata={"dagster/table_name": f"vectors.{table}", "dagster/storage_kind": "lancedb"},
        check_specs=[dg.AssetCheckSpec("every_row_has_a_vector", asset=key, blocking=True)],
    )
    def embeddings(index: IndexResource) -> dg.MaterializeResult:
        started = time.perf_counter()
        progress.report("embeddings", TABLES.index(table), len(TABLES))
        done = update_vectors(index.store, index.home, index.settings.embeddings, table)
        progress.report("embeddings", TABLES.index(table) + 1, len(TABLES))
        broken = 0
        if done.embedded or done.removed:
            with index.get_connection() as con:
                found = invariants.vector_violations(con, index.home / VECTORS_FOLDER, table)
            broken = sum(found.values())
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": done.reused + done.embedded,
                "embedded": done.embedded,
                "reused": done.reused,
                "removed": done.removed,
                "lancedb_version": done.version,
                "seconds": round(time.perf_counter() - started, 3),
            },
            check_results=[
                check(key, "every_row_has_a_vector", broken, "rows without a vector of numbers")
            ],
        )

    return embeddings
