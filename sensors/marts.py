"""The marts sensor: builds the marts of each new release."""

from __future__ import annotations

import dagster as dg

from graphrag_pipeline.errors import GraphRAGError
from graphrag_pipeline.liveness import end_dead_runs
from graphrag_pipeline.marts import is_of_this_version, marts_outdated, project_version
from graphrag_pipeline.releases import release_file
from resources import IndexResource
from sensors.runs import unfinished_runs

MOST_ATTEMPTS = 3
RELEASE = "graphrag/release"
PROJECT_VERSION = "graphrag/marts_project"
_SECONDS = 30


def build_marts_sensor(job_name: str) -> dg.SensorDefinition:
    """Return the sensor that compares the marts' release with the published one.

    It works by level: at every tick it asks for a build if they differ, up to three times for a
    release, so that a killed build is made good and a release that fails a data test is not built
    for ever.
    """

    @dg.sensor(
        name="marts_sensor",
        job_name=job_name,
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Builds the marts of each new release.",
    )
    def marts_sensor(
        context: dg.SensorEvaluationContext, index: IndexResource
    ) -> dg.RunRequest | dg.SkipReason:
        end_dead_runs(context.instance)
        under_way = unfinished_runs(context.instance, job_name)
        if under_way:
            return dg.SkipReason(f"run {under_way[0].run_id} is still under way")
        try:
            release = marts_outdated(index.home)
            readable = release is None or is_of_this_version(release_file(index.home))
        except GraphRAGError as error:
            raise dg.Failure(str(error)) from error
        if release is None:
            return dg.SkipReason("the marts tell of the published release, if there is one")
        if not readable:
            return dg.SkipReason(
                f"release {release} was published by another version of this program: the next "
                "refresh publishes it again"
            )
        tags = {RELEASE: release, PROJECT_VERSION: project_version()}
        attempts = context.instance.get_runs_count(dg.RunsFilter(job_name=job_name, tags=tags))
        if attempts >= MOST_ATTEMPTS:
            return dg.SkipReason(
                f"the marts of release {release} failed {attempts} times: see the runs of "
                f"{job_name}, mend the cause, and run graphrag-pipeline marts"
            )
        run_key = f"{release}:{project_version()}:{attempts}"
        return dg.RunRequest(run_key=run_key, tags=tags)

    return marts_sensor
