"""The coordinator's side of many workers: order work, launch a run for each piece, take it in."""

from __future__ import annotations

import logging
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableJob, ReconstructableRepository
from dagster._core.launcher.base import WorkerStatus
from dagster._core.workspace.context import BaseWorkspaceRequestContext

from graphrag_cluster.addresses import check_services, queue_of, storage_errors
from graphrag_cluster.batch_parts import find_part
from graphrag_cluster.beats import ages, forget
from graphrag_cluster.dispatch import Dispatch, Launched, NotLaunchedError, RunFailure
from graphrag_cluster.lease import LEASE_SECONDS, holding_lease
from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_cluster.orders import place_order
from graphrag_cluster.part_intake import take_part
from graphrag_cluster.postgres import Postgres, Session
from graphrag_cluster.slices import SliceKind, is_made
from graphrag_pipeline.assets.names import BATCHES
from graphrag_pipeline.definitions import INGEST_JOB
from graphrag_pipeline.resources.index import BATCH
from graphrag_pipeline.sensors.runs import files_of
from graphrag_pipeline.store.workspace import Workspace

log = logging.getLogger("graphrag_pipeline")

_MODULE = "graphrag_cluster.ingestion_job"
SLICE = "graphrag/slice"
"""Run tag: the run makes a slice of a stage's work, and needs no index."""
_POLL_SECONDS = 0.5
_QUEUE = "dagster-celery/queue"


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
    where the lease is lost, or where nothing that carries runs to workers answers.
    """
    return _make(DagsterRuns, workspace, instance, keys, run_config, tags)


def make_slices(
    kind: SliceKind,
    workspace: Workspace,
    instance: dg.DagsterInstance,
    run_config: Mapping[str, object],
    tags: Mapping[str, str],
    keys: Sequence[str],
) -> list[str]:
    """Have these slices made by workers, as :func:`make_parts` does batches."""
    unit = (f"{kind.name} slice", f"{kind.name} slices")
    of_kind = partial(SliceRuns, job=kind.job, partitions=kind.partitions, unit=unit)
    return _make(of_kind, workspace, instance, keys, run_config, tags)


def _make(
    make_runs: Callable[..., DagsterRuns],
    workspace: Workspace,
    instance: dg.DagsterInstance,
    keys: Sequence[str],
    run_config: Mapping[str, object],
    tags: Mapping[str, str],
) -> list[str]:
    if not keys:
        return []
    check_services(workspace.settings)
    objects = ObjectStore(workspace.settings.storage.url)
    with (
        holding_lease(workspace.settings) as lease,
        closing(Session(Postgres.of(workspace.settings))) as s,
    ):
        runs = make_runs(workspace, instance, objects, s, run_config, tags)
        known = set(instance.get_dynamic_partitions(runs.partitions))
        new = [key for key in keys if key not in known]
        instance.add_dynamic_partitions(runs.partitions, new)
        dispatch = Dispatch(runs, deque(keys), LEASE_SECONDS, unit=runs.unit)
        while dispatch.goes_on():
            lease.check()
            try:
                dispatch.turn()
            except storage_errors() as error:
                # Without Postgres the lease cannot be renewed: that says when it is too long.
                log.warning("cannot ask Postgres for the runs, asking again: %s", _line(error))
            time.sleep(_POLL_SECONDS)
    dispatch.check()
    return dispatch.run_ids


@dataclass
class DagsterRuns:
    """Runs of Dagster, one a batch, that its launcher carries to workers."""

    workspace: Workspace
    instance: dg.DagsterInstance
    objects: ObjectStore
    session: Session
    run_config: Mapping[str, object]
    tags: Mapping[str, str]
    job: str = INGEST_JOB
    partitions: str = BATCHES
    unit: tuple[str, str] = ("batch", "batches")

    def launch(self, key: str) -> tuple[str, str]:
        """Order a batch and start a run for it; return the ids of the run and of the order."""
        order, tags = self._order(key)
        run = self.instance.create_run_for_job(
            self._job.get_definition(),
            run_config=self.run_config,
            tags={**self.tags, **tags, BATCH: key, _QUEUE: self._queue},
            job_code_origin=self._job.get_python_origin(),
        )
        with warnings.catch_warnings():
            # dagster-celery registers its task anew for each run.
            warnings.filterwarnings("ignore", "Task name 'execute_job' is already registered")
            try:
                # A launcher asks the workspace of Dagster's web server for nothing.
                self.instance.launch_run(run.run_id, cast("BaseWorkspaceRequestContext", None))
            except self._unreachable as error:
                raise NotLaunchedError(
                    f"cannot hand a {self.unit[0]} to the workers: {_line(error)}"
                ) from None
        return run.run_id, order

    def _order(self, key: str) -> tuple[str, Mapping[str, str]]:
        """Order a batch; return the order's id, and what to tag its run with."""
        order = place_order(self.workspace, self.objects, key)
        return order.id, files_of([order.batch])

    def ended(self, run_ids: Sequence[str]) -> Mapping[str, RunFailure | None]:
        """Return which of these runs have ended, and why they failed: None where they did not."""
        if not run_ids:
            return {}
        finished = [
            run
            for run in self.instance.get_runs(dg.RunsFilter(run_ids=[*run_ids]))
            if run.is_finished
        ]
        if finished:
            forget(self.session, [run.run_id for run in finished])
        return {run.run_id: None if run.is_success else self._why(run.run_id) for run in finished}

    def take(self, run: Launched) -> str:
        """Take in the part of a run that ended well; return why that cannot be, or ""."""
        part = find_part(self.objects, run.key)
        if part is None or part.order != run.order:
            return "its worker ended well and brought no part"
        try:
            take_part(self.workspace, self.objects, part)
        except MissingObjectError as error:
            return str(error)
        return ""

    def ages(self, run_ids: Sequence[str]) -> Mapping[str, float]:
        """Return how many seconds ago each of these runs was heard of, those that ever were."""
        return ages(self.session, run_ids)

    def lost(self, run_ids: Sequence[str]) -> Mapping[str, str]:
        """Return which of these runs no worker will ever begin; where nobody can tell, none."""
        if self.workspace.settings.workers.launcher == "k8s":
            return self._without_pods(run_ids)
        if self._queue_is_empty():
            return dict.fromkeys(run_ids, "it is in no queue any more, and no worker has begun it")
        return {}

    def give_up(self, run_id: str, why: str) -> bool:
        """Have a run count as failed; False where it has ended meanwhile."""
        run = self.instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self.instance.report_run_failed(run, why)
        forget(self.session, [run_id])
        return True

    def _without_pods(self, run_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the runs whose job ended or is gone. A pod that waits for a machine may wait."""
        lost = {}
        for run in self.instance.get_runs(dg.RunsFilter(run_ids=[*run_ids])):
            health = self.instance.run_launcher.check_run_worker_health(run)
            said = health.msg or ""
            if health.status in (WorkerStatus.FAILED, WorkerStatus.SUCCESS):
                lost[run.run_id] = f"its pod ended and made nothing: {said or 'it gave no reason'}"
            elif health.status is WorkerStatus.NOT_FOUND or said.endswith("could not be found"):
                lost[run.run_id] = "its job is gone from Kubernetes"
        return lost

    def _queue_is_empty(self) -> bool:
        from dagster_celery.launcher import CeleryRunLauncher

        launcher = self.instance.run_launcher
        assert isinstance(launcher, CeleryRunLauncher)
        try:
            with launcher.celery.connection_for_read() as connection:
                # Redis has no empty list: asked passively, an empty queue is an error.
                queue = connection.default_channel.queue_declare(queue=self._queue)
                return queue.message_count == 0
        except self._unreachable as error:
            log.warning("cannot ask the queue of the workers: %s", _line(error))
            return False

    def _why(self, run_id: str) -> RunFailure:
        """Return why a run failed, and the exit code that its error would have here."""
        for entry in self.instance.all_logs(run_id):
            event = entry.dagster_event
            if event is None or not (event.is_failure or event.is_engine_event):
                continue
            if event.is_step_failure:
                failure = event.step_failure_data.user_failure_data
                if failure and failure.description:
                    code = failure.metadata.get("exit_code")
                    value = code.value if code else None
                    known = {"exit_code": value} if isinstance(value, int) else {}
                    return RunFailure(failure.description, **known)
            error = getattr(event.event_specific_data, "error", None)
            while error and error.cause:
                error = error.cause
            if error and (lines := error.message.strip().splitlines()):
                said = lines[0].removeprefix("dagster._core.definitions.events.Failure: ")
                return RunFailure(said)
        return RunFailure("its run failed")

    @cached_property
    def _queue(self) -> str:
        return queue_of(self.workspace.settings)

    @cached_property
    def _job(self) -> ReconstructableJob:
        repository = ReconstructableRepository.for_module(_MODULE, "defs")
        return ReconstructableJob(repository, self.job)

    @cached_property
    def _unreachable(self) -> tuple[type[Exception], ...]:
        """Return what is raised where what carries runs to workers is away."""
        if self.workspace.settings.workers.launcher == "k8s":
            return kubernetes_errors()
        return broker_errors()


class SliceRuns(DagsterRuns):
    """Runs of Dagster, one a slice, whose order is in the store already."""

    def _order(self, key: str) -> tuple[str, Mapping[str, str]]:
        return key, {SLICE: "true"}

    def take(self, run: Launched) -> str:
        """Say whether the slice is there; the stage takes it."""
        return "" if is_made(self.objects, run.key) else "its worker ended well and brought nothing"


def broker_errors() -> tuple[type[Exception], ...]:
    """Return what is raised where Redis is away."""
    from kombu.exceptions import KombuError
    from redis.exceptions import RedisError

    return (OSError, KombuError, RedisError)


def kubernetes_errors() -> tuple[type[Exception], ...]:
    """Return what is raised where Kubernetes is away, or refuses."""
    from dagster_k8s.client import (
        DagsterK8sAPIRetryLimitExceeded,
        DagsterK8sError,
        DagsterK8sUnrecoverableAPIError,
    )
    from kubernetes.client.rest import ApiException
    from urllib3.exceptions import HTTPError

    return (
        OSError,
        ApiException,
        HTTPError,
        DagsterK8sError,
        DagsterK8sAPIRetryLimitExceeded,
        DagsterK8sUnrecoverableAPIError,
    )


def _line(error: Exception) -> str:
    # dagster-k8s wraps what Kubernetes said.
    error = getattr(error, "k8s_api_exception", None) or error
    if reason := getattr(error, "reason", None):
        return f"{getattr(error, 'status', '')} {reason}".strip()[:200]
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
