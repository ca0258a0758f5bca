"""The judge: a model says which of two answers is better by a criterion, in both orders.

After GraphRAG (Edge et al., 2024, 3.3 and appendix F): four criteria, ties allowed, five
replicates; added are the other order of each pair, always, and the criterion "overall". A call is
about one criterion, as there, and not about all, as LightRAG's and HiRAG's judges are asked: what a
model has just written on one criterion would colour its word on the next, and one that fails or is
added later costs no other. The price is that the answers are read once for each criterion. The
prompt is our own wording.

Replicates are calls of their own, told apart in the cache; at temperature 0 they differ little.
Verdicts of another model, temperature or meaning of a criterion are kept apart: all of these are in
a verdict's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

import duckdb
import polars as pl

from graphrag_evaluation.criteria import CRITERIA
from graphrag_evaluation.inquiring import (
    REASONING,
    STAGE,
    EvaluationInquiry,
    QuestionForm,
    unanswered,
)
from graphrag_evaluation.judging.verdict_text import explain
from graphrag_evaluation.judging.verdicts import Comparison, Verdict, Won, compare_verdicts
from graphrag_evaluation.step_models import ROLE
from graphrag_evaluation.steps import Judge
from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.prompting import prompt_version
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import answered_by, prompts_folder
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.schemas import closed, number_of
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.index_store import insert

_COMPARISONS = f"""
SELECT {", ".join(field.name for field in fields(Comparison))} FROM comparisons
WHERE experiment = ? ORDER BY rowid
"""
_WINNERS: Mapping[str, Won] = {"0": "tie", "1": "first", "2": "second", "tie": "tie"}
_PAIRS = """
SELECT q.question_id, q.question, x.condition, y.condition, a.answer_id, a.text, b.answer_id, b.text
FROM experiments
JOIN questions q USING (question_set)
JOIN experiment_answers x USING (experiment, question_id)
JOIN experiment_answers y USING (experiment, question_id)
JOIN conditions cx ON cx.experiment = x.experiment AND cx.condition = x.condition
JOIN conditions cy ON cy.experiment = y.experiment AND cy.condition = y.condition
JOIN answers a ON a.answer_id = x.answer_id
JOIN answers b ON b.answer_id = y.answer_id
WHERE experiment = $experiment AND cx.position < cy.position
  AND ($against = '' OR $against IN (x.condition, y.condition))
  AND ($among = [] OR (list_contains($among, x.condition) AND list_contains($among, y.condition)))
  AND ($questions = 0 OR q.position < $questions)
ORDER BY cx.position, cy.position, q.position
"""


@dataclass(frozen=True)
class ShownAnswer:
    """An answer as the judge sees it."""

    answer_id: str
    text: str


@dataclass(frozen=True)
class AnswerPair:
    """Two conditions' answers to one question."""

    question_id: str
    question: str
    condition_a: str
    condition_b: str
    a: ShownAnswer
    b: ShownAnswer

    @property
    def is_same(self) -> bool:
        """Whether both answers say the same: a tie that no one need be asked about."""
        return self.a.text == self.b.text


@dataclass(frozen=True)
class JudgeModel:
    """The judge: a hash of what decides its verdicts besides the answers.

    ``criteria`` are what the judge is told of each criterion by name.
    """

    version: str
    criteria: Mapping[str, str]


def parse_verdict(text: str) -> Mapping[str, Any]:
    """Return the winner and the reason that a judge's answer gives. Raises ModelOutputError."""
    parsed = parse_json_object(text)
    value = parsed.get("winner")
    word = str(value).strip().lower().removeprefix("answer").strip().removesuffix(".0")
    if word not in _WINNERS:
        raise ModelOutputError('the answer must be a JSON object with a "winner": 1, 2 or 0')
    return {"winner": _WINNERS[word], "explanation": str(parsed.get("reasoning") or "")}


FORM = QuestionForm(
    name=STAGE,
    prompt="judge_answers",
    table="judgments",
    key="judgment_id",
    parse=parse_verdict,
    json_schema=closed(reasoning=REASONING, winner=number_of([0, 1, 2])),
    # The explanations of the recorded judgments have 67 tokens on average.
    answer_tokens=80,
    model="judge",
    made_at="judged_at",
)


def judge_of(
    settings: Settings,
    criteria: Mapping[str, str] | None = None,
    answered: Sequence[object] = (),
) -> JudgeModel:
    """Return the judge that its settings name: their model and prompt.

    ``criteria`` are those of the user's own, ``answered`` what decides its answers besides the
    prompt, where that is more than the settings say.
    """
    prompt = prompt_version(FORM.prompt, folder=prompts_folder(settings))
    answered = answered or answered_by(settings.llm_for(ROLE))
    version = make_id("judge", prompt, *map(repr, answered))
    return JudgeModel(version, {**CRITERIA, **(criteria or {})})


def pairs_of(
    con: duckdb.DuckDBPyConnection,
    experiment: str,
    step: Judge | None = None,
) -> list[AnswerPair]:
    """Return the pairs of answers of an experiment, conditions and questions in their order.

    ``step`` leaves only those that it is to compare, by default all.
    """
    step = step or Judge()
    parameters = {
        "experiment": experiment,
        "against": step.against,
        "among": list(step.among),
        "questions": step.questions,
    }
    rows = con.execute(_PAIRS, parameters).fetchall()
    return [
        AnswerPair(
            question_id=id,
            question=question,
            condition_a=first,
            condition_b=second,
            a=ShownAnswer(a_id, a_text),
            b=ShownAnswer(b_id, b_text),
        )
        for id, question, first, second, a_id, a_text, b_id, b_text in rows
    ]


