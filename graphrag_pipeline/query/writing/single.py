"""Answers in one call: the context of a retrieval, and the question; or the question alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from graphrag_pipeline.query.methods.method import Method
from graphrag_pipeline.query.results import Record, render_context
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.references import Shown


def in_one_call(method: Method[Any], prompt: str) -> Callable[[Asking, Any], Awaitable[Any]]:
    """Return how a method's answer is prepared: retrieve, then put all of it into one prompt."""

    async def prepare(asking: Asking, p: Any) -> Final | None:
        records = await asking.retrieve(
            lambda: method.retrieve(asking.index, asking.search_text, p)
        )
        return from_records(records, prompt)

    return prepare


def from_records(records: Sequence[Record], prompt: str) -> Final | None:
    """Return the call that answers from records, or None where there are none."""
    if not records:
        return None
    values = {"context": render_context(records)}
    return Final("answer", prompt, values, Shown(records), tuple(records))


def from_nothing(prompt: str) -> Callable[[Asking, Any], Awaitable[Final]]:
    """Return how an answer without an index is prepared: the question alone in a prompt."""

    async def prepare(asking: Asking, p: Any) -> Final:
        return Final("answer", prompt, {}, Shown(), ())

    return prepare
