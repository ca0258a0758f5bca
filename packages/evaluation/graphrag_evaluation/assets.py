"""Evaluation: an experiment that shows what got worse."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from graphrag_evaluation.evaluate import (
    count_claims,
    finish,
    grade_answers,
    judge_answers,
    judges_probed,
    score_answers,
)
from graphrag_evaluation.evaluating import prepare
from graphrag_evaluation.experiment import Experiment, read_experiment
from graphrag_evaluation.history import drops, record_means
from graphrag_evaluation.results import costs, means, metric_order, question_scores
from graphrag_evaluation.running import answer_questions
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.assets.common import OWNERS, adorned, markdown_rows
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.assets.publishing import PUBLISHED_INDEX
from graphrag_pipeline.assets.quality import stage_beside
from graphrag_pipeline.assets.stages import AssetStage, StageOutcome
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.structure import Check

GROUP = "evaluation"
ANSWERS = dg.AssetKey("experiment_answers")
SCORES = dg.AssetKey("experiment_scores")
VERDICTS = dg.AssetKey("experiment_verdicts")
HELD = "watched_metric_held"
_MOST_METRICS = 6
_MOST_DROPS = 5
_COMPARISONS = """
SELECT criterion, condition_a, condition_b, 100 * win_rate AS "win %", p_corrected AS p,
       winner FROM comparisons
WHERE experiment = ? ORDER BY criterion <> 'overall', criterion, condition_a, condition_b LIMIT 8
"""
_OVERALL = """
SELECT condition_a || ' over ' || condition_b, win_rate FROM comparisons
WHERE experiment = ? AND criterion = 'overall' ORDER BY ALL
"""


def build_evaluation(settings: Settings) -> list[AssetStage]:
    """Return the stages of the experiment that the settings name; none where they name none."""
    options = settings.evaluation
    if not options.experiment:
        return []
    answers = stage_beside(
        ANSWERS,
        "answers",
        "The answers of each condition of the experiment; those made before are kept.",
        PUBLISHED_INDEX,
        answer_experiment,
        group=GROUP,
    )
    watch_check = Check(
        HELD,
        f"In no condition has {options.watch} fallen by more than {options.max_drop:g} since the "
        "run before.",
        "",
        "conditions have fallen",
        blocking=False,
    )
    scores = stage_beside(
        SCORES,
        "scores",
        "Scores of the experiment's answers by gold answers, gold passages and claims.",
        ANSWERS,
        score_experiment,
        watch_check,
        group=GROUP,
    )
    verdicts = stage_beside(
        VERDICTS,
        "verdicts",
        "How the judge decides between pairs of the experiment's answers: win rates and winners.",
        SCORES,
        judge_experiment,
        group=GROUP,
    )
    judging = [verdicts] if _is_judged(Path(options.experiment).expanduser()) else []
    return [answers, scores, *judging]


def build_experiment(settings: Settings, names: Names) -> list[dg.AssetsDefinition]:
    """Return the assets of the experiment that the settings name."""
    return [stage.build(names, {}) for stage in build_evaluation(settings)]


def build_evaluations(settings: Settings, names: Names) -> dg.AssetSpec:
    """Return the file that the marts read: written by these assets, and by commands beside them."""
    return dg.AssetSpec(
        names.key("evaluations"),
        deps=[names.key(stage.key) for stage in build_evaluation(settings)[-1:]],
        description="evaluation.duckdb: the results of all experiments, including those of "
        "`graphrag-pipeline eval run`.",
        group_name=names.name(GROUP),
        kinds={"duckdb"},
        owners=OWNERS,
    )


def _experiment(index: IndexResource) -> Experiment:
    """Return the experiment as it is asked: where documents are asked apart, of their indexes."""
    return prepare(index.settings, read_experiment(_file(index)))[0]


def answer_experiment(index: IndexResource) -> StageOutcome:
    """Answer the experiment's questions in each of its conditions."""
    store = EvaluationStore(index.home)
    experiment = _experiment(index)
    with judges_probed(experiment, index.settings):
        outcome = answer_questions(store, experiment, index.settings)
    return StageOutcome(
        {
            "experiment": experiment.name,
            "questions": outcome.questions,
            "made": outcome.made,
            "reused": outcome.reused,
            "without_an_answer": sum(number for number, _ in outcome.failed.values()),
            **_left_out(outcome.errors),
            **adorned("conditions", lambda: _conditions(store, experiment.name)),
        }
    )


