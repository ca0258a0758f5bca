"""The marts sensor: builds the marts of each new release and each experiment that is done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.marts.build import (
    MARTS_JOB,
    Marts,
    Origin,
    built_marts,
    is_of_this_version,
    marts_outdated,
)
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors.runs import Status, why_wait

MOST_ATTEMPTS = 3
RELEASE = "graphrag/release"
PROJECT_VERSION = "graphrag/marts_project"
EVALUATED = "graphrag/evaluated"
OFFERED = "graphrag/offered"
_SECONDS = 30
_NOTHING = "nothing"
_BETWEEN_JUDGEMENTS = timedelta(hours=1)


def build_marts_sensor(index: IndexResource, names: Names, status: Status) -> dg.SensorDefinition:
    """Return the sensor that compares what the marts tell of with what there is.

    It works by level: at every tick it asks for a build if they differ, up to three times for a
    release and the experiments done by then, so that a killed build is made good and one that fails
    a data test is not tried for ever. Where nothing is new but what other packages offer, such as
    what people said of answers, marts stand for an hour.
    """

    job_name = names.name(MARTS_JOB)

    @dg.sensor(
        name=names.name("marts_sensor"),
        job_name=job_name,
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus[status],
        description="Builds the marts of each new release, when an experiment is done, and at "
        "most once an hour of what people said of answers.",
    )
    def marts_sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if waits := why_wait(context.instance, job_name):
            return waits
        try:
            reason = marts_outdated(index.home)
            readable = reason is None or is_of_this_version(release_file(index.home))
        except GraphRAGError as error:
            raise dg.Failure(str(error)) from None
        if reason is None:
            return dg.SkipReason("the marts are up to date")
        if _are_young(built_marts(index.home), reason):
            return dg.SkipReason("the marts are of this hour: what people said since comes later")
        if not readable:
            return dg.SkipReason(
                f"release {reason.release} was published by another version of this program: the "
                "next refresh publishes it again"
            )
        tags = {
            RELEASE: reason.release,
            PROJECT_VERSION: reason.project,
            EVALUATED: (
                reason.evaluated_at.isoformat() if reason.evaluated_at.timestamp() else "never"
            ),
            OFFERED: reason.offered or _NOTHING,
        }
        attempts = context.instance.get_runs_count(dg.RunsFilter(job_name=job_name, tags=tags))
        if attempts >= MOST_ATTEMPTS:
            return dg.SkipReason(
                f"the marts of release {reason.release} failed {attempts} times: see the runs of "
                f"{job_name}, fix the cause, and run graphrag-pipeline marts"
            )
        return dg.RunRequest(run_key=":".join([*tags.values(), str(attempts)]), tags=tags)

    return marts_sensor


def _are_young(built: Marts | None, wanted: Origin) -> bool:
    """Whether marts lack no more than what packages offer, and were built within the hour."""
    return (
        built is not None
        and (built.release, built.project) == (wanted.release, wanted.project)
        and built.evaluated_at >= wanted.evaluated_at
        and datetime.now(UTC) - built.built_at < _BETWEEN_JUDGEMENTS
    )
