"""Figures that a question sets bounds to: longer than 100 m, built after 2000, at most 5,000."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import cache

from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

_BOUNDS: dict[str, Callable[[float, float], bool]] = {
    "more_than": operator.gt,
    "after": operator.gt,
    "at_least": operator.ge,
    "since": operator.ge,
    "less_than": operator.lt,
    "before": operator.lt,
    "at_most": operator.le,
    "until": operator.le,
}
_FIGURE = r"\d(?:[\d.,'’ ]*\d)?"
_NUMBER, _YEAR = re.compile(_FIGURE), re.compile(r"(?<!\d)(?:1\d{3}|20\d{2})(?!\d)")
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
        name: re.compile(rf"{_NOT}(?:{words_pattern(name)})\s+{article}{figure}")
        for name in _BOUNDS
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
            if found and not _BOUNDS[name](_number(found[0]), _number(figure)):
                return False
    return True


def _number(figure: str) -> float:
    """Read a number however it is parted: 1,234.5 and 1.234,5 and 1 234.

    Three digits after the only mark are thousands.
    """
    parts = re.split("[.,]", re.sub(r"['’ ]", "", figure))
    has_both = "." in figure and "," in figure
    fraction = parts.pop() if len(parts) > 1 and (has_both or len(parts[-1]) != 3) else "0"
    return float(f"{''.join(parts)}.{fraction}")
