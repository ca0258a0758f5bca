"""Results of an experiment as the tables of a paper need them: read once, then looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from graphrag_evaluation.answers_elsewhere import METHOD
from graphrag_evaluation.judging.judge import comparisons_of
from graphrag_evaluation.judging.verdicts import Comparison
from graphrag_evaluation.results import costs
from graphrag_evaluation.scoring import mean_scores

# Poor names are those of ArchRAG, table 8: under three letters, of no letter, of over five words.
_TIMES = r"""
SELECT condition, sum(retrieve_ms) / 1000 AS retrieve_s_all, avg(retrieve_ms) / 1000 AS retrieve_s,
       sum(total_ms - retrieve_ms) / 1000 AS generation_s_all,
       avg(context_tokens) AS context_tokens_mean, avg(search_tokens) AS search_tokens,
       100 * avg((len(names) = 0)::INTEGER) AS null_names,
       100 * avg((len(list_filter(names, lambda n:
           length(n) < 3 OR n NOT SIMILAR TO '.*[^0-9\s[:punct:]].*'
           OR len(string_split_regex(trim(n), '\s+')) > 5)) > 0)::INTEGER) AS poor_names,
       100 * avg(reports_in_relationships) AS reports_in_relationships,
       100 * avg(entities_in_relationships) AS entities_in_relationships
FROM experiment_answers x JOIN answers a USING (answer_id) WHERE experiment = ? GROUP BY condition
"""
# Of an index for each document, all of them count together.
_ASKED = """
SELECT DISTINCT release FROM experiment_answers x JOIN answers a USING (answer_id)
WHERE x.experiment = $experiment AND x.condition = $condition
"""
_FACTS = f"""
SELECT fact, item, sum(value) AS value FROM release_facts WHERE release IN ({_ASKED})
GROUP BY fact, item ORDER BY min(rowid)
"""
_INDEX = f"""
SELECT metric, avg(value) AS value FROM index_metrics WHERE release IN ({_ASKED}) GROUP BY metric
"""
_QUESTIONS = """
SELECT count(DISTINCT question_id) FROM experiment_answers WHERE experiment = ?
"""
_OF_NOVELS = """
SELECT count(*) > 0 FROM experiments JOIN questions q USING (question_set)
WHERE experiment = ? AND contains(q.type, ' ')
"""
_METHODS = """
SELECT condition, method FROM conditions WHERE experiment = ? ORDER BY position
"""
# Two conditions by one metric: how many questions both, one or none got right.
_OVERLAP = """
SELECT count(*) FILTER (a.value > 0 AND b.value > 0) AS both,
       count(*) FILTER (a.value > 0 AND b.value = 0) AS only_first,
       count(*) FILTER (a.value = 0 AND b.value > 0) AS only_second,
       count(*) FILTER (a.value = 0 AND b.value = 0) AS neither
FROM experiment_scores a JOIN experiment_scores b USING (experiment, question_id, metric)
WHERE experiment = $experiment AND a.condition = $first AND b.condition = $second
  AND metric = $metric
"""


@dataclass(frozen=True)
class Overlap:
    """Numbers of questions that two conditions answer right."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def questions(self) -> int:
        """All questions that both answered."""
        return self.both + self.only_first + self.only_second + self.neither


def overlap(
    con: duckdb.DuckDBPyConnection, experiment: str, first: str, second: str, metric: str
) -> Overlap:
    """Return which questions two conditions answer right (rag_vs_graphrag, figure 2)."""
    parameters = {"experiment": experiment, "first": first, "second": second, "metric": metric}
    row = con.execute(_OVERLAP, parameters).fetchone()
    assert row is not None
    return Overlap(*row)


