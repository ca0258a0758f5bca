"""Seconds spent in each operator, recorded around one retrieval."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_seconds: ContextVar[dict[str, float] | None] = ContextVar("operator_seconds", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, float]]:
    """Yield the seconds by operator spent inside the block; ``total`` is there at its end."""
    seconds: dict[str, float] = {}
    token = _seconds.set(seconds)
    started = time.perf_counter()
    try:
        yield seconds
    finally:
        seconds["total"] = time.perf_counter() - started
        _seconds.reset(token)


def operator(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Record the time of a shared operator under its name."""

    @functools.wraps(function)
    def timed(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds = _seconds.get()
            if seconds is not None:
                spent = time.perf_counter() - started
                name = function.__name__
                seconds[name] = seconds.get(name, 0.0) + spent

    return timed
