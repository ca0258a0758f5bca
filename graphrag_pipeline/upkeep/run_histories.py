"""The histories of runs in a home: a door. A purge empties them, and asks who keeps each.

The engine knows no Dagster: it is loaded by this door, and only where Dagster has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.settings import Settings


@dataclass(frozen=True)
class RunHistory:
    """A keeper of a history of runs in a folder of the home, called as the folder is.

    Both are given the settings and return a number of finished runs: ``finished`` how many there
    are, ``empty`` how many it has taken out, those under way staying as they are. ``empty`` raises
    StorageError where a file cannot be written. ``elsewhere`` says in words where else it is kept,
    and how to empty it there; nothing where it is kept in the home.
    """

    finished: Callable[[Settings], int]
    empty: Callable[[Settings], int]
    elsewhere: Callable[[Settings], str] = lambda settings: ""


HISTORIES: Door[RunHistory] = Door(
    "run_histories",
    RunHistory,
    "history of runs",
    own={"dagster": "orchestration.dagster_history:DAGSTER"},
    beside="graphrag_pipeline.doors",
)
"""The histories of runs, by the folders of the home that hold them."""


def histories_elsewhere(settings: Settings) -> list[str]:
    """Return in words where histories are that are not kept in the home of the index."""
    histories = HISTORIES.usable().values()
    return [place for history in histories if (place := history.elsewhere(settings))]


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
        is_there = (settings.home_path / name / "history").is_dir()
        history = HISTORIES.find(name) if is_there else None
        if history is not None and not history.elsewhere(settings):
            yield history
