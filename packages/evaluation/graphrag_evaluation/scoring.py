"""Scores of answers by what is known to be right about their questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from graphrag_evaluation.answers_elsewhere import METHOD
from graphrag_evaluation.metrics.answers import USUAL, bare, is_polar, usual_scores
from graphrag_evaluation.metrics.bertscore import Encoder, bert_scores, encoder_of
from graphrag_evaluation.metrics.computed import (
    COMPUTED,
    check_installed,
    names_of,
    values_of,
)
from graphrag_evaluation.metrics.retrieval import (
    BY_DOCUMENT,
    IN_CONTEXT,
    OF_DOCUMENTS,
    RETRIEVAL,
    answer_in_context,
    chunks_of,
    document_scores,
    retrieval_scores,
)
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.index_store import get_meta, memory_database, set_meta

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.query.release import Release

ASKED_FOR = (*COMPUTED, OF_DOCUMENTS)
"""The metrics beyond the usual ones, of answers and of what was retrieved."""

_DUE = """
SELECT a.answer_id, a.method, a.parameters, a.text, a.model, a.chunk_ids, q.answers, q.passages,
       coalesce(s.metrics, []) AS scored,
       CASE WHEN list_contains(scored, $in_context) THEN '' ELSE a.context END AS context
FROM answers a JOIN questions q
    ON q.question = a.question AND q.document = a.document AND q.question_set = $set
LEFT JOIN (SELECT answer_id, list(metric) AS metrics FROM scores
           WHERE question_set = $set GROUP BY answer_id) s USING (answer_id)
WHERE a.release = $release AND (len(q.answers) > 0 OR len(q.passages) > 0)
ORDER BY q.position, a.answer_id
"""
_KEEP = "INSERT OR REPLACE INTO scores SELECT answer_id, ?, metric, value, '' FROM found"
_MEANS = """
SELECT s.condition, coalesce(q.type, 'all') AS type, s.metric, count(*) AS questions,
       avg(s.value) AS mean
FROM experiment_scores s
JOIN experiments e USING (experiment) JOIN conditions c USING (experiment, condition)
JOIN questions q ON q.question_set = e.question_set AND q.question_id = s.question_id
WHERE experiment = ?
GROUP BY GROUPING SETS ((s.condition, c.position, s.metric),
                        (s.condition, c.position, s.metric, q.type))
ORDER BY c.position, grouping(q.type) DESC, type, s.metric
"""

_ENCODER = "bertscore encoder"
_WITHOUT_CONTEXT = """
DELETE FROM scores WHERE metric = ? AND answer_id IN
    (SELECT answer_id FROM answers WHERE method = ? AND context = '')
