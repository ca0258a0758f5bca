"""`eval winrate`: recorded judgments, and what is certain of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.cli import console
from graphrag_pipeline.cli.command import prints
from graphrag_pipeline.core.errors import InputError

if TYPE_CHECKING:
    from graphrag_evaluation.judging.verdicts import Comparison, Verdict

_SHARES = (
    "win_rate", "win_rate_low", "win_rate_high", "win_rate_first", "win_rate_second", "ties",
    "first_chosen", "first_chosen_low", "first_chosen_high", "consistent",
)  # fmt: skip
_COLUMNS = ("criterion", "win %", "95 %", "1st %", "agree %", "p (Holm)", "winner")


def show_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Print a table for each pair of conditions, each criterion's verdict, and the matrix."""
    from graphrag_evaluation.judging.verdict_text import explain

    pairs = dict.fromkeys(
        (comparison.condition_a, comparison.condition_b) for comparison in comparisons
    )
    for a, b in pairs:
        of_pair = [
            comparison
            for comparison in comparisons
            if (comparison.condition_a, comparison.condition_b) == (a, b)
        ]
        console.say(f"{a} against {b}: {of_pair[0].questions} questions, each in both orders")
        console.show_rows(_COLUMNS, [_row(comparison) for comparison in of_pair])
        console.say()
        for comparison in of_pair:
            console.say(f"{comparison.criterion}: {explain(comparison)}")
            console.say()
    _show_matrix(comparisons)


def show_win_rates(comparisons: Sequence[Comparison]) -> None:
    """Print a line for each pair of conditions and criterion, and what its columns say."""
    if not comparisons:
        return
    console.say("win rates of the first over the second, each question judged in both orders:")
    rows = [
        (f"{each.condition_a} over {each.condition_b}", *_row(each), f"{100 * each.ties:.0f}")
        for each in comparisons
    ]
    console.show_rows(("pair", *_COLUMNS, "ties %"), rows)
    if any(each.is_biased for each in comparisons):
        console.say("biased: more than chance, being shown first decided which answer was chosen")


def _row(comparison: Comparison) -> tuple[str, ...]:
    first = "-" if comparison.first_chosen is None else f"{100 * comparison.first_chosen:.1f}"
    return (
        comparison.criterion,
        f"{100 * comparison.win_rate:.1f}",
        f"{100 * comparison.win_rate_low:.1f}-{100 * comparison.win_rate_high:.1f}",
        f"{first} biased" if comparison.is_biased else first,
        f"{100 * comparison.consistent:.0f}",
        f"{comparison.p_corrected:.2g}",
        comparison.winner or "none",
    )


def _show_matrix(comparisons: Sequence[Comparison]) -> None:
    """Print win rates of rows over columns, where every condition was compared with every other."""
    for criterion, rates in _matrix(comparisons).items():
        if len(rates) > 2 and all(
            rate is not None for row in rates.values() for rate in row.values()
        ):
            console.say(f"{criterion}: win rate of row over column, %")
            rows = [
                (name, *(f"{rate:.0f}" for rate in row.values())) for name, row in rates.items()
            ]
            console.show_rows(("", *rates), rows)
            console.say()


def _matrix(comparisons: Sequence[Comparison]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return win rates in percent by criterion, row and column."""
    from graphrag_evaluation.judging.verdicts import win_rate_matrix

    names = list(
        dict.fromkeys(
            n
            for comparison in comparisons
            for n in (comparison.condition_a, comparison.condition_b)
        )
    )
    rates = {
        criterion: win_rate_matrix(comparisons, criterion, names)
        for criterion in dict.fromkeys(comparison.criterion for comparison in comparisons)
    }
    return {
        criterion: {
            name: dict(zip(names, map(_percent, row), strict=True))
            for name, row in zip(names, rows, strict=True)
        }
        for criterion, rows in rates.items()
    }


def _comparison_values(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values, rates and shares in percent."""
    from graphrag_evaluation.judging.verdict_text import explain

    values = asdict(comparison)
    shares = {name: _percent(values[name]) for name in _SHARES}
    extras = {
        "biased": comparison.is_biased,
        "winner": comparison.winner,
        "verdict": explain(comparison),
    }
    return {**values, **shares, **extras}


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)


def _left_out(verdicts: Sequence[Verdict], comparisons: Sequence[Comparison]) -> int:
    judgements = {
        (item.criterion, frozenset((item.first, item.second)), item.question) for item in verdicts
    }
    return len(judgements) - sum(item.questions for item in comparisons)


def comparison_values(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return comparisons and the matrix of win rates as plain values."""
    values = [_comparison_values(comparison) for comparison in comparisons]
    return {"comparisons": values, "matrix": _matrix(comparisons)}


@prints(show_comparisons, comparison_values)
def winrate(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines of judgments, in both orders.")],
) -> list[Comparison]:
    """Show win rates in recorded judgments, how certain they are, and what the order changed.

    A file holds verdicts (question, criterion, first, second, winner) or, named `A_vs_B.jsonl`,
    judgments as LightRAG's and HiRAG's evaluations record them: the second half of its lines judges
    the first half's questions with the answers in the other order. Rates are in percent.
    """
    from graphrag_evaluation.judging.judgment_files import read_judgment_files
    from graphrag_evaluation.judging.verdicts import compare_verdicts

    verdicts = read_judgment_files(files)
    comparisons = compare_verdicts(verdicts)
    left_out = _left_out(verdicts, comparisons)
    if not comparisons:
        raise InputError("no question is judged in both orders: which answer was shown first may "
                         "have decided everything; judge them in the other order too")  # fmt: skip
    if left_out:
        console.note(f"{left_out:,} judged in one order only left out")
    return comparisons
