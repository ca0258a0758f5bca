"""Figures that a question sets bounds to: longer than 100 m, built after 2000, at most 5,000."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import SEPARATOR
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.evidence.units import CELL_END, Unit
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

BOUNDS: dict[str, Callable[[float, float], bool]] = {
    "more_than": operator.gt,
    "after": operator.gt,
    "at_least": operator.ge,
    "since": operator.ge,
    "less_than": operator.lt,
    "before": operator.lt,
    "at_most": operator.le,
    "until": operator.le,
}
"""What sets a bound to a figure, by its list of words, and what lies within it."""
_FIGURE = r"\d(?:[\d.,'’ ]*\d)?"
_NUMBER, _YEAR = pattern_of(_FIGURE), pattern_of(r"(?<!\d)(?:1\d{3}|20\d{2})(?!\d)")
_TERM = pattern_of(r"\d{1,18}(?:\.\d{1,9})?")
_WRITTEN = pattern_of(
    r"(?<![\w.,:/-])(?:\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?:[.,]\d\d)?|\d{1,18}[.,]\d\d?)"
    r"(?![\w%:/-]|[.,]\d)"
)
"""A figure with thousands parted, or with decimals."""
_AMOUNTS = frozenset(word_lists("questions.txt")["amount_field"])
_UNIT_FIELDS = "|".join(map(re.escape, word_lists("questions.txt")["unit_field"]))
_UNIT = pattern_of(rf"^(?:{_UNIT_FIELDS}): [^\W\d_]\S{{0,9}}$", re.M | re.I)
_LONGEST_FIGURE = 30
_NOT = r"(?<!\bno )(?<!\bnot )(?<!\bnicht )"


@cache
def _phrases() -> dict[str, re.Pattern[str]]:
    """Return the phrase of each kind of bound: made when a question has a figure.

    Two million are no 2, nor are the 2nd of May and 2 May.
    """
    article = rf"(?:{words_pattern('before_a_date')}\s+)?"
    others = ("large_numbers", *(f"month_{month}" for month in range(1, 13)))
    other = "|".join(map(words_pattern, others))
    figure = rf"[$€£]?\s?(?P<figure>{_FIGURE})(?![\w-]|[.,]\d|\s*(?:{other}))"
    return {
        name: re.compile(rf"{_NOT}(?:{words_pattern(name)})\s+{article}{figure}") for name in BOUNDS
    }


def is_within_bounds(question: AnalysedQuestion, value: str) -> bool:
    """Whether a value is none that the bounds of a question leave out.

    The first figure of the value counts, and its year where the bound may be one. A bound in words
    (two million) leaves out nothing, nor does any a value without a figure.
    """
    if not any(map(str.isdigit, question.folded)):
        return True
    for name, phrase in _phrases().items():
        for bound in phrase.finditer(question.folded):
            figure = bound["figure"]
            year = _YEAR.search(value) if _YEAR.fullmatch(figure) else None
            found = year or _NUMBER.search(value)
            if found and not BOUNDS[name](_number(found[0]), _number(figure)):
                return False
    return True


def tell_figures(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Tell units with the figures of a question that they write in another way.

    450 is 450.00, and 1250 is 1.250,00 or 1 250.
    """
    asked = {_number(term): term for term in question.terms if _TERM.fullmatch(term)}
    for unit in units if asked else ():
        said = map(_number, _WRITTEN.findall(unit.told))
        figures = dict.fromkeys(asked[value] for value in said if value in asked)
        unit.told = " ".join((unit.told, *figures))


def with_unit(line: str, record: str) -> str:
    """Return a line ``Amount: 450.00`` with the line of its record that says the currency.

    Of a record that has none, or several, the line as it is.
    """
    field, _, value = line.partition(SEPARATOR)
    figure = value.lstrip("+-")
    is_amount = figure.isdecimal() and _AMOUNTS.issuperset(field.casefold().split()[-1:])
    is_amount = is_amount or (len(figure) <= _LONGEST_FIGURE and _WRITTEN.fullmatch(figure))
    units = _units(record) if is_amount else ()
    return f"{line}{CELL_END}{units[0]}" if len(units) == 1 else line


@lru_cache(maxsize=256)
def _units(record: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_UNIT.findall(record)))


def _number(figure: str) -> float:
    """Read a number however it is parted: 1,234.5 and 1.234,5 and 1 234.

    Three digits after the only mark are thousands.
    """
    parts = re.split("[.,]", re.sub(r"['’\s]", "", figure))
    has_both = "." in figure and "," in figure
    fraction = parts.pop() if len(parts) > 1 and (has_both or len(parts[-1]) != 3) else "0"
    return float(f"{''.join(parts)}.{fraction}")
