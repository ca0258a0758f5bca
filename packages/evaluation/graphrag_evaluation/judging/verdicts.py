"""Verdicts of a judge on pairs of answers: win rates, what order did to them, and who has won.

GraphRAG's analysis (Edge et al., 2024, appendix G): on each question a condition has 100 for a win,
50 for a tie and 0 for a loss, averaged over replicates; the scores of two conditions are compared
by Wilcoxon's signed-rank test, Holm-Bonferroni over the pairs of one criterion. Here each question
is judged in both orders and the two weigh the same, so that a liking for the answer shown first
cancels out, and no winner is named that only one order knows ("RAG vs. GraphRAG", Han et al., 2025,
5.3: with the order the verdict turns round).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

SIGNIFICANT = 0.05
FAIR = 0.5
_RESAMPLES = 5000
_FEWEST_TESTED = 3
_FEW = 13
"""Up to so many differences SciPy's p value is exact also where some are equal."""
_TAILS = (0.025, 0.975)
_PAIR = ("criterion", "a", "b")

Floats = NDArray[np.float64]
Won = Literal["first", "second", "tie"]


@dataclass(frozen=True)
class Verdict:
    """One verdict on two conditions' answers to a question, the ``first`` of them shown first."""

    question: str
    criterion: str
    first: str
    second: str
    winner: Won
    replicate: int = 0


@dataclass(frozen=True)
class Comparison:
    """Two conditions by one criterion, over the questions judged in both orders.

    Rates and shares are from 0 to 1, intervals of 95 %, by bootstrap over questions. The win rate
    is ``condition_a``'s: of both orders together, when shown first, when shown second.
    ``first_chosen`` is the share of verdicts, ties left out, for the answer shown first (None: all
    are ties). ``consistent`` is the share of questions on which both orders say the same,
    ``agreed`` the number of those that have a winner, ``agreed_wins`` of those for condition_a.

    ``z`` (0 or less whoever is better, as the paper prints it; None where nothing differs) and
    ``p`` are Wilcoxon's, on the balanced scores of the questions. The others are what asking less
    carefully would give: ``p_agreed`` by a sign test on the ``agreed`` questions, ``p_naive`` if
    each verdict were an observation of its own, ``p_first`` and ``p_second`` from one order only.
    ``p_normal`` is Shapiro-Wilk's, of the scores of the questions being normally distributed, for
    which a test by ranks would not be needed: None for fewer than three, or where all are equal.
    """

    criterion: str
    condition_a: str
    condition_b: str
    questions: int
    verdicts: int
    win_rate: float
    win_rate_low: float
    win_rate_high: float
    win_rate_first: float
    win_rate_second: float
    ties: float
    first_chosen: float | None
    first_chosen_low: float | None
    first_chosen_high: float | None
    consistent: float
    agreed: int
    agreed_wins: int
    z: float | None
    p: float
    p_corrected: float
    p_agreed: float
    p_naive: float
    p_first: float
    p_second: float
    p_normal: float | None = None

    @property
    def is_biased(self) -> bool:
        """Whether which answer was shown first decided verdicts: the interval leaves out 0.5."""
        if self.first_chosen_low is None or self.first_chosen_high is None:
            return False
        return not self.first_chosen_low <= FAIR <= self.first_chosen_high

    @property
    def leader(self) -> str:
        """The condition with the higher win rate, significant or not; empty if they are even."""
        if self.win_rate == FAIR:
            return ""
        return self.condition_a if self.win_rate > FAIR else self.condition_b

    @property
    def agreed_leader(self) -> str:
        """The condition that has more of the questions on which both orders agree."""
        if 2 * self.agreed_wins == self.agreed:
            return ""
        return self.condition_a if 2 * self.agreed_wins > self.agreed else self.condition_b

    @property
    def is_borne_out(self) -> bool:
        """Whether those questions alone, on which order decided nothing, show the same."""
        return self.p_agreed < SIGNIFICANT and self.agreed_leader == self.leader

    @property
    def winner(self) -> str:
        """The better condition, empty where there is none.

        It takes a corrected p below 0.05, and the same from the questions on which both orders
        agree.
        """
        return self.leader if self.p_corrected < SIGNIFICANT and self.is_borne_out else ""


