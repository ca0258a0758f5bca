"""The commands of `eval` that run experiments and show what they found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.core.errors import InputError

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.evaluation.evaluate import Evaluated, ExperimentPlan
    from graphrag_pipeline.evaluation.experiment import Experiment
    from graphrag_pipeline.evaluation.results import Difference

Spec = Annotated[
    Path | None, typer.Argument(help="Experiment, a TOML file (default: made of the options).")
]
Questions = Annotated[
    str, typer.Option("--questions", "-q", help="A file of questions, or a kept question set.")
]
Methods = Annotated[
    str,
    typer.Option(
        "--methods", "-m", help="Conditions by comma: methods, or C0 to C3, TS and SS (default: "
        "every method that needs no model, or a preset's)."
    ),
]  # fmt: skip
Preset = Annotated[str, typer.Option(help="graphrag: C0-C3, TS, SS. context-window: 8k to 64k.")]
Levels = Annotated[str, typer.Option(help="Community levels by comma, for methods that read one.")]
RetrievalOnly = Annotated[bool, typer.Option("--retrieval-only", help="Make no answers.")]
Limit = Annotated[int, typer.Option(min=0, help="Only the first so many questions (0: all).")]
Judged = Annotated[bool, typer.Option("--judge", help="Let a model compare the answers in pairs.")]
CountClaims = Annotated[bool, typer.Option("--claims", help="Let a model count claims.")]
Named = Annotated[str, typer.Option(help="Name of the experiment (default: the questions').")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
_WARNINGS = 5
_DIFFERENCES = ("metric", "left", "right", "difference", "95 %", "p (Holm)")
_HEADINGS = {
    "recall@5": "recall@5", "all_gold@5": "all@5", "answer_in_context": "in context",
    "accuracy": "accuracy", "f1": "f1", "claims": "claims", "claim_clusters@0.7": "clusters",
}  # fmt: skip
_OF_ANSWERS = ("accuracy", "f1")


def run(
    spec: Spec = None,
    questions: Questions = "",
    methods: Methods = "",
    preset: Preset = "",
    levels: Levels = "",
    retrieval_only: RetrievalOnly = False,
    limit: Limit = 0,
    judge: Judged = False,
    claims: CountClaims = False,
    name: Named = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask about the cost.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer questions by several methods and score the answers; go on where a run ended.

    What was answered, scored or judged before, by whatever experiment, is not paid for again.
    """
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.evaluation.evaluate import run_experiment

    settings = load_settings()
    chosen = _experiment(
        spec, questions, methods, preset, levels, retrieval_only, limit, judge, claims, name
    )
    _agree(settings, chosen, yes)
    with console.progress("evaluating"):
        done = run_experiment(settings, chosen)
    _tell(done)
    _show_results(settings, chosen.name, as_json)


def plan(
    spec: Spec = None,
    questions: Questions = "",
    methods: Methods = "",
    preset: Preset = "",
    levels: Levels = "",
    retrieval_only: RetrievalOnly = False,
    limit: Limit = 0,
    judge: Judged = False,
    claims: CountClaims = False,
    name: Named = "",
    as_json: AsJson = False,
) -> None:
    """Say what a run of an experiment would do and cost; no model is asked."""
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.evaluation.evaluate import plan_experiment

    settings = load_settings()
    chosen = _experiment(
        spec, questions, methods, preset, levels, retrieval_only, limit, judge, claims, name
    )
    found = plan_experiment(settings, chosen)
    if as_json:
        console.show_json({**asdict(found), "cost": found.cost})
    else:
        _show_plan(found)


