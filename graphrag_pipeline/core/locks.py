"""Locks on files, on every system: freed when the process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

_POLL_SECONDS = 0.02


@contextlib.contextmanager
def locked(path: Path, wait_seconds: float | None = None) -> Iterator[None]:
    """Hold the lock on a file, which is made if it is not there; wait while another holds it.

    Threads of one process wait for each other as processes do. Raises TimeoutError after
    ``wait_seconds`` (None: never), and OSError where the file cannot be opened.
    """
    handle = _opened(path)
    try:
        deadline = None if wait_seconds is None else time.monotonic() + wait_seconds
        while not _take(handle):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def hold(path: Path) -> None:
    """Take the lock on a file, which is made if it is not there, for as long as the process lives.

    Raises OSError where the file cannot be opened.
    """
    handle = _opened(path)
    while not _take(handle):
        time.sleep(_POLL_SECONDS)


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock on a file. Raises OSError where it cannot be opened.

    FileNotFoundError means that there is no such file.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        return not _take(handle)
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)


def _take(handle: int) -> bool:
    # Only who waits for a lock imports it: a command that reads a release never does.
    from filelock import lock_descriptor

    return lock_descriptor(handle, blocking=False)
