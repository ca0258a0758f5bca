"""Answers without what they share, so that a judge does not prefer one for its length.

After benchmark-qed's differential comparison. A model names, by number, the sentences of each
answer whose content the other one states too; what is left is shown to the judge word for word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import duckdb
import polars as pl

from graphrag_evaluation.inquiring import EvaluationInquiry, QuestionForm, made_by, unanswered
from graphrag_evaluation.judging.judge import AnswerPair
from graphrag_evaluation.metrics.answers import bare, sentence_texts
from graphrag_evaluation.step_models import StepModel
from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed
from graphrag_pipeline.store.frames import streamed

SUFFIX: Final = " (differential)"
"""What the name of a criterion ends with where answers are judged so."""
NOTHING: Final = "(nothing that the other answer does not say)"

_MOST_SENTENCES = 200
_KEPT = """
SELECT difference_id, first_shared, second_shared FROM differences SEMI JOIN asked
USING (difference_id)
"""
_NOTE = " Both answers are shown without the sentences that they share: judge what is shown."


def parse_shared(text: str) -> Mapping[str, Any]:
    """Return the numbers of shared sentences. Raises ModelOutputError."""
    parsed = parse_json_object(text)
    shared = {name: parsed.get(name) for name in ("first", "second")}
    for name, numbers in shared.items():
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise ModelOutputError(f'the answer must hold "{name}", a list of whole numbers')
    return {f"{name}_shared": numbers for name, numbers in shared.items()}


FORM = QuestionForm(
    name="differences",
    prompt="find_shared",
    table="differences",
    key="difference_id",
    parse=parse_shared,
    json_schema=closed(**dict.fromkeys(("first", "second"), listed(INTEGER, _MOST_SENTENCES))),
    answer_tokens=60,
    columns={"first_shared": pl.List(pl.Int32), "second_shared": pl.List(pl.Int32)},
)


def differential_criteria(criteria: Mapping[str, str]) -> dict[str, str]:
    """Return criteria by the names and meanings that they have here."""
    return {f"{name}{SUFFIX}": f"{text}{_NOTE}" for name, text in criteria.items()}


def inquiries_of(
    pairs: Sequence[AnswerPair], step: StepModel, settings: Settings
) -> dict[str, AnswerPair]:
    """Return the pairs whose shared sentences have to be known, by their inquiry's id."""
    version = made_by(FORM, step, settings)
    return {
        make_id("shared", pair.question, content_hash(pair.a.text), content_hash(pair.b.text),
                version): pair
        for pair in pairs
        if not pair.is_same
    }  # fmt: skip


def missing_inquiries(
    con: duckdb.DuckDBPyConnection, pairs: Mapping[str, AnswerPair]
) -> list[EvaluationInquiry]:
    """Return what has to be asked about pairs."""
    inquiries = [
        EvaluationInquiry(
            id=id,
            values={
                "question": pair.question,
                "first_answer": _numbered(pair.a.text),
                "second_answer": _numbered(pair.b.text),
            },
            columns={"first_answer": pair.a.answer_id, "second_answer": pair.b.answer_id},
        )
        for id, pair in pairs.items()
    ]
    return unanswered(con, FORM, inquiries)


def without_shared(
    con: duckdb.DuckDBPyConnection, pairs: Sequence[AnswerPair], asked: Mapping[str, AnswerPair]
) -> list[AnswerPair]:
    """Return the pairs without what they share; those of which that is not known are left out."""
    ids = pl.DataFrame({"difference_id": list(asked)}, {"difference_id": pl.String})
    with streamed(con, "asked", ids):
        rows = con.execute(_KEPT).fetchall()
    shared = {id: (set(first), set(second)) for id, first, second in rows}
    reduced = {
        (pair.a.answer_id, pair.b.answer_id): replace(
            pair,
            a=replace(pair.a, text=_rest(pair.a.text, shared[id][0])),
            b=replace(pair.b, text=_rest(pair.b.text, shared[id][1])),
        )
        for id, pair in asked.items()
        if id in shared
    }
    return [
        replace(reduced[key], question_id=pair.question_id, condition_a=pair.condition_a,
                condition_b=pair.condition_b) if key in reduced else pair
        for pair in pairs
        if (key := (pair.a.answer_id, pair.b.answer_id)) in reduced or pair.is_same
    ]  # fmt: skip


def _rest(text: str, shared: set[int]) -> str:
    rest = [s for n, s in enumerate(sentence_texts(bare(text)), 1) if n not in shared]
    return "\n".join(rest) or NOTHING


def _numbered(text: str) -> str:
    return "\n".join(f"{n}. {sentence}" for n, sentence in enumerate(sentence_texts(bare(text)), 1))
