"""Fabrication by sampling: what a model says by chance it does not say again.

After SelfCheckGPT with prompts (Manakul et al., 2023), which GraphRAG names as a next step (6.1). A
condition answers each question some times more, by the same method from the same index, at a
temperature at which answers differ; another model says for each of these which sentences of the
answer it supports. ``self_consistency`` is the share that is supported, the mean over the samples:
1 less SelfCheckGPT's score. There a call is about one sentence and one sample; here it is about all
sentences of an answer, and the prompt is our own wording.

A sample is an answer like others, told apart by its seed: those that were made are not made again.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import duckdb
import polars as pl

from graphrag_evaluation.inquiring import (
    Asked,
    EvaluationInquiry,
    QuestionForm,
    grade,
    made_by,
    plan_missing,
    plan_unseen,
    share_of,
    whole_numbers,
)
from graphrag_evaluation.metrics.answers import bare, sentence_texts
from graphrag_evaluation.pricing import plan_answers
from graphrag_evaluation.running import (
    UnaskableError,
    Workload,
    load_questions,
    look,
    make_missing,
)
from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.progress import report
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed
from graphrag_pipeline.store.frames import streamed

if TYPE_CHECKING:
    from graphrag_evaluation.experiment import Experiment
    from graphrag_evaluation.questions.question import Question
    from graphrag_evaluation.steps import SelfCheck
    from graphrag_evaluation.store import EvaluationStore
    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.llm.pricing import StagePlan

METRIC: Final = "self_consistency"
_UNSEEN_TOKENS = 1300
"""Two answers that are not made yet, and their question."""
_MOST_SENTENCES = 200
_SAMPLES = {
    "answer_id": pl.String,
    "temperature": pl.Float64,
    "replicate": pl.Int32,
    "sample_id": pl.String,
}
_PAIRS = """
SELECT DISTINCT a.answer_id, a.question, a.text, s.replicate, b.text
FROM experiment_answers x
JOIN answers a USING (answer_id)
JOIN answer_samples s USING (answer_id)
JOIN answers b ON b.answer_id = s.sample_id
WHERE x.experiment = $experiment AND s.replicate < $samples AND s.temperature = $temperature
  AND a.text <> '' AND b.text <> ''
