"""Judgments by people on the answers of an experiment, beside those by models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from graphrag_evaluation.labelling.items import Kind
from graphrag_evaluation.labelling.reliability import Reliability, reliability
from graphrag_evaluation.results import interval

PEOPLE = "people"
"""All labellers together: the mean of their numbers, the majority of their votes."""

# An item of two answers is known by both in the order of their hashes: ``value`` is of the first.
_ANSWERS = """
CREATE OR REPLACE TEMP TABLE labelled_answers AS
SELECT DISTINCT x.condition, c.position, x.question_id, a.question, a.document, a.answer_id,
       md5(a.text) AS answer
FROM experiment_answers x JOIN conditions c USING (experiment, condition)
JOIN answers a USING (answer_id) WHERE x.experiment = ? AND a.text <> ''
"""
_LABELS = """
SELECT kind, criterion, labeller AS rater, question_id, avg(value) AS value,
       least(first_answer, coalesce(nullif(second_answer, ''), first_answer)) AS answer,
       CASE WHEN second_answer <> '' THEN greatest(first_answer, second_answer) ELSE '' END AS other
FROM (SELECT * REPLACE (
          CASE WHEN second_answer <> '' AND second_answer < first_answer THEN 1 - value
               ELSE value END AS value) FROM human_labels) l
WHERE EXISTS (FROM labelled_answers o
              WHERE o.question_id = l.question_id AND o.answer = l.first_answer)
  AND (second_answer = '' OR EXISTS (FROM labelled_answers o
       WHERE o.question_id = l.question_id AND o.answer = l.second_answer))
GROUP BY ALL ORDER BY ALL
"""
_MARKS = """
SELECT 'score' AS kind, l.criterion, coalesce(nullif(s.model, ''), s.metric) AS rater,
       o.question_id, avg(s.value) AS value, o.answer, '' AS other
FROM (SELECT DISTINCT criterion FROM human_labels WHERE kind = 'score') l
JOIN experiment_scores s ON s.metric IN (l.criterion, 'reference_' || l.criterion)
JOIN labelled_answers o ON o.answer_id = s.answer_id AND o.question_id = s.question_id
WHERE s.experiment = ? GROUP BY ALL ORDER BY ALL
"""
_VERDICTS = """
WITH verdicts AS (
    SELECT j.criterion, j.judge AS rater, f.question_id, least(f.answer, s.answer) AS answer,
           greatest(f.answer, s.answer) AS other, j.judgment_id,
           CASE WHEN j.winner = 'tie' THEN 0.5
                WHEN (j.winner = 'first') = (f.answer < s.answer) THEN 1.0 ELSE 0.0 END AS value
    FROM judgments j
    JOIN answers a ON a.answer_id = j.first_answer JOIN answers b ON b.answer_id = j.second_answer
    JOIN labelled_answers f ON f.question = j.question AND f.answer = md5(a.text)
    JOIN labelled_answers s ON s.question_id = f.question_id AND s.answer = md5(b.text)
    WHERE f.document = a.document AND f.answer <> s.answer
)
SELECT 'preference' AS kind, criterion, rater, question_id,
       CASE WHEN avg((value = 1)::INT) > 0.5 THEN 1 WHEN avg((value = 0)::INT) > 0.5 THEN 0
            ELSE 0.5 END::DOUBLE AS value, answer, other
FROM (SELECT DISTINCT * FROM verdicts) GROUP BY ALL ORDER BY ALL
"""
_ITEM = ("question_id", "answer", "other")


@dataclass(frozen=True, kw_only=True)
class HumanAgreement:
    """Agreement of ``one`` and ``other`` by a criterion; ``other`` is empty among labellers.

    ``model`` says whether a model, or a computed metric, is one of them.
    """

    kind: Kind
    criterion: str
    one: str
    other: str
    reliability: Reliability


@dataclass(frozen=True, kw_only=True)
class Beside:
    """The mean label of people and of a model on the same answers, each answer weighing the same.

    Of a condition; or of ``condition`` against ``rival``, its win rate. ``low`` and ``high`` are
    the 95 % interval of what people say. ``model_mean`` is None where no model labelled them; where
    one did, both means are of the answers that it labelled.
    """

    kind: Kind
    criterion: str
    condition: str
    rival: str
    items: int
    people: float
    low: float
    high: float
    model: str
    model_mean: float | None


@dataclass(frozen=True)
class PeopleSay:
    """All that people's labels say of an experiment: how many there are, means, and agreement."""

    labels: int
    labellers: Sequence[str]
    beside: Sequence[Beside]
    agreements: Sequence[HumanAgreement]


