"""The leading condition by a measure, and the others over which its lead is more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from graphrag_evaluation.judging.verdicts import SIGNIFICANT, holm, signed_rank


@dataclass(frozen=True)
class Lead:
    """The best condition, those that equal it (itself among them), and those surely behind it."""

    best: str
    equal: frozenset[str]
    behind: frozenset[str]
    conditions: frozenset[str]

    @property
    def is_sure(self) -> bool:
        """Whether the best is better than every other beyond chance."""
        return len(self.conditions) > 1 and self.behind == self.conditions - {self.best}


def lead(
    values: pl.DataFrame, middle: Mapping[str, float], *, is_less_better: bool = False
) -> Lead:
    """Compare the condition with the best ``middle`` with each other, question by question.

    ``values`` has condition, question_id and value, a pair once; ``middle`` is the mean or median
    of each condition. Behind is whom Wilcoxon's signed-rank test puts there, Holm-Bonferroni over
    the comparisons with the best.
    """
    sign = -1 if is_less_better else 1
    best = max(middle, key=lambda name: sign * middle[name])
    rivals = [name for name in middle if name != best]
    own = {name: values.filter(condition=name) for name in middle}
    p_values = [_p(own[best], own[rival]) for rival in rivals]
    behind = {
        name
        for name, p in zip(rivals, holm(p_values), strict=True)
        if p < SIGNIFICANT and sign * (middle[best] - middle[name]) > 0
    }
    equal = {name for name in middle if middle[name] == middle[best]}
    return Lead(best, frozenset(equal), frozenset(behind), frozenset(middle))


def _p(first: pl.DataFrame, second: pl.DataFrame) -> float:
    paired = first.join(second, "question_id")
    return signed_rank((paired["value"] - paired["value_right"]).to_numpy())[1]
