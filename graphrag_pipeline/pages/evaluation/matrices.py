"""Win rates as matrices, as in GraphRAG's Figure 2, with what the order of answers did to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import duckdb

from graphrag_pipeline.evaluation.verdict_text import explain, percent
from graphrag_pipeline.evaluation.verdicts import FAIR, Comparison
from graphrag_pipeline.pages.evaluation.model import Duel, Matrix

_NAMES = [field.name for field in fields(Comparison)]
_COMPARISONS = f"""
SELECT {", ".join(_NAMES)} FROM comparisons WHERE experiment = ? ORDER BY rowid
"""


def read_comparisons(con: duckdb.DuckDBPyConnection, experiment: str) -> list[Comparison]:
    """Return the comparisons of an experiment, as they were written."""
    return [Comparison(*row) for row in con.execute(_COMPARISONS, [experiment]).fetchall()]


def matrices(comparisons: Sequence[Comparison], conditions: Sequence[str]) -> list[Matrix]:
    """Return a matrix for each criterion; ``conditions`` say the order of rows and columns."""
    criteria = dict.fromkeys(one.criterion for one in comparisons)
    return [
        _matrix(name, [one for one in comparisons if one.criterion == name], conditions)
        for name in criteria
    ]


def _matrix(criterion: str, comparisons: Sequence[Comparison], conditions: Sequence[str]) -> Matrix:
    duels: dict[tuple[str, str], Duel] = {}
    for one in comparisons:
        for name, other in (pair := (one.condition_a, one.condition_b)), pair[::-1]:
            duels[name, other] = _duel(one, name)
    names = [name for name in conditions if any(name in pair for pair in duels)]
    columns = _columns(comparisons, names)
    rows = [name for name in names if [name] != columns]
    return Matrix(
        criterion=criterion,
        columns=columns,
        rows={name: [duels.get((name, column)) for column in columns] for name in rows},
        verdicts=[explain(one) for one in comparisons],
        pairs=len(comparisons),
        biased=sum(one.is_biased for one in comparisons),
        biased_to_first=sum(
            one.is_biased and (one.first_chosen or 0) > FAIR for one in comparisons
        ),
        void=sum(is_void(one) for one in comparisons),
        won=sum(bool(one.winner) for one in comparisons),
        first_chosen=_first_chosen(comparisons),
    )


def is_void(one: Comparison) -> bool:
    """Whether a win rate says nothing: the judge is biased, and no winner is left without that."""
    return one.is_biased and not one.winner


def _columns(comparisons: Sequence[Comparison], names: Sequence[str]) -> list[str]:
    """Return all conditions, or that one which all others were compared with and no other."""
    common = set.intersection(*({one.condition_a, one.condition_b} for one in comparisons))
    return [name for name in names if name in common] if len(common) == 1 else list(names)


def _duel(one: Comparison, name: str) -> Duel:
    rate = one.win_rate if name == one.condition_a else 1 - one.win_rate
    other = one.condition_b if name == one.condition_a else one.condition_a
    said = f"{name} against {other}: {percent(rate)}, corrected p = {one.p_corrected:.2g}"
    if one.first_chosen is not None:
        said += f"; first shown chosen in {percent(one.first_chosen)}"
    return Duel(rate, said, one.winner == name, one.winner == other, one.is_biased, is_void(one))


def _first_chosen(comparisons: Sequence[Comparison]) -> float | None:
    """Return the share of verdicts, ties left out, for the answer shown first."""
    decided = [one.verdicts * (1 - one.ties) for one in comparisons]
    chosen = [(one.first_chosen or 0.0) * n for one, n in zip(comparisons, decided, strict=True)]
    return sum(chosen) / sum(decided) if sum(decided) else None