class ExperimentFindings:
    """The means, costs, win rates and index of an experiment, by condition.

    ``scorers`` name the metric that is read in place of another, where it was measured.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, experiment: str) -> None:
        self.con, self.experiment = con, experiment
        self.scorers: Mapping[str, str] = {}
        means = mean_scores(con, experiment)
        self._means = {(c, kind, metric): mean for c, kind, metric, _, mean in means.iter_rows()}
        self.types = means["type"].unique(maintain_order=True).to_list()
        self._counts = {(c, kind): n for c, kind, _, n, _ in means.iter_rows()}
        took = costs(con, experiment).join(
            con.execute(_TIMES, [experiment]).pl(), "condition", how="left"
        )
        self._costs: Mapping[str, Mapping[str, Any]] = {r["condition"]: r for r in took.to_dicts()}
        self.answered = self._costs.keys()
        self.comparisons = comparisons_of(con, experiment)
        self.methods = dict(con.execute(_METHODS, [experiment]).fetchall())
        first = next((name for name in self.methods if self.methods[name] != METHOD), "")
        self.facts = self._facts(first)
        self._facts_of = {"": self.facts}
        (self.asked_of_novels,) = con.execute(_OF_NOVELS, [experiment]).fetchone() or (False,)
        (self.questions,) = con.execute(_QUESTIONS, [experiment]).fetchone() or (0,)

    def mean(self, condition: str, metric: str, kind: str = "all") -> float | None:
        """Return the mean of a metric, over the questions of a type."""
        theirs = self._means.get((condition, kind, self.scorers.get(metric, "")))
        return self._means.get((condition, kind, metric)) if theirs is None else theirs

    def is_measured(self, metric: str) -> bool:
        """Whether any condition has a mean of a metric."""
        return any(name == metric for _, _, name in self._means)

    def mean_of_types(self, condition: str, metric: str, kinds: Sequence[str]) -> float | None:
        """Return the mean of a metric over the questions of several types."""
        having = [kind for kind in kinds if (condition, kind, metric) in self._means]
        questions = sum(self._counts[condition, kind] for kind in having)
        if not questions:
            return None
        return (
            sum(
                self._means[condition, kind, metric] * self._counts[condition, kind]
                for kind in having
            )
            / questions
        )

    def cost(self, condition: str, name: str) -> float | None:
        """Return what an answer of a condition took, None where that is not known."""
        value = self._costs.get(condition, {}).get(name)
        return None if value is None else float(value)

    def duel(self, criterion: str, one: str, other: str) -> tuple[Comparison, bool] | None:
        """Return how two conditions compare, and whether ``one`` is the comparison's first."""
        for comparison in self.comparisons:
            pair = (comparison.condition_a, comparison.condition_b)
            if comparison.criterion == criterion and pair in ((one, other), (other, one)):
                return comparison, pair[0] == one
        return None

    def win_rate(self, criterion: str, one: str, other: str) -> float | None:
        """Return how often ``one`` wins, from 0 to 1; a tie is half a win."""
        duel = self.duel(criterion, one, other)
        if duel is None:
            return None
        comparison, is_first = duel
        return comparison.win_rate if is_first else 1 - comparison.win_rate

    def fact(self, fact: str, item: str, condition: str = "") -> float | None:
        """Return a fact of the index that a condition asked, or of all that it asked.

        Without one it is the first.
        """
        return self._facts_asked(condition).get((fact, item))

    def of_kind(self, fact: str, condition: str = "") -> dict[str, float]:
        """Return all items of a fact, of the index that :meth:`fact` tells of."""
        facts = self._facts_asked(condition)
        return {item: value for (kind, item), value in facts.items() if kind == fact}

    def _facts_asked(self, condition: str) -> dict[tuple[str, str], float]:
        if condition not in self._facts_of:
            self._facts_of[condition] = self._facts(condition)
        return self._facts_of[condition]

    def _facts(self, condition: str) -> dict[tuple[str, str], float]:
        asked = {"experiment": self.experiment, "condition": condition}
        facts = {(f, i): v for f, i, v in self.con.execute(_FACTS, asked).fetchall()}
        index = self.con.execute(_INDEX, asked).pl()
        return facts | {("index", metric): value for metric, value in index.iter_rows()}
