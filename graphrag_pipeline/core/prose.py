"""Whole sentences of running prose, told from code, headings, list items and rows of tables.

A light rule on whole columns: length, how the text begins and ends, brackets and quotes that close,
few symbols, and in English a finite verb. It asks no model and knows no grammar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

import polars as pl

from graphrag_pipeline.core.word_lists import word_lists


class Prose(IntEnum):
    """What a text reads as; more is better to show to a reader."""

    CODE = 0
    """Code, a row of a table, or noise: nothing to quote."""
    FRAGMENT = 1
    """A heading, part of a sentence, a question or a pointer to another page."""
    ITEM = 2
    """A whole sentence that is an item of a list."""
    SENTENCE = 3
    """A whole sentence of running prose."""


_WORDS = word_lists("prose.txt")
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
_SPEAKER = r"^(?:\p{Lu}[\p{L}.'’-]*\s?){1,4}:\s+"
_MARKS = (
    (r"&(?:nbsp|#160);", " "),
    (r"&quot;|&#34;", '"'),
    (r"&#39;|&apos;|&rsquo;", "'"),
    (r"&lt;", "<"),
    (r"&gt;", ">"),
    (r"&amp;", "&"),
    (r"[¶\u00ad\u200b\ufeff]", ""),
    (r"!?\[([^\[\]]{1,200})\]\([^()\s]*\)", "$1"),
    (r"\s?\[(?:\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*|citation needed|note \d+)\]", ""),
    (r"\*\*([^*\s](?:[^*]*[^*\s])?)\*\*", "$1"),
    (r"(^|[\s(“\"])[*_]([^*_\s](?:[^*_]*[^*_\s])?)[*_]($|[\s).,;:!?”\"])", "$1$2$3"),
    (r"`+([^`]*)`+", "$1"),
    (r"\s+", " "),
)
_WORD = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}'’.-]*"
_CAPITALISED = r"(?:^|[^\p{L}\p{N}'’.-])\p{Lu}"
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_BEGINS = r"^[\"'“‘«„(\[「『《]*[\p{Lu}\p{Lt}\p{Lo}\p{N}]"
_ENDS = r"[.!…。！｡।][\"'”’»)\]」』》）]*$"
_OPEN_SINGLE = r"^['‘]\p{Lu}"
_CLOSED_SINGLE = r"[\p{L}\p{N}.,!?…-]['’](?:$|[^\p{L}])"
_CODE = (
    r">>>|::|->|=>|:=|[=!<>]=|[{}<>\\|@~^]|\s=\s|[\p{L}\p{N}]\(|__|--\w|\$\w|"
    r"\w_\w|\w/\w+/|[a-z]\.[a-z]+\.[a-z]|https?:"
)
_FILE_NAME = r"^\S.{0,80}\.(?:txt|html?|pdf|md|docx?|csv|json|rst)\s"
_ROW = r" \| |^\||\t|={4}|-{4}|\.{5}"
_SYMBOL = r"[\p{Sm}\p{Sk}\p{So}\p{Pc}#@*\\]"
_PAIRS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ("「", "」"), ("（", "）"))


def _any_word(section: str) -> str:
    words = "|".join(re.escape(word) for word in sorted(_WORDS[section]))
    return rf"(?i)(?:^|[^\p{{L}}\p{{N}}'’-])(?:{words})(?:$|[^\p{{L}}\p{{N}}])"


def _first_word(section: str) -> str:
    words = "|".join(re.escape(w).replace("_", r"\s") for w in sorted(_WORDS[section]))
    return rf"(?i)^[\"'“‘«(\[「『]*(?:{words})(?:$|[^\p{{L}}\p{{N}}'’])"


_ENGLISH = _any_word("english")
_VERB = _any_word("verb")
_REGULAR_VERB = (
    r"[a-z]{2}(?:ed|ied)(?-u:\b)|(?-u:\b)(?:I|[Yy]ou|[Ww]e|[Tt]hey|[Hh]e|[Ss]he|[Ii]t|who|which) [a-z]{2}"
)
_POINTER = _first_word("pointer")
_LEANS_SPACED = _first_word("leaning")
_LEANS_UNSPACED = (
    "^[\"'“‘«(「『]*(?:"
    + "|".join(re.escape(w) for w in sorted(_WORDS["leaning"], key=len) if not w[0].isascii())
    + ")"
)


def read_prose(texts: Sequence[str]) -> pl.DataFrame:
    """Return (plain, grade, leans) of texts, a row for each, in their order.

    ``plain`` is the text as a reader wants it: white space is one space; bullets, permalinks (¶),
    numbers of citations, emphasis and links of Markdown and the commonest entities of HTML are
    gone, and no word is changed. ``grade`` is its :class:`Prose` as a number. ``leans`` says
    whether it begins with a word that leans on the sentence before, such as He, This or But.
    """
    frame = pl.DataFrame({"text": list(texts)}, schema={"text": pl.String})
    return (
        frame.with_columns(plain=_readable(pl.col("text")))
        .with_columns(said=pl.col("plain").str.replace(_SPEAKER, ""))
        .with_columns(
            n_chars=pl.col("said").str.len_chars().cast(pl.Int64),
            n_words=pl.col("said").str.count_matches(_WORD).cast(pl.Int64),
        )
        .select(
            "plain",
            grade=pl.when(_is_code())
            .then(int(Prose.CODE))
            .when(~_is_whole())
            .then(int(Prose.FRAGMENT))
            .when(pl.col("text").str.contains(_BULLET))
            .then(int(Prose.ITEM))
            .otherwise(int(Prose.SENTENCE))
            .cast(pl.Int8),
            leans=pl.col("said").str.contains(_LEANS_SPACED)
            | pl.col("said").str.contains(_LEANS_UNSPACED),
        )
    )


def readable(text: str) -> str:
    """Return a text as a reader wants it: the ``plain`` of :func:`read_prose`."""
    return read_prose([text])["plain"][0]


def _is_code() -> pl.Expr:
    said, words, chars = pl.col("said"), pl.col("n_words"), pl.col("n_chars")
    most = pl.min_horizontal(words * _CODE_SHARE, pl.lit(_MOST_CODE, pl.Float64))
    return (
        ~said.str.contains(r"\p{L}")
        | (said.str.count_matches(_CODE) > most)
        | (said.str.count_matches(_SYMBOL) > chars * _SYMBOL_SHARE + 1)
        | (said.str.count_matches(r"\p{Nd}") > chars * _DIGIT_SHARE + 4)
        | pl.col("text").str.contains(_ROW)
    )


def _is_whole() -> pl.Expr:
    said, words, chars = pl.col("said"), pl.col("n_words"), pl.col("n_chars")
    unspaced = said.str.count_matches(_UNSPACED) > chars * _UNSPACED_SHARE
    enough = (
        pl.when(unspaced)
        .then(chars.is_between(_LEAST_UNSPACED, _MOST_UNSPACED))
        .otherwise((words >= _LEAST_WORDS) & chars.is_between(_LEAST_CHARS, _MOST_CHARS))
    )
    has_verb = said.str.contains(_VERB) | said.str.contains(_REGULAR_VERB)
    return (
        enough
        & said.str.contains(_BEGINS)
        & said.str.contains(_ENDS)
        & _closed(said)
        & (said.str.count_matches(_CAPITALISED) <= words * _CAPITAL_SHARE)
        & (has_verb | ~said.str.contains(_ENGLISH))
        & ~said.str.contains(_POINTER)
        & ~said.str.contains(_FILE_NAME)
    )


def _closed(said: pl.Expr) -> pl.Expr:
    """Whether every bracket and quote that opens closes."""
    closed = (said.str.count_matches('"', literal=True) % 2 == 0) & (
        ~said.str.contains(_OPEN_SINGLE) | said.str.contains(_CLOSED_SINGLE)
    )
    for opening, closing in _PAIRS:
        n_open = said.str.count_matches(opening, literal=True)
        closed &= n_open == said.str.count_matches(closing, literal=True)
    return closed


def _readable(text: pl.Expr) -> pl.Expr:
    plain = text.str.replace(_BULLET, "")
    for pattern, instead in _MARKS:
        plain = plain.str.replace_all(pattern, instead)
    return plain.str.strip_chars()
