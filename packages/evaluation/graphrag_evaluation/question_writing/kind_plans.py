"""The plan of making questions of some kinds: calls and cost, before a model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphrag_evaluation.inquiring import Wording, plan_calls
from graphrag_evaluation.judging.assertions import WRITING
from graphrag_evaluation.question_writing.drafts import numbered, sentences_of
from graphrag_evaluation.question_writing.generating import PARTS
from graphrag_evaluation.question_writing.kinds import (
    ACTIVITY_GLOBAL,
    ACTIVITY_LOCAL,
    GLOBAL,
    LINKED,
    LOCAL,
    PASSAGES,
    THEMES,
    TWICE,
    WORDINGS,
    Corpus,
    WantedKinds,
    n_themes,
)
from graphrag_pipeline.core.prompting import prompt_version
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import prompts_folder
from graphrag_pipeline.llm.pricing import StagePlan

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import Settings

_QUESTION, _DRAFT, _BRIEF = 30, 160, 100
"""Tokens of a question, of one with its assertions, and of a person with a task."""
_STATEMENT = 35
_STATEMENTS_OF_A_DRAFT = 3
_FACTS_OF_A_GROUP = 20

_Calls = tuple[str, Wording, int, float, float]
"""A stage, how it asks, its calls, and the tokens of each: those of the data, and the answer."""


def plan_kinds(settings: Settings, wanted: WantedKinds, corpus: Corpus) -> list[StagePlan]:
    """Return what a run is likely to take, a stage for each kind; nothing is asked.

    ``settings`` are those of the model that writes.
    """
    return [
        plan_calls(
            settings, stage, wording.prompt, calls=calls, tokens=round(calls * tokens),
            answer_tokens=round(calls * answer),
        )
        for stage, wording, calls, tokens, answer in _stages(wanted, corpus)
    ]  # fmt: skip


def prompts_of(settings: Settings, wanted: WantedKinds) -> str:
    """Return a hash of the prompts that a run asks with."""
    corpus = Corpus("", [], lambda text: [])
    prompts = {wording.prompt for _, wording, *_ in _stages(wanted, corpus)}
    return prompt_version(*sorted(prompts), folder=prompts_folder(settings))


def _stages(wanted: WantedKinds, corpus: Corpus) -> Iterator[_Calls]:
    if wanted.needs_passages:
        yield from _of_data(wanted, corpus)
    if wanted.has_activities:
        yield from _of_activities(wanted, corpus)


def _of_data(wanted: WantedKinds, corpus: Corpus) -> Iterator[_Calls]:
    number, n_passages = wanted.number, len(corpus.passages)
    shown = [numbered(sentences_of(passage, 0)) for passage in corpus.passages]
    length = sum(count_tokens(shown)) / max(1, n_passages)
    yield LOCAL, WORDINGS[LOCAL], n_passages, length, TWICE * _DRAFT
    facts = _FACTS_OF_A_GROUP * _STATEMENT
    if GLOBAL in wanted.kinds:
        themes = n_themes(number)
        questions = TWICE * n_passages * _QUESTION
        yield "themes", THEMES, 1, questions, themes * _QUESTION
        yield GLOBAL, WORDINGS[GLOBAL], themes, facts, TWICE * number / themes * _DRAFT
    if LINKED in wanted.kinds:
        yield LINKED, WORDINGS[LINKED], number, facts, TWICE * _DRAFT


def _of_activities(wanted: WantedKinds, corpus: Corpus) -> Iterator[_Calls]:
    numbers = wanted.activities
    n_briefs = numbers.personas * numbers.tasks
    (description,) = count_tokens([corpus.description])
    found = PASSAGES * corpus.chunk_tokens
    yield "personas", PARTS["personas"], 1, description, numbers.personas * _BRIEF
    tasks = description + _BRIEF
    yield "tasks", PARTS["tasks"], numbers.personas, tasks, numbers.tasks * _BRIEF
    if ACTIVITY_LOCAL in wanted.kinds:
        drafts = TWICE * numbers.questions * _DRAFT
        yield ACTIVITY_LOCAL, WORDINGS[ACTIVITY_LOCAL], n_briefs, found + _BRIEF, drafts
    if ACTIVITY_GLOBAL in wanted.kinds:
        answer = numbers.questions * _QUESTION
        yield ACTIVITY_GLOBAL, PARTS["questions"], n_briefs, description + _BRIEF, answer
        statements = _STATEMENTS_OF_A_DRAFT * _STATEMENT
        yield "assertions", WRITING, wanted.number, found + _QUESTION, statements
