"""Answers scored against reference answers by a model, from 1 to 10.

After the reference scores of benchmark-qed: correctness and completeness, each in a call of its
own, over replicates. The prompt is our own wording. References are the gold answers of the
question set, or the answers of one condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import duckdb

from graphrag_evaluation.inquiring import (
    REASONING,
    Asked,
    EvaluationInquiry,
    QuestionForm,
    grade,
    made_by,
    plan_missing,
    plan_unseen,
)
from graphrag_evaluation.metrics.answers import bare
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.schemas import closed, number_of

if TYPE_CHECKING:
    from graphrag_evaluation.experiment import Experiment
    from graphrag_evaluation.questions.question import Question
    from graphrag_evaluation.running import Workload
    from graphrag_evaluation.steps import Reference
    from graphrag_pipeline.llm.pricing import StagePlan

METRIC = "reference_{}"
LOWEST, HIGHEST = 1, 10
_UNSEEN_TOKENS = 1200
"""An answer that is not made yet, its question and its reference."""
_ANSWERS = """
SELECT a.answer_id, a.question, a.text, coalesce(r.text, '') AS reference, q.answers
FROM (SELECT DISTINCT answer_id, question_id FROM experiment_answers
      WHERE experiment = $experiment AND condition <> $condition) x
JOIN answers a USING (answer_id)
JOIN questions q ON q.question_id = x.question_id
    AND q.question_set = (SELECT question_set FROM experiments WHERE experiment = $experiment)
LEFT JOIN experiment_answers y ON y.experiment = $experiment AND y.condition = $condition
    AND y.question_id = x.question_id
LEFT JOIN answers r ON r.answer_id = y.answer_id
WHERE a.text <> '' ORDER BY q.position, a.answer_id
"""


def parse_score(text: str) -> Mapping[str, Any]:
    """Return the score and the reason in a model's answer. Raises ModelOutputError."""
    parsed = parse_json_object(text)
    value = parsed.get("score")
    try:
        score = float(str(value).strip().removesuffix("/10"))
    except ValueError:
        score = 0.0
    if not LOWEST <= score <= HIGHEST:
        raise ModelOutputError('the answer must be a JSON object with a "score" from 1 to 10')
    return {"value": score, "reason": str(parsed.get("reasoning") or "")}


FORM = QuestionForm(
    name="reference",
    prompt="grade_answer",
    table="gradings",
    key="grading_id",
    parse=parse_score,
    json_schema=closed(reasoning=REASONING, score=number_of(range(LOWEST, HIGHEST + 1))),
    answer_tokens=80,
)


def plan(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    workloads: Sequence[Workload],
    questions: Sequence[Question],
) -> list[StagePlan]:
    """Return the calls that the scores that are missing take."""
    if (step := experiment.reference) is None:
        return []
    settings = step.settings(settings)
    if any(workload.unanswered for workload in workloads):
        has_reference = sum(bool(q.answers) or bool(step.condition) for q in questions)
        conditions = sum(not w.error and w.condition.name != step.condition for w in workloads)
        calls = has_reference * conditions * len(step.criteria) * step.replicates
        return [plan_unseen(settings, FORM, calls, _UNSEEN_TOKENS)]
    with store.read() as con:
        inquiries = _inquiries(con, experiment.name, step, settings)
        return [plan_missing(con, settings, FORM, inquiries)]


def run(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Asked:
    """Score the answers of an experiment that have a reference, those not scored yet."""
    if (step := experiment.reference) is None:
        return Asked()
    settings = step.settings(settings)
    with store.read() as con:
        inquiries = _inquiries(con, experiment.name, step, settings)
    return grade(step, settings, store, FORM, inquiries, experiment.name, METRIC)


def _inquiries(
    con: duckdb.DuckDBPyConnection, experiment: str, step: Reference, settings: Settings
) -> list[EvaluationInquiry]:
    rows = con.execute(_ANSWERS, {"experiment": experiment, "condition": step.condition}).fetchall()
    version = made_by(FORM, step, settings)
    meanings = {name: step.meanings[name] for name in step.criteria}
    inquiries = []
    for answer_id, question, text, reference, gold in rows:
        known = bare(reference) if step.condition else "\n".join(f"- {answer}" for answer in gold)
        if not known:
            continue
        shown = bare(text)
        about = (question, content_hash(shown), content_hash(known), version)
        inquiries += [
            EvaluationInquiry(
                id=make_id("reference", *about, name, meaning, n),
                values={"criterion": meaning, "question": question, "answers": known,
                        "text": shown},
                columns={"kind": "reference", "question": question, "answer_id": answer_id,
                         "subject": name, "replicate": n},
                replicate=n,
            )
            for (name, meaning), n in product(meanings.items(), range(step.replicates))
        ]  # fmt: skip
    return inquiries
