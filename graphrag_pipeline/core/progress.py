"""How far a stage has come, told to whoever listens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)


def report(stage: str, done: int, total: int) -> None:
    """Say that ``done`` of ``total`` parts of a stage are done. Costs nothing if no one listens."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let ``listener(stage, done, total)`` hear of the progress made within this context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
