"""Seconds that stages took: kept with the index, of work that was finished."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.graph import communities
from graphrag_pipeline.pipeline import stages
from graphrag_pipeline.store.workspace import Workspace

SMALL = Settings(embeddings={"dimensions": 32})  # type: ignore[arg-type]


def kept(index: Index) -> dict[str, tuple[int, float]]:
    _, rows = index.sql("SELECT stage, runs, seconds FROM stage_seconds")
    return {stage: (runs, seconds) for stage, runs, seconds in rows}  # pyright: ignore


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Mira Sorrel built the Orlen Dam with Oskar Kovarna.")
    return folder


def index_in(folder: Path) -> Index:
    return Index(SMALL.model_copy(update={"home": str(folder / "home")}))


def test_each_stage_has_its_seconds_and_they_are_no_more_than_the_run(
    plain_stores: None, tmp_path: Path, docs: Path
) -> None:
    index = index_in(tmp_path)
    began = time.perf_counter()
    index.update(docs)
    wall = time.perf_counter() - began
    seconds = kept(index)
    named = {stage.name for stage in stages.refresh_stages(index.settings)}
    assert {"resolution", "graph", "communities", "entities_vectors"} <= set(seconds) <= named
    assert {runs for runs, _ in seconds.values()} == {1}
    assert 0 < sum(each for _, each in seconds.values()) < wall


def test_runs_add_up_and_one_with_nothing_to_do_adds_nothing(
    plain_stores: None, tmp_path: Path, docs: Path
) -> None:
    index = index_in(tmp_path)
    index.update(docs)
    first, workspace = kept(index), Workspace(index.settings)
    for stage in stages.refresh_stages(index.settings):
        with workspace.turn():
            stage.run(workspace)
    assert kept(index) == first
    (docs / "b.txt").write_text("Lin Ruolan wrote to Mira Sorrel about the Orlen Dam.")
    index.update(docs)
    second = kept(index)
    assert second["graph"][0] == 2
    assert second["graph"][1] > first["graph"][1]


def test_what_was_finished_before_a_run_broke_counts_once_it_is_resumed(
    plain_stores: None, tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> communities.CommunityChanges:
        raise RuntimeError("killed")

    index = index_in(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(stages, "update_communities", breaks)
        with pytest.raises(RuntimeError, match="killed"):
            index.update(docs)
    with Workspace(index.settings).store.read() as con:
        before = dict(con.execute("SELECT stage, seconds FROM stage_seconds").fetchall())
    assert before.keys() >= {"resolution", "graph"}
    assert "communities" not in before
    index.update(docs)
    after = kept(index)
    assert after["graph"] == (1, before["graph"])
    assert after["communities"][0] == 1
