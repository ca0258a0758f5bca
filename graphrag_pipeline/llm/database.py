"""The tables of paid answers and the ledger: many small writes, few commits, several processes.

They are in a SQLite file, or elsewhere where machines share an index (:class:`SharedCalls`).
Statements are the same for both: they name their values ``$1``, ``$2`` and so on.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import shutil
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import (
    is_disk_full,
    make_folder,
    make_private,
    told_of_disk,
)
from graphrag_pipeline.core.hardening.memory import OutOfMemoryError, as_out_of_memory
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm.flights import FlightHolder

_BUSY_SECONDS = 60.0
_VERSION = 8
_PAGES_AT_ONCE = 500
_INCREMENTAL = 2
_NEW = 0
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
_BATCHES = (
    """
CREATE TABLE IF NOT EXISTS sent_batches (
    token TEXT PRIMARY KEY,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    created_at REAL NOT NULL,
    file_id TEXT,
    batch_id TEXT
)
""",
    """
CREATE TABLE IF NOT EXISTS sent_requests (
    id TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    content_key BLOB NOT NULL,
    key BLOB,
    stage TEXT NOT NULL,
    batch TEXT,
    made_for TEXT
)
""",
    "CREATE INDEX IF NOT EXISTS sent_requests_by_token ON sent_requests (token)",
)
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
    stage TEXT,
    digest BLOB
)
""",
    """
CREATE TABLE IF NOT EXISTS embeddings (
    key BLOB PRIMARY KEY,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    created_at REAL NOT NULL,
    used_on INTEGER,
    stage TEXT,
    digest BLOB
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
    error TEXT,
    cached_tokens INTEGER
)
""",
    _WIDTHS,
    _SHARED,
    *_BATCHES,
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
    6: (
        "ALTER TABLE responses ADD COLUMN digest BLOB",
        "ALTER TABLE embeddings ADD COLUMN digest BLOB",
    ),
    7: (*_BATCHES, "ALTER TABLE llm_calls ADD COLUMN cached_tokens INTEGER"),
}


DAY_SECONDS = 86_400
USED_ON = f"coalesce(used_on, CAST(created_at / {DAY_SECONDS} AS INTEGER))"
"""SQL: the day on which an entry was last used, in days since 1970 (UTC); at first, was made."""
Rows = list[tuple[Any, ...]]


class Write(NamedTuple):
    """One statement and its rows."""

    sql: str
    rows: Sequence[tuple[Any, ...]]


class _Job(NamedTuple):
    writes: Sequence[Write]
    done: asyncio.Future[Rows] | None


class SharedCalls(ABC):
    """The place where machines that share an index keep its calls; as text, where that is.

    Two of one place are equal. Everything raises StorageError.
    """

    @abstractmethod
    def tables(self) -> CallTables:
        """Return the tables, opened."""

    @abstractmethod
    def holder(self, database: CallDatabase) -> FlightHolder:
        """Return a client among those of all machines, which reads and writes the tables."""


Place = Path | SharedCalls
"""Where an index keeps its calls: its home folder, or where machines share them."""


