"""The language of a text, told by its function words, and the stems of words in it.

Languages are ISO 639-1 codes of :data:`LANGUAGES`; none, an empty one, stands for English and for
all others, whose words are analysed as those of English are.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of
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
_WORD = pattern_of(r"[^\W\d_]{2,}")
# Enough to tell by; the beginning of a text has its title, which may be in another language.
READ_CHARS = 1_500
"""Characters of a text that its language is told by."""
_REMEMBERED_TEXTS = 1 << 12
# A text of fewer says too little: titles and names have "de" and "van" in any language.
_LEAST_WORDS = 3
_LEAST_SHARE = 10
# A short text may have fewer different function words: one for so many words.
_WORDS_TO_A_SIGN = 15
_ENGLISH = word_lists("search.txt")["stop"]
_ELIDING = frozenset(("fr", "it"))
# Scripts of one language, or of one that is most likely; kana come before the Han of Chinese.
_SCRIPTS = {
    "ko": pattern_of("[\uac00-\ud7a3]"),
    "ja": pattern_of("[\u3041-\u30fa]"),
    "zh": pattern_of("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "he": pattern_of("[\u05d0-\u05ea]"),
    "hi": pattern_of("[\u0904-\u0939]"),
    "bn": pattern_of("[\u0985-\u09b9]"),
    "ta": pattern_of("[\u0b85-\u0bb9]"),
    "te": pattern_of("[\u0c05-\u0c39]"),
    "pa": pattern_of("[\u0a05-\u0a39]"),
    "gu": pattern_of("[\u0a85-\u0ab9]"),
    "kn": pattern_of("[\u0c85-\u0cb9]"),
    "ml": pattern_of("[\u0d05-\u0d39]"),
    "si": pattern_of("[\u0d85-\u0dc6]"),
    "th": pattern_of("[\u0e01-\u0e2e]"),
    "lo": pattern_of("[\u0e81-\u0eae]"),
    "bo": pattern_of("[\u0f40-\u0f6c]"),
    "my": pattern_of("[\u1000-\u102a]"),
    "am": pattern_of("[\u1200-\u135a]"),
    "km": pattern_of("[\u1780-\u17b3]"),
    "ka": pattern_of("[\u10d0-\u10ff]"),
    "hy": pattern_of("[\u0531-\u0587]"),
    "fa": pattern_of("[\u067e\u0686\u0698\u06af\u06a9\u06cc]"),
    "ar": pattern_of("[\u0620-\u064a]"),
    "el": pattern_of("[\u0391-\u03c9]"),
}
# Letters that only one of several languages of a script has.
_ONLY_IN = {"uk": pattern_of("[їєґ]"), "ru": pattern_of("[ыэ](?!.*[іў])")}
# A tenth of the letters: Japanese has a third and more of kana, Persian a sixth of letters its own.
_LEAST_OF_SCRIPT = 10
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
    words = _WORD.findall(text[:READ_CHARS])
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


def language_of_document(text: str) -> str:
    """Return the language that a text begins in (ISO 639-1), by its script and function words.

    Empty where neither tells, as of code and of tables.

    >>> language_of_document("東京は日本の首都である。"), language_of_document("x = f(y)")
    ('ja', '')
    """
    begin = text[:READ_CHARS]
    if not begin.isascii():
        n_letters = max(1, sum(map(str.isalpha, begin)))
        for code, signs in _SCRIPTS.items():
            if _LEAST_OF_SCRIPT * len(signs.findall(begin)) > n_letters:
                return code
    words = [word for word in _WORD.findall(begin) if word.islower()]
    counts: Counter[str] = Counter()
    distinct: Counter[str] = Counter()
    for word, n in Counter(words).items():
        for code in _languages_of_word().get(word, ()):
            counts[code] += n
            distinct[code] += 1
    ranked = sorted(counts, key=lambda code: (counts[code], code == "en"), reverse=True)
    # Of two of as many words neither is told: a list in Spanish has "de" and "la" of Italian.
    is_alone = len(ranked) < 2 or counts[ranked[0]] > counts[ranked[1]]
    best = ranked[0] if ranked and is_alone else ""
    least = min(_LEAST_WORDS, max(2, len(words) // _WORDS_TO_A_SIGN))
    is_told = _LEAST_SHARE * counts[best] >= len(words) and distinct[best] >= least
    return best if is_told else next((c for c, own in _ONLY_IN.items() if own.search(begin)), "")


@cache
def _languages_of_word() -> dict[str, tuple[str, ...]]:
    """Return the languages of which a word is a function word."""
    languages: dict[str, tuple[str, ...]] = {word: ("en",) for word in _ENGLISH}
    for code in _listed():
        for word in function_words(code):
            languages[word] = (*languages.get(word, ()), code)
    return languages


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
