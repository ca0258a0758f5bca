"""What DuckDB may take of the machine: memory, threads, and where it puts what does not fit."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.files import make_folder
from graphrag_pipeline.core.memory import memory_for_us
from graphrag_pipeline.core.settings import Settings, fingerprint

_PROGRAM_BYTES = 800_000_000
"""What a run takes besides its tables: libraries, and rows on their way."""
_LEAST_SHARE = 0.25


@dataclass(frozen=True)
class Limits:
    """What one open database may take; None: what DuckDB would by itself.

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
            try:
                make_folder(self.spill)
            except OSError as error:
                raise StorageError(
                    f"cannot write in {self.spill} (storage.temp): {error.strerror}"
                ) from error
        return self.spill

    def bound(self, con: duckdb.DuckDBPyConnection) -> None:
        """Set on a database what memory and threads it may take."""
        if self.memory_bytes is not None:
            con.execute(f"SET GLOBAL memory_limit = '{self.memory_bytes // 1000} KB'")
        if self.threads is not None:
            con.execute(f"SET GLOBAL threads = {self.threads}")


def _spill_to(con: duckdb.DuckDBPyConnection, folder: Path) -> None:
    # What an error still holds may keep the database open, with files in its folder.
    row = con.execute("SELECT current_setting('temp_directory')").fetchone()
    if row != (str(folder),):
        literal = str(folder).replace("'", "''")
        con.execute(f"SET GLOBAL temp_directory = '{literal}'")


def _remove_left(con: duckdb.DuckDBPyConnection, folder: Path) -> None:
    with contextlib.suppress(OSError):
        left = {path.name: path for path in folder.iterdir() if not path.is_dir()}
        if not left:
            return
        for (used,) in con.execute("SELECT path FROM duckdb_temporary_files()").fetchall():
            left.pop(Path(used).name, None)
        for path in left.values():
            path.unlink()


def limits_of(settings: Settings) -> Limits:
    """Return the limits that ``[storage]`` sets; by default half of the machine's memory."""
    storage = settings.storage
    given = int(storage.memory_gb * 1e9) or memory_for_us() // 2
    tables = max(given - _PROGRAM_BYTES, int(_LEAST_SHARE * given))
    spill = None
    if storage.temp:
        home = os.path.realpath(settings.home_path)
        spill = Path(storage.temp).expanduser() / f"graphrag-{fingerprint(home)}"
    return Limits(tables, storage.threads or None, spill)
