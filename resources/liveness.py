"""Liveness of Dagster's runs: which are really under way, and which died without a word.

A process that executes a run holds a lock on a file named after it, in ``DAGSTER_HOME/alive``. The
operating system lets go of the lock when the process ends, however it ends; Dagster itself would
show a killed run as started for ever, and keep its place in the pools. Where each step has a
process, the lock is that of the step, and the process that waits for it is looked for besides.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import dagster as dg

from graphrag_pipeline.core.hardening.locks import hold, is_held

_UNDER_WAY = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_STEP_HAS_PROCESS = dg.DagsterEventType.STEP_WORKER_STARTED


def show_life(instance: dg.DagsterInstance, run_id: str) -> None:
    """Let others see that this process executes the run, for as long as the process lives.

    The file stays open on purpose: the last word of a run, its success, is written after
    everything it used is closed. Where the disk is full or read-only the run goes on unseen.
    """
    path = _sign(instance, run_id)
    beside = path.with_suffix(".new")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        hold(beside)
        beside.rename(path)


def end_dead_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Report the runs whose process is gone as failed, and free what they held.

    Returns the runs that are under way. Runs of other machines and of other projects show no sign
    here and are left alone.
    """
    living, dead = _living_and_dead(instance)
    for run in dead:
        instance.report_run_failed(run, "its process is gone: killed, or the machine stopped")
    _free_slots(instance)
    _forget_finished(instance)
    return living


def count_dead_runs(instance: dg.DagsterInstance) -> int:
    """Return how many runs :func:`end_dead_runs` would report as failed."""
    return len(_living_and_dead(instance)[1])


def _living_and_dead(
    instance: dg.DagsterInstance,
) -> tuple[list[dg.DagsterRun], list[dg.DagsterRun]]:
    living, dead = [], []
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY)):
        alive = _is_alive(_sign(instance, run.run_id))
        if alive is False:
            alive = _waits_for_steps(instance, run.run_id)
        if alive is not None:
            (living if alive else dead).append(run)
    return living, dead


def _waits_for_steps(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Return whether a process lives that gives each step of the run a process of its own.

    What is materialised on an asset's page runs so: nobody holds the sign between two steps.
    """
    if not instance.get_records_for_run(run_id, of_type=_STEP_HAS_PROCESS, limit=1).records:
        return False
    told = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records
    for entry in (record.event_log_entry for record in told):
        pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid and _lives_since(int(str(pid.value)), entry.timestamp):
            return True
    return False


def _lives_since(pid: int, moment: float) -> bool:
    """Return whether the process lives that had this number then, in seconds since 1970.

    Numbers are given again, low ones at once where a container starts anew. Where the system does
    not say when a process began, whichever has the number now is taken for it.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return True
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")
    return time.time() - age < moment + 1


def _free_slots(instance: dg.DagsterInstance) -> None:
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    for run_id in storage.get_concurrency_run_ids():
        if _is_finished(instance, run_id):
            storage.free_concurrency_slots_for_run(run_id)


def _forget_finished(instance: dg.DagsterInstance) -> None:
    for path in _sign(instance, "").parent.glob("*.lock"):
        # A process shows its life before Dagster knows of its run.
        if not _is_alive(path) and _is_finished(instance, path.stem):
            path.unlink(missing_ok=True)


def _is_finished(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)
    return run is None or run.is_finished


def _is_alive(sign: Path) -> bool | None:
    """Return whether a process holds the file; None where there is no file."""
    try:
        return is_held(sign)
    except FileNotFoundError:
        return None
    except OSError:
        return True


def _sign(instance: dg.DagsterInstance, run_id: str) -> Path:
    return Path(instance.root_directory) / "alive" / f"{run_id}.lock"
