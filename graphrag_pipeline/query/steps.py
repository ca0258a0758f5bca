"""What a method decided on its way, such as which search to use: a line for each, in order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_lines: ContextVar[list[str] | None] = ContextVar("method_steps", default=None)


@contextlib.contextmanager
def told() -> Iterator[list[str]]:
    """Yield the list that takes what is told inside the block."""
    lines: list[str] = []
    token = _lines.set(lines)
    try:
        yield lines
    finally:
        _lines.reset(token)


def tell(line: str) -> None:
    """Say what was decided, to whoever listens."""
    if (lines := _lines.get()) is not None:
        lines.append(line)