def results(
    experiment: Annotated[str | None, typer.Argument(help="Default: the latest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what an experiment found, a line for each condition."""
    from graphrag_pipeline.core.settings import load_settings

    _show_results(load_settings(), experiment, as_json)


def compare(
    left: Annotated[str, typer.Argument(help="An experiment, or experiment/condition.")],
    right: Annotated[str, typer.Argument(help="What to compare it with.")],
    as_json: AsJson = False,
) -> None:
    """Compare two experiments, or two conditions, question by question: what is more than chance.

    Two experiments are compared condition by condition: last night's and tonight's, or those of
    two indexes.
    """
    from dataclasses import asdict

    from graphrag_pipeline.cli import console
    from graphrag_pipeline.core.settings import load_settings
    from graphrag_pipeline.evaluation.results import compare_results
    from graphrag_pipeline.evaluation.store import EvaluationStore

    with EvaluationStore(load_settings().home_path).read() as con:
        found = compare_results(con, left, right)
    if as_json:
        console.show_json([{**asdict(one), "is_sure": one.is_sure} for one in found])
        return
    for condition in dict.fromkeys(one.condition for one in found):
        of_condition = [one for one in found if one.condition == condition]
        console.say(f"{condition}: {max(one.questions for one in of_condition)} questions")
        console.show_rows(_DIFFERENCES, [_difference(one) for one in of_condition])
        console.say()
    sure = sum(one.is_sure for one in found)
    console.say(f"{sure} of {len(found)} differences are more than chance (p < .05)")


def _experiment(
    spec: Path | None,
    questions: str,
    methods: str,
    preset: str,
    levels: str,
    retrieval_only: bool,
    limit: int,
    judge: bool,
    claims: bool,
    name: str,
) -> Experiment:
    from dataclasses import replace

    from graphrag_pipeline.evaluation.experiment import (
        Claims,
        Judge,
        checked,
        experiment_of,
        read_experiment,
    )
    from graphrag_pipeline.query.methods import METHODS

    if spec is not None:
        if questions or methods or preset or levels:
            raise InputError("an experiment's file says its questions and methods: leave them out")
        chosen = read_experiment(spec)
        return checked(
            replace(
                chosen,
                limit=limit or chosen.limit,
                name=name or chosen.name,
                retrieval_only=retrieval_only or chosen.retrieval_only,
                judge=chosen.judge or (Judge() if judge else None),
                claims=chosen.claims or (Claims() if claims else None),
            )
        )
    if not questions:
        raise InputError("name an experiment's file, or --questions: a file or a question set")
    return experiment_of(
        name or Path(questions).stem,
        questions,
        [part.strip() for part in methods.split(",") if part.strip()]
        or ([] if preset else list(METHODS)),
        preset=preset,
        levels=_numbers(levels),
        retrieval_only=retrieval_only,
        limit=limit,
        judge=Judge() if judge else None,
        claims=Claims() if claims else None,
    )


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"--levels {text}: write numbers, such as 0,1,2") from None


def _agree(settings: Settings, experiment: Experiment, yes: bool) -> None:
    """Say what a run may cost, and ask if it is much."""
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.evaluation.evaluate import plan_experiment

    answers = settings.query.answers == "llm" and not experiment.retrieval_only
    if not (answers or experiment.judge or experiment.claims):
        return
    expected = plan_experiment(settings, experiment)
    if expected.stages:
        console.note(_total(expected))
    most = settings.llm.confirm_cost
    if not yes and most and (expected.cost or 0.0) > most:
        console.confirm(expected.cost or 0.0, most, "graphrag-pipeline eval plan")


def _total(found: ExperimentPlan) -> str:
    calls = sum(stage.calls for stage in found.stages)
    tokens = sum(stage.prompt_tokens + stage.completion_tokens for stage in found.stages)
    cost = "at a price that is not known" if found.cost is None else f"about ${found.cost:.2f}"
    return f"{calls:,} calls, {tokens:,} tokens, {cost}"


def _show_plan(found: ExperimentPlan) -> None:
    from graphrag_pipeline.cli import console

    console.say(
        f"{found.experiment}: {found.questions:,} questions, {found.conditions:,} conditions; "
        f"{found.to_make:,} answers to make, {found.reused:,} made before"
    )
    for error in found.errors:
        console.note(f"left out: {error}")
    if found.stages:
        rows = [
            (s.stage, s.calls, s.prompt_tokens, s.completion_tokens, _dollars(s.cost))
            for s in found.stages
        ]
        console.show_rows(("stage", "calls", "tokens in", "tokens out", "cost"), rows)
        console.say(_total(found))
    else:
        console.say("No model is asked: it costs nothing.")


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}"


def _tell(done: Evaluated) -> None:
    from graphrag_pipeline.cli import console

    for name, error in done.answered.errors.items():
        console.note(f"left out: {name}: {error}")
    for name, (number, first) in done.answered.failed.items():
        console.note(f"{name}: {number} without an answer; the first: {first}")
    for failure in done.failures[:_WARNINGS]:
        console.note(f"warning: {failure}")
    console.note(
        f"{done.answered.made:,} answers made, {done.answered.reused:,} made before; "
        f"{done.scores:,} scores, {done.verdicts:,} verdicts"
        + (f", claims of {done.claims:,} answers" if done.claims else "")
    )


def _show_results(settings: Settings, experiment: str | None, as_json: bool) -> None:
    from graphrag_pipeline.cli import console
    from graphrag_pipeline.evaluation import results
    from graphrag_pipeline.evaluation.store import EvaluationStore

    with EvaluationStore(settings.home_path).read() as con:
        name = results.named_experiment(con, experiment)
        took = results.costs(con, name)
        found = results.means(results.question_scores(con, name))
    if as_json:
        metrics = found.rows(named=True)
        console.show_json(
            {"experiment": name, "conditions": took.rows(named=True), "metrics": metrics}
        )
        return
    metrics = [name for name in _HEADINGS if name in set(found["metric"])]
    if not took["written"].any():
        metrics = [name for name in metrics if name not in _OF_ANSWERS]
    is_paid = took["model_calls"].sum() > 0
    mean = {(row["condition"], row["metric"]): row["mean"] for row in found.rows(named=True)}
    console.say(f"Experiment {name}")
    console.show_rows(
        ("condition", *map(_HEADINGS.__getitem__, metrics), "tokens", *["cost"] * is_paid, "ms"),
        [_line(row, metrics, mean, is_paid) for row in took.rows(named=True)],
    )


def _line(
    row: dict[str, Any],
    metrics: Sequence[str],
    mean: dict[tuple[str, str], float],
    is_paid: bool,
) -> tuple[str, ...]:
    shown = [mean.get((row["condition"], metric)) for metric in metrics]
    return (
        row["condition"],
        *map(_mean, metrics, shown),
        f"{row['context_tokens']:,.0f}",
        *[_dollars(row["cost"])] * is_paid,
        f"{row['total_ms']:,.0f}",
    )


def _mean(metric: str, value: float | None) -> str:
    """Return a mean as shown: a share in percent, claims as their number."""
    if value is None:
        return "-"
    return f"{value if metric.startswith('claim') else 100 * value:.1f}"


def _difference(one: Difference) -> tuple[str, ...]:
    return (
        one.metric,
        f"{one.left:.3f}",
        f"{one.right:.3f}",
        f"{one.difference:+.3f}",
        f"{one.low:+.3f} to {one.high:+.3f}",
        f"{one.p_corrected:.2g}",
    )
