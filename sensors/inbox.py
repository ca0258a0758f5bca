"""The inbox sensor: cuts batches of what changed in the folder and asks for their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.core.errors import BusyError, GraphRAGError, RemovalError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.ingest.batches import BatchLog
from graphrag_pipeline.ingest.stages import pending_batches, stage_versions
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.resources.liveness import end_dead_runs
from graphrag_pipeline.sensors.runs import BATCH, VERSION, files_of, is_about, unfinished_runs

MOST_ATTEMPTS = 3
_MOST_REQUESTS = 50


def build_inbox_sensor(job: Any, index: IndexResource, names: Names) -> dg.SensorDefinition:
    """Return the sensor that watches the input folder.

    It works by level: at every tick it asks for each batch that is not done and has no run
    under way, up to three runs a batch, so that a lost request or a killed run is made good.
    """

    settings = index.settings

    @dg.sensor(
        name=names.name("inbox_sensor"),
        job=job,
        minimum_interval_seconds=settings.input.poll_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Watches {settings.input.folder} for added, changed and removed documents.",
    )
    def inbox_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        end_dead_runs(context.instance)
        reason = _why_not_to_look(settings)
        if reason:
            return dg.SkipReason(reason)
        try:
            _cut(index.log, settings)
            pending = pending_batches(index.store, index.log, settings)
        except (BusyError, RemovalError) as error:
            return dg.SkipReason(str(error))
        except GraphRAGError as error:
            raise dg.Failure(str(error)) from None
        if not pending:
            return dg.SkipReason("no document was added, changed or removed")
        return dg.SensorResult(
            run_requests=_requests(context, index, pending),
            dynamic_partitions_requests=_new_partitions(context, names, pending),
        )

    return inbox_sensor


def _why_not_to_look(settings: Settings) -> str | None:
    """Return why there is nothing to look into, or None."""
    if settings.input_path.is_dir():
        return None
    return (
        f"input.folder {settings.input.folder!r} does not exist yet: create it and put documents "
        "in, or name another in graphrag.toml"
    )


def _cut(log: BatchLog, settings: Settings) -> None:
    log.cut(
        settings.input_path,
        settings.batches,
        max_bytes=int(settings.input.max_file_mb * 1e6),
        settle_seconds=settings.input.settle_seconds,
    )


def _new_partitions(
    context: dg.SensorEvaluationContext, names: Names, keys: Sequence[str]
) -> list[dg.AddDynamicPartitionsRequest]:
    existing = set(context.instance.get_dynamic_partitions(str(names.batches.name)))
    new = [key for key in keys if key not in existing]
    return [names.batches.build_add_request(new)] if new else []


def _requests(
    context: dg.SensorEvaluationContext, index: IndexResource, keys: Sequence[str]
) -> list[dg.RunRequest]:
    version = stage_versions(index.settings)["extractions"]
    unfinished = unfinished_runs(context.instance)
    requests = []
    for key in keys:
        if any(is_about(run, key) for run in unfinished):
            continue
        attempts = _attempts(context.instance, key, version)
        if attempts < MOST_ATTEMPTS:
            run_key = f"{key}:{version}:{attempts}"
            tags = {VERSION: version, **files_of([index.log.get(key)])}
            requests.append(dg.RunRequest(run_key=run_key, partition_key=key, tags=tags))
        else:
            context.log.warning(
                f"batch {key} failed {attempts} times: see its runs, mend the cause, and "
                "materialise its partition by hand"
            )
    return requests[:_MOST_REQUESTS]


def _attempts(instance: dg.DagsterInstance, key: str, version: str) -> int:
    """Return how many runs a batch has had under this version."""
    return instance.get_runs_count(dg.RunsFilter(tags={BATCH: key, VERSION: version}))
