"""Temporary folders that belong to the process that made them, for as long as it lives.

A process holds a lock in each of its folders. The operating system lets go of the lock when the
process ends, however it ends, and wherever it ran: in another container that shares the folder,
process ids mean nothing. So what nobody holds was left by a killed process, and anybody may remove
it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import glob
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.hardening.locks import is_held, try_lock

_OWNER = "owner.lock"
_CONTENT = "content"
_SUFFIX = ".tmp"
_RANDOM = "[0-9a-f]" * 8
_MOST_CHARACTERS = 40


@contextlib.contextmanager
def temporary_folder(place: Path, name: str) -> Iterator[Path]:
    """Yield a new folder within ``place``, on its disk, that is gone at the end.

    It lies in a hidden folder called after ``name``. What a killed process leaves of it,
    :func:`sweep` removes. Raises OSError where it cannot be made.
    """
    outer, owner = _make(place, name)
    try:
        content = outer / _CONTENT
        content.mkdir()
        yield content
    finally:
        os.close(owner)
        _remove(outer)


@functools.cache
def process_folder(place: Path, name: str) -> Path:
    """Return a folder within ``place`` that is gone when this process ends: the same at each call.

    What killed processes left of theirs is removed first. Where it cannot be made, it is one that
    is not there.
    """
    sweep(place, name)
    try:
        outer, _ = _make(place, name)
    except OSError:
        return place / name
    owner = os.getpid()
    content = outer / _CONTENT
    content.mkdir()

    def remove() -> None:
        if os.getpid() == owner:
            _remove(outer)

    atexit.register(remove)
    return content


def sweep(place: Path, name: str = "") -> None:
    """Remove the temporary folders in ``place`` that no living process owns.

    Only those called after ``name``, unless it is empty. What cannot be removed stays.
    """
    beginning = glob.escape(_short(name)) if name else "*"
    for outer in place.glob(f".{beginning}.{_RANDOM}{_SUFFIX}"):
        if _is_left(outer):
            _remove(outer)


def abandoned(place: Path) -> list[Path]:
    """Return the temporary folders in ``place`` that no living process owns; remove none."""
    return [
        outer
        for outer in sorted(place.glob(f".*.{_RANDOM}{_SUFFIX}"))
        if not _is_owned(outer / _OWNER)
    ]


def sweep_home(home: Path) -> None:
    """Remove those in a folder and in the folders directly in it."""
    sweep(home)
    with contextlib.suppress(OSError):
        for folder in home.iterdir():
            if folder.is_dir():
                sweep(folder)


def _make(place: Path, name: str) -> tuple[Path, int]:
    """Return a new folder, and the handle by which it is owned."""
    while True:
        outer = place / f".{_short(name)}.{uuid.uuid4().hex[:8]}{_SUFFIX}"
        outer.mkdir()
        # Until it is owned, another process may take it for left over and remove it.
        with contextlib.suppress(FileNotFoundError):
            owner = os.open(outer / _OWNER, os.O_RDWR | os.O_CREAT, 0o644)
            if _own(owner):
                return outer, owner
            os.close(owner)


def _own(owner: int) -> bool:
    """Take the lock; return False where the folder is being removed.

    On a disk that knows no locks nobody can tell an owned folder, and none is ever removed.
    """
    try:
        return try_lock(owner) and not os.fstat(owner).st_size
    except OSError:
        return True


def _is_owned(owner: Path) -> bool:
    """Whether a process owns a folder, as far as one may know."""
    try:
        return is_held(owner)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_left(outer: Path) -> bool:
    """Whether nobody owns a folder; nobody can then own it any more."""
    try:
        owner = os.open(outer / _OWNER, os.O_RDWR)
    except FileNotFoundError:
        # An empty one was made a moment ago, or is all that is left; it goes if it is empty still.
        with contextlib.suppress(OSError):
            outer.rmdir()
        # Content comes after the owner and goes before: without one, somebody wrote it who was
        # started by a killed owner and did not end with it.
        return outer.is_dir() and [path.name for path in outer.iterdir()] == [_CONTENT]
    except OSError:
        return False
    try:
        if not try_lock(owner):
            return False
        os.ftruncate(owner, 1)
        return True
    except OSError:
        return False
    finally:
        os.close(owner)


def _remove(outer: Path) -> None:
    """Remove a folder, what says who owns it last: broken off, this is taken up again."""
    shutil.rmtree(outer / _CONTENT, ignore_errors=True)
    if not (outer / _CONTENT).exists():
        with contextlib.suppress(OSError):
            (outer / _OWNER).unlink(missing_ok=True)
            outer.rmdir()


def _short(name: str) -> str:
    return name[:_MOST_CHARACTERS]
