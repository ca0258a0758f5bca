"""The index in DuckDB: one writer at a time across processes, which wait in turn."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from graphrag_pipeline.core.errors import BusyError, StorageError, first_line
from graphrag_pipeline.core.hardening.files import (
    make_folder,
    private_temporary,
    replacing,
    told_of_disk,
)
from graphrag_pipeline.core.hardening.locks import FairLock
from graphrag_pipeline.core.hardening.temporary import process_folder
from graphrag_pipeline.core.rows import sql_literal
from graphrag_pipeline.store.absent_pandas import remember_absent_pandas
from graphrag_pipeline.store.frames import streamed, value_of
from graphrag_pipeline.store.limits import DatabaseLimits, drop_cached_blocks
from graphrag_pipeline.store.migrations import ensure_schema
from graphrag_pipeline.store.older_files import add_what_older_lack

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_SMALL_BYTES = 512 * 2**20
_LARGE_BYTES = 64 * 2**20
_FEW_BYTES = 256 * 2**20
_PLAIN_BYTES = 16 * 2**20
"""A copy of so small a file is hardly smaller compressed: each column has a block of its own."""
_IDLE_SECONDS = 2.0
_WATCH_SECONDS = 0.05
remember_absent_pandas()


class IndexStore:
    """``index.duckdb``, the pipeline's own file.

    DuckDB lets one process write and shuts out every other meanwhile, readers too. Processes, and
    the threads of one, therefore queue beside the database for their turn with it. A turn lasts for
    one read or one transaction, never across slow work such as a model call; within a
    :meth:`session`, until somebody else waits.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        limits: DatabaseLimits | None = None,
        *,
        wait_seconds: float = 600.0,
    ) -> None:
        self.path = Path(path)
        self.limits = limits or DatabaseLimits()
        self._wait = wait_seconds

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Keep the file open for this thread from one read or transaction to the next.

        Opening it costs more than what a small stage reads and writes. Others wait as long as they
        would without: whoever comes between two uses gets the file. It is also let go where it is
        not used for a while, and where the index is large, for then opening costs little by
        comparison. A session within a session is part of it.
        """
        turn = self._turn()
        if turn.in_session:
            yield
            return
        ended = threading.Event()
        watcher = threading.Thread(target=_watch, args=(turn, ended), daemon=True)
        turn.in_session = True
        watcher.start()
        try:
            yield
        finally:
            turn.in_session = False
            turn.memory.clear()
            ended.set()
            watcher.join()
            turn.let_go()

    def remember(self, key: str, value: object) -> None:
        """Keep a value of the program until this thread's session ends; without one, do nothing."""
        turn = self._turn()
        if turn.in_session:
            turn.memory[key] = value

    def recall(self, key: str) -> object | None:
        """Return what was kept under a key in this session, or None.

        The tables may have changed since: whoever kept it must know of what.
        """
        return self._turn().memory.get(key)

    @property
    def n_changes(self) -> int:
        """A number that grows with each transaction, and when others could have the file.

        While it stays, so do the tables that stages read.
        """
        return self._turn().n_changes

    @contextlib.contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection for reading; the file is created if it is not there."""
        with self._used() as turn:
            con = self._open(turn).cursor()
            try:
                yield con
            except duckdb.OutOfMemoryException:
                raise
            except (duckdb.IOException, duckdb.TransactionException) as error:
                raise StorageError(f"cannot use {self.path}: {first_line(error)}") from error
            finally:
                con.close()

    @contextlib.contextmanager
    def transaction(self, *, is_counted: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection inside one transaction: all of it is kept, or none.

        One that changes nothing that stages read need not be counted in :attr:`n_changes`.
        """
        with self.read() as con:
            self._turn().n_changes += is_counted
            con.execute("BEGIN")
            try:
                yield con
                con.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(duckdb.Error):
                    con.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def look(self, **more: Path) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection that can change nothing of the file, its schema neither.

        It sees the file as :func:`connect_published` shows a release, with ``more`` beside it.
        Raises StorageError if one cannot be opened.
        """
        with self._used() as turn:
            if more or not turn.in_session:
                turn.close()
                with connect_published(self.path, limits=self.limits, **more) as con:
                    yield con
            else:
                with turn.looking(self.limits).cursor() as con:
                    _show_published(con)
                    yield con

    def give_back_memory(self) -> None:
        """Let the database of a session forget what it has read of a large file.

        The next stage reads other tables, and would hold these beside them.
        """
        turn = self._turn()
        if turn.in_session and turn.database is not None and self._size() > _LARGE_BYTES:
            with self.read() as con:
                drop_cached_blocks(con)

    def write_anew(self) -> None:
        """Write the file anew, so that nothing of what was deleted is left in its free blocks.

        Raises StorageError when there is no room or no right to write; it is then as it was.
        """
        with (
            told_of_files(f"cannot write {self.path}"),
            self._used() as turn,
            replacing(self.path) as beside,
        ):
            turn.close()
            self._open(turn).execute("CHECKPOINT")
            turn.close()
            copy_rows(self.path, beside, limits=self.limits)
            beside.chmod(self.path.stat().st_mode)

    def copy_to(
        self,
        target: Path,
        write: Callable[[Path, Path], None] | None = None,
        *,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """Write a consistent copy of the file at ``target``, replacing it in one step.

        ``write`` makes it, in place of copying byte for byte: from the file, which nobody else can
        use then, at a place beside ``target``. ``meanwhile`` is called while that is so. Raises
        StorageError when there is no room or no right to write; ``target`` then stays as it was.
        """
        with (
            told_of_files(f"cannot write {target}"),
            replacing(target) as beside,
            self._used() as turn,
        ):
            # DuckDB's lock on a file it has open is lost when the file is read beside it.
            was_open = turn.database is not None
            turn.close()
            # As it was closed all went into the file, unless DuckDB's log stayed beside it.
            if not was_open or self.path.with_name(f"{self.path.name}.wal").exists():
                self._open(turn).execute("CHECKPOINT")
                turn.close()
            (write or shutil.copyfile)(self.path, beside)
            if meanwhile is not None:
                meanwhile()

    def _open(self, turn: _Turn) -> duckdb.DuckDBPyConnection:
        if turn.database is None:
            turn.close()
            if not turn.is_alone():
                raise StorageError(f"{self.path} was removed while it was in use: try again")
            turn.database = self._connect()
        return turn.database

    def _connect(self) -> duckdb.DuckDBPyConnection:
        with told_of_files(f"cannot open {self.path}"):
            con = duckdb.connect(str(self.path))
        try:
            _set_up(con)
            self.limits.set_on(con, self.path)
            _spare_threads(con, self.limits, self.path)
            self.ensure_schema(con)
        except BaseException:
            con.close()
            raise
        return con

    def ensure_schema(self, con: duckdb.DuckDBPyConnection) -> None:
        """Give a new file its tables, and an older one what it lacks."""
        ensure_schema(con, self.path)

    def _turn(self) -> _Turn:
        path = Path(os.path.abspath(self.path))
        return _turns.of_file.setdefault(path, _Turn(path))

    @contextlib.contextmanager
    def _used(self) -> Iterator[_Turn]:
        """Wait for this thread's turn, and end it unless it is kept for what comes next."""
        turn = self._turn()
        if not turn.begin():
            raise RuntimeError(f"{self.path} is being read or written by this thread already")
        keep = False
        try:
            self._take(turn)
            yield turn
            keep = turn.in_session and self._size() <= _SMALL_BYTES
        finally:
            turn.end(keep=keep)

    def _take(self, turn: _Turn) -> None:
        with told_of_disk(f"cannot write in {self.path.parent}"):
            make_folder(self.path.parent)
            try:
                turn.lock.take(self._wait)
            except TimeoutError:
                raise BusyError(
                    f"another process has held {self.path} for {self._wait:.0f} seconds: "
                    "wait for its run to end, or stop it, and try again"
                ) from None

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


