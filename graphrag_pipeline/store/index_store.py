"""The index in DuckDB: one writer at a time across processes, which wait in turn."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from graphrag_pipeline.core.errors import BusyError, StorageError
from graphrag_pipeline.core.locks import locked
from graphrag_pipeline.store.migrations import ensure_schema

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_SMALL_BYTES = 64 * 2**20
# A megabyte of documents is a second or two of work, as is an index of this many.
_INDEX_BYTES_PER_BYTE = 50


class IndexStore:
    """``index.duckdb``, the pipeline's own file.

    DuckDB lets one process write and shuts out every other meanwhile, readers too. Processes, and
    the threads of one, therefore queue on a lock file beside the database. They hold it while they
    read or write rows, or for a :meth:`session`, never across slow work such as a model call.
    """

    def __init__(self, path: str | os.PathLike[str], *, wait_seconds: float = 600.0) -> None:
        self.path = Path(path)
        self._wait = wait_seconds
        self._turns = _Turns()

    @contextlib.contextmanager
    def session(self, n_bytes: int = 0) -> Iterator[None]:
        """Keep this thread's turn, and the file open, for a stage that asks no model.

        Opening the file costs more than what a small stage reads and writes. Within, :meth:`read`
        and :meth:`transaction` are what they are without, at a hundredth of the cost. A session
        within a session is part of it. Where the index is large, or the stage has many bytes of
        documents (``n_bytes``) to work on, nothing is kept: others would wait long, to save little.
        """
        if self._turns.mine is not None or not self._is_small(n_bytes):
            yield
            return
        with self._turn():
            yield

    @contextlib.contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection for reading; the file is created if it is not there."""
        with self._connection() as con:
            yield con

    @contextlib.contextmanager
    def transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection inside one transaction: all of it is kept, or none."""
        with self._connection() as con:
            con.execute("BEGIN")
            try:
                yield con
                con.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(duckdb.Error):
                    con.execute("ROLLBACK")
                raise

    def copy_to(self, target: Path, prepare: Callable[[Path], None] | None = None) -> None:
        """Write a consistent copy of the file at ``target``, replacing it in one step.

        ``prepare`` may change the copy before it is put in place. Raises StorageError when there
        is no room or no right to write; ``target`` then stays as it was.
        """
        beside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        try:
            with self._turn() as turn:
                with self._connection() as con:
                    con.execute("CHECKPOINT")
                # DuckDB's lock on a file it has open is lost when the file is read beside it.
                turn.close()
                _copy(self.path, beside)
            if prepare is not None:
                prepare(beside)
            _sync(beside)
            beside.replace(target)
        except (OSError, duckdb.Error) as error:
            raise StorageError(f"cannot write {target}: {_first_line(error)}") from error
        finally:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
                Path(f"{beside}.wal").unlink(missing_ok=True)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._turn() as turn:
            if turn.in_use:
                raise RuntimeError(f"{self.path} is being read or written by this thread already")
            if turn.database is None:
                turn.database = self._connect()
            con = _cursor(turn.database)
            turn.in_use = True
            try:
                yield con
            except duckdb.OutOfMemoryException:
                raise
            except (duckdb.IOException, duckdb.TransactionException) as error:
                raise StorageError(f"cannot use {self.path}: {_first_line(error)}") from error
            finally:
                turn.in_use = False
                con.close()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        try:
            con = duckdb.connect(str(self.path))
        except duckdb.Error as error:
            raise StorageError(f"cannot open {self.path}: {_first_line(error)}") from error
        try:
            _set_up(con)
            self.ensure_schema(con)
        except BaseException:
            con.close()
            raise
        return con

    def ensure_schema(self, con: duckdb.DuckDBPyConnection) -> None:
        """Give a new file its tables, and an older one what it lacks."""
        ensure_schema(con, self.path)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[_Turn]:
        """Yield the turn that this thread has, or a new one, waited for and then ended."""
        if self._turns.mine is not None:
            yield self._turns.mine
            return
        with contextlib.ExitStack() as held:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(self.path.with_suffix(".lock"), self._wait))
            except TimeoutError:
                raise BusyError(
                    f"another process has held {self.path} for {self._wait:.0f} seconds: "
                    "wait for its run to end, or stop it, and try again"
                ) from None
            except OSError as error:
                raise StorageError(
                    f"cannot write in {self.path.parent}: {error.strerror or error}"
                ) from error
            turn = self._turns.mine = _Turn()
            try:
                yield turn
            finally:
                self._turns.mine = None
                turn.close()

    def _is_small(self, n_bytes: int) -> bool:
        try:
            size = self.path.stat().st_size
        except OSError:
            size = 0
        return size + _INDEX_BYTES_PER_BYTE * n_bytes <= _SMALL_BYTES


@dataclass
class _Turn:
    """A thread's turn with the file: the database, once it is open, and whether it is in use."""

    database: duckdb.DuckDBPyConnection | None = None
    in_use: bool = False

    def close(self) -> None:
        if self.database is not None:
            self.database.close()
            self.database = None


class _Turns(threading.local):
    """The turn of each thread that has one."""

    mine: _Turn | None = None


