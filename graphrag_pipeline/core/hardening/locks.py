"""Locks on files, on every system: freed when the process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LONG_SECONDS = 3.0
"""After so long, who waits should be told what for."""
_POLL_SECONDS = 0.02


class FairLock:
    """A lock on a file for which processes and threads queue: who asks for it first is next.

    Who lets go of it and takes it again lets those who wait go first. ``path`` is made if it is not
    there, as is the file beside it that says whether anybody waits.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue = path.with_suffix(".queue")
        self._held = contextlib.ExitStack()
        self.is_taken = False

    def take(
        self, wait_seconds: float | None = None, *, when_long: Callable[[], None] | None = None
    ) -> None:
        """Take the lock, unless it is taken already.

        ``when_long`` is called where that takes long, as by :func:`locked`. Raises TimeoutError
        after ``wait_seconds`` (None: never), and OSError where a file cannot be opened.
        """
        if self.is_taken:
            return
        began = time.monotonic()
        with locked(self._queue, wait_seconds, when_long=when_long):
            if wait_seconds is not None:
                wait_seconds = max(0.0, wait_seconds - (time.monotonic() - began))
            self._held.enter_context(locked(self._path, wait_seconds, when_long=when_long))
        self.is_taken = True

    def release(self) -> None:
        """Let the next one have the lock."""
        self.is_taken = False
        self._held.close()

    def is_wanted(self) -> bool:
        """Return whether anybody waits for the lock."""
        try:
            return is_held(self._queue)
        except FileNotFoundError:
            return False


@contextlib.contextmanager
def locked(
    path: Path,
    wait_seconds: float | None = None,
    *,
    when_long: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Hold the lock on a file, which is made if it is not there; wait while another holds it.

    Threads of one process wait for each other as processes do. ``when_long`` is called once where
    that takes more than :data:`LONG_SECONDS`. Raises TimeoutError after ``wait_seconds`` (None:
    never), and OSError where the file cannot be opened.
    """
    handle = _opened(path)
    try:
        began = time.monotonic()
        while not try_lock(handle):
            waited = time.monotonic() - began
            if wait_seconds is not None and waited > wait_seconds:
                raise TimeoutError
            if when_long is not None and waited > LONG_SECONDS:
                when_long()
                when_long = None
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def hold(path: Path) -> None:
    """Take the lock on a file, which is made if it is not there, for as long as the process lives.

    Raises OSError where the file cannot be opened.
    """
    handle = _opened(path)
    while not try_lock(handle):
        time.sleep(_POLL_SECONDS)


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock on a file. Raises OSError where it cannot be opened.

    FileNotFoundError means that there is no such file.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        return not try_lock(handle)
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)


def try_lock(handle: int) -> bool:
    """Take the lock on an open file unless another holds it; return whether it is taken now.

    It is held until the file is closed. Raises OSError where a disk knows no locks.
    """
    # Only who waits for a lock imports it: a command that reads a release never does.
    from filelock import lock_descriptor

    return lock_descriptor(handle, blocking=False)
