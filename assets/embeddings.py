"""Embeddings: a LanceDB table with vectors and full text for each searchable table."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.assets.common import adorned
from graphrag_pipeline.assets.inputs import embedding_key, input_keys
from graphrag_pipeline.assets.stages import AssetStage, StageOutcome, StageTable, shown
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.pipeline.stages import VectorStage
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.store.vector_store import VectorChanges
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import vector_tables
from graphrag_pipeline.structures.structure import VectorTable

GROUP = "embeddings"
VECTORS_POOL = "vectors"


def embedding_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of the assets of all vector tables that the settings ask for."""
    return [embedding_key(table.name) for table in vector_tables(settings)]


def build_embeddings(stage: VectorStage, settings: Settings) -> AssetStage:
    """Return the stage of a vector table."""
    table = stage.table

    def tell(index: IndexResource, changes: VectorChanges) -> StageOutcome:
        return StageOutcome(
            {
                "dagster/row_count": changes.reused + changes.embedded,
                "embedded": changes.embedded,
                "reused": changes.reused,
                "removed": changes.removed,
                "embedder": configured_embedder(index.settings).name,
                "lancedb_version": changes.version,
                **adorned("size_mb", lambda: {"size_mb": _size_mb(index.workspace, table)}),
            }
        )

    return shown(
        stage,
        tell,
        [
            StageTable(
                key=embedding_key(table.name),
                about=table.about,
                group=GROUP,
                made_from=input_keys(settings, table.made_from),
                kinds=frozenset({"python", "lancedb"}),
                metadata={
                    "dagster/table_name": f"vectors.{table.name}",
                    "dagster/storage_kind": "lancedb",
                },
            )
        ],
        pool=VECTORS_POOL,
    )


def _size_mb(workspace: Workspace, table: VectorTable) -> float:
    folder = workspace.paths.vectors / f"{table.name}.lance"
    return round(sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6, 3)
