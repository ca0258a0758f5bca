"""The words of a server in an error: shown where they repeat nothing that was sent to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of

_MOST_CHARS = 200
_ALIKE_CHARS = 12
_KEY = pattern_of(r"\b(?:sk|pk|key|bearer)[-_ ][\w*.-]{6,}", re.IGNORECASE)
_WINDOW = pattern_of(
    r"(?:maximum context length|context (?:length|size|window)|max_model_len)\D{0,30}?(\d{3,})"
    r"|\((\d{3,}) tokens\), try increasing",
    re.IGNORECASE,
)
_PROMPT = pattern_of(
    r"(\d+) (?:tokens )?in the (?:messages|prompt)|(\d+) (?:input|prompt) tokens"
    r"|(?:resulted in|(?:request|input) \() ?(\d+) tokens|prompt contains (?:at least )?(\d+)",
    re.IGNORECASE,
)


def words_of(body: Mapping[str, Any], sent: bytes, key: str) -> str:
    """Return what a server said in an error, on one line; nothing where it may quote a secret.

    That is the key, or twelve characters in a row of what it was sent; and all, where it is not
    known what that was.
    """
    message = " ".join(str(body.get("message") or "").split())
    message = "".join(c for c in message if c.isprintable())[:_MOST_CHARS]
    if not sent or (key and key in message) or _KEY.search(message) or _repeats(message, sent):
        return ""
    return message.rstrip(".")


def window_told(body: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the tokens of the window and of the prompt that an error names."""
    message = str(body.get("message") or "")
    return (
        _number(body.get("n_ctx")) or _first(_WINDOW, message),
        _number(body.get("n_prompt_tokens")) or _first(_PROMPT, message),
    )


def _repeats(message: str, sent: bytes) -> bool:
    shown = _plain("\n".join(_texts(sent)))
    text = _plain(message)
    if len(text) <= _ALIKE_CHARS:
        return bool(text) and text in shown
    ends = range(_ALIKE_CHARS, len(text) + 1)
    if any(text[end - _ALIKE_CHARS : end] in shown for end in ends):
        return True
    return any(part in text for part in map(_plain, _texts(sent)) if len(part) > 2)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _texts(sent: bytes) -> Iterator[str]:
    """Yield the texts of a request: of its messages, or those to be embedded."""
    try:
        body = json.loads(sent)
    except ValueError:
        return
    yield from (str(m.get("content") or "") for m in body.get("messages") or ())
    inputs = body.get("input") or ()
    yield from ([inputs] if isinstance(inputs, str) else map(str, inputs))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(next(filter(None, match.groups()))) if match else None
