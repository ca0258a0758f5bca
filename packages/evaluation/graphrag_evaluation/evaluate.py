"""An experiment from beginning to end: answers, scores, claims, verdicts; and what they cost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphrag_evaluation.experiment import Experiment
from graphrag_evaluation.history import record_means
from graphrag_evaluation.inquiring import Asked
from graphrag_evaluation.judging import (
    assertions,
    claims,
    judge_step,
    reference,
    relevance,
    self_check,
)
from graphrag_evaluation.preset_runs import note_indexes
from graphrag_evaluation.pricing import (
    plan_answers,
    plan_claims_unseen,
)
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.running import (
    AnsweredQuestion,
    Workload,
    answer_questions,
    load_questions,
    look,
    opened,
    told_once,
)
from graphrag_evaluation.scoring import score
from graphrag_evaluation.step_models import ROLE, model_label
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core import showing
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.llm.probing import models_in_use, probing
from graphrag_pipeline.store.spending import ledger_position

GRADINGS = (reference, assertions, relevance, self_check)
"""Modules that plan and run what models do with each answer by itself."""


@dataclass(frozen=True, kw_only=True)
class ExperimentPlan:
    """The work that a run of an experiment would do: answers to make and to reuse, and paid calls.

    ``errors`` are of conditions that cannot be asked, ``notes`` of what would be paid in vain.
    """

    experiment: str
    questions: int
    conditions: int
    to_make: int
    reused: int
    stages: tuple[StagePlan, ...]
    errors: tuple[str, ...]
    notes: tuple[str, ...] = ()

    __repr__ = showing.brief

    @property
    def cost(self) -> float | None:
        """Dollars, None where a price is not known."""
        costs = [stage.cost for stage in self.stages]
        return None if None in costs else sum(cost for cost in costs if cost)


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """The result of a run of an experiment."""

    experiment: str
    answered: AnsweredQuestion
    scores: int
    claims: int
    gradings: int
    verdicts: int
    failures: tuple[str, ...]
    notes: tuple[str, ...] = ()

    __repr__ = showing.brief


def plan_fitted(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    questions: Sequence[Question],
) -> ExperimentPlan:
    """Return what a run of a :func:`~preset_runs.fitted` experiment would do and cost.

    No model is asked. Where no answer of a method is known yet, its tokens are guessed from what it
    retrieves for the first questions.
    """
    conditions = look(store, experiment, settings, questions)
    stages = [
        *plan_answers(store, experiment, settings, conditions),
        *_plan_claims(store, experiment, settings, conditions),
        *(
            stage
            for step in (*GRADINGS, judge_step)
            for stage in step.plan(store, experiment, settings, conditions, questions)
        ),
    ]
    n_missing = sum(len(workload.unanswered) for workload in conditions)
    unaskable = told_once((w.condition, w.error) for w in conditions)
    return ExperimentPlan(
        experiment=experiment.name,
        questions=len(questions),
        conditions=len(experiment.names),
        to_make=n_missing,
        reused=sum(len(workload.answer_ids) for workload in conditions) - n_missing,
        stages=tuple(stages),
        errors=(
            *(f"{name}: {reason}" for name, reason in experiment.lacking),
            *(f"{name}: {reason}" for name, reason in unaskable.items()),
        ),
        notes=(
            *_judged_in_vain(experiment),
            *replicates_in_vain(settings, experiment),
        ),
    )


def run_fitted(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Evaluated:
    """Answer, score and judge what has not been yet; what was done is kept if it ends early.

    Of a :func:`~preset_runs.fitted` experiment. Raises InputError if no condition can be asked, and
    the model's error where no further call can succeed.
    """
    with judges_probed(experiment, settings):
        summary = answer_questions(store, experiment, settings)
        scores = score_answers(store, experiment, settings)
        examined, unexamined = count_claims(store, experiment, settings)
        graded = grade_answers(store, experiment, settings)
        judged = judge_answers(store, experiment, settings)
    with store.transaction() as con:
        record_means(con, experiment.name)
    if experiment.preset:
        note_indexes(store, experiment, settings)
    finish(store, experiment)
    return Evaluated(
        experiment=experiment.name,
        answered=summary,
        scores=scores,
        claims=examined,
        gradings=graded.made,
        verdicts=judged.made,
        failures=(*unexamined, *graded.failures, *judged.failures),
    )


@contextlib.contextmanager
def judges_probed(experiment: Experiment, settings: Settings) -> Iterator[None]:
    """Ask the models that look at answers whether they are there before the first answer is paid.

    The first call within that finds one that cannot be used raises its TerminalModelError.
    """
    models = [
        model
        for step in experiment.steps
        for model in models_in_use(step.settings(settings), [ROLE])
    ]
    with probing(settings, models, ledger_position(settings)):
        yield


def finish(store: EvaluationStore, experiment: Experiment) -> None:
    """Note that all of an experiment is done."""
    with store.transaction() as con:
        con.execute(
            "UPDATE experiments SET finished_at = now() WHERE experiment = ?", [experiment.name]
        )


def score_answers(store: EvaluationStore, experiment: Experiment, settings: Settings) -> int:
    """Score an experiment's answers by the gold there is; return how many scores were written."""
    set_name, questions = load_questions(store, experiment)
    if not any(question.answers or question.passages for question in questions):
        return 0
    n_scores = 0
    if any(condition.given for condition in experiment.conditions):
        n_scores += score(store, None, set_name, experiment.metrics, settings)
    for engine in opened(experiment, settings):
        n_scores += score(store, engine.index, set_name, experiment.metrics, settings)
    return n_scores


