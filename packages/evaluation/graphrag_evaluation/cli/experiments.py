"""`eval run` and `eval plan`: experiments, and what they would take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

from graphrag_evaluation.cli.results import (
    Results,
    result_values,
    results_of,
    show_results,
)
from graphrag_evaluation.cli.stages import show_stages, total
from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import Where, documents_where, prints, settings_here
from graphrag_pipeline.cli.progress import progress
from graphrag_pipeline.core.errors import InputError

if TYPE_CHECKING:
    from graphrag_evaluation.evaluate import Evaluated, ExperimentPlan
    from graphrag_evaluation.experiment import Experiment
    from graphrag_evaluation.steps import Claims, Judge
    from graphrag_pipeline.core.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
Spec = Annotated[
    Path | None, typer.Argument(help="Experiment, a TOML file (default: made of the options).")
]
Questions = Annotated[
    str, typer.Option("--questions", "-q", help="A file of questions, or a kept question set.")
]
Methods = Annotated[
    str,
    typer.Option(
        "--methods",
        "-m",
        help="Conditions, separated by commas: methods, or C0 to C3, TS and SS (default: every "
        "method that needs no model, or a preset's).",
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        help="A paper's conditions, judge and tables: graphrag, archrag, hirag, rag_vs_graphrag; "
        "context-window, 8k to 64k; archrag-k, its values of k; or one that makes indexes by other "
        "settings: archrag-clusterings, graphrag-gleanings, rag_vs_graphrag-graphs."
    ),
]
Levels = Annotated[
    str, typer.Option(help="Community levels, separated by commas, for methods that read one.")
]
RetrievalOnly = Annotated[bool, typer.Option("--retrieval-only", help="Make no answers.")]
Limit = Annotated[
    int, typer.Option(min=0, help="Ask only so many of the questions, the first ones (0: all).")
]
Judged = Annotated[bool, typer.Option("--judge", help="Let a model compare the answers in pairs.")]
CountClaims = Annotated[bool, typer.Option("--claims", help="Let a model count claims.")]
PerDocument = Annotated[
    bool | None,
    typer.Option(
        "--per-document/--one-index",
        help="Ask each question of an index of the document alone that it names (default: as the "
        "preset does).",
    ),
]
Named = Annotated[
    str, typer.Option(help="Name of the experiment (default: the questions', and the preset's).")
]
_WARNINGS = 5


def chosen_experiment(
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
    per_document: PerDocument = None,
    where: Where = None,
) -> Experiment:
    """Return the experiment that a file names, or options alone."""
    from graphrag_evaluation.experiment import Claims, Judge, experiment_of
    from graphrag_pipeline.query.methods import METHODS

    steps: dict[str, Any] = {
        "judge": Judge() if judge else None,
        "claims": Claims() if claims else None,
    }
    if spec is not None:
        if questions or methods or preset or levels or where:
            raise InputError(
                "an experiment's file says its questions, methods and documents: leave them out"
            )
        return _of_file(
            spec,
            name=name,
            limit=limit,
            retrieval_only=retrieval_only,
            per_document=per_document,
            **steps,
        )
    if not questions:
        raise InputError("name an experiment's file, or --questions: a file or a question set")
    return experiment_of(
        name or "-".join(filter(None, (Path(questions).stem, preset))),
        questions,
        [part.strip() for part in methods.split(",") if part.strip()]
        or ([] if preset else list(METHODS)),
        preset=preset,
        levels=_numbers(levels),
        where=documents_where(where),
        retrieval_only=retrieval_only,
        limit=limit,
        per_document=per_document,
        **steps,
    )


def of_experiment(
    command: Callable[Concatenate[Experiment, P], T],
) -> Callable[..., T]:
    """Give a command about an experiment the options of :func:`chosen_experiment`."""
    for name in ("experiment", "return"):  # types imported for the type checker only
        command.__annotations__.pop(name, None)
    chosen_experiment.__annotations__.pop("return", None)
    shared = inspect.signature(chosen_experiment, eval_str=True).parameters
    _, *own = inspect.signature(command, eval_str=True).parameters.values()

    @functools.wraps(command)
    def run_on(**options: Any) -> T:
        experiment = chosen_experiment(**{name: options.pop(name) for name in shared})
        return command(experiment, **options)  # pyright: ignore[reportCallIssue]

    run_on.__signature__ = inspect.Signature([*shared.values(), *own])  # type: ignore[attr-defined]
    return run_on


@prints(show_results, result_values)
@of_experiment
def run(
    experiment: Experiment,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask about the cost.")] = False,
) -> Results:
    """Answer questions by several methods and score the answers.

    A run that was stopped goes on where it ended. Answers, scores and judgments of earlier
    experiments are used again: nothing is paid twice.
    """
    from graphrag_evaluation.evaluating import run_experiment

    settings = settings_here()
    _agree(settings, experiment, yes)
    with progress("evaluating"):
        outcome = run_experiment(settings, experiment)
    _tell(outcome)
    return results_of(settings, experiment.name)


def _show_plan(plan: ExperimentPlan) -> None:
    console.say(
        f"{plan.experiment}: {plan.questions:,} questions, {plan.conditions:,} conditions; "
        f"{plan.to_make:,} answers to make, {plan.reused:,} made before"
    )
    for error in plan.errors:
        console.note(f"left out: {error}")
    for note in plan.notes:
        console.note(f"note: {note}")
    if plan.stages:
        show_stages(plan.stages)
    else:
        console.say("No model is asked: it costs nothing.")


def _plan_values(plan: ExperimentPlan) -> dict[str, Any]:
    return {**asdict(plan), "cost": plan.cost}


@prints(_show_plan, _plan_values)
@of_experiment
def plan(experiment: Experiment) -> ExperimentPlan:
    """Show what a run of an experiment would do and cost.

    No model writes; where one makes vectors, it is asked for those of up to three questions a
    method."""
    from graphrag_evaluation.evaluating import plan_experiment

    return plan_experiment(settings_here(), experiment)


def _of_file(
    spec: Path,
    *,
    name: str,
    limit: int,
    retrieval_only: bool,
    per_document: bool | None,
    judge: Judge | None,
    claims: Claims | None,
) -> Experiment:
    """Return the experiment of a file, with what options say besides."""
    from dataclasses import replace

    from graphrag_evaluation.experiment import checked, read_experiment

    chosen = read_experiment(spec)
    return checked(
        replace(
            chosen,
            limit=limit or chosen.limit,
            name=name or chosen.name,
            per_document=chosen.per_document if per_document is None else per_document,
            retrieval_only=retrieval_only or chosen.retrieval_only,
            judge=chosen.judge or judge,
            claims=chosen.claims or claims,
        )
    )


def _numbers(text: str) -> list[int]:
    from graphrag_pipeline.core.levels import parse_level

    try:
        return [parse_level(part.strip()) for part in text.split(",") if part.strip()]
    except InputError:
        raise InputError(f"--levels {text}: write numbers, such as 0,1,2") from None


def _agree(settings: Settings, experiment: Experiment, yes: bool) -> None:
    """Say what a run may cost, and ask if it is much."""
    from graphrag_evaluation.evaluating import plan_experiment
    from graphrag_pipeline.planning.consent import why_ask

    answers = settings.query.answers == "llm" and not experiment.retrieval_only
    # Indexes that are made may cost, whatever is asked of them.
    makes_indexes = experiment.per_document or experiment.preset or experiment.variants
    if not (answers or experiment.asks_models or makes_indexes):
        return
    estimate = plan_experiment(settings, experiment)
    for error in estimate.errors:
        console.note(f"left out: {error}")
    if estimate.stages:
        console.note(total(estimate.stages))
    for note in estimate.notes:
        console.note(f"note: {note}")
    if not yes and (why := why_ask(settings, estimate.stages)):
        console.confirm(why, "graphrag-pipeline eval plan")


def _tell(outcome: Evaluated) -> None:
    for note in outcome.notes:
        console.note(note)
    for name, error in outcome.answered.errors.items():
        console.note(f"left out: {name}: {error}")
    for name, (number, first) in outcome.answered.failed.items():
        console.note(f"{name}: {number} without an answer; the first: {first}")
    for failure in outcome.failures[:_WARNINGS]:
        console.note(f"warning: {failure}")
    console.note(
        f"{outcome.answered.made:,} answers made, {outcome.answered.reused:,} made before; "
        f"{outcome.scores:,} scores, {outcome.verdicts:,} verdicts"
        + (f", claims of {outcome.claims:,} answers" if outcome.claims else "")
        + (f", {outcome.gradings:,} gradings" if outcome.gradings else "")
    )
