"""Word of failed runs: what failed, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.marts.build import MARTS_JOB
from graphrag_pipeline.sensors.runs import BATCH, concerns


def build_failure_sensor(
    jobs: Sequence[str], assets: Sequence[dg.AssetKey], names: Names
) -> dg.SensorDefinition:
    """Return the sensor that tells of failed runs of these jobs, and of these assets."""

    @dg.run_failure_sensor(
        name=names.name("run_failure_sensor"),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Logs each failed run with what to do about it.",
    )
    def run_failure_sensor(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        if not any(concerns(run, job, assets) for job in jobs):
            return
        batch = run.tags.get(BATCH)
        subject = f"batch {batch}" if batch else f"job {run.job_name}"
        why = "; ".join(_reasons(context)) or context.failure_event.message
        is_marts = run.job_name == names.name(MARTS_JOB)
        context.log.error(f"{subject} failed: {why}. {_advice(batch, is_marts=is_marts)}")

    return run_failure_sensor


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


def _advice(batch: str | None, *, is_marts: bool) -> str:
    if is_marts:
        return "The marts sensor asks for it again, up to three times; the last marts stay."
    again = (
        "The inbox sensor asks for it again: up to three times, or, where the model is out of "
        "reach, until it answers"
        if batch
        else "The refresh schedule asks for it again"
    )
    return (
        f"{again}; what was finished is kept and not paid again. The last published release "
        "stays as it is. Open the run in the UI for the failing step and its message."
    )
