"""Pending work: has an index run anything to do? Answered without starting one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.descriptions import descriptions_to_merge
from graphrag_pipeline.graph.resolution.resolving import undecided_pairs
from graphrag_pipeline.ingest.stages import IMPORTED, batch_versions
from graphrag_pipeline.planning.rereading import reasons_by_batch
from graphrag_pipeline.releases.kept_releases import published_release
from graphrag_pipeline.releases.measuring import MEASURES
from graphrag_pipeline.releases.publishing import reasons_to_refresh, refresh_needed
from graphrag_pipeline.store.batches import Look
from graphrag_pipeline.store.sources import SourceChange
from graphrag_pipeline.store.spending import uses_model
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import wanted_structures

_EXTRACTED = """
SELECT batch, version FROM batch_stages
WHERE stage = 'extractions' AND batch IN (SELECT unnest(?))
"""
_EXTRACTOR = "the settings, prompts or model of the extraction have changed"
_FAILED = "the extraction of some chunks had failed"


@dataclass(frozen=True)
class Due:
    """Work of a run although no file has changed: the batches it makes ``again``, and why."""

    again: Collection[str]
    because: Sequence[str]


def pending_batches(workspace: Workspace, *, most_attempts: int | None = None) -> list[str]:
    """Return the keys of batches that some stage has not done under the settings of now.

    A batch with chunks that failed is one of them: without ``most_attempts`` however often it was
    tried, as when a person asks for a run.
    """
    version_of = batch_versions(workspace.settings)
    with workspace.store.read() as con:
        rows = con.execute(
            "SELECT batch, version FROM batch_stages WHERE stage = 'extractions'"
        ).fetchall()
        failures = con.execute(
            """SELECT DISTINCT batch FROM extractions
               WHERE status <> 'ok' AND ($most IS NULL OR attempts < $most)""",
            {"most": most_attempts},
        ).fetchall()
    made_by, failed = dict(rows), {key for (key,) in failures}
    return [
        key
        for key, endings in workspace.batches.endings().items()
        if key in failed or made_by.get(key) not in (version_of(endings)["extractions"], IMPORTED)
    ]


def due_besides(workspace: Workspace) -> Due:
    """Return what a run would do besides taking in files. Call it before the run.

    Nothing is known of that while another run is at work, which may hold the tables for long.
    """
    if not workspace.exists or workspace.is_busy:
        return Due((), ())
    pending = pending_batches(workspace)
    with workspace.store.read() as con:
        extracted = dict(con.execute(_EXTRACTED, [pending]).fetchall())
        of_reading = reasons_by_batch(con, workspace.settings, workspace.batches, list(extracted))
    version_of, endings = batch_versions(workspace.settings), workspace.batches.endings()
    because = [reason for reasons in of_reading.values() for reason in reasons]
    for batch in sorted(extracted.keys() - of_reading.keys()):
        is_old = extracted[batch] != version_of(endings[batch])["extractions"]
        because.append(_EXTRACTOR if is_old else _FAILED)
    if not pending:
        because = reasons_to_refresh(workspace)
    return Due(extracted.keys(), list(dict.fromkeys(because)))


def look_at(workspace: Workspace, folder: Path) -> Look:
    """Return what a run would find changed in a folder.

    What the folder leaves out is written down for `status`, where there is an index. Raises
    InputError if the folder cannot be read.
    """
    largest = workspace.settings.input.max_file_bytes
    return workspace.batches.look(folder, max_bytes=largest, remember=workspace.exists)


def nothing_to_do(workspace: Workspace, changes: Sequence[SourceChange]) -> bool:
    """Whether a run that finds these changes in a folder would leave index and release as they are.

    Where a model takes part the answer is no if it failed to give something, for a run asks for
    that again; and if a structure is asked for that may have such a gap. Raises ConfigError for an
    ``aliases.csv`` that cannot be used.
    """
    return not changes and nothing_pending(workspace)


def nothing_pending(workspace: Workspace) -> bool:
    """Whether a run that looks at no folder would leave the index and its release as they are."""
    return nothing_to_refresh(workspace) and _is_measured(workspace)


def nothing_to_refresh(workspace: Workspace) -> bool:
    """Whether all stages of a run that looks at no folder, up to publishing, would do nothing."""
    settings = workspace.settings
    if not _can_tell(workspace):
        return False
    with workspace.store.session():
        if pending_batches(workspace) or refresh_needed(workspace):
            return False
        with workspace.store.read() as con:
            return not (uses_model(settings) and _is_owed(con, settings))


def _can_tell(workspace: Workspace) -> bool:
    """Whether there is an index, and no model is asked for a structure with stages of its own."""
    has_steps = any(structure.steps for structure in wanted_structures(workspace.settings))
    return workspace.exists and not (has_steps and uses_model(workspace.settings))


def _is_owed(con: duckdb.DuckDBPyConnection, settings: Settings) -> bool:
    """Whether the model gave no answer to something that a run would ask again.

    Chunks are not looked at: a batch of which some failed is pending.
    """
    [(n_reports,)] = con.execute("SELECT count(*) FROM hierarchy_failures").fetchall()
    if n_reports or undecided_pairs(con):
        return True
    graph = settings.graph
    return graph.summaries == "llm" and bool(
        descriptions_to_merge(con, graph.max_description_tokens)
    )


def _is_measured(workspace: Workspace) -> bool:
    """Whether the last stages of a run, which measure what is published, were done."""
    release = published_release(workspace.home)
    measures = MEASURES.usable().values()
    return release is not None and all(each.is_made(workspace, release) for each in measures)
