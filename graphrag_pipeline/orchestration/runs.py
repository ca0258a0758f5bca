"""Runs from the command line: the same jobs as the UI's, so that they are in its history."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.instance import InstanceRef
from dagster._core.utils import make_new_run_id

from graphrag_pipeline.assets.names import BATCHES
from graphrag_pipeline.core.errors import (
    BusyError,
    CheckFailedError,
    ConfigError,
    GraphRAGError,
    NothingPublishedError,
    StorageError,
)
from graphrag_pipeline.core.extras import require_extra
from graphrag_pipeline.core.hardening.files import (
    is_disk_full,
    make_folder,
    replace_durably,
    told_of_disk,
    write_beside,
)
from graphrag_pipeline.core.hardening.interrupts import end_if_interrupted, hearing_interrupts
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.hardening.memory import (
    OutOfMemoryError,
    as_out_of_memory,
    says_out_of_memory,
)
from graphrag_pipeline.core.hardening.temporary import sweep, sweep_home, temporary_folder
from graphrag_pipeline.core.home import Home, make_home
from graphrag_pipeline.core.service_settings import IN_PROCESS
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.definitions import INGEST_JOB, REFRESH_JOB, build_definitions
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.marts.build import MARTS_JOB, built_marts, marts_outdated
from graphrag_pipeline.orchestration.event_log import kept_open
from graphrag_pipeline.pipeline.stages import PUBLISH
from graphrag_pipeline.pipeline.updating import cut_batches
from graphrag_pipeline.planning.pending import nothing_pending, pending_batches
from graphrag_pipeline.planning.status import changes_in
from graphrag_pipeline.releases.kept_releases import nothing_published
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.releases.publishing import current_release
from graphrag_pipeline.resources.index import BESIDE_OTHERS
from graphrag_pipeline.resources.launching import ALONE, LAUNCHERS, Launcher, launcher_of
from graphrag_pipeline.resources.liveness import end_dead_runs, show_life
from graphrag_pipeline.sensors.runs import COMMAND, FIRST_BATCH, LAST_BATCH, VERSION, files_of
from graphrag_pipeline.store.spending import LEDGER_TAG, ledger_position, uses_model
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import ask_for_clustering

if TYPE_CHECKING:
    from dagster_shared.error import SerializableErrorInfo

    from graphrag_pipeline.index import Index, Update

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_POLL_SECONDS = 1.0
_HISTORY = "history"
_NOT_IN_ADDRESSES = frozenset("?%")
_ADDRESSES = b"DAGSTER_GRAPHRAG_"
"""How variables begin that launchers set for Dagster: one process alone sets none."""
_TOLD_EXIT_CODES = (2, 4, 5, 6, 7)


_FORGOTTEN = (
    "a purge has removed Dagster's record of this run while it was at work: run the command again"
)


class RunFailedError(GraphRAGError):
    """A run of the pipeline failed; the last release stays published.

    Its exit code is that of the error that was the reason, where that has one of its own.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class IndexOutcome:
    """Result of `index`: the batches it ran, the ids of its Dagster runs, whether it published."""

    batches: Sequence[str]
    run_ids: Sequence[str]
    is_new: bool


@dataclass(frozen=True)
class MartsOutcome:
    """The result of `marts`."""

    file: str
    release: str
    """The release the marts tell of."""
    rows: Mapping[str, int]
    """Rows of each mart."""
    built: bool
    """Whether they were built now: False if they told of the published release already."""
    tests_passed: int
    tests_warned: int
    run: str | None


def dagster_home(settings: Settings) -> Path:
    """Return Dagster's home: $DAGSTER_HOME, or ``dagster`` in the home folder; made if missing."""
    folder_name = os.environ.get("DAGSTER_HOME")
    place = Path(folder_name or Home(settings.home_path).dagster).resolve()
    _require_plain(place)
    with told_of_disk(f"cannot write in {place}"):
        make_home(settings)
        make_folder(place)
        _write_configuration(place, settings)
        if settings.workers.launcher == IN_PROCESS and not (place / _HISTORY).exists():
            with locked(place / "storage.lock"):
                _make_storage(place)
    return place


