"""What makes the stores of tests quick: new files are copied, and open ones stay open in a test.

Making the tables of a new file, and opening and closing it for each read and write, takes most of
the time of a small test. What a store is asked, and what it answers, is as outside of tests.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
from artefacts import MADE

from graphrag_pipeline.store import lance
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.migrations import schema_sql

with lance.lightly():
    import lancedb  # noqa: F401

OPEN = IndexStore._connect
_STARTS_A_PROCESS = {"subprocess.Popen", "os.fork", "os.posix_spawn"}


class QuickStores:
    """Opens the files of stores for the tests of this process.

    A file stays open until the test ends or starts a process, which may want the file for itself:
    DuckDB opens a file a second time in no time, but for one process only.
    """

    def __init__(self) -> None:
        self._open: dict[Path, tuple[duckdb.DuckDBPyConnection, int]] = {}
        self._alone = True
        self._new: dict[type[IndexStore], bytes] = {}
        sys.addaudithook(self._hear)

    def connect(self, store: IndexStore) -> duckdb.DuckDBPyConnection:
        """Open a store's file, in place of the store itself."""
        path = store.path
        if path in self._open and _inode(path) != self._open[path][1]:
            self._close(path)
        if not path.exists():
            self._make_new(store)
        con = OPEN(store)
        if self._alone and path not in self._open:
            self._open[path] = duckdb.connect(str(path)), _inode(path)
            # The processors are taken by the workers of the tests already.
            self._open[path][0].execute("SET threads = 1")
        return con

    def _make_new(self, store: IndexStore) -> None:
        """Copy the first new file of its kind that a store has made, or make that."""
        if type(store) not in self._new:
            OPEN(store).close()
            self._new[type(store)] = store.path.read_bytes()
            return
        try:
            store.path.write_bytes(self._new[type(store)])
        except OSError:
            store.path.unlink(missing_ok=True)

    def alone(self, method: Callable[..., None]) -> Callable[..., None]:
        """Return a method of a store's that opens its file by itself, too."""

        @functools.wraps(method)
        def called(*given: Any, **named: Any) -> None:
            self._close_all()
            before, self._alone = self._alone, False
            try:
                method(*given, **named)
            finally:
                self._alone = before

        return called

    def end_test(self) -> None:
        """Close every file."""
        self._close_all()
        self._alone = True

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        # A process of a forkserver is asked for through a socket that has a path.
        if event in _STARTS_A_PROCESS or (
            event == "socket.connect" and isinstance(arguments[1], str | bytes)
        ):
            self._alone = False
            self._close_all()
        elif event == MADE:
            self._close_all()

    def _close_all(self) -> None:
        for path in [*self._open]:
            self._close(path)

    def _close(self, path: Path) -> None:
        con, _ = self._open.pop(path)
        con.close()


def _inode(path: Path) -> int:
    return path.stat().st_ino if path.exists() else -1


_bare: list[duckdb.DuckDBPyConnection] = []


@contextlib.contextmanager
def bare_tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """Lend a database in memory with the tables of a new index; what is done to it is undone."""
    con = _bare.pop() if _bare else _with_bare_tables()
    con.execute("BEGIN")
    try:
        yield con
    finally:
        con.execute("ROLLBACK")
        _bare.append(con)


def _with_bare_tables() -> duckdb.DuckDBPyConnection:
    """Make the tables and views of an index without comments, which take most of the time."""
    con = duckdb.connect(config={"threads": 1})
    for statement in con.extract_statements(schema_sql()):
        if not statement.query.lstrip().startswith("COMMENT ON"):
            con.execute(statement)
    return con