"""
_OTHERS = "DELETE FROM scores WHERE metric IN (SELECT unnest(?::VARCHAR[]))"

_SCORES = pl.Schema({"answer_id": pl.String, "metric": pl.String, "value": pl.Float64})

Score = tuple[str, str, float]
"""answer_id, metric and value."""


def score(
    store: EvaluationStore,
    release: Release | None,
    question_set: str,
    metrics: Sequence[str] = (),
    settings: Settings | None = None,
) -> int:
    """Score the answers made from a release to the questions of a set, those not scored yet.

    Without a release they are those made elsewhere, for which ``settings`` are needed. Gold answers
    give the ``USUAL`` scores, ``IN_CONTEXT`` (but to one made elsewhere whose context is not known)
    and what ``metrics`` names beyond them (of ``COMPUTED``); gold passages the ``RETRIEVAL`` ones,
    where the method retrieves chunks for any question at all. An answer that no model wrote is
    evidence, and says neither yes nor no. ``settings`` give the encoder of BERTScore, by default
    the release's: scores by another encoder are made again. Returns the number of scores written.

    Raises InputError for an unknown metric, or one that needs what is not installed.
    """
    if settings is None:
        assert release is not None, "what was made elsewhere has no settings"
        settings = release.settings
    check_metrics(metrics, settings)
    encoder = encoder_of(settings) if "bertscore" in metrics else None
    if encoder:
        _forget_other_encoder(store, encoder)
    with store.read() as con:
        parameters = {
            "set": question_set,
            "release": release.facts.id if release else "",
            "in_context": IN_CONTEXT,
        }
        answers = con.execute(_DUE, parameters).pl()
    scores = [
        *_of_answers(answers, metrics, encoder),
        *_of_contexts(answers),
        *(_of_retrieval(answers, release, OF_DOCUMENTS in metrics) if release else []),
    ]
    rows = pl.DataFrame(scores, _SCORES, orient="row")
    with store.transaction() as con:
        con.execute(_WITHOUT_CONTEXT, [IN_CONTEXT, METHOD])
        put_rows(con, "found", rows)
        con.execute(_KEEP, [question_set])
        drop_rows(con, "found")
    return rows.height


def check_metrics(metrics: Sequence[str], settings: Settings) -> None:
    """Raise InputError for a metric that there is not, or that needs what is not installed."""
    for name in metrics:
        if name not in ASKED_FOR and name not in USUAL:
            names = ", ".join(ASKED_FOR)
            raise InputError(f"unknown metric {name!r}: beyond the usual ones there are {names}")
        check_installed(name)
    if "bertscore" in metrics:
        encoder_of(settings)


def _forget_other_encoder(store: EvaluationStore, encoder: Encoder) -> None:
    with store.transaction() as con:
        if get_meta(con, _ENCODER) != encoder.name:
            con.execute(_OTHERS, [names_of("bertscore")])
            set_meta(con, _ENCODER, encoder.name)


def mean_scores(con: duckdb.DuckDBPyConnection, experiment: str) -> pl.DataFrame:
    """Return the mean of each metric for each condition of an experiment, and by question type.

    Columns: condition, type ("all" for all questions), metric, questions, mean.
    """
    return con.execute(_MEANS, [experiment]).pl()


def _of_answers(
    table: pl.DataFrame, metrics: Sequence[str], encoder: Encoder | None
) -> Iterator[Score]:
    rows = table.filter(pl.col("text") != "", pl.col("answers").list.len() > 0)
    computed = {name: names_of(name) for name in metrics if name in COMPUTED}
    wanted = {*USUAL, *(name for names in computed.values() for name in names)}
    answers = [
        (row["answer_id"], _answer_text(row), row["answers"], set(row["scored"]))
        for row in rows.iter_rows(named=True)
        if not wanted.issubset(row["scored"])
    ]
    for answer_id, text, gold, scored in answers:
        if not scored.issuperset(USUAL):
            scores = usual_scores(text, gold)
            yield from ((answer_id, name, value) for name, value in scores.items())
        for metric, names in computed.items():
            if metric == "bertscore" or scored.issuperset(names):
                continue
            values = values_of(metric, text, gold)
            yield from ((answer_id, *pair) for pair in zip(names, values, strict=True))
    unmatched = [answer for answer in answers if not answer[3].issuperset(names_of("bertscore"))]
    if encoder and unmatched:
        ids, texts, golds, _ = zip(*unmatched, strict=True)
        for answer_id, values in zip(ids, bert_scores(encoder, texts, golds), strict=True):
            pairs = zip(names_of("bertscore"), values, strict=True)
            yield from ((answer_id, *pair) for pair in pairs)


def _answer_text(row: dict[str, object]) -> str:
    is_evidence = not row["model"] and is_polar(row["answers"])  # pyright: ignore
    return "" if is_evidence else bare(str(row["text"]))


def _of_contexts(rows: pl.DataFrame) -> Iterator[Score]:
    # What an answer made elsewhere was made from need not be known: that says nothing against it.
    is_known = (pl.col("method") != METHOD) | (pl.col("context") != "")
    for row in rows.filter(pl.col("answers").list.len() > 0, is_known).iter_rows(named=True):
        if IN_CONTEXT not in row["scored"]:
            value = answer_in_context(row["context"], row["answers"])
            if value is not None:
                yield row["answer_id"], IN_CONTEXT, value


def _of_retrieval(rows: pl.DataFrame, release: Release, by_document: bool) -> list[Score]:
    n_chunks = pl.col("chunk_ids").list.len()
    retrieved = rows.filter(
        pl.col("passages").list.len() > 0, n_chunks.max().over("method", "parameters") > 0
    )
    columns = ("answer_id", "chunk_ids", "passages")
    scores: list[Score] = []
    with memory_database() as con:
        questions = _unscored(retrieved, RETRIEVAL[-1]).select(columns)
        if len(questions):
            ids = questions["chunk_ids"].explode().drop_nulls().unique().to_list()
            scores += retrieval_scores(con, questions.to_arrow(), chunks_of(release, ids))
        questions = _unscored(retrieved, BY_DOCUMENT[-1]).select(columns)
        if by_document and len(questions):
            scores += document_scores(con, questions, release)
    return scores


def _unscored(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    return rows.filter(~pl.col("scored").list.contains(metric))