class CallDatabase:
    """Reads at once, writes through one thread that commits whatever has gathered together.

    A commit is on disk before :meth:`write` returns (in SQLite: WAL, ``synchronous=FULL``), so
    neither ``kill -9`` nor a power cut takes it back. ``at`` is a SQLite file, or where machines
    share the tables. Raises StorageError when they cannot be used.
    """

    def __init__(self, at: Place) -> None:
        self._tables = CallTables(at) if isinstance(at, Path) else at.tables()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._failure: StorageError | None = None
        self._thread = threading.Thread(target=self._work, name="llm-cache", daemon=True)
        self._thread.start()

    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Return the rows of a query."""
        return self._tables.read(sql, values)

    async def write(self, writes: Sequence[Write]) -> Rows:
        """Commit the writes, all or none, and return once they are on disk.

        Returns the rows that the last write returns.
        """
        done: asyncio.Future[Rows] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(writes, done))
        return await done

    def write_later(self, writes: Sequence[Write]) -> None:
        """Commit the writes with the next commit; :meth:`close` waits for them."""
        if self._failure is not None:
            raise self._failure
        self._jobs.put(_Job(writes, None))

    def close(self) -> None:
        """Commit what waits and close the file."""
        self._jobs.put(None)
        self._thread.join()
        self._tables.close()
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
                self._commit(group)

    def _commit(self, group: Sequence[_Job]) -> None:
        try:
            results = self._tables.commit([job.writes for job in group])
        except StorageError as error:
            if any(job.done is None for job in group):
                self._failure = error
            _report(group, error)
        else:
            _report(group, results)


class CallTables:
    """The tables of calls, in a SQLite file; those of :class:`SharedCalls` derive from this class.

    Everything raises StorageError. ``text_bytes`` is the SQL of what a text takes.
    """

    text_bytes = "length(CAST(text AS BLOB))"

    def __init__(self, path: Path) -> None:
        self._path = path
        with told_of_disk(f"cannot write in {path.parent}"):
            make_folder(path.parent)
        self._reader = open_database(path)

    @cached_property
    def _writer(self) -> sqlite3.Connection:
        return open_database(self._path)

    def read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Return the rows of a query."""
        with self._told():
            return self._reader.execute(sql, named(values)).fetchall()

    def commit(self, jobs: Sequence[Sequence[Write]]) -> list[Rows]:
        """Do all of the jobs in one transaction; return what the last write of each returns.

        What is done once more, because nobody knew whether it was done, has to be as if once.
        """
        con = self._writer
        try:
            con.execute("BEGIN IMMEDIATE")
            for write in itertools.chain.from_iterable(jobs):
                con.executemany(write.sql, map(named, write.rows))
            con.execute("COMMIT")
        except (sqlite3.Error, ValueError, OverflowError) as error:
            with contextlib.suppress(sqlite3.Error):
                con.execute("ROLLBACK")
            raise storage_error(self._path, error) from None
        return [[] for _ in jobs]

    def forget(self, writes: Sequence[Write]) -> None:
        """Do writes that take rows away, so that nothing of these is left in the tables."""
        try:
            self._writer.execute("PRAGMA secure_delete = ON")
            self.commit([writes])
            compact(self._writer)
        except sqlite3.Error as error:
            raise StorageError(f"cannot use {self._path}: {error}; run the command again") from None

    def file_bytes(self) -> int:
        """Return what the tables take."""
        return self._path.stat().st_size

    def free_bytes(self) -> int:
        """Return how much of it holds nothing."""
        return self._pragma("freelist_count") * self._pragma("page_size")

    def used_bytes(self) -> int:
        """Return how much of it holds something."""
        pages = self._pragma("page_count") - self._pragma("freelist_count")
        return pages * self._pragma("page_size")

    def drop(self, table: str, keys: Sequence[bytes], first_kept: int) -> int:
        """Drop entries in one short transaction; return how many.

        None goes that somebody has used since the day ``first_kept``, or meanwhile.
        """
        with self._told():
            self._writer.execute("BEGIN IMMEDIATE")
            sql = f"DELETE FROM {table} WHERE key = ? AND {USED_ON} < ?"
            dropped = self._writer.executemany(sql, [(key, first_kept) for key in keys]).rowcount
            self._writer.execute("COMMIT")
        return dropped

    def give_back(self) -> None:
        """Cut free pages off the file, some at a time, where that takes no room.

        Others may write in between, and the log of changes takes no more of a disk that may be
        full.
        """
        with self._told():
            if self._pragma("auto_vacuum") == _INCREMENTAL:
                free = self._pragma("freelist_count")
                for _ in range(0, free, _PAGES_AT_ONCE):
                    # A statement that `execute` runs stops after its first page.
                    self._writer.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
                    self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def vacuum(self) -> None:
        """Give all free space back."""
        if self._pragma("auto_vacuum") == _INCREMENTAL:
            self.give_back()
            return
        needed = self.used_bytes()
        what = f"{self._path} cannot be written anew, which needs {needed / 1e6:,.0f} MB"
        if needed > shutil.disk_usage(self._path.parent).free:
            raise StorageError(f"{what} beside it: free the disk and run again; nothing was lost")
        try:
            self._writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise StorageError(
                f"{what} beside it and as much in the folder of temporary files ({error}): free "
                "the disk, or name a folder with room in SQLITE_TMPDIR, and run again; nothing was "
                "lost"
            ) from None

    def close(self) -> None:
        """Close the tables."""
        self._reader.close()
        if "_writer" in self.__dict__:
            self._writer.close()

    def _pragma(self, name: str) -> int:
        with self._told():
            return self._writer.execute(f"PRAGMA {name}").fetchone()[0]

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise storage_error(self._path, error) from None


def compact(con: sqlite3.Connection) -> None:
    """Write a SQLite file anew and empty its log, so that nothing deleted is left in either.

    Raises sqlite3.OperationalError where another process reads it for longer than a wait.
    """
    con.execute("VACUUM")
    busy, *_ = con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise sqlite3.OperationalError("another process is reading it")


def named(values: Sequence[Any]) -> dict[str, Any]:
    """Return values as SQLite takes those that SQL names ``$1``, ``$2`` and so on."""
    return {str(number): value for number, value in enumerate(values, 1)}


@contextlib.contextmanager
def reading(place: Place) -> Iterator[CallTables | None]:
    """Yield the tables of a place for reading, None where no call has been made there yet."""
    at = tables_at(place)
    if isinstance(at, Path) and not at.is_file():
        yield None
        return
    with contextlib.closing(CallTables(at) if isinstance(at, Path) else at.tables()) as tables:
        yield tables


def tables_at(place: Place) -> Place:
    """Return the SQLite file of a home, or where machines share the tables."""
    return Home(place).calls if isinstance(place, Path) else place


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


def _report(group: Sequence[_Job], outcome: Sequence[Rows] | StorageError) -> None:
    results = [outcome] * len(group) if isinstance(outcome, StorageError) else outcome
    waiting = [(j.done, r) for j, r in zip(group, results, strict=True) if j.done is not None]
    for loop in {done.get_loop() for done, _ in waiting}:
        mine = [(done, result) for done, result in waiting if done.get_loop() is loop]
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, mine)


def _resolve(waiting: Sequence[tuple[asyncio.Future[Rows], Rows | StorageError]]) -> None:
    for done, result in waiting:
        if done.done():
            continue
        if isinstance(result, StorageError):
            done.set_exception(result)
        else:
            done.set_result(result)


def storage_error(path: Path, error: Exception) -> StorageError | OutOfMemoryError:
    """Return what is said of an error of the file, and what to do."""
    if isinstance(error, PermissionError):
        return StorageError(
            f"cannot use {path}: permission denied; paid answers are their owner's alone, whoever "
            "else may read the home: ask without a model, or as its owner"
        )
    if is_disk_full(path.parent, error):
        return StorageError(
            f"cannot write {path}: the disk is full; free some of it and run again: nothing that "
            "was kept is lost"
        )
    return as_out_of_memory(error) or StorageError(
        f"cannot use {path}: {error}; free the disk or move the file away, and run again"
    )
