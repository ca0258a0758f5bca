"""Embeddings: a LanceDB table with vectors and full text for each searchable table."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from graphrag_pipeline.assets.inputs import embedding_key, input_keys
from graphrag_pipeline.assets.stages import Check, Outcome, Stage, Table
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import vector_tables
from graphrag_pipeline.structures.structure import VectorTable
from graphrag_pipeline.structures.vector_tables import update_vectors

GROUP = "embeddings"
VECTORS_POOL = "vectors"
_CHECKS = (
    Check("every_row_has_a_vector", "None is missing.", "rows have no vector", counted="missing"),
    Check(
        "vectors_are_numbers",
        "No NaN, no infinity.",
        "vectors hold what is no number",
        counted="not_finite",
    ),
)


def build_embeddings(settings: Settings) -> list[Stage]:
    """Return one stage per vector table that the settings ask for."""
    tables = vector_tables(settings)
    return [_stage(table, settings, tables) for table in tables]


def embedding_keys(settings: Settings) -> list[dg.AssetKey]:
    """Return the keys of all assets of :func:`build_embeddings`."""
    return [embedding_key(table.name) for table in vector_tables(settings)]


def _stage(table: VectorTable, settings: Settings, tables: Sequence[VectorTable]) -> Stage:
    def embed(index: IndexResource) -> Outcome:
        changes = update_vectors(index.workspace, table)
        with index.get_connection() as con:
            violations = invariants.vector_violations(con, index.workspace.vectors, table)
        return Outcome(
            {
                "dagster/row_count": changes.reused + changes.embedded,
                "embedded": changes.embedded,
                "reused": changes.reused,
                "removed": changes.removed,
                "embedder": configured_embedder(index.settings).name,
                "lancedb_version": changes.version,
                "size_mb": _size_mb(index.workspace, table),
            },
            counts=violations,
        )

    key = embedding_key(table.name)
    return Stage(
        name=key.path[-1],
        label="embeddings",
        part=tables.index(table),
        parts=len(tables),
        pool=VECTORS_POOL,
        work=embed,
        tables=[
            Table(
                key=key,
                about=table.about,
                group=GROUP,
                made_from=input_keys(settings, table.made_from),
                kinds=frozenset({"python", "lancedb"}),
                metadata={
                    "dagster/table_name": f"vectors.{table.name}",
                    "dagster/storage_kind": "lancedb",
                },
                checks=_CHECKS,
            )
        ],
    )


def _size_mb(workspace: Workspace, table: VectorTable) -> float:
    folder = workspace.paths.vectors / f"{table.name}.lance"
    return round(sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6, 3)
