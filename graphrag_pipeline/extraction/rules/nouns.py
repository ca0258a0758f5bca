"""Nouns of a text, in languages for which the extractor has no grammar.

German writes nouns with a capital. Elsewhere a noun is a word that often follows what only nouns
follow, an article above all, and is none of those listed or ending as verbs and adjectives do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

from graphrag_pipeline.core.word_lists import word_lists

BY_CAPITAL = frozenset(("de",))
"""Languages in which no word in lower case is a noun."""

BY_ARTICLE = frozenset(("fr", "es", "it", "pt", "nl"))
"""Languages in which nouns are told by what stands before them."""

_LEAST_SHARE = 3
_ADJECTIVE_FIRST = "nl"
_BEFORE_INFINITIVES = frozenset(("de", "d'", "d’", "di", "al", "en"))
_SHORT = 3
_LEAST_PLACE = 5


def nouns(texts: Sequence[str], classes: str, language: str) -> frozenset[str]:
    """Return the nouns of a text's tokens in one of :data:`BY_ARTICLE`, case folded."""
    before, not_nouns = _listed(f"{language}_before"), _listed(f"{language}_not")
    totals: Counter[str] = Counter()
    led: Counter[str] = Counter()
    for position, code in enumerate(classes):
        if code != "n":
            continue
        word = texts[position].casefold()
        totals[word] += 1
        leader = position - 1
        if language == _ADJECTIVE_FIRST:
            leader = _dutch_leader(texts, classes, position)
        if _leads(texts[leader].casefold(), word, language, before):
            led[word] += 1
    ends = tuple(_listed(f"{language}_end"))
    return frozenset(
        word
        for word, n in led.items()
        if _LEAST_SHARE * n >= totals[word] and word not in not_nouns and not word.endswith(ends)
    )


def _leads(leader: str, word: str, language: str, before: frozenset[str]) -> bool:
    if leader in _BEFORE_INFINITIVES and word.endswith(tuple(_listed(f"{language}_infinitive"))):
        return False
    return leader in before


def is_verb_after(word: str, language: str) -> bool:
    """Say whether a word, case folded, reads as a verb where it stands behind a noun."""
    ends = _listed(f"{language}_verb_end") | _listed(f"{language}_infinitive")
    return len(word) > _SHORT and word.endswith(tuple(ends))


def no_noun(word: str, language: str) -> bool:
    """Say whether a word, case folded, is listed as a verb or adjective, or ends as one."""
    listed = _listed(f"{language}_not")
    if language in BY_CAPITAL:
        ends = sorted(_listed("de_end"), key=len, reverse=True)
        return word in listed or any(word.removesuffix(end) in listed for end in ends)
    return word in listed or word.endswith(tuple(_listed(f"{language}_end")))


def ends_as_german_place(word: str) -> bool:
    """Say whether a word of German, which any noun may be, ends as towns do: Altenhausen."""
    ends = tuple(word_lists("nlp_names.txt")["geo_end_de"])
    return len(word) >= _LEAST_PLACE and word.casefold().endswith(ends)


def is_address(word: str) -> bool:
    """Say whether a word, case folded, greets whose name follows it: Lieve Saskia."""
    return word in _greetings()


def is_month(word: str) -> bool:
    """Say whether a word, case folded, is a month in one of the languages."""
    return word in _listed("month")


def _dutch_leader(texts: Sequence[str], classes: str, position: int) -> int:
    """Return the place of what leads to a Dutch word, before which an adjective may stand."""
    if classes[position + 1 : position + 2] == "n" and texts[position].endswith("e"):
        return position
    if classes[position - 1] == "n" and texts[position - 1].endswith("e"):
        return position - 2
    return position - 1


@cache
def _listed(section: str) -> frozenset[str]:
    return word_lists("nlp_terms.txt").get(section, frozenset())


@cache
def _greetings() -> frozenset[str]:
    lists = word_lists("nlp_letters.txt")
    phrases = lists["greeting"] | lists["greeting_with_mark"]
    return frozenset(phrase.rpartition("_")[2] for phrase in phrases)
