"""Whole sentences of running prose, told from code, headings, list items and rows of tables.

A light rule on whole columns: length, how the text begins and ends, brackets and quotes that close,
few symbols, and in English a finite verb. It asks no model and knows no grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import cache, cached_property
from typing import TYPE_CHECKING

from graphrag_pipeline.core.word_lists import word_lists

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import regex

    Settled = npt.NDArray[np.bool_] | None


class Prose(IntEnum):
    """Kinds of text, ordered: more is better to show to a reader."""

    CODE = 0
    """Code, a row of a table, or noise: nothing to quote."""
    FRAGMENT = 1
    """A heading, part of a sentence, a question or a pointer to another page."""
    ITEM = 2
    """A whole sentence that is an item of a list."""
    SENTENCE = 3
    """A whole sentence of running prose."""


REPEATED_IN = 3
"""A sentence that stands in so many documents in the same words is about none of them."""

_WORDS = word_lists("prose.txt")
_ASCII_WORD = re.compile(r"\w+").findall
_LEAST_WORDS = 5
_LEAST_CHARS = 25
_MOST_CHARS = 420
_LEAST_UNSPACED, _MOST_UNSPACED = 10, 200
_UNSPACED_SHARE = 1 / 3
_CODE_SHARE = 1 / 6
_MOST_CODE = 2
_SYMBOL_SHARE = 0.02
_DIGIT_SHARE = 0.25
_CAPITAL_SHARE = 0.75

_BULLET = r"^\s*(?:[-*+•‣·◦–—]|\(?\d{1,3}[.)]|\(?[a-z][.)]|#{1,6})\s+"
SPEAKER = r"^(?:\p{Lu}[^\s:]*\s?)+:\s+"
"""Who speaks a text, in capitals and with a colon."""
_MARK = re.compile(r"[&¶\xad\u200b\ufeff\[*_`]")
"""What stands in every text that one of the next finds anything in."""
_MARKS = (
    (r"&(?:nbsp|#160);", " "),
    (r"&quot;|&#34;", '"'),
    (r"&#39;|&apos;|&rsquo;", "'"),
    (r"&lt;", "<"),
    (r"&gt;", ">"),
    (r"&amp;", "&"),
    (r"[¶\x{ad}\x{200b}\x{feff}]", ""),
    (r"!?\[([^\[\]]+)\]\([^()\s]*(?:\s[^()]*)?\)", r"\1"),
    (r"\[\[(?:[^\[\]]+\]\[)?([^\[\]]+)\]\]", r"\1"),
    (r"\s?\[(?:\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*|citation needed|note \d+)\]", ""),
    (r"\*\*([^*\s](?:[^*]*[^*\s])?)\*\*", r"\1"),
    (r"(^|[\s(“\"])[*_]([^*_\s](?:[^*_]*[^*_\s])?)[*_]($|[\s).,;:!?”\"])", r"\1\2\3"),
    (r"`+([^`]*)`+", r"\1"),
)
_SPACES = r"[\s\p{Z}]+"
_WORD = r"\S+"
_CAPITALISED = r"[\s\"'“‘«(]\p{Lu}"
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_BEGINS = r"^[\"'“‘«„(\[「『《]*[\p{Lu}\p{Lt}\p{Lo}\p{N}]"
_ENDS = r"[.!…。！｡।][\"'”’»)\]」』》）]*$"
_OPEN_SINGLE = r"^['‘]\p{Lu}"
_CLOSED_SINGLE = r"\S['’](?:$|[\s,.;:!?)–—-])"
_CODE = (
    r">>>|::|->|=>|:=|[=!<>]=|[{}<>\\|@~^]|\s=\s|[\p{L}\p{N}]\(|__|--\w|\$\w|"
    r"\w_\w|\w/\w+/|[a-z]\.[a-z]+\.[a-z]|https?:"
)
_FILE_NAME = r"^\S.{0,120}\.(?:txt|html?|pdf|md|docx?|csv|json|rst)\s"
_ROW = r" \| |^\||\t|={4}|-{4}|\.{5}"
_SYMBOL = r"[\p{Sm}\p{Sk}\p{So}\p{Pc}#@*\\]"
_DIGIT = r"\p{Nd}"
_PAIRS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ("「", "」"), ("（", "）"))


def _any_word(words: Iterable[str]) -> str:
    """Return what finds one of some words in a text in small letters."""
    return rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b"


def _first_word(section: str) -> str:
    """Return what finds a word or words of a section at the beginning of such a text."""
    words = "|".join(re.escape(w).replace("_", r"\s") for w in sorted(_WORDS[section]))
    return rf"^[\"'“‘«(\[「『]*(?:{words})(?:\b|$)"


_NOT_LATIN = r"[^\x00-\x{24F}\x{2000}-\x{206F}]"
# No name, and hardly a word of English: até, für, où.
_ACCENTED = r"(?<!\p{L})\p{Ll}*[\x{DF}-\x{24F}]"
_SUBJECT = "i|you|we|they|he|she|it|who|which"
_REGULAR_VERB = rf"[a-z]{{2}}ed\b|\b(?:{_SUBJECT}) [a-z]{{2}}"
# Who or what, and what it does: "Moe recommends slate", "The clock chimes thrice".
_NO_SUBJECT = r"(?!(?:of|and|or|for|in|to|&) )"
_PRESENT_VERB = (
    rf"^(?:\p{{Lu}}[^\s,;:]* )+(?:{_NO_SUBJECT}[a-z]+ )?[a-z]{{2,}}[b-hj-rt-z]s {_NO_SUBJECT}"
)
_POINTER = _first_word("pointer")
# "Limit all lines", "Use 4 spaces", "Never use tabs".
_ORDER = (
    rf"{_first_word('orders')}|"
    rf"{_first_word('order')}\s(?:\d|(?:{'|'.join(sorted(_WORDS['ordered']))})\b|[a-z]{{3,}}ing\b)"
)
_LEANS_SPACED = _first_word("leaning")
_PRONOUN = "he|she|they|him|her|his|its|their|them|this|that|these|those|such|it"
_LEANS_LATER = rf"{_first_word('opening')}\s(?:{_PRONOUN})\b"
_LEANS_UNSPACED = (
    "^[\"'“‘«(「『]*(?:"
    + "|".join(re.escape(w) for w in sorted(_WORDS["leaning"], key=len) if "\u2e80" < w < "\uac00")
    + ")"
)


# What stands in every text that a pattern finds anything in, and is sooner found than the pattern:
# most so where it begins with one set of characters.
_NEEDED = {
    _SPACES: r"[^\S ]|  ",
    _CODE: (
        r"[=<>{}\\|@~^(/$_:.h-]"
        r"(?:(?<=[=<>{}\\|@~^(/$_])|(?<=:):|(?<=-)-|(?<=\.)[a-z]|(?<=h)ttp)"
    ),
    _ROW: r"[|\t=.-](?:(?<=[|\t])|(?<==)=|(?<=-)-|(?<=\.)\.)",
    _SYMBOL: r"[^a-zA-Z0-9 .,;:!?'\"()/%&-]",
    _DIGIT: r"\d",
    _UNSPACED: r"[^\x00-\u0dff]",
    _NOT_LATIN: r"[^\x00-\u024f]",
    _ACCENTED: r"[\u00df-\u024f]",
    _CLOSED_SINGLE: r"['’]",
}


def read_prose(texts: Sequence[str]) -> pa.Table:
    """Return (plain, grade, leans) of texts, a row for each, in their order.

    ``plain`` is the text as a reader wants it: white space is one space; bullets, permalinks (¶),
    numbers of citations, emphasis and links of Markdown and the commonest entities of HTML are
    gone, and no word is changed. ``grade`` is its :class:`Prose` as a number. ``leans`` says
    whether it begins with words that lean on the sentence before, such as He, But or In this.
    """
    import pyarrow as pa

    plain, grade, leans = _read(texts)
    return pa.table(
        {
            "plain": pa.array(plain, pa.string()),
            "grade": pa.array(grade, pa.int8()),
            "leans": pa.array(leans),
        }
    )


def grades(texts: Sequence[str]) -> list[tuple[Prose, bool]]:
    """Return the (grade, leans) of :func:`read_prose` of each text."""
    _, grade, leans = _read(texts)
    return list(zip(map(Prose, grade.tolist()), leans.tolist(), strict=True))


def _read(texts: Sequence[str]) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    import numpy as np

    column = _Texts(texts)
    row, bullet = column.has(_ROW), column.has(_BULLET)
    plain = column.readable()
    said = plain.replaced(SPEAKER, "", 1)
    code = said.is_code() | row
    whole = said.is_whole() & ~plain.has(_FILE_NAME)
    grade = np.where(whole, np.where(~bullet, Prose.SENTENCE, Prose.ITEM), Prose.FRAGMENT)
    grade[code] = Prose.CODE
    leans = said.says(_LEANS_SPACED) | said.says(_LEANS_LATER) | said.has(_LEANS_UNSPACED)
    return plain.texts, grade, leans


def readable(texts: Sequence[str]) -> list[str]:
    """Return texts as a reader wants them: the ``plain`` of :func:`read_prose`."""
    return _Texts(texts).readable().texts


def n_spoken(texts: Sequence[str]) -> list[int]:
    """Return how many words of each text are those of a speaker to a listener: I, you, okay."""
    words = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
    spoken = _WORDS["spoken"]
    return [
        sum(word.replace("’", "'") in spoken for word in words.findall(text.lower()))
        for text in texts
    ]


def without_speaker(text: str) -> str:
    """Return a text without the name of who speaks it, in capitals and with a colon."""
    return _compiled(SPEAKER).sub("", text, count=1)


class _Texts:
    """Texts, and what their characters say of each: arrays of numbers and of truth values."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(texts)

    @cached_property
    def _small(self) -> list[str]:
        return [text.lower() for text in self.texts]

    def has(self, pattern: str, settled: Settled = None) -> npt.NDArray[np.bool_]:
        return _finding(pattern, self._unsettled(self.texts, settled))

    def says(self, pattern: str, settled: Settled = None) -> npt.NDArray[np.bool_]:
        """Whether a text has a word, in whatever letters; of ``settled`` ones no one asks."""
        return _finding(pattern, self._unsettled(self._small, settled))

    def says_any(self, section: str, settled: Settled = None) -> npt.NDArray[np.bool_]:
        """Whether a text has one of the words of a section, in the same way."""
        import numpy as np

        words, others = _told_apart(section)
        pairs = zip(self._small_words, self._unsettled(self._small, settled), strict=True)
        return np.array(
            [
                bool(text) and (not words.isdisjoint(own) or others(text) is not None)
                for own, text in pairs
            ],
            bool,
        )

    def _unsettled(self, texts: list[str], settled: Settled) -> list[str]:
        if settled is None:
            return texts
        pairs = zip(texts, settled.tolist(), strict=True)
        return ["" if is_settled else text for text, is_settled in pairs]

    @cached_property
    def _small_words(self) -> list[list[str]]:
        find = _compiled(r"\w+").findall
        return [(_ASCII_WORD if text.isascii() else find)(text) for text in self._small]

    def n(self, pattern: str) -> npt.NDArray[np.int32]:
        import numpy as np

        find, may_find = _compiled(pattern).findall, _may_find(pattern)
        return np.array([len(find(text)) if may_find(text) else 0 for text in self.texts], np.int32)

    @cached_property
    def n_words(self) -> npt.NDArray[np.int32]:
        import numpy as np

        return np.array([len(text.split()) for text in self.texts], np.int32)

    def n_literally(self, characters: str) -> npt.NDArray[np.int32]:
        import numpy as np

        return np.array([text.count(characters) for text in self.texts], np.int32)

    @cached_property
    def n_chars(self) -> npt.NDArray[np.int32]:
        import numpy as np

        return np.array([len(text) for text in self.texts], np.int32)

    def replaced(self, pattern: str, instead: str, most: int | None = None) -> _Texts:
        sub, may_find = _compiled(pattern).sub, _may_find(pattern)
        return _Texts(
            [sub(instead, text, count=most or 0) if may_find(text) else text for text in self.texts]
        )

    def trimmed(self) -> _Texts:
        return _Texts([text.strip() for text in self.texts])

    def readable(self) -> _Texts:
        return self.replaced(_BULLET, "", 1).unmarked().replaced(_SPACES, " ").trimmed()

    def unmarked(self) -> _Texts:
        marked = [place for place, text in enumerate(self.texts) if _MARK.search(text)]
        plain = _Texts([self.texts[place] for place in marked])
        for pattern, instead in _MARKS:
            plain = plain.replaced(pattern, instead)
        texts = list(self.texts)
        for place, text in zip(marked, plain.texts, strict=True):
            texts[place] = text
        return _Texts(texts)

    def is_code(self) -> npt.NDArray[np.bool_]:
        import numpy as np

        most = np.minimum(self.n_words * _CODE_SHARE, _MOST_CODE)
        return (
            ~self.has(r"\p{L}")
            | (self.n(_CODE) > most)
            | (self.n(_SYMBOL) > self.n_chars * _SYMBOL_SHARE + 1)
            | (self.n(_DIGIT) > self.n_chars * _DIGIT_SHARE + 4)
        )

    def is_whole(self) -> npt.NDArray[np.bool_]:
        import numpy as np

        chars, words = self.n_chars, self.n_words
        unspaced = self.n(_UNSPACED) > chars * _UNSPACED_SHARE
        enough = np.where(
            unspaced,
            (chars >= _LEAST_UNSPACED) & (chars <= _MOST_UNSPACED),
            (words >= _LEAST_WORDS) & (chars >= _LEAST_CHARS) & (chars <= _MOST_CHARS),
        )
        has_verb = self.says_any("verb")
        has_verb = has_verb | self.has(_PRESENT_VERB, has_verb)
        has_verb = has_verb | self.says(_REGULAR_VERB, has_verb)
        has_verb = has_verb | self.says(_ORDER, has_verb)
        foreign = self.says(_NOT_LATIN, has_verb) | self.says_any("foreign", has_verb)
        foreign = foreign | self.has(_ACCENTED, foreign | has_verb)
        other_language = foreign & ~self.says_any("english", ~foreign | has_verb)
        return (
            enough
            & self.has(_BEGINS)
            & self.has(_ENDS)
            & self._is_closed()
            & (self.n(_CAPITALISED) + self.has(r"^\p{Lu}") <= words * _CAPITAL_SHARE)
            & (has_verb | other_language)
            & ~self.says(_POINTER)
        )

    def _is_closed(self) -> npt.NDArray[np.bool_]:
        """Whether every bracket and quote that opens closes."""
        closed = self.n_literally('"') % 2 == 0
        closed &= ~self.has(_OPEN_SINGLE) | self.has(_CLOSED_SINGLE)
        for opening, closing in _PAIRS:
            closed &= self.n_literally(opening) == self.n_literally(closing)
        return closed


@cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern once; ``\\x{...}`` in it is a character."""
    import regex

    plain = re.sub(r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), pattern)
    return regex.compile(plain)


def _finding(pattern: str, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    import numpy as np

    search, may_find = _compiled(pattern).search, _may_find(pattern)
    return np.array([bool(may_find(text) and search(text)) for text in texts], bool)


@cache
def _may_find(pattern: str) -> Callable[[str], object]:
    needed = _NEEDED.get(pattern)
    return re.compile(needed).search if needed else bool


@cache
def _told_apart(section: str) -> tuple[frozenset[str], Callable[[str], object]]:
    """Return the words of a section that are one run of letters, and a search for the others."""
    words = _WORDS[section]
    runs = frozenset(word for word in words if _compiled(r"\w+").fullmatch(word))
    return runs, _compiled(_any_word(words - runs)).search if words - runs else _nothing


def _nothing(_text: str) -> None:
    """Find nothing in a text."""
