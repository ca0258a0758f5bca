"""The refresh schedule: rebuilds what depends on all batches, when there is something new."""

from __future__ import annotations

from typing import Any

import dagster as dg

from graphrag_pipeline.config import ScheduleSettings
from graphrag_pipeline.errors import BusyError
from graphrag_pipeline.publishing import refresh_needed
from resources import IndexResource
from sensors.inbox import UNFINISHED


def build_refresh_schedule(job: Any, settings: ScheduleSettings) -> dg.ScheduleDefinition:
    """Return the schedule of the unpartitioned stages; it skips when nothing is new."""

    @dg.schedule(
        name="refresh_schedule",
        job=job,
        cron_schedule=settings.refresh_cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Graph, communities, reports, embeddings and a new release, when needed.",
    )
    def refresh_schedule(
        context: dg.ScheduleEvaluationContext, index: IndexResource
    ) -> dg.RunRequest | dg.SkipReason:
        under_way = context.instance.get_runs(
            dg.RunsFilter(job_name=job.name, statuses=UNFINISHED), limit=1
        )
        if under_way:
            return dg.SkipReason(f"run {under_way[0].run_id} is still under way")
        try:
            needed = refresh_needed(index.store, index.home, index.settings)
        except BusyError as error:
            return dg.SkipReason(str(error))
        if not needed:
            return dg.SkipReason("the published index is up to date")
        return dg.RunRequest()

    return refresh_schedule
