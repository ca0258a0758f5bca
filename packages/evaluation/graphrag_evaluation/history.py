"""Means of an experiment's metrics, run by run: what became worse since the run before."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

_RECORD = """
INSERT INTO metric_history
SELECT experiment, condition, metric, any_value(release), count(*), avg(value), now()
FROM experiment_scores JOIN conditions USING (experiment, condition)
WHERE experiment = ? GROUP BY ALL
"""
_DROPS = """
WITH runs AS (
    SELECT *, measured_at = max(measured_at) OVER () AS is_latest,
           lag(mean) OVER earlier AS before, lag(release) OVER earlier AS before_release
    FROM metric_history WHERE experiment = $experiment
    WINDOW earlier AS (PARTITION BY condition, metric, questions ORDER BY measured_at))
SELECT condition, metric, before_release, before, release, mean FROM runs
WHERE is_latest AND metric = $metric AND round(before - mean, 9) > $most ORDER BY condition
"""


@dataclass(frozen=True)
class Drop:
    """A condition's mean of a metric that is lower than at the run before."""

    condition: str
    metric: str
    before_release: str
    before: float
    release: str
    now: float

    def __str__(self) -> str:
        """Say what fell, from where to where."""
        return (
            f"{self.condition}: {self.metric} fell from {self.before:.3f} (release "
            f"{self.before_release}) to {self.now:.3f} (release {self.release})"
        )


def record_means(con: duckdb.DuckDBPyConnection, experiment: str) -> None:
    """Add the means of an experiment's scores to the history; the connection is a transaction's."""
    con.execute(_RECORD, [experiment])


def drops(con: duckdb.DuckDBPyConnection, experiment: str, metric: str, most: float) -> list[Drop]:
    """Return the conditions whose mean fell by more than ``most`` from one run to the latest."""
    parameters = {"experiment": experiment, "metric": metric, "most": most}
    return [Drop(*row) for row in con.execute(_DROPS, parameters).fetchall()]
