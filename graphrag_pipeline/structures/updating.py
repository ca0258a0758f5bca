"""Order of vector tables and structures, each after what it is made from; a table embedded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.spreading import spread
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.store.vector_store import VectorChanges
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import vector_tables, wanted_structures
from graphrag_pipeline.structures.structure import Step, Structure, VectorTable
from graphrag_pipeline.structures.vector_tables import update_vectors

EMBEDDINGS = "embedding"
"""The kind of work that others may stand in for."""


def in_order(settings: Settings) -> Iterator[VectorTable | tuple[Structure, Step]]:
    """Yield the vector tables and the structures' tables, each after those it is made from.

    Raises ConfigError where some wait for each other.
    """
    structures = wanted_structures(settings)
    steps = {step.table: (structure, step) for structure in structures for step in structure.steps}
    tables = {table.name: table for table in vector_tables(settings)}
    while steps or tables:
        ready = [t for t in tables.values() if not steps.keys() & set(t.made_from)]
        for table in ready:
            yield tables.pop(table.name)
        possible = [t for t, (_, s) in steps.items() if not _awaited(s, list(steps), list(tables))]
        for name in possible[:1]:
            yield steps.pop(name)
        if not ready and not possible:
            names = ", ".join([*steps, *(f"vectors of {name}" for name in tables)])
            raise ConfigError(f"structures wait for each other: {names}")


def _awaited(step: Step, tables: Sequence[str], vectors: Sequence[str]) -> bool:
    other_tables = {table for table in tables if table != step.table}
    return bool(other_tables & set(step.made_from) or set(vectors) & set(step.vectors))


def embed_table(workspace: Workspace, table: VectorTable) -> VectorChanges:
    """Bring a vector table of an index up to date; see :func:`update_vectors`."""
    embedder = spread(EMBEDDINGS, configured_embedder(workspace.settings))
    return update_vectors(workspace.store, workspace.vectors, embedder, table)
