"""One run of the whole engine on one index, stage by stage, in process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.hardening.memory import told_out_of_memory
from graphrag_pipeline.core.home import make_home
from graphrag_pipeline.ingest.stages import INGESTION
from graphrag_pipeline.llm.configured import model_options
from graphrag_pipeline.pipeline.stages import PUBLISH, ingest, refresh_stages, unchanged_release
from graphrag_pipeline.planning.lost_files import require_files
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.releases.publishing import PublishedRelease
from graphrag_pipeline.store.cache_limit import keep_cache_within
from graphrag_pipeline.store.space import changes_of, check_space
from graphrag_pipeline.store.spending import ledger_position, needs_model, roles_in_use, spending
from graphrag_pipeline.store.workspace import Workspace


def run_stages(
    workspace: Workspace, only: Sequence[str] | None = None
) -> tuple[list[str], PublishedRelease]:
    """Take in the batches that are not done, refresh what depends on them, and publish.

    With ``only``, these batches are taken in and no other.

    Returns the keys of those batches, and the release that is published now. Model calls count
    against one budget and are kept in ``llm_calls``. What was finished before an error is kept,
    and the next run goes on from there. Raises CheckFailedError, and publishes nothing, where what
    must hold of the tables does not, and OutOfMemoryError where memory runs out.
    """
    began = ledger_position(workspace.settings)
    batches = pending_batches(workspace) if only is None else list(only)
    if not batches and (unchanged := unchanged_release(workspace)):
        return [], unchanged
    check_space(workspace.settings, changes_of(workspace.batches, batches))
    refresh = [(stage.label, stage.run) for stage in refresh_stages(workspace.settings)]
    stages = [*_ingestion(batches), *refresh]
    for number, (label, run) in enumerate(stages):
        progress.report(label, number, len(stages))
        with told_out_of_memory(label), spending(workspace, began):
            run(workspace)
    with told_out_of_memory(PUBLISH.label):
        release = PUBLISH.run(workspace)
    keep_cache_within(workspace.settings, began)
    return batches, release


def check_key(workspace: Workspace, folder: Path) -> None:
    """Raise ConfigError where documents wait for a model that has no key, before any is read."""
    settings = workspace.settings
    if not needs_model(settings):
        return
    try:
        for role in roles_in_use(settings):
            model_options(settings, role).connection()
    except ConfigError:
        largest = settings.input.max_file_bytes
        if (
            not workspace.exists
            or pending_batches(workspace)
            or workspace.batches.look(folder, max_bytes=largest).changes
        ):
            raise


def cut_batches(
    workspace: Workspace,
    folder: Path,
    *,
    settle_seconds: float = 0,
    remove_all: bool = False,
    as_looked: bool = False,
) -> list[str]:
    """Write down what changed in a folder, and return the keys of the new batches.

    Files changed in the last ``settle_seconds`` are left for the next time. With ``as_looked`` the
    folder is not scanned again after it was looked at. Raises RemovalError where so many documents
    are gone, or can no longer be read, that someone should look first, unless ``remove_all`` says
    that they are to go.
    """
    settings = workspace.settings
    make_home(settings)
    if not remove_all:
        require_files(workspace, folder)
    batches = workspace.batches.cut(
        folder,
        settings.batches,
        max_bytes=settings.input.max_file_bytes,
        settle_seconds=settle_seconds,
        remove_all=remove_all,
        as_looked=as_looked,
    )
    return [batch.key for batch in batches]


def _ingestion(batches: Sequence[str]) -> Iterator[tuple[str, Callable[[Workspace], object]]]:
    for stage in INGESTION:
        for key in batches:
            yield stage, lambda workspace, stage=stage, key=key: ingest(workspace, stage, key)