def _require_plain(place: Path) -> None:
    """Raise ConfigError for a path that Dagster's addresses of files would cut or misread."""
    if characters := _NOT_IN_ADDRESSES & set(str(place)):
        raise ConfigError(
            f"the path {place} holds {min(characters)}, which Dagster's history cannot read: "
            "name another folder in GRAPHRAG_HOME (or DAGSTER_HOME)"
        )


def _write_configuration(place: Path, settings: Settings) -> None:
    """Write the files that Dagster reads, unless somebody has written others."""
    launcher = launcher_of(settings)
    workspace = resources.files("graphrag_pipeline").joinpath("data", "workspace.yaml")
    _put_ours(place / "workspace.yaml", workspace.read_bytes())
    _put_ours(place / "dagster.yaml", launcher.configuration(), launcher)
    launcher.set_addresses(settings)


def _put_ours(path: Path, data: bytes, launcher: Launcher | None = None) -> None:
    """Write a file where there is none, or that of another launcher."""
    if not path.exists() or (launcher and _is_of_another(path.read_bytes(), launcher)):
        write_beside(path, data)


def _is_of_another(configuration: bytes, launcher: Launcher) -> bool:
    if launcher is ALONE:
        return _ADDRESSES in configuration
    others = (each for each in LAUNCHERS.usable().values() if each is not launcher)
    return configuration in [other.configuration() for other in others]


def _make_storage(place: Path) -> None:
    """Make Dagster's own files beside their place and move them there, the last one last.

    Dagster takes a file that is there for a finished one: a first run killed while it made them
    would leave a home that no run could ever use. Call it with a lock held: another process may
    use them as soon as they are all there.
    """
    sweep(place)
    if (place / _HISTORY).exists():
        return
    with temporary_folder(place, "new") as new:
        with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(new), config_dir=str(place))):
            pass
        for file in sorted(new.iterdir(), key=lambda path: path.name == _HISTORY):
            try:
                replace_durably(file, place / file.name)
            except OSError:
                if not (place / file.name).exists():
                    raise


def update_by_runs(index: Index, folder: Path) -> Update:
    """Return what :meth:`Index.update` does, done by runs: of a shared index, by its workers."""
    from graphrag_pipeline.index import Update

    quiet = index.settings.input.settle_seconds
    outcome = index_folder(index, folder, settle_seconds=quiet)
    release = current_release(index)
    if release is None:
        raise NothingPublishedError(nothing_published(index.home))
    return Update(
        batches=list(outcome.batches),
        changes=changes_in(index.batches, outcome.batches),
        release=release.id,
        is_new=outcome.is_new,
        counts=release.counts,
    )


def index_folder(
    workspace: Workspace,
    folder: Path,
    *,
    recluster: bool = False,
    remove_all: bool = False,
    settle_seconds: float = 0,
    as_looked: bool = False,
) -> IndexOutcome:
    """Index what changed in a folder since the last time, then refresh and publish.

    Files changed in the last ``settle_seconds`` are left for the next time. With ``recluster``,
    communities are clustered anew instead of repaired. With ``as_looked`` the folder is not
    scanned again after :func:`look_at`. Raises RemovalError, and does nothing, where
    most documents are gone, unless ``remove_all``; RunFailedError with the reason when a stage
    fails: what was finished is kept, and the next run goes on from there.
    """
    cut_batches(
        workspace, folder, remove_all=remove_all, settle_seconds=settle_seconds, as_looked=as_looked
    )
    if recluster:
        ask_for_clustering(workspace.store)
    return run_pending(workspace)