def open_verdicts(
    con: duckdb.DuckDBPyConnection,
    pairs: Sequence[AnswerPair],
    criteria: Sequence[str],
    replicates: int,
    judge: JudgeModel,
) -> list[EvaluationInquiry]:
    """Return the verdicts on these pairs that are not in ``judgments``, each once: a call each."""
    verdicts = [
        verdict
        for pair in pairs
        if not pair.is_same
        for _, verdict in _verdicts_on(pair, criteria, replicates, judge)
    ]
    return unanswered(con, FORM, verdicts)


def verdicts_of(
    con: duckdb.DuckDBPyConnection,
    pairs: Sequence[AnswerPair],
    criteria: Sequence[str],
    replicates: int,
    judge: JudgeModel,
) -> list[Verdict]:
    """Return the verdicts there are on pairs; identical answers tie without one."""
    expected = [
        (pair, is_ahead, verdict)
        for pair in pairs
        for is_ahead, verdict in _verdicts_on(pair, criteria, replicates, judge)
    ]
    winners = _winners(con, [verdict.id for pair, _, verdict in expected if not pair.is_same])
    return [
        _verdict(pair, is_ahead, verdict, "tie" if pair.is_same else winners[verdict.id])
        for pair, is_ahead, verdict in expected
        if pair.is_same or verdict.id in winners
    ]


def compare(
    con: duckdb.DuckDBPyConnection,
    experiment: str,
    pairs: Sequence[AnswerPair],
    criteria: Sequence[str],
    replicates: int,
    judge: JudgeModel,
) -> list[Comparison]:
    """Compare an experiment's conditions by the verdicts there are, and write ``comparisons``.

    Questions that a pair has verdicts on in one order only do not count. The connection is one of
    a transaction.
    """
    verdicts = verdicts_of(con, pairs, criteria, replicates, judge)
    conditions = dict.fromkeys(n for pair in pairs for n in (pair.condition_a, pair.condition_b))
    comparisons = compare_verdicts(verdicts, list(conditions))
    write_comparisons(con, experiment, comparisons)
    return comparisons


def comparisons_of(con: duckdb.DuckDBPyConnection, experiment: str) -> list[Comparison]:
    """Return how an experiment's conditions compare by its judge's verdicts; none: not judged."""
    return [Comparison(*row) for row in con.execute(_COMPARISONS, [experiment]).fetchall()]


def write_comparisons(
    con: duckdb.DuckDBPyConnection, experiment: str, comparisons: Sequence[Comparison]
) -> None:
    """Make the comparisons of an experiment these."""
    con.execute("DELETE FROM comparisons WHERE experiment = ?", [experiment])
    rows = [
        {
            "experiment": experiment,
            **asdict(comparison),
            "winner": comparison.winner,
            "verdict": explain(comparison),
        }
        for comparison in comparisons
    ]
    if rows:
        insert(con, "comparisons", pl.DataFrame(rows, infer_schema_length=None))


def _verdicts_on(
    pair: AnswerPair, criteria: Sequence[str], replicates: int, judge: JudgeModel
) -> Iterator[tuple[bool, EvaluationInquiry]]:
    """Yield all verdicts on a pair, each with whether condition_a's answer is shown first."""
    hashes = content_hash(pair.a.text), content_hash(pair.b.text)
    for criterion, is_ahead, n in product(criteria, (True, False), range(replicates)):
        first, second = (pair.a, pair.b) if is_ahead else (pair.b, pair.a)
        order = hashes if is_ahead else hashes[::-1]
        meaning = judge.criteria[criterion]
        about = (pair.question, *order, criterion, meaning, n, judge.version)
        id = make_id("judgment", *about)
        yield (
            is_ahead,
            EvaluationInquiry(
                id=id,
                name=criterion,
                values={"criterion": meaning, "question": pair.question,
                        "first_answer": first.text, "second_answer": second.text},
                columns={"question": pair.question, "first_answer": first.answer_id,
                         "second_answer": second.answer_id, "criterion": criterion,
                         "replicate": n},
                replicate=n,
            ),
        )  # fmt: skip


def _winners(con: duckdb.DuckDBPyConnection, ids: Sequence[str]) -> dict[str, Won]:
    """Return the verdicts there are, by id."""
    put_rows(con, "asked", pl.DataFrame({"judgment_id": ids}, schema={"judgment_id": pl.String}))
    try:
        rows = con.execute(
            "SELECT judgment_id, winner FROM judgments SEMI JOIN asked USING (judgment_id)"
        ).fetchall()
    finally:
        drop_rows(con, "asked")
    return dict(rows)


def _verdict(pair: AnswerPair, is_ahead: bool, inquiry: EvaluationInquiry, winner: Won) -> Verdict:
    conditions = pair.condition_a, pair.condition_b
    first, second = conditions if is_ahead else conditions[::-1]
    return Verdict(
        question=pair.question_id,
        criterion=inquiry.name,
        first=first,
        second=second,
        winner=winner,
        replicate=inquiry.replicate,
    )
