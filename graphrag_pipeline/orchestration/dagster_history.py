"""The history of Dagster's runs, emptied: names of documents stand in it, and parts of their texts.

Deleting runs through Dagster leaves the rows of their assets and checks, and everything in the free
pages of its SQLite files. So tables are emptied here, and the files written anew. What remains of
an asset is that it was materialised.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage

from graphrag_pipeline.assets.names import BATCHES
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.database import compact
from graphrag_pipeline.orchestration.runs import opened_instance
from graphrag_pipeline.resources.liveness import count_dead_runs, end_dead_runs
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.upkeep.run_histories import RunHistory

_BUSY_SECONDS = 60.0
_RUNS = {
    "history/runs.db": ("runs", "run_tags"),
    "history/runs/index.db": ("event_logs", "asset_check_executions"),
}
_ALL = {
    "history/runs.db": ("snapshots", "bulk_actions", "backfill_tags"),
    "history/runs/index.db": ("asset_keys", "asset_event_tags"),
    "schedules/schedules.db": ("job_ticks", "asset_daemon_asset_evaluations"),
}
_FINISHED = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
_UNFINISHED = [status for status in dg.DagsterRunStatus if status not in _FINISHED]
_INDEX = "index"


def empty_history(settings: Settings) -> int:
    """Take all finished runs out of the history in the home of an index; return their number.

    Runs that are under way stay as they are. A history that is kept by another database than
    Dagster's own files is left alone. Raises StorageError where a file cannot be written.
    """
    place = Home(settings.home_path).dagster
    with opened_instance(settings) as instance:
        if not _is_in_files(instance):
            return 0
        end_dead_runs(instance)
        under_way = instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED))
        n_finished = instance.get_runs_count() - len(under_way)
        assets = dict(_materialised(instance))
    unfinished = {run.run_id for run in under_way}
    try:
        _empty(place, unfinished)
    except (OSError, sqlite3.Error) as error:
        raise StorageError(f"cannot use {place}: {error}; run the command again") from None
    with opened_instance(settings) as instance:
        _tell_again(instance, assets, BatchLog(settings.home_path))
    return n_finished


def finished_runs(settings: Settings) -> int:
    """Return how many runs :func:`empty_history` would take out."""
    with opened_instance(settings) as instance:
        if not _is_in_files(instance):
            return 0
        n_unfinished = instance.get_runs_count(dg.RunsFilter(statuses=_UNFINISHED))
        return instance.get_runs_count() - n_unfinished + count_dead_runs(instance)


def _is_in_files(instance: dg.DagsterInstance) -> bool:
    return type(instance.event_log_storage) is SqliteEventLogStorage


def _materialised(instance: dg.DagsterInstance) -> Iterator[tuple[dg.AssetKey, set[str]]]:
    """Yield the assets that were materialised, with those of their partitions that were."""
    for key in instance.all_asset_keys():
        if instance.get_latest_materialization_event(key):
            yield key, instance.get_materialized_partitions(key)


def _tell_again(
    instance: dg.DagsterInstance, assets: Mapping[dg.AssetKey, Collection[str]], log: BatchLog
) -> None:
    """Say of assets, without a run, that they are there; of their partitions, those still known."""
    batches = {batch.key for batch in log.batches()}
    for key, partitions in assets.items():
        for partition in sorted(batches.intersection(partitions)):
            instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=partition))
        if not partitions:
            instance.report_runless_asset_event(dg.AssetMaterialization(key))
    for partition in set(instance.get_dynamic_partitions(BATCHES)) - batches:
        instance.delete_dynamic_partition(BATCHES, partition)


def _empty(place: Path, unfinished: Collection[str]) -> None:
    for name in {**_RUNS, **_ALL}:
        if (place / name).is_file():
            with contextlib.closing(_opened(place / name)) as con:
                tables = {table for (table,) in con.execute("SELECT name FROM sqlite_master")}
                con.execute("BEGIN IMMEDIATE")
                for table in tables.intersection(_RUNS.get(name, ())):
                    known = ", ".join("?" * len(unfinished))
                    con.execute(
                        f"DELETE FROM {table} WHERE run_id IS NULL OR run_id NOT IN ({known})",
                        [*unfinished],
                    )
                for table in tables.intersection(_ALL.get(name, ())):
                    if not (unfinished and table == "snapshots"):
                        con.execute(f"DELETE FROM {table}")
                con.execute("COMMIT")
                compact(con)
    for path in _files_of_runs(place):
        if path.name.partition(".")[0] not in {_INDEX, *unfinished}:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _files_of_runs(place: Path) -> Iterator[Path]:
    """Yield the files of events, and the folders of what was printed; each begins with its run."""
    yield from (place / "history" / "runs").glob("*.db*")
    yield from (place / "storage").glob("*")


def _opened(path: Path) -> sqlite3.Connection:
    con = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    con.execute("PRAGMA secure_delete = ON")
    return con


def history_elsewhere(settings: Settings) -> str:
    """Say where Dagster's history is if that is not the home of the index."""
    named = os.environ.get("DAGSTER_HOME")
    place = Path(named).resolve() if named else None
    if place in (None, Home(settings.home_path).dagster.resolve()):
        return ""
    return f"Dagster's history in {place}: delete its runs in the UI"


DAGSTER = RunHistory(finished_runs, empty_history, history_elsewhere)
