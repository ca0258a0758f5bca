"""The price of the answers of an experiment, computed before a model is asked.

A method that has answered before costs what its answers took on average. One that has not is
reckoned from what it retrieves for the first questions and from how many calls it makes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_evaluation.experiment import Experiment
from graphrag_evaluation.running import Workload, open_engine
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import model_of, model_prices
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods import method_named
from graphrag_pipeline.query.methods.global_search import (
    MAP_REDUCE,
    GlobalParameters,
    reports_to_read,
)
from graphrag_pipeline.query.methods.text_summary import TextSummaryParameters, chunks_to_read
from graphrag_pipeline.query.release import Release

_SAMPLED = 3
_PROMPT_TOKENS = 600
_ANSWER_TOKENS = 600
_STEP_TOKENS = 400
"""What a prompt holds besides its context, what a model answers, and a short step before it."""
_PASSAGE_TOKENS, _LIST_TOKENS = 180, 80
"""What a reranked passage takes of a prompt, and the list that a model answers with."""
_JUDGED_TOKENS = 2 * _ANSWER_TOKENS + 500
_VERDICT_TOKENS = 120
_EXAMINED_TOKENS = _ANSWER_TOKENS + 500
_CLAIMS_TOKENS = 700
_KNOWN = """
SELECT avg(model_calls), avg(prompt_tokens), avg(completion_tokens) FROM answers
WHERE method = $method AND parameters = $parameters AND model = $model AND model_calls > 0
HAVING count(*) >= 3
"""

Tokens = tuple[float, float, float]
"""Calls, prompt tokens and completion tokens of one answer."""


def plan_answers(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    conditions: Sequence[Workload],
) -> list[StagePlan]:
    """Return the calls for the missing answers, a stage for each condition, if a model is asked."""
    asked = [workload for workload in conditions if workload.condition.given is None]
    due: dict[str, list[Workload]] = {}
    for workload in asked:
        if workload.unanswered:
            due.setdefault(workload.condition.name, []).append(workload)
    if not experiment.retrieval_only and settings.query.answers == "llm":
        return [_plan(store, settings, name, of_name) for name, of_name in due.items()]
    return [
        _stage(settings, name, _missing(of_name), tokens)
        for name, of_name in due.items()
        if any(tokens := _reranking(settings, of_name[0].parameters))
    ]


def _missing(workloads: Sequence[Workload]) -> int:
    return sum(len(workload.unanswered) for workload in workloads)


def plan_judging_unseen(settings: Settings, verdicts: int) -> StagePlan:
    """Return what so many verdicts on answers not made yet would take."""
    return _stage(settings, "verdicts", verdicts, (1, _JUDGED_TOKENS, _VERDICT_TOKENS))


def plan_claims_unseen(settings: Settings, answers: int) -> StagePlan:
    """Return what finding the claims of so many answers not made yet would take."""
    return _stage(settings, "claims", answers, (1, _EXAMINED_TOKENS, _CLAIMS_TOKENS))


def _plan(
    store: EvaluationStore, settings: Settings, name: str, workloads: Sequence[Workload]
) -> StagePlan:
    """Return the calls of a condition: of one workload, or of one for each document."""
    first = workloads[0]
    parameters = {
        "method": first.condition.method,
        "parameters": first.parameters_json,
        "model": model_of(settings, "answers"),
    }
    with store.read() as con:
        tokens = con.execute(_KNOWN, parameters).fetchone()
    if tokens is None:
        guesses = [_guess(settings, workload) for workload in workloads[:_SAMPLED]]
        calls, prompt, completion = map(statistics.fmean, zip(*guesses, strict=True))
        tokens = calls, prompt, completion
    return _stage(settings, name, _missing(workloads), tokens)


def _stage(settings: Settings, name: str, answers: int, tokens: Tokens) -> StagePlan:
    calls, prompt, completion = (math.ceil(answers * value) for value in tokens)
    model = model_of(settings, "answers")
    cost = model_prices(settings, "answers").cost(model, prompt, completion)
    return StagePlan(
        stage=name,
        model=model,
        calls=calls,
        cached=0,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=cost,
    )


def _guess(settings: Settings, workload: Workload) -> Tokens:
    method = method_named(workload.condition.method)
    with open_engine(workload.condition, settings) as engine:
        index = engine.index.limited(workload.condition.where)
        if method.estimate is not None:
            return method.estimate(index, method.parameters(**workload.parameters))
        if (whole := _whole(index, workload)) is not None:
            return whole
        tokens = statistics.fmean(
            _context_tokens(engine, workload, question.text)
            for question in workload.unanswered[:_SAMPLED]
        )
    calls, steps = method.readings(method.parameters(**workload.parameters)), method.short_calls
    prompt = calls * (tokens + _PROMPT_TOKENS) + steps * _STEP_TOKENS
    answers = calls * _ANSWER_TOKENS + steps * _STEP_TOKENS / 4
    more = _reranking(settings, workload.parameters)
    return calls + steps + more[0], prompt + more[1], answers + more[2]


def _reranking(settings: Settings, parameters: Mapping[str, Any]) -> Tokens:
    """Return what a model takes that reranks what is found for one answer."""
    reranked = parameters.get("reranked", 0)
    if settings.query.reranker != "llm" or not reranked:
        return 0, 0, 0
    return 1, reranked * _PASSAGE_TOKENS, _LIST_TOKENS


def _whole(index: Release, workload: Workload) -> Tokens | None:
    """Return what a method takes that reads all reports of a level, or all text; else None."""
    method = workload.condition.method
    if method == "global" and workload.parameters["mode"] == MAP_REDUCE:
        records = reports_to_read(index, GlobalParameters(**workload.parameters))
    elif method == "text_summary":
        records = chunks_to_read(index, TextSummaryParameters(**workload.parameters))
    else:
        return None
    budget = workload.parameters["max_context_tokens"]
    groups = op.groups(index, records, budget)
    read = sum(record.n_tokens for group in groups for record in group)
    calls = len(groups) + 1
    reduced = min(budget, len(groups) * _ANSWER_TOKENS)
    return calls, read + reduced + calls * _PROMPT_TOKENS, calls * _ANSWER_TOKENS


def _context_tokens(engine: QueryEngine, workload: Workload, question: str) -> int:
    try:
        retrieval = engine.rehearse(workload.condition.ask(question))
    except GraphRAGError:
        return workload.parameters.get("max_context_tokens", 0)
    return count_tokens([retrieval.context], engine.index.encoding)[0]
