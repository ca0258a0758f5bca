"""Limits of DuckDB on the machine: memory, threads, and where it puts what does not fit."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from graphrag_pipeline.core.hardening.files import make_folder, told_of_disk
from graphrag_pipeline.core.hardening.memory import memory_for_us
from graphrag_pipeline.core.rows import sql_literal
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.store.frames import value_of

_PROGRAM_BYTES = 800_000_000
"""What a run takes besides its tables: libraries, and rows on their way."""
_LEAST_SHARE = 0.25
_LEAST_BYTES = 2**20
_IN_FORCE = """
SELECT current_setting('memory_limit'), current_setting('threads'),
       current_setting('memory_limit') = format_bytes($bytes)
"""
_SHARES = 4
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_narrowing = threading.RLock()


@dataclass(frozen=True)
class DatabaseLimits:
    """Limits of one open database; None: what DuckDB would take by itself.

    ``spill`` is a folder that this index alone uses.
    """

    memory_bytes: int | None = None
    threads: int | None = None
    spill: Path | None = None

    def set_on(self, con: duckdb.DuckDBPyConnection, file: Path) -> None:
        """Set them on the open database of a file that nobody else has open.

        What a killed process has left in the folder for what does not fit is removed. Raises
        StorageError where the folder cannot be made.
        """
        spill = self.spill_folder()
        if spill is not None:
            _spill_to(con, spill)
        _remove_left(con, spill or Path(f"{file}.tmp"))
        self.bound(con)

    def spill_folder(self) -> Path | None:
        """Return ``spill``, which is there then. Raises StorageError where it cannot be made."""
        if self.spill is not None:
            with told_of_disk(f"cannot write in {self.spill} (storage.temp)"):
                make_folder(self.spill)
        return self.spill

    def bound(self, con: duckdb.DuckDBPyConnection) -> None:
        """Set on a database what memory and threads it may take."""
        if self.threads is not None:
            con.execute(f"SET GLOBAL threads = {self.threads}")
        if self.memory_bytes is not None:
            con.execute(f"SET GLOBAL memory_limit = '{self.memory_bytes} bytes'")

    @contextlib.contextmanager
    def narrowed(
        self, con: duckdb.DuckDBPyConnection, *, memory_bytes: int, threads: int = sys.maxsize
    ) -> Iterator[None]:
        """Let a database that has these limits take less for a while, and then what it took before.

        The limits are those of all its connections. Threads of this process therefore narrow one
        after the other: none takes for the former value what another has set. One that holds more
        than ``memory_bytes`` already keeps its limit of memory.
        """
        with _narrowing, con.cursor() as beside:  # an aborted transaction does not hold it up
            before = self._in_force(beside)
            try:
                with contextlib.suppress(duckdb.OutOfMemoryException):
                    least = min(memory_bytes, before.memory_bytes or memory_bytes)
                    DatabaseLimits(least, min(threads, before.threads or threads)).bound(beside)
                yield
            finally:
                # Not by RESET: DuckDB would tell of its default, and go on with the smaller limit.
                before.bound(beside)

    def _in_force(self, con: duckdb.DuckDBPyConnection) -> DatabaseLimits:
        """Return the memory and threads that are in force; exactly, where it is these limits."""
        row = con.execute(_IN_FORCE, {"bytes": self.memory_bytes}).fetchone()
        assert row is not None
        reported, threads, is_ours = row
        return DatabaseLimits(self.memory_bytes if is_ours else _least_bytes(reported), threads)


def _least_bytes(reported: str) -> int:
    """Return the least memory that DuckDB reports so.

    It cuts to a tenth of a unit: set to the tenth itself, most limits are reported as one less.
    """
    number, unit = reported.split()
    power = _UNITS.index(unit)
    if not power:
        return int(number)
    tenths = int(number.replace(".", ""))
    return -(-tenths * 1024 // 10) * 1024 ** (power - 1)


def drop_cached_blocks(con: duckdb.DuckDBPyConnection) -> None:
    """Let a database forget what it has read of its files, while no statement runs on it.

    It would keep it as long as there is memory, also where nobody reads it again.
    """
    with DatabaseLimits().narrowed(con, memory_bytes=_LEAST_BYTES):
        pass


def parts_within(con: duckdb.DuckDBPyConnection, n_bytes: int) -> int:
    """Return in how many parts rows that take so many bytes take little of a database's memory."""
    limit = value_of(con, "SELECT current_setting('memory_limit')")
    return n_bytes // max(_least_bytes(limit) // _SHARES, 1) + 1


def _spill_to(con: duckdb.DuckDBPyConnection, folder: Path) -> None:
    # What an error still holds may keep the database open, with files in its folder.
    if value_of(con, "SELECT current_setting('temp_directory')") != str(folder):
        con.execute(f"SET GLOBAL temp_directory = {sql_literal(folder)}")


def _remove_left(con: duckdb.DuckDBPyConnection, folder: Path) -> None:
    with contextlib.suppress(OSError):
        left = {path.name: path for path in folder.iterdir() if not path.is_dir()}
        if not left:
            return
        for (used,) in con.execute("SELECT path FROM duckdb_temporary_files()").fetchall():
            left.pop(Path(used).name, None)
        for path in left.values():
            path.unlink()


def limits_of(settings: Settings) -> DatabaseLimits:
    """Return the limits that ``[storage]`` sets; by default half of the machine's memory."""
    storage = settings.storage
    given = int(storage.memory_gb * 1e9) or memory_for_us() // 2
    tables = max(given - _PROGRAM_BYTES, int(_LEAST_SHARE * given))
    spill = None
    if storage.temp:
        home = os.path.realpath(settings.home_path)
        spill = Path(storage.temp).expanduser() / f"graphrag-{fingerprint(home)}"
    return DatabaseLimits(tables, storage.threads or None, spill)
