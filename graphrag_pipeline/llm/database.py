"""The SQLite file behind cache and ledger: many small writes, few commits, several processes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import shutil
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.files import make_folder, make_private

_BUSY_SECONDS = 60.0
_VERSION = 6
_NEW = 0
_PRIMARY_CODE = 0xFF
_LEAST_FREE = 1 << 20
_WIDTHS = """
CREATE TABLE IF NOT EXISTS embedding_widths (
    source BLOB PRIMARY KEY,
    dimensions INTEGER NOT NULL
)
"""
_SHARED = """
CREATE TABLE IF NOT EXISTS shared_entries (
    place TEXT NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (place, key)
) WITHOUT ROWID
"""
_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS responses (
    key BLOB PRIMARY KEY,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    finish_reason TEXT NOT NULL,
    created_at REAL NOT NULL,
    made_for TEXT,
    used_on INTEGER,
    stage TEXT
)
""",
    """
CREATE TABLE IF NOT EXISTS embeddings (
    key BLOB PRIMARY KEY,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    created_at REAL NOT NULL,
    used_on INTEGER,
    stage TEXT
)
""",
    """
CREATE TABLE IF NOT EXISTS llm_calls (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    called_at REAL NOT NULL,
    stage TEXT NOT NULL,
    batch TEXT,
    model TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost REAL,
    seconds REAL NOT NULL,
    cached INTEGER NOT NULL,
    error TEXT
)
""",
    _WIDTHS,
    _SHARED,
)
_MIGRATIONS = {
    1: (_WIDTHS,),
    2: ("ALTER TABLE responses ADD COLUMN made_for TEXT",),
    3: (
        "ALTER TABLE responses ADD COLUMN used_on INTEGER",
        "ALTER TABLE embeddings ADD COLUMN used_on INTEGER",
    ),
    4: (
        "ALTER TABLE responses ADD COLUMN stage TEXT",
        "ALTER TABLE embeddings ADD COLUMN stage TEXT",
    ),
    5: (_SHARED,),
}


class Write(NamedTuple):
    """One statement and its rows."""

    sql: str
    rows: Sequence[tuple[Any, ...]]


class _Job(NamedTuple):
    writes: Sequence[Write]
    done: asyncio.Future[None] | None


class CallDatabase:
    """Reads at once, writes through one thread that commits whatever has gathered together.

    A commit is on disk (WAL, ``synchronous=FULL``) before :meth:`write` returns, so neither
    ``kill -9`` nor a power cut takes it back. Raises StorageError when the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            make_folder(path.parent)
        except OSError as error:
            raise StorageError(f"cannot write in {path.parent}: {error.strerror}") from None
        self._reader = open_database(path)
        self._writer = open_database(path)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._failure: StorageError | None = None
        self._thread = threading.Thread(target=self._work, name="llm-cache", daemon=True)
        self._thread.start()

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        try:
            return self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise storage_error(self.path, error) from None

    async def write(self, writes: Sequence[Write]) -> None:
        """Commit the writes, all or none, and return once they are on disk."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(writes, done))
        await done

    def write_later(self, writes: Sequence[Write]) -> None:
        """Commit the writes with the next commit; :meth:`close` waits for them."""
        if self._failure is not None:
            raise self._failure
        self._jobs.put(_Job(writes, None))

    def close(self) -> None:
        """Commit what waits and close the file."""
        self._jobs.put(None)
        self._thread.join()
        self._reader.close()
        self._writer.close()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        open_ = True
        while open_:
            jobs = [self._jobs.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    jobs.append(self._jobs.get_nowait())
            open_ = None not in jobs
            group = [job for job in jobs if job is not None]
            if group:
                _report(group, self._commit(group))

    def _commit(self, group: Sequence[_Job]) -> StorageError | None:
        con = self._writer
        try:
            con.execute("BEGIN IMMEDIATE")
            for job in group:
                for sql, rows in job.writes:
                    con.executemany(sql, rows)
            con.execute("COMMIT")
        except (sqlite3.Error, ValueError, OverflowError) as error:
            with contextlib.suppress(sqlite3.Error):
                con.execute("ROLLBACK")
            failure = storage_error(self.path, error)
            if any(job.done is None for job in group):
                self._failure = failure
            return failure
        return None


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file, made if it is not there, for one thread at a time."""
    try:
        make_private(path)
        con = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        if path.stat().st_size == 0:
            # Only a file that holds nothing yet takes this without being written anew.
            con.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _when_free(con, "PRAGMA journal_mode = WAL")
        con.execute("PRAGMA synchronous = FULL")
        if _version_of(con) != _VERSION:
            _migrate(con, path)
    except (sqlite3.Error, OSError) as error:
        raise storage_error(path, error) from None
    return con


def _migrate(con: sqlite3.Connection, path: Path) -> None:
    """Bring a file to this version, in one transaction; another process may have been first."""
    con.execute("BEGIN IMMEDIATE")
    try:
        version = _version_of(con)
        if version not in (_NEW, *_MIGRATIONS, _VERSION):
            raise StorageError(f"{path} is of another version: move it away and run again")
        steps = [_SCHEMA] if version == _NEW else map(_MIGRATIONS.get, range(version, _VERSION))
        for statement in itertools.chain.from_iterable(step or () for step in steps):
            con.execute(statement)
        con.execute(f"PRAGMA user_version = {_VERSION}")
        con.execute("COMMIT")
    except BaseException:
        con.close()
        raise


def _version_of(con: sqlite3.Connection) -> int:
    return con.execute("PRAGMA user_version").fetchone()[0]


def _when_free(con: sqlite3.Connection, sql: str) -> None:
    """Execute what SQLite refuses without waiting while another process opens the file."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            con.execute(sql)
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _report(group: Sequence[_Job], error: StorageError | None) -> None:
    waiting = [job.done for job in group if job.done is not None]
    for loop in {done.get_loop() for done in waiting}:
        mine = [done for done in waiting if done.get_loop() is loop]
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, mine, error)


def _resolve(waiting: Sequence[asyncio.Future[None]], error: StorageError | None) -> None:
    for done in waiting:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


def _is_full(path: Path, error: Exception) -> bool:
    """Whether an error is for want of room: SQLite has several words for that."""
    if isinstance(error, sqlite3.Error):
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            return True
        if error.sqlite_errorcode & _PRIMARY_CODE != sqlite3.SQLITE_IOERR:
            return False
    elif not isinstance(error, OSError):
        return False
    try:
        return shutil.disk_usage(path.parent).free < _LEAST_FREE
    except OSError:
        return False


def storage_error(path: Path, error: Exception) -> StorageError:
    """Return what is said of an error of the file, and what to do."""
    if isinstance(error, PermissionError):
        return StorageError(
            f"cannot use {path}: permission denied; paid answers are their owner's alone, whoever "
            "else may read the home: ask without a model, or as its owner"
        )
    if _is_full(path, error):
        return StorageError(
            f"cannot write {path}: the disk is full; free some of it and run again: nothing that "
            "was kept is lost"
        )
    return StorageError(
        f"cannot use {path}: {error}; free the disk or move the file away, and run again"
    )
