"""The schedule of the check of everything that an index keeps."""

from __future__ import annotations

from typing import Any

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors.runs import Status, run_of_release


def build_check_schedule(
    job: Any, index: IndexResource, names: Names, status: Status
) -> dg.ScheduleDefinition:
    """Return the schedule of the nightly check; it skips while nothing is published."""

    @dg.schedule(
        name=names.name("check_schedule"),
        job=job,
        cron_schedule=index.settings.schedule.check_cron,
        default_status=dg.DefaultScheduleStatus[status],
        description="Verifies index, vectors, releases, manifests and answers against each other.",
    )
    def check_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return run_of_release(context.instance, job.name, index.home)

    return check_schedule
