"""Content of the page of an experiment, read from ``evaluation.duckdb`` by whole columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import polars as pl

from graphrag_evaluation import results
from graphrag_evaluation.judging.agreement import agreements
from graphrag_evaluation.judging.judge import comparisons_of
from graphrag_evaluation.judging.verdict_text import percent
from graphrag_evaluation.labelling.human_agreement import people_say
from graphrag_evaluation.metrics.index import ABOUT
from graphrag_evaluation.pages import conclusion, details, qualities
from graphrag_evaluation.pages.charts import ChartPoint, draw
from graphrag_evaluation.pages.matrices import matrices
from graphrag_evaluation.pages.model import (
    ByType,
    Charts,
    ConditionEntry,
    EvaluationPage,
    IndexMetrics,
    ShownMeasure,
)
from graphrag_evaluation.pages.overlaps import overlaps
from graphrag_evaluation.pages.qualities import Quality, quality_of
from graphrag_evaluation.store import EvaluationStore

_MOST_CHARTS = 4
_MOST_TYPES = 8

_HEAD = """
SELECT question_set, spec, started_at, finished_at FROM experiments WHERE experiment = ?
"""
_UNANSWERED = "SELECT condition, reason FROM unanswered WHERE experiment = ?"
_TAKEN = """
SELECT x.condition, x.question_id, context_tokens::DOUBLE AS context_tokens, total_ms, cost,
       (prompt_tokens + completion_tokens)::DOUBLE AS model_tokens, a.release, a.model,
       a.model_calls, citations_resolved / nullif(citations, 0) AS citation_validity
FROM experiment_answers x JOIN conditions c USING (experiment, condition)
JOIN answers a USING (answer_id)
WHERE experiment = ? ORDER BY c.position, x.question_id
"""
_HAS_GOLD = """
SELECT count(*) > 0 FROM questions JOIN experiments e USING (question_set)
WHERE e.experiment = ? AND (len(answers) > 0 OR len(passages) > 0)
"""
_INDEX = """
SELECT metric, level, release, value FROM index_metrics
SEMI JOIN (SELECT DISTINCT release FROM conditions WHERE experiment = ?) USING (release)
ORDER BY metric, level, release
"""


@dataclass(frozen=True)
class _Taken:
    """Costs of answers: one measure each, tokens and milliseconds first."""

    tokens: Quality
    milliseconds: Quality
    more: Sequence[Quality]


def gather(store: EvaluationStore, experiment: str | None) -> EvaluationPage:
    """Read everything that the page of an experiment (default: the latest) shows.

    Raises InputError where there is no such experiment.
    """
    with store.read() as con:
        return _gather(con, store, results.named_experiment(con, experiment))


def _gather(con: duckdb.DuckDBPyConnection, store: EvaluationStore, name: str) -> EvaluationPage:
    costs, timings = results.costs(con, name), con.execute(_TAKEN, [name]).pl()
    conditions = [_condition(n, row) for n, row in enumerate(costs.iter_rows(named=True), 1)]
    names = [item.name for item in conditions]
    is_written = bool(costs["written"].any())
    scores = _in_order(results.question_scores(con, name), names)
    gold = qualities.scored(scores, is_written)
    comparisons = comparisons_of(con, name)
    judge_quality = qualities.judged(con, name, comparisons)
    in_order = [*gold[:1], *[judge_quality] * (judge_quality is not None), *gold[1:]]
    main = in_order[0] if in_order else None
    took = _took(costs, timings) if conditions else None
    judge_matrices = matrices(comparisons, names)
    questions = details.read_questions(con, name)
    in_brief = details.in_brief(questions, main, names)
    listed = details.shortened(in_brief.values(), len(names))
    brief = [item for item in gold if qualities.is_in_brief(item)]
    head = [item for item in in_order if item not in brief]
    return EvaluationPage(
        **_head(con, name, names, timings),
        n_questions=questions.height,
        finding=conclusion.finding(gold, judge_quality, judge_matrices),
        advice=_advice(con, name, main, is_written, conditions),
        conditions=conditions,
        quality=main.measure if main else None,
        charts=_charts(head, took, conditions),
        table=qualities.table([*head, *_all(took)], names),
        more=qualities.table(brief, names),
        claims=qualities.table(qualities.claims(scores), names),
        agreement=agreements(con, name),
        people=people_say(con, name),
        marked_by=results.marked_by(con, name),
        by_type=_by_type(main, questions, names),
        overlaps=overlaps(con, name, gold, names),
        matrices=judge_matrices,
        index=_index(con, name),
        in_full=details.in_full(con, name, store.path.parent, in_brief, head),
        asked=listed,
        n_more_asked=len(in_brief) - len(listed),
    )


def _head(
    con: duckdb.DuckDBPyConnection, name: str, names: Sequence[str], timings: pl.DataFrame
) -> dict[str, Any]:
    row = con.execute(_HEAD, [name]).fetchone()
    assert row is not None
    question_set, spec, started_at, finished_at = row
    wanted = json.loads(spec)
    reasons = {
        **{str(each.get("name", "")): "gave no answer" for each in wanted.get("conditions", ())},
        **{str(lacking): str(reason) for lacking, reason in wanted.get("lacking", ())},
        **dict(con.execute(_UNANSWERED, [name]).fetchall()),
    }
    costs = timings["cost"]
    return {
        "experiment": name,
        "question_set": question_set,
        "started_at": started_at,
        "finished_at": finished_at,
        "releases": timings["release"].unique(maintain_order=True).to_list(),
        "models": [model for model in timings["model"].unique(maintain_order=True) if model],
        "n_answers": timings.height,
        "model_calls": int(timings["model_calls"].sum()),
        "cost": None if costs.null_count() else float(costs.sum()),
        "left_out": [pair for pair in reasons.items() if pair[0] not in names],
    }


def _condition(number: int, row: Mapping[str, Any]) -> ConditionEntry:
    values = json.loads(row["parameters"])
    parameters = ", ".join(f"{key} = {value}" for key, value in values.items())
    return ConditionEntry(number, row["condition"], row["method"], parameters, row["answers"])


def _in_order(scores: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the scores of conditions that there are, in the order of these."""
    order = pl.DataFrame({"condition": names}, schema={"condition": pl.String})
    return order.join(scores, "condition", maintain_order="left_right")


