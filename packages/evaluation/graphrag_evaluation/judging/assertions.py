"""Assertions that a complete answer must make: written from the corpus, and checked in answers.

After benchmark-qed's assertions. For each question a model writes assertions from the passages
that full text search finds in the corpus, whatever method is evaluated, and names the sentences
that each comes from; one without a sentence is left out. A question that has assertions of its own
keeps these. Then a model is shown each answer with the assertions of its question, in one call, and
names those that the answer meets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import duckdb
import polars as pl

from graphrag_evaluation.inquiring import (
    Asked,
    EvaluationInquiry,
    QuestionForm,
    ask_inquiries,
    grade,
    made_by,
    plan_inquiries,
    plan_missing,
    plan_unseen,
    share_of,
    unanswered,
    whole_numbers,
)
from graphrag_evaluation.metrics.answers import bare, sentence_texts
from graphrag_evaluation.questions.fields import ASSERTIONS, sourced
from graphrag_evaluation.running import load_questions, open_engine
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.parsing import parse_json_list
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed
from graphrag_pipeline.store.frames import streamed

if TYPE_CHECKING:
    from graphrag_evaluation.experiment import Condition, Experiment
    from graphrag_evaluation.questions.question import Question
    from graphrag_evaluation.running import Workload
    from graphrag_evaluation.steps import Assertions
    from graphrag_pipeline.llm.pricing import StagePlan

METRIC: Final = "assertions_met"
_STATEMENT_TOKENS, _ANSWER_TOKENS = 40, 700
_LISTED = pl.List(pl.Struct({"statement": pl.String, "sources": pl.List(pl.String)}))
_KEPT = "SELECT set_id, assertions FROM assertion_sets SEMI JOIN asked USING (set_id)"
_ANSWERS = """
SELECT a.answer_id, x.question_id, a.question, a.text
FROM (SELECT DISTINCT answer_id, question_id FROM experiment_answers WHERE experiment = ?) x
JOIN answers a USING (answer_id) WHERE a.text <> '' ORDER BY ALL
"""
_MOST_CHECKED = 50


def parse_assertions(text: str) -> Mapping[str, Any]:
    """Return statements with the numbers of their sentences. Raises ModelOutputError."""
    listed = parse_json_list(text, "assertions")
    return {"assertions": [item for item in listed if isinstance(item, Mapping)]}


def parse_met(text: str) -> Mapping[str, Any]:
    """Return the numbers of the assertions that are met. Raises ModelOutputError."""
    return {"met": whole_numbers(text, "met")}


WRITING = QuestionForm(
    name="assertions",
    prompt="write_assertions",
    table="assertion_sets",
    key="set_id",
    parse=parse_assertions,
    json_schema=closed(assertions=ASSERTIONS),
    answer_tokens=300,
    columns={"assertions": _LISTED, "chunk_ids": pl.List(pl.String)},
)
CHECKING = QuestionForm(
    name="assertion checks",
    prompt="check_assertions",
    table="gradings",
    key="grading_id",
    parse=parse_met,
    json_schema=closed(met=listed(INTEGER, _MOST_CHECKED)),
    answer_tokens=30,
)


def plan(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    workloads: Sequence[Workload],
    questions: Sequence[Question],
) -> list[StagePlan]:
    """Return the calls that write the missing assertions, and those that check the answers."""
    if (step := experiment.assertions) is None:
        return []
    asking = step.settings(settings)
    written = _writing(experiment, step, settings, questions)
    with store.read() as con:
        missing = unanswered(con, WRITING, list(written.values()))
        if missing or any(workload.unanswered for workload in workloads):
            answers = sum(len(workload.answer_ids) for workload in workloads)
            tokens = _ANSWER_TOKENS + step.per_question * _STATEMENT_TOKENS
            checks = plan_unseen(asking, CHECKING, answers * step.replicates, tokens)
        else:
            inquiries = _checking(con, experiment.name, step, asking, questions, written)
            checks = plan_missing(con, asking, CHECKING, inquiries)
    return [plan_inquiries(asking, WRITING, missing), checks]


def run(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Asked:
    """Write the assertions that are missing, and check the answers that were not checked yet."""
    if (step := experiment.assertions) is None:
        return Asked()
    _, questions = load_questions(store, experiment)
    asking = step.settings(settings)
    written = _writing(experiment, step, settings, questions)
    asked = ask_inquiries(asking, store, WRITING, list(written.values()))
    with store.read() as con:
        inquiries = _checking(con, experiment.name, step, asking, questions, written)
    return asked + grade(step, asking, store, CHECKING, inquiries, experiment.name, METRIC)


def _writing(
    experiment: Experiment, step: Assertions, settings: Settings, questions: Sequence[Question]
) -> dict[str, EvaluationInquiry]:
    """Return what is to be asked for assertions, by the id of each question that has none."""
    questions = [question for question in questions if not question.assertions]
    if not questions:
        return {}
    asked_here = [condition for condition in experiment.conditions if condition.given is None]
    if not asked_here:
        raise InputError("[assertions] are written from an index: name a method, too")
    version = made_by(WRITING, step, step.settings(settings))
    inquiries = {}
    for condition in asked_here:
        if condition.name == asked_here[0].name:
            asked = [q for q in questions if condition.asks is None or q.id in condition.asks]
            inquiries |= _writing_of(condition, step, settings, asked, version)
    return inquiries


def _writing_of(
    condition: Condition,
    step: Assertions,
    settings: Settings,
    questions: Sequence[Question],
    version: str,
) -> dict[str, EvaluationInquiry]:
    inquiries = {}
    with open_engine(condition, settings) as engine:
        for question in questions:
            found = engine.rehearse(question.text, "bm25", top_k=step.passages)
            chunks = [record for record in found.records if record.kind == "chunk"]
            sentences = [sentence for chunk in chunks for sentence in sentence_texts(chunk.text)]
            if not sentences:
                continue
            shown = "\n".join(f"{n}. {sentence}" for n, sentence in enumerate(sentences, 1))
            about = (question.text, content_hash(shown), step.per_question, version)
            inquiries[question.id] = EvaluationInquiry(
                id=make_id("assertions", *map(str, about)),
                values={"question": question.text, "context": shown,
                        "number": str(step.per_question)},
                columns={"question": question.text,
                         "chunk_ids": [chunk.id for chunk in chunks]},
                finish=partial(_with_sources, sentences=sentences, most=step.per_question),
            )  # fmt: skip
    return inquiries


def _with_sources(
    values: Mapping[str, Any], *, sentences: Sequence[str], most: int
) -> Mapping[str, Any]:
    """Return the assertions that have a sentence, with it; none is an answer, too."""
    kept = sourced(values["assertions"], len(sentences))
    listed = [
        {"statement": text, "sources": [sentences[n - 1] for n in numbers]}
        for text, numbers in kept.items()
    ]
    return {"assertions": listed[:most]}


def _checking(
    con: duckdb.DuckDBPyConnection,
    experiment: str,
    step: Assertions,
    settings: Settings,
    questions: Sequence[Question],
    written: Mapping[str, EvaluationInquiry],
) -> list[EvaluationInquiry]:
    statements = {**_written(con, written), **_own(questions)}
    version = made_by(CHECKING, step, settings)
    inquiries = []
    for answer_id, question_id, question, text in con.execute(_ANSWERS, [experiment]).fetchall():
        set_id, listed = statements.get(question_id, ("", ()))
        if not listed:
            continue
        facts = "\n".join(f"{n}. {statement}" for n, statement in enumerate(listed, 1))
        shown = bare(text)
        about = (question, content_hash(shown), content_hash(facts), version)
        inquiries += [
            EvaluationInquiry(
                id=make_id("assertion check", *about, str(n)),
                values={"question": question, "facts": facts, "text": shown},
                columns={"kind": "assertion", "question": question, "answer_id": answer_id,
                         "subject": set_id, "replicate": n},
                replicate=n,
                finish=partial(share_of, key="met", most=len(listed), said="met"),
            )
            for n in range(step.replicates)
        ]  # fmt: skip
    return inquiries


def _written(
    con: duckdb.DuckDBPyConnection, written: Mapping[str, EvaluationInquiry]
) -> dict[str, tuple[str, Sequence[str]]]:
    """Return the sets that a model wrote, with their ids, by question."""
    ids = pl.DataFrame(
        {"set_id": [inquiry.id for inquiry in written.values()]}, {"set_id": pl.String}
    )
    with streamed(con, "asked", ids):
        sets = dict(con.execute(_KEPT).fetchall())
    return {
        question: (inquiry.id, [item["statement"] for item in sets[inquiry.id]])
        for question, inquiry in written.items()
        if inquiry.id in sets
    }


def _own(questions: Sequence[Question]) -> dict[str, tuple[str, Sequence[str]]]:
    """Return the assertions that questions have themselves, with a hash of them."""
    listed = {
        question.id: [assertion.statement for assertion in question.assertions]
        for question in questions
        if question.assertions
    }
    return {id: (make_id("own assertions", *texts), texts) for id, texts in listed.items()}
