"""Results of experiments: a line for each condition, and differences that are more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl

from graphrag_evaluation.judging.verdicts import holm, signed_rank
from graphrag_pipeline.core.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

_DRAWS = 2000
_SEED = 86
_SURE = (2.5, 97.5)

SHOWN_FIRST = ("recall@5", "all_gold@5", "answer_in_context", "accuracy", "f1", "exact_match")
"""Metrics in the order in which a table shows them; others follow by name."""

_COSTS = """
SELECT condition, c.method, any_value(position) AS position, count(*) AS answers,
       median(context_tokens) AS context_tokens,
       avg(prompt_tokens + completion_tokens) AS model_tokens, sum(cost) AS cost,
       avg(model_calls) AS model_calls, median(retrieve_ms) AS retrieve_ms,
       median(total_ms) AS total_ms,
       sum(citations_resolved) / nullif(sum(citations), 0) AS citation_validity,
       bool_or(a.model <> '') AS written, any_value(c.release) AS release,
       any_value(c.parameters) AS parameters
FROM conditions c JOIN experiment_answers x USING (experiment, condition)
JOIN answers a USING (answer_id)
WHERE experiment = ? GROUP BY condition, c.method ORDER BY position
"""
_SCORES = """
SELECT condition, question_id, metric, value FROM experiment_scores
WHERE experiment = ? ORDER BY ALL
"""
_MODELS = """
SELECT model, list(DISTINCT metric ORDER BY metric) FROM experiment_scores
WHERE experiment = ? AND model <> '' GROUP BY model ORDER BY model
"""
_EXPERIMENTS = """
SELECT e.experiment, e.question_set, started_at, finished_at,
       (SELECT count(*) FROM conditions c WHERE c.experiment = e.experiment) AS conditions,
       (SELECT count(DISTINCT question_id) FROM experiment_answers x
        WHERE x.experiment = e.experiment) AS questions
FROM experiments e ORDER BY started_at DESC, e.experiment
"""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Difference of one metric between two conditions on the questions that both answered.

    ``difference`` is right minus left, between ``low`` and ``high`` with 95 % certainty (bootstrap
    over questions); ``p_corrected`` is of the signed-rank test, Holm-Bonferroni over all metrics
    compared together.
    """

    condition: str
    metric: str
    questions: int
    left: float
    right: float
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float

    @property
    def is_sure(self) -> bool:
        """Whether chance is an unlikely reason."""
        return self.p_corrected < 0.05


def experiments(con: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """Return one row for each experiment, the latest first."""
    return con.execute(_EXPERIMENTS).pl()


def named_experiment(con: duckdb.DuckDBPyConnection, name: str | None) -> str:
    """Return an experiment by name, the latest for None. Raises InputError if there is none."""
    names = experiments(con)["experiment"].to_list()
    if not names:
        raise InputError("there is no experiment yet: graphrag-pipeline eval run")
    if name is not None and name not in names:
        raise InputError(f"there is no experiment {name!r}: there are {', '.join(names)}")
    return name or names[0]


def costs(con: duckdb.DuckDBPyConnection, experiment: str) -> pl.DataFrame:
    """Return what each condition took, in their order: medians of tokens and milliseconds."""
    return con.execute(_COSTS, [experiment]).pl()


def question_scores(con: duckdb.DuckDBPyConnection, experiment: str) -> pl.DataFrame:
    """Return scores by condition, question_id and metric."""
    return con.execute(_SCORES, [experiment]).pl()


def marked_by(con: duckdb.DuckDBPyConnection, experiment: str) -> dict[str, list[str]]:
    """Return the metrics that models mark an experiment's answers by, by model."""
    return dict(con.execute(_MODELS, [experiment]).fetchall())


def means(scores: pl.DataFrame) -> pl.DataFrame:
    """Return the mean of each metric for each condition, with its 95 % bootstrap interval.

    ``scores`` are those of :func:`question_scores`. Columns: condition, metric, questions, mean,
    low, high.
    """
    rows = [
        (*key, len(part), float(values.mean()), *interval(values))
        for key, part in scores.group_by("condition", "metric", maintain_order=True)
        if len(values := part["value"].to_numpy())
    ]
    names = ("condition", "metric", "questions", "mean", "low", "high")
    return pl.DataFrame(rows, schema=names, orient="row")


def interval(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean; it is the mean itself for one value."""
    draws = np.random.default_rng(_SEED).integers(0, len(values), (_DRAWS, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), _SURE)
    return float(low), float(high)


def metric_order(metrics: Sequence[str]) -> list[str]:
    """Return metrics as a table shows them."""
    first = [name for name in SHOWN_FIRST if name in metrics]
    return [*first, *sorted(set(metrics) - set(first))]


def compare_results(con: duckdb.DuckDBPyConnection, left: str, right: str) -> list[Difference]:
    """Compare two experiments condition by condition, or two conditions.

    Each side is the name of an experiment, or ``experiment/condition``; where only one names a
    condition, it is that of the other's, too. Raises InputError where
    there is none of the name, or where both have nothing in common.
    """
    if ("/" in left) != ("/" in right):
        name = (left if "/" in left else right).partition("/")[2]
        left, right = (side if "/" in side else f"{side}/{name}" for side in (left, right))
    first, second = _side(con, left), _side(con, right)
    if "/" in left:
        label = f"from {left} to {right}"
        first, second = (part.with_columns(condition=pl.lit(label)) for part in (first, second))
    paired = first.join(second, ["condition", "question_id", "metric"], suffix="_right")
    differences = list(_differences(paired))
    if not differences:
        raise InputError(f"{left} and {right} have no condition, question and metric in common")
    return _corrected(differences)


def _side(con: duckdb.DuckDBPyConnection, name: str) -> pl.DataFrame:
    experiment, _, condition = name.partition("/")
    scores = question_scores(con, named_experiment(con, experiment))
    if not condition:
        return scores
    if (selection := scores.filter(condition=condition)).is_empty():
        conditions = ", ".join(scores["condition"].unique(maintain_order=True))
        raise InputError(f"{experiment} has no scores of a condition {condition!r}: {conditions}")
    return selection


def _differences(paired: pl.DataFrame) -> Iterator[Difference]:
    for key, part in paired.group_by("condition", "metric", maintain_order=True):
        before, after = part["value"].to_numpy(), part["value_right"].to_numpy()
        _, p = signed_rank(after - before)
        condition, metric = map(str, key)
        low, high = interval(after - before)
        mean = float((after - before).mean())
        yield Difference(
            condition=condition,
            metric=metric,
            questions=len(part),
            left=float(before.mean()),
            right=float(after.mean()),
            difference=mean,
            low=low,
            high=high,
            p=p,
            p_corrected=p,
        )


def _corrected(differences: Sequence[Difference]) -> list[Difference]:
    from dataclasses import replace

    corrected = holm([difference.p for difference in differences])
    return [
        replace(difference, p_corrected=p)
        for difference, p in zip(differences, corrected, strict=True)
    ]
