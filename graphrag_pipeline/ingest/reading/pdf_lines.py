"""The lines of a page of a PDF, with their places: what PDFium knows of them.

PDFium gives the characters of a page in the order in which they were drawn, with line ends of its
own. A line that goes over the gap between two columns is one line to it, so lines are divided where
a gap is wider than words stand apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

SOFT_HYPHEN = "\ufffe"
"""PDFium's mark for a hyphen at which a word goes on in the next line."""
_LINE = re.compile(f"[^\r\n{SOFT_HYPHEN}]*{SOFT_HYPHEN}?")
_WORD = re.compile(r"\S+")
_WIDE_GAP = 1.0  # of the height of a line


class Piece(NamedTuple):
    """Part of a line without a wide gap; places in points, from the page's left and bottom.

    ``height`` is that of its fonts, from the lowest descender to the highest ascender, on average
    over its characters; ``line`` is the number of the line that it is of.
    """

    text: str
    left: float
    right: float
    bottom: float
    top: float
    height: float
    line: int


Box = tuple[float, float, float, float]
"""Left, right, bottom and top."""


def read_pieces(page: PdfTextPage) -> list[Piece]:
    """Return the pieces of a page's lines, in the order in which the page draws them."""
    text = page.get_text_range()
    box = _boxes(page, has_same_places=page.count_chars() == len(text))
    pieces: list[Piece] = []
    number = 0
    for match in _LINE.finditer(text):
        if match.group().strip():
            pieces += _pieces(text, match.start(), match.end(), number, box)
            number += 1
    return pieces


def _pieces(
    text: str, start: int, end: int, number: int, box: Callable[[int], Box | None]
) -> Iterator[Piece]:
    """Yield the pieces of the line that is characters [start, end) of a page."""
    begin, stop = start, start
    around: Box | None = None
    heights = n_chars = 0.0
    for word in _WORD.finditer(text, start, end):
        place = _around(box(word.start()), box(word.end() - 1))
        if place is not None:
            if around is not None and place[0] - around[1] > _WIDE_GAP * heights / n_chars:
                yield Piece(text[begin:stop], *around, heights / n_chars, number)
                begin, around, heights, n_chars = word.start(), None, 0.0, 0.0
            around = _around(around, place)
            length = word.end() - word.start()
            heights += (place[3] - place[2]) * length
            n_chars += length
        stop = word.end()
    whole = around or (0.0, 0.0, 0.0, 0.0)
    yield Piece(text[begin:end].strip(), *whole, heights / max(n_chars, 1), number)


def _around(one: Box | None, other: Box | None) -> Box | None:
    if one is None or other is None:
        return one or other
    return (
        min(one[0], other[0]),
        max(one[1], other[1]),
        min(one[2], other[2]),
        max(one[3], other[3]),
    )


def _boxes(page: PdfTextPage, *, has_same_places: bool) -> Callable[[int], Box | None]:
    """Return what gives the box of the font at a place of the page's text, None if it has none."""
    from pypdfium2 import raw

    rectangle = raw.FS_RECTF()

    def box(place: int) -> Box | None:
        if not has_same_places:
            place = raw.FPDFText_GetCharIndexFromTextIndex(page, place)
        if place < 0 or not raw.FPDFText_GetLooseCharBox(page, place, rectangle):
            return None
        sides = rectangle.left, rectangle.right, rectangle.bottom, rectangle.top
        return sides if sides[0] <= sides[1] and sides[2] < sides[3] else None

    return box
