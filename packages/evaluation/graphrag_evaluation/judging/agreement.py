"""Agreement of claims with the judge: how often both name the same winner of two answers.

GraphRAG (Edge et al., 2024, section 5): the verdicts on two answers become one label by majority;
where there is none, or it is a tie, the comparison says nothing. Of the others the paper counts
those in which the answer with more claims (comprehensiveness), or more clusters of claims
(diversity), is the one that the majority names: 78 %, and 69 to 70 %. Here a comparison has
verdicts in both orders, and a majority is more than half of them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import polars as pl

from graphrag_evaluation.judging.claims import CLAIMS, CLUSTERS
from graphrag_evaluation.judging.differential import SUFFIX
from graphrag_evaluation.judging.verdicts import Verdict
from graphrag_pipeline.store.index_store import insert

_METRICS: Final = {
    "comprehensiveness": (CLAIMS,),
    "diversity": (CLUSTERS.partition("{")[0],),
}
"""How the names of the metrics begin that measure what a criterion asks for."""
_SCORES = """
SELECT condition, question_id, metric, value FROM experiment_scores
WHERE experiment = $experiment AND starts_with(metric, 'claim')
"""
_DETAILS = "SELECT * EXCLUDE (experiment) FROM agreements WHERE experiment = ? ORDER BY ALL"
_SUMMARY = """
SELECT criterion, metric, count(*) AS comparisons, count(*) FILTER (majority <> '') AS decided,
       count(*) FILTER (majority = condition_a AND value_a > value_b
                        OR majority = condition_b AND value_b > value_a) AS agreeing,
       count(*) FILTER (majority = condition_a AND value_a < value_b
                        OR majority = condition_b AND value_b < value_a) AS opposing
FROM agreements WHERE experiment = ? GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class Agreement:
    """Share of pairs for which a metric of claims names the winner of a criterion.

    ``comparisons`` are pairs of answers to a question; ``decided`` those that the judge's majority
    decides, ``agreeing`` those of them in which the claims name the same answer, ``opposing`` the
    other. Equal numbers of claims name none.
    """

    criterion: str
    metric: str
    comparisons: int
    decided: int
    agreeing: int
    opposing: int

    @property
    def even(self) -> int:
        """Decided comparisons of answers with equal numbers of claims."""
        return self.decided - self.agreeing - self.opposing

    @property
    def share(self) -> float | None:
        """The share of the decided comparisons that agree; None where none is decided."""
        return self.agreeing / self.decided if self.decided else None


def majorities(verdicts: Sequence[Verdict]) -> pl.DataFrame:
    """Return (criterion, question_id, condition_a, condition_b, majority), a row a comparison.

    The conditions are in the order of their names; ``majority`` is empty where no condition
    has more than half of all verdicts.
    """
    rows = [
        (v.criterion, v.question, *sorted((v.first, v.second)),
         "" if v.winner == "tie" else v.first if v.winner == "first" else v.second)
        for v in verdicts
    ]  # fmt: skip
    names = ("criterion", "question_id", "condition_a", "condition_b", "winner")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    shares = [
        ((pl.col("winner") == pl.col(side)).mean() > 0.5).alias(f"is_{side}")
        for side in ("condition_a", "condition_b")
    ]
    return (
        frame.group_by(*names[:4], maintain_order=True)
        .agg(*shares)
        .with_columns(
            majority=pl.when("is_condition_a")
            .then("condition_a")
            .when("is_condition_b")
            .then("condition_b")
            .otherwise(pl.lit(""))
        )
        .drop("is_condition_a", "is_condition_b")
    )


def keep_agreements(
    con: duckdb.DuckDBPyConnection, experiment: str, verdicts: Sequence[Verdict]
) -> None:
    """Make these verdicts, with the claims there are, the agreements of an experiment."""
    con.execute("DELETE FROM agreements WHERE experiment = ?", [experiment])
    scores = con.execute(_SCORES, {"experiment": experiment}).pl()
    labels = majorities(verdicts)
    tables = [
        _beside(labels.filter(pl.col("criterion").str.strip_suffix(SUFFIX) == criterion), part)
        for criterion, beginnings in _METRICS.items()
        for metric, part in scores.partition_by("metric", as_dict=True).items()
        if any(_is_of(str(metric[0]), beginning) for beginning in beginnings)
    ]
    if tables:
        rows = pl.concat(tables).with_columns(experiment=pl.lit(experiment))
        insert(con, "agreements", rows)


def agreements(con: duckdb.DuckDBPyConnection, experiment: str) -> list[Agreement]:
    """Return how far judge and claims agree in an experiment; none without both."""
    return [Agreement(*row) for row in con.execute(_SUMMARY, [experiment]).fetchall()]


def agreement_details(con: duckdb.DuckDBPyConnection, experiment: str) -> pl.DataFrame:
    """Return each comparison with its majority and its numbers of claims."""
    return con.execute(_DETAILS, [experiment]).pl()


def _is_of(metric: str, beginning: str) -> bool:
    return metric.startswith(beginning) if beginning.endswith("@") else metric == beginning


def _beside(labels: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    for side in ("a", "b"):
        labels = labels.join(
            scores.select("question_id", "metric", condition="condition", value="value").rename(
                {"condition": f"condition_{side}", "value": f"value_{side}"}
            ),
            on=["question_id", f"condition_{side}", *(["metric"] if side == "b" else [])],
        )
    return labels.select(
        "criterion", "metric", "question_id", "condition_a", "condition_b", "majority", "value_a",
        "value_b",
    )  # fmt: skip
