"""Hashes of an index's tables, kept in a file beside it from one process to the next."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.store.frames import value_of

_SETTLED_NS = 1_000_000_000
"""A file written so lately may be written again without a change of its times."""
_memory: ContextVar[HashMemory | None] = ContextVar("hash_memory", default=None)


@dataclass
class HashMemory:
    """Hashes of one DuckDB file: each with the quick one of the rows it was taken of.

    ``is_unwritten``: nobody has written into the file since all of ``before`` were taken.
    """

    file: Path
    is_unwritten: bool
    before: dict[str, tuple[str, str]]
    now: dict[str, tuple[str, str]] = field(default_factory=dict)
    _asked: tuple[duckdb.DuckDBPyConnection | None, bool] = (None, False)

    def is_of(self, con: duckdb.DuckDBPyConnection) -> bool:
        """Whether a connection reads this file and no other: each is asked once, for all tables."""
        if con is not self._asked[0]:
            own = "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
            path = value_of(con, own)
            self._asked = con, path is not None and Path(path) == self.file
        return self._asked[1]


@contextlib.contextmanager
def remembering_hashes(home: Home, *, is_read_only: bool) -> Iterator[None]:
    """Remember the hashes that are taken of an index's tables within this context.

    ``is_read_only`` says that nothing is changed within it: then what was taken of the file as it
    is need not be taken again. Rows that are not committed yet could not be told from it. A memory
    that cannot be read or written costs time alone.
    """
    state = _state_of(home.index) if is_read_only else ""
    before = _read(home.hashes)
    is_unwritten = bool(state) and before.get("state") == state
    memory = HashMemory(home.index, is_unwritten, _hashes(before))
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)
        stays = bool(state) and state == _state_of(home.index)
        _write(home.hashes, before, memory, state if stays else "")


def memory_of(con: duckdb.DuckDBPyConnection) -> HashMemory | None:
    """Return what is remembered of the file that a connection reads, None where nothing is."""
    memory = _memory.get()
    return memory if memory is not None and memory.is_of(con) else None


def digest_of(con: duckdb.DuckDBPyConnection, query: str, **values: object) -> str:
    """Return the one row of a query, its values with blanks between: of digests and numbers.

    It is as it was read before, if nobody has written since.
    """
    name, memory = json.dumps([query, values]), memory_of(con)
    _, known = memory.before.get(name, ("", "")) if memory else ("", "")
    if memory and memory.is_unwritten and known:
        digest = known
    else:
        digest = " ".join(map(str, con.execute(query, values).fetchone() or ()))
    if memory:
        memory.now[name] = ("", digest)
    return digest


def _state_of(file: Path) -> str:
    """Return what changes with each write into a DuckDB file, empty where it cannot be told.

    The file itself is not opened: DuckDB's lock on it would be lost when it is closed.
    """
    log = file.with_name(f"{file.name}.wal")
    try:
        of_file = file.stat()
        n_logged = log.stat().st_size if log.exists() else 0
    except OSError:
        return ""
    if time.time_ns() - max(of_file.st_mtime_ns, of_file.st_ctime_ns) < _SETTLED_NS:
        return ""
    times = (of_file.st_mtime_ns, of_file.st_ctime_ns)
    return ":".join(map(str, (of_file.st_dev, of_file.st_ino, of_file.st_size, *times, n_logged)))


def _read(file: Path) -> dict[str, object]:
    try:
        values = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _hashes(values: dict[str, object]) -> dict[str, tuple[str, str]]:
    """Return the hashes that were kept; of another DuckDB's none, whose quick ones are others."""
    hashes = values.get("hashes")
    if values.get("duckdb") != duckdb.__version__ or not isinstance(hashes, dict):
        return {}
    return {
        key: (str(pair[0]), str(pair[1]))
        for key, pair in hashes.items()
        if isinstance(pair, list) and len(pair) == 2
    }


def _write(file: Path, before: dict[str, object], memory: HashMemory, state: str) -> None:
    hashes = {**memory.before, **memory.now} if memory.is_unwritten else memory.now
    values = {"duckdb": duckdb.__version__, "state": state, "hashes": hashes}
    text = json.dumps(values)
    if hashes and json.loads(text) != before:
        with contextlib.suppress(StorageError):
            write_beside(file, text.encode())
