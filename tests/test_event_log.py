"""Dagster's event log keeps its files open while a run goes on, and holds the same."""

import os

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage

from graphrag_pipeline.orchestration import event_log
from graphrag_pipeline.orchestration.event_log import kept_open


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
        assert sorted(map(os.path.basename, opened)) == sorted([f"{kept}.db", "index.db"])
        assert "_connect" not in vars(instance.event_log_storage)
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


def test_any_other_event_log_is_left_alone():
    with dg.DagsterInstance.ephemeral() as instance:
        before = dict(vars(instance.event_log_storage))
        with kept_open(instance):
            assert vars(instance.event_log_storage) == before
            run(instance)
            assert materialised(instance) == 1
