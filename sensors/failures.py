"""Word of failed runs: what failed, and what to do; and of the first that succeeds again."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.core.notices import MODEL, Notifier
from graphrag_pipeline.marts.build import MARTS_JOB
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.resources.index import OUTAGE
from graphrag_pipeline.sensors.addresses import FETCH_JOB
from graphrag_pipeline.sensors.runs import BATCH, COMMAND, Status, concerns


def build_run_sensors(
    jobs: Sequence[str],
    assets: Sequence[dg.AssetKey],
    index: IndexResource,
    names: Names,
    status: Status,
) -> list[dg.SensorDefinition]:
    """Return the sensors that tell how runs of these jobs, and of these assets, ended.

    The hooks in the settings are told of a failure once, and once more when it is mended: an outage
    of the model counts as one failure, however many runs it ends.
    """
    notifier = Notifier(index.settings)

    @dg.run_failure_sensor(
        name=names.name("run_failure_sensor"),
        default_status=dg.DefaultSensorStatus[status],
        description="Reports each failed run, with advice.",
    )
    def run_failure_sensor(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        if not any(concerns(run, job, assets) for job in jobs):
            return
        batch = run.tags.get(BATCH)
        why = "; ".join(_reasons(context)) or context.failure_event.message or ""
        is_marts = run.job_name == names.name(MARTS_JOB)
        is_fetch = run.job_name == names.name(FETCH_JOB)
        text = f"{why.rstrip('.')}. {_advice(batch, is_marts=is_marts, is_fetch=is_fetch)}"
        context.log.error(f"{_subject(run)} failed: {text}")
        if COMMAND not in run.tags:
            notifier.failed(MODEL if OUTAGE in run.tags else _subject(run), text)

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name=names.name("run_success_sensor"),
        default_status=dg.DefaultSensorStatus[status],
        description="Reports when a run that had failed succeeds again.",
    )
    def run_success_sensor(context: dg.RunStatusSensorContext) -> None:
        run = context.dagster_run
        if any(concerns(run, job, assets) for job in jobs):
            notifier.mended(MODEL)
            notifier.mended(_subject(run))

    return [run_failure_sensor, run_success_sensor]


def _subject(run: dg.DagsterRun) -> str:
    batch = run.tags.get(BATCH)
    return f"batch {batch}" if batch else f"job {run.job_name}"


def _reasons(context: dg.RunFailureSensorContext) -> list[str]:
    """Return the failing steps with their messages."""
    reasons = []
    for event in context.get_step_failure_events():
        failure = event.step_failure_data
        if failure.user_failure_data and failure.user_failure_data.description:
            reasons.append(f"{event.step_key}: {failure.user_failure_data.description}")
        elif failure.error:
            reasons.append(f"{event.step_key}: {failure.error.message.strip().splitlines()[0]}")
    return reasons


def _advice(batch: str | None, *, is_marts: bool, is_fetch: bool) -> str:
    if is_fetch:
        return "The addresses sensor tries it again at its next turn; pages fetched before stay."
    if is_marts:
        return "The marts sensor tries it again, up to three times; the last marts stay."
    again = (
        "The inbox sensor tries it again, up to three times; if the model is out of reach, until "
        "it answers"
        if batch
        else "The refresh schedule tries it again"
    )
    return (
        f"{again}; what was finished is kept and not paid again. The last published release "
        "stays as it is. Open the run in the UI for the failing step and its message."
    )
