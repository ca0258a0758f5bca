"""What makes Dagster's storages quick to open: the scripts of its migrations are read once.

Otherwise each of a home's three files has them all read, compiled and ordered whenever it is
opened, to see that it is of the newest version. That it is so is asked of each file as before.
"""

from __future__ import annotations

from functools import cache

from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.sql import ALEMBIC_SCRIPTS_LOCATION

_read = ScriptDirectory.from_config


def read_migrations_once() -> None:
    """Read the scripts of a kind of storage once in this process, and in those forked from it."""
    known = cache(lambda location: _read(_located(location)))
    ScriptDirectory.from_config = lambda config: known(config.get_main_option("script_location"))
    known(ALEMBIC_SCRIPTS_LOCATION).as_revision_number("head")


def _located(location: str) -> Config:
    config = Config()
    config.set_main_option("script_location", location)
    return config
