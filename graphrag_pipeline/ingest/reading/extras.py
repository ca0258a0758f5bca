"""Libraries that only some formats need, and not everybody installs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from graphrag_pipeline.core.extras import missing_modules
from graphrag_pipeline.ingest.reading.model import Unreadable


@contextlib.contextmanager
def require_extra(module: str, extra: str, kind: str) -> Iterator[None]:
    """Say how to install `module`, which reads `kind`, where importing it finds nothing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        raise Unreadable(
            f"{kind} files need {module}: install the extra [{extra}], then run `index` again"
        ) from None


@functools.cache
def missing_libraries() -> tuple[str, ...]:
    """Return the libraries of extras that are not installed: files that need them are not read."""
    return missing_modules("office")
