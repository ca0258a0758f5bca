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
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.progress import report
from graphrag_pipeline.core.prompting import load_prompt, prompt_version
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.evaluation.metrics.answers import normalized
from graphrag_pipeline.evaluation.questions.question import (
    Question,
    get_questions,
    put_questions,
    set_names,
)
from graphrag_pipeline.evaluation.questions.sampling import sample_passages
from graphrag_pipeline.evaluation.step_models import StepModel
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.llm.configured import model_prices, prompts_folder, with_model
from graphrag_pipeline.llm.embedders import HashingEmbedder
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.llm.running import work_through
from graphrag_pipeline.store.index_store import get_meta, set_meta

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient
    from graphrag_pipeline.query.release import Release

STAGE: Final = "evaluation"
ROUNDS: Final = 2
"""Questions that are missing are asked for again so many times."""
NEARLY_THE_SAME: Final = 0.85
"""Two questions whose words' vectors (``HashingEmbedder``) have this cosine or more are one.

Of the paper's 125 questions on podcasts no two come near it; the same question with other question
words does.
"""
MOST: Final = 100
"""No more personas, tasks of one or questions for one than this."""

_Item = TypeVar("_Item")
_PROMPTS = ("eval_personas", "eval_tasks", "eval_questions")
_DESCRIPTION_TOKENS = 2000
_DOCUMENTS_NAMED = 20
_LONGEST = 600
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
) -> Generated:
    """Make a question set by Algorithm 1, or return the one that was made with the same values.

    ``step`` is the model that writes, by default that of ``settings``.
    Answers are cached as they come, so that a run that was ended goes on where it was. A set some
    of whose questions could not be had is kept, and asked for again when it is next wanted.

    Raises InputError if the set is there and was made otherwise, and the model's error if no
    personas can be had or every other call would meet it too.
    """
    step = step or StepModel()
    settings = step.settings(settings)
    made_from = _made_from(settings, numbers, description, step)
    if (stored := _stored_set(store, question_set, made_from)) is not None:
        return stored
    result = with_model(
        settings, lambda client: _Generation(client, settings, numbers, description)()
    )
    with store.transaction() as con:
        put_questions(con, question_set, result.questions)
        state = "partly" if result.failures else "wholly"
        set_meta(con, _key(question_set), f"{made_from} {_ids(result.questions)} {state}")
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
    cost = model_prices(settings).cost(settings.llm.model, read, output)
    return StagePlan(
        stage=STAGE,
        model=settings.llm.model,
        calls=numbers.calls,
        cached=0,
        prompt_tokens=read,
        completion_tokens=output,
        cost=cost,
    )


def _key(question_set: str) -> str:
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
        origin, _, state = (get_meta(con, _key(question_set)) or "").rpartition(" ")
    if origin != f"{made_from} {_ids(questions)}":
        raise InputError(
            f"there is a question set {question_set!r} that was made otherwise, or of another "
            "corpus: name a new one with --set"
        )
    return Generated(tuple(questions), stored=True) if state == "wholly" else None


