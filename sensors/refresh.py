"""The refresh schedule: rebuilds what depends on all batches, when there is something new."""

from __future__ import annotations

from typing import Any

import dagster as dg

from graphrag_pipeline.core.errors import BusyError, GraphRAGError
from graphrag_pipeline.releases.publishing import refresh_needed
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.resources.liveness import end_dead_runs
from graphrag_pipeline.sensors.runs import unfinished_runs


def build_refresh_schedule(job: Any, index: IndexResource) -> dg.ScheduleDefinition:
    """Return the schedule of the unpartitioned stages; it skips when nothing is new."""

    @dg.schedule(
        name="refresh_schedule",
        job=job,
        cron_schedule=index.settings.schedule.refresh_cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Graph, communities, reports, embeddings and a new release, when needed.",
    )
    def refresh_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        end_dead_runs(context.instance)
        under_way = unfinished_runs(context.instance, job.name)
        if under_way:
            return dg.SkipReason(f"run {under_way[0].run_id} is still under way")
        try:
            needed = refresh_needed(index.workspace)
        except BusyError as error:
            return dg.SkipReason(str(error))
        except GraphRAGError as error:
            raise dg.Failure(str(error)) from error
        return dg.RunRequest() if needed else dg.SkipReason("the published index is up to date")

    return refresh_schedule
