"""Embeddings: a LanceDB table with vectors and full text for each searchable table."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from assets.common import OWNERS, VECTORS_POOL, check, stage
from assets.graph import ENTITIES, RELATIONSHIPS
from assets.reports import report_key
from graphrag_pipeline import invariants
from graphrag_pipeline.vector_index import (
    TABLES,
    VECTORS_FOLDER,
    configured_embedder,
    update_vectors,
)
from resources import IndexResource

GROUP = "embeddings"
PRESENT = "every_row_has_a_vector"
FINITE = "vectors_are_numbers"


def embedding_key(table: str) -> dg.AssetKey:
    """Return the key of a vector table's asset."""
    return dg.AssetKey(["embeddings", table])


def build_embeddings(levels: int) -> list[dg.AssetsDefinition]:
    """Return one asset per vector table."""
    # A chunk's vector waits for the graph: taking in a batch is what makes its chunks current.
    deps: dict[str, Sequence[dg.AssetKey]] = {
        "chunks": [dg.AssetKey("chunks"), ENTITIES],
        "entities": [ENTITIES],
        "relationships": [RELATIONSHIPS],
        "community_reports": [report_key(level) for level in range(levels)],
    }
    return [_embedding_asset(table, deps[table]) for table in TABLES]


def _embedding_asset(table: str, deps: Sequence[dg.AssetKey]) -> dg.AssetsDefinition:
    key = embedding_key(table)

    @dg.asset(
        key=key,
        deps=deps,
        description=f"Vectors and full text of {table.replace('_', ' ')}, in LanceDB.",
        group_name=GROUP,
        kinds={"python", "lancedb"},
        owners=OWNERS,
        pool=VECTORS_POOL,
        metadata={"dagster/table_name": f"vectors.{table}", "dagster/storage_kind": "lancedb"},
        check_specs=[
            dg.AssetCheckSpec(PRESENT, asset=key, blocking=True, description="None is missing."),
            dg.AssetCheckSpec(FINITE, asset=key, blocking=True, description="No NaN, no infinity."),
        ],
    )
    def embeddings(index: IndexResource) -> dg.MaterializeResult:
        part = TABLES.index(table)
        with stage("embeddings", part, len(TABLES)) as clock, index.spending() as spent:
            done = update_vectors(index.store, index.home, index.settings, table)
        with index.get_connection() as con:
            broken = invariants.vector_violations(con, index.home / VECTORS_FOLDER, table)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": done.reused + done.embedded,
                "embedded": done.embedded,
                "reused": done.reused,
                "removed": done.removed,
                "embedder": configured_embedder(index.settings).name,
                "lancedb_version": done.version,
                "size_mb": _size_mb(index, table),
                "seconds": clock.seconds,
                **spent.metadata,
            },
            check_results=[
                check(key, PRESENT, broken["missing"], "rows have no vector"),
                check(key, FINITE, broken["not_finite"], "vectors hold what is no number"),
            ],
        )

    return embeddings


def _size_mb(index: IndexResource, table: str) -> float:
    folder = index.home / VECTORS_FOLDER / f"{table}.lance"
    return round(sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6, 3)
