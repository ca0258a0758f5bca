"""An experiment from beginning to end: answers, scores, claims, verdicts; and what they cost."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_pipeline.core.errors import InputError, NothingPublishedError, StorageError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.evaluation import claims, judging
from graphrag_pipeline.evaluation.experiment import Experiment, Judge
from graphrag_pipeline.evaluation.history import record_means
from graphrag_pipeline.evaluation.pricing import (
    plan_answers,
    plan_claims_unseen,
    plan_judging_unseen,
)
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.evaluation.running import (
    Answered,
    Asked,
    answer_questions,
    load_questions,
    look,
    opened,
)
from graphrag_pipeline.evaluation.scoring import check_metrics, score
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.llm.configured import spending_since
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.store.spending import ledger_position


@dataclass(frozen=True)
class ExperimentPlan:
    """What a run of an experiment would do: answers to make and to reuse, and paid calls."""

    experiment: str
    questions: int
    conditions: int
    to_make: int
    reused: int
    stages: tuple[StagePlan, ...]
    errors: tuple[str, ...]

    @property
    def cost(self) -> float | None:
        """Dollars, None where a price is not known."""
        costs = [stage.cost for stage in self.stages]
        return None if None in costs else sum(cost for cost in costs if cost)


@dataclass(frozen=True)
class Evaluated:
    """What a run of an experiment did."""

    experiment: str
    answered: Answered
    scores: int
    claims: int
    verdicts: int
    failures: tuple[str, ...]


def plan_experiment(settings: Settings, experiment: Experiment) -> ExperimentPlan:
    """Return what a run would do and cost; no model is asked.

    Where no answer of a method is known yet, its tokens are guessed from what it retrieves for the
    first questions. Raises InputError for questions or metrics that there are not.
    """
    check_metrics(experiment.metrics)
    store = EvaluationStore(settings.home_path)
    _, asked = load_questions(store, experiment)
    conditions = look(store, experiment, settings, asked)
    stages = [
        *plan_answers(store, experiment, settings, conditions),
        *_plan_claims(store, experiment, settings, conditions),
        *_plan_verdicts(store, experiment, settings, conditions, asked),
    ]
    missing = sum(len(one.missing) for one in conditions)
    return ExperimentPlan(
        experiment.name,
        len(asked),
        len(conditions),
        missing,
        sum(len(one.wanted) for one in conditions) - missing,
        tuple(stages),
        tuple(f"{one.condition.name}: {one.error}" for one in conditions if one.error),
    )


def run_experiment(settings: Settings, experiment: Experiment) -> Evaluated:
    """Answer, score and judge what has not been yet; what was done is kept if it ends early.

    The budget is of the whole run.

    Raises InputError if no condition can be asked, and the model's error where no further call can
    succeed.
    """
    check_metrics(experiment.metrics)
    with spending_since(ledger_position(settings.home_path)):
        return _run(EvaluationStore(settings.home_path), experiment, settings)


def _run(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Evaluated:
    answered = answer_questions(store, experiment, settings)
    scores = score_answers(store, experiment, settings)
    examined, unexamined = count_claims(store, experiment, settings)
    verdicts, unjudged = judge_answers(store, experiment, settings)
    with store.transaction() as con:
        record_means(con, experiment.name)
    finish(store, experiment)
    return Evaluated(
        experiment.name, answered, scores, examined, verdicts, (*unexamined, *unjudged)
    )


def finish(store: EvaluationStore, experiment: Experiment) -> None:
    """Note that all of an experiment is done."""
    with store.transaction() as con:
        con.execute(
            "UPDATE experiments SET finished_at = now() WHERE experiment = ?", [experiment.name]
        )


def score_answers(store: EvaluationStore, experiment: Experiment, settings: Settings) -> int:
    """Score an experiment's answers by the gold there is; return how many scores were written."""
    set_name, asked = load_questions(store, experiment)
    if not any(question.answers or question.passages for question in asked):
        return 0
    written, seen = 0, set[str]()
    for condition in experiment.conditions:
        # What cannot be opened was left out of the answers, too, and told.
        unaskable = contextlib.suppress(NothingPublishedError, InputError, StorageError)
        with unaskable, opened(condition, settings) as engine:
            if (release := engine.index).facts.id in seen:
                continue
            seen.add(release.facts.id)
            written += score(store, release, set_name, experiment.metrics)
    return written


def count_claims(
    store: EvaluationStore, experiment: Experiment, settings: Settings
) -> tuple[int, tuple[str, ...]]:
    """Count the claims of an experiment's answers; return how many were examined, and failures."""
    if experiment.claims is None:
        return 0, ()
    with store.read() as con:
        found = con.execute(
            "SELECT DISTINCT answer_id FROM experiment_answers WHERE experiment = ?",
            [experiment.name],
        ).fetchall()
        wanted = claims.missing(con, [id for (id,) in found], claims.extractor_of(settings))
    done = claims.examine(settings, store, wanted)
    claims.score_claims(store, experiment.name, experiment.claims.thresholds)
    return done.made, done.failures


def judge_answers(
    store: EvaluationStore, experiment: Experiment, settings: Settings
) -> tuple[int, tuple[str, ...]]:
    """Have the judge compare an experiment's answers; return its new verdicts, and failures."""
    if (given := experiment.judge) is None:
        with store.transaction() as con:
            con.execute("DELETE FROM comparisons WHERE experiment = ?", [experiment.name])
        return 0, ()
    judge = judging.judge_of(settings)
    with store.read() as con:
        pairs = judging.pairs_of(
            con, experiment.name, against=given.against, questions=given.questions
        )
        wanted = judging.missing(con, pairs, given.criteria, given.replicates, judge)
    done = judging.judge(settings, store, wanted)
    with store.transaction() as con:
        judging.compare(con, experiment.name, pairs, given.criteria, given.replicates, judge)
    return done.made, done.failures


def _plan_claims(
    store: EvaluationStore, experiment: Experiment, settings: Settings, conditions: Sequence[Asked]
) -> list[StagePlan]:
    if experiment.claims is None:
        return []
    ids = {id for one in conditions for id in one.wanted.values()}
    with store.read() as con:
        wanted = claims.missing(con, ids, claims.extractor_of(settings))
    if to_make := sum(len(one.missing) for one in conditions):
        return [plan_claims_unseen(settings, to_make + len(wanted))]
    return [claims.plan_claims(settings, wanted)]


def _plan_verdicts(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    conditions: Sequence[Asked],
    asked: Sequence[Question],
) -> list[StagePlan]:
    given = experiment.judge
    if given is None:
        return []
    if any(one.missing for one in conditions):
        n_questions = min(given.questions or len(asked), len(asked))
        n_pairs = _pairs(given, sum(not one.error for one in conditions)) * n_questions
        return [plan_judging_unseen(settings, n_pairs * len(given.criteria) * given.replicates * 2)]
    judge = judging.judge_of(settings)
    with store.read() as con:
        pairs = judging.pairs_of(
            con, experiment.name, against=given.against, questions=given.questions
        )
        wanted = judging.missing(con, pairs, given.criteria, given.replicates, judge)
    return [judging.plan_judging(settings, wanted)]


def _pairs(judge: Judge, conditions: int) -> int:
    return max(0, conditions - 1 if judge.against else conditions * (conditions - 1) // 2)
