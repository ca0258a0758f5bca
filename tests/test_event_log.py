"""Dagster's event log keeps its files open while a run goes on, and holds the same."""

import contextlib
import hashlib
import inspect
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqliteEventLogStorage
from sqlalchemy import create_engine, text
from sqlalchemy.engine import Engine
from sqlalchemy.event import listen, remove

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening import memory
from graphrag_pipeline.orchestration import event_log
from graphrag_pipeline.orchestration.event_log import kept_open
from graphrag_pipeline.orchestration.runs import told_of_history


@dg.asset
def one():
    return dg.MaterializeResult(metadata={"n": 1})


@dg.asset(deps=[one])
def two():
    return dg.MaterializeResult(metadata={"n": 2})


JOB = dg.Definitions(assets=[one, two], jobs=[dg.define_asset_job("both")])


def run(instance: dg.DagsterInstance) -> str:
    return JOB.resolve_job_def("both").execute_in_process(instance=instance).run_id


def events(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [str(e.dagster_event_type) for e in instance.all_logs(run_id) if e.dagster_event_type]


def materialised(instance: dg.DagsterInstance) -> int:
    return len(instance.fetch_materializations(one.key, limit=10).records)


def test_a_run_writes_the_same_events_where_files_are_kept_open(tmp_path, monkeypatch):
    opened = []
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        plain = run(instance)
        make = event_log.create_engine
        monkeypatch.setattr(
            event_log, "create_engine", lambda url, **more: opened.append(url) or make(url, **more)
        )
        with kept_open(instance):
            kept = run(instance)
            assert materialised(instance) == 2
        assert sorted(map(os.path.basename, opened)) == sorted(
            [f"{kept}.db", "index.db", "runs.db"]
        )
        assert (
            not {"_connect", "store_event", "get_asset_records", *event_log._ASKED_OFTEN}
            & vars(instance.event_log_storage).keys()
        )
        assert "connect" not in vars(instance.run_storage)
    with dg.DagsterInstance.local_temp(str(tmp_path)) as afterwards:
        assert isinstance(afterwards.event_log_storage, SqliteEventLogStorage)
        assert events(afterwards, kept) == events(afterwards, plain)
        assert materialised(afterwards) == 2


def test_another_reader_sees_events_at_once(tmp_path):
    with (
        dg.DagsterInstance.local_temp(str(tmp_path)) as writer,
        dg.DagsterInstance.local_temp(str(tmp_path)) as reader,
        kept_open(writer),
    ):
        found = events(reader, run(writer))
        assert found.count("DagsterEventType.ASSET_MATERIALIZATION") == 2
        assert materialised(reader) == 1


def test_what_is_gathered_is_written_in_few_transactions(tmp_path):
    commits = []

    def count(connection):
        commits.append(Path(connection.engine.url.database).stem)

    listen(Engine, "commit", count)
    try:
        with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, kept_open(instance):
            run_id = run(instance)
            assert 0 < commits.count(run_id) < 0.75 * len(instance.all_logs(run_id))
    finally:
        remove(Engine, "commit", count)


def test_what_is_gathered_is_there_for_whoever_asks_and_at_the_end(tmp_path):
    made = dg.AssetMaterialization(one.key)
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        with kept_open(instance):
            instance.report_runless_asset_event(made)
            assert materialised(instance) == 1
            instance.report_runless_asset_event(made)
        assert materialised(instance) == 2


def test_an_error_in_what_is_gathered_is_raised_and_stops_no_later_event(tmp_path, monkeypatch):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, kept_open(instance):
        run_ = instance.create_run_for_job(JOB.resolve_job_def("both"))
        store = SqliteEventLogStorage.store_event
        monkeypatch.setattr(
            SqliteEventLogStorage, "store_event", lambda *_: (_ for _ in ()).throw(OSError("full"))
        )
        with pytest.raises(OSError, match="full"):
            instance.report_engine_event("first", run_)
        monkeypatch.setattr(SqliteEventLogStorage, "store_event", store)
        instance.report_engine_event("second", run_)
        assert [e.message for e in instance.all_logs(run_.run_id)][-1] == "second"


@pytest.mark.parametrize("harm", [lambda file: file.write_bytes(b"no database" * 999), Path.unlink])
def test_a_run_has_its_file_whatever_became_of_the_empty_one(tmp_path, harm):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, kept_open(instance):
        first = run(instance)
        (empty,) = tmp_path.rglob(event_log._EMPTY)
        copied = run(instance)
        harm(empty)
        made = run(instance)
        assert events(instance, first) == events(instance, copied) == events(instance, made)
        assert len({tables(tmp_path, run_id) for run_id in (first, copied, made)}) == 1


def tables(place: Path, run_id: str) -> tuple[tuple[str, ...], ...]:
    (file,) = place.rglob(f"{run_id}.db")
    with contextlib.closing(sqlite3.connect(file)) as con:
        (mode,) = con.execute("PRAGMA journal_mode").fetchall()
        versions = con.execute("SELECT version_num FROM alembic_version").fetchall()
        return (
            mode,
            *versions,
            *con.execute("SELECT sql FROM sqlite_master ORDER BY 1").fetchall(),
        )


def test_tables_are_those_that_dagster_sees(tmp_path):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        log = instance.event_log_storage
        names = (
            "event_logs",
            "asset_keys",
            "asset_event_tags",
            "concurrency_slots",
            "no_such_table",
        )
        plain = [log.has_table(name) for name in names]
        with kept_open(instance):
            assert [log.has_table(name) for name in names] == plain
            assert [log.has_table(name) for name in names] == plain
        assert plain[0]
        assert not plain[-1]


def test_an_index_or_a_column_that_dagster_has_made_is_asked_for_once(tmp_path, monkeypatch):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, kept_open(instance):
        log = instance.event_log_storage
        assert not log.has_secondary_index("made later")
        log.enable_secondary_index("made later")
        assert log.has_secondary_index("made later")
        assert log.has_asset_key_col("cached_status_data")
        monkeypatch.setattr(log, "index_connection", None)
        assert log.has_secondary_index("made later")
        assert log.has_asset_key_col("cached_status_data")


def test_what_is_known_of_an_asset_is_read_again_once_it_has_changed(tmp_path, monkeypatch):
    asked = []
    read = SqliteEventLogStorage.get_asset_records

    def count(log, keys=None):
        asked.append(keys)
        return read(log, keys)

    monkeypatch.setattr(SqliteEventLogStorage, "get_asset_records", count)
    with (
        dg.DagsterInstance.local_temp(str(tmp_path)) as another,
        dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
        kept_open(instance),
    ):

        def latest(keys):
            return [record.asset_entry.last_run_id for record in instance.get_asset_records(keys)]

        assert latest([one.key, two.key]) == []
        first = run(instance)
        asked.clear()
        assert latest([one.key, two.key]) == latest([two.key, one.key]) == [first, first]
        assert asked == [[two.key]]  # the first was read for the second
        instance.report_runless_asset_event(dg.AssetMaterialization(two.key, metadata={"n": 3}))
        asked.clear()
        assert latest([one.key, two.key]) == [first, ""]
        assert asked == [[two.key]]
        second = run(another)
        assert latest([one.key, two.key]) == [second, second]
        assert len(instance.get_asset_records()) == 2


def test_a_stage_says_what_it_was_made_from_as_without_files_kept_open(tmp_path):
    def made_from(instance):
        run(instance)
        record = instance.get_latest_materialization_event(two.key)
        assert record is not None
        assert record.asset_materialization is not None
        tags = record.asset_materialization.tags or {}
        return tags["dagster/input_event_pointer/one"]

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        plain = int(made_from(instance))
        with kept_open(instance):
            kept = [int(made_from(instance)) for _ in range(2)]
        ones = instance.fetch_materializations(one.key, limit=3).records
        assert [plain, *kept] == [record.storage_id for record in reversed(ones)]


def test_any_other_event_log_is_left_alone():
    with dg.DagsterInstance.ephemeral() as instance:
        before = dict(vars(instance.event_log_storage))
        with kept_open(instance):
            assert vars(instance.event_log_storage) == before
            run(instance)
            assert materialised(instance) == 1


# What `kept_open` puts itself in the place of, and what it leans on.
LEANS_ON = (
    *("_connect", "_initdb", "conn_string_for_shard", "has_asset_key_col", "has_secondary_index"),
    *("has_table", "index_connection", "run_connection", "store_event", "path_for_shard"),
    "get_asset_records",
)
AS_READ = "b9ebdc014110d535"


def test_dagster_opens_its_files_as_it_did_when_this_was_written():
    sources = [inspect.getsource(getattr(SqliteEventLogStorage, name)) for name in LEANS_ON]
    digest = hashlib.sha256("".join(sources).encode()).hexdigest()[:16]
    assert digest == AS_READ, (
        f"Dagster's event log has changed in {', '.join(LEANS_ON)}: read them, see that "
        "orchestration/event_log.py still does the same, and write down the new hash"
    )


def test_threads_that_write_to_several_runs_at_once_lose_no_event(tmp_path):
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, kept_open(instance):
        runs = [instance.create_run_for_job(JOB.resolve_job_def("both")) for _ in range(3)]

        def write(number):
            instance.report_engine_event(f"event {number}", runs[number % 3])
            return len(instance.all_logs(runs[number % 3].run_id))

        with ThreadPoolExecutor(6) as threads:
            assert all(threads.map(write, range(60)))
        for place, run_ in enumerate(runs):
            events_ = [entry.dagster_event for entry in instance.all_logs(run_.run_id)]
            told = [event.message for event in events_ if event]
            written = sorted(text for text in told if text and text.startswith("event "))
            assert written == sorted(f"event {number}" for number in range(place, 60, 3))


@pytest.mark.parametrize("memory_is_short", [False, True])
def test_a_full_disk_is_told_of_a_history_in_one_line_also_where_memory_is_short(
    tmp_path, monkeypatch, memory_is_short
):
    monkeypatch.setattr(memory, "memory_is_short", lambda: memory_is_short)
    engine = create_engine(f"sqlite:///{tmp_path / 'history.db'}")
    with engine.connect() as con:
        con.execute(text("PRAGMA max_page_count = 1"))
        with (
            pytest.raises(StorageError, match=r"history.*database or disk is full") as told,
            told_of_history(tmp_path),
        ):
            con.execute(text("CREATE TABLE runs (id TEXT)"))
    assert "\n" not in str(told.value)
