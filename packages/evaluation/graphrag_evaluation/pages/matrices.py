"""Win rates as matrices, as in GraphRAG's Figure 2, with what the order of answers did to them."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_evaluation.judging.verdict_text import explain, percent
from graphrag_evaluation.judging.verdicts import FAIR, Comparison
from graphrag_evaluation.pages.model import Duel, Matrix


def matrices(comparisons: Sequence[Comparison], conditions: Sequence[str]) -> list[Matrix]:
    """Return a matrix for each criterion; ``conditions`` say the order of rows and columns."""
    criteria = dict.fromkeys(comparison.criterion for comparison in comparisons)
    return [
        _matrix(
            name,
            [comparison for comparison in comparisons if comparison.criterion == name],
            conditions,
        )
        for name in criteria
    ]


def _matrix(criterion: str, comparisons: Sequence[Comparison], conditions: Sequence[str]) -> Matrix:
    duels: dict[tuple[str, str], Duel] = {}
    for comparison in comparisons:
        for name, rival in (pair := (comparison.condition_a, comparison.condition_b)), pair[::-1]:
            duels[name, rival] = _duel(comparison, name)
    names = [name for name in conditions if any(name in pair for pair in duels)]
    columns = _columns(comparisons, names)
    rows = [name for name in names if [name] != columns]
    return Matrix(
        criterion=criterion,
        columns=columns,
        rows={name: [duels.get((name, column)) for column in columns] for name in rows},
        verdicts=[explain(comparison) for comparison in comparisons],
        pairs=len(comparisons),
        biased=sum(comparison.is_biased for comparison in comparisons),
        biased_to_first=sum(
            comparison.is_biased and (comparison.first_chosen or 0) > FAIR
            for comparison in comparisons
        ),
        void=sum(is_void(comparison) for comparison in comparisons),
        won=sum(bool(comparison.winner) for comparison in comparisons),
        first_chosen=_first_chosen(comparisons),
    )


def is_void(comparison: Comparison) -> bool:
    """Whether a win rate says nothing: the judge is biased, and no winner is left without that."""
    return comparison.is_biased and not comparison.winner


def _columns(comparisons: Sequence[Comparison], names: Sequence[str]) -> list[str]:
    """Return all conditions, or that one which all others were compared with and no other."""
    common = set.intersection(
        *({comparison.condition_a, comparison.condition_b} for comparison in comparisons)
    )
    return [name for name in names if name in common] if len(common) == 1 else list(names)


def _duel(comparison: Comparison, name: str) -> Duel:
    rate = comparison.win_rate if name == comparison.condition_a else 1 - comparison.win_rate
    rival = comparison.condition_b if name == comparison.condition_a else comparison.condition_a
    text = f"{name} against {rival}: {percent(rate)}, corrected p = {comparison.p_corrected:.2g}"
    if comparison.first_chosen is not None:
        text += f"; first shown chosen in {percent(comparison.first_chosen)}"
    return Duel(
        rate=rate,
        said=text,
        is_won=comparison.winner == name,
        is_lost=comparison.winner == rival,
        is_biased=comparison.is_biased,
        is_void=is_void(comparison),
    )


def _first_chosen(comparisons: Sequence[Comparison]) -> float | None:
    """Return the share of verdicts, ties left out, for the answer shown first."""
    decided = [comparison.verdicts * (1 - comparison.ties) for comparison in comparisons]
    counts = [
        (comparison.first_chosen or 0.0) * n
        for comparison, n in zip(comparisons, decided, strict=True)
    ]
    return sum(counts) / sum(decided) if sum(decided) else None
