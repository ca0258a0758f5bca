"""Embeddings: a LanceDB table with vectors and full text for each searchable table."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from graphrag_pipeline.assets.common import (
    OWNERS,
    VECTORS_POOL,
    check,
    stage,
)
from graphrag_pipeline.assets.inputs import embedding_key, input_keys
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import vector_tables
from graphrag_pipeline.structures.structure import VectorTable
from graphrag_pipeline.structures.vector_tables import update_vectors

GROUP = "embeddings"
PRESENT = "every_row_has_a_vector"
FINITE = "vectors_are_numbers"


def build_embeddings(settings: Settings) -> list[dg.AssetsDefinition]:
    """Return one asset per vector table that the settings ask for."""
    tables = vector_tables(settings)
    return [_embedding_asset(table, settings, tables) for table in tables]


def embedding_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of all assets of :func:`build_embeddings`."""
    return [embedding_key(table.name) for table in vector_tables(settings)]


def _embedding_asset(
    table: VectorTable, settings: Settings, tables: Sequence[VectorTable]
) -> dg.AssetsDefinition:
    key = embedding_key(table.name)

    @dg.asset(
        key=key,
        deps=input_keys(settings, table.made_from),
        description=table.about,
        group_name=GROUP,
        kinds={"python", "lancedb"},
        owners=OWNERS,
        pool=VECTORS_POOL,
        metadata={"dagster/table_name": f"vectors.{table.name}", "dagster/storage_kind": "lancedb"},
        check_specs=[
            dg.AssetCheckSpec(PRESENT, asset=key, blocking=True, description="None is missing."),
            dg.AssetCheckSpec(FINITE, asset=key, blocking=True, description="No NaN, no infinity."),
        ],
    )
    def embeddings(index: IndexResource) -> dg.MaterializeResult:
        with (
            stage("embeddings", tables.index(table), len(tables)) as clock,
            index.spending() as spent,
        ):
            changes = update_vectors(index.workspace, table)
        with index.get_connection() as con:
            broken = invariants.vector_violations(con, index.workspace.vectors, table)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": changes.reused + changes.embedded,
                "embedded": changes.embedded,
                "reused": changes.reused,
                "removed": changes.removed,
                "embedder": configured_embedder(index.settings).name,
                "lancedb_version": changes.version,
                "size_mb": _size_mb(index.workspace, table),
                "seconds": clock.seconds,
                **spent.metadata,
            },
            check_results=[
                check(key, PRESENT, broken["missing"], "rows have no vector"),
                check(key, FINITE, broken["not_finite"], "vectors hold what is no number"),
            ],
        )

    return embeddings


def _size_mb(workspace: Workspace, table: VectorTable) -> float:
    folder = workspace.paths.vectors / f"{table.name}.lance"
    return round(sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6, 3)
