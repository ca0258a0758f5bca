"""Histories of runs: a purge empties those in the home, and names those that are elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.upkeep.run_histories import (
    HISTORIES,
    RunHistory,
    finished_runs,
    histories_elsewhere,
    wipe_history,
)


def test_dagsters_history_is_named_where_it_is_not_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, other = Settings(home=str(tmp_path / "home")), tmp_path / "other"
    for place in (None, str(settings.home_path / "dagster")):
        if place:
            monkeypatch.setenv("DAGSTER_HOME", place)
        else:
            monkeypatch.delenv("DAGSTER_HOME", raising=False)
        assert histories_elsewhere(settings) == []
    monkeypatch.setenv("DAGSTER_HOME", str(other))
    named = f"Dagster's history in {other}: delete its runs in the UI"
    assert histories_elsewhere(settings) == [named]


@pytest.mark.parametrize(("elsewhere", "runs"), [("", 3), ("in the cloud: empty it there", 0)])
def test_a_history_is_emptied_in_the_home_and_left_alone_elsewhere(
    tmp_path: Path, elsewhere: str, runs: int
) -> None:
    (tmp_path / "mine" / "history").mkdir(parents=True)
    settings = Settings(home=str(tmp_path))
    HISTORIES.add("mine", RunHistory(lambda _: 3, lambda _: 3, lambda _: elsewhere))
    try:
        assert (finished_runs(settings), wipe_history(settings)) == (runs, runs)
        assert [*filter(None, [elsewhere])] == histories_elsewhere(settings)
    finally:
        HISTORIES.remove("mine")
