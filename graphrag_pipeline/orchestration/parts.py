"""The coordinator's side of many workers: order batches, launch a run for each, take the parts."""

from __future__ import annotations

import logging
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableJob, ReconstructableRepository
from dagster._core.workspace.context import BaseWorkspaceRequestContext

from graphrag_pipeline.assets.names import BATCHES
from graphrag_pipeline.core import progress
from graphrag_pipeline.core.errors import GraphRAGError, StorageError
from graphrag_pipeline.core.postgres import Postgres, Session
from graphrag_pipeline.core.text import counted
from graphrag_pipeline.definitions import INGEST_JOB
from graphrag_pipeline.resources.index import BATCH
from graphrag_pipeline.sensors.runs import files_of
from graphrag_pipeline.store.beats import ages, forget
from graphrag_pipeline.store.lease import LEASE_SECONDS
from graphrag_pipeline.store.objects import MissingObjectError, ObjectStore
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.workers.orders import place_order
from graphrag_pipeline.workers.parts import find_part
from graphrag_pipeline.workers.taking import take_part

log = logging.getLogger("graphrag_pipeline")

_MODULE = "graphrag_pipeline.orchestration.ingestion_job"
_AT_ONCE = 256
_POLL_SECONDS = 0.5
_MOST_TRIES = 3
_DEAD_AFTER_LEASES = 3
_MOST_NAMED = 3


class PartsFailedError(GraphRAGError):
    """Some batches could not be made by workers; what the others brought is kept."""


@dataclass
class Launched:
    """A run that was handed to a worker for a batch, under an order, and when."""

    key: str
    order: str
    at: float = field(default_factory=time.monotonic)


def make_parts(
    workspace: Workspace,
    instance: dg.DagsterInstance,
    keys: Sequence[str],
    run_config: Mapping[str, object],
    tags: Mapping[str, str],
) -> list[str]:
    """Have these batches made by workers, and take in what they make; return the ids of the runs.

    ``run_config`` and ``tags`` are those of each run.

    A run that fails, or whose worker is not heard of for three leases, is tried again, twice.
    Raises PartsFailedError once all others are done where one fails for good, and StorageError
    where the lease is lost.
    """
    if not keys:
        return []
    objects = ObjectStore(workspace.settings.storage.url)
    objects.check()
    known = set(instance.get_dynamic_partitions(BATCHES))
    instance.add_dynamic_partitions(BATCHES, [key for key in keys if key not in known])
    with workspace.coordinating() as lease, closing(Session(Postgres.of(workspace.settings))) as s:
        making = _Making(workspace, instance, objects, s, run_config, tags, deque(keys))
        while making.goes_on():
            lease.check()
            making.launch_some()
            making.settle_some()
            progress.report("batches by workers", len(making.done), len(keys))
            time.sleep(_POLL_SECONDS)
    making.check()
    return making.run_ids


