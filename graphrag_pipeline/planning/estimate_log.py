"""The estimate of a run, kept from before it starts, and what the run then took."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.llm.configured import calls_place, model_of
from graphrag_pipeline.llm.ledger import calls_since
from graphrag_pipeline.store.index_store import get_meta, set_meta
from graphrag_pipeline.store.spending import ROLES_OF_AN_INDEX, ledger_position
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import model_stages

if TYPE_CHECKING:
    from graphrag_pipeline.planning.plan import Plan

_ESTIMATE = "estimate"
_CHAT_STAGES = ("extractions", "summaries", "community_reports")
_NOTHING: Mapping[str, Any] = {"calls": 0, "cached": 0, "tokens": 0, "cost": 0.0}


def begin_estimate(workspace: Workspace, plan: Plan) -> None:
    """Keep what a run is estimated to take, before it starts.

    A run that goes on with what another left unfinished keeps the estimate that was made for both:
    nothing has come since, and no setting that matters has changed. A run that asks nothing leaves
    the last estimate.
    """
    work = _work_version(workspace.settings)
    with workspace.store.transaction() as con:
        last = json.loads(get_meta(con, _ESTIMATE) or "{}")
        resumed = bool(last) and last["until"] is None and last["work"] == work
        if (resumed and not any(plan.changes.values())) or not plan.calls:
            return
        record = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "work": work,
            "since": ledger_position(workspace.settings),
            "until": None,
            "stages": [asdict(stage) for stage in plan.stages],
        }
        set_meta(con, _ESTIMATE, json.dumps(record))


def end_estimate(workspace: Workspace) -> None:
    """Note that the run is finished that the last estimate was made for."""
    with workspace.store.transaction() as con:
        record = json.loads(get_meta(con, _ESTIMATE) or "{}")
        if record and record["until"] is None:
            record["until"] = ledger_position(workspace.settings)
            set_meta(con, _ESTIMATE, json.dumps(record))


def compare_estimate(workspace: Workspace) -> dict[str, Any] | None:
    """Return the last estimate against what its run has taken until now, None if there is none.

    ``stages`` and ``total`` have (calls, cached, tokens, cost) as ``estimated`` and as ``actual``;
    ``later_calls`` were made afterwards, by runs without an estimate (the sensor's, the UI's).
    """
    with workspace.store.read() as con:
        record = json.loads(get_meta(con, _ESTIMATE) or "{}")
    if not record:
        return None
    stages = [*_chat_stages(), "embeddings"]
    calls = calls_since(calls_place(workspace.settings), record["since"]).filter(
        pl.col("error").is_null() & pl.col("stage").is_in(stages)
    )
    own = pl.lit(value=True) if record["until"] is None else pl.col("position") <= record["until"]
    estimated = {stage["stage"]: _estimated(stage) for stage in record["stages"]}
    actual = {stage: _taken(calls.filter(own, stage=stage)) for stage in stages}
    stage_names = [s for s in stages if s in estimated or actual[s] != _NOTHING]
    compared = [
        {"stage": s, "estimated": estimated.get(s, _NOTHING), "actual": actual[s]}
        for s in stage_names
    ]
    return {
        "made_at": record["made_at"],
        "finished": record["until"] is not None,
        "stages": compared,
        "total": {
            side: _total([stage[side] for stage in compared]) for side in ("estimated", "actual")
        },
        # Questions embed texts too, so embeddings do not tell.
        "later_calls": len(
            calls.filter(~own, ~pl.col("cached"), pl.col("stage").is_in(_chat_stages()))
        ),
    }


def _work_version(settings: Settings) -> str:
    """Return a hash of the settings that decide what there is to do."""
    shaping = (settings.graph, settings.communities, settings.reports)
    shaping = (*shaping, settings.embeddings, settings.hierarchies, settings.structures)
    models = [settings.llm.model, settings.llm.embedding_model]
    if settings.models:
        models = [model_of(settings, role) for role in ROLES_OF_AN_INDEX]
    return fingerprint(stage_versions(settings)["extractions"], *shaping, *models)


def _chat_stages() -> list[str]:
    return [*_CHAT_STAGES, *model_stages()]


def _estimated(stage: Mapping[str, Any]) -> dict[str, Any]:
    tokens = stage["prompt_tokens"] + stage["completion_tokens"]
    return {**{name: stage[name] for name in ("calls", "cached", "cost")}, "tokens": tokens}


def _taken(calls: pl.DataFrame) -> dict[str, Any]:
    bought = calls.filter(~pl.col("cached"))
    return {
        "calls": len(bought),
        "cached": len(calls) - len(bought),
        "tokens": int(bought["prompt_tokens"].sum()) + int(bought["completion_tokens"].sum()),
        "cost": None if bought["cost"].null_count() else float(bought["cost"].sum()),
    }


def _total(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    total = {name: sum(part[name] for part in parts) for name in ("calls", "cached", "tokens")}
    costs = [part["cost"] for part in parts]
    return {**total, "cost": None if None in costs else sum(costs)}
