"""A fold that does not survive one of its statements.

Run as ``python -m killed_fold STATEMENT HOME``: what is staged is taken into the graph, and the
process is killed (SIGKILL) before the statement with the number ``STATEMENT``, from 0. Where the
fold has fewer, it is killed once the transaction has ended, before the index is closed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
from commands import run_python

from conftest import workspace_of
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.fold import merge_graph
from graphrag_pipeline.graph.resolution.resolving import resolve_entities
from graphrag_pipeline.store.index_store import IndexStore


def killed_fold(statement: int, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a fold that is killed before one of its statements, or in the end."""
    return run_python("-m", "killed_fold", str(statement), str(home))


class _Fatal:
    """A connection of which one statement is never run."""

    def __init__(self, con: duckdb.DuckDBPyConnection, fatal: int) -> None:
        self._con = con
        self._left = fatal

    def execute(self, *given: Any) -> duckdb.DuckDBPyConnection:
        if self._left == 0:
            _die()
        self._left -= 1
        return self._con.execute(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fold(fatal: int, home: Path) -> None:
    workspace = workspace_of(home, Settings())
    resolve_entities(workspace.store, workspace.settings)
    transaction = IndexStore.transaction

    @contextlib.contextmanager
    def dying(store: IndexStore, **more: bool) -> Iterator[Any]:
        with transaction(store, **more) as con:
            yield _Fatal(con, fatal)
        _die()

    with workspace.store.session():
        IndexStore.transaction = dying  # pyright: ignore[reportAttributeAccessIssue]
        merge_graph(workspace.store, workspace.settings.graph, workspace.settings.chunks.encoding)


if __name__ == "__main__":
    _fold(int(sys.argv[1]), Path(sys.argv[2]))
