"""Consent to planned runs: may one begin without asking a person? ``llm.confirm_cost`` says so."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import model_of, model_prices
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.store.spending import ROLES_OF_AN_INDEX, uses_model


def why_ask(settings: Settings, stages: Sequence[StagePlan]) -> str | None:
    """Return why a person is to be asked before these stages are paid for; None if nobody is.

    Stages of unknown price are left out: those of known price may be too much without them.
    """
    costs = [stage.cost for stage in stages]
    cost, most = sum(known for known in costs if known), settings.llm.confirm_cost
    if not most or cost <= most:
        return None
    at_least, digits = "at least " if None in costs else "", ".2f" if cost >= 0.01 else ".1g"
    return f"the run may cost {at_least}${cost:{digits}}, more than llm.confirm_cost ({most:g})"


def may_cost(settings: Settings) -> bool:
    """Whether it is worth planning a run to know what it costs: someone wants to be asked, and
    a model that the index uses has a price.
    """
    if not settings.llm.confirm_cost or not uses_model(settings):
        return False
    prices = [
        model_prices(settings, role).of(model_of(settings, role)) for role in ROLES_OF_AN_INDEX
    ]
    return any(price and (price.input or price.output) for price in prices)
