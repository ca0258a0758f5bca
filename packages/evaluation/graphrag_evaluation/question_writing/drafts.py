"""Questions that a model drafts from numbered facts, with assertions that rest on these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from graphrag_evaluation.inquiring import Wording
from graphrag_evaluation.metrics.answers import sentence_texts
from graphrag_evaluation.question_writing.model_calls import (
    LONGEST,
    listing,
    one_line,
)
from graphrag_evaluation.questions.fields import ASSERTIONS, sourced
from graphrag_evaluation.questions.question import Assertion, Passage, Question
from graphrag_pipeline.llm.parsing import parse_json_list
from graphrag_pipeline.llm.schemas import closed, listed, text

MOST_ASSERTIONS: Final = 8
_MOST_NAMES, _MOST_DRAFTS = 5, 100
_NAMES = {"names": listed(text(LONGEST), _MOST_NAMES)}


@dataclass(frozen=True)
class DraftFact:
    """A sentence of the corpus, or a statement that rests on some: what a model is shown.

    ``place`` tells passages apart; ``title`` is their document's.
    """

    text: str
    sources: tuple[str, ...]
    title: str
    place: int


@dataclass(frozen=True)
class Draft:
    """A question with its assertions; ``facts`` are what each of them rests on.

    ``names`` are what it is about, as its passage writes them.
    """

    text: str
    assertions: tuple[tuple[str, tuple[DraftFact, ...]], ...]
    names: tuple[str, ...] = ()

    @property
    def places(self) -> frozenset[int]:
        """The passages that it takes to answer."""
        return frozenset(fact.place for _, facts in self.assertions for fact in facts)

    def stated(self) -> list[DraftFact]:
        """Return its assertions as facts that other questions can be drafted from."""
        return [
            DraftFact(statement, _sources(facts), facts[0].title, facts[0].place)
            for statement, facts in self.assertions
        ]

    def question(self, kind: str, persona: str = "", task: str = "") -> Question:
        """Return it as a question of a set; each sentence that it rests on is a gold passage."""
        used = (fact for _, facts in self.assertions for fact in facts)
        passages = dict.fromkeys(Passage(f.title, text) for f in used for text in f.sources)
        assertions = tuple(Assertion(text, _sources(facts)) for text, facts in self.assertions)
        return Question(self.text, (), tuple(passages), kind, persona, task, assertions)


def wording(prompt: str, *, named: bool = False) -> Wording:
    """Return how a model is asked for drafts; with the names that they are about if ``named``."""
    names = _NAMES if named else {}
    items = closed(question=text(LONGEST), **names, assertions=ASSERTIONS)
    return Wording(
        name="questions", prompt=prompt, json_schema=listing("questions", _MOST_DRAFTS, items)
    )


def sentences_of(passage: Passage, place: int) -> list[DraftFact]:
    """Return the sentences of a passage."""
    return [DraftFact(text, (text,), passage.title, place) for text in sentence_texts(passage.text)]


def numbered(facts: Sequence[DraftFact], *, placed: bool = False) -> str:
    """Return facts as a model is shown them, a line each; with their places if ``placed``."""
    return "\n".join(
        f"{n}. [place {fact.place + 1}] {fact.text}" if placed else f"{n}. {fact.text}"
        for n, fact in enumerate(facts, 1)
    )


def drafts_in(answer: str, facts: Sequence[DraftFact]) -> list[Draft]:
    """Return the questions in a model's answer that have an assertion with a fact.

    There may be none. Raises ModelOutputError for an answer that holds no list of them.
    """
    entries = (
        entry for entry in parse_json_list(answer, "questions") if isinstance(entry, Mapping)
    )
    drafts = (_draft(entry, facts) for entry in entries)
    return [draft for draft in drafts if draft.assertions and 0 < len(draft.text) <= LONGEST]


def _draft(entry: Mapping[str, Any], facts: Sequence[DraftFact]) -> Draft:
    given = entry.get("assertions")
    kept = sourced(given if isinstance(given, list) else [], len(facts))
    rests_on = [
        (text, tuple(facts[n - 1] for n in dict.fromkeys(numbers)))
        for text, numbers in list(kept.items())[:MOST_ASSERTIONS]
    ]
    names = entry.get("names")
    named = map(one_line, names if isinstance(names, list) else [])
    return Draft(
        one_line(entry.get("question")),
        tuple(rests_on),
        tuple(dict.fromkeys(filter(None, named)))[:_MOST_NAMES],
    )


def _sources(facts: Sequence[DraftFact]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for fact in facts for text in fact.sources))
