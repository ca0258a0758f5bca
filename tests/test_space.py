"""A run for which the disk has no room is refused before it begins."""

import logging

import pytest
from conftest import Engine

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.settings import BatchSettings, Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.planning.plan import plan_run
from graphrag_pipeline.store import space
from graphrag_pipeline.store.space import check_space, free_bytes, space_for


@pytest.fixture
def indexed(tmp_path) -> Engine:
    engine = Engine(tmp_path)
    engine.write({"a.txt": "Ada Lovelace met Charles Babbage in London."})
    Index(engine.workspace.settings).update(engine.inbox)
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


def test_a_run_that_may_fit_is_warned_of_and_goes_on(indexed: Engine, monkeypatch, caplog):
    leave(monkeypatch, space_for(indexed.workspace, []).least)
    with caplog.at_level(logging.WARNING, logger="graphrag_pipeline"):
        update = Index(indexed.workspace.settings).update(indexed.inbox)
    assert update.counts["documents"] == 2
    assert "little room in" in caplog.text


def test_the_check_can_be_turned_off(indexed: Engine, monkeypatch, caplog):
    leave(monkeypatch, 0)
    indexed.settings = Settings(batches=BatchSettings(check_space=False))
    check_space(indexed.workspace, [])
    assert caplog.text == ""


def test_a_plan_says_what_is_needed_and_free(indexed: Engine, monkeypatch):
    leave(monkeypatch, 5_000_000_000)
    plan = plan_run(indexed.workspace, indexed.inbox)
    assert plan.space.free == 5_000_000_000
    assert plan.space.needed > plan.space.least > 0


def test_free_space_is_that_of_the_disk_a_new_home_will_be_on(tmp_path):
    assert abs(free_bytes(tmp_path / "not" / "there") - free_bytes(tmp_path)) < 10**9
