"""One run of the whole engine on one index, stage by stage, in process.

Dagster's assets call the same functions in the same order; each says there what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.core import progress
from graphrag_pipeline.graph.communities import update_communities
from graphrag_pipeline.graph.descriptions import update_graph
from graphrag_pipeline.graph.resolution.resolving import resolve_entities
from graphrag_pipeline.ingest.stages import (
    ingest_chunks,
    ingest_documents,
    ingest_extractions,
    pending_batches,
)
from graphrag_pipeline.releases.publishing import Release, publish
from graphrag_pipeline.reports.levels import update_reports
from graphrag_pipeline.reports.model_writer import report_writer
from graphrag_pipeline.store.spending import ledger_position, spending
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.updating import stages_of


@dataclass(frozen=True)
class Stage:
    """A stage of the engine: what progress calls it, and what brings its tables up to date."""

    name: str
    update: Callable[[], object]


def run_stages(workspace: Workspace) -> tuple[list[str], Release]:
    """Take in the batches that are not done, refresh what depends on them, and publish.

    Returns the keys of those batches, and the release that is published now. Model calls count
    against one budget and are kept in ``llm_calls``. What was finished before an error is kept,
    and the next run goes on from there.
    """
    began = ledger_position(workspace.home)
    batches = pending_batches(workspace)
    stages = [*_ingestion(workspace, batches), *_refresh(workspace)]
    for number, stage in enumerate(stages):
        progress.report(stage.name, number, len(stages))
        with spending(workspace, began):
            stage.update()
    return batches, publish(workspace)


def cut_batches(workspace: Workspace, folder: Path, *, remove_all: bool = False) -> list[str]:
    """Write down what changed in a folder, and return the keys of the new batches.

    Raises RemovalError where so many documents are gone that someone should look first, unless
    ``remove_all`` says that they are to go.
    """
    settings = workspace.settings
    batches = workspace.batches.cut(
        folder,
        settings.batches,
        max_bytes=int(settings.input.max_file_mb * 1e6),
        remove_all=remove_all,
    )
    return [batch.key for batch in batches]


def _ingestion(workspace: Workspace, batches: list[str]) -> Iterator[Stage]:
    for key in batches:
        yield Stage("documents", lambda key=key: ingest_documents(workspace, key))
    for key in batches:
        yield Stage("chunks", lambda key=key: ingest_chunks(workspace, key))
    for key in batches:
        yield Stage("extractions", lambda key=key: ingest_extractions(workspace, key))


def _refresh(workspace: Workspace) -> Iterator[Stage]:
    store, settings = workspace.store, workspace.settings
    yield Stage("resolution", lambda: resolve_entities(workspace))
    yield Stage("graph", lambda: update_graph(workspace))
    yield Stage("communities", lambda: update_communities(store, settings.communities))
    deepest = settings.communities.levels - 1
    for level in range(deepest, -1, -1):
        yield Stage(
            "reports",
            lambda level=level: update_reports(
                store,
                settings.reports,
                level,
                and_deeper=level == deepest,
                writer=report_writer(settings),
            ),
        )
    for stage in stages_of(settings):
        yield Stage(stage.name, lambda stage=stage: stage.update(workspace))