@dataclass
class _Brief:
    """A person and a task, the questions they have, and those left out as asked before."""

    persona: str
    task: str
    kept: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class _Generation:
    """One run of Algorithm 1."""

    def __init__(
        self, client: ModelClient, settings: Settings, numbers: Numbers, description: str
    ) -> None:
        self._client = client
        self._numbers = numbers
        self._description = description
        self._folder: Path | None = prompts_folder(settings)
        self._failures: list[str] = []
        self._done = 0

    async def __call__(self) -> Generated:
        numbers = self._numbers
        personas = await self._ask("personas", numbers.personas)
        tasks = await self._for_each_brief(
            personas, lambda persona: self._ask("tasks", numbers.tasks, text=persona)
        )
        briefs = [
            _Brief(persona, task)
            for persona, of_persona in zip(personas, tasks, strict=True)
            for task in of_persona
        ]
        texts = _Seen()
        for _ in range(1 + ROUNDS):
            short = [brief for brief in briefs if len(brief.kept) < numbers.questions]
            if short:
                await self._fill(short, texts)
        questions = tuple(
            Question(text, persona=brief.persona, task=brief.task, type="global")
            for brief in briefs
            for text in brief.kept
        )
        n_missing = numbers.personas * numbers.tasks * numbers.questions - len(questions)
        if not questions:
            raise ModelOutputError("the model gave no question: " + "; ".join(self._failures[:1]))
        lacking = [f"{n_missing} questions are missing"] if n_missing else []
        left_out = sum(len(brief.left_out) for brief in briefs)
        return Generated(questions, left_out, tuple(lacking + self._failures) if n_missing else ())

    async def _fill(self, briefs: Sequence[_Brief], texts: _Seen) -> None:
        """Ask for the questions that are missing and keep the new ones, in a fixed order."""

        async def ask(brief: _Brief) -> list[str]:
            earlier = [*brief.kept, *brief.left_out]
            return await self._ask(
                "questions",
                self._numbers.questions - len(brief.kept),
                text=f"{brief.persona}\nTask: {brief.task}",
                context="\n".join(f"- {question}" for question in earlier) or "(none)",
            )

        for brief, answers in zip(briefs, await self._for_each_brief(briefs, ask), strict=True):
            for question in answers:
                if len(brief.kept) < self._numbers.questions:
                    (brief.kept if texts.is_new(question) else brief.left_out).append(question)

    async def _for_each_brief(
        self, items: Sequence[_Item], work: Callable[[_Item], Awaitable[list[str]]]
    ) -> list[list[str]]:
        """Return the lists that a model gives for items; none where its answers say nothing."""
        results: list[list[str]] = [[] for _ in items]
        failures: dict[int, str] = {}

        async def ask_brief(place: int) -> None:
            try:
                results[place] = await work(items[place])
            except ModelError as error:
                if error.stops_everything:
                    raise
                failures[place] = str(error)

        await work_through(range(len(items)), ask_brief, 2 * self._client.options.concurrency)
        self._failures += [failures[place] for place in sorted(failures)]
        return results

    async def _ask(self, part: str, number: int, **values: str) -> list[str]:
        """Return the texts that a model gives, at most so many, and at least one.

        An answer that cannot be read is asked for once more, and that answer is never kept.
        """
        prompt = load_prompt(f"eval_{part}", self._folder)
        talk = prompt.render(number=str(number), descriptions=self._description, **values)
        again = load_prompt("report_retry", self._folder)
        texts = await self._client.read(
            talk,
            lambda text: _texts(text, part),
            stage=STAGE,
            json_schema=_schema(part),
            again=lambda error: again.render(error=error),
        )
        self._done += 1
        report("questions", min(self._done, self._numbers.calls), self._numbers.calls)
        return texts[:number]


class _Seen:
    """Questions that there are, so that none is asked twice."""

    def __init__(self) -> None:
        self._plain: set[str] = set()
        self._embedder = HashingEmbedder()
        self._vectors: list[np.ndarray] = []

    def is_new(self, question: str) -> bool:
        """Say whether a question is unlike all before it, and remember it if so."""
        plain = normalized(question)
        vector = self._embedder.embed([question])[0]
        if plain in self._plain:
            return False
        if self._vectors and (np.stack(self._vectors) @ vector).max() >= NEARLY_THE_SAME:
            return False
        self._plain.add(plain)
        self._vectors.append(vector)
        return True


def _texts(answer: str, part: str) -> list[str]:
    parsed, _ = parse_json_object(answer)
    listed = parsed.get(part)
    lines = map(_line, listed) if isinstance(listed, list) else ()
    texts = list(dict.fromkeys(line for line in lines if 0 < len(line) <= _LONGEST))
    if not texts:
        raise ModelOutputError(f'the answer must be a JSON object with the list "{part}"')
    return texts


def _line(value: object) -> str:
    """Return what a list holds as one line: a text, or the texts of an object."""
    if isinstance(value, dict):
        return ": ".join(filter(None, map(_line, value.values())))
    if not isinstance(value, str):
        return ""
    plain = value.encode("utf-8", "replace").decode()
    return " ".join("".join(c if c.isprintable() else " " for c in plain).split())


def _schema(part: str) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {part: {"type": "array", "items": {"type": "string"}}},
        "required": [part],
        "additionalProperties": False,
    }
