"""Progress of a stage, reported to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar

from graphrag_pipeline.core.scopes import within

Listener = Callable[[str, int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)
_foreteller: ContextVar[Callable[[str, float], object] | None] = ContextVar(
    "foreteller", default=None
)
_reader: ContextVar[Callable[[str], object] | None] = ContextVar("remark_reader", default=None)


def report(stage: str, done: int, total: int) -> None:
    """Say that ``done`` of ``total`` parts of a stage are done. Costs nothing if no one listens."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


def expect(stage: str, seconds: float) -> None:
    """Say how many seconds a stage is likely to take, before its first part is done."""
    foreteller = _foreteller.get()
    if foreteller is not None:
        foreteller(stage, seconds)


def remark(line: str) -> None:
    """Say in a line what holds a stage up. Costs nothing if no one reads."""
    reader = _reader.get()
    if reader is not None:
        reader(line)


def time_left(done: int, total: int, seconds: float) -> str:
    """Return in words how long the rest takes, if it goes on as it did; empty if nobody knows.

    >>> time_left(1, 4, 60), time_left(1, 4, 5), time_left(1, 4, 3600), time_left(0, 4, 9)
    ('about 3 min left', 'about 15 s left', 'about 3.0 h left', '')
    """
    if not 0 < done < total:
        return ""
    return f"{about(seconds * (total - done) / done)} left"


def about(seconds: float) -> str:
    """Return a time in words, roughly.

    >>> about(15), about(180), about(10_800)
    ('about 15 s', 'about 3 min', 'about 3.0 h')
    """
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def listening(listener: Listener) -> AbstractContextManager[None]:
    """Let ``listener(stage, done, total)`` hear of the progress made within this context."""
    return within(_listener, listener)


def foretelling(foreteller: Callable[[str, float], object]) -> AbstractContextManager[None]:
    """Let ``foreteller(stage, seconds)`` hear what stages are expected to take within."""
    return within(_foreteller, foreteller)


def reading_remarks(reader: Callable[[str], object]) -> AbstractContextManager[None]:
    """Let ``reader(line)`` have the remarks made within this context."""
    return within(_reader, reader)
