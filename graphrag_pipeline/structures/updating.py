"""All vectors and structures brought up to date, each after what it is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import update_step, vector_tables, wanted_structures
from graphrag_pipeline.structures.structure import Outcome, Step, Structure, VectorTable
from graphrag_pipeline.structures.vector_tables import VectorChanges, update_vectors

Told = Callable[[str, int, int], None]
"""Hears what is updated next, and how many of how many are done."""


@dataclass(frozen=True)
class StructureStage:
    """A vector table or a structure's table, and how it is brought up to date."""

    name: str
    update: Callable[[Workspace], VectorChanges | Outcome]
    of: VectorTable | tuple[Structure, Step]


def update_structures(
    workspace: Workspace, tell: Told | None = None
) -> dict[str, VectorChanges | Outcome]:
    """Bring all vector tables and structures that the settings ask for up to date.

    Returns what was done by name: of vector tables ``vectors of TABLE``, of structures the table.
    """
    stages = list(stages_of(workspace.settings))
    changes: dict[str, VectorChanges | Outcome] = {}
    for number, stage in enumerate(stages):
        if tell is not None:
            tell(stage.name, number, len(stages))
        changes[stage.name] = stage.update(workspace)
    return changes


def stages_of(settings: Settings) -> Iterator[StructureStage]:
    """Yield the vector tables and the structures' tables, each after those it is made from.

    Raises ConfigError where some wait for each other.
    """
    structures = wanted_structures(settings)
    steps = {step.table: (structure, step) for structure in structures for step in structure.steps}
    tables = {table.name: table for table in vector_tables(settings)}
    while steps or tables:
        ready = [t for t in tables.values() if not steps.keys() & set(t.made_from)]
        for table in ready:
            yield _embedding(tables.pop(table.name))
        possible = [t for t, (_, s) in steps.items() if not _awaited(s, list(steps), list(tables))]
        for name in possible[:1]:
            yield _step(*steps.pop(name))
        if not ready and not possible:
            names = ", ".join([*steps, *(f"vectors of {name}" for name in tables)])
            raise ConfigError(f"structures wait for each other: {names}")


def _awaited(step: Step, tables: Sequence[str], vectors: Sequence[str]) -> bool:
    other_tables = {table for table in tables if table != step.table}
    return bool(other_tables & set(step.made_from) or set(vectors) & set(step.vectors))


def _embedding(table: VectorTable) -> StructureStage:
    return StructureStage(
        f"vectors of {table.name}", lambda workspace: update_vectors(workspace, table), table
    )


def _step(structure: Structure, step: Step) -> StructureStage:
    return StructureStage(
        step.table,
        lambda workspace: update_step(workspace, structure, step),
        (structure, step),
    )
