"""Names in Korean text, whose words carry their particles: 한지영은, 서울에서."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from graphrag_pipeline.extraction.rules.scripts import (
    GEO,
    ORGANIZATION,
    PERSON,
    Place,
    Word,
    listed,
    words_of,
)

_WORD = re.compile("[가-힣]+")
_FULL = 3
_VERB_ENDS = tuple("다는은한된될할고며서면게지히던해")
_COMPANY = "주식회사"
_KINDS_OF_PLACE = "시도군구"


def korean_names(text: str) -> Iterator[Place]:
    """Yield (start, end, type) of names, the surest first; some overlap."""
    words = words_of(text, _WORD)
    yield from _bodies(words)
    yield from _places(words)
    people = list(_people(text, words))
    yield from people
    yield from _again(words, {text[start:end] for start, end, _ in people})


def _stems(word: str) -> Iterator[str]:
    """Yield a word as written, and without each particle that it may end in, the longest first."""
    for length in (4, 3, 2, 1):
        if len(word) > length + 1 and word[-length:] in listed("ko_particle"):
            yield word[:-length]
    yield word


def is_korean(word: str) -> bool:
    """Say whether a word ends in a sign of Hangul."""
    return word[-1:] >= "\uac00" and word[-1:] <= "\ud7a3"


def korean_term(word: str) -> str:
    """Return the noun that a word may be, without its particle; empty for a verb.

    >>> korean_term("패키지를"), korean_term("열렸다")
    ('패키지', '')
    """
    stem = next(_stems(word))
    is_verb = stem == word and word.endswith(_VERB_ENDS)
    return "" if is_verb or stem in listed("ko_no_term") else stem


def _bodies(words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        before = words[number - 1] if number and word.joined else None
        if before and before.text == _COMPANY:
            stem = next(_stems(word.text))
            yield before.start, word.start + len(stem), ORGANIZATION
            continue
        for stem in _stems(word.text):
            if stem == _COMPANY and before:
                yield before.start, word.start + len(stem), ORGANIZATION
            elif _is_body(stem):
                yield word.start, word.start + len(stem), ORGANIZATION
            else:
                continue
            break


@cache
def _is_body(stem: str) -> bool:
    if stem in listed("ko_generic"):
        return False
    if stem in ("기상청", "경찰청", "국세청", "소방청", "검찰청", "통계청", "대법원"):
        return True
    end = next((stem[n:] for n in range(1, len(stem)) if stem[n:] in listed("ko_organisation")), "")
    return bool(end) and len(stem) >= len(end) + 2 - (len(end) > 2)


def _places(words: Sequence[Word]) -> Iterator[Place]:
    for word in words:
        for stem in _stems(word.text):
            if stem in listed("ko_place") or _is_town(stem):
                yield word.start, word.start + len(stem), GEO
                break


def _is_town(stem: str) -> bool:
    return stem[-1] in _KINDS_OF_PLACE and stem[:-1] in listed("ko_place")


def _people(text: str, words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        after = words[number + 1] if number + 1 < len(words) and words[number + 1].joined else None
        before = words[number - 1] if number and word.joined else None
        stem = _name_stem(word.text)
        if not stem:
            continue
        titled = stem == word.text and after is not None and _is_title(after.text)
        led = len(stem) >= _FULL and before is not None and _before(before.text)
        if titled or led or (len(stem) == _FULL and _is_listed_beside(text, words, number)):
            yield word.start, word.start + len(stem), PERSON


def _name_stem(word: str) -> str:
    """Return the person's name that a word may be, without its particle."""
    return next((stem for stem in reversed([*_stems(word)]) if _like_name(stem, word)), "")


def _like_name(stem: str, word: str) -> bool:
    if word in listed("ko_no_person") or stem in listed("ko_no_person"):
        return False
    if stem in listed("ko_place") or _is_body(stem) or stem in listed("ko_title"):
        return False
    if stem[:2] in listed("ko_double"):
        return len(stem) in (3, 4)
    return len(stem) in (2, 3) and stem[0] in listed("ko_surname")


def _is_title(word: str) -> bool:
    return any(stem in listed("ko_title") for stem in _stems(word))


def _before(word: str) -> bool:
    return any(stem in listed("ko_before") for stem in _stems(word))


def _is_listed_beside(text: str, words: Sequence[Word], number: int) -> bool:
    """Say whether a like name stands beside it, after a comma or joined by 과, 와."""
    word = words[number]
    for other in (number - 1, number + 1):
        if not 0 <= other < len(words):
            continue
        first, second = sorted((word, words[other]), key=lambda one: one.start)
        is_listed = text[first.end : second.start] in (", ", "·", ",")
        is_listed = is_listed and first.text == _name_stem(first.text)
        is_joined = second.joined and first.text[-1] in "과와" and len(first.text) == _FULL + 1
        if len(_name_stem(words[other].text)) == _FULL and (is_listed or is_joined):
            return True
    return False


def _again(words: Sequence[Word], names: set[str]) -> Iterator[Place]:
    """Yield the other occurrences of people's full names."""
    full = {name for name in names if len(name) >= _FULL}
    for word in words if full else ():
        for stem in _stems(word.text):
            if stem in full:
                yield word.start, word.start + len(stem), PERSON
                break
