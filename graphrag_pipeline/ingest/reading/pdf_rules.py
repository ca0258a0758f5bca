"""Rules that a page of a PDF draws down between the columns of its tables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_THIN = 2.5  # points: what is no wider is a rule, and all else a box, whose sides are rules
_SHORTEST = 24.0  # points: two rows; what stands behind a word in a line is not as high
_APART = 4.0  # points: rules of one column go on so far below each other
_SAME_PLACE = 1.5  # points
_MOST_DRAWN = 50_000  # objects of a page, its words among them
_STROKES, _MOST_RULES = 5, 1_000  # of a box, and of a page: a drawing has more


Box = tuple[float, float, float, float]
"""Left, right, bottom and top."""
Span = tuple[float, float]
"""Left and right."""


class Rules:
    """The rules down a page: those between the words of a line, and those on either side."""

    def __init__(self, rules: list[tuple[float, float, float]]) -> None:
        """Take rules as (place, bottom, top), in the order of their places."""
        self._rules = rules
        self._places = [place for place, _, _ in rules]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._rules)

    def divide(self, left: float, right: float, bottom: float, top: float) -> bool:
        """Whether one stands between two places, at the middle of a height."""
        middle = (bottom + top) / 2
        first = bisect_right(self._places, left)
        last = bisect_right(self._places, right)
        return any(low <= middle <= high for _, low, high in self._rules[first:last])

    def around(self, left: float, right: float, bottom: float, top: float) -> Span | None:
        """Return where the nearest stand on both sides at the middle of a height; None if not."""
        if not self._rules:
            return None
        middle = (bottom + top) / 2
        first, last = (bisect_right(self._places, place) for place in (left, right))
        before = (x for x, low, high in self._rules[:first][::-1] if low <= middle <= high)
        after = (x for x, low, high in self._rules[last:] if low <= middle <= high)
        begin, end = next(before, None), next(after, None)
        return None if begin is None or end is None else (begin, end)


def turned_back(box: Box, turns: int) -> Box:
    """Return a place on a page that is turned until its text is upright.

    >>> turned_back((10, 20, 100, 130), 3)
    (100, 130, -20, -10)
    """
    left, right, bottom, top = box
    for _ in range(turns):
        left, right, bottom, top = -top, -bottom, left, right
    return left, right, bottom, top


def rules_of(page: PdfPage, turns: int) -> Rules:
    """Return the rules down a page whose text is turned to the right by so many quarters."""
    sides = sorted(side for box in _drawn(page) for side in _sides(turned_back(box, turns)))
    rules: list[tuple[float, float, float]] = []
    same: list[tuple[float, float]] = []
    begun = 0.0
    for place, bottom, top in [*sides, (float("inf"), 0.0, 0.0)]:
        if same and place - begun > _SAME_PLACE:
            rules += ((begun, *each) for each in _joined(same))
            same = []
        begun = begun if same else place
        same.append((bottom, top))
    return Rules(rules if len(rules) <= _MOST_RULES else [])


def _drawn(page: PdfPage) -> Iterator[Box]:
    """Yield the places of lines and boxes; what is drawn with more strokes is a picture.

    A page has thousands of objects, of which the library would make an object of its own each.
    """
    from ctypes import byref, c_float

    from pypdfium2 import raw

    left, bottom, right, top = (c_float() for _ in range(4))
    places = (byref(left), byref(bottom), byref(right), byref(top))
    objects = (
        raw.FPDFPage_GetObject(page.raw, number)
        for number in range(min(raw.FPDFPage_CountObjects(page.raw), _MOST_DRAWN))
    )
    for drawn in objects:
        is_path = raw.FPDFPageObj_GetType(drawn) == raw.FPDF_PAGEOBJ_PATH
        is_plain = is_path and raw.FPDFPath_CountSegments(drawn) <= _STROKES
        if is_plain and raw.FPDFPageObj_GetBounds(drawn, *places):
            yield left.value, right.value, bottom.value, top.value


def _sides(box: Box) -> Iterator[tuple[float, float, float]]:
    left, right, bottom, top = box
    if right - left <= _THIN < top - bottom:
        yield (left + right) / 2, bottom, top
    elif top - bottom > _THIN:
        yield left, bottom, top
        yield right, bottom, top


def _joined(rules: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the rules at one place, those that go on as one, and none that are short."""
    low, high = float("inf"), float("-inf")
    for bottom, top in sorted(rules):
        if bottom - high > _APART:
            if high - low >= _SHORTEST:
                yield low, high
            low = bottom
        low, high = min(low, bottom), max(high, top)
    if high - low >= _SHORTEST:
        yield low, high
