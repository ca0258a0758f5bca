"""Names in Korean text, whose words carry their particles: 한지영은, 서울에서."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.extraction.rules.scripts import (
    GEO,
    ORGANIZATION,
    PERSON,
    Place,
    Word,
    listed,
    words_of,
)

_WORD = pattern_of("[가-힣]+")
_FULL = 3
_VERB_ENDS = tuple("다는은한된될할고며서면게지히던해")
# Particles; a given name seldom ends so.
_NO_NAME_ENDS = ("을", "를", "의", "에", "가", "는", "로", "과", "와")
_SURE_TITLES = ("씨", "님", "여사", "선생님")
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


def _is_word(words: Sequence[Word], number: int) -> bool:
    """Say whether a town's name is a word here: 세계 대전 is a world war."""
    word = words[number]
    return word.joined and words[number - 1].text == "세계" and word.text.startswith("대전")


def _places(words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        for stem in _stems(word.text):
            is_town = stem[-1] in _KINDS_OF_PLACE and stem[:-1] in listed("ko_place")
            if is_town or (stem in listed("ko_place") and not _is_word(words, number)):
                yield word.start, word.start + len(stem), GEO
                break


def _people(text: str, words: Sequence[Word]) -> Iterator[Place]:
    for number, word in enumerate(words):
        after = words[number + 1] if number + 1 < len(words) and words[number + 1].joined else None
        before = words[number - 1] if number and word.joined else None
        stem = _name_stem(word.text)
        is_full = len(stem) == _FULL
        titled = stem == word.text and after is not None and _is_called(stem, after.text)
        led = is_full and before is not None and _before(before.text) and _is_like_given(stem)
        known = is_full and stem[1:] in listed("ko_first") and not stem.endswith(("은", "이"))
        listed_beside = is_full and _is_listed_beside(text, words, number) and _is_like_given(stem)
        if stem and (titled or led or known or listed_beside):
            yield word.start, word.start + len(stem), PERSON
        elif given := _given_alone(word.text, before):
            yield word.start, word.start + len(given), PERSON


def _given_alone(word: str, before: Word | None) -> str:
    """Return the given name of whom a letter is to, or of kin: 은지에게, 동생 준호는."""
    for stem in _stems(word):
        if stem in listed("ko_first"):
            is_kin = before is not None and before.text in listed("ko_kin")
            return stem if is_kin or word[len(stem) :] in ("에게", "께", "한테") else ""
    return ""


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


def _is_called(stem: str, after: str) -> bool:
    """Say whether what follows is a title; many of them are words, too: 주택 시장."""
    titles = [title for title in _stems(after) if title in listed("ko_title")]
    if any(title in _SURE_TITLES for title in titles):
        return True
    in_full = any(title in listed("ko_title_of_full") for title in _stems(after))
    return (bool(titles) or in_full) and len(stem) >= _FULL and _is_like_given(stem)


def _is_like_given(stem: str) -> bool:
    """Say whether what follows a surname has syllables that given names have."""
    surname = 2 if stem[:2] in listed("ko_double") else 1
    if stem.endswith(_NO_NAME_ENDS):
        return False
    return all(sign in listed("ko_given_syllable") for sign in stem[surname:])


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
