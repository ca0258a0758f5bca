"""The evaluation schedule: runs the experiment that the settings name, once it is turned on."""

from __future__ import annotations

from collections.abc import Sequence
from logging import Logger
from pathlib import Path
from typing import Any

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors.consent import Consent, Work
from graphrag_pipeline.sensors.runs import run_of_release


def build_evaluation_schedule(
    job: Any, index: IndexResource, names: Names
) -> dg.ScheduleDefinition:
    """Return the schedule of the experiment; off at first, for models may be asked and paid.

    A run that may cost more than ``llm.confirm_cost`` waits for a person all the same.
    """
    consent = Consent(index)

    @dg.schedule(
        name=names.name("evaluation_schedule"),
        job=job,
        cron_schedule=index.settings.evaluation.cron,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Runs the experiment, and its check whether the watched metric has fallen.",
    )
    def evaluation_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        request = run_of_release(context.instance, job.name, index.home)
        if isinstance(request, dg.SkipReason) or not index.settings.llm.confirm_cost:
            return request
        why = _why_waits(consent, job.name, index, context.log)
        return dg.SkipReason(why) if why else request

    return evaluation_schedule


def _why_waits(consent: Consent, job: str, index: IndexResource, log: Logger) -> str | None:
    file = Path(index.settings.evaluation.experiment).expanduser()

    def plan() -> Sequence[StagePlan]:
        from graphrag_evaluation.evaluating import plan_experiment
        from graphrag_evaluation.experiment import read_experiment

        try:
            return plan_experiment(index.settings, read_experiment(file)).stages
        except GraphRAGError:
            # The run ends by the same error, before it asks anything, and its failure is told.
            return ()

    command = f"graphrag-pipeline eval run {file}"
    return consent.why_waits(Work(job=job, command=command, content=(), plan=plan), log)
