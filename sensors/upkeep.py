"""The schedule of the check of everything that an index keeps."""

from __future__ import annotations

from typing import Any

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.releases.kept import published_release
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.resources.liveness import end_dead_runs
from graphrag_pipeline.sensors.runs import unfinished_runs


def build_check_schedule(job: Any, index: IndexResource, names: Names) -> dg.ScheduleDefinition:
    """Return the schedule of the nightly check; it skips while nothing is published."""

    @dg.schedule(
        name=names.name("check_schedule"),
        job=job,
        cron_schedule=index.settings.schedule.check_cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Verifies index, vectors, releases, manifests and answers against each other.",
    )
    def check_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        end_dead_runs(context.instance)
        under_way = unfinished_runs(context.instance, job.name)
        if under_way:
            return dg.SkipReason(f"run {under_way[0].run_id} is still under way")
        if published_release(index.home) is None:
            return dg.SkipReason("nothing is published yet")
        return dg.RunRequest()

    return check_schedule
