"""Questions of sensors and schedules about Dagster's runs, and the tags of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import dagster as dg

from graphrag_pipeline.core.rows import one_line, shortened
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.releases.kept_releases import published_release
from graphrag_pipeline.resources.index import BATCH
from graphrag_pipeline.resources.liveness import end_dead_runs
from graphrag_pipeline.store.batches import Batch

Status = Literal["RUNNING", "STOPPED"]
"""Whether a sensor or schedule begins switched on; in the UI it is switched on and off."""
FIRST_BATCH = "dagster/asset_partition_range_start"
LAST_BATCH = "dagster/asset_partition_range_end"
VERSION = "graphrag/version"
FILES = "graphrag/files"
COMMAND = "graphrag/command"
"""Run tag: the command that started the run, and that tells of its failure itself."""
_MOST_FILES = 5
_LONGEST_NAME = 40
_LONGEST = 160
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def unfinished_runs(
    instance: dg.DagsterInstance, job_name: str | None = None
) -> list[dg.DagsterRun]:
    """Return the runs that are waiting or under way, of one job or of all."""
    return list(instance.get_runs(dg.RunsFilter(job_name=job_name, statuses=_UNFINISHED)))


def why_wait(instance: dg.DagsterInstance, job_name: str) -> dg.SkipReason | None:
    """Return why a job is not to be run now: a run of it is under way. Dead ones are ended."""
    end_dead_runs(instance)
    under_way = unfinished_runs(instance, job_name)
    return dg.SkipReason(f"run {under_way[0].run_id} is still under way") if under_way else None


def run_of_release(
    instance: dg.DagsterInstance, job_name: str, home: Path
) -> dg.RunRequest | dg.SkipReason:
    """Ask for a run of a job on the published release, unless one is under way or none is there."""
    if reason := why_wait(instance, job_name):
        return reason
    if published_release(home) is None:
        return dg.SkipReason("nothing is published yet")
    return dg.RunRequest()


def is_about(run: dg.DagsterRun, batch: str) -> bool:
    """Whether a run is for a batch, alone or within a range (the command line's runs)."""
    tags = run.tags
    return tags.get(BATCH) == batch or (
        FIRST_BATCH in tags and tags[FIRST_BATCH] <= batch <= tags[LAST_BATCH]
    )


def concerns(run: dg.DagsterRun, job_name: str, assets: Sequence[dg.AssetKey]) -> bool:
    """Whether a run is one of a job, or of assets picked by hand that are all among these."""
    return run.job_name == job_name or bool(
        run.asset_selection and run.asset_selection <= set(assets)
    )


def files_of(batches: Sequence[Batch]) -> dict[str, str]:
    """Return the tag that says which files batches hold, such as ``3 files: a.pdf, b.md, c.txt``.

    Names of files come from anywhere: they are cut, and stand on one line.
    """
    changes = [change for batch in batches for change in batch.changes]
    names = [_name(change.uri) for change in changes[:_MOST_FILES]]
    more = ", …" if len(changes) > _MOST_FILES else ""
    n_removed = sum(change.action == "remove" for change in changes)
    text = counted(len(changes), "file")
    text += f" ({n_removed} removed)" if n_removed else ""
    return {FILES: shortened(f"{text}: {', '.join(names)}{more}", _LONGEST)} if changes else {}


def _name(uri: str) -> str:
    name = "".join(char if char.isprintable() else " " for char in uri.rsplit("/", 1)[-1])
    return shortened(one_line(name), _LONGEST_NAME)
