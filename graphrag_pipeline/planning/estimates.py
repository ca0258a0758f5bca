"""Estimates for `plan`: how many model calls a run takes, how many tokens, and their price.

Each stage estimates what it will ask (``estimate`` of its own room, or of a structure); here these
are added up and priced. How many entities, relationships and communities there will be is guessed
from the names in the texts (``extraction.estimate``) for a first build, and learned from the index
(``learned``) for more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphrag_pipeline.core.settings import EMBEDDINGS, Settings
from graphrag_pipeline.core.tokens import BYTES_PER_TOKEN
from graphrag_pipeline.extraction import estimate as extraction
from graphrag_pipeline.graph import estimate as graph
from graphrag_pipeline.llm.configured import (
    all_prices,
    lane_of,
    model_of,
    model_options,
    model_prices,
)
from graphrag_pipeline.llm.embeddings import MAX_PIECES, MAX_REQUEST_BYTES
from graphrag_pipeline.llm.estimates import (
    RELATIONSHIPS_PER_ENTITY,
    REPORTS_PER_ENTITY,
    Average,
    Embedded,
    Estimate,
    Growth,
    ModelCalls,
)
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.reports import estimate as reports
from graphrag_pipeline.structures.registry import vector_tables, wanted_structures

STAGES = (extraction, graph, reports)
"""The stages before the structures that ask a model; each has an ``estimate``."""


def estimate(settings: Settings, growth: Growth) -> Iterator[StagePlan]:
    """Yield what each stage that asks a model will take; stages with no call are left out."""
    for calls in (calls for each in _estimates(settings, growth) for calls in each.calls):
        yield from _priced(settings, calls, growth.history.get(calls.stage))
    if settings.embeddings.embedder == "llm":
        embedding = _embedding(growth, to_embed(settings, growth))
        yield from _priced(settings, embedding)


def to_embed(settings: Settings, growth: Growth) -> list[Embedded]:
    """Return the texts that the vector tables will need."""
    tables = {table.name for table in vector_tables(settings)}
    guessed = (texts for each in _estimates(settings, growth) for texts in each.texts)
    known = [Embedded(texts.number, texts.n_bytes / BYTES_PER_TOKEN) for texts in growth.texts]
    return [*known, *(each for each in guessed if not each.table or each.table in tables)]


def _estimates(settings: Settings, growth: Growth) -> list[Estimate]:
    """Return what each stage estimates, in their order."""
    further = [
        structure.estimate(settings, growth)
        for structure in wanted_structures(settings)
        if growth.changes_graph or structure.name not in growth.current
    ]
    more = replace(growth, further_reports=sum(each.reports for each in further))
    return [*(stage.estimate(settings, more) for stage in STAGES), *further]


def assumptions(settings: Settings, growth: Growth, stages: Sequence[StagePlan]) -> list[str]:
    """Return in words what the estimate rests on."""
    sentences = []
    if growth.unasked.number:
        sentences.append(
            "an extraction's answer is as long as GPT-4o's (430 tokens for a chunk of 600); "
            "every second time the model is asked what it missed, it finds as much again"
        )
    if growth.grown.number and not growth.effect:
        sentences.append(
            f"by their names, new chunks give {growth.entities:,.0f} entities, "
            f"{growth.entities * RELATIONSHIPS_PER_ENTITY:,.0f} relationships and "
            f"{growth.entities * REPORTS_PER_ENTITY:,.0f} communities to report on"
        )
    if any(stage.stage in growth.history for stage in stages):
        sentences.append("length of summaries and reports as in this index's own history")
    sentences.append(
        "cached answers are counted for extractions and embeddings, not for summaries and reports"
    )
    cost = sum(stage.cost or 0.0 for stage in stages)
    if cost:
        date = all_prices(settings).date
        sentences.append(f"prices as of {date}; set llm.prices_file to your own")
    endpoints = dict.fromkeys(stage.endpoint for stage in stages)
    sentences.append(f"calls go to {' and '.join(endpoints)}")
    tokens = sum(stage.prompt_tokens + stage.completion_tokens for stage in stages)
    limits = settings.llm
    if 0 < limits.max_cost < cost or 0 < limits.max_tokens < tokens:
        sentences.append(
            "this is more than llm.max_cost or llm.max_tokens allow: the run would stop there "
            "and keep its paid answers; raise the limit to finish"
        )
    if models := unpriced_models(stages):
        sentences.append(f"the price of {', '.join(models)} is not known: tokens only")
    return sentences


def unpriced_models(stages: Sequence[StagePlan]) -> list[str]:
    """Return the models whose price is not known."""
    return sorted({stage.model for stage in stages if stage.cost is None})


def _embedding(growth: Growth, texts: Sequence[Embedded]) -> ModelCalls:
    """Return the calls to make for the vector tables, and those that are cached."""
    n_cached = sum(math.ceil(texts.known / MAX_PIECES) for texts in growth.texts)
    calls, tokens = sum(map(_requests, texts)), sum(part.tokens for part in texts)
    return ModelCalls(
        "embeddings", calls, tokens, 0, is_total=True, cached=n_cached, role=EMBEDDINGS
    )


def _requests(texts: Embedded) -> int:
    by_size = texts.tokens * BYTES_PER_TOKEN / MAX_REQUEST_BYTES
    return math.ceil(max(texts.number / MAX_PIECES, by_size))


def _priced(
    settings: Settings, calls: ModelCalls, mean: Average | None = None
) -> Iterator[StagePlan]:
    """Yield what calls cost, by the tokens of a call on ``average`` where that is known."""
    number = math.floor(calls.number + 0.5)
    if not (number or calls.cached):
        return
    prompt, completion = calls.prompt_tokens, calls.completion_tokens
    if not calls.is_total:
        mean = mean or Average(prompt, completion)
        prompt, completion = calls.number * mean.prompt, calls.number * mean.completion
    read, output = round(prompt), round(completion)
    model, prices = model_of(settings, calls.role), model_prices(settings, calls.role)
    direct = batched = prices.cost(model, read, output)
    if calls.role != EMBEDDINGS:
        batched = prices.of_batches().cost(model, read, output)
    repeated = round(read * calls.repeated)
    yield StagePlan(
        stage=calls.stage,
        model=model,
        calls=number,
        cached=calls.cached,
        prompt_tokens=read,
        completion_tokens=output,
        cost=batched if lane_of(settings, calls.role) == "batch" else direct,
        endpoint=model_options(settings, calls.role).endpoint,
        direct_cost=direct,
        batch_cost=batched,
        rounds=calls.rounds if number and calls.role != EMBEDDINGS else 0,
        repeated_tokens=repeated,
        cached_cost=prices.cost(model, read, output, repeated),
    )
