"""Question sets of a home folder: taken from a file, made by a model, listed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.evaluation.questions.datasets import read_questions
from graphrag_pipeline.evaluation.questions.generating import (
    Numbers,
    describe_corpus,
    generate_questions,
    plan_generation,
)
from graphrag_pipeline.evaluation.questions.question import Question, get_questions, put_questions
from graphrag_pipeline.evaluation.step_models import StepModel
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.query.release import open_release

GENERATED = "generated"
"""Name of the set that a model makes, unless it is given another."""

_SETS = """
SELECT question_set AS set, count(*) AS questions,
       count(*) FILTER (len(answers) > 0) AS with_answers,
       count(*) FILTER (len(passages) > 0) AS with_passages
FROM questions GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class QuestionSet:
    """A set's questions, and what was left out and what failed when a model made them."""

    name: str
    questions: tuple[Question, ...]
    duplicates: int = 0
    failures: tuple[str, ...] = ()

    def by_type(self) -> list[tuple[str, int, int, int]]:
        """Return (type, questions, those with answers, those with passages), in order."""
        types = dict.fromkeys(question.type for question in self.questions)
        groups = {kind: [q for q in self.questions if q.type == kind] for kind in types}
        return [
            (
                kind or "-",
                len(of),
                sum(bool(q.answers) for q in of),
                sum(bool(q.passages) for q in of),
            )
            for kind, of in groups.items()
        ]


def take(settings: Settings, file: Path, name: str = "", format: str = "") -> QuestionSet:
    """Keep a file's questions as a set, by default named like the file, and return it."""
    questions = read_questions(file, format)
    with EvaluationStore(settings.home_path).transaction() as con:
        put_questions(con, name or file.stem, questions)
    return QuestionSet(name or file.stem, tuple(questions))


def make(
    settings: Settings,
    numbers: Numbers,
    name: str = "",
    description: str = "",
    step: StepModel | None = None,
) -> QuestionSet:
    """Let a model make a question set; without a description, of what is published."""
    corpus_description = _corpus_description(settings, description)
    generated = generate_questions(
        EvaluationStore(settings.home_path),
        settings,
        numbers,
        name or GENERATED,
        corpus_description,
        step,
    )
    return QuestionSet(
        name or GENERATED, generated.questions, generated.duplicates, generated.failures
    )


def plan(
    settings: Settings, numbers: Numbers, description: str = "", step: StepModel | None = None
) -> StagePlan:
    """Return what making a question set takes; nothing is asked."""
    return plan_generation(settings, numbers, _corpus_description(settings, description), step)


def show(settings: Settings, name: str) -> QuestionSet:
    """Return a set. Raises InputError if there is none of the name."""
    with EvaluationStore(settings.home_path).read() as con:
        return QuestionSet(name, tuple(get_questions(con, name)))


def all_sets(settings: Settings) -> list[dict[str, Any]]:
    """Return the name of each set, and how many questions it has, with answers and passages."""
    with EvaluationStore(settings.home_path).read() as con:
        return con.execute(_SETS).pl().to_dicts()


def _corpus_description(settings: Settings, description: str) -> str:
    if description.strip():
        return description.strip()
    with open_release(settings.home_path, settings=settings) as release:
        return describe_corpus(release)
