"""Dagster's history in SQLite while a run goes on: files kept open, few transactions."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import dagster as dg
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.events.log import EventLogEntry
from dagster._core.storage import sql
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.base import AssetRecord
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.sql import create_engine
from sqlalchemy.engine import Engine
from sqlalchemy.engine.base import Connection
from sqlalchemy.event import listen

from graphrag_pipeline.core.hardening.files import write_output
from graphrag_pipeline.resources.connections import kept_connected

_BUSY_SECONDS = 30
"""How long another writer is waited for: as Dagster does since 1.13."""
_EMPTY = f"empty-{dg.__version__}"
_FOLLOWED = frozenset(
    {
        dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
        dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED,
        dg.DagsterEventType.LOGS_CAPTURED,
        dg.DagsterEventType.STEP_OUTPUT,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        dg.DagsterEventType.ASSET_CHECK_EVALUATION,
        dg.DagsterEventType.STEP_SUCCESS,
    }
)
"""Events that another follows within milliseconds: of what is planned, and of a finished step."""

_COLUMNS_ON_CONNECTION = "_has_asset_key_index_cols_on_connection"
_ASKED_OFTEN = ("has_table", "has_asset_key_col", "has_secondary_index", _COLUMNS_ON_CONNECTION)


_revisions: dict[str | None, ScriptDirectory] = {}


class _Revisions:
    """All changes of Dagster's tables: 89 modules, which are read once and not for each file."""

    @staticmethod
    def from_config(config: Config) -> ScriptDirectory:
        """Return the folder that a configuration names."""
        place = config.get_main_option("script_location")
        if place not in _revisions:
            _revisions[place] = ScriptDirectory.from_config(config)
        return _revisions[place]


sql.ScriptDirectory = _Revisions  # type: ignore[assignment,misc]


