"""The price of the model calls of a stage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """Model calls of one stage that are to be paid for, and ``cached`` ones that are not.

    ``cost`` is in US dollars, None where the price is not known. ``endpoint`` is the address
    of the model, empty where that is not said. ``direct_cost`` and ``batch_cost`` are those of
    either lane, and ``rounds`` are of batches that wait for each other. ``repeated_tokens`` of the
    prompts begin as one before: ``cached_cost`` is that of calls whose provider still has them.
    """

    stage: str
    model: str
    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    endpoint: str = ""
    direct_cost: float | None = None
    batch_cost: float | None = None
    rounds: int = 0
    repeated_tokens: int = 0
    cached_cost: float | None = None
