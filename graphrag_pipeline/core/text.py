"""Text as every stage sees it: titles made comparable, and text split into search terms."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import lru_cache

from graphrag_pipeline.core.languages import LANGUAGES, language_asked, language_of, stem
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.scopes import within
from graphrag_pipeline.core.word_lists import word_lists

_SPACE = pattern_of(r"\s+")
_EDGE = " \t\n\"'“”‘’«»„`´()[]{}<>.,;:!?…·*_~|-–—"

_PAGE_ID = pattern_of(r"(?<=[^\s-])[\s-]+[0-9a-f]{32}$")

MAX_TERM_CHARS = 64
"""Longer terms are cut: they are hashes, addresses and noise, and would only grow the index."""

_LISTS = word_lists("search.txt")
STOP_WORDS = _LISTS["stop"]
"""English words without content. Not in it: us, may, will, can, which are also names."""

# Names and words that end like an inflection and are none.
_NOT_INFLECTED = _LISTS["not_inflected"]
_ENDS_IN_IE = _LISTS["ends_in_ie"]
_PLURAL = pattern_of(r"(?:[^aiosu]|ea|[^aeiou]o)s$")
_VOWEL = pattern_of(r"[aeiouy]")
_DOUBLE = pattern_of(r"([bdgmnprt])\1$")
# A stem ending so lost an e: releas(ed), locat(ing), divid(ed), assembl(ing), manag(ed).
_LOST_E = pattern_of(
    r"(?:[vzcu]|[aeiou]s|[nr]s|[^aeo]at|creat|[^aeiou](?:id|ib|ir|ur|ar|ud|um|ut|in|ul)"
    r"|[bcdfgkptz]l|[aeirdu]g|ang)$"
)
# One syllable, one vowel, one consonant: nam(ed), mak(ing). Doubled it would be hop(ped).
_SHORT = pattern_of(r"[^aeiou]*[aeiouy][^aeiouwxy]$")
_NOT_A_STEM = pattern_of(r"(?:[^aeiour]r|[aiou][aeiou]|e[aiou]|hm|q)$")

# Scripts written without spaces, and Hangul, whose words carry their particles.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs of Indic scripts belong to a word, though \w does not hold them.
_SIGNS = "\u0483-\u0487\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962-\u0963\u0981-\u0dff"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)+"
_ACRONYM = r"(?<![a-z0-9])(?:[a-z]\.){2,}"
_ASCII_TOKEN = pattern_of(rf"{_NUMBER}|{_ACRONYM}|[a-z0-9]+(?:'[a-z]+)*", re.ASCII)
# The tokens of a text in which no point or comma can be part of one: found in half the time.
_ASCII_WORD = pattern_of(r"[a-z0-9]+(?:'[a-z]+)*", re.ASCII)
_ASCII_DIGIT = pattern_of(r"[0-9]")
_TOKEN = pattern_of(
    rf"[{UNSPACED}]+|{_NUMBER}|{_ACRONYM}|[^\W_{UNSPACED}](?:'?[^\W_{UNSPACED}]|[{_SIGNS}])*",
)
# What the two divide differently.
_DIGIT_IN_SUFFIX = pattern_of(r"'[a-z]*[0-9]")
_IS_CJK = pattern_of(f"[{UNSPACED}]")
# Combining accents of Latin, Greek and Cyrillic; Hebrew points; Arabic vowel marks and tatweel.
# Texts of up to so many characters have their terms remembered.
_REMEMBERED_CHARS = 600
_ACCENT = pattern_of(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670]"
)
_MARKS: dict[str, str | None] = {
    "’": "'", "ʼ": "'", "‘": "'", "\u00ad": None, "\u200b": None, "\u200d": None,
}  # fmt: skip
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"} | _MARKS
)
# The capital I with a dot, in lower case, has it as a sign of its own.
_MARKS_ALONE = str.maketrans(_MARKS | {"\u0307": None})

_MOST_DIGITS = 9
MARKS = {code: f"language:{code}" for code in LANGUAGES}
"""By language, the term that tells of a stored text what it is in: no word is split into it."""
_asked_in: ContextVar[str | None] = ContextVar("asked_in", default=None)


def without_page_id(name: str) -> str:
    """Return the name of a file without the id that Notion ends it with.

    >>> without_page_id("Quay 4 0123456789abcdef0123456789abcdef")
    'Quay 4'
    """
    return _PAGE_ID.sub("", name)


def normalize_title(title: str) -> str:
    """Return the key by which mentions of one entity are merged.

    Unicode NFKC, case folded, white space collapsed, quotes and stray punctuation trimmed.

    >>> normalize_title('  “Marie  CURIE” ')
    'marie curie'
    """
    folded = unicodedata.normalize("NFKC", title).casefold()
    return _SPACE.sub(" ", folded).strip(_EDGE) or _SPACE.sub(" ", folded).strip()


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: 1 batch, 2 files added."""
    first, _, rest = noun.partition(" ")
    plural_noun = plural or (f"{first}s {rest}" if first == "file" and rest else f"{noun}s")
    return f"{count:,} {noun if count == 1 else plural_noun.strip()}"


