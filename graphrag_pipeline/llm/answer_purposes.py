"""The purpose of each paid answer, kept beside it: the answer goes when its purpose is gone."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from graphrag_pipeline.core.scopes import within

_purpose: ContextVar[str | None] = ContextVar("answer_made_for", default=None)


def making(row: str) -> AbstractContextManager[None]:
    """Note with the answers asked for within what they are to make.

    ``row`` is the id or hash by which the index will know that: an answer may be kept for as long
    as it is there.
    """
    return within(_purpose, row)


def made_for() -> str | None:
    """Return what :func:`making` says; None for what no row of the index is made from."""
    return _purpose.get()
