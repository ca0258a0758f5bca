"""Names in Arabic and Hebrew text, whose prepositions and "and" are written on to the word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class _Script:
    """A language's prefix of lists, the pattern of its words, and its article."""

    code: str
    word: re.Pattern[str]
    article: str

    def listed(self, section: str) -> frozenset[str]:
        return listed(f"{self.code}_{section}")

    def forms(self, word: str) -> Iterator[str]:
        """Yield a word as written and without what may be written on to it."""
        yield word
        for length in (1, 2):
            if word[:length] in self.listed("prefix") and len(word) > length + 1:
                yield word[length:]
                if self.article == "ال" and word[:length].endswith("ل") and word[length] == "ل":
                    # للسيد is ل with السيد.
                    yield "ا" + word[length - 1 :]


_ARABIC = _Script("ar", re.compile("[\u0620-\u065f\u0670-\u06d3]+"), "ال")
_HEBREW = _Script("he", re.compile("[\u05d0-\u05ea]+(?:[\"'״׳-][\u05d0-\u05ea]+)*['׳]?"), "ה")
_NAME_WORDS = 2
_SHORT = 3


def arabic_names(text: str) -> Iterator[Place]:
    """Yield (start, end, type) of names in Arabic, the surest first; some overlap."""
    yield from _names(text, _ARABIC)


def hebrew_names(text: str) -> Iterator[Place]:
    """Yield (start, end, type) of names in Hebrew, the surest first; some overlap."""
    yield from _names(text, _HEBREW)


def _names(text: str, script: _Script) -> Iterator[Place]:
    words = words_of(text, script.word)
    yield from _bodies(words, script)
    yield from _people(words, script)
    yield from _places(words, script)


def _listed_form(word: Word, script: _Script, section: str) -> str:
    return next((form for form in script.forms(word.text) if form in script.listed(section)), "")


def _bodies(words: Sequence[Word], script: _Script) -> Iterator[Place]:
    for number, word in enumerate(words):
        form, length = _head(words, number, script)
        last = number
        if form:
            last = _end_of_body(words, number + length, script)
        elif form := _listed_form(word, script, "definite"):
            last = _run_of_article(words, number + 1, script)
            length = 1
        if form and last >= number + length:
            end = words[last].end
            yield word.end - len(form.split()[0]), end, ORGANIZATION


def _head(words: Sequence[Word], number: int, script: _Script) -> tuple[str, int]:
    """Return the words that say a kind of body, without prefix, and how many they are."""
    heads = script.listed("organisation")
    follows = _following(words, number + 1)
    for form in script.forms(words[number].text):
        if follows and f"{form} {follows.text}" in heads:
            return f"{form} {follows.text}", 2
        if form in heads:
            return form, 1
    return "", 0


def _following(words: Sequence[Word], number: int) -> Word | None:
    return words[number] if number < len(words) and words[number].joined else None


def _is_word_of_name(word: Word | None, script: _Script) -> bool:
    return word is not None and word.text not in script.listed("stop") and len(word.text) > 1


def _end_of_body(words: Sequence[Word], number: int, script: _Script) -> int:
    """Return the last word of a body whose own name begins with one: itself, or more."""
    first = _following(words, number)
    if not _is_word_of_name(first, script) or first is None:
        return number - 1
    place = places_of(words, number, first.text, f"{script.code}_place")
    if place > 1:
        return number + place - 1
    if script.code == "he":
        second = _following(words, number + 1)
        is_construct = second is not None and second.text.startswith("ה")
        longer = not first.text.startswith("ה") and is_construct
        longer = longer and _is_word_of_name(second, script)
        return number + int(longer)
    return _run_of_article(words, number + 1, script) if first.text.startswith("ال") else number


def _run_of_article(words: Sequence[Word], number: int, script: _Script) -> int:
    """Return the last of the words with the article that follow each other."""
    while (word := _following(words, number)) and _agrees(word, script):
        number += 1
    return number - 1


def _agrees(word: Word, script: _Script) -> bool:
    begins = ("ال", "لل") if script.code == "ar" else ("ה",)
    stopped = script.listed("stop") | script.listed("title")
    return word.text.startswith(begins) and word.text not in stopped


def _people(words: Sequence[Word], script: _Script) -> Iterator[Place]:
    for number, word in enumerate(words):
        if _listed_form(word, script, "title"):
            first = _following(words, number + 1)
            if first and not _listed_form(first, script, "title") and _may_name(first, script):
                yield first.start, words[_end_of_name(words, number + 1, script)].end, PERSON
        elif form := _listed_form(word, script, "given"):
            end = _end_of_name(words, number, script)
            alone = form == word.text and len(form) > _SHORT and _stands_alone(words, number)
            if alone or (end > number and _may_name(words[end], script)):
                yield word.end - len(form), words[end].end, PERSON


def _may_name(word: Word, script: _Script) -> bool:
    if script.code == "ar" and word.text.startswith(("ال", "لل", "بال")):
        return False
    return _is_word_of_name(word, script)


def _stands_alone(words: Sequence[Word], number: int) -> bool:
    return not (number + 1 < len(words) and words[number + 1].joined)


def _end_of_name(words: Sequence[Word], number: int, script: _Script) -> int:
    """Return the last word of a name that begins with one: two words, three with an Abd."""
    most = _NAME_WORDS + (words[number].text in ("عبد", "أبو", "بن", "בן"))
    last = number
    while last + 1 < len(words) and last - number + 1 < most:
        word = words[last + 1]
        is_name = word.joined and _is_word_of_name(word, script)
        if not is_name or _is_other(word, script):
            break
        last += 1
        most += word.text in ("عبد", "أبو", "بن", "בן")
    return last


def _is_other(word: Word, script: _Script) -> bool:
    """Say whether a word after a given name is no surname: a title, a place, one with "and"."""
    sections = ("title", "organisation", "definite", "place_head")
    if any(word.text in script.listed(section) for section in sections):
        return True
    tail = word.text[1:]
    joined = word.text[0] in ("و" if script.code == "ar" else "ו")
    return joined and any(tail in script.listed(s) for s in ("given", "title", "place"))


def _places(words: Sequence[Word], script: _Script) -> Iterator[Place]:
    section = f"{script.code}_place"
    for number, word in enumerate(words):
        for form in script.forms(word.text):
            start = word.end - len(form)
            if length := places_of(words, number, form, section):
                yield start, words[number + length - 1].end, GEO
                break
            follows = _following(words, number + 1)
            if form in script.listed("place_head") and _is_word_of_name(follows, script):
                yield start, words[number + 1].end, GEO
                break
            if script.code == "ar" and form in listed("ar_place_before"):
                if follows and follows.text.startswith("ال"):
                    yield follows.start, follows.end, GEO
                break
