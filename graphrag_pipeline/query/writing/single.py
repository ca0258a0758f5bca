"""Answers in one call: the context of a retrieval, and the question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from graphrag_pipeline.query.context import render_context
from graphrag_pipeline.query.methods.method import Method
from graphrag_pipeline.query.writing.asking import Asking, Final
from graphrag_pipeline.query.writing.references import Shown


def in_one_call(method: Method[Any], prompt: str) -> Callable[[Asking, Any], Awaitable[Any]]:
    """Return how a method's answer is prepared: retrieve, then put all of it into one prompt."""

    async def prepare(asking: Asking, p: Any) -> Final | None:
        records = await asking.retrieve(
            lambda: method.retrieve(asking.index, asking.search_text, p)
        )
        if not records:
            return None
        values = {"context": render_context(records)}
        return Final("answer", prompt, values, Shown(records), tuple(records))

    return prepare
