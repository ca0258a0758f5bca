"""Values that hold within a block of code, and whatever it calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextlib.contextmanager
def within(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Let a variable have this value within the context, and then the one it had."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
