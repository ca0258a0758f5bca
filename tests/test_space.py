"""A run for which the disk has no room is refused before it begins."""

import logging
from pathlib import Path
from typing import Any

import pytest
from artefacts import copy_of

from conftest import Engine
from graphrag_pipeline.assets.names import BATCHES
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.settings import BatchSettings, Settings
from graphrag_pipeline.definitions import INGEST_JOB, REFRESH_JOB, build_definitions
from graphrag_pipeline.index import Index
from graphrag_pipeline.orchestration.runs import RunFailedError, index_folder, opened_instance
from graphrag_pipeline.planning.plan import plan_run
from graphrag_pipeline.store import space
from graphrag_pipeline.store.sources import SourceChange
from graphrag_pipeline.store.space import check_space, free_bytes, space_for


@pytest.fixture
def indexed(tmp_path) -> Engine:
    def make(made: Path) -> None:
        engine = Engine(made)
        engine.write({"a.txt": "Ada Lovelace met Charles Babbage in London."})
        Index(engine.workspace.settings).update(engine.inbox)

    copy_of("space", make, tmp_path)
    engine = Engine(tmp_path)
    engine.write({"b.txt": "Babbage built engines."})
    return engine


def leave(monkeypatch: pytest.MonkeyPatch, n_bytes: int) -> None:
    monkeypatch.setattr(space, "free_bytes", lambda folder: n_bytes)


def test_a_run_is_refused_where_the_index_cannot_be_copied(indexed: Engine, monkeypatch):
    leave(monkeypatch, 1_000_000)
    with pytest.raises(StorageError, match=r"needs about \d+ MB, has 1 MB") as refused:
        Index(indexed.workspace.settings).update(indexed.inbox)
    assert refused.value.exit_code == 5
    assert indexed.rows("SELECT count(*) FROM documents") == [(1,)]
    monkeypatch.undo()
    assert Index(indexed.workspace.settings).update(indexed.inbox).counts["documents"] == 2


@pytest.mark.parametrize("job", [INGEST_JOB, REFRESH_JOB])
def test_a_run_of_dagster_is_refused_before_its_first_stage(indexed: Engine, monkeypatch, job):
    leave(monkeypatch, 1_000_000)
    definitions = build_definitions(indexed.workspace.settings)
    with opened_instance(indexed.workspace.settings) as instance:
        (batch,) = (batch.key for batch in indexed.cut())
        instance.add_dynamic_partitions(BATCHES, [batch])
        run = definitions.resolve_job_def(job).execute_in_process(
            instance=instance,
            partition_key=batch if job == INGEST_JOB else None,
            raise_on_error=False,
        )
    assert not run.success
    assert not [event for event in run.all_events if event.is_step_materialization]
    (failure,) = [event.step_failure_data for event in run.all_events if event.is_step_failure]
    assert failure.user_failure_data.description.startswith("no room in ")
    assert failure.user_failure_data.metadata["exit_code"].value == StorageError.exit_code
    with pytest.raises(RunFailedError, match=r"no room in .* needs about") as refused:
        index_folder(indexed.workspace, indexed.inbox)
    assert refused.value.exit_code == StorageError.exit_code
    assert indexed.rows("SELECT count(*) FROM documents") == [(1,)]


def test_a_run_that_may_fit_is_warned_of_and_goes_on(indexed: Engine, monkeypatch, caplog):
    leave(monkeypatch, space_for(indexed.workspace.settings, []).least)
    with caplog.at_level(logging.WARNING, logger="graphrag_pipeline"):
        update = Index(indexed.workspace.settings).update(indexed.inbox)
    assert update.counts["documents"] == 2
    assert "little room in" in caplog.text


def test_the_check_can_be_turned_off(indexed: Engine, monkeypatch, caplog):
    leave(monkeypatch, 0)
    indexed.settings = Settings(batches=BatchSettings(check_space=False))
    check_space(indexed.workspace.settings, [])
    assert caplog.text == ""


def test_a_plan_says_what_is_needed_and_free(indexed: Engine, monkeypatch):
    leave(monkeypatch, 5_000_000_000)
    plan = plan_run(indexed.workspace, indexed.inbox)
    assert plan.space.free == 5_000_000_000
    assert plan.space.needed > plan.space.least > 0


def test_what_is_needed_is_no_less_than_what_is_taken(tmp_path):
    engine = Engine(tmp_path)
    for number in range(12):
        engine.write({f"{number}.txt": f"{number}: Ada Lovelace met Charles Babbage. " * 200})
    needed = plan_run(engine.workspace, engine.inbox).space.needed
    Index(engine.workspace.settings).update(engine.inbox)
    files = {path.stat().st_ino: path.stat() for path in engine.log.home.rglob("*")}
    assert sum(stat.st_size for stat in files.values()) < needed < 100_000_000


def test_long_vectors_and_structures_take_more(indexed: Engine):
    change = SourceChange(uri="c.txt", action="add", sha256="", n_bytes=10**6, mtime_ns=0)

    def needed(**given: Any) -> int:
        settings = Settings(home=str(indexed.log.home), **given)
        return space_for(settings, [change]).needed // 10**6

    plain = needed()
    assert needed(embeddings={"dimensions": 1536}) - plain == pytest.approx(26, abs=2)
    assert needed(hierarchies={"raptor": True, "hirag": True}) - plain == 16
    assert needed(profile="llm") - plain > 50


def test_free_space_is_that_of_the_disk_a_new_home_will_be_on(tmp_path):
    assert abs(free_bytes(tmp_path / "not" / "there") - free_bytes(tmp_path)) < 10**9