def terms(text: str) -> list[str]:
    """Return the search terms of a text, in order: what lexical embedding and full text count.

    NFKC, case and accents folded; words by Unicode; runs of Chinese, Japanese, Korean and other
    unspaced scripts as character bigrams; English stop words dropped; plurals, -ing and -ed of
    English cut back, names left alone; numbers kept. While a question in one of
    :data:`~graphrag_pipeline.core.languages.LANGUAGES` is answered (:func:`asked_in`), its
    function words and Snowball's stems take the place of English. Texts and questions must both
    pass through here, so a term need only be the same for both, not be a word.

    >>> terms("The wizard's 1,890 Cafés were opening in 東京都")
    ['wizard', '1890', 'cafe', 'open', '東京', '京都']
    """
    return _joined_terms(text, _asked_in.get() or "").split()


def terms_batch(texts: Sequence[str]) -> list[str]:
    """Return :func:`terms` of each text, joined by spaces."""
    language = _asked_in.get() or ""
    return [_joined_terms(text, language) for text in texts]


def own_terms(texts: Sequence[str]) -> list[str]:
    """Return the terms of each text in its own language, joined by spaces; see :func:`terms`.

    While a question is answered, all are taken to be in the question's.
    """
    asked = _asked_in.get()
    return [_joined_terms(text, language_of(text) if asked is None else asked) for text in texts]


def stored_terms(texts: Sequence[str]) -> list[str]:
    """Return the terms of each text in its own language, as the full-text column stores them.

    One that is in one of :data:`~graphrag_pipeline.core.languages.LANGUAGES` has its mark first.
    """
    return [_marked(text, language_of(text)) for text in texts]


def asked_terms(question: str, n_rows: Mapping[str, int]) -> Counter[tuple[str, ...]]:
    """Return the terms to look for in stored texts, and how often the question has each.

    ``n_rows`` is the number of texts by language, an empty one for all that have no mark. Without
    the function words of the question's language, each word is looked for as every language that
    texts are in would have it: those stand together, for they are one word.

    >>> sorted(asked_terms("Wer baute die Brücken?", {"": 1, "de": 9}))
    [('baute', 'baut'), ('brucken', 'bruck')]
    """
    if not any(n_rows):
        return Counter(map(_written, _joined_terms(question, "").split()))
    asked = language_asked(question, n_rows)
    counts: Counter[tuple[str, ...]] = Counter()
    for token in _tokens_as_written(question):
        if own := _term(token, asked):
            forms = dict.fromkeys(_term(token, language) for language in ("", *n_rows))
            forms.pop("", None)
            # Pairs of signs, which are several terms, are the same in all languages.
            whole = _written(own) if own.isdecimal() else tuple(forms)
            counts.update([whole] if " " not in own else [(t,) for t in own.split()])
    return counts


def _written(term: str) -> tuple[str, ...]:
    """Return how texts may write a term of a question: 1250 is 1250.00 and 1.250, too."""
    if not term.isdecimal() or len(term) > _MOST_DIGITS:
        return (term,)
    return (*dict.fromkeys((term, f"{term}.00", f"{int(term):,}".replace(",", "."))),)


def asked_in(language: str) -> AbstractContextManager[None]:
    """Let texts be compared as the language of a question has them, in this context."""
    return within(_asked_in, language)


def asked_language() -> str | None:
    """Return the language of the question that is being answered; None where none is."""
    return _asked_in.get()


def names_apart(names: Iterable[str], most: int) -> list[str]:
    """Return the first ``most`` names of which none holds another.

    >>> names_apart(["Brandvik Line", "Brandvik", "Orlen Dam"], 3)
    ['Brandvik Line', 'Orlen Dam']
    """
    chosen: list[str] = []
    for name in names:
        folded = name.casefold()
        if not any(folded in other.casefold() or other.casefold() in folded for other in chosen):
            chosen.append(name)
        if len(chosen) == most:
            break
    return chosen


def singular(word: str) -> str:
    """Return the singular of an English noun in lower case; names and other words as they are."""
    return _singular(word) if len(word) > 3 and word not in _NOT_INFLECTED else word