ORDER BY ALL
"""


def parse_supported(text: str) -> Mapping[str, Any]:
    """Return the numbers of the sentences that are supported. Raises ModelOutputError."""
    return {"supported": whole_numbers(text, "supported")}


FORM = QuestionForm(
    name="self-check",
    prompt="check_sentences",
    table="gradings",
    key="grading_id",
    parse=parse_supported,
    json_schema=closed(supported=listed(INTEGER, _MOST_SENTENCES)),
    answer_tokens=40,
)


def plan(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    workloads: Sequence[Workload],
    questions: Sequence[Question],
) -> list[StagePlan]:
    """Return the calls that the missing samples take, and those that compare answers with them."""
    if (step := experiment.self_check) is None:
        return []
    asking = step.settings(settings)
    samples = _samples(store, experiment, step, settings, questions)
    stages = plan_answers(store, experiment, settings, _as_one(samples))
    sampled = [workload for _, workloads in samples for workload in workloads]
    if any(workload.unanswered for workload in (*workloads, *sampled)):
        calls = sum(len(workload.answer_ids) for workload in sampled)
        return [*stages, plan_unseen(asking, FORM, calls, _UNSEEN_TOKENS)]
    with store.read() as con:
        inquiries = _inquiries(con, experiment.name, step, asking)
        return [*stages, plan_missing(con, asking, FORM, inquiries)]


def run(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Asked:
    """Make the samples that are missing, and compare the answers with them that were not yet."""
    if (step := experiment.self_check) is None:
        return Asked()
    _, questions = load_questions(store, experiment)
    samples = _samples(store, experiment, step, settings, questions)
    problems = _make(store, experiment, samples)
    answers = look(store, experiment, settings, questions)
    with store.transaction() as con:
        _note(con, step, answers, [workloads for _, workloads in samples])
    asking = step.settings(settings)
    with store.read() as con:
        inquiries = _inquiries(con, experiment.name, step, asking)
    asked = grade(step, asking, store, FORM, inquiries, experiment.name, METRIC)
    return Asked(0, tuple(problems)) + asked


def _samples(
    store: EvaluationStore,
    experiment: Experiment,
    step: SelfCheck,
    settings: Settings,
    questions: Sequence[Question],
) -> list[tuple[Settings, list[Workload]]]:
    """Return for each sample the settings it is made with, and what it has and lacks.

    Of answers that are made elsewhere, or from as much as those of another condition, none are.
    """
    asked = [each for each in experiment.conditions if each.given is None and not each.as_much_as]
    if settings.query.answers != "llm" or not asked:
        return []
    again = replace(experiment, conditions=tuple(asked))
    settings_of = [_by_chance(settings, step, seed) for seed in range(1, step.samples + 1)]
    return [(own, look(store, again, own, questions)) for own in settings_of]


def _by_chance(settings: Settings, step: SelfCheck, seed: int) -> Settings:
    """Return settings by which the same question has another answer, the same for the same seed."""
    model, name = settings.llm_for("answers"), settings.model_for("answers")
    drawn = {"temperature": step.sampling_temperature, "extra": {**model.extra, "seed": seed}}
    if name not in settings.models:
        return settings.model_copy(update={"llm": settings.llm.model_copy(update=drawn)})
    models = {**settings.models, name: settings.models[name].model_copy(update=drawn)}
    return settings.model_copy(update={"models": models})


def _as_one(samples: Sequence[tuple[Settings, Sequence[Workload]]]) -> list[Workload]:
    """Return the samples of each condition as one share, with all that they lack."""
    return [
        replace(
            first,
            condition=replace(first.condition, name=f"{first.condition.name}, samples"),
            unanswered=tuple(question for each in same for question in each.unanswered),
        )
        for same in zip(*(workloads for _, workloads in samples), strict=True)
        if not (first := same[0]).error
    ]


def _make(
    store: EvaluationStore,
    experiment: Experiment,
    samples: Sequence[tuple[Settings, Sequence[Workload]]],
) -> list[str]:
    """Make the samples that are missing; return why some could not be made."""
    total = sum(len(workload.unanswered) for _, workloads in samples for workload in workloads)
    made = itertools.count(1)
    problems: list[str] = []
    for settings, workloads in samples:
        for workload in workloads:
            try:
                problems += make_missing(
                    store, experiment, settings, workload,
                    lambda: report("samples", next(made), total),
                )  # fmt: skip
            except UnaskableError as error:
                problems.append(f"{workload.condition.label}: {error}")
    return problems


def _note(
    con: duckdb.DuckDBPyConnection,
    step: SelfCheck,
    answers: Sequence[Workload],
    samples: Sequence[Sequence[Workload]],
) -> None:
    """Write which answers are samples of which, in place of what was known of these."""
    own = {workload.condition.label: workload.answer_ids for workload in answers}
    rows = [
        (own[workload.condition.label][question], step.sampling_temperature, number, sample)
        for number, workloads in enumerate(samples)
        for workload in workloads
        for question, sample in workload.answer_ids.items()
    ]
    table = pl.DataFrame(rows, _SAMPLES, orient="row")
    with streamed(con, "sampled", table):
        con.execute("INSERT OR REPLACE INTO answer_samples BY NAME SELECT * FROM sampled")


def _inquiries(
    con: duckdb.DuckDBPyConnection, experiment: str, step: SelfCheck, settings: Settings
) -> list[EvaluationInquiry]:
    given = {
        "experiment": experiment,
        "samples": step.samples,
        "temperature": step.sampling_temperature,
    }
    version = made_by(FORM, step, settings)
    inquiries = []
    for answer_id, question, text, number, sample in con.execute(_PAIRS, given).fetchall():
        sentences = sentence_texts(bare(text))[:_MOST_SENTENCES]
        shown = "\n".join(f"{n}. {sentence}" for n, sentence in enumerate(sentences, 1))
        other = bare(sample)
        about = (question, content_hash(shown), content_hash(other), number, version)
        inquiries.append(
            EvaluationInquiry(
                id=make_id("self-check", *map(str, about)),
                values={"question": question, "facts": shown, "text": other},
                columns={"kind": "self-check", "question": question, "answer_id": answer_id,
                         "subject": METRIC, "replicate": number},
                finish=partial(share_of, key="supported", most=len(sentences),
                               said="not supported", tells_others=True),
            )
        )  # fmt: skip
    return inquiries
