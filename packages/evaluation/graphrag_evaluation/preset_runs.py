"""An experiment by a preset: fitted to what there is, and what its tables say of the index."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from graphrag_evaluation.experiment import Experiment
from graphrag_evaluation.paper import paper_of
from graphrag_evaluation.presets.facts import note_facts
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.running import opened
from graphrag_evaluation.scoring import check_metrics
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings

_SHORT_WORDS = 6
"""Gold answers of so many words ask for answers as short: paragraphs say nothing by F1."""


def fitted(
    experiment: Experiment, settings: Settings, questions: Sequence[Question]
) -> tuple[Experiment, tuple[str, ...]]:
    """Return a preset's experiment without what cannot be had here, and a note on each such thing.

    Metrics whose package is absent go; where no model writes, so do the preset's judge and claims.
    Answers are short where the gold answers are. What a user asked for stays, and is an error
    where it cannot be had.
    """
    if not experiment.preset:
        return experiment, ()
    notes: list[str] = []
    metrics = _metrics(experiment, settings, notes)
    experiment = replace(experiment, metrics=metrics)
    is_written = settings.query.answers == "llm"
    if not is_written and (experiment.judge or experiment.claims):
        notes.append(
            "no model writes answers (query.answers): nothing is judged, no claims counted"
        )
        experiment = replace(experiment, judge=None, claims=None)
    is_short = paper_of(experiment.preset).short_answers and _are_short(questions)
    if is_written and is_short and settings.query.answer_style == "full":
        notes.append('the gold answers are short: so are the answers (answer_style = "short")')
        conditions = [
            replace(condition, answer_style=condition.answer_style or "short")
            for condition in experiment.conditions
        ]
        experiment = replace(experiment, conditions=tuple(conditions))
    if experiment.per_document is None and _are_apart(experiment, questions):
        notes.append(
            "the questions name their documents: each is asked of an index of its document alone, "
            "as in the paper (per_document = false asks the index of all)"
        )
        experiment = replace(experiment, per_document=True)
    return experiment, tuple(notes)


def _are_apart(experiment: Experiment, questions: Sequence[Question]) -> bool:
    own = any(each.home or each.release or each.index for each in experiment.conditions)
    named = bool(questions) and all(question.document for question in questions)
    return paper_of(experiment.preset).per_document and named and not own


def note_indexes(store: EvaluationStore, experiment: Experiment, settings: Settings) -> None:
    """Note what the tables of a paper say of each index that was asked."""
    for engine in opened(experiment, settings):
        note_facts(store, engine.index)


def _metrics(experiment: Experiment, settings: Settings, notes: list[str]) -> tuple[str, ...]:
    preset = set(paper_of(experiment.preset).measured)
    metrics = []
    for metric in experiment.metrics:
        try:
            check_metrics([metric], settings)
        except InputError as error:
            if metric not in preset:
                raise
            notes.append(f"without {metric}: {error}")
        else:
            metrics.append(metric)
    return tuple(metrics)


def _are_short(questions: Sequence[Question]) -> bool:
    words = [len(answer.split()) for question in questions for answer in question.answers[:1]]
    return bool(words) and statistics.median(words) <= _SHORT_WORDS