def _joined_terms(text: str, language: str) -> str:
    if len(text) >= _REMEMBERED_CHARS:
        return _analysed(text, language)
    return _short_terms(text, language) if language else _short_english(text)


@lru_cache(maxsize=1 << 14)
def _short_terms(text: str, language: str) -> str:
    """Remember the terms of sentences: one question asks for those of each several times."""
    return _analysed(text, language)


@lru_cache(maxsize=1 << 14)
def _short_english(text: str) -> str:
    # With one argument, what is remembered is found in half the time.
    return _analysed(text, "")


def _analysed(text: str, language: str) -> str:
    if language:
        return " ".join(filter(None, (_term(t, language) for t in _tokens_as_written(text))))
    folded = fold(text)
    simple = text.isascii() or (_is_plain(folded) and not _DIGIT_IN_SUFFIX.search(folded))
    pattern = _ascii_token(folded) if simple else _TOKEN
    return " ".join(filter(None, map(_analyse, pattern.findall(folded))))


def _ascii_token(folded: str) -> re.Pattern[str]:
    """Return what finds the tokens of a text: a simple one where no sign can be part of any."""
    if "." in folded[:-1] or ("," in folded and _ASCII_DIGIT.search(folded)):
        return _ASCII_TOKEN
    return _ASCII_WORD


def _marked(text: str, language: str) -> str:
    joined = _joined_terms(text, language)
    return f"{MARKS[language]} {joined}" if language else joined


def _tokens_as_written(text: str) -> list[str]:
    """Return the words of a text in lower case with their accents, which stemmers go by."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_MARKS_ALONE)
    return _TOKEN.findall(unicodedata.normalize("NFKC", folded))


@lru_cache(maxsize=1 << 17)
def _term(token: str, language: str) -> str:
    """Return the terms of a token with its accents in a language, joined by spaces."""
    if not language or token[0].isdigit() or _IS_CJK.match(token):
        return _analyse(fold(token))
    return fold(stem(token, language))[:MAX_TERM_CHARS]


def fold(text: str) -> str:
    """Return a text in NFKC, case and accents folded: what differs in these alone is the same."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    for curly in "‘’":
        folded = folded.replace(curly, "'")
    if _is_plain(folded):
        return folded
    folded = folded.translate(_LETTERS)
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", folded))
    return unicodedata.normalize("NFKC", bare)


def _is_plain(text: str) -> bool:
    """Whether a text is ASCII but for quotes and dashes, as most with any other sign are."""
    for sign in "“”–—":
        text = text.replace(sign, "")
    return text.isascii()


@lru_cache(maxsize=1 << 17)
def _analyse(token: str) -> str:
    """Return the terms of one token, joined by spaces; none for a stop word."""
    if _IS_CJK.match(token):
        return " ".join(token[i : i + 2] for i in range(max(1, len(token) - 1)))
    if token in STOP_WORDS:
        return ""
    if token[0].isdigit():
        return token.replace(",", "")[:MAX_TERM_CHARS]
    word = token.removesuffix("'s").replace("'", "").replace(".", "")
    if word in STOP_WORDS:
        return ""
    return (_stem(word) if word.isascii() else word)[:MAX_TERM_CHARS]


# Snowball's English stemmer in place of these rules changes R@5 on 100 MuSiQue questions by -1.2
# [-2.8, +0.3] points for BM25 and by +2.0 [-1.2, +5.3] for hashed words, so neither is surely
# better; it takes five times as long.
def _stem(word: str) -> str:
    if len(word) < 4 or word in _NOT_INFLECTED or not word.isalpha():
        return word
    if word.endswith("s"):
        singular = _singular(word)
        return singular if singular == word else _stem(singular)
    if word.endswith("ing"):
        return _base(word, word[:-3])
    if word.endswith("ied"):
        return word[:-3] + "y" if len(word) > 4 else word
    if word.endswith("ed") and not word.endswith("eed"):
        return _base(word, word[:-2])
    return word


def _singular(word: str) -> str:
    if word.endswith("ies"):
        keeps_e = len(word) == 4 or word[:-1] in _ENDS_IN_IE
        return word[:-1] if keeps_e else word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1] if _PLURAL.search(word) else word


def _base(word: str, stem: str) -> str:
    """Return the verb a participle was made from, or the word where it is likely none."""
    if len(stem) < 3 or not _VOWEL.search(stem) or _NOT_A_STEM.search(stem):
        return word
    if len(stem) > 3 and _DOUBLE.search(stem):
        return stem[:-1]
    if _LOST_E.search(stem) or _SHORT.fullmatch(stem):
        return stem + "e"
    return stem
