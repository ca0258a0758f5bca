"""The audit: who asked what and was shown which passages, a line of JSON for each question.

What cannot be recorded is not answered. A line holds no key, and no text unless that is set.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import make_folder
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_server.keys import without_keys

log = logging.getLogger("graphrag_pipeline")

_MEGABYTE = 1_000_000
_LOCK_SECONDS = 2.0
_PARTS = 10


class AuditError(StorageError):
    """A question cannot be recorded, and so is not answered."""


class Audit:
    """The audit in one file, and those before it. Safe to use from several threads and processes.

    A file that has grown over ``most_mb`` is put aside by the time; ``keep`` of those stay. With
    ``days``, a file is put aside after a tenth of that time, too, and removed in time for its first
    line: none stays longer, but until the next is written.
    """

    def __init__(
        self, path: Path, *, with_text: bool, most_mb: float, keep: int, days: float = 0.0
    ) -> None:
        self._path = path
        self._with_text = with_text
        self._most_bytes = most_mb * _MEGABYTE
        self._keep = keep
        self._life = timedelta(days=days)
        self._begun: datetime | None = None
        self._handle: int | None = None
        self._lock = threading.Lock()

    def write(self, entry: Mapping[str, Any], *, question: str | None = None) -> None:
        """Record something. Raises AuditError where that cannot be done."""
        line = {"time": _now().isoformat(timespec="milliseconds"), **entry}
        if question is not None:
            line["question_sha256"] = hashlib.sha256(question.encode()).hexdigest()
            if self._with_text:
                line["question"] = question
        text = without_keys(json.dumps(line, ensure_ascii=False))
        data = text.encode("utf-8", "replace") + b"\n"
        try:
            with self._lock:
                handle = self._opened()
                # One write, at the end of the file: lines of several workers do not mix.
                if os.write(handle, data) != len(data):
                    raise OSError("the disk is full")
        except OSError as error:
            raise AuditError(f"cannot write {self._path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._let_go()

    def _opened(self) -> int:
        """Return the open file, a new one where another worker has put the old one aside."""
        with contextlib.suppress(FileNotFoundError):
            about = self._path.stat()
            if self._handle is None or os.fstat(self._handle).st_ino != about.st_ino:
                self._let_go()
                if self._is_old(_begun(self._path)):
                    self._put_aside()
            elif about.st_size < self._most_bytes and not self._is_old(self._begun):
                return self._handle
            else:
                self._let_go()
                self._put_aside()
        self._let_go()
        make_folder(self._path.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._handle = os.open(self._path, flags, 0o600)
        self._begun = _begun(self._path) or _now()
        self._remove_old()
        return self._handle

    def _is_old(self, begun: datetime | None) -> bool:
        """Whether a file that was begun then is to be put aside for its age."""
        return bool(self._life) and begun is not None and _now() - begun > self._life / _PARTS

    def _remove_old(self) -> None:
        """Remove the files that were put aside too many ago, or whose lines are too old."""
        older = sorted(self._path.parent.glob(f"{self._path.stem}-*.jsonl"))
        for old in older[: -self._keep]:
            old.unlink(missing_ok=True)
        for old in older[-self._keep :] if self._life else ():
            begun = _begun(old)
            if begun is not None and _now() - begun > self._life * (1 - 1 / _PARTS):
                old.unlink(missing_ok=True)

    def _let_go(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _put_aside(self) -> None:
        """Rename the file by the time, unless another worker just has."""
        with (
            contextlib.suppress(TimeoutError),
            locked(self._path.with_suffix(".lock"), _LOCK_SECONDS),
        ):
            is_small = self._path.stat().st_size < self._most_bytes
            if is_small and not self._is_old(_begun(self._path)):
                return
            now = _now().strftime("%Y%m%dT%H%M%S%f")
            self._path.rename(self._path.with_name(f"{self._path.stem}-{now}.jsonl"))


def _begun(path: Path) -> datetime | None:
    """Return the time of the first line of a file; None where it has none."""
    try:
        with path.open("rb") as file:
            return datetime.fromisoformat(json.loads(file.readline())["time"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _now() -> datetime:
    return datetime.now(UTC)
