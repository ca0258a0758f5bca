"""Names in Arabic and Hebrew text, whose prepositions and "and" are written on to the word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


_ARABIC = _Script("ar", pattern_of("[\u0620-\u065f\u0670-\u06d3]+"), "ال")
_HEBREW = _Script("he", pattern_of("[\u05d0-\u05ea]+(?:[\"'״׳-][\u05d0-\u05ea]+)*['׳]?"), "ה")
# With the article, a case ending or "her", "them", "you" a word names nobody.
_HERS = pattern_of("(?:ها|هم|هن|كم)$")
_NO_ARABIC_NAME = pattern_of(f"^(?:ال|لل|بال)|[\u064b-\u064d]|اً$|{_HERS.pattern}|..ات$")
_HEBREW_SURNAME = pattern_of(
    "..(?:ביץ|ביץ'|סקי|צקי|שטיין|שטין|ברג|ברגר|מן|פלד|שווילי|יאן|זון|סון|בוים|באום|וב|נקו|צ'וק)$"
)
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
    people = list(_people(words, script))
    yield from people
    yield from _surnames_again(text, words, people, script)
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
        if _is_definite(words[number].text, form, script):
            continue
        if follows and f"{form} {follows.text}" in heads:
            return f"{form} {follows.text}", 2
        if form in heads:
            return form, 1
    return "", 0


def _is_definite(word: str, form: str, script: _Script) -> bool:
    """Say whether a Hebrew word has its article: הרחוב is the street, and leads to no name."""
    return script.code == "he" and word.removesuffix(form).endswith(script.article)


def _following(words: Sequence[Word], number: int) -> Word | None:
    return words[number] if number < len(words) and words[number].joined else None


def _is_word_of_name(word: Word | None, script: _Script) -> bool:
    return word is not None and word.text not in script.listed("stop") and len(word.text) > 1


def _end_of_body(words: Sequence[Word], number: int, script: _Script) -> int:
    """Return the last word of a body whose own name begins with one: itself, or more."""
    first = _following(words, number)
    if first is None or not _is_word_of_name(first, script) or _HERS.search(first.text):
        return number - 1
    place = places_of(words, number, first.text, f"{script.code}_place")
    if place > 1:
        return number + place - 1
    if _is_given(first.text, script) or _binds(first, script):
        end_of = _end_of_surname if script.code == "ar" else _end_of_name
        return _run_of_article(words, end_of(words, number, script) + 1, script)
    if script.code == "he":
        second = _following(words, number + 1)
        is_construct = second is not None and second.text.startswith("ה")
        longer = not first.text.startswith("ה") and is_construct
        longer = longer and _is_word_of_name(second, script)
        return number + int(longer)
    return _run_of_article(words, number + 1, script)


def _run_of_article(words: Sequence[Word], number: int, script: _Script) -> int:
    """Return the last of the words with the article that follow each other, and of a "for"."""
    while (word := _following(words, number)) and _agrees(word, script):
        number += 1
    # الاتحاد الأردني لكرة القدم
    if script.code == "ar" and word and word.text.startswith("ل") and len(word.text) > _SHORT:
        aim = _following(words, number + 1)
        return number + 1 if aim and aim.text.startswith("ال") else number - 1
    return number - 1


def _agrees(word: Word, script: _Script) -> bool:
    begins = ("ال", "لل") if script.code == "ar" else ("ה",)
    stopped = script.listed("stop") | script.listed("title")
    return word.text.startswith(begins) and word.text not in stopped


def _people(words: Sequence[Word], script: _Script) -> Iterator[Place]:
    for number, word in enumerate(words):
        if title := _listed_form(word, script, "title"):
            if end := _end_of_titled(words, number + 1, title, script):
                yield words[number + 1].start, words[end - 1].end, PERSON
            continue
        for form in script.forms(word.text) if _is_word_of_name(word, script) else ():
            if end := _end_from_given(words, number, form, script):
                yield word.end - len(form), words[end - 1].end, PERSON
                break


def _end_of_titled(words: Sequence[Word], number: int, title: str, script: _Script) -> int:
    """Return the place behind the last word of who has a title, 0 if nobody is named by it."""
    first = _following(words, number)
    if not first or _listed_form(first, script, "title") or not _may_name(first, script):
        return 0
    if title in script.listed("civil_title") and not _is_given(first.text, script):
        return _end_of_surname(words, number, script) + 1
    last = _end_of_name(words, number, script)
    is_known = title in script.listed("sure_title") or _is_known(first, script)
    # Behind an office a verb may stand, but hardly two words of which neither is known.
    is_full = script.code == "ar" and last > number and _may_name(words[last], script)
    return last + 1 if is_known or is_full else 0


def _surnames_again(
    text: str, words: Sequence[Word], people: Sequence[Place], script: _Script
) -> Iterator[Place]:
    """Yield the surnames alone of those whom the text has named in full."""
    surnames = set()
    behind = 0
    for start, end, _ in people:
        if start >= behind and " " in text[start:end]:
            surnames.add(text[start:end].rpartition(" ")[2])
        behind = max(behind, end)
    for word in words:
        if len(word.text) > _SHORT and word.text in surnames and _may_name(word, script):
            yield word.start, word.end, PERSON


def _end_from_given(words: Sequence[Word], number: int, form: str, script: _Script) -> int:
    """Return the place behind a person's last word, whose first may be given; 0 if none is."""
    if form in script.listed("binding"):
        end = _end_of_name(words, number, script)
        is_full = form == words[number].text == "عبد" and end > number + 1
        return end + 1 if is_full and _is_surname(words[end].text, script) else 0
    if not _is_given(form, script):
        return 0
    is_sure = form in script.listed("given") and form == words[number].text
    end = _end_of_name(words, number, script)
    if end > number and _is_surname(words[end].text, script):
        return end + 1
    if end > number and is_sure:
        # A verb may stand there, the more so behind a given name that is a surname, too.
        is_surname = form in script.listed("last") and script.code == "he"
        may_follow = _may_name(words[end], script) and not is_surname
        may_follow = may_follow or (script.code == "ar" and words[end].text.startswith("ال"))
        if may_follow or _binds(words[end - 1], script) or _following(words, end + 1) is None:
            return end + 1
    # Two words that stand alone, in a list or below a letter.
    is_alone = not words[number].joined and _following(words, end + 1) is None
    if end > number and is_alone and form == words[number].text and _may_name(words[end], script):
        return end + 1
    follows = _following(words, number + 1)
    if follows and follows.text in script.listed("addressed"):
        return number + 1
    return number + 1 if is_sure and len(form) > _SHORT and follows is None else 0


