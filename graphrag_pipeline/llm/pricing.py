"""The price of the model calls of a stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """Model calls of one stage that are to be paid for, and ``cached`` ones that are not.

    ``cost`` is in US dollars, None where the price is not known. ``seconds`` is the time, None
    where the speed of the model is not. ``endpoint`` is the address of the model, empty where that
    is not said. ``direct_cost`` and ``batch_cost`` are those of either lane, and ``rounds`` are of
    batches that wait for each other. ``repeated_tokens`` of the prompts begin as one before:
    ``cached_cost`` is that of calls whose provider still has them.
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
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """The calls of one model at one address, in all stages that are to be paid for."""

    model: str
    endpoint: str
    calls: int
    tokens: int
    cost: float | None


def by_model(stages: Iterable[StagePlan]) -> list[ModelPlan]:
    """Return what each model takes, in the order in which they are asked first."""
    models: dict[tuple[str, str], list[StagePlan]] = {}
    for stage in stages:
        models.setdefault((stage.model, stage.endpoint), []).append(stage)
    return [_summed(model, endpoint, of_model) for (model, endpoint), of_model in models.items()]


def _summed(model: str, endpoint: str, stages: Sequence[StagePlan]) -> ModelPlan:
    costs = [stage.cost for stage in stages]
    return ModelPlan(
        model=model,
        endpoint=endpoint,
        calls=sum(stage.calls for stage in stages),
        tokens=sum(stage.prompt_tokens + stage.completion_tokens for stage in stages),
        cost=None if None in costs else sum(cost for cost in costs if cost),
    )
