"""Statutes by their short titles: whoever asks of the Wasserschutzgesetz means the WasSchG."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import fold
from graphrag_pipeline.core.word_lists import word_lists

TITLES = "SELECT DISTINCT title FROM documents WHERE title LIKE '%(%)%'"
"""The titles that may hold a short one."""
_SHORT = pattern_of(r"\(((?:[A-ZÄÖÜ][a-zäöüß]*){2,})\b[^()]*\)")
_PART = pattern_of(r"[A-ZÄÖÜ][a-zäöüß]*")
_LEAST_LETTERS = 4
_STATUTE = pattern_of(
    rf"\b[^\W\d_]{{3,}}(?:{'|'.join(sorted(word_lists('questions.txt')['statute']))})\b"
)

ShortTitles = Mapping[str, re.Pattern[str]]


def short_titles_of(titles: Iterable[str]) -> ShortTitles:
    """Return what a statute may be called in full, by the short title in brackets after its own."""
    found = (match[1] for title in titles for match in _SHORT.finditer(title))
    return {
        short: re.compile("".join(rf"{fold(part)}\w*" for part in _PART.findall(short)))
        for short in dict.fromkeys(found)
        if len(short) >= _LEAST_LETTERS
    }


def with_short_titles(question: str, known: Callable[[], ShortTitles]) -> str:
    """Return a question with the short titles of statutes that it calls by words in full."""
    words = _STATUTE.findall(fold(question))
    short = (s for s, full in (known().items() if words else ()) if any(map(full.fullmatch, words)))
    return " ".join((question, *short))
