"""Sentences that say who or what something is, by rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.query.question import words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence

_DEFINES = re.compile(words_pattern("defines"))
# What a sentence may say beside the subject before it says what that is.
_BEGINNING = 60
_SAYS_OF_ONESELF = r"\b(?:i['’]m|i am|my name is)\b"
# "Ada King (1815-52)" and "Ada King, born in London," are Ada King.
_INSERTED = re.compile(r"\([^)]*\)|,.*,\s*$")
_ARTICLE = re.compile(rf"(?:{words_pattern('articles')})\s+")
_APART = re.compile(r"[\s-]+")
_LEAST_INITIALS = 2
_INTRODUCED, _BY_LETTERS = 2.0, 0.5


def says_what_is(subject: str, *, is_person: bool) -> Callable[[Sentence], float]:
    """Return what says how much a sentence counts that says what a subject is; 0 if none does.

    It begins with the subject, or some of its words and no others, and goes on with "is a" or the
    like; or it announces what follows and says no other words itself, as a heading or a term does;
    or it introduces the subject (see :func:`_introduces`). Of a person, also an apposition
    ("King, the first ...") and what is said of oneself.
    """
    words = frozenset(terms(subject))
    introduced = _introduces(_ARTICLE.sub("", subject, count=1))
    apposition = re.compile(
        rf"{_SAYS_OF_ONESELF}[^.]{{0,40}}{re.escape(subject)}, |{re.escape(subject)}, "
        r"(?:who|an?|the|chief|senior|professor|director|founder|president|ceo|cto)\b"
    )

    def holds(sentence: Sentence) -> float:
        if sentence.announces and words.issuperset(terms(sentence.first)):
            return bool(terms(sentence.first))
        text = fold(sentence.quote)
        begin = text[: len(subject) + _BEGINNING]
        defines = _DEFINES.search(begin)
        before = terms(_INSERTED.sub("", begin[: defines.start()])) if defines else []
        if _stand_for(before, words) or (is_person and apposition.search(text)):
            return 1.0
        return introduced(text)

    return holds


def _stand_for(said: list[str], words: frozenset[str]) -> bool:
    """Whether words are of a subject, and more than a letter of it: C is no C-HNSW."""
    is_more = words.issubset(said) or any(len(word) > 1 for word in said)
    return bool(said) and is_more and words.issuperset(said)


def _introduces(name: str) -> Callable[[str], float]:
    """Return what says how much a folded text counts that brings a name in.

    It says that something is called so, goes on with what it is ("ArchRAG, a novel approach"; not
    "in Berlin, a man"), or, which is half as sure, has what the name is short for beside it
    ("Small World (SW)"). Such sentences are about something else as well, and so share less with
    the question: they count more than one that begins with the name.
    """
    bare, one = rf"(?<![\w-]){re.escape(name)}(?![\w-])", words_pattern("one")
    called = re.compile(
        rf"(?:{words_pattern('introduces')}) (?:[^.,;()]{{1,80}} \()?[\"'“«„]?{bare}|"
        rf"{bare},? \(?(?:{words_pattern('that_is')})"
    )
    apposition = re.compile(
        rf"(?:(\S+)\s)?[\"'“«„]?{bare}[\"'”»“]?(?: \([^()]{{1,80}}\))?, (?:{one})\s"
    )
    short = re.compile(rf"([^.;:()]{{3,80}}) \({bare}|{bare} \(([^()]{{3,80}})\)")
    leads = re.compile(words_pattern("leads_to_name"))

    def introduces(text: str) -> float:
        if name not in text:
            return 0.0
        beside = (match[1] or "" for match in apposition.finditer(text))
        if called.search(text) or any(not leads.fullmatch(before) for before in beside):
            return _INTRODUCED
        return _BY_LETTERS * any(_spell(name, m[1] or m[2]) for m in short.finditer(text))

    return introduces


def _spell(name: str, words: str) -> bool:
    """Whether words in a row begin with the letters of a name, at least half of them."""
    letters = [sign for sign in name if sign.isalpha()]
    initials = [word[0] for word in _APART.split(words) if word]
    for first, initial in enumerate(initials):
        n = 0
        for sign in initials[first:] if initial == letters[0] else ():
            n += n < len(letters) and sign == letters[n]
        if n >= _LEAST_INITIALS and 2 * n >= len(letters):
            return True
    return False