def _is_given(form: str, script: _Script) -> bool:
    return form in script.listed("given") or form in script.listed("first")


def _is_known(word: Word, script: _Script) -> bool:
    is_name = _is_given(word.text, script) or word.text in script.listed("last")
    return is_name or _binds(word, script)


def _is_surname(word: str, script: _Script) -> bool:
    """Say whether a word may be a surname beyond doubt; in Arabic one is often a given name."""
    if word in script.listed("last"):
        return True
    if script.code == "ar":
        return _is_given(word, script) or (word.startswith("ال") and word.endswith("ي"))
    return bool(_HEBREW_SURNAME.search(word))


def _may_name(word: Word, script: _Script) -> bool:
    if script.code == "ar" and _NO_ARABIC_NAME.search(word.text):
        return False
    return _is_word_of_name(word, script)


def _end_of_surname(words: Sequence[Word], number: int, script: _Script) -> int:
    """Return the last word of what follows a title: one, and those that surely belong to it."""
    last = _end_of_name(words, number, script)
    while last > number and words[last].text not in script.listed("last"):
        last -= 1
    return last


def _end_of_name(words: Sequence[Word], number: int, script: _Script) -> int:
    """Return the last word of a name that begins with one: two words, more with an Abd."""
    most = _NAME_WORDS + _binds(words[number], script)
    last = number
    while last + 1 < len(words) and last - number + 1 < most:
        word = words[last + 1]
        is_name = word.joined and _is_word_of_name(word, script)
        if not is_name or _is_other(word, script):
            break
        last += 1
        most += _binds(word, script)
    return last


def _binds(word: Word, script: _Script) -> bool:
    """Say whether a word is the first part of a name: Abd al-Rahman, Ben David."""
    return any(form in script.listed("binding") for form in script.forms(word.text))


def _is_other(word: Word, script: _Script) -> bool:
    """Say whether a word after a given name is no surname: a title, a place, one with "and"."""
    sections = ("title", "organisation", "definite", "place_head")
    if any(word.text in script.listed(section) for section in sections):
        return True
    tail = word.text[1:]
    joined = word.text[0] in ("و" if script.code == "ar" else "ו")
    return joined and any(tail in script.listed(s) for s in ("given", "first", "title", "place"))


def _places(words: Sequence[Word], script: _Script) -> Iterator[Place]:
    section = f"{script.code}_place"
    for number, word in enumerate(words):
        for form in script.forms(word.text):
            start = word.end - len(form)
            if length := places_of(words, number, form, section):
                yield start, words[number + length - 1].end, GEO
                break
            follows = _following(words, number + 1)
            is_head = form in script.listed("place_head")
            is_head = is_head and not _is_definite(word.text, form, script)
            if is_head and _is_word_of_name(follows, script):
                yield start, words[number + 1].end, GEO
                break
            if script.code == "ar" and form in listed("ar_place_before"):
                if follows and follows.text.startswith("ال"):
                    yield follows.start, follows.end, GEO
                break
