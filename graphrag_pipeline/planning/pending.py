"""Whether an index run has anything to do, told without starting one."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline.evaluation.index_metrics import known_metrics
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.ingest.stages import pending_batches
from graphrag_pipeline.releases.kept import published_release
from graphrag_pipeline.releases.publishing import refresh_needed
from graphrag_pipeline.store.spending import uses_model
from graphrag_pipeline.store.workspace import Workspace


def nothing_to_do(workspace: Workspace, folder: Path) -> bool:
    """Whether a run on this folder would leave the index and its release as they are.

    Where a model takes part the answer is no: a run asks again for what it failed to give. Raises
    InputError if the folder cannot be read, ConfigError for an ``aliases.csv`` that cannot be used.
    """
    settings = workspace.settings
    if uses_model(settings) or not workspace.exists:
        return False
    if workspace.batches.look(folder, max_bytes=int(settings.input.max_file_mb * 1e6)).changes:
        return False
    with workspace.store.session():
        if pending_batches(workspace) or refresh_needed(workspace):
            return False
    return _is_measured(workspace)


def _is_measured(workspace: Workspace) -> bool:
    """Whether the last stage of a run, which measures what is published, was done."""
    release = published_release(workspace.home)
    if release is None or not workspace.paths.evaluation.is_file():
        return False
    return bool(known_metrics(EvaluationStore(workspace.home), release))
