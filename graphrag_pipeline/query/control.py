"""One question from outside: told of its steps, and stopped when nobody waits for its answer."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import GraphRAGError, StorageError

if TYPE_CHECKING:
    import duckdb


class StoppedError(GraphRAGError):
    """The question was stopped: it took too long, or nobody waits for its answer any more."""


class Control:
    """Watches one question, from any thread. ``on_step`` is told of each step as it is decided.

    Once it is stopped, the SQL that runs is interrupted and calls of models are cancelled, and
    neither SQL nor an operator begins.
    """

    def __init__(self, on_step: Callable[[str], None] | None = None) -> None:
        self.on_step = on_step
        self._reason = ""
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._calls: set[Callable[[], None]] = set()
        self._lock = threading.Lock()

    @property
    def is_running(self) -> bool:
        """Whether SQL of the question runs now, or it waits for a model."""
        return bool(self._running or self._calls)

    def tell(self, line: str) -> None:
        """Pass a step on to whoever watches."""
        if self.on_step is not None:
            self.on_step(line)

    def stop(self, reason: str) -> None:
        """Stop the question.

        An interruption that comes just before SQL begins is lost to DuckDB: call it again for as
        long as :attr:`is_running`.
        """
        with self._lock:
            self._reason = self._reason or reason
            for cursor in self._running:
                cursor.interrupt()
            for cancel in self._calls:
                cancel()

    def check(self) -> None:
        """Raise StoppedError if the question was stopped."""
        if self._reason:
            raise StoppedError(self._reason)

    @contextlib.contextmanager
    def running(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Let a cursor be interrupted within. Raises StoppedError if the question was stopped."""
        with self._lock:
            self.check()
            self._running.add(cursor)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(cursor)

    @contextlib.contextmanager
    def calling(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Let calls of models be cancelled within. Raises StoppedError if that happened."""
        with self._lock:
            self.check()
            self._calls.add(cancel)
        try:
            yield
        except asyncio.CancelledError:
            self.check()
            raise
        finally:
            with self._lock:
                self._calls.discard(cancel)


class Usage:
    """Count of the users of something that is to be closed: it is closed when nobody uses it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._n_users = 0
        self._is_over = False

    @contextlib.contextmanager
    def use(self) -> Iterator[None]:
        """Keep it open within. Raises StorageError where it is closed."""
        with self._changed:
            if self._is_over:
                raise StorageError("this release was closed: open it again")
            self._n_users += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_users -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def pause(self) -> Iterator[bool]:
        """Let nobody begin within; False where somebody uses it, or it is closed."""
        with self._changed:
            yield not self._n_users and not self._is_over

    def end(self) -> None:
        """Let nobody begin, and wait until those who use it have ended."""
        with self._changed:
            self._is_over = True
            self._changed.wait_for(lambda: not self._n_users)