class _Turn:
    """A thread's turn with a file: the lock, and the database once it is open.

    Another thread may let go of it while it is not in use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lock = FairLock(path.with_suffix(".lock"))
        self.database: duckdb.DuckDBPyConnection | None = None
        self._shown: tuple[duckdb.DuckDBPyConnection, int] | None = None
        self.in_session = False
        self.memory: dict[str, object] = {}
        self.n_changes = 0
        self._in_use = False
        self._last_used = 0.0
        self._changing = threading.Lock()

    def begin(self) -> bool:
        """Use the file; return whether it was not in use already."""
        with self._changing:
            before, self._in_use = self._in_use, True
            return not before

    def end(self, *, keep: bool) -> None:
        """Use the file no longer, and let go of it unless it is kept and nobody waits for it."""
        with self._changing:
            self._in_use = False
            self._last_used = time.monotonic()
        if not keep or self.lock.is_wanted():
            self.let_go()

    def is_kept_in_vain(self) -> bool:
        """Whether somebody waits for the file, or it has not been used for a while."""
        if not self.lock.is_taken:
            return False
        idle = time.monotonic() - self._last_used
        return idle > _IDLE_SECONDS or self.lock.is_wanted()

    def let_go(self) -> None:
        """Close the file and let the next one have it, unless it is in use."""
        with self._changing:
            if not self._in_use:
                self.n_changes += 1
                try:
                    self.close()
                finally:
                    self.lock.release()

    def is_alone(self) -> bool:
        """Whether no other thread has the file open, now that this one has the lock.

        Another may where the folder was removed with its lock: DuckDB, which knows a file by its
        path, would go on with the one that is gone. It is closed unless it is in use.
        """
        other = _latest.get(self._path)
        if other is not None and other is not self:
            other.let_go()
            if other.database is not None:
                return False
        _latest[self._path] = self
        return True

    def looking(self, limits: DatabaseLimits) -> duckdb.DuckDBPyConnection:
        """Open the file for looks only, or return the connection that has it open for these.

        Raises StorageError.
        """
        file = self._path.stat().st_ino if self._path.exists() else 0
        if self._shown is None or self._shown[1] != file:
            self.close()
            self._shown = connect_published(self._path, limits=limits), file
        return self._shown[0]

    def close(self) -> None:
        """Close the database, and keep the lock."""
        if self.database is not None:
            self.database.close()
            self.database = None
        if self._shown is not None:
            self._shown[0].close()
            self._shown = None


_latest: MutableMapping[Path, _Turn] = weakref.WeakValueDictionary()
"""The turn that last opened each file in this process."""


class _Turns(threading.local):
    """The turns of each thread, by file."""

    def __init__(self) -> None:
        self.of_file: dict[Path, _Turn] = {}


_turns = _Turns()


def _watch(turn: _Turn, ended: threading.Event) -> None:
    while not ended.wait(_WATCH_SECONDS):
        if turn.is_kept_in_vain():
            turn.let_go()


_TABLES_TO_FILL = """
SELECT p.schema_name, p.table_name, w.estimated_size
FROM duckdb_tables() p JOIN duckdb_tables() w USING (schema_name, table_name)
WHERE p.database_name = 'packed' AND w.database_name = 'whole' AND w.estimated_size > 0
ORDER BY p.table_oid
"""
_MOST_HELD = 20_000
"""A transaction keeps its rows in memory, as large as they are: about so many at a time."""
_BLOCK_SIZE = "SELECT block_size FROM pragma_database_size() WHERE database_name = 'whole'"
_SMALL_BLOCK = "16384"


def memory_database(limits: DatabaseLimits | None = None) -> duckdb.DuckDBPyConnection:
    """Open a database in memory; what does not fit there goes to files that only we may read.

    Raises StorageError where the folder that ``limits`` name for that cannot be made.
    """
    limits = limits or DatabaseLimits()
    spill = process_folder(limits.spill_folder() or private_temporary(), "spill")
    config = {"python_enable_replacements": False, "temp_directory": str(spill / uuid.uuid4().hex)}
    con = duckdb.connect(":memory:", config=config)
    hide_progress(con)
    limits.bound(con)
    return con


class OtherStore(IndexStore):
    """A DuckDB file beside the index whose tables are another part's, and are left as they are."""

    def ensure_schema(self, con: duckdb.DuckDBPyConnection) -> None:
        """Leave the file as it is."""


