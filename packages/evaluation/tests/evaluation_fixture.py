"""Experiments written straight into ``evaluation.duckdb``, for tests of what reads it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
from graphrag_evaluation.judging.judge import write_comparisons
from graphrag_evaluation.judging.verdicts import Verdict, compare_verdicts
from graphrag_evaluation.questions.question import Question, put_questions
from graphrag_evaluation.store import EvaluationStore

from graphrag_pipeline.store.index_store import insert

WHEN = datetime(2026, 11, 21, 3, 30, tzinfo=UTC)
Score = Callable[[str, int], float]


@dataclass(frozen=True)
class Filled:
    """An experiment to write; ``strength`` says how often conditions win, ``bias`` how often it is
    for being shown first. ``scores`` give a value for a condition and a question's number.
    """

    name: str
    conditions: Sequence[str]
    questions: Sequence[Question]
    text: str = "What {condition} says to {question}"
    model: str = "gpt-x"
    scores: Mapping[str, Score] | None = None
    strength: Mapping[str, float] | None = None
    bias: Mapping[tuple[str, str], float] | None = None
    criteria: Sequence[str] = ("comprehensiveness", "diversity", "empowerment", "directness",
                               "overall")  # fmt: skip
    tokens: Callable[[int], int] = lambda n: 900 * (n + 1) ** 2
    cost: float | None = 0.0125


_KEY = ("experiment", "condition", "question_id")
_ASKED = ("method", "parameters", "release")


def fill(home: Path, one: Filled) -> None:
    """Write an experiment with its questions, answers, scores and verdicts."""
    asked = {question.id: question for question in one.questions}
    answers = [
        _answer(one, n, name, question)
        for n, name in enumerate(one.conditions)
        for question in asked.values()
    ]
    with EvaluationStore(home).transaction() as con:
        put_questions(con, one.name, one.questions)
        spec = json.dumps({"conditions": [{"name": name} for name in one.conditions]})
        put_experiment(con, one.name, one.name, spec=spec, finished_at=WHEN)
        conditions = [
            (one.name, name, n, "basic", '{"top_k": 10}', "r1")
            for n, name in enumerate(one.conditions)
        ]
        _insert(con, "conditions", conditions, [*_KEY[:2], "position", *_ASKED])
        given = [(one.name, name, id) for name in one.conditions for id in asked]
        links = [(*key, _id(*key)) for key in given]
        _insert(con, "answers", answers)
        _insert(con, "experiment_answers", links, [*_KEY, "answer_id"])
        scores = [
            (_id(*key), one.name, metric, score(key[1], list(asked).index(key[2])))
            for metric, score in (one.scores or {}).items()
            for key in given
        ]
        _insert(con, "scores", scores, ["answer_id", "question_set", "metric", "value"])
        if one.strength:
            verdicts = _verdicts(one)
            write_comparisons(con, one.name, compare_verdicts(verdicts, one.conditions))
            _write_judgments(con, one, asked, verdicts)


def put_row(con: Any, table: str, **values: Any) -> None:
    """Write one row, its columns by name."""
    marks = ", ".join("?" * len(values))
    names = ", ".join(values)
    con.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(values.values()))


def put_experiment(con: Any, name: str, question_set: str, **values: Any) -> None:
    """Write an experiment alone, by default one that was started and is empty."""
    row = {"spec": "{}", "started_at": WHEN, **values}
    put_row(con, "experiments", experiment=name, question_set=question_set, **row)


def put_texts(con: Any, texts: pl.DataFrame) -> None:
    """Write answers of which only answer_id, question and text matter."""
    numbers = ("citations", "citations_resolved", "context_tokens", "prompt_tokens",
               "completion_tokens", "model_calls", "retrieve_ms", "total_ms")  # fmt: skip
    rest = {"method": "basic", "parameters": "{}", "release": "r", "model": "m", "context": "",
            **dict.fromkeys(numbers, 0), "answered_at": WHEN}  # fmt: skip
    nothing = pl.lit([], pl.List(pl.String))
    rows = texts.select("answer_id", "question", "text").with_columns(
        chunk_ids=nothing, failures=nothing, **{name: pl.lit(value) for name, value in rest.items()}
    )
    insert(con, "answers", rows)


def _insert(
    con: Any, table: str, rows: Sequence[Any], columns: Sequence[str] | None = None
) -> None:
    if rows:
        insert(con, table, pl.DataFrame(rows, columns, orient="row" if columns else None))


def _id(*key: str) -> str:
    return "\0".join(key)


def _answer(one: Filled, n: int, name: str, question: Question) -> dict[str, Any]:
    return {
        "answer_id": _id(one.name, name, question.id),
        "question": question.text,
        "method": "basic",
        "parameters": "{}",
        "release": "r1",
        "model": one.model,
        "text": one.text.format(condition=name, question=question.text),
        "context": "",
        "chunk_ids": [],
        "citations": 4,
        "citations_resolved": 3,
        "context_tokens": one.tokens(n),
        "prompt_tokens": one.tokens(n) if one.model else 0,
        "completion_tokens": 200 if one.model else 0,
        "model_calls": 1 if one.model else 0,
        "cost": one.cost,
        "retrieve_ms": 20.0 * (n + 1),
        "total_ms": 800.0 / (n + 1) + len(question.text),
        "failures": [],
        "answered_at": WHEN,
    }


def _verdicts(one: Filled) -> list[Verdict]:
    chance = random.Random(7)
    strength, bias = one.strength or {}, one.bias or {}
    return [
        Verdict(question.id, criterion, *pair, winner="first" if won else "second")
        for criterion in one.criteria
        for a, b in combinations(one.conditions, 2)
        for question in one.questions
        for pair in ((a, b), (b, a))
        for won in [
            chance.random()
            < bias.get((a, b), strength[pair[0]] / (strength[pair[0]] + strength[pair[1]]))
        ]
    ]


def _write_judgments(
    con: Any, one: Filled, asked: Mapping[str, Question], verdicts: Sequence[Verdict]
) -> None:
    rows = [
        {
            "judgment_id": f"{one.name}{n}",
            "question": asked[verdict.question].text,
            "first_answer": _id(one.name, verdict.first, verdict.question),
            "second_answer": _id(one.name, verdict.second, verdict.question),
            "criterion": verdict.criterion,
            "replicate": 0,
            "judge": "gpt-x",
            "winner": verdict.winner,
            "explanation": "It says more.",
            "judged_at": WHEN,
        }
        for n, verdict in enumerate(verdicts)
    ]
    insert(con, "judgments", pl.DataFrame(rows))
