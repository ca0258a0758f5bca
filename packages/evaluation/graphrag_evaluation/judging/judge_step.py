"""The judge's part of an experiment: which verdicts are missing, what they take, and their sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_evaluation.inquiring import Asked, ask_inquiries, plan_inquiries, plan_unseen
from graphrag_evaluation.judging import differential
from graphrag_evaluation.judging import judge as judging
from graphrag_evaluation.judging.agreement import keep_agreements
from graphrag_evaluation.pricing import plan_judging_unseen
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.settings import Settings

if TYPE_CHECKING:
    from graphrag_evaluation.experiment import Experiment
    from graphrag_evaluation.questions.question import Question
    from graphrag_evaluation.running import Workload
    from graphrag_evaluation.steps import Judge
    from graphrag_pipeline.llm.pricing import StagePlan

_TWO_ANSWERS = 1300


def plan(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    workloads: Sequence[Workload],
    questions: Sequence[Question],
) -> list[StagePlan]:
    """Return the calls that the missing verdicts take, and the shared sentences before them.

    Verdicts on answers whose shared sentences are not known yet are reckoned as of whole answers.
    """
    if (step := experiment.judge) is None:
        return []
    settings = step.settings(settings)
    n_verdicts = len(step.criteria) * step.replicates * 2
    if any(workload.unanswered for workload in workloads):
        n_questions = min(step.questions or len(questions), len(questions))
        pairs = _pairs(step, workloads) * n_questions
        first = [plan_unseen(settings, differential.FORM, pairs, _TWO_ANSWERS)]
        stages = first if step.differential else []
        return [*stages, plan_judging_unseen(settings, pairs * n_verdicts)]
    with store.read() as con:
        pairs = judging.pairs_of(con, experiment.name, step)
        stages = []
        if step.differential:
            asked = differential.inquiries_of(pairs, step, settings)
            missing = differential.missing_inquiries(con, asked)
            stages = [plan_inquiries(settings, differential.FORM, missing)]
            reduced = differential.without_shared(con, pairs, asked)
            known = {(pair.a.answer_id, pair.b.answer_id) for pair in reduced}
            pairs = reduced + [
                pair for pair in pairs if (pair.a.answer_id, pair.b.answer_id) not in known
            ]
        judge = _judge_of(step, settings)
        verdicts = judging.open_verdicts(con, pairs, _names(step), step.replicates, judge)
    return [*stages, plan_inquiries(settings, judging.FORM, verdicts)]


def run(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Asked:
    """Have the judge compare an experiment's answers; return its new verdicts, and failures."""
    if (step := experiment.judge) is None:
        with store.transaction() as con:
            for table in ("comparisons", "agreements"):
                con.execute(f"DELETE FROM {table} WHERE experiment = ?", [experiment.name])
        return Asked()
    settings = step.settings(settings)
    judge = _judge_of(step, settings)
    with store.read() as con:
        pairs = judging.pairs_of(con, experiment.name, step)
    failures: tuple[str, ...] = ()
    if step.differential:
        shared = differential.inquiries_of(pairs, step, settings)
        with store.read() as con:
            missing = differential.missing_inquiries(con, shared)
        failures = ask_inquiries(settings, store, differential.FORM, missing).failures
        with store.read() as con:
            pairs = differential.without_shared(con, pairs, shared)
    with store.read() as con:
        verdicts = judging.open_verdicts(con, pairs, _names(step), step.replicates, judge)
    judged = ask_inquiries(settings, store, judging.FORM, verdicts)
    with store.transaction() as con:
        given = (pairs, _names(step), step.replicates, judge)
        judging.compare(con, experiment.name, *given)
        keep_agreements(con, experiment.name, judging.verdicts_of(con, *given))
    return Asked(judged.made, (*failures, *judged.failures))


def _names(step: Judge) -> list[str]:
    return [f"{name}{differential.SUFFIX * step.differential}" for name in step.criteria]


def _judge_of(step: Judge, settings: Settings) -> judging.JudgeModel:
    criteria = step.meanings
    if step.differential:
        criteria = differential.differential_criteria(criteria)
    return judging.judge_of(settings, criteria, step.answered_by(settings))


def _pairs(step: Judge, workloads: Sequence[Workload]) -> int:
    names = [workload.condition.name for workload in workloads if not workload.error]
    n = sum(name in step.among for name in names) if step.among else len(names)
    return max(0, n - 1 if step.against else n * (n - 1) // 2)
