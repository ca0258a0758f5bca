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
    from graphrag_pipeline.evaluation.verdicts import Comparison, Verdict

_SHARES = (
    "win_rate", "win_rate_low", "win_rate_high", "win_rate_first", "win_rate_second", "ties",
    "first_chosen", "first_chosen_low", "first_chosen_high", "consistent",
)  # fmt: skip
_COLUMNS = ("criterion", "win %", "95 %", "1st %", "agree %", "p (Holm)", "winner")


def show_comparisons(found: Sequence[Comparison]) -> None:
    """Print a table for each pair of conditions, each criterion's verdict, and the matrix."""
    from graphrag_pipeline.evaluation.verdict_text import explain

    pairs = dict.fromkeys((one.condition_a, one.condition_b) for one in found)
    for a, b in pairs:
        of_pair = [one for one in found if (one.condition_a, one.condition_b) == (a, b)]
        console.say(f"{a} against {b}: {of_pair[0].questions} questions, each in both orders")
        console.show_rows(_COLUMNS, [_row(one) for one in of_pair])
        console.say()
        for one in of_pair:
            console.say(f"{one.criterion}: {explain(one)}")
            console.say()
    _show_matrix(found)


def _row(one: Comparison) -> tuple[str, ...]:
    first = "-" if one.first_chosen is None else f"{100 * one.first_chosen:.1f}"
    return (
        one.criterion,
        f"{100 * one.win_rate:.1f}",
        f"{100 * one.win_rate_low:.1f}-{100 * one.win_rate_high:.1f}",
        f"{first} biased" if one.is_biased else first,
        f"{100 * one.consistent:.0f}",
        f"{one.p_corrected:.2g}",
        one.winner or "none",
    )


def _show_matrix(found: Sequence[Comparison]) -> None:
    """Print win rates of rows over columns, where every condition was compared with every other."""
    for criterion, rates in _matrix(found).items():
        if len(rates) > 2 and all(
            rate is not None for row in rates.values() for rate in row.values()
        ):
            console.say(f"{criterion}: win rate of row over column, %")
            rows = [
                (name, *(f"{rate:.0f}" for rate in row.values())) for name, row in rates.items()
            ]
            console.show_rows(("", *rates), rows)
            console.say()


def _matrix(found: Sequence[Comparison]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return win rates in percent by criterion, row and column."""
    from graphrag_pipeline.evaluation.verdicts import win_rate_matrix

    names = list(dict.fromkeys(n for one in found for n in (one.condition_a, one.condition_b)))
    rates = {
        criterion: win_rate_matrix(found, criterion, names)
        for criterion in dict.fromkeys(one.criterion for one in found)
    }
    return {
        criterion: {
            name: dict(zip(names, map(_percent, row), strict=True))
            for name, row in zip(names, rows, strict=True)
        }
        for criterion, rows in rates.items()
    }


def _comparison_values(one: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values, rates and shares in percent."""
    from graphrag_pipeline.evaluation.verdict_text import explain

    given = asdict(one)
    shares = {name: _percent(given[name]) for name in _SHARES}
    said = {"biased": one.is_biased, "winner": one.winner, "verdict": explain(one)}
    return {**given, **shares, **said}


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 2)


def _left_out(verdicts: Sequence[Verdict], found: Sequence[Comparison]) -> int:
    judged = {(one.criterion, frozenset((one.first, one.second)), one.question) for one in verdicts}
    return len(judged) - sum(one.questions for one in found)


def _values(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return comparisons and the matrix of win rates as plain values."""
    values = [_comparison_values(comparison) for comparison in comparisons]
    return {"comparisons": values, "matrix": _matrix(comparisons)}


@prints(show_comparisons, _values)
def winrate(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines of judgments, in both orders.")],
) -> list[Comparison]:
    """Show win rates in recorded judgments, how certain they are, and what the order changed.

    A file holds verdicts (question, criterion, first, second, winner) or, named `A_vs_B.jsonl`,
    judgments as LightRAG's and HiRAG's evaluations record them: the second half of its lines judges
    the first half's questions with the answers in the other order. Rates are in percent.
    """
    from graphrag_pipeline.evaluation.judgment_files import read_judgment_files
    from graphrag_pipeline.evaluation.verdicts import compare_verdicts

    verdicts = read_judgment_files(files)
    found = compare_verdicts(verdicts)
    left_out = _left_out(verdicts, found)
    if not found:
        raise InputError("no question is judged in both orders: which answer was shown first may "
                         "have decided everything; judge them in the other order too")  # fmt: skip
    if left_out:
        console.note(f"{left_out:,} judged in one order only left out")
    return found
