"""What a chat server sent, read as an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphrag_pipeline.llm.errors import TerminalModelError, TransientModelError


class Usage(NamedTuple):
    """Tokens as the server counted them; ``cached`` are prompt tokens it had in its own cache."""

    prompt: int
    completion: int
    cached: int = 0


class Answer(NamedTuple):
    """A chat answer; ``usage`` is None if the server did not say."""

    text: str
    finish_reason: str
    usage: Usage | None


def read_answer(raw: Mapping[str, Any]) -> Answer:
    """Return the answer. Raises TransientModelError or TerminalModelError if there is none."""
    usage = read_usage(raw)
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _paid(_no_answer(), usage)
    choice = choices[0]
    message = choice.get("message") or {}
    text, reason = clean(message.get("content")), str(choice.get("finish_reason") or "stop")
    check_answer(text, reason, bool(message.get("refusal")), usage)
    return Answer(text, reason, usage)


def check_answer(text: str, reason: str, refused: bool, usage: Usage | None) -> None:
    """Raise the error of an answer that says nothing."""
    if reason == "content_filter":
        error = TerminalModelError(
            "the answer was withheld by the provider's content filter", "filter"
        )
    elif refused and not text.strip():
        error = TerminalModelError("the model refused to answer", "refusal")
    elif text.strip():
        return
    elif reason == "length":
        error = TerminalModelError(
            "the model used all its tokens before the answer began: raise max_output_tokens",
            "length",
        )
    else:
        error = _no_answer()
    raise _paid(error, usage)


def read_usage(raw: Mapping[str, Any]) -> Usage | None:
    """Return the tokens that the server says it took."""
    usage = raw.get("usage")
    if not isinstance(usage, Mapping) or not isinstance(usage.get("prompt_tokens"), int):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    prompt = usage["prompt_tokens"]
    return Usage(prompt, usage.get("completion_tokens") or 0, min(cached or 0, prompt))


def clean(content: object) -> str:
    """Return a message's text as Unicode; servers send parts, or escapes that are no characters."""
    if isinstance(content, list):
        parts = [part.get("text") or "" for part in content if isinstance(part, dict)]
        content = "".join(str(part) for part in parts)
    text = content if isinstance(content, str) else ""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def _no_answer() -> TransientModelError:
    return TransientModelError("the model answered with nothing: run again later", "empty")


def _paid(
    error: TransientModelError | TerminalModelError, usage: Usage | None
) -> TransientModelError | TerminalModelError:
    if usage is not None:
        error.prompt_tokens, error.completion_tokens = usage.prompt, usage.completion
    return error
