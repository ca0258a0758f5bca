"""The price of the model calls of a stage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """Model calls of one stage that are to be paid for, and ``cached`` ones that are not.

    ``cost`` is in US dollars, None where the price is not known. ``endpoint`` is the address
    of the model, empty where that is not said.
    """

    stage: str
    model: str
    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    endpoint: str = ""