def run_pending(workspace: Workspace) -> IndexOutcome:
    """Run all batches that are not done, then refresh what depends on them and publish.

    Where another run that was waited for has done all of it, no run is started.
    """
    settings = workspace.settings
    defs, launcher = build_definitions(settings), launcher_of(settings)
    version = {VERSION: stage_versions(settings)["extractions"]}
    run_ids = []
    shared = {COMMAND: "index"}
    if uses_model(settings):
        shared[LEDGER_TAG] = str(ledger_position(settings))
    with (
        workspace.store.session(),
        workspace.coordinating(),
        told_of_history(workspace.home),
        opened_instance(settings) as instance,
    ):
        if _wait_for_others(instance, REFRESH_JOB) and nothing_pending(workspace):
            return IndexOutcome((), (), is_new=False)
        pending = pending_batches(workspace)
        parts = launcher.make_parts(workspace, instance, pending, _QUIET, {**version, **shared})
        run_ids += parts or ()
        for keys in _add_partitions(instance, pending if parts is None else ()):
            files = files_of([workspace.batches.get(key) for key in keys])
            tags = {FIRST_BATCH: keys[0], LAST_BATCH: keys[-1], **files, **version, **shared}
            run_ids.append(_run(instance, defs, INGEST_JOB, tags).run_id)
        with launcher.spreading(workspace, instance, _QUIET, shared):
            refresh = _run(instance, defs, REFRESH_JOB, shared)
    return IndexOutcome(pending, [*run_ids, refresh.run_id], _has_published(refresh))


@contextlib.contextmanager
def told_of_history(home: Path) -> Iterator[None]:
    """Let what SQLite raises where Dagster's history cannot be written arrive as StorageError.

    It arrives as OutOfMemoryError where memory is what it lacks: SQLite calls that a disk's error.
    """
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        if not isinstance(error.orig, sqlite3.Error):
            raise
        out = None if is_disk_full(home, error.orig) else as_out_of_memory(error.orig)
        raise out or StorageError(
            f"cannot use Dagster's history in {home}: {error.orig}; is the disk full? What was "
            "finished is kept; run the command again to continue"
        ) from None


def _has_published(refresh: dg.ExecuteInProcessResult) -> bool:
    published = refresh.asset_materializations_for_node(PUBLISH.name)
    return any(each.metadata["new_release"].value for each in published)


def run_marts(settings: Settings, *, force: bool = False) -> MartsOutcome:
    """Build the marts, in the job of the UI, unless they tell of all that there is.

    Raises ConfigError where dbt is not installed, NothingPublishedError when there is nothing to
    build from, and RunFailedError with the reason when a model or a data test fails; the last marts
    then stay.
    """
    require_extra("marts", "marts")
    home = settings.home_path
    release_file(home)
    sweep_home(home)
    if not force and not marts_outdated(home):
        return _marts_outcome(home)
    defs = build_definitions(settings, marts=True)
    # dagster-dbt repeats all that dbt says on standard output, which is for results.
    with contextlib.redirect_stdout(io.StringIO()), opened_instance(settings) as instance:
        return _marts_outcome(home, _run(instance, defs, MARTS_JOB, {}))


def _marts_outcome(home: Path, run: dg.ExecuteInProcessResult | None = None) -> MartsOutcome:
    marts = built_marts(home)
    if marts is None:
        raise StorageError(f"{Home(home).marts} cannot be read: build it again, with --force")
    passed = [check.passed for check in run.get_asset_check_evaluations()] if run else []
    return MartsOutcome(
        file=str(Home(home).marts),
        release=marts.release,
        rows=marts.rows,
        built=run is not None,
        tests_passed=sum(passed),
        tests_warned=len(passed) - sum(passed),
        run=run.run_id if run else None,
    )


@contextlib.contextmanager
def opened_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """Yield Dagster's instance, without its capture of what each step prints.

    Two helper processes for every step do that: they hold back progress bars, cost as much time
    as the steps of a small index, and print tracebacks of their own on Ctrl-C.
    """
    nowhere = {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
        "config": {},
    }
    place = str(dagster_home(settings))
    ref = InstanceRef.from_dir(place, overrides={"compute_logs": nowhere})
    with (
        launcher_of(settings).reaching(settings),
        dg.DagsterInstance.from_ref(ref) as instance,
        kept_open(instance),
    ):
        yield instance