def connect_published(
    path: Path, *, limits: DatabaseLimits | None = None, **more: Path
) -> duckdb.DuckDBPyConnection:
    """Open a published release for reading; writers never wait for it, nor it for them.

    The file is attached to a DuckDB instance of its own: DuckDB keeps one instance per path and
    process, so opening the path itself would go on showing a release that was replaced for as
    long as anyone in the process has it open. ``more`` are other releases, by the name to attach
    each under. Raises StorageError if one cannot be opened.
    """
    con = memory_database(limits)
    file = path
    try:
        for name, file in (("published", path), *more.items()):
            con.execute(f"ATTACH {sql_literal(file)} AS {name} (READ_ONLY)")
        _show_published(con)
        _set_up(con)
        _spare_threads(con, limits or DatabaseLimits(), path, *more.values())
        con.execute("SET enable_external_access = false")
    except duckdb.Error as error:
        con.close()
        raise StorageError(
            f"cannot open {file}: {first_line(error)}; run graphrag-pipeline check"
        ) from error
    return con


def _show_published(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("USE published")
    add_what_older_lack(con)


@contextlib.contextmanager
def told_of_files(what: str) -> Iterator[None]:
    """Raise StorageError, which begins with ``what``, where a file cannot be read or written."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise StorageError(f"{what}: {reason}") from error


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: pl.DataFrame | pa.Table) -> None:
    """Append rows to a table by column name. ``table`` is a name of the project's own schema."""
    with streamed(con, "incoming_rows", rows):
        con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming_rows")


def replace_changed(
    con: duckdb.DuckDBPyConnection, table: str, wanted: str, within: str = "true"
) -> Mapping[str, int]:
    """Make ``table`` equal to the table ``wanted`` by ``id``, writing only rows that differ.

    Where it holds more than that, ``within`` is the condition that a row counts. Returns the
    numbers of rows ``added``, ``changed``, ``removed`` and ``reused``, of all of the table.
    """
    names = [f'"{name}"' for name in con.table(table).columns]
    row = f"id, hash({', '.join(names)}) AS content"
    con.execute(
        f"""CREATE OR REPLACE TEMP TABLE _stale AS SELECT id FROM (
                SELECT {row} FROM "{table}" WHERE {within} EXCEPT ALL
                SELECT {row} FROM "{wanted}");
            CREATE OR REPLACE TEMP TABLE _fresh AS SELECT id FROM (
                SELECT {row} FROM "{wanted}" EXCEPT ALL
                SELECT {row} FROM "{table}" WHERE {within})"""
    )
    added, changed, removed = con.execute(
        """SELECT (SELECT count(*) FROM _fresh ANTI JOIN _stale USING (id)),
                  (SELECT count(*) FROM _fresh SEMI JOIN _stale USING (id)),
                  (SELECT count(*) FROM _stale ANTI JOIN _fresh USING (id))"""
    ).fetchall()[0]
    if added or changed or removed:
        con.execute(f'DELETE FROM "{table}" WHERE id IN (SELECT id FROM _stale)')
        con.execute(
            f"""INSERT INTO "{table}" BY NAME
                SELECT {", ".join(names)} FROM "{wanted}" SEMI JOIN _fresh USING (id)"""
        )
    con.execute("DROP TABLE _stale; DROP TABLE _fresh")
    total = count_rows(con, f'"{table}"')
    return {
        "added": added,
        "changed": changed,
        "removed": removed,
        "reused": total - added - changed,
    }


def replace_links(
    con: duckdb.DuckDBPyConnection,
    table: str,
    wanted: str,
    key: Sequence[str],
    within: str = "true",
) -> None:
    """Make ``table`` equal to ``wanted``, rows being told apart by the columns ``key``.

    Where it holds more than that, ``within`` is the condition that a row counts.
    """
    columns = ", ".join(key)
    con.execute(
        f"""CREATE OR REPLACE TEMP TABLE _gone AS
            SELECT * FROM {table} WHERE {within} EXCEPT SELECT * FROM {wanted};
            DELETE FROM {table} WHERE ({columns}) IN (SELECT ({columns}) FROM _gone);
            INSERT INTO {table} BY NAME
            SELECT * FROM {wanted} EXCEPT SELECT * FROM {table} WHERE {within};
            DROP TABLE _gone;"""
    )


def count_rows(con: duckdb.DuckDBPyConnection, table: str) -> int:
    """Return the number of rows of a table."""
    return con.table(table).count("*").fetchall()[0][0]


def number_different(con: duckdb.DuckDBPyConnection, table: str, other: str) -> int:
    """Return in how many rows a table differs from another that has its columns."""
    names = ", ".join(f'"{name}"' for name in con.table(table).columns)
    rows, others = (f"SELECT hash({names}) AS row FROM {name}" for name in (table, other))
    return value_of(
        con,
        f"""SELECT greatest((SELECT count(*) FROM ({rows} EXCEPT ALL {others})),
                            (SELECT count(*) FROM ({others} EXCEPT ALL {rows})))""",
    )


def get_meta(con: duckdb.DuckDBPyConnection, key: str) -> str | None:
    """Return a value kept in ``meta``, or None."""
    return value_of(con, "SELECT value FROM meta WHERE key = ?", [key])


def set_meta(con: duckdb.DuckDBPyConnection, key: str, value: str) -> None:
    """Keep a value in ``meta``; nothing is written where it is kept already."""
    if get_meta(con, key) == value:
        return
    con.execute("DELETE FROM meta WHERE key = ?", [key])
    con.execute("INSERT INTO meta VALUES (?, ?)", [key, value])


def forget_meta(con: duckdb.DuckDBPyConnection, key: str) -> None:
    """Forget what ``meta`` keeps under a key; under all that begin so, where it ends in ``:``."""
    fits = "starts_with(key, ?)" if key.endswith(":") else "key = ?"
    con.execute(f"DELETE FROM meta WHERE {fits}", [key])


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


def hide_progress(con: duckdb.DuckDBPyConnection) -> None:
    """Keep DuckDB from drawing a bar of its own.

    In a notebook without ipywidgets it draws none, and refuses to be told so.
    """
    with contextlib.suppress(duckdb.InvalidInputException):
        con.execute("SET enable_progress_bar = false")


def _set_up(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("SET GLOBAL TimeZone = 'UTC'")
    # DuckDB would compare every row of a side that it takes for small with every row of the other.
    con.execute("SET GLOBAL asof_loop_join_threshold = 0")
    hide_progress(con)


def _spare_threads(con: duckdb.DuckDBPyConnection, limits: DatabaseLimits, *files: Path) -> None:
    """Work on small files in one thread, unless so many are asked for.

    A thread takes 120,000 rows of a table at a time. Where there are few of these, to share a query
    takes a fifth more of the processors, and is hardly sooner done.
    """
    if limits.threads is not None:
        return
    with contextlib.suppress(OSError):
        if sum(file.stat().st_size for file in files) <= _FEW_BYTES:
            con.execute("SET threads = 1")


@contextlib.contextmanager
def copying(
    source: Path, target: Path, limits: DatabaseLimits | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection with a DuckDB file as ``whole``, and ``packed``, a new one to copy it to.

    Its blocks are as large. At the end all is in the new file, or duckdb.Error is raised: as DuckDB
    closes a file it says nothing of a full disk, and leaves the rows in its log beside the file.
    """
    con = memory_database(limits)
    try:
        _spare_threads(con, limits or DatabaseLimits(), source)
        con.execute(f"ATTACH {sql_literal(source)} AS whole (READ_ONLY)")
        if source.stat().st_size <= _PLAIN_BYTES:
            con.execute("SET force_compression = 'uncompressed'")
        (block_size,) = con.execute(_BLOCK_SIZE).fetchall()[0]
        con.execute(f"ATTACH {sql_literal(target)} AS packed (BLOCK_SIZE {int(block_size)})")
        yield con
        try:
            con.execute("CHECKPOINT packed")
        except duckdb.Error as error:
            # Before that it tells of a database "packed" that is no longer valid.
            raise duckdb.IOException(first_line(error).rpartition("Original error: ")[2]) from error
    finally:
        con.close()


def make_small(path: Path) -> None:
    """Make an empty DuckDB file of small blocks, for few rows, unless there is a file.

    A table takes up blocks of its own: an index of one small document has a fifth of the size.
    """
    if not path.exists():
        make_folder(path.parent)
        with replacing(path) as beside:
            duckdb.connect(str(beside), config={"default_block_size": _SMALL_BLOCK}).close()


def copy_rows(source: Path, target: Path, limits: DatabaseLimits | None = None) -> None:
    """Copy all that a DuckDB file holds into a new one, without its free blocks."""
    with copying(source, target, limits) as con:
        con.execute("COPY FROM DATABASE whole TO packed (SCHEMA)")
        fill_copy(con)


def fill_copy(con: duckdb.DuckDBPyConnection) -> None:
    """Copy the rows of each table of ``packed`` from ``whole``, some at a time."""
    con.execute("BEGIN")
    n_held = 0
    for schema, table, n_rows in con.execute(_TABLES_TO_FILL).fetchall():
        name = f'"{schema}"."{table}"'
        con.execute(f"INSERT INTO packed.{name} FROM whole.{name}")
        n_held += n_rows
        if n_held > _MOST_HELD:
            con.execute("COMMIT; CHECKPOINT packed; BEGIN")
            n_held = 0
    con.execute("COMMIT")
