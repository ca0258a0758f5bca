"""Files that may do harm are read in a process of their own, which they may kill.

No library says beforehand how much memory a file will take: a Parquet file of 600 bytes can hold a
column of ten gigabytes. So files that are packed, and large ones, are read by one child process
(``child``) with limits of memory and time, which starts when the first of them comes. Small files
of plain text are read here: what they can become is bounded by their size.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from graphrag_pipeline.core.doors import PartError
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import temporary_place
from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.ingest.reading.answers import read_answer, read_frame, write_frame
from graphrag_pipeline.ingest.reading.child import LENGTH, OUT_OF_MEMORY, READY, WALL_TO_CPU
from graphrag_pipeline.ingest.reading.deaths import Deaths
from graphrag_pipeline.ingest.reading.files import read_file, refused
from graphrag_pipeline.ingest.reading.formats import format_of, reader_versions
from graphrag_pipeline.ingest.reading.model import SMALL, ReadingOptions, ReadResult, SlackDay
from graphrag_pipeline.ingest.reading.slack import SlackLists
from graphrag_pipeline.store.sources import ending_of

_CHILD = "graphrag_pipeline.ingest.reading.child"
_ANSWERED_TO_READ = 12
_MOST_DEATHS = 2
_UNTIL = "it is not read again until it, or the setting, changes"


@dataclass(frozen=True)
class ReadingLimits:
    """Limits on reading one file: megabytes of memory, and seconds of the processor."""

    megabytes: float
    seconds: float


class _Died(Exception):
    """The process ended over a file. ``is_final``: it would again, as certainly."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


class Readers:
    """Reads files, here or in the child process; to be closed, as a context. For many threads."""

    def __init__(self, options: ReadingOptions, limits: ReadingLimits, deaths: Path) -> None:
        self.options, self._limits = options, limits
        self._deaths = Deaths(deaths)
        self._most = _ANSWERED_TO_READ * options.max_file_bytes + 1_000_000
        self._turn = threading.Lock()
        self._child: _Child | None = None
        self.slack = SlackLists()

    def __enter__(self) -> Readers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._turn:
            self._end_child()

    def read(self, path: Path, data: bytes, sha256: str, day: SlackDay | None = None) -> ReadResult:
        """Return what a file gives, never an error of its content.

        A file over which the process has died twice is refused until its content, its reader or a
        limit is another. Raises StorageError where no process can be started.
        """
        suffix, options = path.suffix.lower(), replace(self.options, slack_day=day)
        if _is_safe(path, data):
            return read_file(path, options, data=data)
        limits = (self._limits.megabytes, self._limits.seconds)
        key = fingerprint(sha256, suffix, *limits, reader_versions([path.suffix]))
        with self._turn:
            deaths, reason = self._deaths.of(key)
            while deaths < _MOST_DEATHS:
                try:
                    return self._read_apart(path, data, options)
                except _Died as death:
                    self._end_child()
                    deaths, reason = deaths + 1 + death.is_final, f"{death}: {_UNTIL}"
                    self._deaths.add(key, deaths, reason)
        return refused(reason)

    def _read_apart(self, path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
        if self._child is None:
            self._child = _Child(self._limits, self._most)
        return self._child.read(path, options, data)

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


class _Child:
    """The process that reads."""

    def __init__(self, limits: ReadingLimits, most_answered: int) -> None:
        self._limits, self._most = limits, most_answered
        numbers = (limits.megabytes, limits.seconds, most_answered)
        with tempfile.TemporaryFile(dir=temporary_place()) as errors:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", _CHILD, *map(str, numbers)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=_environment(),
                )
            except OSError as error:
                raise StorageError(f"cannot start a process to read files: {error}") from error
            self._in: Any = self._process.stdin
            self._out: Any = self._process.stdout
            if read_frame(self._out, len(READY)) != READY:
                self.end()
                errors.seek(0)
                last = errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
                raise StorageError(
                    f"the process that reads files does not start: raise input.reader_mb ({last})"
                )

    def read(self, path: Path, options: ReadingOptions, data: bytes) -> ReadResult:
        """Return what a file gives. Raises _Died."""
        answer = None
        with suppress(OSError):
            asked = pickle.dumps((path, options))
            write_frame(self._in, len(asked).to_bytes(LENGTH), asked, data)
            answer = read_frame(self._out, self._most)
        if answer is None:
            raise self._death()
        if answer == OUT_OF_MEMORY:
            raise _Died(f"to read it takes {self._memory}")
        return read_answer(answer)

    @property
    def _memory(self) -> str:
        return f"more than {self._limits.megabytes:,.0f} MB of memory (input.reader_mb)"

    def _death(self) -> _Died:
        """Return why the process ended."""
        self.end()
        ended_by, seconds = -self._process.returncode, self._limits.seconds
        if ended_by == getattr(signal, "SIGPROF", None):
            limit = f"{seconds:g} seconds of the processor (input.reader_seconds)"
            return _Died(f"to read it takes more than {limit}", is_final=True)
        if ended_by == getattr(signal, "SIGALRM", None):
            limit = f"{WALL_TO_CPU * seconds:g} seconds (ten times input.reader_seconds)"
            return _Died(f"to read it takes more than {limit}")
        name = signal.Signals(ended_by).name if ended_by > 0 else f"exit {-ended_by}"
        return _Died(f"it ends the process that reads it ({name}), as what takes {self._memory}")

    def end(self) -> None:
        """End the process, if it has not ended by itself."""
        with suppress(OSError):
            self._in.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if self._process.poll() is not None else 1)
        self._process.kill()
        self._process.wait()
        self._out.close()


def _is_safe(path: Path, data: bytes) -> bool:
    """Whether a file of this name is read here; one that nothing reads is refused anyway."""
    try:
        format_ = format_of(ending_of(path.name))
    except PartError:
        format_ = None
    if format_ is None:
        return len(data) <= SMALL and not data.startswith(b"From ")  # a mailbox may hold files
    holds_files = format_.holds_files and format_.holds_files.search(data)
    return len(data) <= format_.safe_bytes and not holds_files


def _environment() -> dict[str, str]:
    """Return the environment of the process: our modules, and few threads, which take memory."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(place or os.getcwd() for place in sys.path),
        "POLARS_MAX_THREADS": "2",
        "OMP_NUM_THREADS": "2",
        "MALLOC_ARENA_MAX": "2",
    }
