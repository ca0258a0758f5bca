"""What the model cost: calls copied from the ledger into the index, and summed for a stage."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import model_options, spending_since
from graphrag_pipeline.llm.ledger import calls_since, last_position
from graphrag_pipeline.store.index_store import get_meta, insert, set_meta
from graphrag_pipeline.store.workspace import Workspace

LEDGER_TAG = "graphrag/ledger"
"""Run tag: where the ledger stood as the command began whose runs share one budget."""
_POSITION = "llm_calls_position"


@dataclass
class Spent:
    """What a stage asked of the model; filled when the stage has ended."""

    metadata: dict[str, int | float | str] = field(default_factory=dict)


def ledger_position(home: Path) -> int:
    """Return the position of the newest model call."""
    return last_position(home)


def uses_model(settings: Settings) -> bool:
    """Whether any stage may ask a language model; what a structure from outside asks is its own."""
    return needs_model(settings) or bool(settings.structures.wanted)


def needs_model(settings: Settings) -> bool:
    """Whether some stage cannot do without a language model."""
    return "llm" in (
        settings.extraction.extractor,
        settings.graph.summaries,
        settings.resolution.method,
        settings.reports.writer,
        settings.embeddings.embedder,
    )


@contextlib.contextmanager
def spending(workspace: Workspace, run_began: int) -> Iterator[Spent]:
    """Account for the calls of a stage: against the run's budget, in ``llm_calls``, and summed.

    ``run_began`` is the ledger's position when the run began. The calls are copied also when the
    stage fails.
    """
    calls_spent = Spent()
    if not uses_model(workspace.settings):
        yield calls_spent
        return
    before = ledger_position(workspace.home)
    try:
        with spending_since(workspace.home, run_began):
            yield calls_spent
    finally:
        record_calls(workspace)
        calls_spent.metadata.update(_sums(workspace.settings, before))


def record_calls(workspace: Workspace) -> None:
    """Copy into ``llm_calls`` the calls of the ledger that it lacks."""
    with workspace.store.transaction() as con:
        position = int(get_meta(con, _POSITION) or 0)
        calls = calls_since(workspace.home, position)
        if calls.is_empty():
            return
        insert(con, "llm_calls", calls.drop("position"))
        set_meta(con, _POSITION, str(calls["position"].max()))


def _sums(settings: Settings, before: int) -> dict[str, int | float | str]:
    calls = calls_since(settings.home_path, before)
    if calls.is_empty():
        return {}
    bought = calls.filter(~calls["cached"])
    unpriced = bought.filter(bought["cost"].is_null() & bought["error"].is_null())
    sums: dict[str, int | float | str] = {
        "endpoint": model_options(settings).endpoint,
        "model_calls": len(bought),
        "model_calls_cached": len(calls) - len(bought),
        "model_calls_failed": int(bought["error"].is_not_null().sum()),
        "prompt_tokens": int(bought["prompt_tokens"].sum()),
        "completion_tokens": int(bought["completion_tokens"].sum()),
        "cost_usd": round(float(bought["cost"].sum() or 0.0), 6),
    }
    if len(unpriced):
        sums["calls_of_unknown_price"] = len(unpriced)
    return sums
