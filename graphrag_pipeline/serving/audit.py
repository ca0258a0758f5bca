"""Who asked what, and was shown which passages: a line of JSON for each question.

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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.files import make_folder
from graphrag_pipeline.core.locks import locked
from graphrag_pipeline.serving.keys import without_keys

log = logging.getLogger("graphrag_pipeline")

_MEGABYTE = 1_000_000
_LOCK_SECONDS = 2.0


class AuditError(StorageError):
    """A question cannot be recorded, and so is not answered."""


class Audit:
    """The audit in one file, and those before it. Safe to use from several threads and processes.

    A file that has grown over ``most_mb`` is put aside by the time; ``keep`` of those stay.
    """

    def __init__(self, path: Path, *, with_text: bool, most_mb: float, keep: int) -> None:
        self._path = path
        self._with_text = with_text
        self._most_bytes = most_mb * _MEGABYTE
        self._keep = keep
        self._handle: int | None = None
        self._lock = threading.Lock()

    def write(self, entry: Mapping[str, Any], *, question: str | None = None) -> None:
        """Record something. Raises AuditError where that cannot be done."""
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **entry}
        if question is not None:
            line["question_sha256"] = hashlib.sha256(question.encode()).hexdigest()
            if self._with_text:
                line["question"] = without_keys(question)
        data = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
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
            elif about.st_size < self._most_bytes:
                return self._handle
            else:
                self._let_go()
                self._put_aside()
        self._let_go()
        make_folder(self._path.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._handle = os.open(self._path, flags, 0o600)
        return self._handle

    def _let_go(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _put_aside(self) -> None:
        """Rename the file by the time, unless another worker just has, and remove the oldest."""
        with (
            contextlib.suppress(TimeoutError),
            locked(self._path.with_suffix(".lock"), _LOCK_SECONDS),
        ):
            if self._path.stat().st_size < self._most_bytes:
                return
            now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
            self._path.rename(self._path.with_name(f"{self._path.stem}-{now}.jsonl"))
            older = sorted(self._path.parent.glob(f"{self._path.stem}-*.jsonl"))
            for old in older[: -self._keep]:
                old.unlink(missing_ok=True)
