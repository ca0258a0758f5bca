"""Follow-up questions: an answer leads to them, and the conversation has not asked them yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.lists import ask_lists

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking

_NAMES, _EDGES = 20, 200
_PROMPT, _STEP = "next_questions", "follow up"


async def follow_ups_by_model(asking: Asking, answer: str, n: int) -> tuple[str, ...]:
    """Return at most ``n`` questions that a model would ask next, given the conversation so far.

    Those of the rule where it gives none to read.
    """
    lists = await ask_lists(asking, _STEP, _PROMPT, ["questions"], text=answer, most=str(n))
    if lists is None:
        said = asking.search_text
        return await asking.retrieve(lambda: follow_ups_by_rule(asking.index, said, answer, n))
    return _new(lists[0], asking.search_text.splitlines())[:n]


def follow_ups_by_rule(index: Release, asked: str, answer: str, n: int) -> tuple[str, ...]:
    """Return at most ``n`` questions on names in an answer that were not asked about, in English.

    How each is connected with one that was asked about, where a relationship says so, or else what
    is said of it; names before other words, in the order of the answer. ``asked`` is the question
    and those before it.
    """
    known = op.entities_named_in(index, asked, _NAMES, apart=True)
    named = op.entity_records(index, op.entities_named_in(index, answer, _NAMES, apart=True))
    said = set(AnalysedQuestion.of(asked).terms)
    text = answer.casefold()
    fresh = [
        record
        for record in named
        if record.id not in known
        and not said.issuperset(terms(record.title))
        and any(map(str.isalpha, record.title))
    ]
    words = [frozenset(terms(record.title)) for record in fresh]
    fresh = [r for r, own in zip(fresh, words, strict=True) if not any(own < w for w in words)]
    fresh.sort(key=lambda r: (r.title[0].islower(), text.find(r.title.casefold())))
    far_ends = _connected(index, [record.id for record in fresh], known)
    title_of = {record.id: record.title for record in op.entity_records(index, known)}
    questions = [
        f"How is {_called(record.title)} connected with {_called(title_of[far_ends[record.id]])}?"
        if far_ends.get(record.id) in title_of
        else f"What is said of {_called(record.title)}?"
        for record in fresh
    ]
    return _new(questions, asked.splitlines())[:n]


def _called(title: str) -> str:
    return f"the {title}" if title[0].islower() else title


def _connected(index: Release, fresh: Sequence[str], known: op.Ranking) -> dict[str, str]:
    """Return for each entity the first known one that it has a relationship with."""
    both = {**dict.fromkeys(fresh, 1.0), **known}
    edges = op.relationship_records(index, op.relationships_of(index, both, _EDGES))
    far_ends: dict[str, str] = {}
    for one, two in _both_ways(edges):
        if two in known:
            far_ends.setdefault(one, two)
    return far_ends


def _both_ways(edges: Iterable[Record]) -> Iterable[tuple[str, str]]:
    for edge in edges:
        source, target = edge.attributes["source_id"], edge.attributes["target_id"]
        yield from ((source, target), (target, source))


def _new(questions: Iterable[str], asked: Iterable[str]) -> tuple[str, ...]:
    """Return questions without those that were asked, each once."""
    known = {_plain(question) for question in asked}
    new: dict[str, str] = {}
    for question in questions:
        if (key := _plain(question)) and key not in known:
            new.setdefault(key, question)
    return tuple(new.values())


def _plain(question: str) -> str:
    return " ".join(question.casefold().rstrip("?？ .").split())
