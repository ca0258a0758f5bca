"""Libraries that only some formats need, and not everybody installs."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from collections.abc import Iterator

from graphrag_pipeline.ingest.reading.model import Unreadable

_LIBRARIES = ("openpyxl", "pptx")


@contextlib.contextmanager
def require_extra(module: str, extra: str, kind: str) -> Iterator[None]:
    """Say how to install `module`, which reads `kind`, where importing it finds nothing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        raise Unreadable(
            f"{kind} files need another library: pip install 'graphrag-pipeline[{extra}]', "
            "then run `index` again"
        ) from None


@functools.cache
def missing_libraries() -> tuple[str, ...]:
    """Return the libraries of extras that are not installed: files that need them are not read."""
    return tuple(name for name in _LIBRARIES if importlib.util.find_spec(name) is None)
