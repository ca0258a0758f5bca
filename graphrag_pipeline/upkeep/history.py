"""Where Dagster's history of an index is, and its removal where Dagster has run."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings


def history_elsewhere(settings: Settings) -> Path | None:
    """Return where Dagster's history is if that is not the home of the index, else None."""
    named = os.environ.get("DAGSTER_HOME")
    place = Path(named).resolve() if named else None
    return None if place in (None, Home(settings.home_path).dagster.resolve()) else place


def wipe_history(settings: Settings) -> int:
    """Take all finished runs out of the history in the home of an index; return their number.

    A history that is kept elsewhere is left alone. Raises StorageError where a file cannot be
    written.
    """
    return _history().empty_history(settings) if _is_here(settings) else 0


def finished_runs(settings: Settings) -> int:
    """Return the number of runs that :func:`wipe_history` would take out."""
    return _history().finished_runs(settings) if _is_here(settings) else 0


def _is_here(settings: Settings) -> bool:
    is_there = (Home(settings.home_path).dagster / "history").is_dir()
    return is_there and history_elsewhere(settings) is None


def _history() -> ModuleType:
    # The engine knows no Dagster: it is loaded by name, and only where Dagster has run.
    return import_module("graphrag_pipeline.orchestration.history")
