"""Questions for what is latest, and the versions by which that is told."""

from __future__ import annotations

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.query.asked_dates import LATEST
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

VERSION = pattern_of(r"(?<![\w.,-])v?(\d{1,4}(?:\.\d{1,4}){1,4})(-?[a-z]+\.?\d*)?(?![\w,]|\.\d)")
_NAMED_VERSION = pattern_of(
    r"(?<![\w.,-])(?:v(?:ersion|\.)? ?(?=\d)|(?=\d+\.\d))(\d{1,4}(?:\.\d{1,4}){0,4})"
    r"(-?[a-z]+\.?\d*)?(?![\w,]|\.\d)"
)
_NOW = pattern_of(f"{LATEST.pattern}|{words_pattern('now')}")
# "What is the latest version of" asks for its number, once it asks no more for the latest.
_ASKS_VERSION = pattern_of(
    rf"\W*\w+(?:'s)?\s+(?:(?:is|are|was|ist|est|es|e)\s+)?(?:(?:{words_pattern('articles')})\s*)?"
    rf"(?:{words_pattern('edition')})"
)
_NEWEST_EDITION = pattern_of(rf"(?:{_NOW.pattern})\s+(?:{words_pattern('edition')})")
_LAST_OF_ALL = "\uffff"
"""Stands after any word: a version that is done comes after its drafts."""


def asks_for_latest(question: AnalysedQuestion) -> bool:
    """Whether a question asks how things stand now, or for what is latest."""
    return question.read(_is_of_now)


def _is_of_now(question: str) -> bool:
    return _NOW.search(AnalysedQuestion.of(question).folded) is not None


def asks_for_version(question: AnalysedQuestion) -> bool:
    """Whether a question asks for the number of a version."""
    return question.read(_is_of_version)


def _is_of_version(question: str) -> bool:
    return _ASKS_VERSION.match(_NOW.sub(" ", AnalysedQuestion.of(question).folded)) is not None


def without_latest(question: AnalysedQuestion) -> AnalysedQuestion:
    """Return a question without the words that ask for what is latest; itself if it has none.

    The port of "the newest version of" something is no question of a version.
    """
    if not asks_for_latest(question):
        return question
    pattern = _NOW if asks_for_version(question) else _NEWEST_EDITION
    return question.without(pattern).without(_NOW)


def version_of(text: str) -> tuple[tuple[int, ...], str] | None:
    """Return the version that a text names first, as it is compared; None where there is none.

    One number alone is a version after its name: v2, version 2.

    >>> version_of("Lumen 1.9") < version_of("Lumen 1.10-rc1") < version_of("Lumen 1.10")
    True
    """
    if found := _NAMED_VERSION.search(text.lower()):
        numbers = [int(number) for number in found[1].split(".")]
        return tuple(numbers), (found[2] or _LAST_OF_ALL).lstrip("-")
    return None