def compare_verdicts(
    verdicts: Sequence[Verdict], conditions: Sequence[str] = (), *, seed: int = 0
) -> list[Comparison]:
    """Compare all pairs of conditions by every criterion that there are verdicts on.

    Of a pair, that which comes first in ``conditions`` (else in the verdicts) is condition_a. A
    question that a pair was judged on in one order only does not count. ``seed`` is the
    bootstrap's.
    """
    if not verdicts:
        return []
    columns = ("question", "criterion", "first", "second", "winner")
    frame = pl.DataFrame(
        {name: [getattr(verdict, name) for verdict in verdicts] for name in columns}
    )
    conditions_judged = frame.select(pl.concat_list("first", "second").explode()).to_series()
    questions = _by_question(frame, list(dict.fromkeys([*conditions, *conditions_judged])))
    parts = questions.partition_by(_PAIR, maintain_order=True, as_dict=True)
    comparisons = [
        _compare(criterion, a, b, part, seed) for (criterion, a, b), part in parts.items()
    ]
    return _corrected(comparisons)


def win_rate_matrix(
    comparisons: Iterable[Comparison], criterion: str, conditions: Sequence[str]
) -> list[list[float | None]]:
    """Return the win rates of each condition (row) over each (column), as in GraphRAG's Figure 2.

    A condition against itself has 0.5; None stands where two were not compared.
    """
    rates = {(name, name): FAIR for name in conditions}
    for comparison in comparisons:
        if comparison.criterion == criterion:
            rates[comparison.condition_a, comparison.condition_b] = comparison.win_rate
            rates[comparison.condition_b, comparison.condition_a] = 1 - comparison.win_rate
    return [[rates.get((row, column)) for column in conditions] for row in conditions]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number by Holm's step-down method (1979)."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected.tolist()


def signed_rank(differences: Floats) -> tuple[float | None, float]:
    """Return Z and the two-sided p value of Wilcoxon's signed-rank test.

    Differences of zero are left out (``zero_method="wilcox"``, as Wilcoxon did): they speak for
    neither side. Without any other Z is None and p is 1. p is exact for few differences (up to 50,
    or 13 where some are equal), else by the normal approximation without continuity correction.
    """
    from scipy.stats import wilcoxon

    # Means of replicates differ in their last digit where they should be equal, or zero.
    rounded = np.round(differences, 9)
    nonzero = rounded[rounded != 0]
    if not nonzero.size:
        return None, 1.0
    normal: Any = wilcoxon(nonzero, method="asymptotic")
    sizes = np.abs(nonzero)
    if len(nonzero) <= _FEW and len(np.unique(sizes)) < len(sizes):
        return float(normal.zstatistic), _exact_p(nonzero)
    best: Any = wilcoxon(nonzero, method="auto")
    return float(normal.zstatistic), float(best.pvalue)


def normality(scores: Floats) -> float | None:
    """Return the p value of Shapiro and Wilk's test that scores are normally distributed.

    None for fewer than three, or where all are equal. It is SciPy's, accurate up to 5,000 scores.
    """
    from scipy.stats import shapiro

    if len(scores) < _FEWEST_TESTED or np.ptp(scores) == 0:
        return None
    return float(shapiro(scores).pvalue)


def _exact_p(differences: Floats) -> float:
    """Return what SciPy's permutation test gives for few differences, some of them equal.

    It tries every sign, in seconds; here the sums of ranks are counted, twice each to be whole.
    """
    from scipy.stats import rankdata

    ranks = np.rint(2 * rankdata(np.abs(differences))).astype(np.int64)
    ways = np.zeros(ranks.sum() + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] += ways[:-rank].copy()
    rank_sum = ranks[differences > 0].sum()
    tail = min(ways[: rank_sum + 1].sum(), ways[rank_sum:].sum())
    return float(min(1.0, 2 * tail / ways.sum()))


