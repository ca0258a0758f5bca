"""Names taken apart: what two titles must agree on before they can mean the same thing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import STOP_WORDS, fold, singular
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.entity_types import (
    CONCEPT,
    ORGANIZATION,
    OTHER,
    PERSON,
    is_given_name,
    is_place,
    is_womans,
)
from graphrag_pipeline.extraction.rules.words import usually_lower

UNKNOWN_TYPES = frozenset((CONCEPT, OTHER, "", "UNKNOWN", "ENTITY"))
"""Types that say nothing: they agree with every other."""

_LISTS = word_lists("resolution.txt")
_MALE, _FEMALE, _PARTICLES = _LISTS["male"], _LISTS["female"], _LISTS["particle"]
_HONORIFICS = _MALE | _FEMALE | _LISTS["office"]
_EPITHETS = _LISTS["epithet"]
_GENERATIONS = _LISTS["generation"]
_SMALL = _LISTS["small"]
_WORD = pattern_of(r"(?:\d+(?:[.,:/-]\d+)+|[^\W_]|[+#$€£%])+")
_INSIDE = pattern_of(r"(?<!\d)-(?!\d)|(?<=\d)-(?!\d)|(?<!\d)-(?=\d)")
_MARKS = pattern_of(r"['’`´.](?!\d)|(?<!\d)\.(?=\d)")
_ROMAN = pattern_of(r"(?=[IVXL]{2})(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})|[IVX]$")
_ACRONYM = pattern_of(r"(?:[A-Z]\.?&?){2,7}s?")


@dataclass(frozen=True)
class Name:
    """A title taken apart.

    ``core`` is its folded words without honorifics; ``given`` and ``last`` are set for what may
    be a person's name, ``given`` being empty where only the last name is said. ``honorific`` is
    the word before it, if any, and ``sex`` "m", "f" or "" by that word.
    """

    title: str
    type: str
    words: tuple[str, ...]
    core: tuple[str, ...]
    honorific: str
    given: tuple[str, ...]
    last: str
    numbers: frozenset[str]

    @property
    def sex(self) -> str:
        """The sex that the honorific tells."""
        return "m" if self.honorific in _MALE else "f" if self.honorific in _FEMALE else ""

    @property
    def is_woman(self) -> bool:
        """Whether the honorific says so, or without one a given name that only women bear."""
        given = self.given[0] if self.given and not self.honorific else ""
        return self.sex == "f" or is_womans(given)

    @property
    def is_mister(self) -> bool:
        """Whether a man is called so who has no other title."""
        return self.honorific in _LISTS["mister"]

    @property
    def is_noble(self) -> bool:
        """Whether the honorific is of those that nobody called Mr. has."""
        return self.honorific in _LISTS["noble"]

    @property
    def has_office(self) -> bool:
        """Whether a person's honorific stands before it."""
        return bool(self.honorific) and self.honorific not in _EPITHETS

    @property
    def is_rare(self) -> bool:
        """Whether the last name is no word, place or given name that others go by as well."""
        last = self.last
        return not (is_given_name(last) or usually_lower(last) or is_place(last.capitalize()))

    @property
    def parts(self) -> set[str]:
        """The words that may name a person alone: the last name, and the first of a person."""
        first = self.given[0] if self.given and self.type == PERSON else ""
        return {self.last, first if len(first) > 1 else ""} - {""}

    @cached_property
    def spellings(self) -> frozenset[str]:
        """Keys of which equal things that are only spelled otherwise share one."""
        if not any(char.isalpha() for char in self.title):
            return frozenset()
        forms = {_unhyphened(self.title), _unhyphened(self.title, "")}
        bare = {" ".join(self._without_frame(_words(form))) for form in forms}
        # What is left of "News Corp." is a name; "news" is none.
        names = {f"a name: {key}" for key in bare if " " not in key and self.title[:1].isupper()}
        plain = {key for key in bare if " " in key or key == " ".join(self.words)}
        return frozenset(names | plain)

    @property
    def singular(self) -> str:
        """The key a common noun, or an acronym (APIs), shares with its plural; empty for names."""
        if _ACRONYM.fullmatch(self.title):
            return self.acronym
        last = self.words[-1] if self.words else ""
        if self.type != CONCEPT or self.title[:1].isupper() or last in _LISTS["own_plural"]:
            return ""
        return " ".join((*self.words[:-1], singular(last)))

    @property
    def skeleton(self) -> str:
        """First letter and consonants: near for names that differ by a slip."""
        letters = "".join(self.words)
        bare = re.sub(r"[aeiouyh\W\d]", "", letters[1:])
        return letters[:1] + re.sub(r"(.)\1+", r"\1", bare) if len(bare) > 2 else ""

    @property
    def acronym(self) -> str:
        """The letters of a title that is an acronym, folded."""
        plain = self.title.strip()
        return "".join(self.words).removesuffix("s") if _ACRONYM.fullmatch(plain) else ""

    @cached_property
    def initials(self) -> frozenset[str]:
        """The acronyms that the words of a longer name may give, with and without small words."""
        words = [word for word in re.split(r"[\s-]+", " ".join(self.words)) if word]
        if not 2 <= len(words) <= 9 or self.last:
            return frozenset()
        large = [word for word in words if word not in _SMALL]
        return frozenset("".join(w[0] for w in ws) for ws in (words, large) if len(ws) > 1)

    def _without_frame(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out a name's leading article and a company's legal form, if enough is left."""
        if not self.title[:1].isupper():
            return words
        if len(words) > 2 and words[0] == "the":
            words = words[1:]
        forms = _LISTS["company"] | ({"company", "co"} if self.type == ORGANIZATION else set())
        while len(words) > 1 and words[-1] in forms and words[-2] != "and":
            words = words[:-1]
        return words


def take_apart(title: str, kind: str) -> Name:
    """Return the parts of a title of this type."""
    words = _words(_unhyphened(title))
    numbers = _numbers(title, words)
    honorific, core = _core(_reordered(title, kind).removeprefix("O "), numbers)
    first_names, last = _person(title, kind, honorific, core)
    if numbers == {"i"} and last and (first_names or honorific in _LISTS["mister"]):
        numbers = frozenset()  # the pronoun, after a name: only those without a last name are I.
    return Name(
        title=title,
        type=kind,
        words=words,
        core=core,
        honorific=honorific,
        given=first_names,
        last=last,
        numbers=numbers,
    )


def conflict(first: Name, second: Name) -> str:
    """Return why two names cannot mean the same thing, in a few words, or an empty text."""
    if not types_agree(first.type, second.type):
        return f"types differ: {first.type}, {second.type}"
    if first.numbers != second.numbers:
        return "numbers differ"
    if first.last and first.last == second.last:
        if "m" in (first.sex, second.sex) and (first.is_woman or second.is_woman):
            return "honorifics differ in sex"
        if not given_agree(first.given, second.given):
            return "first names differ"
    return ""


def types_agree(first: str, second: str) -> bool:
    """Whether two types are the same, or one says nothing."""
    return first == second or first in UNKNOWN_TYPES or second in UNKNOWN_TYPES


def given_agree(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Whether given names may be one person's: initials stand for names, middle names may lack."""
    if not first or not second:
        return True
    if not _same_or_initial(first[0], second[0]):
        return False
    if len(first) == 1 or len(second) == 1:
        return True
    return len(first) == len(second) and all(map(_same_or_initial, first[1:], second[1:]))


def _same_or_initial(first: str, second: str) -> bool:
    shorter, longer = sorted((first, second), key=len)
    return first == second or (len(shorter) == 1 and longer.startswith(shorter))


def _unhyphened(title: str, by: str = " ") -> str:
    return _INSIDE.sub(by, title) if "-" in title else title


def _words(title: str) -> tuple[str, ...]:
    plain = _MARKS.sub("", fold(title).replace("&", " and "))
    if not plain.isascii():
        plain = plain.translate(_simplified())
    return tuple(_WORD.findall(plain))


@cache
def _simplified() -> dict[int, str]:
    """Return the simplified sign of each traditional one of Chinese: 東 and 东 are the same."""
    return {ord(pair[0]): pair[1] for pair in word_lists("han_variants.txt")["simplified"]}


def _reordered(title: str, kind: str) -> str:
    """Turn "Scrooge, Ebenezer" round."""
    last, comma, first_names = title.partition(", ")
    turn = kind == PERSON and comma and "," not in first_names and len(last.split()) == 1
    return (
        f"{first_names} {last}"
        if turn and first_names.lower().strip(".") not in _GENERATIONS
        else title
    )


def _core(title: str, numbers: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """Return the honorific, and the words without it, numerals and lower-case particles."""
    all_words = _unhyphened(title).replace(".", ". ").split()
    core_words = [w for w in all_words if not (w.islower() and fold(w) in _PARTICLES)]
    words = [word for part in core_words for word in _words(part)]
    honorific = ""
    while len(words) > 1 and words[0] in _HONORIFICS | _EPITHETS:
        honorific = honorific if honorific in _HONORIFICS else words[0]
        words = words[1:]
    if len(words) > 1 and len(set(words)) == 1:
        words = words[:1]
    return honorific, tuple(word for word in words if word not in numbers)


def _person(
    title: str, kind: str, honorific: str, core: Sequence[str]
) -> tuple[tuple[str, ...], str]:
    """Return given and last names of what may be a person's name."""
    if not core or len(core) > 4 or core[-1] in STOP_WORDS or len(core[-1]) < 2:
        return (), ""
    words = re.findall(r"[^\W\d_]+", title)[-len(core) :]
    if not all(word[:1].isupper() or fold(word) in _PARTICLES for word in words):
        return (), ""
    by_shape = len(core) == 1 or honorific in _HONORIFICS or is_given_name(core[0])
    is_person = kind == PERSON or (kind in UNKNOWN_TYPES and by_shape)
    first = core[0]
    if len(core) > 1 and first in _LISTS["no_given_name"]:
        return (), ""
    plausible = len(core) < 2 or len(first) == 1 or is_given_name(first) or not usually_lower(first)
    return (tuple(core[:-1]), core[-1]) if is_person and plausible else ((), "")


def _numbers(title: str, words: tuple[str, ...]) -> frozenset[str]:
    """Return years, numerals, ordinals and generations: names that differ in them differ."""
    words_and_numbers = re.findall(r"[^\W_]+", title)
    roman = {w.lower() for n, w in enumerate(words_and_numbers) if n and _ROMAN.fullmatch(w)}
    numbers = {
        w for w in words if any(map(str.isdigit, w)) or w in _LISTS["ordinal"] | _GENERATIONS
    }
    return frozenset(roman | numbers)
