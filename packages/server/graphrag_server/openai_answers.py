"""Answers in the forms of OpenAI's API: a message of a chat, or a bare text, whole or in pieces."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any, Literal

from graphrag_pipeline.core.tokens import count_tokens
from graphrag_server.state import json_bytes

if TYPE_CHECKING:
    from graphrag_pipeline.query.engine import QueryEngine
    from graphrag_pipeline.query.results import Answer

PING = b": working\n\n"
END = b"data: [DONE]\n\n"

_KINDS = {
    "chat": ("chatcmpl", "chat.completion", "chat.completion.chunk"),
    "text": ("cmpl", "text_completion", "text_completion"),
}


class Form:
    """Form in which one answer is sent, all pieces of it under one id."""

    def __init__(self, model: str, kind: Literal["chat", "text"], *, with_usage: bool) -> None:
        prefix, self._whole, self._piece = _KINDS[kind]
        self._is_chat = kind == "chat"
        self._with_usage = with_usage
        self._head = {
            "id": f"{prefix}-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model,
        }

    def whole(
        self, text: str, usage: dict[str, Any], annotations: list[Any], **more: Any
    ) -> dict[str, Any]:
        """Return an answer at once; ``more`` are fields of our own."""
        message = {"role": "assistant", "content": text, "refusal": None}
        held = {"message": {**message, "annotations": annotations}} if self._is_chat else {}
        choice = {**(held or {"text": text}), **_CHOICE, "finish_reason": "stop"}
        return {"object": self._whole, **self._head, "choices": [choice], "usage": usage, **more}

    def first(self) -> bytes:
        """Return the piece that says who speaks."""
        return self._chunk({"role": "assistant", "content": ""}) if self._is_chat else b""

    def piece(self, text: str) -> bytes:
        """Return a piece of the text."""
        return self._chunk({"content": text})

    def last(self, usage: dict[str, Any], annotations: list[Any], **more: Any) -> bytes:
        """Return the pieces that end an answer, its usage among them where it is wanted."""
        delta = {"annotations": annotations} if annotations else {}
        ending = self._chunk(delta, "stop", **more)
        if self._with_usage:
            ending += self._data([], usage=usage)
        return ending + END

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        held = {"delta": delta} if self._is_chat else {"text": delta.get("content", "")}
        choice = {**held, **_CHOICE, "finish_reason": reason}
        return self._data([choice], **({"usage": None} if self._with_usage else {}), **more)

    def _data(self, choices: list[Any], **more: Any) -> bytes:
        return event({"object": self._piece, **self._head, "choices": choices, **more})


_CHOICE = {"index": 0, "logprobs": None}


def event(value: dict[str, Any]) -> bytes:
    """Return a value as an event of a stream."""
    return b"data: " + json_bytes(value) + b"\n\n"


def usage_of(answer: Answer, engine: QueryEngine) -> dict[str, Any]:
    """Return the tokens of an answer, and what it cost.

    Where a model writes, they are those that were paid for. Elsewhere they are those of the
    question, of the context that was found, and of the answer.
    """
    if engine.writes:
        return usage(answer.prompt_tokens, answer.completion_tokens, answer.cost)
    records = answer.retrieval.records
    n_asked, n_answered = count_tokens([answer.query, answer.text], engine.index.encoding)
    return usage(n_asked + sum(record.n_tokens for record in records), n_answered, answer.cost)


def usage(prompt: int, completion: int, cost: float | None) -> dict[str, Any]:
    """Return tokens and US dollars as clients have them."""
    total = {"total_tokens": prompt + completion, "cost": cost}
    return {"prompt_tokens": prompt, "completion_tokens": completion, **total}
