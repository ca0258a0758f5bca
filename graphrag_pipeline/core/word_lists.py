"""The word lists that the package ships, in ``data``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of

_FOLDER = Path(__file__).parents[1] / "data"
_SECTION = pattern_of(r"^\[(\w+)\]$", re.MULTILINE)
_COMMENT = pattern_of(r"^#.*$", re.MULTILINE)


@cache
def word_lists(name: str) -> dict[str, frozenset[str]]:
    """Read a shipped list file into its sections, words as written."""
    parts = _SECTION.split(_without_comments(name))
    return {
        section: word_set(listed) for section, listed in zip(parts[1::2], parts[2::2], strict=True)
    }


def word_pairs(name: str, section: str) -> dict[str, str]:
    """Return what the words of a section stand for, listed as ``word=meaning``, a _ as a blank."""
    pairs = (pair.rpartition("=") for pair in word_lists(name)[section])
    return {word: meaning.replace("_", " ") for word, _, meaning in pairs}


def word_set(listed: str) -> frozenset[str]:
    """Return the words of a list that is written with blanks between them."""
    return frozenset(listed.split())


def alternatives(words: Iterable[str]) -> str:
    """Return a pattern of words, the longest first, by their first signs: much faster so."""
    by_first: dict[str, list[str]] = {}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        by_first.setdefault(re.escape(word[0]), []).append(re.escape(word[1:]))
    return "|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in sorted(by_first.items()))


def ranked_words(name: str) -> list[str]:
    """Read a shipped list file that has no sections, in its order."""
    return _without_comments(name).split()


def _without_comments(name: str) -> str:
    return _COMMENT.sub("", (_FOLDER / name).read_text(encoding="utf-8"))
