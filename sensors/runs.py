"""What sensors and schedules ask of Dagster's runs."""

from __future__ import annotations

import dagster as dg

BATCH = "dagster/partition"
FIRST_BATCH = "dagster/asset_partition_range_start"
LAST_BATCH = "dagster/asset_partition_range_end"
VERSION = "graphrag/version"
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


def is_about(run: dg.DagsterRun, batch: str) -> bool:
    """Whether a run is for a batch, alone or within a range (the command line's runs)."""
    tags = run.tags
    return tags.get(BATCH) == batch or (
        FIRST_BATCH in tags and tags[FIRST_BATCH] <= batch <= tags[LAST_BATCH]
    )
