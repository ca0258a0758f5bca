"""The evaluation schedule: runs the experiment that the settings name, once it is turned on."""

from __future__ import annotations

from typing import Any

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors.runs import run_of_release


def build_evaluation_schedule(
    job: Any, index: IndexResource, names: Names
) -> dg.ScheduleDefinition:
    """Return the schedule of the experiment; off at first, for models may be asked and paid."""

    @dg.schedule(
        name=names.name("evaluation_schedule"),
        job=job,
        cron_schedule=index.settings.evaluation.cron,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Runs the experiment, and its check whether the watched metric has fallen.",
    )
    def evaluation_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return run_of_release(context.instance, job.name, index.home)

    return evaluation_schedule
