"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from graphrag_pipeline.core.errors import StorageError


def write_beside(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all.

    Raises StorageError when the disk is full or read-only.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
