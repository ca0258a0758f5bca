"""Costs of the paid calls of an evaluation, shown by stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.wording import money

if TYPE_CHECKING:
    from graphrag_pipeline.llm.pricing import StagePlan


def show_stages(stages: Sequence[StagePlan]) -> None:
    """Print a line for each stage, and the sum."""
    rows = [
        (s.stage, s.model, s.calls, s.prompt_tokens, s.completion_tokens, money(s.cost))
        for s in stages
    ]
    console.show_rows(("stage", "model", "calls", "tokens in", "tokens out", "cost"), rows)
    console.say(total(stages))


def total(stages: Sequence[StagePlan]) -> str:
    """Return the calls, tokens and dollars of all stages."""
    calls = sum(stage.calls for stage in stages)
    tokens = sum(stage.prompt_tokens + stage.completion_tokens for stage in stages)
    costs = [stage.cost for stage in stages]
    known = [cost for cost in costs if cost is not None]
    is_known = len(known) == len(costs)
    cost = f"about ${sum(known):.2f}" if is_known else "at a price that is not known"
    return f"{calls:,} calls, {tokens:,} tokens, {cost}"
