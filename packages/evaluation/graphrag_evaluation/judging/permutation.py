"""Permutation test over whole questions: is one condition better than another beyond chance?

All that is known of one question hangs together, so its scores change sides together: the test is a
permutation test whose clusters are questions. Nothing is assumed of how scores are distributed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from graphrag_evaluation.judging.verdicts import holm

_EXACT: Final = 12
"""Up to so many questions that differ, every permutation is tried."""
_DRAWS: Final = 10_000
_SEED: Final = 29
_EQUAL = 1e-12


@dataclass(frozen=True)
class Permuted:
    """The mean difference of two conditions over the questions that both have a score of.

    It is that of ``condition_a`` less that of ``condition_b``; ``p`` is two-sided, ``p_corrected``
    by Holm-Bonferroni over all pairs.
    """

    metric: str
    condition_a: str
    condition_b: str
    questions: int
    difference: float
    p: float
    p_corrected: float


def permutation_tests(scores: pl.DataFrame, metric: str) -> list[Permuted]:
    """Compare each pair of conditions by a metric; columns condition, question_id, metric, value.

    A question's score is the mean of its values.
    """
    of_metric = scores.filter(metric=metric)
    names = of_metric["condition"].unique(maintain_order=True).to_list()
    means = of_metric.group_by("condition", "question_id").agg(pl.col("value").mean())
    tests = []
    for a, b in combinations(names, 2):
        paired = means.filter(condition=a).join(means.filter(condition=b), on="question_id")
        if paired.height:
            differences = (paired["value"] - paired["value_right"]).to_numpy()
            p = permutation_p(differences)
            mean = float(differences.mean())
            tests.append(Permuted(metric, a, b, paired.height, mean, p, p))
    corrected = holm([test.p for test in tests]) if tests else []
    return [replace(test, p_corrected=p) for test, p in zip(tests, corrected, strict=True)]


def permutation_p(differences: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the two-sided p value of a mean of differences, a difference for each cluster.

    Exact for few clusters; else of 10,000 random permutations, the one that was seen among them.
    """
    nonzero = np.asarray(differences, dtype=np.float64)
    nonzero = nonzero[np.abs(nonzero) > _EQUAL]
    if not nonzero.size:
        return 1.0
    if len(nonzero) <= _EXACT:
        bits = np.arange(2 ** len(nonzero))[:, None] >> np.arange(len(nonzero)) & 1
        sums = np.abs((1 - 2 * bits) @ nonzero)
        return float((sums >= abs(nonzero.sum()) - _EQUAL).mean())
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), size=(_DRAWS, len(nonzero)))
    as_far = (np.abs(signs @ nonzero) >= abs(nonzero.sum()) - _EQUAL).sum()
    return float((as_far + 1) / (_DRAWS + 1))
