"""Fields of an entry of a question file, read with care: files are made by others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphrag_evaluation.questions.question import Assertion, Passage
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed, text

Entry = Mapping[str, Any]

_LONGEST = 1000
_MOST_ASSERTIONS, _MOST_SOURCES = 50, 20
ASSERTIONS: Final = listed(
    closed(statement=text(_LONGEST), sources=listed(INTEGER, _MOST_SOURCES)), _MOST_ASSERTIONS
)
"""The schema of statements with the numbers of what they rest on, as :func:`sourced` reads them."""


class UnreadableEntryError(Exception):
    """An entry that is no question of its format; the message says what is missing."""


def question_text(entry: Entry, *names: str) -> str:
    """Return the first text among the fields of these names, on one line."""
    for name in names:
        if isinstance(value := entry.get(name), str) and (text := clean(value)):
            return text
    raise UnreadableEntryError(
        f"no question: a text was expected in the field {' or '.join(names)}"
    )


def answers_of(answer: Any, entry: Entry) -> tuple[str, ...]:
    """Return answers and aliases: texts, numbers, and yes or no for a truth value."""
    values = answer if isinstance(answer, list) else [answer]
    every = [*values, *list_of(entry, "answer_aliases")]
    if any(isinstance(value, Mapping | list) for value in every):
        raise UnreadableEntryError("answers must be a text or a list of texts")
    plain = ("yes" if value is True else "no" if value is False else value for value in every)
    return tuple(dict.fromkeys(filter(None, map(clean, plain))))


def passage_of(value: Any) -> Passage:
    """Return a passage: a text, or an object of title and text."""
    if isinstance(value, str):
        passage = Passage(text=clean(value))
    else:
        values = object_of(value, "passages")
        passage = Passage(clean(values.get("title")), clean(values.get("text")))
    if not passage.title and not passage.text:
        raise UnreadableEntryError("a passage needs a title or a text")
    return passage


def assertion_of(value: Any) -> Assertion:
    """Return an assertion: a text, or an object of statement and sources."""
    if isinstance(value, str):
        assertion = Assertion(clean(value))
    else:
        values = object_of(value, "assertions")
        sources = tuple(filter(None, map(clean, list_of(values, "sources"))))
        assertion = Assertion(clean(values.get("statement")), sources)
    if not assertion.statement:
        raise UnreadableEntryError("an assertion needs a statement")
    return assertion


def sourced(listed: Sequence[Any], number: int) -> dict[str, list[int]]:
    """Return a model's statements, each once, that rest on numbered texts, with their numbers.

    ``number`` is how many texts there are; a statement without one of them is left out.
    """
    kept: dict[str, list[int]] = {}
    for item in listed:
        if isinstance(item, Mapping) and isinstance(sources := item.get("sources"), list):
            statement = clean(item.get("statement"))[:_LONGEST]
            numbers = [n for n in sources if type(n) is int and 0 < n <= number]
            if statement and numbers:
                kept.setdefault(statement, numbers)
    return kept


def list_of(entry: Entry, name: str) -> list[Any]:
    """Return the list in a field, empty where there is none."""
    value = entry.get(name) or []
    if not isinstance(value, list):
        raise UnreadableEntryError(f"{name} must be a list")
    return value


def object_of(value: Any, name: str) -> Entry:
    """Return what must be an object."""
    if not isinstance(value, Mapping):
        raise UnreadableEntryError(f"{name} must hold objects")
    return value


def pairs_of(entry: Entry, name: str, first: str, second: str) -> list[tuple[str, Any]]:
    """Return pairs that are stored as a list of pairs, or as an object of two lists."""
    value = entry.get(name) or []
    if isinstance(value, Mapping):
        value = list(zip(list_of(value, first), list_of(value, second), strict=False))
    if not isinstance(value, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in value
    ):
        raise UnreadableEntryError(f"{name} must hold pairs of {first} and {second}")
    return [(pair[0], pair[1]) for pair in value]


def clean(value: Any) -> str:
    """Return a value as text on one line that can be stored: no half characters, no NUL."""
    if value is None or isinstance(value, Mapping | list):
        return ""
    text = str(value).encode("utf-8", "replace").decode().replace("\0", "")
    return " ".join(text.split())