@contextmanager
def kept_open(instance: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    """Yield an instance that keeps the files of its history open, if they are Dagster's in SQLite.

    Of what is in Postgres, the connection is kept.

    Dagster opens the file of a run and the one of all runs anew for each event, compiles every
    statement again, and has SQLite fold its log into the file as it closes: a sixth of what a
    small run takes. To see that a table, a column or an index is there it asks the latter once
    more, fifteen times a stage.
    """
    with ExitStack() as at_the_end:
        if type(instance.event_log_storage) is SqliteEventLogStorage:
            at_the_end.enter_context(_OpenLog(instance.event_log_storage).in_place())
        if type(instance.run_storage) is SqliteRunStorage:
            at_the_end.enter_context(_runs_kept_open(instance.run_storage))
        at_the_end.enter_context(kept_connected(instance))
        yield instance


class _OpenLog:
    """Another way for an event log to write while a run goes on.

    Events that others follow at once are written with these, in one transaction; whatever is asked
    of the log meanwhile has them written first. A killed process loses no more than the last of
    them: that a step ended, of which no table of the index is made.
    """

    def __init__(self, log: SqliteEventLogStorage) -> None:
        self._log = log
        self._engines: dict[str, Engine] = {}
        self._there: set[tuple[str, str]] = set()
        self._turn = threading.RLock()
        self._gathered: list[EventLogEntry] = []
        self._together: dict[str, Connection] | None = None
        self._records: dict[dg.AssetKey, AssetRecord] = {}
        self._by_others = -1

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the log do as this does."""
        names = {"_connect": self.connect, "store_event": self.store}
        names |= {"get_asset_records": self.asset_records}
        names |= {name: partial(self._is_there, name) for name in _ASKED_OFTEN}
        for name, method in names.items():
            setattr(self._log, name, method)
        try:
            yield
            self._write()
        finally:
            for name in names:
                delattr(self._log, name)
            for engine in self._engines.values():
                engine.dispose()

    @contextmanager
    def connect(self, shard: str) -> Iterator[Connection]:
        """Yield a connection to a file, in a transaction: of gathered events all share one."""
        with self._turn:
            if self._together is None:
                self._write()
                with self._engine(shard).begin() as connection:
                    yield connection
            else:
                if shard not in self._together:
                    self._together[shard] = self._engine(shard).connect()
                    self._together[shard].begin()
                yield self._together[shard]

    def asset_records(self, asset_keys: Sequence[dg.AssetKey] | None = None) -> list[AssetRecord]:
        """Return what is known of assets: of each it is read once until something is written of it.

        Dagster asks as a stage begins, and again for its checks. Whatever another process has
        written to the file may be of any.
        """
        read = partial(type(self._log).get_asset_records, self._log)
        if asset_keys is None:
            return [*read()]
        with self._turn, self.connect(INDEX_SHARD_NAME) as connection:
            by_others = connection.exec_driver_sql("PRAGMA data_version").scalar_one()
            if by_others != self._by_others:
                self._by_others = by_others
                self._records.clear()
        with self._turn:
            if unread := [key for key in asset_keys if key not in self._records]:
                self._records |= {record.asset_entry.asset_key: record for record in read(unread)}
            return [self._records[key] for key in asset_keys if key in self._records]

    def _is_there(self, asked: str, of: str | Connection) -> bool:
        """Say whether a table, a column or an index is there: none is ever dropped."""
        key = asked, of if isinstance(of, str) else ""
        is_known = key in self._there
        if not is_known and (is_known := getattr(type(self._log), asked)(self._log, of)):
            self._there.add(key)
        return is_known

    def store(self, event: EventLogEntry) -> None:
        """Store an event: at once, unless others follow it."""
        with self._turn:
            self._gathered.append(event)
            if not event.is_dagster_event or event.dagster_event_type not in _FOLLOWED:
                self._write()

    def _write(self) -> None:
        """Store what was gathered, in one transaction a file: that of the run is the first."""
        with self._turn:
            events, self._gathered = self._gathered, []
            if not events:
                return
            self._together = {}
            try:
                for event in events:
                    type(self._log).store_event(self._log, event)
                    if event.dagster_event and event.dagster_event.asset_key:
                        self._records.pop(event.dagster_event.asset_key, None)
                for connection in self._together.values():
                    transaction = connection.get_transaction()
                    assert transaction is not None
                    transaction.commit()
            finally:
                connections, self._together = self._together, None
                for connection in connections.values():
                    connection.close()

    def _engine(self, shard: str) -> Engine:
        """Return an engine for a file, which is made if it is not there."""
        if shard not in self._engines:
            engine = _engine(self._log.conn_string_for_shard(shard))
            if shard not in self._log._initialized_dbs:
                _make(self._log, Path(self._log.path_for_shard(shard)), engine)
                self._log._initialized_dbs.add(shard)
            self._engines[shard] = engine
        return self._engines[shard]


@contextmanager
def _runs_kept_open(runs: SqliteRunStorage) -> Iterator[None]:
    engine = _engine(runs._conn_string)
    runs.connect = engine.begin  # type: ignore[method-assign]
    try:
        yield
    finally:
        del runs.connect
        engine.dispose()


def _engine(place: str) -> Engine:
    engine = create_engine(place, connect_args={"timeout": _BUSY_SECONDS})
    listen(engine, "connect", _sync_rarely)
    return engine


def _sync_rarely(connection: sqlite3.Connection, _: object) -> None:
    """Wait for the disk as SQLite's log is folded into the file, and not at each event.

    A killed process loses nothing by it; a machine without power may lose the last events, of which
    no table of the index is made.
    """
    connection.execute("PRAGMA synchronous = NORMAL")


def _make(log: SqliteEventLogStorage, file: Path, engine: Engine) -> None:
    """Make the file of a run, as a copy of an empty one that Dagster of this version has made.

    Dagster takes longer for its tables than for all events of a small run.
    """
    empty, is_new = file.with_name(_EMPTY), not file.exists()
    if is_new and empty.is_file() and _copy(empty, file):
        return
    log._initdb(engine)
    if is_new:
        with contextlib.closing(sqlite3.connect(file)) as made:
            write_output(empty, made.serialize())


def _copy(empty: Path, file: Path) -> bool:
    """Copy a database in one transaction; say whether it could be read."""
    try:
        with (
            contextlib.closing(sqlite3.connect(empty)) as source,
            contextlib.closing(sqlite3.connect(file)) as target,
        ):
            source.backup(target)
    except sqlite3.DatabaseError:
        return False
    return True