def _wait_for_others(instance: dg.DagsterInstance, job_name: str) -> bool:
    """Wait until no run of this job is under way, and none that writes to the index.

    Returns whether there was one.

    Dagster's pools would make a run wait too, but in the middle, in silence, and on a processor
    core of its own: its in-process executor asks again without a pause.
    """
    last_id = ""
    while runs := [
        run
        for run in end_dead_runs(instance)
        if BESIDE_OTHERS not in run.tags or run.job_name == job_name
    ]:
        run = runs[0]
        if run.run_id != last_id:
            last_id = run.run_id
            sys.stderr.write(f"waiting for run {last_id[:8]} ({run.job_name}) to end\n")
        time.sleep(_POLL_SECONDS)
    return bool(last_id)


def _run(
    instance: dg.DagsterInstance, defs: dg.Definitions, job_name: str, tags: dict[str, str]
) -> dg.ExecuteInProcessResult:
    _wait_for_others(instance, job_name)
    # From before it is there: whenever this process is killed, the run is seen to be dead.
    run_id = make_new_run_id()
    show_life(instance, run_id)
    with hearing_interrupts():
        result = defs.resolve_job_def(job_name).execute_in_process(
            instance=instance, run_id=run_id, tags=tags, run_config=_QUIET, raise_on_error=False
        )
        # Dagster types it as there; it is what its history holds in the end.
        if not isinstance(result.dagster_run, dg.DagsterRun):
            raise BusyError(_FORGOTTEN)
        # Between two steps, no step tells of it.
        end_if_interrupted()
    if not result.success:
        if _was_interrupted(result):
            raise KeyboardInterrupt
        raise RunFailedError(_why(result), _exit_code(result))
    return result


def _was_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    errors = (error for event in result.all_events for error in _errors(event))
    return any(e.cls_name == dg.DagsterExecutionInterruptedError.__name__ for e in errors)


def _exit_code(result: dg.ExecuteInProcessResult) -> int:
    for event in result.all_events:
        failure = event.step_failure_data.user_failure_data if event.is_step_failure else None
        code = failure.metadata.get("exit_code") if failure else None
        value = code.value if code else None
        if isinstance(value, int) and value in _TOLD_EXIT_CODES:
            return value
        if event.is_step_failure and _ran_out_of_memory(event):
            return OutOfMemoryError.exit_code
    return RunFailedError.exit_code


def _why(result: dg.ExecuteInProcessResult) -> str:
    """Return in one line why a run failed: its failed checks, or the error of its first step."""
    failed_checks = [
        f"{check.asset_key.to_user_string()} {check.check_name} ({check.description})"
        for check in result.get_asset_check_evaluations()
        if not check.passed and check.blocking
    ]
    errors = [_step_error(event) for event in result.all_events if event.is_step_failure]
    reasons = [str(CheckFailedError(failed_checks))] if failed_checks else [*errors, "it failed"]
    return f"{reasons[0]} (run {result.run_id})"


def _step_error(event: dg.DagsterEvent) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data and failure.user_failure_data.description:
        return f"{event.step_key}: {failure.user_failure_data.description}"
    if _ran_out_of_memory(event):
        return f"{event.step_key}: {OutOfMemoryError()}"
    errors = [*_errors(event)]
    message = errors[-1].message.strip().splitlines()[0] if errors else "unknown error"
    return f"{event.step_key}: {message}"


def _ran_out_of_memory(event: dg.DagsterEvent) -> bool:
    """Whether it was Dagster itself that got no more memory."""
    return any(says_out_of_memory(each.cls_name or "", each.message) for each in _errors(event))


def _errors(event: dg.DagsterEvent) -> Iterator[SerializableErrorInfo]:
    """Yield the error of a step that failed, what it was raised from, and so on."""
    error = event.step_failure_data.error if event.is_step_failure else None
    while error:
        yield error
        error = error.cause


def _add_partitions(instance: dg.DagsterInstance, keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Add the keys and yield them in runs that are unbroken in Dagster's order of partitions."""
    existing = set(instance.get_dynamic_partitions(BATCHES))
    instance.add_dynamic_partitions(BATCHES, [key for key in keys if key not in existing])
    place = {key: number for number, key in enumerate(instance.get_dynamic_partitions(BATCHES))}
    run: list[str] = []
    for key in sorted(keys, key=place.__getitem__):
        if run and place[key] != place[run[-1]] + 1:
            yield run
            run = []
        run.append(key)
    if run:
        yield run
