"""The addresses sensor: asks for the run that fetches the pages of the settings."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors.runs import Status, why_wait

FETCH_JOB = "fetch_addresses"


def build_addresses_sensor(
    job: Any, index: IndexResource, names: Names, status: Status
) -> dg.SensorDefinition:
    """Return the sensor that asks for a fetch: at first, on other addresses, and ever so often.

    A fetch takes longer than a sensor may, so it is a run; while one is under way none is asked
    for. What came of it is found by the inbox sensor.
    """
    options = index.settings.input
    wanted, every = fingerprint(sorted(options.urls)), 60.0 * options.urls_every_minutes

    @dg.sensor(
        name=names.name("addresses_sensor"),
        job=job,
        minimum_interval_seconds=options.poll_seconds,
        default_status=dg.DefaultSensorStatus[status],
        description=f"Fetches {counted(len(options.urls), 'address', 'addresses')} of the web "
        f"every {options.urls_every_minutes:g} minutes.",
    )
    def addresses_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if waits := why_wait(context.instance, job.name):
            return waits
        fetched, _, asked_at = (context.cursor or "").partition(" ")
        now, due = time.time(), float(asked_at or 0) + every
        if fetched == wanted and now < due:
            return dg.SkipReason(f"fetched again at {datetime.fromtimestamp(due, UTC):%H:%M} UTC")
        request = dg.RunRequest(run_key=f"{wanted}:{now:.0f}")
        return dg.SensorResult(run_requests=[request], cursor=f"{wanted} {now:.0f}")

    return addresses_sensor