def people_say(con: duckdb.DuckDBPyConnection, experiment: str) -> PeopleSay:
    """Return what people say of the answers of an experiment as they are now."""
    con.execute(_ANSWERS, [experiment])
    labels = con.execute(_LABELS).pl()
    models = pl.concat([con.execute(_MARKS, [experiment]).pl(), con.execute(_VERDICTS).pl()])
    answers = con.execute(
        "SELECT condition, position, question_id, answer FROM labelled_answers ORDER BY ALL"
    ).pl()
    con.execute("DROP TABLE labelled_answers")
    agreements, beside = list[HumanAgreement](), list[Beside]()
    for (kind, criterion), own in labels.group_by("kind", "criterion", maintain_order=True):
        by_models = models.filter(kind=kind, criterion=criterion).join(
            own.select(_ITEM).unique(), _ITEM, how="semi", maintain_order="left"
        )
        of = (_kind(kind), str(criterion))
        agreements += _agreements(*of, own, by_models)
        beside += _beside(*of, _together(own, of[0]), by_models, answers)
    people = labels["rater"].unique().sort().to_list()
    return PeopleSay(len(labels), people, beside, agreements)


def _kind(kind: object) -> Kind:
    return "preference" if kind == "preference" else "score"


def _together(labels: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """Return the labels of all people as one rater's."""
    value = pl.col("value")
    vote = (
        pl.when((value == 1).mean() > 0.5)
        .then(1.0)
        .when((value == 0).mean() > 0.5)
        .then(0.0)
        .otherwise(0.5)
    )
    by_item = labels.group_by(_ITEM, maintain_order=True)
    together = by_item.agg(value.mean() if kind == "score" else vote.alias("value"))
    return together.with_columns(rater=pl.lit(PEOPLE))


def _agreements(
    kind: Kind, criterion: str, labels: pl.DataFrame, models: pl.DataFrame
) -> Iterator[HumanAgreement]:
    """Yield how far labellers agree; all of them with each model; and each of them with it."""
    several = labels["rater"].n_unique() > 1
    together = _together(labels, kind)
    raters = labels.partition_by("rater", maintain_order=True) if several else []
    pairs: list[tuple[str, str, list[pl.DataFrame]]] = [(PEOPLE, "", [labels])]
    for model in models.partition_by("rater", maintain_order=True):
        name = model["rater"][0]
        pairs += [(own["rater"][0], name, [own, model]) for own in (together, *raters)]
    for one, other, parts in pairs:
        rated = pl.concat([part.select(*_ITEM, "rater", "value") for part in parts])
        items = rated.with_columns(item=pl.concat_str(_ITEM, separator=" "))
        if agreement := reliability(items, is_number=kind == "score"):
            yield HumanAgreement(
                kind=kind, criterion=criterion, one=one, other=other, reliability=agreement
            )


def _beside(
    kind: Kind, criterion: str, people: pl.DataFrame, models: pl.DataFrame, answers: pl.DataFrame
) -> Iterator[Beside]:
    by_condition = _by_condition if kind == "score" else _by_pair
    for model in models.partition_by("rater", maintain_order=True) or [models]:
        how = "left" if model.is_empty() else "inner"
        both = people.join(
            model.select(*_ITEM, model="value"), _ITEM, how=how, maintain_order="left"
        )
        parts = by_condition(both, answers).group_by("condition", "rival", maintain_order=True)
        for (condition, rival), part in parts:
            low, high = interval(part["value"].to_numpy())
            mean = part["model"].cast(pl.Float64).mean()
            yield Beside(
                kind=kind,
                criterion=criterion,
                condition=str(condition),
                rival=str(rival),
                items=len(part),
                people=float(part["value"].to_numpy().mean()),
                low=low,
                high=high,
                model="" if model.is_empty() else model["rater"][0],
                model_mean=mean if isinstance(mean, float) else None,
            )


def _by_condition(labels: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    own = answers.join(labels, ["question_id", "answer"], maintain_order="left")
    return own.with_columns(rival=pl.lit("")).sort("position", maintain_order=True)


def _by_pair(labels: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return labels of two answers by the conditions that gave them, of the first of these."""
    others = answers.select(
        "question_id", rival="condition", rival_position="position", other="answer"
    )
    own = labels.join(answers, ["question_id", "answer"]).join(others, ["question_id", "other"])
    is_turned = pl.col("rival_position") < pl.col("position")
    turned = {name: pl.when(is_turned).then(1 - pl.col(name)).otherwise(pl.col(name))
              for name in ("value", "model")}  # fmt: skip
    names = {
        name: pl.when(is_turned).then(pl.col(to)).otherwise(pl.col(name))
        for name, to in (("condition", "rival"), ("rival", "condition"),
                         ("position", "rival_position"), ("rival_position", "position"))
    }  # fmt: skip
    return own.with_columns(**turned, **names).sort(
        "position", "rival_position", "question_id", maintain_order=True
    )
