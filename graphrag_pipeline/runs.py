"""Runs of the pipeline from the command line: the UI's own jobs, so that they are in its history."""

from __future__ import annotations

import os
import shutil
import socket
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import dagster as dg

from graphrag_pipeline.batches import BatchLog
from graphrag_pipeline.config import Settings
from graphrag_pipeline.errors import GraphRAGError, StorageError
from graphrag_pipeline.ingest import pending_batches, stage_versions
from graphrag_pipeline.store import IndexStore

_PID = "graphrag/pid"
_HOST = "graphrag/host"
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_RANGE_START = "dagster/asset_partition_range_start"
_RANGE_END = "dagster/asset_partition_range_end"


class RunFailedError(GraphRAGError):
    """A run of the pipeline failed; the last release stays published."""


@dataclass(frozen=True)
class IndexOutcome:
    """What `index` did: the batches it ran, and the ids of its Dagster runs."""

    batches: Sequence[str]
    run_ids: Sequence[str]


def dagster_home(settings: Settings) -> Path:
    """Return Dagster's home: $DAGSTER_HOME, or ``dagster`` in the home folder; made if missing.

    Sets $DAGSTER_HOME for this process and those it starts.
    """
    place = Path(os.environ.get("DAGSTER_HOME") or settings.home_path / "dagster").resolve()
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in ("dagster.yaml", "workspace.yaml"):
            if not (place / name).exists():
                shipped = resources.files("graphrag_pipeline").joinpath("data", name)
                (place / name).write_text(shipped.read_text())
    except OSError as error:
        raise StorageError(f"cannot write in {place}: {error.strerror}") from error
    os.environ["DAGSTER_HOME"] = str(place)
    return place


def index_store(settings: Settings) -> IndexStore:
    """Return the store of the configured home."""
    return IndexStore(settings.home_path / "index.duckdb")


def index_folder(settings: Settings, folder: Path) -> IndexOutcome:
    """Index what changed in a folder since the last time, then refresh and publish.

    Raises RunFailedError with the reason when a stage fails; what was finished is kept, and the
    next run goes on from there.
    """
    log = BatchLog(settings.home_path)
    log.cut(folder, settings.batches, max_bytes=int(settings.input.max_file_mb * 1e6))
    return run_pending(settings, index_store(settings), log)


def run_pending(settings: Settings, store: IndexStore, log: BatchLog) -> IndexOutcome:
    """Run all batches that are not done, then refresh what depends on them and publish."""
    dagster_home(settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        from graphrag_pipeline.definitions import INGEST_JOB, REFRESH_JOB, defs
    pending = pending_batches(store, log, settings)
    run_ids = []
    with dg.DagsterInstance.get() as instance:
        free_dead_runs(instance)
        for keys in _add_partitions(instance, pending):
            tags = {
                _RANGE_START: keys[0],
                _RANGE_END: keys[-1],
                "graphrag/version": stage_versions(settings)["extractions"],
            }
            run_ids.append(_run(instance, defs, INGEST_JOB, tags))
        run_ids.append(_run(instance, defs, REFRESH_JOB, {}))
    return IndexOutcome(pending, run_ids)


def free_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark as failed the runs of this machine whose process is gone, and free what they held.

    A killed run would otherwise keep its place in the pools, and the next one wait for ever.
    """
    started = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    for run in started:
        pid = run.tags.get(_PID, "")
        if run.tags.get(_HOST) == socket.gethostname() and not _is_alive(pid):
            instance.report_run_failed(run, "its process is gone")
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    finished = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
    for key in storage.get_concurrency_keys():
        for run_id in storage.get_concurrency_run_ids() if key else ():
            run = instance.get_run_by_id(run_id)
            if run is None or run.status in finished:
                storage.free_concurrency_slots_for_run(run_id)


def _run(
    instance: dg.DagsterInstance, defs: dg.Definitions, job_name: str, tags: dict[str, str]
) -> str:
    job = defs.resolve_job_def(job_name)
    own = {_PID: _pid(), _HOST: socket.gethostname()}
    result = job.execute_in_process(
        instance=instance, tags={**tags, **own}, run_config=_QUIET, raise_on_error=False
    )
    if not result.success:
        raise RunFailedError(_why(result))
    return result.run_id


def _why(result: dg.ExecuteInProcessResult) -> str:
    for event in result.all_events:
        if event.is_step_failure and event.step_failure_data.error:
            error = event.step_failure_data.error
            while error.cause:
                error = error.cause
            text = error.message.strip().splitlines()[-1 if "\n" in error.message else 0]
            return f"{event.step_key}: {text.split('Error: ', 1)[-1]} (run {result.run_id})"
    failed = [
        evaluation
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed and evaluation.blocking
    ]
    names = ", ".join(f"{c.asset_key.to_user_string()} {c.check_name}" for c in failed)
    return f"the check failed: {names}" if failed else f"run {result.run_id} failed"


def _add_partitions(
    instance: dg.DagsterInstance, keys: Sequence[str]
) -> Iterator[Sequence[str]]:
    """Add the keys and yield them in runs that are unbroken in Dagster's order of partitions."""
    from assets import BATCHES

    name = str(BATCHES.name)
    known = set(instance.get_dynamic_partitions(name))
    instance.add_dynamic_partitions(name, [key for key in keys if key not in known])
    place = {key: number for number, key in enumerate(instance.get_dynamic_partitions(name))}
    run: list[str] = []
    for key in sorted(keys, key=place.__getitem__):
        if run and place[key] != place[run[-1]] + 1:
            yield run
            run = []
        run.append(key)
    if run:
        yield run


def _pid() -> str:
    return f"{os.getpid()}:{_started_at(os.getpid())}"


def _is_alive(tag: str) -> bool:
    pid, _, started = tag.partition(":")
    return pid.isdigit() and bool(started) and _started_at(int(pid)) == started


def _started_at(pid: int) -> str:
    """Return when a process started, in the kernel's ticks: tells a reused number apart."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return "" if not shutil.which("ps") else _ps_started_at(pid)


def _ps_started_at(pid: int) -> str:
    import subprocess

    found = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return found.stdout.strip()
