"""Dagster's event log, with its files or its connection kept open while a run goes on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.sql import create_engine
from sqlalchemy.engine import Engine
from sqlalchemy.engine.base import Connection
from sqlalchemy.event import listen

from graphrag_pipeline.resources.connections import kept_connected

_BUSY_SECONDS = 30
"""How long another writer is waited for: as Dagster does since 1.13."""


@contextmanager
def kept_open(instance: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """Yield an instance whose event log, if it is Dagster's own in SQLite, keeps its files open.

    Of what is in Postgres, the connection is kept.

    Dagster opens the file of a run and the one of all runs anew for each event, compiles every
    statement again, and has SQLite fold its log into the file as it closes: a sixth of what a
    small run takes. To see that a table is there it opens the latter once more, five times a stage.
    """
    log = instance.event_log_storage
    with ExitStack() as at_the_end:
        if type(log) is SqliteEventLogStorage:
            _keep_open(log, at_the_end)
        at_the_end.enter_context(kept_connected(instance))
        yield instance


def _keep_open(log: SqliteEventLogStorage, at_the_end: ExitStack) -> None:
    engines: dict[str, Engine] = {}

    @contextmanager
    def connect(shard: str) -> Iterator[Connection]:
        with log._db_lock:
            if shard not in engines:
                engines[shard] = _engine(log, shard)
                at_the_end.callback(engines[shard].dispose)
            with engines[shard].begin() as connection:
                yield connection

    look, tables = log.has_table, set[str]()

    def has_table(table_name: str) -> bool:
        # It is asked with and without the lock held, and no table is ever dropped.
        if table_name not in tables and look(table_name):
            tables.add(table_name)
        return table_name in tables

    for name, method in (("_connect", connect), ("has_table", has_table)):
        setattr(log, name, method)
        at_the_end.callback(delattr, log, name)


def _sync_rarely(connection: sqlite3.Connection, _: object) -> None:
    """Wait for the disk as SQLite's log is folded into the file, and not at each event.

    A killed process loses nothing by it; a machine without power may lose the last events, of which
    no table of the index is made.
    """
    connection.execute("PRAGMA synchronous = NORMAL")


def _engine(log: SqliteEventLogStorage, shard: str) -> Engine:
    """Return an engine for a file, which is made if it is not there."""
    place = log.conn_string_for_shard(shard)
    engine = create_engine(place, connect_args={"timeout": _BUSY_SECONDS})
    listen(engine, "connect", _sync_rarely)
    if shard not in log._initialized_dbs:
        log._initdb(engine)
        log._initialized_dbs.add(shard)
    return engine
