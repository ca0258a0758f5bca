"""An answer as its caller has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer.

    The tokens are those the answer took when it was bought. ``cost`` is in US dollars: 0 from the
    cache, None for a model whose price is not known. ``finish_reason`` is "length" if cut off.
    ``key`` is that of the cache, None if it is not kept.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool
    cost: float | None
    finish_reason: str
    seconds: float
    key: bytes | None = None
