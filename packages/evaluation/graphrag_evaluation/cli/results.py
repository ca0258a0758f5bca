"""`eval results`, `compare` and `report`: what experiments found."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_evaluation.cli.labels import agreement_line
from graphrag_evaluation.cli.tables import show_tables
from graphrag_evaluation.cli.win_rates import comparison_values, show_win_rates
from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints, settings_here
from graphrag_pipeline.cli.wording import money
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.rows import write_csv

if TYPE_CHECKING:
    from graphrag_evaluation.judging.agreement import Agreement
    from graphrag_evaluation.judging.permutation import Permuted
    from graphrag_evaluation.judging.verdicts import Comparison
    from graphrag_evaluation.labelling.human_agreement import PeopleSay
    from graphrag_evaluation.pages import WrittenEvaluation
    from graphrag_evaluation.presets.tables import PaperTable
    from graphrag_evaluation.results import Difference
    from graphrag_pipeline.core.settings import Settings

_DIFFERENCES = ("metric", "left", "right", "difference", "95 %", "p (Holm)")
_HEADINGS = {
    "recall@5": "recall@5", "all_gold@5": "all@5", "answer_in_context": "in context",
    "precision@5": "prec@5", "cluster_recall@5": "clusters@5",
    "accuracy": "accuracy", "f1": "f1", "abstained": "abstained",
    "reference_correctness": "correct/10", "reference_completeness": "complete/10",
    "assertions_met": "assertions", "self_consistency": "said again",
    "claims": "claims", "claim_clusters@0.7": "clusters",
}  # fmt: skip
_OF_ANSWERS = ("accuracy", "f1", "abstained")
_NUMBERS = ("claim", "reference_")


@dataclass(frozen=True)
class Results:
    """Results of an experiment: what each condition took, and the mean of each of its metrics.

    ``comparisons`` are the win rates of judged answers, ``marked_by`` the metrics that models give
    marks by, ``tables`` those of the paper whose preset it is; ``people`` is what people say of the
    answers.
    """

    experiment: str
    conditions: list[dict[str, Any]]
    metrics: list[dict[str, Any]]
    agreement: list[Agreement]
    tests: list[Permuted]
    people: PeopleSay
    comparisons: list[Comparison] = field(default_factory=list)
    marked_by: dict[str, list[str]] = field(default_factory=dict)
    tables: list[PaperTable] = field(default_factory=list)


def results_of(settings: Settings, experiment: str | None) -> Results:
    """Return what an experiment found; without a name, the latest."""
    from graphrag_evaluation import results
    from graphrag_evaluation.judging.agreement import agreements
    from graphrag_evaluation.judging.assertions import METRIC
    from graphrag_evaluation.judging.judge import comparisons_of
    from graphrag_evaluation.judging.permutation import permutation_tests
    from graphrag_evaluation.labelling.human_agreement import people_say
    from graphrag_evaluation.presets.tables import tables_of_experiment
    from graphrag_evaluation.store import EvaluationStore

    with EvaluationStore(settings.home_path).read() as con:
        name = results.named_experiment(con, experiment)
        conditions = results.costs(con, name).rows(named=True)
        scores = results.question_scores(con, name)
        metrics = results.means(scores).rows(named=True)
        tests = permutation_tests(scores, METRIC)
        tables = tables_of_experiment(con, name)
        marked_by = results.marked_by(con, name)
        return Results(
            experiment=name,
            conditions=conditions,
            metrics=metrics,
            agreement=agreements(con, name),
            tests=tests,
            people=people_say(con, name),
            comparisons=comparisons_of(con, name),
            marked_by=marked_by,
            tables=tables,
        )


def show_results(results: Results) -> None:
    """Print a line for each condition."""
    from graphrag_evaluation.labelling.human_agreement import PEOPLE

    metric_names = {row["metric"] for row in results.metrics}
    metrics = [name for name in _HEADINGS if name in metric_names]
    if not any(row["written"] for row in results.conditions):
        metrics = [name for name in metrics if name not in _OF_ANSWERS]
    is_paid = any(row["model_calls"] for row in results.conditions)
    means = {(row["condition"], row["metric"]): row["mean"] for row in results.metrics}
    console.say(f"Experiment {results.experiment}")
    console.show_rows(
        ("condition", *map(_HEADINGS.__getitem__, metrics), "tokens", *["cost"] * is_paid, "ms"),
        [_line(row, metrics, means, is_paid) for row in results.conditions],
    )
    for model, names in results.marked_by.items():
        console.say(f"marked by {model}: {', '.join(names)}")
    show_win_rates(results.comparisons)
    for agreement in results.agreement:
        console.say(_agreement(agreement))
    for row in results.people.agreements:
        if row.one == PEOPLE and row.other:
            console.say(agreement_line(row))
    for test in results.tests:
        console.say(
            f"{test.metric}: {test.condition_a} less {test.condition_b} is {test.difference:+.3f} "
            f"over {test.questions:,} questions, p = {test.p_corrected:.2g} (permutation, Holm)"
        )
    show_tables(results.tables, is_brief=True)
    if results.tables:
        name = shlex.quote(results.experiment)
        console.note(f"with the paper's own figures: graphrag-pipeline eval tables {name}")


def _agreement(agreement: Agreement) -> str:
    of = f"{agreement.decided:,} of {agreement.comparisons:,} comparisons"
    share = "" if agreement.share is None else (
        f"; {agreement.metric} name the same answer in {100 * agreement.share:.0f} % of them"
    )  # fmt: skip
    return f"{agreement.criterion}: the judge's majority decides {of}{share}"


def result_values(results: Results) -> dict[str, Any]:
    """Return what an experiment found as plain values."""
    shares = [{**asdict(agreement), "share": agreement.share} for agreement in results.agreement]
    judged = comparison_values(results.comparisons)
    return {**asdict(results), "agreement": shares, **judged}


def _show_differences(differences: Sequence[Difference]) -> None:
    for condition in dict.fromkeys(difference.condition for difference in differences):
        of_condition = [row for row in differences if row.condition == condition]
        console.say(f"{condition}: {max(row.questions for row in of_condition)} questions")
        console.show_rows(_DIFFERENCES, [_difference(row) for row in of_condition])
        console.say()
    sure = sum(difference.is_sure for difference in differences)
    console.say(f"{sure} of {len(differences)} differences are more than chance (p < .05)")


def _difference_values(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    return [{**asdict(difference), "is_sure": difference.is_sure} for difference in differences]


def _show_report(page: WrittenEvaluation) -> None:
    for sentence in page.finding:
        console.say(sentence)
    size = f"{page.n_bytes / 1e6:.2f} MB"
    console.say_whole(f"Wrote {page.path} ({size}), experiment {page.experiment}")
    console.say("Open it in a browser; it needs no network and no other file.", style="dim")


def _line(
    row: dict[str, Any],
    metrics: Sequence[str],
    means: dict[tuple[str, str], float],
    is_paid: bool,
) -> tuple[str, ...]:
    values = [means.get((row["condition"], metric)) for metric in metrics]
    return (
        row["condition"],
        *map(_mean, metrics, values),
        f"{row['context_tokens']:,.0f}",
        *[money(row["cost"])] * is_paid,
        f"{row['total_ms']:,.0f}",
    )


def _mean(metric: str, value: float | None) -> str:
    """Return a mean as shown: a share in percent, claims and marks as their number."""
    if value is None:
        return "-"
    return f"{value if metric.startswith(_NUMBERS) else 100 * value:.1f}"


def _difference(difference: Difference) -> tuple[str, ...]:
    return (
        difference.metric,
        f"{difference.left:.3f}",
        f"{difference.right:.3f}",
        f"{difference.difference:+.3f}",
        f"{difference.low:+.3f} to {difference.high:+.3f}",
        f"{difference.p_corrected:.2g}",
    )


@prints(show_results, result_values)
def results(
    experiment: Annotated[
        str | None, typer.Argument(help="An experiment (default: the latest).")
    ] = None,
    agreement: Annotated[
        Path | None,
        typer.Option(help="Write what judge and claims say of each pair of answers to this CSV."),
    ] = None,
) -> Results:
    """Show what an experiment found, a line for each condition.

    Where its answers were judged and their claims counted, it says how often both name the same
    answer as the better one.
    """
    from graphrag_evaluation.judging.agreement import agreement_details
    from graphrag_evaluation.store import EvaluationStore
    from graphrag_pipeline.core.hardening.files import write_beside

    found = results_of(settings_here(), experiment)
    if agreement is not None:
        with EvaluationStore(settings_here().home_path).read() as con:
            details = agreement_details(con, found.experiment)
        if details.is_empty():
            raise InputError(f"{found.experiment} has no answers with both verdicts and claims")
        text = io.StringIO()
        write_csv(text, details.columns, details.rows())
        write_beside(agreement, text.getvalue().encode())
        console.note(f"Wrote {agreement}")
    return found


@prints(_show_differences, _difference_values)
def compare(
    left: Annotated[str, typer.Argument(help="An experiment, or experiment/condition.")],
    right: Annotated[str, typer.Argument(help="What to compare it with.")],
) -> list[Difference]:
    """Compare two experiments or two conditions, question by question, beyond chance.

    Two experiments are compared condition by condition: last night's and tonight's, or those of
    two indexes.
    """
    from graphrag_evaluation.results import compare_results
    from graphrag_evaluation.store import EvaluationStore

    with EvaluationStore(settings_here().home_path).read() as con:
        return compare_results(con, left, right)


@prints(_show_report)
def report(
    experiment: Annotated[
        str | None, typer.Argument(help="An experiment (default: the latest).")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "evaluation.html"
    ),
) -> WrittenEvaluation:
    """Write what an experiment found as one HTML page, to read or send.

    It shows quality against tokens and milliseconds, all metrics with their certainty, win rates,
    and the questions on which conditions differ most, with their answers side by side. It needs no
    network and no other file.
    """
    from graphrag_evaluation.pages import write_evaluation

    return write_evaluation(settings_here().home_path, output, experiment)