@dataclass
class _Making:
    workspace: Workspace
    instance: dg.DagsterInstance
    objects: ObjectStore
    session: Session
    run_config: Mapping[str, object]
    tags: Mapping[str, str]
    waiting: deque[str]
    launched: dict[str, Launched] = field(default_factory=dict)
    tries: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)

    def goes_on(self) -> bool:
        """Whether a batch waits or is being made."""
        return bool(self.waiting or self.launched)

    def check(self) -> None:
        """Raise PartsFailedError where a batch failed for good."""
        if self.failures:
            some = [f"{key}: {why}" for key, why in [*self.failures.items()][:_MOST_NAMED]]
            what = counted(len(self.failures), "batch", "batches")
            raise PartsFailedError(
                f"{what} failed on workers ({'; '.join(some)}); {len(self.done)} others are taken "
                "in: mend the cause and run again"
            )

    def launch_some(self) -> None:
        """Hand out batches, as long as not too many are out."""
        while self.waiting and len(self.launched) < _AT_ONCE:
            key = self.waiting.popleft()
            self.tries[key] += 1
            order = place_order(self.workspace, self.objects, key)
            files = files_of([order.batch])
            run = self.instance.create_run_for_job(
                self._job.get_definition(),
                run_config=self.run_config,
                tags={**self.tags, **files, BATCH: key},
                job_code_origin=self._job.get_python_origin(),
            )
            self.run_ids.append(run.run_id)
            self.launched[run.run_id] = Launched(key, order.id)
            with warnings.catch_warnings():
                # dagster-celery registers its task anew for each run.
                warnings.filterwarnings("ignore", "Task name 'execute_job' is already registered")
                # A launcher asks the workspace of Dagster's web server for nothing.
                self.instance.launch_run(run.run_id, cast("BaseWorkspaceRequestContext", None))

    def settle_some(self) -> None:
        """Take in the parts of runs that have ended well, and try the others again."""
        ended = []
        for run in self._runs():
            if run.is_finished:
                ended.append(run.run_id)
                self._end(run)
        forget(self.session, ended)
        for run_id, why in [*self._silent()]:
            run = self.instance.get_run_by_id(run_id)
            if run is not None and not run.is_finished:
                self.instance.report_run_failed(run, why)
                self._fail(self.launched.pop(run_id).key, why)

    def _runs(self) -> Iterator[dg.DagsterRun]:
        if self.launched:
            yield from self.instance.get_runs(dg.RunsFilter(run_ids=[*self.launched]))

    def _end(self, run: dg.DagsterRun) -> None:
        launched = self.launched.pop(run.run_id)
        if not run.is_success:
            self._fail(launched.key, self._why(run.run_id))
            return
        part = find_part(self.objects, launched.key)
        if part is None or part.order != launched.order:
            self._fail(launched.key, "its worker ended well and brought no part")
            return
        try:
            take_part(self.workspace, self.objects, part)
        except MissingObjectError as error:
            self._fail(launched.key, str(error))
        else:
            self.done.append(launched.key)

    def _fail(self, key: str, why: str) -> None:
        if self.tries[key] < _MOST_TRIES:
            log.warning("batch %s is tried again: %s", key, why)
            self.waiting.append(key)
        else:
            self.failures[key] = why

    def _silent(self) -> Iterator[tuple[str, str]]:
        """Yield the runs whose worker is gone, or that no worker will ever get."""
        heard = ages(self.session, [*self.launched])
        late = _DEAD_AFTER_LEASES * LEASE_SECONDS
        now = time.monotonic()
        old = [id for id, each in self.launched.items() if now - each.at > late]
        lost = any(id not in heard for id in old) and self._queue_is_empty()
        for run_id in old:
            if run_id in heard:
                if heard[run_id] > late:
                    yield run_id, f"its worker was not heard of for {late:.0f} seconds"
            elif lost:
                yield run_id, "it is in no queue any more, and no worker has begun it"

    def _queue_is_empty(self) -> bool:
        """Whether no run waits for a worker; where nobody can tell, none is given up."""
        launcher = self.instance.run_launcher
        if self.workspace.settings.workers.launcher != "celery":
            return False
        from dagster_celery.launcher import CeleryRunLauncher

        assert isinstance(launcher, CeleryRunLauncher)
        try:
            with launcher.celery.connection_for_read() as connection:
                queue = connection.default_channel.queue_declare(
                    queue=launcher.default_queue, passive=True
                )
                return queue.message_count == 0
        except connection_errors() as error:
            log.warning("cannot ask the queue of the workers: %s", error)
            return False

    def _why(self, run_id: str) -> str:
        """Return why a run failed, in one line."""
        for entry in self.instance.all_logs(run_id):
            event = entry.dagster_event
            if event is None or not (event.is_failure or event.is_engine_event):
                continue
            if event.is_step_failure:
                failure = event.step_failure_data
                if failure.user_failure_data and failure.user_failure_data.description:
                    return failure.user_failure_data.description
            error = getattr(event.event_specific_data, "error", None)
            while error and error.cause:
                error = error.cause
            if error and (lines := error.message.strip().splitlines()):
                return lines[0].removeprefix("dagster._core.definitions.events.Failure: ")
        return "its run failed"

    @cached_property
    def _job(self) -> ReconstructableJob:
        repository = ReconstructableRepository.for_module(_MODULE, "defs")
        return ReconstructableJob(repository, INGEST_JOB)


def connection_errors() -> tuple[type[Exception], ...]:
    """Return what is raised where the broker is away."""
    from kombu.exceptions import KombuError
    from redis.exceptions import RedisError

    return (OSError, KombuError, RedisError, StorageError)
