"""Qualities by which conditions are compared: scores against gold, or a judge's verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from graphrag_evaluation import results
from graphrag_evaluation.judging.verdicts import Comparison
from graphrag_evaluation.metrics.answers import USUAL
from graphrag_evaluation.metrics.computed import COMPUTED, names_of
from graphrag_evaluation.metrics.retrieval import RETRIEVAL
from graphrag_evaluation.pages.leading_condition import Lead, lead
from graphrag_evaluation.pages.model import Cell, Kind, ShownMeasure, Table

OVERALL = "overall"
OF_CLAIMS = "claim"

_WRITTEN_FIRST = ("accuracy", "f1", "exact_match")
_OF_ANSWERS = {*USUAL, *(name for metric in COMPUTED for name in names_of(metric))}
_PARTS = {name for metric in COMPUTED for name in names_of(metric)[:-1]}
_IN_BRIEF = {"precision", "recall", *_PARTS, *RETRIEVAL} - {"recall@5", "all_gold@5"}

_WON = """
WITH own AS (
    SELECT x.condition, x.question_id, a.question, md5(a.text) AS said
    FROM experiment_answers x JOIN answers a USING (answer_id) WHERE experiment = $experiment
), verdict AS (
    SELECT j.question, md5(f.text) AS first, md5(s.text) AS second,
           CASE j.winner WHEN 'first' THEN 1.0 WHEN 'tie' THEN 0.5 ELSE 0.0 END AS score
    FROM judgments j JOIN answers f ON f.answer_id = j.first_answer
    JOIN answers s ON s.answer_id = j.second_answer
    WHERE j.criterion = $criterion AND f.text <> s.text
), side AS (
    SELECT question, first AS said, second AS rival, 'first' AS shown, score FROM verdict
    UNION ALL SELECT question, second, first, 'second', 1 - score FROM verdict
), by_order AS (
    SELECT own.condition, own.question_id, other.condition AS rival, shown, avg(score) AS score
    FROM own JOIN side ON side.question = own.question AND side.said = own.said
    JOIN own other ON other.question_id = own.question_id AND other.said = side.rival
    GROUP BY ALL
)
SELECT condition, question_id, avg(score) AS value FROM by_order GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class Quality:
    """Quality of conditions by one measure: each ``cells``, and each question's ``values``."""

    measure: ShownMeasure
    values: pl.DataFrame
    cells: Mapping[str, Cell]
    lead: Lead


def scored(scores: pl.DataFrame, is_written: bool) -> list[Quality]:
    """Return qualities by gold, those that most conditions have first, then as tables show them.

    ``scores`` are those of :func:`results.question_scores`. What no model wrote is not judged as
    an answer, but by what it retrieved.
    """
    rows = scores.filter(~pl.col("metric").str.starts_with(OF_CLAIMS))
    if not is_written:
        rows = rows.filter(~pl.col("metric").is_in(list(_OF_ANSWERS)))
    qualities = _qualities(rows)
    first = _WRITTEN_FIRST if is_written else ()
    order = [*first, *results.metric_order([quality.measure.name for quality in qualities])]
    return sorted(
        qualities,
        key=lambda quality: (
            quality.measure.name in _IN_BRIEF,
            -len(quality.cells),
            order.index(quality.measure.name),
        ),
    )


def is_in_brief(quality: Quality) -> bool:
    """Whether a measure says little beside others."""
    return quality.measure.name in _IN_BRIEF


def claims(scores: pl.DataFrame) -> list[Quality]:
    """Return the numbers of claims and of their clusters, where they were counted."""
    qualities = _qualities(scores.filter(pl.col("metric").str.starts_with(OF_CLAIMS)))
    return sorted(
        qualities, key=lambda quality: (quality.measure.name != "claims", quality.measure.name)
    )


def judged(
    con: duckdb.DuckDBPyConnection, experiment: str, comparisons: Sequence[Comparison]
) -> Quality | None:
    """Return how often each condition wins, over all it was compared with.

    By the criterion ``overall``, or the first there is. None without comparisons.
    """
    criteria = dict.fromkeys(comparison.criterion for comparison in comparisons)
    if not criteria:
        return None
    criterion = OVERALL if OVERALL in criteria else next(iter(criteria))
    parameters = {"experiment": experiment, "criterion": criterion}
    values = con.execute(_WON, parameters).pl()
    of_criterion = [comparison for comparison in comparisons if comparison.criterion == criterion]
    means = _mean_win_rates(of_criterion)
    best = max(means, key=means.__getitem__)
    behind = {
        ({comparison.condition_a, comparison.condition_b} - {best}).pop()
        for comparison in of_criterion
        if comparison.winner == best
    }
    equal = {name for name in means if means[name] == means[best]}
    lead_of_judge = Lead(best, frozenset(equal), frozenset(behind), frozenset(means))
    measure = ShownMeasure("win_rate", f"mean win rate ({criterion})", "share")
    return Quality(measure, values, _cells(means, _intervals(values), lead_of_judge), lead_of_judge)


def table(qualities: Sequence[Quality], conditions: Sequence[str]) -> Table:
    """Return conditions by qualities; nothing stands where a condition has no value."""
    rows = {name: [quality.cells.get(name, Cell()) for quality in qualities] for name in conditions}
    return Table([quality.measure for quality in qualities], rows)


def quality_of(
    measure: ShownMeasure, values: pl.DataFrame, middle: Mapping[str, float], *, has_interval: bool
) -> Quality:
    """Return a quality of which the mean or median of each condition is known."""
    its_lead = lead(values, middle, is_less_better=measure.is_less_better)
    limits = _intervals(values) if has_interval else {}
    return Quality(measure, values, _cells(middle, limits, its_lead), its_lead)


def _qualities(scores: pl.DataFrame) -> list[Quality]:
    result = []
    for (metric,), part in scores.group_by("metric", maintain_order=True):
        values = part.select("condition", "question_id", "value")
        means = dict(values.group_by("condition", maintain_order=True).agg(_MEAN).iter_rows())
        result.append(quality_of(_measure(str(metric), part), values, means, has_interval=True))
    return result


_MEAN = pl.col("value").mean()


def _measure(metric: str, part: pl.DataFrame) -> ShownMeasure:
    is_counted = metric.startswith(OF_CLAIMS) or part["value"].max() > 1  # pyright: ignore
    kind: Kind = "number" if is_counted else "share"
    return ShownMeasure(metric, metric.replace("_", " "), kind)


def _mean_win_rates(comparisons: Sequence[Comparison]) -> dict[str, float]:
    rates: dict[str, list[float]] = {}
    for comparison in comparisons:
        rates.setdefault(comparison.condition_a, []).append(comparison.win_rate)
        rates.setdefault(comparison.condition_b, []).append(1 - comparison.win_rate)
    return {name: sum(won) / len(won) for name, won in rates.items()}


def _intervals(values: pl.DataFrame) -> dict[str, tuple[float, float]]:
    with_metric = values.with_columns(metric=pl.lit(""))
    means = results.means(with_metric)
    return {row["condition"]: (row["low"], row["high"]) for row in means.iter_rows(named=True)}


def _cells(
    middle: Mapping[str, float], limits: Mapping[str, tuple[float, float]], its_lead: Lead
) -> dict[str, Cell]:
    return {
        name: Cell(
            value,
            *limits.get(name, (None, None)),
            is_best=name in its_lead.equal and its_lead.equal != its_lead.conditions,
            is_sure=name == its_lead.best and its_lead.is_sure,
        )
        for name, value in middle.items()
    }