def _by_question(frame: pl.DataFrame, conditions: Sequence[str]) -> pl.DataFrame:
    """Return a row for each pair, criterion and question: condition_a's scores in both orders."""
    place = {name: number for number, name in enumerate(conditions)}
    places = {name: pl.col(name).replace_strict(place) for name in ("first", "second")}
    ahead = places["first"] < places["second"]
    is_tie, is_first = pl.col("winner") == "tie", pl.col("winner") == "first"
    scores = frame.select(
        "criterion",
        "question",
        ahead=ahead,
        a=pl.when(ahead).then("first").otherwise("second"),
        b=pl.when(ahead).then("second").otherwise("first"),
        score=pl.when(is_tie).then(0.5).otherwise((is_first == ahead).cast(pl.Float64)),
        tie=is_tie,
        first_won=is_first,
    )
    by_order = scores.group_by(*_PAIR, "question", "ahead", maintain_order=True).agg(
        pl.col("score").mean(),
        verdicts=pl.len(),
        wins=(pl.col("score") == 1).sum(),
        decided=(~pl.col("tie")).sum(),
        firsts=pl.col("first_won").sum(),
    )
    in_both_orders = by_order.filter("ahead").join(
        by_order.filter(~pl.col("ahead")), on=[*_PAIR, "question"], maintain_order="left"
    )
    counts = [pl.col(name) + pl.col(f"{name}_right") for name in _COUNTS]
    order = [pl.col("a").replace_strict(place), pl.col("b").replace_strict(place)]
    return in_both_orders.select(
        *_PAIR, "question", *counts, ahead="score", behind="score_right"
    ).sort(*order, maintain_order=True)


_COUNTS = ("verdicts", "decided", "wins", "firsts")


def _compare(criterion: str, a: str, b: str, part: pl.DataFrame, seed: int) -> Comparison:
    sides = [np.sign(np.round(part[name].to_numpy() - FAIR, 9)) for name in ("ahead", "behind")]
    is_same_side = sides[0] == sides[1]
    agreed, agreed_wins = (
        int((is_same_side & (sides[0] != 0)).sum()),
        int((is_same_side & (sides[0] > 0)).sum()),
    )
    return Comparison(
        criterion=criterion,
        condition_a=a,
        condition_b=b,
        questions=len(part),
        consistent=float(is_same_side.mean()),
        agreed=agreed,
        agreed_wins=agreed_wins,
        p_agreed=_sign_test(agreed_wins, agreed),
        **_rates(part, seed),
        **_tests(part),
    )


def _rates(part: pl.DataFrame, seed: int) -> dict[str, Any]:
    ahead, behind, verdicts, decided, firsts = (
        part[name].to_numpy().astype(np.float64)
        for name in ("ahead", "behind", "verdicts", "decided", "firsts")
    )
    score = (ahead + behind) / 2
    draws = np.random.default_rng(seed).integers(0, len(part), (_RESAMPLES, len(part)))
    win_low, win_high = _interval(score, np.ones_like(score), draws)
    first, first_low, first_high = None, None, None
    if decided.any():
        first = float(firsts.sum() / decided.sum())
        first_low, first_high = _interval(firsts, decided, draws)
    return {
        "verdicts": int(verdicts.sum()),
        "win_rate": round(float(score.mean()), 9),
        "win_rate_low": win_low,
        "win_rate_high": win_high,
        "win_rate_first": float(ahead.mean()),
        "win_rate_second": float(behind.mean()),
        "ties": float(1 - decided.sum() / verdicts.sum()),
        "first_chosen": first,
        "first_chosen_low": first_low,
        "first_chosen_high": first_high,
    }


def _tests(part: pl.DataFrame) -> dict[str, Any]:
    ahead, behind = part["ahead"].to_numpy(), part["behind"].to_numpy()
    wins, decided = (part[name].to_numpy() for name in ("wins", "decided"))
    z, p = signed_rank(ahead + behind - 1)
    return {
        "z": z,
        "p": p,
        "p_corrected": p,
        "p_naive": _sign_test(int(wins.sum()), int(decided.sum())),
        "p_first": signed_rank(2 * ahead - 1)[1],
        "p_second": signed_rank(2 * behind - 1)[1],
        "p_normal": normality((ahead + behind) / 2),
    }


def _interval(parts: Floats, wholes: Floats, draws: NDArray[np.int64]) -> tuple[float, float]:
    """Return the percentile interval of the sum of parts over that of wholes.

    ``draws`` are the questions drawn in each resample: (resamples, questions).
    """
    of = wholes[draws].sum(axis=1)
    shares = parts[draws].sum(axis=1)[of > 0] / of[of > 0]
    low, high = np.quantile(shares, _TAILS).tolist()
    return low, high


def _sign_test(wins: int, decided: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(wins, decided).pvalue) if decided else 1.0


def _corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons by criterion, each p value corrected over the pairs of its own."""
    criteria = dict.fromkeys(comparison.criterion for comparison in comparisons)
    families = [
        [comparison for comparison in comparisons if comparison.criterion == name]
        for name in criteria
    ]
    return [
        replace(comparison, p_corrected=p)
        for family in families
        for comparison, p in zip(family, holm([comparison.p for comparison in family]), strict=True)
    ]