def count_claims(
    store: EvaluationStore, experiment: Experiment, settings: Settings
) -> tuple[int, tuple[str, ...]]:
    """Count the claims of an experiment's answers; return how many were examined, and failures."""
    if experiment.claims is None:
        return 0, ()
    settings = experiment.claims.settings(settings)
    extractor = claims.extractor_of(settings, experiment.claims.answered_by(settings))
    with store.read() as con:
        answers = con.execute(
            "SELECT DISTINCT answer_id FROM experiment_answers WHERE experiment = ?",
            [experiment.name],
        ).fetchall()
        unexamined = claims.unexamined_answers(con, [id for (id,) in answers], extractor)
    model = model_label(experiment.claims, settings)
    examined = claims.examine(settings, store, unexamined, extractor=extractor, model=model)
    claims.score_claims(store, experiment.name, experiment.claims.thresholds, model)
    return examined.made, examined.failures


def grade_answers(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Asked:
    """Have models grade an experiment's answers in the ways it names, but for judge and claims."""
    outcome = Asked()
    for step in GRADINGS:
        outcome += step.run(store, experiment, settings)
    return outcome


def judge_answers(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Asked:
    """Have the judge compare an experiment's answers; return its new verdicts, and failures."""
    return judge_step.run(store, experiment, settings)


def _plan_claims(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    conditions: Sequence[Workload],
) -> list[StagePlan]:
    if experiment.claims is None:
        return []
    settings = experiment.claims.settings(settings)
    extractor = claims.extractor_of(settings, experiment.claims.answered_by(settings))
    ids = {id for workload in conditions for id in workload.answer_ids.values()}
    with store.read() as con:
        unexamined = claims.unexamined_answers(con, ids, extractor)
    if to_make := sum(len(workload.unanswered) for workload in conditions):
        return [plan_claims_unseen(settings, to_make + len(unexamined))]
    return [claims.plan_claims(settings, unexamined)]


def _judged_in_vain(experiment: Experiment) -> tuple[str, ...]:
    """Say where a judge has nothing to compare."""
    if experiment.judge is None or len(experiment.names) > 1:
        return ()
    return ("judge: it compares conditions, and there is one: name several methods",)


def replicates_in_vain(settings: Settings, experiment: Experiment) -> tuple[str, ...]:
    """Say of which steps the replicates are the same call at temperature 0."""
    steps = {
        "judge": experiment.judge,
        "reference": experiment.reference,
        "assertions": experiment.assertions,
    }
    return tuple(
        f"{name}: {step.replicates} replicates at temperature 0 are the same call made "
        f"{step.replicates} times, and differ by the server's chance alone: set temperature above "
        f"0, or replicates = 1, in [{name}]"
        for name, step in steps.items()
        if step and step.replicates > 1 and not step.settings(settings).llm.temperature
    )
