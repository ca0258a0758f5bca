"""Types of names by rule: what the words of a name and the words beside it say."""

from __future__ import annotations

from functools import cache

from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.words import usually_lower

PERSON = "PERSON"
ORGANIZATION = "ORGANIZATION"
GEO = "GEO"
EVENT = "EVENT"
DATE = "DATE"
WORK = "WORK"
CONCEPT = "CONCEPT"
OTHER = "OTHER"

_GEO_ENDS = ("land", "stan", "shire", "ville", "burg", "berg", "borough", "ford", "polis", "grad")
_SPEECH = word_lists("nlp_names.txt")["speech"]
_PLACE_BEFORE = word_lists("nlp_names.txt")["place_before"]


@cache
def _cues(section: str) -> frozenset[str]:
    return word_lists("nlp_names.txt")[section]


@cache
def _lower_cues(section: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _cues(section))


def is_demonym(word: str) -> bool:
    """Say whether a word is a listed adjective of nationality or creed."""
    return word in _cues("demonym")


def is_place(word: str) -> bool:
    """Say whether a word is a listed country, state or large city."""
    return word in _cues("place")


def is_given_name(word: str) -> bool:
    """Say whether a word is a listed given name, in any case."""
    return word.casefold() in _lower_cues("given")


def has_organisation_word(words: list[str]) -> bool:
    """Say whether one of the words names a kind of organisation."""
    return any(word.casefold() in _lower_cues("org") for word in words)


def is_event_word(word: str) -> bool:
    """Say whether a word names a kind of event."""
    return word.casefold() in _lower_cues("event")


def name_type(words: list[str], codes: str, before: str, after: str) -> str:
    """Return the type of a name from its words, their classes and its neighbours in the text."""
    return _by_own_words(words, codes) or _by_context(words, codes, before, after)


def _by_own_words(words: list[str], codes: str) -> str:
    lowered = [word.casefold() for word in words]
    if " ".join(words).casefold() in _lower_cues("place") and len(words) == 1:
        return GEO
    if codes[0] == "H":
        return PERSON if lowered[-1] not in _lower_cues("geo") else GEO
    head = lowered[lowered.index("of") - 1] if "of" in lowered[1:] else lowered[-1]
    if len(words) > 1:
        if head in _lower_cues("event") or codes[0] == "Y":
            return EVENT
        if head in _lower_cues("org") or "&" in words:
            return ORGANIZATION
        if head in _lower_cues("geo") or lowered[0] in ("lake", "mount", "fort", "cape", "port"):
            return GEO
        if head in _lower_cues("work"):
            return WORK
    if "w" in codes and has_organisation_word(words):
        return ORGANIZATION
    if "I" in codes or "J" in codes or ("w" in codes and "o" not in codes):
        return PERSON
    if is_given_name(words[0]) and "o" not in codes and len(words) <= 4:
        return PERSON
    if len(words) > 1 and codes[0] == "R":
        return PERSON if "o" not in codes else OTHER
    return ""


def _by_context(words: list[str], codes: str, before: str, after: str) -> str:
    last = words[-1].casefold()
    if after.casefold() in _SPEECH:
        return PERSON
    if len(words) == 1 and is_demonym(words[0]):
        return OTHER
    if codes == "A":
        return OTHER
    if len(words) == 1 and last.endswith(_GEO_ENDS) and len(last) > 6:
        return GEO
    if len(words) <= 2 and before.casefold() in _PLACE_BEFORE:
        return GEO
    if set(codes) == {"N"} and 2 <= len(words) <= 3 and not any(map(_is_ordinary, words)):
        return PERSON
    return OTHER


def _is_ordinary(word: str) -> bool:
    return (
        usually_lower(word.casefold())
        or is_demonym(word)
        or word.casefold() in _lower_cues("place")
    )
