"""The lines of a page of a PDF, with their places: what PDFium knows of them.

PDFium gives the characters of a page in the order in which they were drawn, with line ends of its
own. A line that goes over the gap between two columns is one line to it, so lines are divided where
a gap is wider than words stand apart, and where a rule stands in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.pdf_columns import Cut, Places, columns_of
from graphrag_pipeline.ingest.reading.pdf_rules import Box, Rules, Span, turned_back

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

SOFT_HYPHEN = "\ufffe"
"""PDFium's mark for a hyphen at which a word goes on in the next line."""
_LINE = pattern_of(f"[^\r\n{SOFT_HYPHEN}]*{SOFT_HYPHEN}?")
_WORD = pattern_of(r"\S+")
_WIDE_GAP = 0.8  # of the height of a line
_LOOKED_AT = 20  # characters of a page that tell how it is turned
_NEAR = 1.0  # points: no more of a word stands over a rule after it
_NARROW = 0.25  # of its height: a word whose characters are as wide needs no look at its end


class PiecePart(NamedTuple):
    """The part of a piece that is in a column of its own."""

    text: str
    left: float
    right: float


class LinePiece(NamedTuple):
    """Part of a line without a wide gap; places in points, from the page's left and bottom.

    ``height`` is that of its fonts, from the lowest descender to the highest ascender, on average
    over its characters; ``line`` is the number of the line that it is of. ``within`` is where rules
    stand on both sides of it, as around the cell of a table. ``parts`` are those of it that columns
    of numbers divide.
    """

    text: str
    left: float
    right: float
    bottom: float
    top: float
    height: float
    line: int
    within: Span | None = None
    parts: Sequence[PiecePart] = ()


def quarter_turns(page: PdfTextPage) -> int:
    """Return how often most text of a page is turned to the right by a quarter, from 0 to 3."""
    from pypdfium2 import raw

    n_chars = page.count_chars()
    looked_at = range(0, n_chars, max(n_chars // _LOOKED_AT, 1))
    angles = (raw.FPDFText_GetCharAngle(page, place) for place in looked_at)
    turns = Counter(round(angle / (math.pi / 2)) % 4 for angle in angles if angle >= 0)
    return max(turns, key=lambda turn: (turns[turn], -turn), default=0)


def read_pieces(page: PdfTextPage, turns: int, rules: Rules) -> list[LinePiece]:
    """Return the pieces of a page's lines, in the order in which the page draws them.

    Text that is turned by quarters to the right is read as if it were upright.
    """
    text = page.get_text_range()
    places = _places(page, turns, has_same_places=page.count_chars() == len(text))
    pieces: list[LinePiece] = []
    lines = [match.span() for match in _LINE.finditer(text) if match.group().strip()]
    columns = columns_of(text, lines, places)
    for number, (start, end) in enumerate(lines):
        pieces += _pieces(text, start, end, number, places.box, rules, columns.get(number, ()))
    return pieces


def _pieces(
    text: str,
    start: int,
    end: int,
    number: int,
    box: Callable[[int], Box | None],
    rules: Rules,
    cuts: Sequence[Cut],
) -> Iterator[LinePiece]:
    """Yield the pieces of the line that is characters [start, end) of a page.

    Where a word ends is looked up only if it may stand apart from the next: each look takes time.
    """
    begin = stop = before = start
    left = right = bottom = top = latest = heights = 0.0
    n_chars = 0
    has_rules = bool(rules)
    for word in _WORD.finditer(text, start, end):
        first, last = word.span()
        place = box(first)
        if place is not None:
            start_x, end_x, low, high = place
            height = heights / n_chars if n_chars else 0.0
            may_stand_apart = start_x - latest > (_NARROW * (stop - before) + _WIDE_GAP) * height
            is_ruled = has_rules and rules.divide(latest, start_x, low, high)
            if n_chars and (may_stand_apart or is_ruled):
                ended = box(stop - 1)
                right = max(right, ended[1]) if ended else right
                is_ruled = is_ruled and rules.divide(right - _NEAR, start_x, low, high)
                if start_x - right > _WIDE_GAP * height or is_ruled:
                    within = rules.around(left, right, bottom, top)
                    parts = (
                        _parts(text, begin, stop, left, right, cuts)
                        if cuts and within is None
                        else ()
                    )
                    yield LinePiece(
                        text[begin:stop], left, right, bottom, top, height, number, within, parts
                    )
                    begin, n_chars, heights = first, 0, 0.0
            if not n_chars:
                left, right, bottom, top = place
            else:
                left = start_x if start_x < left else left
                right = end_x if end_x > right else right
                bottom = low if low < bottom else bottom
                top = high if high > top else top
            latest, before = start_x, first
            heights += (high - low) * (last - first)
            n_chars += last - first
        stop = last
    if n_chars and (ended := box(stop - 1)):
        right = max(right, ended[1])
    height, within = heights / max(n_chars, 1), rules.around(left, right, bottom, top)
    parts = _parts(text, begin, stop, left, right, cuts) if cuts and within is None else ()
    yield LinePiece(text[begin:stop], left, right, bottom, top, height, number, within, parts)


def _parts(
    text: str, begin: int, stop: int, left: float, right: float, cuts: Sequence[Cut]
) -> Sequence[PiecePart]:
    """Return a piece as columns divide it; none where they do not."""
    parts: list[PiecePart] = []
    for place, end, start in cuts:
        if begin < place < stop:
            parts.append(PiecePart(text[begin:place].rstrip(), left, end))
            begin, left = place, start
    return [*parts, PiecePart(text[begin:stop], left, right)] if parts else ()


def _places(page: PdfTextPage, turns: int, *, has_same_places: bool) -> Places:
    """Return what tells of each place of a page's text where its character is."""
    from ctypes import pointer

    from pypdfium2 import raw

    rectangle = raw.FS_RECTF()
    look, index_of = raw.FPDFText_GetLooseCharBox, raw.FPDFText_GetCharIndexFromTextIndex
    # Asked for by name, or handed over as they are, both would be made anew for every word.
    handle, into = page.raw, pointer(rectangle)

    def box(place: int) -> Box | None:
        if not has_same_places:
            place = index_of(handle, place)
        if place < 0 or not look(handle, place, into):
            return None
        left, right = rectangle.left, rectangle.right
        bottom, top = rectangle.bottom, rectangle.top
        if turns:
            left, right, bottom, top = turned_back((left, right, bottom, top), turns)
        return (left, right, bottom, top) if left <= right and bottom < top else None

    def is_drawn(place: int) -> bool:
        index = place if has_same_places else index_of(handle, place)
        return index >= 0 and raw.FPDFText_IsGenerated(handle, index) == 0

    return Places(box, is_drawn)
