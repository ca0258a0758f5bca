"""The questions of an experiment: those on which conditions differ most in full, all in brief."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from graphrag_evaluation.metrics.retrieval import chunks_of, retrieval_scores
from graphrag_evaluation.pages.model import AskedCondition, Chunk, Given
from graphrag_evaluation.pages.qualities import Quality
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.pages.overview.passages import clip
from graphrag_pipeline.query.answering import NOT_WRITTEN
from graphrag_pipeline.query.release import open_release

_IN_FULL = 100
_CELLS = 20_000
_ALL_TEXT = 1_500_000
_LEAST_TEXT, _MOST_TEXT = 400, 3_000
_MOST_QUESTION = 1_200
_BRIEF_QUESTION = 220
_MOST_GOLD, _GOLDS = 600, 6
_CHUNKS, _BEGINNING, _TITLE = 5, 110, 90
_SCORES = 4

_QUESTIONS = """
SELECT x.question_id, any_value(coalesce(q.question, a.question)) AS text,
       coalesce(any_value(q.type), '') AS type, any_value(q.position) AS position
FROM experiment_answers x JOIN experiments e USING (experiment) JOIN answers a USING (answer_id)
LEFT JOIN questions q ON q.question_set = e.question_set AND q.question_id = x.question_id
WHERE experiment = ? GROUP BY x.question_id ORDER BY position, text
"""
_GOLD = """
SELECT q.question_id, q.answers, q.passages
FROM experiments e JOIN questions q USING (question_set)
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS question_id) USING (question_id)
WHERE e.experiment = $experiment
"""
_GIVEN = """
SELECT x.question_id, x.condition, left(a.text, $most + 200) AS text,
       a.release, a.chunk_ids[:$chunks] AS chunk_ids, len(a.chunk_ids) AS n_chunks,
       citations, citations_resolved, total_ms, failures,
       CASE WHEN prompt_tokens + completion_tokens > 0 THEN prompt_tokens + completion_tokens
            ELSE context_tokens END AS tokens
FROM experiment_answers x JOIN conditions c USING (experiment, condition)
JOIN answers a USING (answer_id)
SEMI JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS question_id) wanted
    ON wanted.question_id = x.question_id
