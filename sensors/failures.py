"""Word of failed runs: what failed, and what to do."""

from __future__ import annotations

import dagster as dg


@dg.run_failure_sensor(
    name="run_failure_sensor",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Logs each failed run with what to do about it.",
)
def run_failure_sensor(context: dg.RunFailureSensorContext) -> None:
    """Log what failed and what to do; the last release stays published meanwhile."""
    run = context.dagster_run
    batch = run.tags.get("dagster/partition")
    what = f"batch {batch}" if batch else f"job {run.job_name}"
    context.log.error(f"{what} failed: {context.failure_event.message}. {_advice(batch)}")


def _advice(batch: str | None) -> str:
    again = (
        "The inbox sensor asks for it again, up to three times"
        if batch
        else "The refresh schedule asks for it again"
    )
    return (
        f"{again}; what was finished is kept and not paid again. The last published release "
        "stays as it is. Open the run in the UI for the failing step and its message."
    )
