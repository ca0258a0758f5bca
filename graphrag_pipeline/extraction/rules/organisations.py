"""Organisations by rule: known ones, and words of other languages than English that say so."""

from __future__ import annotations

from functools import cache

from graphrag_pipeline.core.word_lists import word_lists

_LISTS = word_lists("nlp_bodies.txt")
_KNOWN = frozenset(name.replace("_", " ") for name in _LISTS["known"])
_ENDS = tuple(_LISTS["end"])
_NO_ENDS = tuple(_LISTS["no_end"])
_PARTS_OF_PROPER = 3


def is_known_body(words: list[str]) -> bool:
    """Say whether a name, as written, is that of a well-known organisation: IBM, Rode Kruis."""
    return " ".join(words) in _KNOWN


@cache
def ends_as_body(word: str, *, alone: bool = True) -> bool:
    """Say whether a compound names a kind of body: Fietsersbond, Max-Planck-Institut.

    Among other words a kind of body itself does: Freiwillige Feuerwehr.

    The parts that hyphens join are capitals, as those of a name are, and three or more; of two the
    first may be anything, as in Online-Bank.
    """
    parts = word.split("-")
    if len(parts) > 1:
        proper = len(parts) >= _PARTS_OF_PROPER and all(part[:1].isupper() for part in parts)
        return proper and is_body_word(parts[-1])
    return is_body_word(word) and not (alone and word.casefold() in _ENDS)


def is_body_word(word: str) -> bool:
    """Say whether a word is or ends as a kind of body, whatever stands before it: Landesamt."""
    folded = word.casefold()
    return folded.endswith(_ENDS) and not folded.endswith(_NO_ENDS)


def leads_to_body(word: str) -> bool:
    """Say whether a word in lower case says that a body's name follows: société, zwemvereniging."""
    return word.islower() and (word in _LISTS["before"] or ends_as_body(word))


def is_workplace(before: str, second_before: str, after: str) -> bool:
    """Say whether somebody works there, by the words around: werkt bij X, bei X arbeitet."""
    works = _LISTS["works"]
    return before in _LISTS["works_at"] and (second_before in works or after in works)


def is_article_before(word: str) -> bool:
    """Say whether a word, in any case, may be an article before a name, which has none itself."""
    return word.casefold() in _LISTS["article"]