def _took(costs: pl.DataFrame, timings: pl.DataFrame) -> _Taken:
    is_paid = float(timings["model_tokens"].sum()) > 0
    tokens = "model_tokens" if is_paid else "context_tokens"
    label = "tokens per answer" if is_paid else "context tokens"
    more = [ShownMeasure("citation_validity", "valid citations", "share")]
    if timings["cost"].null_count() == 0 and float(timings["cost"].sum()) > 0:
        more.append(ShownMeasure("cost", "cost", "dollars", True))
    return _Taken(
        _taking(costs, timings, ShownMeasure(tokens, label, "count", True)),
        _taking(costs, timings, ShownMeasure("total_ms", "milliseconds", "milliseconds", True)),
        [_taking(costs, timings, measure) for measure in more if _middle(costs, measure.name)],
    )


def _taking(costs: pl.DataFrame, timings: pl.DataFrame, measure: ShownMeasure) -> Quality:
    values = timings.select("condition", "question_id", value=measure.name).drop_nulls()
    return quality_of(measure, values, _middle(costs, measure.name), has_interval=False)


def _middle(costs: pl.DataFrame, name: str) -> dict[str, float]:
    return dict(costs.select("condition", name).drop_nulls().iter_rows())


def _all(took: _Taken | None) -> list[Quality]:
    return [took.tokens, took.milliseconds, *took.more] if took else []


def _advice(
    con: duckdb.DuckDBPyConnection,
    name: str,
    main: Quality | None,
    is_written: bool,
    conditions: Sequence[ConditionEntry],
) -> list[str]:
    if main is not None:
        return []
    row = con.execute(_HAS_GOLD, [name]).fetchone()
    return conclusion.advice(
        has_gold=bool(row and row[0]), is_written=is_written, has_answers=bool(conditions)
    )


def _charts(
    in_order: Sequence[Quality], took: _Taken | None, conditions: Sequence[ConditionEntry]
) -> list[Charts]:
    """Return the charts of the first qualities, against tokens and milliseconds each."""
    if took is None:
        return []
    charts = []
    for quality in in_order[:_MOST_CHARTS]:
        dots = [
            draw(_points(quality, across, conditions), across.measure)
            for across in (took.tokens, took.milliseconds)
        ]
        absent = [condition.name for condition in conditions if condition.name not in quality.cells]
        charts.append(Charts(quality.measure, dots, absent))
    return charts


def _points(
    quality: Quality, across: Quality, conditions: Sequence[ConditionEntry]
) -> list[ChartPoint]:
    points = []
    for condition in conditions:
        if (cell := quality.cells.get(condition.name)) is None or cell.value is None:
            continue
        x, up = across.cells[condition.name].value or 0.0, cell.value
        value = percent(up) if quality.measure.kind == "share" else f"{up:.2f}"
        text = f"{condition.name}: {value}, {x:,.0f} {across.measure.label}"
        low, high = (up if end is None else end for end in (cell.low, cell.high))
        points.append(
            ChartPoint(
                number=condition.number,
                name=condition.name,
                across=x,
                up=up,
                low=low,
                high=high,
                said=text,
            )
        )
    return points


def _by_type(main: Quality | None, questions: pl.DataFrame, names: Sequence[str]) -> ByType | None:
    """Return the main quality by type of question, the most frequent types first."""
    if main is None or questions["type"].n_unique() < 2:
        return None
    typed = main.values.join(questions.select("question_id", "type"), "question_id")
    counts = typed.group_by("type").agg(pl.col("question_id").n_unique().alias("n"))
    types = [(kind, n) for kind, n in counts.sort("n", "type", descending=[True, False]).rows()]
    means = typed.group_by("condition", "type").agg(pl.col("value").mean()).rows()
    mean = {(condition, kind): value for condition, kind, value in means}
    first_types = types[:_MOST_TYPES]
    rows = {name: [mean.get((name, kind)) for kind, _ in first_types] for name in names}
    return ByType(main.measure, first_types, rows, len(types) - len(first_types))


def _index(con: duckdb.DuckDBPyConnection, name: str) -> IndexMetrics | None:
    metrics = con.execute(_INDEX, [name]).fetchall()
    if not metrics:
        return None
    releases = list(dict.fromkeys(release for _, _, release, _ in metrics))
    value = {(metric, level, release): value for metric, level, release, value in metrics}
    keys = dict.fromkeys((metric, level) for metric, level, _, _ in metrics)
    rows = [
        (
            metric,
            ABOUT.get(metric.partition("@")[0], ""),
            level,
            [value.get((metric, level, release)) for release in releases],
        )
        for metric, level in keys
    ]
    return IndexMetrics(releases, rows)
