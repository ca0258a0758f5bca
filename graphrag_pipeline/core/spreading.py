"""Work that others may do: who stands in for what would do it here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

from graphrag_pipeline.core.scopes import within

T = TypeVar("T")

_stand_ins: ContextVar[Mapping[str, Callable[[Any], Any]] | None] = ContextVar(
    "stand_ins", default=None
)


def spreading(stand_ins: Mapping[str, Callable[[Any], Any]]) -> AbstractContextManager[None]:
    """Let others do work of these kinds within this context.

    Each function is given what does such work here, and returns what stands in for it.
    """
    return within(_stand_ins, stand_ins)


def spread(kind: str, worker: T) -> T:
    """Return what does work of a kind: ``worker``, or what stands in for it."""
    stand_in = (_stand_ins.get() or {}).get(kind)
    return stand_in(worker) if stand_in else worker
