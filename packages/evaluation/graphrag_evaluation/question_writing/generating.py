"""Questions that need an understanding of the whole corpus, made by a model.

Algorithm 1 of the GraphRAG paper (Edge et al., 2024, 3.2): from a description of the corpus, K
personas of people who would use it, N tasks of each, and M questions for each person and task; K =
N = M = 5 gives the paper's 125. The paper does not say how many calls that takes; here it is one
for the personas, one a person for their tasks, and one a task for its questions: 1 + K + K * N.
Added is that no question is asked twice: what is the same, or nearly, is left out and asked for
again, for a bounded number of rounds.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from graphrag_evaluation.inquiring import STAGE, Wording
from graphrag_evaluation.question_writing.model_calls import (
    GeneratingCalls,
    SeenQuestions,
    listing,
    texts_in,
)
from graphrag_evaluation.question_writing.sampling import sample_passages
from graphrag_evaluation.questions.question import (
    Question,
    get_questions,
    put_questions,
    set_names,
)
from graphrag_evaluation.step_models import ROLE, StepModel
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.prompting import load_prompt, prompt_version
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import model_prices, prompts_folder, with_model
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.store.index_store import get_meta, set_meta

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

ROUNDS: Final = 2
"""Questions that are missing are asked for again so many times."""
MOST: Final = 100
"""No more personas, tasks of one or questions for one than this."""

PARTS: Final = {
    part: Wording(name=part, prompt=f"eval_{part}", json_schema=listing(part, MOST))
    for part in ("personas", "tasks", "questions")
}
_PROMPTS = tuple(wording.prompt for wording in PARTS.values())
_DESCRIPTION_TOKENS = 2000
_DOCUMENTS_NAMED = 20
_LENGTHS = {"personas": 60, "tasks": 40, "questions": 30}
"""Tokens of one of each, on average, for the plan."""
_PASSAGES = 16
_PASSAGE_CHARS = 400


@dataclass(frozen=True)
class Numbers:
    """K personas, N tasks of each, M questions for each task."""

    personas: int = 5
    tasks: int = 5
    questions: int = 5

    def __post_init__(self) -> None:
        """Raise InputError for a number out of range."""
        for number in (self.personas, self.tasks, self.questions):
            if not 1 <= number <= MOST:
                raise InputError(f"personas, tasks and questions must each be from 1 to {MOST}")

    @property
    def calls(self) -> int:
        """Model calls, but for those that repeat what could not be read or was asked before."""
        return 1 + self.personas + self.personas * self.tasks


@dataclass(frozen=True)
class Generated:
    """The questions of a set; ``duplicates`` were left out, ``failures`` gave none.

    ``stored`` says that the set was there already and nothing was asked.
    """

    questions: tuple[Question, ...]
    duplicates: int = 0
    failures: tuple[str, ...] = ()
    stored: bool = False


def generate_questions(
    store: EvaluationStore,
    settings: Settings,
    numbers: Numbers,
    question_set: str,
    description: str,
    step: StepModel | None = None,
    release: str = "",
) -> Generated:
    """Make a question set by Algorithm 1, or return the one that was made with the same values.

    ``step`` is the model that writes, by default that of ``settings``; ``release`` the one that the
    description is of.
    Answers are cached as they come, so that a run that was ended goes on where it was. A set some
    of whose questions could not be had is kept, and asked for again when it is next wanted.

    Raises InputError if the set is there and was made otherwise, and the model's error if no
    personas can be had or every other call would meet it too.
    """
    step = step or StepModel()
    settings = step.settings(settings)
    made_from = _made_from(settings, numbers, description, step)

    def generate() -> Generated:
        return with_model(
            settings,
            lambda client: Algorithm1(
                GeneratingCalls(client, settings, numbers.calls), numbers, description
            ).generated(),
            ROLE,
        )

    return kept_set(store, question_set, made_from, generate, release)


def kept_set(
    store: EvaluationStore,
    question_set: str,
    made_from: str,
    generate: Callable[[], Generated],
    release: str = "",
) -> Generated:
    """Return the set that was made from the same, or make and keep it.

    One that is there in part is made again. ``release`` is the one whose texts the questions tell
    of. Raises InputError if the set is there and was made otherwise.
    """
    if (stored := _stored_set(store, question_set, made_from)) is not None:
        return stored
    result = generate()
    with store.transaction() as con:
        put_questions(con, question_set, result.questions)
        state = "partly" if result.failures else "wholly"
        set_meta(con, generated_key(question_set), f"{made_from} {_ids(result.questions)} {state}")
        set_meta(con, release_key(question_set), release)
    return result


def describe_corpus(release: Release) -> str:
    """Return a description of a release's documents: titles, and passages from all parts of it.

    Not the index's own reports, which would have questions ask for what some methods read.
    """
    counts = release.facts.counts
    rows = release.rows(
        "SELECT title FROM documents ORDER BY human_readable_id LIMIT $n", n=_DOCUMENTS_NAMED
    )
    titles = "; ".join(row["title"] for row in rows)
    lines = [f"A collection of {counts['n_documents']} documents, among them: {titles}."]
    for passage in sample_passages(release, _PASSAGES):
        text = textwrap.shorten(passage.text, _PASSAGE_CHARS, placeholder=" ...")
        lines.append(f"- from {passage.title}: {text}")
    lengths = count_tokens(lines, release.encoding)
    fits = np.cumsum(lengths) <= _DESCRIPTION_TOKENS
    return "\n".join(line for line, fit in zip(lines, fits, strict=True) if fit) or lines[0][:8000]


def plan_generation(
    settings: Settings, numbers: Numbers, description: str, step: StepModel | None = None
) -> StagePlan:
    """Return what generating takes at most, nothing being cached or asked for again."""
    settings = (step or StepModel()).settings(settings)
    folder = prompts_folder(settings)
    k, n = numbers.personas, numbers.tasks
    calls = zip(_PROMPTS, (1, k, k * n), _LENGTHS.items(), strict=True)
    read = output = 0
    for prompt, times, (part, length) in calls:
        template = load_prompt(prompt, folder)
        values = {name: "" for name in template.placeholders} | {"descriptions": description}
        texts = [message["content"] for message in template.render(**values)]
        read += times * (sum(count_tokens(texts)) + 2 * _LENGTHS["personas"])
        output += times * length * getattr(numbers, part)
    cost = model_prices(settings, ROLE).cost(settings.llm.model, read, output)
    return StagePlan(
        stage=STAGE,
        model=settings.llm.model,
        calls=numbers.calls,
        cached=0,
        prompt_tokens=read,
        completion_tokens=output,
        cost=cost,
    )


def release_key(question_set: str) -> str:
    """Return the key of ``meta`` that holds the release whose texts a generated set tells of."""
    return f"release of {question_set}"


def generated_key(question_set: str) -> str:
    """Return the key of ``meta`` that holds what a generated set was made from."""
    return f"generated {question_set}"


def _made_from(settings: Settings, numbers: Numbers, description: str, step: StepModel) -> str:
    prompts = prompt_version(*_PROMPTS, folder=prompts_folder(settings))
    answered_by = repr(step.answered_by(settings))
    return make_id("questions", prompts, answered_by, repr(numbers), description)


def _ids(questions: Sequence[Question]) -> str:
    return make_id("question set", *(question.id for question in questions))


def _stored_set(store: EvaluationStore, question_set: str, made_from: str) -> Generated | None:
    """Return the set if it is there whole; raise InputError if it is another one."""
    with store.read() as con:
        if question_set not in set_names(con):
            return None
        questions = get_questions(con, question_set)
        origin, _, state = (get_meta(con, generated_key(question_set)) or "").rpartition(" ")
    if origin != f"{made_from} {_ids(questions)}":
        raise InputError(
            f"there is a question set {question_set!r} that was made otherwise, or of another "
            "corpus: name a new one with --set"
        )
    return Generated(tuple(questions), stored=True) if state == "wholly" else None


@dataclass
class Brief:
    """A person and a task, the questions they have, and those left out as asked before."""

    persona: str
    task: str
    kept: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Both, as a prompt shows them."""
        return f"{self.persona}\nTask: {self.task}"


