"""Names in Hindi text, in which each word stands alone and a body is told by its last word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphrag_pipeline.core.patterns import pattern_of
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

_WORD = pattern_of("[\u0900-\u0963\u0966-\u097f]+\\.?")
_MOST_BEFORE = 3
_NAME_WORDS = 2
_PLURAL = ("ों", "ियां", "ियाँ")


def hindi_names(text: str) -> Iterator[Place]:
    """Yield (start, end, type) of names, the surest first; some overlap."""
    words = words_of(text, _WORD)
    yield from _bodies(words)
    yield from _people(words)
    yield from _places(words)


def _bodies(words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        if not _is_listed(word, "organisation"):
            continue
        if _is_at(words, number + 1, "ऑफ") and _continues(words, number + 2):
            first = number - (word.joined and _begins_body(words, number - 1))
            yield words[first].start, words[number + 2].end, ORGANIZATION
            continue
        first = _first_of_body(words, number)
        ends = number + 1 == len(words) or not _is_listed(words[number + 1], "organisation")
        if first < number and ends:
            yield words[first].start, word.end, ORGANIZATION


def _first_of_body(words: Sequence[Word], number: int) -> int:
    """Return the first word of a body's name before the one that says its kind: at most three."""
    first = number
    while words[first].joined and number - first < _MOST_BEFORE and _begins_body(words, first - 1):
        first -= 1
        if _is_listed(words[first], "place"):
            break
    return first


def _begins_body(words: Sequence[Word], number: int) -> bool:
    """Say whether a word may be the first of a body's name: no noun for a thing, nobody's name."""
    word = words[number]
    if not _is_plain(word) or _is_listed(word, "thing"):
        return False
    is_full = number and word.joined and _is_given(words[number - 1])
    return not (is_full and _is_surname(word))


def _is_listed(word: Word, section: str) -> bool:
    return word.text in listed(f"hi_{section}")


def _is_at(words: Sequence[Word], number: int, text: str) -> bool:
    return number < len(words) and words[number].joined and words[number].text == text


def _is_plain(word: Word) -> bool:
    is_other = _is_listed(word, "stop") or _is_listed(word, "title")
    return not is_other and not word.text.endswith(_PLURAL)


def _is_given(word: Word) -> bool:
    return _is_listed(word, "given") or _is_listed(word, "first")


def _is_surname(word: Word) -> bool:
    return _is_listed(word, "surname") or _is_listed(word, "last")


def _people(words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        if _is_listed(word, "title"):
            if last := _end_of_titled(words, number):
                yield words[number + 1].start, words[last].end, PERSON
        elif _is_given(word):
            last = _end_of_name(words, number)
            if last > number and _is_full(words, number, last):
                yield word.start, words[last].end, PERSON
            elif (
                _is_listed(word, "given")
                and not _continues(words, number + 1)
                and not _is_listed(word, "thing")
            ):
                yield word.start, word.end, PERSON
        elif _is_listed(word, "surname") and _has_given(words, number):
            yield words[number - 1].start, word.end, PERSON


def _end_of_titled(words: Sequence[Word], number: int) -> int:
    """Return the last word of who has a title, 0 if nobody: an office is a word, too."""
    first = number + 1
    if not _continues(words, first):
        return 0
    last, name = _end_of_name(words, first), words[first]
    is_name = last > first or _is_given(name) or _is_surname(name) or _acts(words, last)
    is_known = is_name and not _is_listed(name, "thing")
    return last if is_known or _is_listed(words[number], "sure_title") else 0


def _is_full(words: Sequence[Word], first: int, last: int) -> bool:
    """Say whether a given name and a word are a full name; many given names are words, too."""
    if _is_surname(words[last]):
        return True
    return _acts(words, last) and not _is_listed(words[first], "thing")


def _acts(words: Sequence[Word], number: int) -> bool:
    """Say whether a word is followed by what marks who did something."""
    return _is_at(words, number + 1, "ने")


def _has_given(words: Sequence[Word], number: int) -> bool:
    if not (number and words[number].joined):
        return False
    before = words[number - 1]
    return _is_plain(before) and not (_is_listed(before, "place") or _is_listed(before, "thing"))


def _continues(words: Sequence[Word], number: int) -> bool:
    return number < len(words) and words[number].joined and _is_plain(words[number])


def _end_of_name(words: Sequence[Word], first: int) -> int:
    last = first
    while last - first + 1 < _NAME_WORDS and _continues(words, last + 1):
        if _is_listed(words[last + 1], "place") or _is_listed(words[last + 1], "organisation"):
            break
        last += 1
    return last


def _places(words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        if _is_listed(word, "place_end"):
            if word.joined and _is_named(words[number - 1]):
                yield words[number - 1].start, word.end, GEO
        elif length := places_of(words, number, word.text, "hi_place"):
            last = number + length - 1
            last += _continues(words, last + 1) and _is_listed(words[last + 1], "place_end")
            yield word.start, words[last].end, GEO


def _is_named(word: Word) -> bool:
    """Say whether a word may be the name of a river or an island, and says not how large it is."""
    is_other = _is_listed(word, "adjective") or _is_listed(word, "thing")
    return _is_plain(word) and not is_other
