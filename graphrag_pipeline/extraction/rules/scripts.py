"""Words with their places, and lists: shared by the rules for scripts without capitals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.entity_types import GEO, ORGANIZATION, PERSON

__all__ = ["GEO", "ORGANIZATION", "PERSON", "Place", "Word", "listed", "places_of", "words_of"]

Place = tuple[int, int, str]
"""Characters [start, end) of a text, and the type of what they name."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, its first character, and whether only a space parts it from the last."""

    text: str
    start: int
    joined: bool

    @property
    def end(self) -> int:
        """Return the place behind its last character."""
        return self.start + len(self.text)


def words_of(text: str, pattern: re.Pattern[str]) -> list[Word]:
    """Return the words that a pattern finds in a text."""
    words: list[Word] = []
    end = -1
    for match in pattern.finditer(text):
        joined = match.start() == end + 1 and text[end : end + 1] == " "
        words.append(Word(match.group(), match.start(), joined))
        end = match.end()
    return words


@cache
def listed(section: str) -> frozenset[str]:
    """Return a list of ``nlp_scripts.txt`` and ``nlp_script_names.txt``, a _ read as a space."""
    files = ("nlp_scripts.txt", "nlp_script_names.txt")
    words = frozenset[str]().union(*(word_lists(file).get(section, ()) for file in files))
    return frozenset(word.replace("_", " ") for word in words)


@cache
def _longest_place(section: str) -> int:
    return max(name.count(" ") for name in listed(section)) + 1


def places_of(words: Sequence[Word], number: int, bare: str, section: str) -> int:
    """Return how many words from one on are a listed place, the first of them read as ``bare``."""
    for length in range(min(_longest_place(section), len(words) - number), 0, -1):
        rest = words[number + 1 : number + length]
        if not all(word.joined for word in rest):
            continue
        if " ".join((bare, *(word.text for word in rest))) in listed(section):
            return length
    return 0