class Algorithm1:
    """One run of Algorithm 1."""

    def __init__(
        self,
        asking: GeneratingCalls,
        numbers: Numbers,
        description: str,
        seen: SeenQuestions | None = None,
    ) -> None:
        self._asking = asking
        self._numbers = numbers
        self._description = description
        self._seen = seen or SeenQuestions()

    async def generated(self) -> Generated:
        """Return all questions, of every person and task. Raises ModelOutputError if none."""
        numbers = self._numbers
        briefs = await self.briefs()
        await self.fill(briefs)
        questions = tuple(
            Question(text, persona=brief.persona, task=brief.task, type="global")
            for brief in briefs
            for text in brief.kept
        )
        n_missing = numbers.personas * numbers.tasks * numbers.questions - len(questions)
        failures = self._asking.failures
        if not questions:
            raise ModelOutputError("the model gave no question: " + "; ".join(failures[:1]))
        lacking = [f"{n_missing} questions are missing"] if n_missing else []
        left_out = sum(len(brief.left_out) for brief in briefs)
        return Generated(questions, left_out, tuple(lacking + failures) if n_missing else ())

    async def briefs(self) -> list[Brief]:
        """Return the people and their tasks."""
        personas = await self._ask("personas", self._numbers.personas)
        tasks = await self._asking.for_each(
            personas, lambda persona: self._ask("tasks", self._numbers.tasks, text=persona)
        )
        return [
            Brief(persona, task)
            for persona, of_persona in zip(personas, tasks, strict=True)
            for task in of_persona
        ]

    async def fill(self, briefs: Sequence[Brief]) -> None:
        """Have each person ask for each task; what is missing is asked for again."""
        for _ in range(1 + ROUNDS):
            short = [brief for brief in briefs if len(brief.kept) < self._numbers.questions]
            if short:
                await self._fill(short)

    async def _fill(self, briefs: Sequence[Brief]) -> None:
        """Ask for the questions that are missing and keep the new ones, in a fixed order."""

        async def ask(brief: Brief) -> list[str]:
            earlier = [*brief.kept, *brief.left_out]
            return await self._ask(
                "questions",
                self._numbers.questions - len(brief.kept),
                text=brief.text,
                context="\n".join(f"- {question}" for question in earlier) or "(none)",
            )

        for brief, answers in zip(briefs, await self._asking.for_each(briefs, ask), strict=True):
            for question in answers:
                if len(brief.kept) < self._numbers.questions:
                    (brief.kept if self._seen.is_new(question) else brief.left_out).append(question)

    async def _ask(self, part: str, number: int, **values: str) -> list[str]:
        """Return the texts that a model gives, at most so many, and at least one."""
        texts = await self._asking.ask(
            PARTS[part],
            lambda text: texts_in(text, part),
            number=str(number),
            descriptions=self._description,
            **values,
        )
        return texts[:number]
