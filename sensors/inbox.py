"""The inbox sensor: cuts batches of what changed in the folder and asks for their runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import dagster as dg

from graphrag_pipeline.assets import Names
from graphrag_pipeline.core.errors import BusyError, GraphRAGError, RemovalError
from graphrag_pipeline.core.notices import Notifier
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.pipeline.updating import cut_batches
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.resources.index import OUTAGE
from graphrag_pipeline.resources.liveness import end_dead_runs
from graphrag_pipeline.sensors.addresses import FETCH_JOB
from graphrag_pipeline.sensors.consent import Consent
from graphrag_pipeline.sensors.runs import (
    BATCH,
    VERSION,
    Status,
    files_of,
    is_about,
    unfinished_runs,
)
from graphrag_pipeline.store.snapshots import snapshot_folder

MOST_ATTEMPTS = 3
_MOST_REQUESTS = 50
_FIRST_WAIT, _LONGEST_WAIT = 60.0, 3600.0
_LOOKED_AT = 10
_FAILED = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


def build_inbox_sensor(
    job: Any, index: IndexResource, names: Names, status: Status
) -> dg.SensorDefinition:
    """Return the sensor that watches the input folder.

    It works by level: at every tick it asks for each batch that is not done and has no run
    under way, so that a lost request or a killed run is made good. A batch that fails three times
    is given up, and so is a chunk. An outage of the model is neither's fault: the batch is asked
    for again for ever, with waits that grow to an hour, and so is one with chunks that failed.
    None is asked for while what all of them may cost waits for a person.
    """

    settings = index.settings
    notifier = Notifier(settings)
    consent = Consent(index)

    @dg.sensor(
        name=names.name("inbox_sensor"),
        job=job,
        minimum_interval_seconds=settings.input.poll_seconds,
        default_status=dg.DefaultSensorStatus[status],
        description=f"Watches {settings.input.folder} for added, changed and removed documents.",
    )
    def inbox_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        end_dead_runs(context.instance)
        folders = _folders(context.instance, index, names)
        if not folders:
            return dg.SkipReason(_why_not_to_look(settings))
        try:
            for folder in folders:
                cut_batches(index.workspace, folder, settle_seconds=settings.input.settle_seconds)
            pending = pending_batches(index.workspace, most_attempts=MOST_ATTEMPTS)
        except (BusyError, RemovalError) as error:
            return dg.SkipReason(str(error))
        except GraphRAGError as error:
            raise dg.Failure(str(error)) from None
        told = set((context.cursor or "").split(",")) - {""}
        for key in told.difference(pending):
            notifier.mended(_given_up(key))
        if not pending:
            nothing = dg.SkipReason("no document was added, changed or removed")
            return dg.SensorResult(skip_reason=nothing, cursor="") if told else nothing
        todo = _sorted_out(context.instance, index.settings, pending, time.time())
        _tell_of(context, notifier, todo.given_up, told)
        asked = [key for key in pending if key not in {*todo.waiting, *todo.given_up}]
        if todo.due:
            why = consent.why_index_waits(job.name, asked, context.log)
        else:
            why = _why_none(todo, len(asked))
        return dg.SensorResult(
            run_requests=[] if why else [_request(index, key, n) for key, n in todo.due],
            dynamic_partitions_requests=_new_partitions(context, names, pending),
            cursor=",".join(sorted(told.intersection(pending).union(todo.given_up))),
            skip_reason=why,
        )

    return inbox_sensor


def _folders(instance: dg.DagsterInstance, index: IndexResource, names: Names) -> list[Path]:
    """Return the folders to look into: that of fetched pages only where no fetch is under way.

    A batch is cut of what a fetch has brought, not one of every look while it goes on.
    """
    pages = snapshot_folder(index.home)
    fetching = index.settings.input.urls and unfinished_runs(instance, names.name(FETCH_JOB))
    fetched = [pages] if index.settings.input.urls and not fetching else []
    return [folder for folder in (index.settings.input_path, *fetched) if folder.is_dir()]


def _why_not_to_look(settings: Settings) -> str:
    if settings.input.urls:
        return "no page has been fetched yet"
    return (
        f"input.folder {settings.input.folder!r} does not exist: create it and put documents "
        "in, or name another in the settings"
    )


def _new_partitions(
    context: dg.SensorEvaluationContext, names: Names, keys: Sequence[str]
) -> list[dg.AddDynamicPartitionsRequest]:
    existing = set(context.instance.get_dynamic_partitions(str(names.batches.name)))
    new = [key for key in keys if key not in existing]
    return [names.batches.build_add_request(new)] if new else []


@dataclass(frozen=True)
class _Todo:
    """Pending batches: those to run now with the number of runs they had, and the others."""

    due: list[tuple[str, int]] = field(default_factory=list)
    waiting: dict[str, float] = field(default_factory=dict)
    """Until when, in seconds since 1970."""
    given_up: dict[str, int] = field(default_factory=dict)
    """How often each failed."""


def _sorted_out(
    instance: dg.DagsterInstance, settings: Settings, keys: Sequence[str], now: float
) -> _Todo:
    todo, unfinished = _Todo(), unfinished_runs(instance)
    version = stage_versions(settings)["extractions"]
    for key in keys:
        if len(todo.due) == _MOST_REQUESTS:
            break
        if any(is_about(run, key) for run in unfinished):
            continue
        of_batch = {BATCH: key, VERSION: version}
        n_failed = _count(instance, of_batch, _FAILED) - _count(
            instance, {**of_batch, OUTAGE: "true"}
        )
        until = _waits_until(instance.get_run_records(dg.RunsFilter(tags=of_batch), _LOOKED_AT))
        if n_failed >= MOST_ATTEMPTS:
            todo.given_up[key] = n_failed
        elif until > now:
            todo.waiting[key] = until
        else:
            todo.due.append((key, instance.get_runs_count(dg.RunsFilter(tags=of_batch))))
    return todo


def _count(
    instance: dg.DagsterInstance,
    tags: dict[str, str],
    statuses: Sequence[dg.DagsterRunStatus] = (),
) -> int:
    return instance.get_runs_count(dg.RunsFilter(tags=tags, statuses=statuses))


def _waits_until(newest_first: Sequence[dg.RunRecord]) -> float:
    """Return when a batch may be run again: after outages, later and later, to an hour apart."""
    blameless = list(takewhile(_is_blameless, newest_first))
    if not blameless:
        return 0.0
    ended = blameless[0].end_time or blameless[0].update_timestamp.timestamp()
    return ended + min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (len(blameless) - 1))


def _is_blameless(record: dg.RunRecord) -> bool:
    """Whether a run ended without its batch being at fault, and left some of it undone."""
    run = record.dagster_run
    return run.status == dg.DagsterRunStatus.SUCCESS or OUTAGE in run.tags


def _request(index: IndexResource, key: str, n_runs: int) -> dg.RunRequest:
    version = stage_versions(index.settings)["extractions"]
    tags = {VERSION: version, **files_of([index.workspace.batches.get(key)])}
    return dg.RunRequest(run_key=f"{key}:{version}:{n_runs}", partition_key=key, tags=tags)


def _tell_of(
    context: dg.SensorEvaluationContext,
    notifier: Notifier,
    given_up: Mapping[str, int],
    before: Set[str],
) -> None:
    """Tell once of each batch that is given up."""
    for key, n_failed in given_up.items():
        if key not in before:
            text = (
                f"failed {n_failed} times: see its runs, fix the cause, and materialise its "
                "partition by hand"
            )
            context.log.warning(f"batch {key} {text}")
            notifier.failed(_given_up(key), text)


def _given_up(key: str) -> str:
    return f"batch {key}, given up"


def _why_none(todo: _Todo, n_under_way: int) -> str:
    parts = []
    if n_under_way:
        parts.append(f"{counted(n_under_way, 'batch has a run', 'batches have runs')} under way")
    if todo.waiting:
        first = datetime.fromtimestamp(min(todo.waiting.values()), UTC)
        parts.append(
            f"{counted(len(todo.waiting), 'batch waits', 'batches wait')} for the model to answer "
            f"again; the next is tried at {first:%H:%M} UTC"
        )
    if todo.given_up:
        keys = ", ".join(todo.given_up)
        parts.append(f"given up after {MOST_ATTEMPTS} failures, see their runs: {keys}")
    return "; ".join(parts)
