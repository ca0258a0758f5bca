"""The language of a text, told by its function words, and the stems of words in it.

Languages are ISO 639-1 codes of :data:`LANGUAGES`; none, an empty one, stands for English and for
all others, whose words are analysed as those of English are.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from graphrag_pipeline.core.word_lists import word_lists

LANGUAGES = {
    "da": "danish",
    "de": "german",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
"""Languages with stems of their own, and what Snowball calls them."""

_TERMS_VERSION = 1
# One letter is no word of a language: in code it is a name.
_WORD = re.compile(r"[^\W\d_]{2,}")
# Enough to tell by; the beginning of a text has its title, which may be in another language.
_READ_CHARS = 1_500
_REMEMBERED_TEXTS = 1 << 12
# A text of fewer says too little: titles and names have "de" and "van" in any language.
_LEAST_WORDS = 3
_LEAST_SHARE = 10
_ENGLISH = word_lists("search.txt")["stop"]
_ELIDING = frozenset(("fr", "it"))
_stemmers = threading.local()


@cache
def function_words(language: str) -> frozenset[str]:
    """Return the words without content of a language, empty for one that has no list."""
    names = ("nlp_languages.txt", "search_languages.txt")
    return frozenset[str]().union(*(word_lists(name).get(language, ()) for name in names))


def analysis_version() -> str:
    """Return what the terms of texts in :data:`LANGUAGES` are made by: another makes others."""
    return f"{_TERMS_VERSION}.{_snowball().version()}"


@lru_cache(_REMEMBERED_TEXTS)
def language_of(text: str) -> str:
    """Return the language in :data:`LANGUAGES` of a text, empty for English and all others.

    That of which its first words have most function words: three different ones that are not
    English too, a tenth of the words, and more than it has English ones.

    >>> language_of("Die Brücke ist seit dem Frühjahr für den Verkehr gesperrt.")
    'de'
    """
    # With a capital it may be part of a name: Los Angeles.
    words = _WORD.findall(text[:_READ_CHARS])
    foreign = [word for word in words if word in _all_foreign()]
    if len(set(foreign)) < _LEAST_WORDS or _LEAST_SHARE * len(foreign) < len(words):
        return ""
    english = [word for word in words if word in _ENGLISH]
    scores = {code: _score(code, foreign, english) for code in _listed()}
    best = max(scores, key=lambda code: scores[code])
    own = function_words(best)
    n_own, distinct = sum(word in own for word in foreign), own.intersection(foreign)
    is_told = (
        len(distinct) >= _LEAST_WORDS
        and _LEAST_SHARE * n_own >= len(words)
        and n_own > sum(word not in own for word in english)
    )
    return best if is_told and best in LANGUAGES else ""


def language_asked(question: str, n_rows: Mapping[str, int]) -> str:
    """Return the language of a question, of those that the texts it is asked of are in.

    ``n_rows`` is the number of texts by language, an empty one for those of English and all others.
    The language is the one of most of its function words, else that of most texts.
    """
    if len(n_rows) < 2:
        return next(iter(n_rows), "")
    words = _WORD.findall(question.casefold())
    of = {code: function_words(code) if code else _ENGLISH for code in n_rows}
    return max(n_rows, key=lambda code: (sum(word in of[code] for word in words), n_rows[code]))


def stem(word: str, language: str) -> str:
    """Return the stem of a word in lower case by Snowball, empty for a function word.

    What is elided before a word is left out in French and Italian, what follows the apostrophe of a
    name in Turkish.
    """
    if "'" in word:
        if language in _ELIDING:
            word = word.rpartition("'")[2]
        elif language == "tr":
            word = word.partition("'")[0]
        word = word.removesuffix("'s").replace("'", "")
    word = word.replace(".", "")
    return "" if word in function_words(language) else _stemmer(language).stemWord(word)


def _score(code: str, foreign: list[str], english: list[str]) -> int:
    own = function_words(code)
    return sum(word in own for word in foreign) + sum(word in own for word in english)


@cache
def _listed() -> tuple[str, ...]:
    """Return the languages that have lists, also those without stems: they are told apart."""
    return tuple(sorted({*LANGUAGES, *word_lists("nlp_languages.txt")}))


@cache
def _all_foreign() -> frozenset[str]:
    return frozenset[str]().union(*map(function_words, _listed())) - _ENGLISH


def _stemmer(language: str) -> Any:
    """Return the stemmer of a language for this thread: one must not be used by two at once."""
    own: dict[str, Any] = _stemmers.__dict__
    if language not in own:
        # Words are remembered by who asks for terms.
        own[language] = _snowball().Stemmer(LANGUAGES[language], 0)
    return own[language]


def _snowball() -> Any:
    import Stemmer

    return Stemmer
