"""What makes Dagster quick in the processes of tests; what it stores, and where, is as it was.

- Each of a home's three files has all the scripts of its migrations read, compiled and ordered
  whenever it is opened, to see that it is of the newest version. Here they are read once. That it
  is so is asked of each file as before.
- For each read and write of a file an engine is made, which compiles its statements anew. Here a
  file keeps its engine. No connection is kept: SQLite opens and closes the file as often as before.
- Stages draw the same pictures of the same small graphs. Here they find them drawn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage import sql
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy.engine import Engine

from graphrag_pipeline.assets import common, stages
from graphrag_pipeline.pages.pictures import Picture, _digest

_FILES_KEPT = 64
_NONE: Mapping[str, Any] = {}

_read = ScriptDirectory.from_config


def make_dagster_quick() -> None:
    """Do so in this process, and in those forked from it."""
    known = cache(lambda location: _read(_located(location)))
    ScriptDirectory.from_config = lambda config: known(config.get_main_option("script_location"))
    known(sql.ALEMBIC_SCRIPTS_LOCATION).as_revision_number("head")
    for storage in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        vars(storage)["create_engine"] = _engine
    stages.picture = _picture_of_all_homes


def _located(location: str) -> Config:
    config = Config()
    config.set_main_option("script_location", location)
    return config


def _engine(place: str, *, poolclass: type, connect_args: Mapping[str, Any] = _NONE) -> Engine:
    return _kept_engine(place, poolclass, tuple(connect_args.items()))


@lru_cache(_FILES_KEPT)
def _kept_engine(place: str, poolclass: type, given: tuple[tuple[str, Any], ...]) -> Engine:
    return sql.create_engine(place, poolclass=poolclass, connect_args=dict(given))


def _picture_of_all_homes(home: Path, drawing: Picture | None) -> Mapping[str, object]:
    if drawing is not None:
        home = Path(os.environ["TESTS_HOME"], "drawn", _digest(drawing.shown))
    return common.picture(home, drawing)
