"""The inbox sensor: cuts batches of what changed in the folder and asks for their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets import BATCHES
from graphrag_pipeline.config import InputSettings
from graphrag_pipeline.errors import BusyError, GraphRAGError
from graphrag_pipeline.ingest import pending_batches, stage_versions
from resources import IndexResource

MOST_ATTEMPTS = 3
_MOST_REQUESTS = 50
UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def build_inbox_sensor(job: Any, settings: InputSettings) -> dg.SensorDefinition:
    """Return the sensor that watches the input folder.

    It works by level: at every tick it asks for each batch that is not done and has no run
    under way, up to three runs a batch, so that a lost request or a killed run is made good.
    """

    @dg.sensor(
        name="inbox_sensor",
        job=job,
        minimum_interval_seconds=settings.poll_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Watches {settings.folder} for added, changed and removed documents.",
    )
    def inbox_sensor(
        context: dg.SensorEvaluationContext, index: IndexResource
    ) -> dg.SensorResult | dg.SkipReason:
        given = index.settings
        if not given.input_path.is_dir():
            return dg.SkipReason(
                f"input.folder {given.input.folder!r} does not exist yet: create it and put "
                "documents in, or name another in graphrag.toml"
            )
        try:
            index.log.cut(
                given.input_path,
                given.batches,
                max_bytes=int(given.input.max_file_mb * 1e6),
                settle_seconds=given.input.settle_seconds,
            )
            pending = pending_batches(index.store, index.log, given)
        except BusyError as error:
            return dg.SkipReason(str(error))
        except GraphRAGError as error:
            raise dg.Failure(str(error)) from error
        if not pending:
            return dg.SkipReason("no document was added, changed or removed")
        version = stage_versions(given)["extractions"]
        return dg.SensorResult(
            run_requests=_requests(context, pending, version),
            dynamic_partitions_requests=_new_partitions(context, pending),
        )

    return inbox_sensor


def _new_partitions(
    context: dg.SensorEvaluationContext, keys: Sequence[str]
) -> list[dg.AddDynamicPartitionsRequest]:
    known = set(context.instance.get_dynamic_partitions(str(BATCHES.name)))
    new = [key for key in keys if key not in known]
    return [BATCHES.build_add_request(new)] if new else []


def _requests(
    context: dg.SensorEvaluationContext, keys: Sequence[str], version: str
) -> list[dg.RunRequest]:
    requests = []
    for key in keys:
        attempts = _attempts(context.instance, key, version)
        if attempts is not None and attempts < MOST_ATTEMPTS:
            requests.append(
                dg.RunRequest(
                    run_key=f"{key}:{version}:{attempts}",
                    partition_key=key,
                    tags={"graphrag/version": version},
                )
            )
        elif attempts is not None:
            context.log.warning(
                f"batch {key} failed {attempts} times: see its runs, mend the cause, and "
                "materialise its partition by hand"
            )
    return requests[:_MOST_REQUESTS]


def _attempts(instance: dg.DagsterInstance, key: str, version: str) -> int | None:
    """Return how many runs a batch has had under this version; None while one is under way."""
    runs = instance.get_runs(
        dg.RunsFilter(tags={"dagster/partition": key, "graphrag/version": version}),
        limit=MOST_ATTEMPTS + 1,
    )
    if any(run.status in UNFINISHED for run in runs):
        return None
    return len(runs)
