"""Whole sentences of running prose, told from code, headings, list items and rows of tables.

A light rule: length, how the text begins and ends, brackets and quotes that close,
few symbols, and in English a finite verb. It asks no model and knows no grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from graphrag_pipeline.core.lazy import LazyModule
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists

if TYPE_CHECKING:
    import pyarrow as pa
    import regex
else:
    pa, regex = LazyModule("pyarrow"), LazyModule("regex")


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
_ASCII_WORD = pattern_of(r"\w+").findall
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

LETTERED = r"(?:[a-zA-Z]|[ivx]{2,5}|[IVX]{2,5})\)"
"""The mark of an item of a list that is counted by letters: "b)", "iv)"."""
_COUNTED = rf"\(?(?:\d{{1,3}}[.)]|[a-z]\.|{LETTERED})"
_BULLET = rf"^\s*(?:[-*+•‣·◦–—]|{_COUNTED}|#{{1,6}})\s+"
_ITEM = pattern_of(rf"[ \t]*(?:[-*+•‣·◦]|{_COUNTED})[ \t]+")
_MARK_INSTEAD = pattern_of("[+•‣·◦]")
_NEXT_ITEM = pattern_of(rf"\n+(?={_ITEM.pattern})")
SPEAKER = r"^(?:\p{Lu}[^\s:]*\s?)+:\s+"
"""Who speaks a text, in capitals and with a colon."""
_MARK = pattern_of("[>&¶\xad\u200b\ufeff\\[*_`]")
"""What stands in every text that one of the next finds anything in."""
_MARKS = (
    (r"(^|\n)[ \t]*(?:>[ \t])+", r"\1"),
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
_MANY = pattern_of(r"[^\W\d_]+[^\W\d_su]s|people|children|women|men|police", re.IGNORECASE)
_SUBJECT_WORDS = 4
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

    ``plain`` is the text as a reader wants it: white space is one space; bullets, signs of
    quotations (>), permalinks (¶), numbers of citations, emphasis and links of Markdown and the
    commonest entities of HTML are gone, and no word is changed. ``grade`` is its :class:`Prose` as
    a number. ``leans`` says whether it begins with words that lean on the sentence before, such as
    He, But or In this.
    """
    plain, grade, leans = zip(*map(_read, texts), strict=True) if texts else ((), (), ())
    return pa.table(
        {
            "plain": pa.array(plain, pa.string()),
            "grade": pa.array(grade, pa.int8()),
            "leans": pa.array(leans, pa.bool_()),
        }
    )


@lru_cache(maxsize=1 << 14)
def grade_of(text: str) -> tuple[Prose, bool]:
    """Return the (grade, leans) of :func:`read_prose` of a text: many questions meet the same."""
    return _read(text)[1:]


def _read(text: str) -> tuple[str, Prose, bool]:
    plain = _readable(text)
    said = without_speaker(plain)
    small = said.lower().replace("’", "'")
    leans = _has(_LEANS_SPACED, small) or _has(_LEANS_LATER, small) or _has(_LEANS_UNSPACED, said)
    if _has(_ROW, text) or _is_code(said):
        return plain, Prose.CODE, leans
    if not _is_whole(said, small) or _has(_FILE_NAME, plain):
        return plain, Prose.FRAGMENT, leans
    return plain, Prose.ITEM if _has(_BULLET, text) else Prose.SENTENCE, leans


def readable(texts: Sequence[str]) -> list[str]:
    """Return texts as a reader wants them: the ``plain`` of :func:`read_prose`."""
    return list(map(_readable, texts))


def _readable(text: str) -> str:
    text = _replaced(_BULLET, "", text, 1)
    if _MARK.search(text):
        for pattern, instead in _MARKS:
            text = _replaced(pattern, instead, text)
    return _replaced(_SPACES, " ", text).strip()


