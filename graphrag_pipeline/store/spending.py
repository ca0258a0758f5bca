"""Spending on models: calls copied from the ledger into the index, and summed for a stage."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from graphrag_pipeline.core.settings import LLM, Role, Settings
from graphrag_pipeline.llm.configured import (
    calls_place,
    model_of,
    model_options,
    spending_since,
)
from graphrag_pipeline.llm.ledger import Call, calls_since, hearing, last_position
from graphrag_pipeline.llm.probing import models_in_use, probing
from graphrag_pipeline.store.index_store import get_meta, insert, set_meta
from graphrag_pipeline.store.workspace import Workspace

ROLES_OF_AN_INDEX: Sequence[Role] = ("extraction", "summaries", "reports", "embeddings")
"""What a run asks models for; the other roles are of questions and of evaluations."""
LEDGER_TAG = "graphrag/ledger"
"""Run tag: where the ledger stood as the command began whose runs share one budget."""
_POSITION = "llm_calls_position"


@dataclass
class Spent:
    """Calls of the model by a stage; filled when the stage has ended."""

    metadata: dict[str, int | float | str] = field(default_factory=dict)


@dataclass
class _Sums:
    """Sums over the calls of a stage, of this process alone: other workers have their own."""

    made: int = 0
    cached: int = 0
    failed: int = 0
    unpriced: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    models: set[str] = field(default_factory=set)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def add(self, call: Call) -> None:
        with self._turn:
            self.models.add(call.model)
            if call.cached:
                self.cached += 1
                return
            self.made += 1
            self.failed += call.error is not None
            self.unpriced += call.cost is None and call.error is None
            self.prompt_tokens += call.prompt_tokens
            self.completion_tokens += call.completion_tokens
            self.cost += call.cost or 0.0

    def metadata(self, settings: Settings) -> dict[str, int | float | str]:
        if not self.made + self.cached:
            return {}
        sums: dict[str, int | float | str] = {
            "model": ", ".join(sorted(self.models)),
            "endpoint": ", ".join(_endpoints(settings, self.models)),
            "model_calls": self.made,
            "model_calls_cached": self.cached,
            "model_calls_failed": self.failed,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": round(self.cost, 6),
        }
        return sums | ({"calls_of_unknown_price": self.unpriced} if self.unpriced else {})


def _endpoints(settings: Settings, models: Collection[str]) -> list[str]:
    """Return where the models are that were asked, by name."""
    endpoints = [
        model_options(settings, role).endpoint
        for role in ROLES_OF_AN_INDEX
        if model_of(settings, role) in models
    ]
    return list(dict.fromkeys(endpoints)) or [model_options(settings, "extraction").endpoint]


def ledger_position(settings: Settings) -> int:
    """Return the position of the newest model call."""
    return last_position(calls_place(settings))


def uses_model(settings: Settings) -> bool:
    """Whether any stage may ask a language model; what a structure from outside asks is its own."""
    return needs_model(settings) or bool(settings.structures.wanted)


def needs_model(settings: Settings) -> bool:
    """Whether some stage cannot do without a language model."""
    return bool(roles_in_use(settings))


def roles_in_use(settings: Settings) -> list[Role]:
    """Return the roles of models that a run cannot do without, in the order of its stages."""
    is_written = settings.reports.writer == LLM
    summarised = settings.hierarchies.raptor or settings.hierarchies.hirag
    asked: dict[Role, bool] = {
        "extraction": LLM in (settings.extraction.extractor, settings.resolution.method),
        "summaries": settings.graph.summaries == LLM or (is_written and summarised),
        "reports": is_written,
        "embeddings": settings.embeddings.embedder == LLM,
    }
    return [role for role in ROLES_OF_AN_INDEX if asked[role]]


@contextlib.contextmanager
def spending(workspace: Workspace, run_began: int) -> Iterator[Spent]:
    """Account for the calls of a stage: against the run's budget, in ``llm_calls``, and summed.

    ``run_began`` is the ledger's position when the run began. The calls are copied also when the
    stage fails.
    """
    with counting(workspace.settings, run_began) as calls_spent:
        try:
            yield calls_spent
        finally:
            if uses_model(workspace.settings):
                record_calls(workspace)


@contextlib.contextmanager
def counting(settings: Settings, run_began: int) -> Iterator[Spent]:
    """Account for calls as :func:`spending` does, without an index that keeps them."""
    calls_spent = Spent()
    if not uses_model(settings):
        yield calls_spent
        return
    sums, place = _Sums(), calls_place(settings)
    try:
        probes = probing(settings, models_in_use(settings, roles_in_use(settings)), run_began)
        with spending_since(place, run_began), hearing(sums.add, role="stage"), probes:
            yield calls_spent
    finally:
        calls_spent.metadata.update(sums.metadata(settings))


def record_calls(workspace: Workspace) -> None:
    """Copy into ``llm_calls`` the calls of the ledger that it lacks."""
    if not workspace.keeps_calls:
        return
    with workspace.store.transaction() as con:
        position = int(get_meta(con, _POSITION) or 0)
        calls = calls_since(calls_place(workspace.settings), position)
        if calls.is_empty():
            return
        insert(con, "llm_calls", calls.drop("position", "cached_tokens"))
        set_meta(con, _POSITION, str(calls["position"].max()))
