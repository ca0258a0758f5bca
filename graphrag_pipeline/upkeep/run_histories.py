"""The histories of runs in a home: a door. A purge empties them, and asks who keeps each.

The engine knows no Dagster: it is loaded by this door, and only where Dagster has run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings


@dataclass(frozen=True)
class RunHistory:
    """A keeper of a history of runs in a folder of the home, called as the folder is.

    Both are given the settings and return a number of finished runs: ``finished`` how many there
    are, ``empty`` how many it has taken out, those under way staying as they are. ``empty`` raises
    StorageError where a file cannot be written.
    """

    finished: Callable[[Settings], int]
    empty: Callable[[Settings], int]


HISTORIES: Door[RunHistory] = Door(
    "run_histories",
    RunHistory,
    "history of runs",
    own={"dagster": "orchestration.dagster_history:DAGSTER"},
    beside="graphrag_pipeline.doors",
)
"""The histories of runs, by the folders of the home that hold them."""


def history_elsewhere(settings: Settings) -> Path | None:
    """Return where Dagster's history is if that is not the home of the index, else None."""
    named = os.environ.get("DAGSTER_HOME")
    place = Path(named).resolve() if named else None
    return None if place in (None, Home(settings.home_path).dagster.resolve()) else place


def wipe_history(settings: Settings) -> int:
    """Take all finished runs out of the histories in the home of an index; return their number.

    A history that is kept elsewhere is left alone. Raises StorageError where a file cannot be
    written.
    """
    return sum(history.empty(settings) for history in _here(settings))


def finished_runs(settings: Settings) -> int:
    """Return the number of runs that :func:`wipe_history` would take out."""
    return sum(history.finished(settings) for history in _here(settings))


def _here(settings: Settings) -> Iterator[RunHistory]:
    for name in HISTORIES.names():
        is_elsewhere = name == "dagster" and history_elsewhere(settings) is not None
        if (settings.home_path / name / "history").is_dir() and not is_elsewhere:
            history = HISTORIES.find(name)
            if history is not None:
                yield history
