"""DuckDB in memory, to which files are attached."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

import duckdb

from graphrag_pipeline.core.hardening.files import private_temporary
from graphrag_pipeline.core.hardening.temporary import process_folder
from graphrag_pipeline.store.limits import DatabaseLimits

_FEW_BYTES = 256 * 2**20


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


def hide_progress(con: duckdb.DuckDBPyConnection) -> None:
    """Keep DuckDB from drawing a bar of its own.

    In a notebook without ipywidgets it draws none, and refuses to be told so.
    """
    with contextlib.suppress(duckdb.InvalidInputException):
        con.execute("SET enable_progress_bar = false")


def spare_threads(con: duckdb.DuckDBPyConnection, limits: DatabaseLimits, *files: Path) -> None:
    """Work on small files in one thread, unless so many are asked for.

    A thread takes 120,000 rows of a table at a time. Where there are few of these, to share a query
    takes a fifth more of the processors, and is hardly sooner done.
    """
    if limits.threads is not None:
        return
    with contextlib.suppress(OSError):
        if sum(file.stat().st_size for file in files) <= _FEW_BYTES:
            con.execute("SET threads = 1")