def connect_published(path: Path, **more: Path) -> duckdb.DuckDBPyConnection:
    """Open a published release for reading; writers never wait for it, nor it for them.

    The file is attached to a DuckDB instance of its own: DuckDB keeps one instance per path and
    process, so opening the path itself would go on showing a release that was replaced for as
    long as anyone in the process has it open. ``more`` are other releases, by the name to attach
    each under. Raises StorageError if one cannot be opened.
    """
    spill = Path(tempfile.gettempdir(), f"graphrag-{uuid.uuid4().hex}")
    config = {"python_enable_replacements": False, "temp_directory": str(spill)}
    con = duckdb.connect(":memory:", config=config)
    file = path
    try:
        for name, file in (("published", path), *more.items()):
            quoted = str(file).replace("'", "''")
            con.execute(f"ATTACH '{quoted}' AS {name} (READ_ONLY)")
        con.execute("USE published")
        _set_up(con)
        con.execute("SET enable_external_access = false")
    except duckdb.Error as error:
        con.close()
        raise StorageError(f"cannot open {file}: {_first_line(error)}") from error
    return con


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: pl.DataFrame | pa.Table) -> None:
    """Append rows to a table by column name. ``table`` is a name of the project's own schema."""
    con.register("incoming_rows", rows)
    try:
        con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming_rows")
    finally:
        con.unregister("incoming_rows")


def replace_changed(con: duckdb.DuckDBPyConnection, table: str, wanted: str) -> Mapping[str, int]:
    """Make ``table`` equal to the table ``wanted`` by ``id``, writing only rows that differ.

    Returns the numbers of rows ``added``, ``changed``, ``removed`` and ``reused``.
    """
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE _stale AS SELECT id FROM "
        f'(SELECT * FROM "{table}" EXCEPT ALL SELECT * FROM "{wanted}")'
    )
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE _fresh AS "
        f'SELECT * FROM "{wanted}" EXCEPT ALL SELECT * FROM "{table}"'
    )
    added, changed, removed, total = _row(
        con,
        f"""SELECT (SELECT count(*) FROM _fresh ANTI JOIN _stale USING (id)),
                   (SELECT count(*) FROM _fresh SEMI JOIN _stale USING (id)),
                   (SELECT count(*) FROM _stale ANTI JOIN _fresh USING (id)),
                   (SELECT count(*) FROM "{wanted}")""",
    )
    if added or changed or removed:
        con.execute(f'DELETE FROM "{table}" WHERE id IN (SELECT id FROM _stale)')
        con.execute(f'INSERT INTO "{table}" BY NAME SELECT * FROM _fresh')
    con.execute("DROP TABLE _stale; DROP TABLE _fresh")
    return {
        "added": added,
        "changed": changed,
        "removed": removed,
        "reused": total - added - changed,
    }


def replace_links(
    con: duckdb.DuckDBPyConnection, table: str, wanted: str, key: tuple[str, ...]
) -> None:
    """Make ``table`` equal to ``wanted``, rows being told apart by the columns ``key``."""
    columns = ", ".join(key)
    con.execute(
        f"""CREATE OR REPLACE TEMP TABLE _gone AS
            SELECT * FROM {table} EXCEPT SELECT * FROM {wanted};
            CREATE OR REPLACE TEMP TABLE _new AS
            SELECT * FROM {wanted} EXCEPT SELECT * FROM {table};
            DELETE FROM {table} WHERE ({columns}) IN (SELECT ({columns}) FROM _gone);
            INSERT INTO {table} BY NAME SELECT * FROM _new;
            DROP TABLE _gone; DROP TABLE _new;"""
    )


def get_meta(con: duckdb.DuckDBPyConnection, key: str) -> str | None:
    """Return a value kept in ``meta``, or None."""
    row = con.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchone()
    return row[0] if row else None


def set_meta(con: duckdb.DuckDBPyConnection, key: str, value: str) -> None:
    """Keep a value in ``meta``."""
    con.execute("DELETE FROM meta WHERE key = ?", [key])
    con.execute("INSERT INTO meta VALUES (?, ?)", [key, value])


def assign_identifiers(con: duckdb.DuckDBPyConnection, kind: str, ids: str) -> None:
    """Give every id selected by the query ``ids`` a small number, once and for ever.

    ``ids`` is one of the project's own queries, with one column ``id`` whose order decides.
    """
    con.execute(
        f"""INSERT INTO identifiers
            SELECT $kind, id,
                   row_number() OVER (ORDER BY place) - 1 + (
                       SELECT coalesce(max(human_readable_id) + 1, 0)
                       FROM identifiers WHERE kind = $kind)
            FROM (SELECT id, row_number() OVER () AS place FROM ({ids})) ANTI JOIN
                 (SELECT id FROM identifiers WHERE kind = $kind) USING (id)""",
        {"kind": kind},
    )


def _cursor(database: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return a connection of its own to an open database, with its own temporary tables."""
    con = database.cursor()
    _set_up(con)
    return con


def _set_up(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("SET TimeZone = 'UTC'")
    con.execute("SET enable_progress_bar = false")


def _row(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, ...]:
    row = con.execute(sql).fetchone()
    assert row is not None
    return row


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as incoming, target.open("wb") as outgoing:
        while block := incoming.read(1 << 22):
            outgoing.write(block)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
