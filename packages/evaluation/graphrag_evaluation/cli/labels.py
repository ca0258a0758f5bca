"""`eval labels`: answers labelled by people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.text import counted

if TYPE_CHECKING:
    from graphrag_evaluation.labelling.human_agreement import Beside, HumanAgreement, PeopleSay
    from graphrag_evaluation.store import EvaluationStore

LabelFiles = Annotated[
    list[Path] | None,
    typer.Argument(help="Labels to keep: sheets filled in, or other CSV or JSON Lines."),
]
OfExperiment = Annotated[
    str | None,
    typer.Option("--experiment", "-e", help="Whose answers (default: the latest experiment's)."),
]
Sheet = Annotated[
    Path | None,
    typer.Option("--export", help="Write a sheet to fill in: CSV, or JSON Lines by its name."),
]
Pairs = Annotated[bool, typer.Option("--pairs", help="Of two answers beside each other.")]
Criteria = Annotated[
    str,
    typer.Option(
        help="Columns of the sheet, separated by commas (default: correctness,completeness; with "
        "--pairs overall)."
    ),
]
Conditions = Annotated[
    str, typer.Option(help="Only answers of these conditions, separated by commas.")
]
Limit = Annotated[
    int, typer.Option(min=0, help="Draw so many answers, or pairs, for the sheet (0: all).")
]
Seed = Annotated[int, typer.Option(help="Another number draws and orders them otherwise.")]
Labeller = Annotated[str, typer.Option(help="Who filled in the files, where they do not say.")]
Forget = Annotated[str, typer.Option(help="Remove all that this labeller has labelled.")]
_BESIDE = ("criterion", "condition", "against", "answers", "people", "95 %", "model", "by")
_AGREEMENT = ("criterion", "who", "with", "answers", "same %", "kappa", "alpha")


@dataclass(frozen=True)
class Labelled:
    """Labels that people gave to an experiment; ``sheet`` is what was written in place of it.

    ``criteria`` are the columns to fill in, and what to write into each.
    """

    experiment: str
    says: PeopleSay | None = None
    sheet: str = ""
    rows: int = 0
    criteria: Mapping[str, str] = field(default_factory=dict)


def _show(labelled: Labelled) -> None:
    if labelled.says is not None:
        show_people(labelled.says, labelled.experiment)
        return
    console.say_whole(f"Wrote {labelled.sheet}: {counted(labelled.rows, 'row')} to fill in")
    for name, how in labelled.criteria.items():
        console.say(f"{name}: {how}")


def show_people(says: PeopleSay, experiment: str) -> None:
    """Print means of people and models, and how far they agree."""
    if not says.labels:
        console.say(f"Nobody has labelled the answers of {experiment} as they are now.")
        console.say("graphrag-pipeline eval labels --export sheet.csv writes a sheet to fill in.")
        return
    labellers = ", ".join(says.labellers)
    console.say(f"Experiment {experiment}: {counted(says.labels, 'label')} by {labellers}")
    console.show_rows(_BESIDE, [_means(row) for row in says.beside])
    if says.agreements:
        console.say()
        console.show_rows(_AGREEMENT, [_agreement(row) for row in says.agreements])


def agreement_line(row: HumanAgreement) -> str:
    """Return how far people agree with a model, in a sentence."""
    beyond = "" if row.reliability.kappa is None else f", kappa {row.reliability.kappa:.2f}"
    return (
        f"{row.criterion}: {row.one} and {row.other} say the same of "
        f"{100 * row.reliability.share:.0f} % of {row.reliability.items:,}{beyond}"
    )


def _means(row: Beside) -> tuple[str, ...]:
    is_rate = row.kind == "preference"
    return (
        row.criterion,
        row.condition,
        row.rival or "-",
        f"{row.items:,}",
        _number(row.people, is_rate),
        f"{_number(row.low, is_rate)}-{_number(row.high, is_rate)}",
        _number(row.model_mean, is_rate),
        row.model or "-",
    )


def _number(value: float | None, is_rate: bool) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if is_rate else f"{value:.2f}"


def _agreement(row: HumanAgreement) -> tuple[str, ...]:
    of = row.reliability
    who = row.one if row.other else f"{of.raters} people"
    return (
        row.criterion,
        who,
        row.other or "each other",
        f"{of.items:,}",
        f"{100 * of.share:.0f}",
        "-" if of.kappa is None else f"{of.kappa:.2f}",
        "-" if of.alpha is None else f"{of.alpha:.2f}",
    )


def _values(labelled: Labelled) -> dict[str, Any]:
    if labelled.says is None:
        return {name: value for name, value in asdict(labelled).items() if name != "says"}
    return {"experiment": labelled.experiment, **asdict(labelled.says)}


@prints(_show, _values)
def labels(
    files: LabelFiles = None,
    experiment: OfExperiment = None,
    export: Sheet = None,
    pairs: Pairs = False,
    criteria: Criteria = "",
    conditions: Conditions = "",
    limit: Limit = 0,
    seed: Seed = 0,
    labeller: Labeller = "",
    forget: Forget = "",
) -> Labelled:
    """Let people label answers, and see how far they agree with each other and with the model.

    `--export` writes a sheet of the answers, in random order and without a sign of the condition.
    Filled in and named here, its labels are kept. Without either, it shows what people say.
    """
    from graphrag_evaluation.labelling.human_agreement import people_say
    from graphrag_evaluation.labelling.items import answers_given
    from graphrag_evaluation.labelling.sheets import (
        default_criteria,
        how_to_fill,
        write_sheet,
    )
    from graphrag_evaluation.results import named_experiment
    from graphrag_evaluation.store import EvaluationStore

    if export is not None and (files or forget):
        raise InputError("give files of labels, or --export, or --forget: one of them")
    store = EvaluationStore(settings_here().home_path)
    if forget:
        _forget(store, forget)
    with store.read() as con:
        name = named_experiment(con, experiment)
        given = answers_given(con, name)
    if export is not None:
        kind = "preference" if pairs else "score"
        columns = [part.lower() for part in _listed(criteria)] or list(default_criteria(kind))
        rows = write_sheet(
            export, given, kind, columns, conditions=_listed(conditions), limit=limit, seed=seed
        )
        how = {column: how_to_fill(column, kind) for column in columns}
        return Labelled(name, sheet=str(export), rows=rows, criteria=how)
    if files:
        _keep(store, name, files, labeller)
    with store.read() as con:
        return Labelled(name, people_say(con, name))


def _keep(store: EvaluationStore, experiment: str, files: Sequence[Path], labeller: str) -> None:
    from graphrag_evaluation.labelling.label_store import bring_labels

    kept = bring_labels(store, experiment, files, labeller=labeller)
    console.note(
        f"{counted(kept.labels, 'label')} of {', '.join(kept.labellers)} read: {kept.new:,} new, "
        f"{kept.changed:,} changed"
    )


def _forget(store: EvaluationStore, labeller: str) -> None:
    from graphrag_evaluation.labelling.label_store import drop_labels

    with store.transaction() as con:
        removed = drop_labels(con, labeller)
    console.note(f"{counted(removed, 'label')} of {labeller} removed")


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))