def _conditions(store: EvaluationStore, experiment: str) -> dict[str, Any]:
    """Return what the answers of each condition took, by name and as a table."""
    with store.read() as con:
        took = costs(con, experiment)
    columns = ["condition", "answers", "context_tokens", "model_tokens", "cost", "total_ms"]
    by_condition = {
        f"{row['condition']}: {name}": round(float(row[name]), 2)
        for row in took.rows(named=True)
        for name in ("context_tokens", "model_tokens", "total_ms")
    }
    return {**by_condition, "conditions": markdown_rows(columns, took.select(columns).rows())}


def score_experiment(index: IndexResource) -> StageOutcome:
    """Score the answers, and compare the watched metric with the run before."""
    options = index.settings.evaluation
    store = EvaluationStore(index.home)
    experiment = _experiment(index)
    n_scores = score_answers(store, experiment, index.settings)
    examined, failures = count_claims(store, experiment, index.settings)
    graded = grade_answers(store, experiment, index.settings)
    with store.transaction() as con:
        record_means(con, experiment.name)
        fallen = drops(con, experiment.name, options.watch, options.max_drop)
    if experiment.judge is None:
        finish(store, experiment)
    return StageOutcome(
        {
            "scores": n_scores,
            "claims_of_answers": examined,
            "gradings": graded.made,
            "failures": len(failures) + len(graded.failures),
            **adorned("means", lambda: _means(store, experiment.name, options.watch)),
        },
        failed=len(fallen),
        why="; ".join(map(str, fallen[:_MOST_DROPS])),
    )


def judge_experiment(index: IndexResource) -> StageOutcome:
    """Have the judge compare the answers in pairs."""
    store = EvaluationStore(index.home)
    experiment = _experiment(index)
    judged = judge_answers(store, experiment, index.settings)
    finish(store, experiment)
    return StageOutcome(
        {
            "verdicts": judged.made,
            "failures": len(judged.failures),
            **adorned("comparisons", lambda: _comparisons(store, experiment.name)),
        }
    )


def _comparisons(store: EvaluationStore, experiment: str) -> dict[str, Any]:
    """Return who has won over whom, by name and as a table."""
    with store.read() as con:
        overall = con.execute(_OVERALL, [experiment]).fetchall()
        compared = con.execute(_COMPARISONS, [experiment])
        names = [column[0] for column in compared.description or []]
        rows = compared.fetchall()
    return {
        **{f"{pair}: win rate": round(rate, 4) for pair, rate in overall},
        "comparisons": markdown_rows(names, rows),
    }


def _file(index: IndexResource) -> Path:
    return Path(index.settings.evaluation.experiment).expanduser()


def _is_judged(file: Path) -> bool:
    """Whether an experiment's file asks for a judge; what is wrong in it is told when it is run."""
    try:
        return "judge" in tomllib.loads(file.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return False


def _left_out(errors: Mapping[str, str]) -> dict[str, str]:
    reasons = "; ".join(f"{condition}: {error}" for condition, error in errors.items())
    return {"left_out": reasons} if reasons else {}


def _means(store: EvaluationStore, experiment: str, watch: str) -> dict[str, Any]:
    """Return the watched mean of each condition, and a table of the usual ones."""
    with store.read() as con:
        table = means(question_scores(con, experiment))
    value = {(row["condition"], row["metric"]): row["mean"] for row in table.rows(named=True)}
    metrics = metric_order(table["metric"].unique().to_list())[:_MOST_METRICS]
    conditions = table["condition"].unique(maintain_order=True).to_list()
    rows = [(name, *(value.get((name, metric)) for metric in metrics)) for name in conditions]
    watched = {
        f"{name}: {watch}": round(value[name, watch], 4)
        for name in conditions
        if (name, watch) in value
    }
    return {**watched, "means": markdown_rows(("condition", *metrics), rows)}
