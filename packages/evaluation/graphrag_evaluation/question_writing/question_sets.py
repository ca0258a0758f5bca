"""Question sets of a home folder: taken from a file, made by a model, listed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_evaluation.experiment import Condition
from graphrag_evaluation.question_writing.generating import (
    Generated,
    Numbers,
    describe_corpus,
    generate_questions,
    kept_set,
    plan_generation,
)
from graphrag_evaluation.question_writing.kind_plans import plan_kinds, prompts_of
from graphrag_evaluation.question_writing.kinds import (
    PASSAGES,
    Corpus,
    KindsOfQuestions,
    WantedKinds,
)
from graphrag_evaluation.question_writing.model_calls import GeneratingCalls
from graphrag_evaluation.question_writing.sampling import sample_passages
from graphrag_evaluation.questions.datasets import read_questions
from graphrag_evaluation.questions.question import (
    Passage,
    Question,
    get_questions,
    put_questions,
)
from graphrag_evaluation.running import open_engine
from graphrag_evaluation.step_models import ROLE, StepModel
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import with_model
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.query.release import open_release

GENERATED = "generated"
"""Name of the set that a model makes, unless it is given another."""

_SETS = """
SELECT question_set AS set, count(*) AS questions,
       count(*) FILTER (len(answers) > 0) AS with_answers,
       count(*) FILTER (len(passages) > 0) AS with_passages,
       count(*) FILTER ((question_set, question_id) IN
           (SELECT (question_set, question_id) FROM question_assertions)) AS with_assertions
FROM questions GROUP BY ALL ORDER BY ALL
"""

_CHUNK_TOKENS = "SELECT coalesce(avg(n_tokens), 0.0) AS tokens FROM chunks"


@dataclass(frozen=True)
class QuestionSet:
    """A set's questions, and what was left out and what failed when a model made them."""

    name: str
    questions: tuple[Question, ...]
    duplicates: int = 0
    failures: tuple[str, ...] = ()

    def by_type(self) -> list[tuple[str, int, int, int, int]]:
        """Return (type, questions, those with answers, passages and assertions), in order."""
        types = dict.fromkeys(question.type for question in self.questions)
        groups = {kind: [q for q in self.questions if q.type == kind] for kind in types}
        return [
            (
                kind or "-",
                len(of),
                sum(bool(q.answers) for q in of),
                sum(bool(q.passages) for q in of),
                sum(bool(q.assertions) for q in of),
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
    corpus_description, release = _corpus_description(settings, description)
    generated = generate_questions(
        EvaluationStore(settings.home_path),
        settings,
        numbers,
        name or GENERATED,
        corpus_description,
        step,
        release,
    )
    return _set_of(name or GENERATED, generated)


def plan(
    settings: Settings, numbers: Numbers, description: str = "", step: StepModel | None = None
) -> StagePlan:
    """Return what making a question set takes; nothing is asked."""
    corpus_description, _ = _corpus_description(settings, description)
    return plan_generation(settings, numbers, corpus_description, step)


def make_kinds(
    settings: Settings,
    wanted: WantedKinds,
    name: str = "",
    description: str = "",
    step: StepModel | None = None,
) -> QuestionSet:
    """Let a model make questions of some kinds from what is published, with their assertions.

    ``description`` takes the place of one made from titles and passages. Answers are cached as they
    come: a run that was ended goes on where it was.
    """
    step = step or StepModel()
    writing = step.settings(settings)
    calls = sum(stage.calls for stage in plan_of_kinds(settings, wanted, description, step))
    with _corpus(settings, wanted, description) as (corpus, release):

        def generate() -> Generated:
            return with_model(
                writing,
                lambda client: KindsOfQuestions(
                    GeneratingCalls(client, writing, calls), wanted, corpus
                ).generated(),
                ROLE,
            )

        made_from = make_id(
            "kinds", prompts_of(writing, wanted), *map(repr, step.answered_by(writing)),
            repr(wanted), corpus.description, *(passage.text for passage in corpus.passages),
        )  # fmt: skip
        store = EvaluationStore(settings.home_path)
        return _set_of(
            name or GENERATED, kept_set(store, name or GENERATED, made_from, generate, release)
        )


def plan_of_kinds(
    settings: Settings, wanted: WantedKinds, description: str = "", step: StepModel | None = None
) -> list[StagePlan]:
    """Return what :func:`make_kinds` is likely to take, a stage for each kind; nothing is asked."""
    with _corpus(settings, wanted, description) as (corpus, _):
        return plan_kinds((step or StepModel()).settings(settings), wanted, corpus)


def _set_of(name: str, generated: Generated) -> QuestionSet:
    return QuestionSet(name, generated.questions, generated.duplicates, generated.failures)


def show(settings: Settings, name: str) -> QuestionSet:
    """Return a set. Raises InputError if there is none of the name."""
    with EvaluationStore(settings.home_path).read() as con:
        return QuestionSet(name, tuple(get_questions(con, name)))


def all_sets(settings: Settings) -> list[dict[str, Any]]:
    """Return each set's name, and how many questions it has: with answers, passages, assertions."""
    with EvaluationStore(settings.home_path).read() as con:
        return con.execute(_SETS).pl().to_dicts()


def _corpus_description(settings: Settings, description: str) -> tuple[str, str]:
    """Return a description, and the release that it is made from where none is given."""
    if description.strip():
        return description.strip(), ""
    with open_release(settings.home_path, settings=settings) as release:
        return describe_corpus(release), release.facts.id


@contextmanager
def _corpus(
    settings: Settings, wanted: WantedKinds, description: str
) -> Iterator[tuple[Corpus, str]]:
    """Yield what questions are made from, and the id of the release it is of."""
    with open_engine(Condition("questions", "bm25"), settings) as engine:
        release = engine.index

        def search(text: str) -> list[Passage]:
            found = engine.rehearse(text, "bm25", top_k=PASSAGES)
            return [Passage(r.title, r.text) for r in found.records if r.kind == "chunk"]

        described = description.strip() or describe_corpus(release)
        corpus = Corpus(
            described if wanted.has_activities else "",
            sample_passages(release, wanted.n_passages) if wanted.needs_passages else [],
            search,
            release.rows(_CHUNK_TOKENS)[0]["tokens"],
        )
        yield corpus, release.facts.id
