"""Refreshes when there is something new: after each batch that is done, and by a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.core.errors import BusyError, GraphRAGError
from graphrag_pipeline.releases.publishing import refresh_needed
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors.consent import Consent
from graphrag_pipeline.sensors.runs import Status, concerns, why_wait

_SECONDS = 5


def build_refresh_sensor(
    job: Any,
    after: str,
    assets: Sequence[dg.AssetKey],
    index: IndexResource,
    names: Names,
    status: Status,
) -> dg.SensorDefinition:
    """Return the sensor that asks for a refresh as soon as a batch is done.

    ``after`` is the job of batches, ``assets`` their assets. While a refresh is waiting or under
    way it asks for none; the schedule sees to what comes to an end meanwhile.
    """
    consent = Consent(index)

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name=names.name("batch_done_sensor"),
        request_job=job,
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus[status],
        description="Refreshes and publishes as soon as a batch is done.",
    )
    def batch_done_sensor(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        if not concerns(context.dagster_run, after, assets):
            return dg.SkipReason(f"run {context.dagster_run.run_id} did not belong to a batch")
        request = _refresh(context, job.name, index, consent)
        if isinstance(request, dg.SkipReason):
            return request
        return dg.RunRequest(run_key=context.dagster_run.run_id)

    return batch_done_sensor


def build_refresh_schedule(
    job: Any, index: IndexResource, names: Names, status: Status
) -> dg.ScheduleDefinition:
    """Return the schedule of the unpartitioned stages; it skips when nothing is new."""
    consent = Consent(index)

    @dg.schedule(
        name=names.name("refresh_schedule"),
        job=job,
        cron_schedule=index.settings.schedule.refresh_cron,
        default_status=dg.DefaultScheduleStatus[status],
        description="Graph, communities, reports, embeddings and a new release, when needed.",
    )
    def refresh_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return _refresh(context, job.name, index, consent)

    return refresh_schedule


def _refresh(
    context: dg.RunStatusSensorContext | dg.ScheduleEvaluationContext,
    job_name: str,
    index: IndexResource,
    consent: Consent,
) -> dg.RunRequest | dg.SkipReason:
    """Ask for a refresh if there is something new, none is on its way, and it may be paid for."""
    if reason := why_wait(context.instance, job_name):
        return reason
    try:
        needed = refresh_needed(index.workspace)
    except BusyError as error:
        return dg.SkipReason(str(error))
    except GraphRAGError as error:
        raise dg.Failure(str(error)) from None
    if not needed:
        return dg.SkipReason("the published index is up to date")
    why = consent.why_index_waits(job_name, (), context.log)
    return dg.SkipReason(why) if why else dg.RunRequest()
