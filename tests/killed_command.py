"""A command that does not survive one of the changes it makes on the disk.

Run as ``python -m killed_command STEP FOLDER COMMAND...``: the command is killed (SIGKILL) before
the change in the folder with the number ``STEP``, from 0. A change is a file opened to be written,
made, renamed, linked or removed, and the beginning and the end of a transaction. Where the command
makes fewer, it ends as it would anyway.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
from commands import run_python

from graphrag_pipeline.cli.app import main
from graphrag_pipeline.store.index_store import IndexStore

_CHANGES = ("os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate", "os.chmod")
_WRITES = os.O_WRONLY | os.O_RDWR
_COUNT = "COUNT_OF_STEPS"


def killed_at(step: int, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that is killed before one change of a folder."""
    return run_python("-m", "killed_command", str(step), str(folder), *command)


def number_of_steps(folder: Path, *command: str) -> int:
    """Run a command to its end; return how many such changes it makes. It must end well."""
    with tempfile.TemporaryDirectory() as place:
        count = Path(place, "count")
        environment = {**os.environ, _COUNT: str(count)}
        arguments = ("-m", "killed_command", "-1", str(folder), *command)
        ended = run_python(*arguments, env=environment)
        assert ended.returncode == 0, ended.stderr
        return int(count.read_text())


class _Steps:
    def __init__(self, fatal: int, folder: str) -> None:
        self._left = fatal
        self._folder = folder
        self.count = 0

    def watch(self) -> None:
        sys.addaudithook(self._hear)
        transaction = IndexStore.transaction

        @contextlib.contextmanager
        def stepping(store: IndexStore, **more: bool) -> Iterator[duckdb.DuckDBPyConnection]:
            self._step(str(store.path))
            with transaction(store, **more) as con:
                yield con
                self._step(str(store.path))

        IndexStore.transaction = stepping  # pyright: ignore[reportAttributeAccessIssue]

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITES:
                self._step(str(path))
        elif event in _CHANGES:
            self._step(str(arguments[0]))

    def _step(self, path: str) -> None:
        if not os.path.abspath(path).startswith(self._folder):
            return
        self.count += 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


if __name__ == "__main__":
    steps = _Steps(int(sys.argv[1]), sys.argv[2])
    steps.watch()
    sys.argv = ["graphrag-pipeline", *sys.argv[3:]]
    try:
        main()
    finally:
        if _COUNT in os.environ:
            Path(os.environ[_COUNT]).write_text(str(steps.count))
