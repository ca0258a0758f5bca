"""Workspace of every stage: one index with its home folder, settings, batches, tables, vectors."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from graphrag_pipeline.core.hardening.files import told_of_disk
from graphrag_pipeline.core.hardening.locks import is_held, locked
from graphrag_pipeline.core.hardening.temporary import sweep_home
from graphrag_pipeline.core.home import Home, make_home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.sharing import sharing_of
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.store.ignoring import selection_of
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.limits import limits_of
from graphrag_pipeline.store.vector_store import VectorStore

log = logging.getLogger("graphrag_pipeline")
_in_turn: set[Path] = set()
"""The homes of the indexes that a run of this process works on."""


class Workspace:
    """One index: where it is kept, and the settings it is made with.

    ``settings`` are those given, whatever the environment or a file says meanwhile.
    """

    keeps_calls = True
    """Whether ``llm_calls`` has the calls of models: an index of one batch leaves them to all."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.paths = Home(settings.home_path)

    @property
    def home(self) -> Path:
        """The home folder, absolute."""
        return self.paths.folder

    @property
    def exists(self) -> bool:
        """Whether the index has been begun: until then, to read its tables would make them."""
        return self.paths.index.is_file()

    @property
    def is_busy(self) -> bool:
        """Whether another process runs on the index: it may be between two steps of what it does.

        On a disk that takes nothing, nobody does.
        """
        # The number of a process says little: each container has a process 1.
        with contextlib.suppress(OSError):
            return self.home not in _in_turn and is_held(self.paths.run_lock)
        return False

    @property
    def is_purging(self) -> bool:
        """Whether another process is at work on a purge: some of what it removes is there still."""
        return self.paths.purge_mark.exists() and self.is_busy

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other run works on this index, and keep others waiting meanwhile.

        A long wait is logged, with the process that is waited for. What killed processes have left
        in the home is removed. The tables stay open from one stage to the next. Raises StorageError
        where the home folder cannot be written in, and for a shared index where another machine
        works on it.
        """
        lock, process = self.paths.run_lock, self.paths.run_process
        with contextlib.ExitStack() as turn:
            with told_of_disk(f"cannot write in {self.home}"):
                make_home(self.settings)
                turn.enter_context(locked(lock, when_long=self._log_wait))
                process.write_text(f"{os.getpid()}\n")
            turn.callback(process.unlink, missing_ok=True)
            _in_turn.add(self.home)
            turn.callback(_in_turn.discard, self.home)
            turn.enter_context(self.coordinating())
            sweep_home(self.home)
            turn.enter_context(self.store.session())
            yield

    def coordinating(self) -> contextlib.AbstractContextManager[object]:
        """Let no other machine change a shared index; within such a context, it is that one."""
        return sharing_of(self.settings).coordinating()

    def hand_over(self) -> None:
        """Give what was ingested to who ordered it: here nobody did."""

    def _log_wait(self) -> None:
        pid = "unknown"
        with contextlib.suppress(OSError):
            pid = self.paths.run_process.read_text().strip()
        log.warning("waiting for another run on %s to end (pid %s)", self.home, pid)

    @cached_property
    def batches(self) -> BatchLog:
        """The manifests of what changed, in JSON files."""
        files = self.settings.input
        return BatchLog(self.home, selection_of(files), files.verify_days)

    @cached_property
    def store(self) -> IndexStore:
        """The tables, in DuckDB."""
        return IndexStore(self.paths.index, limits_of(self.settings))

    @cached_property
    def vectors(self) -> VectorStore:
        """The vectors, in LanceDB, which is imported with the first use."""
        return VectorStore(self.paths.vectors)
