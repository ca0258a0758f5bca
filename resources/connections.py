"""Dagster's tables in Postgres, reached by a connection that stays while a run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
from dagster._core.storage.sql import create_engine
from sqlalchemy.engine import Engine

_ENGINE = "_engine"
"""What each of Dagster's storages in Postgres connects by."""


@contextmanager
def kept_connected(instance: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """Yield an instance that keeps its connections to Postgres, if it is there: two at most.

    Dagster connects anew for each query: a hundred times in the run of a small batch, each time to
    a new process of Postgres. What is asked while both are busy has one of its own, as before.
    """
    engines: dict[str, Engine] = {}
    with ExitStack() as at_the_end:
        for storage in (
            instance.run_storage,
            instance.event_log_storage,
            instance.schedule_storage,
        ):
            before = getattr(storage, _ENGINE, None)
            if not isinstance(before, Engine) or before.dialect.name != "postgresql":
                continue
            place = str(before.url)
            if place not in engines:
                engines[place] = _pooled(before)
                at_the_end.callback(engines[place].dispose)
            setattr(storage, _ENGINE, engines[place])
            at_the_end.callback(setattr, storage, _ENGINE, before)
        yield instance


def _pooled(engine: Engine) -> Engine:
    # A connection that was closed from there, as by a restart, is made anew when it is next used.
    return create_engine(
        engine.url,
        isolation_level="AUTOCOMMIT",
        pool_size=2,
        max_overflow=-1,
        pool_pre_ping=True,
    )