WHERE experiment = $experiment ORDER BY c.position
"""


def read_questions(con: duckdb.DuckDBPyConnection, experiment: str) -> pl.DataFrame:
    """Return question_id, text, type and position of all that was answered, in order."""
    return con.execute(_QUESTIONS, [experiment]).pl()


def in_brief(
    questions: pl.DataFrame, quality: Quality | None, conditions: Sequence[str]
) -> dict[str, AskedCondition]:
    """Return the questions by id, in order, with what each condition has on them."""
    values: dict[str, dict[str, float]] = {}
    if quality is not None:
        for row in quality.values.iter_rows(named=True):
            values.setdefault(row["question_id"], {})[row["condition"]] = row["value"]
    brief = {}
    for n, row in enumerate(questions.iter_rows(named=True), 1):
        own = values.get(row["question_id"], {})
        spread = max(own.values()) - min(own.values()) if own else None
        cells = [own.get(name) for name in conditions]
        text = clip(row["text"], _MOST_QUESTION)
        brief[row["question_id"]] = AskedCondition(n, text, row["type"], cells, spread)
    return brief


def shortened(questions: Iterable[AskedCondition], conditions: int) -> list[AskedCondition]:
    """Return so many questions as a table can hold, their texts cut."""
    most = _CELLS // max(10, conditions)
    return [
        replace(question, text=clip(question.text, _BRIEF_QUESTION))
        for question in [*questions][:most]
    ]


def in_full(
    con: duckdb.DuckDBPyConnection,
    experiment: str,
    home: Path,
    questions: Mapping[str, AskedCondition],
    qualities: Sequence[Quality],
) -> list[AskedCondition]:
    """Return the questions on which conditions differ most, with gold and answers.

    Answers are the best first; how much of them is given depends on how many there are. Chunks are
    told of as far as their release is still kept.
    """
    ids = sorted(questions, key=lambda id: _order(questions[id]))[:_IN_FULL]
    most = _most_text(
        len(ids), max((len(answer.values) for answer in questions.values()), default=1)
    )
    parameters = {"experiment": experiment, "ids": json.dumps(ids)}
    gold = {
        row["question_id"]: row for row in con.execute(_GOLD, parameters).pl().iter_rows(named=True)
    }
    answers = con.execute(_GIVEN, {**parameters, "most": most, "chunks": _CHUNKS}).pl()
    chunks = _chunks(con, experiment, home, answers, gold)
    scores = _scores(qualities[:_SCORES], ids)
    answers_of: dict[str, list[Given]] = {}
    for row in answers.iter_rows(named=True):
        answer = _given(row, most, scores.get((row["question_id"], row["condition"]), []), chunks)
        answers_of.setdefault(row["question_id"], []).append(answer)
    return [
        replace(questions[id], **_gold(gold.get(id)), given=_best_first(answers_of.get(id, [])))
        for id in ids
    ]


def _order(question: AskedCondition) -> tuple[float, float, float, int]:
    """Return what sorts by spread, then by how evenly conditions part, then the worst first."""
    values = [value for value in question.values if value is not None]
    if not values:
        return 0.0, 0.0, 0.0, question.position
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    return -(question.spread or 0.0), -round(variance, 9), mean, question.position


def _most_text(questions: int, conditions: int) -> int:
    return max(_LEAST_TEXT, min(_MOST_TEXT, _ALL_TEXT // max(1, questions * conditions)))


def _scores(
    qualities: Sequence[Quality], ids: Sequence[str]
) -> dict[tuple[str, str], list[tuple[str, Any, float]]]:
    scores_of: dict[tuple[str, str], list[tuple[str, Any, float]]] = {}
    for quality in qualities:
        values = quality.values.filter(pl.col("question_id").is_in(list(ids)))
        for row in values.iter_rows(named=True):
            score = (quality.measure.label, quality.measure.kind, row["value"])
            scores_of.setdefault((row["question_id"], row["condition"]), []).append(score)
    return scores_of


def _given(
    row: Mapping[str, Any],
    most: int,
    scores: Sequence[tuple[str, Any, float]],
    chunks: Mapping[tuple[str, str], Chunk],
) -> Given:
    chunks_or_none = [chunks.get((row["question_id"], id)) for id in row["chunk_ids"]]
    existing = [chunk for chunk in chunks_or_none if chunk is not None]
    return Given(
        condition=row["condition"],
        text=clip(row["text"].removeprefix(NOT_WRITTEN).strip(), most),
        scores=scores,
        tokens=row["tokens"],
        milliseconds=row["total_ms"],
        citations=row["citations"],
        citations_resolved=row["citations_resolved"],
        failures=[clip(failure, _BEGINNING) for failure in row["failures"]],
        chunks=existing,
        n_more_chunks=row["n_chunks"] - len(existing),
    )


def _best_first(answers: Sequence[Given]) -> list[Given]:
    return sorted(answers, key=lambda answer: -answer.scores[0][2] if answer.scores else 1.0)


def _gold(row: Mapping[str, Any] | None) -> dict[str, Any]:
    if row is None:
        return {}
    answers, passages = row["answers"], row["passages"]
    passages_in_brief = [
        (clip(p["title"], _TITLE), clip(p["text"], _MOST_GOLD)) for p in passages[:_GOLDS]
    ]
    return {
        "answers": [clip(answer, _MOST_GOLD) for answer in answers[:_GOLDS]],
        "n_more_answers": max(0, len(answers) - _GOLDS),
        "passages": passages_in_brief,
        "n_more_passages": max(0, len(passages) - _GOLDS),
    }


def _chunks(
    con: duckdb.DuckDBPyConnection,
    experiment: str,
    home: Path,
    answers: pl.DataFrame,
    gold: Mapping[str, Mapping[str, Any]],
) -> dict[tuple[str, str], Chunk]:
    """Return the retrieved chunks by question and id."""
    chunk_ids = answers.select("question_id", "release", chunk_id="chunk_ids").explode("chunk_id")
    chunk_ids = chunk_ids.drop_nulls().unique(maintain_order=True)
    chunk_of: dict[tuple[str, str], Chunk] = {}
    for (release,), part in chunk_ids.group_by("release", maintain_order=True):
        texts = _texts(_homes(con, experiment, home), str(release), part["chunk_id"].to_list())
        if texts is None:
            continue
        golden = _golden(con, part, texts, gold)
        by_id = {row["chunk_id"]: row for row in texts.iter_rows(named=True)}
        for question_id, _, chunk_id in part.iter_rows():
            if row := by_id.get(chunk_id):
                beginning = clip(" ".join(row["text"][:400].split()), _BEGINNING)
                is_gold = (question_id, chunk_id) in golden
                title = clip(row["title"] or row["uri"], _TITLE)
                chunk_of[question_id, chunk_id] = Chunk(title, beginning, is_gold)
    return chunk_of


def _golden(
    con: duckdb.DuckDBPyConnection,
    chunk_ids: pl.DataFrame,
    texts: pl.DataFrame,
    gold: Mapping[str, Mapping[str, Any]],
) -> set[tuple[str, str]]:
    """Return which chunks hold a gold passage of which question.

    Each is scored as if it alone had been retrieved.
    """
    pairs = [(q, chunk) for q, _, chunk in chunk_ids.iter_rows() if gold.get(q, {}).get("passages")]
    if not pairs:
        return set()
    question_rows = pl.DataFrame(
        {
            "answer_id": [str(n) for n in range(len(pairs))],
            "chunk_ids": [[chunk] for _, chunk in pairs],
            "passages": [gold[question_id]["passages"] for question_id, _ in pairs],
        }
    )
    scores = retrieval_scores(con, question_rows.to_arrow(), texts.to_arrow())
    return {pairs[int(n)] for n, metric, value in scores if metric == "recall@2" and value > 0}


def _texts(homes: Sequence[Path], release: str, ids: Sequence[str]) -> pl.DataFrame | None:
    """Return chunk_id, title, uri and text of chunks, None where the release is gone."""
    for home in homes:
        with suppress(GraphRAGError), open_release(home, release=release) as index:
            return pl.DataFrame(chunks_of(index, list(dict.fromkeys(ids))))
    return None


def _homes(con: duckdb.DuckDBPyConnection, experiment: str, home: Path) -> list[Path]:
    """Return the folders of the indexes that were asked."""
    row = con.execute("SELECT spec FROM experiments WHERE experiment = ?", [experiment])
    (spec,) = row.fetchone() or ("{}",)
    homes = [condition.get("home") for condition in json.loads(spec).get("conditions", ())]
    return list(dict.fromkeys([home, *(Path(condition) for condition in homes if condition)]))
