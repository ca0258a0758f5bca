"""Numbers, money and formulas beside names, which are no part of them."""

from __future__ import annotations

import re

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.tokens import Tokens

_MONEY = word_lists("nlp_names.txt")["money"]
_BY_NUMBER = word_lists("nlp_names.txt")["money_by_number"]
_SUMS = _MONEY | _BY_NUMBER
_FORMULA = pattern_of(
    r"\$\$[^$]{1,2000}\$\$|\$(?=[^\s$])[^$\n]{0,300}?(?<=[^\s\\])\$(?!\d)"
    r"|\\\[(?:[^\\]|\\(?!\[)){1,2000}?\\\]|\\\((?:[^\\]|\\(?!\()){1,300}?\\\)"
    r"|\\begin\{((?:align|equation|gather|multline|array|cases|split)\*?)\}.{1,3000}?\\end\{\1\}",
    re.S,
)
_NO_SPACE = pattern_of(r"\S")
_PLAIN_WORD = pattern_of(r"(?<![\w\\{^])[^\W\d_]{2,}(?![\w{^])")
"""What no formula has: Markdown may escape brackets, too, and programs have names with a dollar."""
_GROUPED = pattern_of(r"\d{1,3}(?:[.,'’]\d{3})+(?:[.,]\d\d)?")


def is_money(tokens: Tokens, position: int) -> bool:
    """Say whether a word is a unit of money, or a measure beside its number: 30 Pfund, CAD 12."""
    word, classes = tokens.texts[position], tokens.classes
    is_counted = "D" in (classes[position - 1], classes[position + 1 : position + 2])
    return word in _MONEY or (is_counted and word in _BY_NUMBER)


def ends_in_sum(words: list[str]) -> bool:
    """Say whether the last of some words is a number with thousands: Kassenstand 12.480."""
    return len(words) > 1 and _GROUPED.fullmatch(words[-1]) is not None


def without_sum(tokens: Tokens, first: int, stop: int) -> tuple[int, int]:
    """Leave out a sum before or after a name: Ida Holm 30 Pfund, USD 20, Kassenstand 12.480.

    So is an hour after it: Ana Kovac 9:00.
    """
    texts, classes = tokens.texts, tokens.classes
    if stop - first > 1 and classes[stop - 1] == "D" and classes[stop + 1 : stop + 2] == "D":
        stop -= texts[stop] == ":"
    if stop - first > 1 and classes[first + 1] == "D" and texts[first].isupper():
        first += 2 * (texts[first] in _SUMS)
    if stop - first > 2 and classes[stop - 2] in "DY":
        stop -= 2 * (texts[stop - 1] in _SUMS)
    return first, stop - ends_in_sum(texts[first:stop])


def without_number(classes: str, first: int, stop: int) -> int:
    """Leave a page's or note's number out of a person's name: Mrs. Cratchit 54."""
    bare = first + len(classes[first:stop].rstrip("DY"))
    return bare if classes[first] == "H" and bare - first > 1 else stop


def blank_formulas(text: str) -> str:
    """Return a text of the same length in which formulas of TeX are blank: they name nothing."""
    if "$" not in text and "\\" not in text:
        return text
    return _FORMULA.sub(_blanked, text)


def _blanked(formula: re.Match[str]) -> str:
    is_prose = not formula[1] and _PLAIN_WORD.search(formula[0])
    return formula[0] if is_prose else _NO_SPACE.sub(" ", formula[0])
