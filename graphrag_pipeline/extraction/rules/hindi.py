"""Names in Hindi text, in which each word stands alone and a body is told by its last word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphrag_pipeline.extraction.rules.scripts import (
    GEO,
    ORGANIZATION,
    PERSON,
    Place,
    Word,
    listed,
    places_of,
    words_of,
)

_WORD = re.compile("[\u0900-\u0963\u0966-\u097f]+\\.?")
_MOST_BEFORE = 3
_NAME_WORDS = 2


def hindi_names(text: str) -> Iterator[Place]:
    """Yield (start, end, type) of names, the surest first; some overlap."""
    words = words_of(text, _WORD)
    yield from _bodies(words)
    yield from _people(words)
    yield from _places(words)


def _bodies(words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        if word.text not in listed("hi_organisation"):
            continue
        first = number
        while words[first].joined and number - first < _MOST_BEFORE and _is_plain(words[first - 1]):
            first -= 1
        ends = number + 1 == len(words) or words[number + 1].text not in listed("hi_organisation")
        if first < number and ends:
            yield words[first].start, word.end, ORGANIZATION


def _is_plain(word: Word) -> bool:
    return word.text not in listed("hi_stop") | listed("hi_title")


def _people(words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        if word.text in listed("hi_title"):
            first = number + 1
            if _continues(words, first) and words[first].text not in listed("hi_title"):
                yield words[first].start, words[_end_of_name(words, first)].end, PERSON
        elif word.text in listed("hi_given"):
            last = _end_of_name(words, number)
            surname = last > number and words[last].text in listed("hi_surname")
            if surname or not _continues(words, number + 1):
                yield word.start, words[last if surname else number].end, PERSON
        elif word.text in listed("hi_surname") and _has_given(words, number):
            yield words[number - 1].start, word.end, PERSON


def _has_given(words: Sequence[Word], number: int) -> bool:
    before = words[number - 1] if number and words[number].joined else None
    return before is not None and _is_plain(before) and before.text not in listed("hi_place")


def _continues(words: Sequence[Word], number: int) -> bool:
    return number < len(words) and words[number].joined and _is_plain(words[number])


def _end_of_name(words: Sequence[Word], first: int) -> int:
    last = first
    while last - first + 1 < _NAME_WORDS and _continues(words, last + 1):
        if words[last + 1].text in listed("hi_place") | listed("hi_organisation"):
            break
        last += 1
    return last


def _places(words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        if length := places_of(words, number, word.text, "hi_place"):
            last = number + length - 1
            last += _continues(words, last + 1) and words[last + 1].text in listed("hi_place_end")
            yield word.start, words[last].end, GEO
        elif word.text in listed("hi_place_end") and word.joined and _is_plain(words[number - 1]):
            yield words[number - 1].start, word.end, GEO
