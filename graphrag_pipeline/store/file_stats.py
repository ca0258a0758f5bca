"""Sizes and times of files when they were last read, so that an unchanged file is not read again.

Size and time of a file do not tell every change. An editor, ``rsync --times`` or an archive may put
the time back; a second change within one tick of the clock leaves the time as it was, and some file
systems count in two seconds. So a file is taken for unchanged only if its size, its times of
modification and of change (``ctime``, which nobody can put back) and its inode are what they were
when it was read, and it was read when its newest time was past (git calls an entry that is not
"racily clean"). Any other file is read again, which costs a hash and no more.

Clocks of network shares differ from that of this machine, so no time is compared with the clock
here. What time it is where a document lies is told by the file system of the home folder, if it is
on that, and else by the newest change seen there. Where neither will do, a file that still looks
the same some seconds later is past too.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import write_beside

TICK_NS = 2_000_000_000
"""The coarsest clock of a file system: FAT's counts in two seconds."""
_DAY_NS = 86_400_000_000_000
# What Windows gives as ctime is when a file was made, and a folder's listing gives no inode there.
_HAS_CTIME = os.name != "nt"


class FileStats(NamedTuple):
    """One file: how it looked, what it held, when it first looked so and when it was read."""

    n_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str
    since_ns: int
    read_ns: int
    is_past: bool
    """Whether any later change must show in its times."""


class SeenFiles:
    """The files that one look finds, beside what earlier looks have written down.

    ``read`` returns the SHA-256 of a file's content, None if it cannot be read. Files read more
    than ``verify_days`` ago are read again; 0: however long ago.
    """

    def __init__(
        self,
        before: Mapping[str, FileStats],
        stats: Iterable[os.stat_result],
        home: Path,
        verify_days: float,
        read: Callable[[str], str | None],
    ) -> None:
        self.entries: dict[str, FileStats] = {}
        self._before = before
        self._stats = stats
        self._home = home
        self._read = read
        self._oldest = time.time_ns() - int(verify_days * _DAY_NS) if verify_days else 0
        self._clocks: Clocks | None = None

    def sha256(self, uri: str, stat: os.stat_result, path: str) -> str | None:
        """Return the hash of a file's content, which is read only where it may have changed."""
        looks = _looks(stat)
        before = self._before.get(uri)
        if before is not None and before[:4] != looks:
            before = None
        if before is not None and before.is_past and before.read_ns >= self._oldest:
            self.entries[uri] = before
            return before.sha256
        if self._clocks is None:
            self._clocks = Clocks(self._home, self._stats)
        clocks = self._clocks
        sha256 = self._read(path)
        if sha256 is not None:
            since = clocks.here if before is None else before.since_ns
            is_past = clocks.is_past(stat) or since + TICK_NS < clocks.here
            self.entries[uri] = FileStats(*looks, sha256, since, clocks.here, is_past)
        return sha256


class Clocks:
    """The earliest that it can be now by the file systems' own clocks, in nanoseconds."""

    def __init__(self, home: Path, stats: Iterable[os.stat_result]) -> None:
        own = _probe(home)
        self.here = time.time_ns() if own is None else own.st_mtime_ns
        self._newest: dict[int, int] = {}
        for stat in stats:
            self._newest[stat.st_dev] = max(self._newest.get(stat.st_dev, 0), _changed(stat))
        # A clock that was put back has left changes of a time that has not come yet.
        self._newest = {device: min(at, self.here) for device, at in self._newest.items()}
        if own is not None:
            self._newest[own.st_dev] = self.here

    def is_past(self, stat: os.stat_result) -> bool:
        """Whether a change of this file from now on gets another time than its newest."""
        return max(stat.st_mtime_ns, _changed(stat)) + TICK_NS < self._newest[stat.st_dev]


def load_seen(path: Path) -> dict[str, FileStats]:
    """Return what is written down; nothing where there is no such file, or it is damaged."""
    try:
        return {uri: FileStats._make(entry) for uri, entry in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def save_seen(path: Path, entries: Mapping[str, FileStats]) -> None:
    """Write down what was seen, where that can be written: without it files are read again."""
    text = json.dumps(entries, separators=(",", ":"))
    with contextlib.suppress(StorageError):
        write_beside(path, text.encode())


def _looks(stat: os.stat_result) -> tuple[int, int, int, int]:
    return stat.st_size, stat.st_mtime_ns, _changed(stat), stat.st_ino


def _changed(stat: os.stat_result) -> int:
    return stat.st_ctime_ns if _HAS_CTIME else stat.st_mtime_ns


def _probe(home: Path) -> os.stat_result | None:
    """Return the state of a file in the home that is made now; None where none can be made."""
    try:
        with tempfile.TemporaryFile(dir=home) as probe:
            return os.fstat(probe.fileno())
    except OSError:
        return None