def readable_list(text: str) -> str:
    """Return a text as a reader wants it, each item of a list in it on a line of its own.

    Their marks are those of Markdown, and they are as far to the right of each other as before.

    >>> readable_list("It takes\\nthree:\\n• *salt*\\n• two\\n  eggs")
    'It takes three:\\n- salt\\n- two eggs'
    """
    first, *items = _NEXT_ITEM.split(text)
    if items and _ITEM.match(first):
        first, items = "", [first, *items]
    marked = [
        (match[0].expandtabs(4), item[match.end() :])
        for item in items
        if (match := _ITEM.match(item))
    ]
    leftmost = min((_indent(mark) for mark, _ in marked), default=0)
    lines = [_readable(first)] if first.strip() else []
    for mark, said in marked:
        sign = _MARK_INSTEAD.sub("-", mark.strip().lstrip("("))
        lines.append(f"{' ' * (_indent(mark) - leftmost)}{sign} {_readable(said)}")
    return "\n".join(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def readable_sql(column: str) -> str:
    """Return the same as an expression of SQL, of a column of texts whose spaces are in order."""
    said = column
    for pattern, instead in ((_BULLET, ""), *_MARKS):
        pattern, instead = (part.replace("'", "''") for part in (pattern, instead))
        said = f"regexp_replace({said}, '{pattern}', '{instead}', 'g')"
    return f"""CASE WHEN regexp_matches({column}, '{_MARK.pattern}|{_BULLET}')
        THEN trim({said}) ELSE {column} END"""


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
    return _replaced(SPEAKER, "", text, 1)


def _is_code(text: str) -> bool:
    return (
        not _has(r"\p{L}", text)
        or _n(_CODE, text) > min(len(text.split()) * _CODE_SHARE, _MOST_CODE)
        or _n(_SYMBOL, text) > len(text) * _SYMBOL_SHARE + 1
        or _n(_DIGIT, text) > len(text) * _DIGIT_SHARE + 4
    )


def _is_whole(text: str, small: str) -> bool:
    """Whether a text is a whole sentence; ``small`` is the same in small letters."""
    chars, words = len(text), len(text.split())
    if _n(_UNSPACED, text) > chars * _UNSPACED_SHARE:
        is_long_enough = _LEAST_UNSPACED <= chars <= _MOST_UNSPACED
    else:
        is_long_enough = words >= _LEAST_WORDS and _LEAST_CHARS <= chars <= _MOST_CHARS
    return (
        is_long_enough
        and _has(_BEGINS, text)
        and _has(_ENDS, text)
        and _is_closed(text)
        and _n(_CAPITALISED, text) + _has(r"^\p{Lu}", text) <= words * _CAPITAL_SHARE
        and (_has_verb(text, small) or _is_foreign(text, small))
        and not _has(_POINTER, small)
    )


def _has_verb(text: str, small: str) -> bool:
    return (
        _says_any("verb", small)
        or _has(_PRESENT_VERB, text)
        or _says_what_many_do(text.split())
        or _has(_REGULAR_VERB, small)
        or _has(_ORDER, small)
    )


def _says_what_many_do(words: Sequence[str]) -> bool:
    """Whether a plural among the first words has a verb: "Employees get", no "games list of"."""
    first = zip(words[:_SUBJECT_WORDS], words[1:], words[2:], strict=False)
    return any(
        verb in _base_forms() and after not in ("of", "and", "or") and _MANY.fullmatch(subject)
        for subject, verb, after in first
    )


@cache
def _base_forms() -> frozenset[str]:
    """Return the known verbs as they stand after a plural: get of gets, carry of carries."""
    singular = [word for word in _WORDS["verb"] if len(word) > 3 and word.endswith("s")]
    bases = (re.sub("(?<=o|h|s)es$|s$", "", re.sub("ies$", "ys", word)) for word in singular)
    return _WORDS["order"].union(bases)


def _is_foreign(text: str, small: str) -> bool:
    """Whether a text is in another language than English, whose verbs are not known."""
    is_other = _has(_NOT_LATIN, small) or _says_any("foreign", small) or _has(_ACCENTED, text)
    return is_other and not _says_any("english", small)


def _is_closed(text: str) -> bool:
    """Whether every bracket and quote that opens closes."""
    return (
        text.count('"') % 2 == 0
        and (not _has(_OPEN_SINGLE, text) or _has(_CLOSED_SINGLE, text))
        and all(text.count(opening) == text.count(closing) for opening, closing in _PAIRS)
    )


def _has(pattern: str, text: str) -> bool:
    return bool(_may_find(pattern)(text) and _compiled(pattern).search(text))


def _n(pattern: str, text: str) -> int:
    return len(_compiled(pattern).findall(text)) if _may_find(pattern)(text) else 0


def _replaced(pattern: str, instead: str, text: str, most: int = 0) -> str:
    if not _may_find(pattern)(text):
        return text
    return _compiled(pattern).sub(instead, text, count=most)


def _says_any(section: str, small: str) -> bool:
    """Whether a text in small letters has one of the words of a section."""
    words, others = _told_apart(section)
    find = _ASCII_WORD if small.isascii() else _compiled(r"\w+").findall
    return not words.isdisjoint(find(small)) or others(small) is not None


@cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern once; ``\\x{...}`` in it is a character."""
    plain = re.sub(r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), pattern)
    return regex.compile(plain)


@cache
def _may_find(pattern: str) -> Callable[[str], object]:
    needed = _NEEDED.get(pattern)
    return re.compile(needed).search if needed else bool


@cache
def _told_apart(section: str) -> tuple[frozenset[str], Callable[[str], object]]:
    """Return the words of a section that are one run of letters, and a search for the others."""
    words = _WORDS[section]
    runs = frozenset(word for word in words if _compiled(r"\w+").fullmatch(word))
    others = "|".join(map(re.escape, sorted(words - runs))) or r"(?!)"
    return runs, _compiled(rf"\b(?:{others})\b").search
