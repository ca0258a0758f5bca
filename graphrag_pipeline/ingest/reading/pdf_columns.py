"""Columns of numbers that stand closer than cells do: where lines below each other leave white.

In a narrow table, words are no farther apart than those of a sentence. But where lines below each
other have numbers, and a strip of white goes down beside these, columns are divided there. The
thousands of numbers may stand apart and leave such strips, too. They are told by the space that is
drawn between them, where a page draws spaces: cells are put where they stand. Where it draws none,
strips have to be wider than a space, or what is beside them has to begin at other places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from operator import itemgetter
from typing import NamedTuple

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.pdf_rules import Box, Span

_NUMBER = pattern_of(r"(?<!\S)[-+(<>~$€£¥\u2212]{0,2}\d(?:[\d.,:/'’]*\d)?[%‰)*.]*[a-z†+-]?(?!\S)")
_LAST_DIGIT = pattern_of(r"\d[^\s\d]{0,3}(?!\S)")
_NO_VALUE = pattern_of(r"[-–—*|]|\.{1,3}")
_SIGN = pattern_of(r"[$€£¥(<>≤≥±~∼≈]{1,2}|[A-Z]{3}")
_AFTER = pattern_of(r"[%‰)]{1,2}")
_WORD = pattern_of(r"\S+")
_GROUP, _FIRST_GROUP = pattern_of(r"\d{3}\)?"), pattern_of(r"[-+(]?\d{1,3}")
_LEAST_LINES, _LEAST_OF_TEXT = 3, 5
_MOST_HEADS = 4
_WORDS = 4  # of a row, for each of its numbers
_NEXT = 3.5  # of a line's height: the next line of a table is no further down
_MOSTLY = 0.7  # of the lines
# Of the width of a digit: a space, the widest one, and in fonts with letters of one width.
_SPACE, _WIDEST_SPACE, _OF_ONE_WIDTH = 0.55, 0.7, (0.95, 1.05)
_THIN = 0.3
_WIDE = 1.5  # of a space
_WIDE_FOR_THOUSANDS = (2.0, 1.2)  # of a space, and where the page draws spaces
_DRAWN, _LOOKED_AT = 3, 60  # spaces of a page that are drawn where it draws any, and looked at


class Places(NamedTuple):
    """The box of a character at a place of a page's text, and whether a space there is drawn."""

    box: Callable[[int], Box | None]
    is_drawn: Callable[[int], bool]


class Cut(NamedTuple):
    """A gap that divides a line: its place in the text, and the ends beside it."""

    place: int
    left: float
    right: float


class _Word(NamedTuple):
    left: float
    right: float
    is_number: bool
    is_apart: bool
    text: str
    start: int


class _Line(NamedTuple):
    """`digit` is how wide one is."""

    number: int
    words: Sequence[_Word]
    bottom: float
    height: float
    digit: float

    def gaps(self) -> Iterator[tuple[_Word, _Word, float]]:
        """Yield words beside each other, and by how many digits they are apart."""
        for before, after in pairwise(self.words):
            yield before, after, (after.left - before.right) / self.digit


class _Strip(NamedTuple):
    """White between lines below each other: `n` gaps between words, and how many of a kind.

    A narrow one may be a space, and is if that is drawn or words stand there; or that of thousands.
    """

    left: float
    right: float
    n: int = 0
    n_after_numbers: int = 0
    n_before_numbers: int = 0
    n_narrow: int = 0
    n_spaces: int = 0
    n_thousands: int = 0
    least: float = float("inf")

    @property
    def is_beside_numbers(self) -> bool:
        return max(self.n_after_numbers, self.n_before_numbers) >= max(_MOSTLY * self.n, 2)


class _Page(NamedTuple):
    """The width of a space on a page, in digits, and whether it draws any."""

    space: float
    draws: bool

    @property
    def wide_for_thousands(self) -> float:
        """Spaces that are too many between the thousands of a number."""
        return _WIDE_FOR_THOUSANDS[self.draws]


def columns_of(
    text: str, lines: Sequence[tuple[int, int]], places: Places
) -> Mapping[int, Sequence[Cut]]:
    """Return where columns of numbers divide the lines of a page, by the numbers of these."""
    read = {n: line for n in _rows(text, lines) if (line := _line(n, text, lines[n], places))}
    if not read:
        return {}
    page = _page(text, list(read.values()), places)
    columns: dict[int, Sequence[Cut]] = {}
    for run, strips in _runs([read[n] for n in sorted(read, reverse=True)], page):
        dividing = _dividing(strips, page, run[0].digit)
        if not dividing:
            continue
        of_run, below = {line.number for line in run}, run[0]
        for number in range(run[0].number, max(run[-1].number - _MOST_HEADS, 0) - 1, -1):
            line = read.get(number) or _line(number, text, lines[number], places)
            is_near = number > run[-1].number or (line and _is_next(line, below))
            if line and (number in of_run or (is_near and _is_head(line, dividing, page))):
                columns[number], below = _cuts(line, dividing), line
            elif number < run[-1].number:
                break
    return columns


def _rows(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the numbers of lines with several numbers in few words, where these are near others."""
    near: list[int] = []
    for number, (start, end) in enumerate([*lines, (0, 0)]):
        least = max(2, (text.count(" ", start, end) + 1) / _WORDS)
        may_be = len(_LAST_DIGIT.findall(text, start, end)) >= least
        if may_be and len(_NUMBER.findall(text, start, end)) >= least:
            near.append(number)
        elif near and (number - near[-1] > _MOST_HEADS or number == len(lines)):
            yield from near if len(near) >= _LEAST_LINES else ()
            near = []


def _line(number: int, text: str, span: tuple[int, int], places: Places) -> _Line | None:
    words: list[_Word] = []
    lows, heights, digits = [], [], []
    for match in _WORD.finditer(text, *span):
        start, end = match.span()
        first, last = places.box(start), places.box(end - 1)
        if first is None or last is None:
            return None
        written = match.group()
        is_number = (_NUMBER.fullmatch(written) or _NO_VALUE.fullmatch(written)) is not None
        is_apart = start > span[0] and not places.is_drawn(start - 1)
        word = _Word(first[0], last[1], is_number, is_apart, written, start)
        if words and ((_SIGN.fullmatch(words[-1].text) and is_number) or _AFTER.fullmatch(written)):
            before = words.pop()
            word = before._replace(right=word.right, is_number=True)
        words.append(word)
        lows.append(first[2])
        heights.append(first[3] - first[2])
        digits.append((written.isdecimal(), (last[1] - first[0]) / len(written)))
    if not words:
        return None
    widths = sorted(width for _, width in (list(filter(itemgetter(0), digits)) or digits))
    return _Line(number, words, min(lows), max(heights), widths[len(widths) // 2] or 1.0)


def _page(text: str, lines: Sequence[_Line], places: Places) -> _Page:
    low, high = _OF_ONE_WIDTH
    narrow = [
        (gap, after.is_apart)
        for line in lines
        for before, after, gap in line.gaps()
        if gap < high and not before.is_number and not after.is_number
    ]
    spaces = [n for n, sign in enumerate(text) if sign == " "]
    n_drawn = sum(map(places.is_drawn, spaces[:: len(spaces) // _LOOKED_AT + 1]))
    draws = n_drawn >= _DRAWN and not (narrow and all(is_apart for _, is_apart in narrow))
    widths = sorted(gap for gap, is_apart in narrow if not (draws and is_apart))
    space = widths[len(widths) // 2] if widths else _SPACE
    return _Page(space if space <= _WIDEST_SPACE or low <= space <= high else _SPACE, draws)


def _runs(lines: Sequence[_Line], page: _Page) -> Iterator[tuple[list[_Line], list[_Strip]]]:
    """Yield lines above each other that leave the same strips, with these."""
    run: list[_Line] = []
    strips: list[_Strip] = []
    for line in lines:
        narrowed = list(_narrowed(strips, line, page))
        if not run or not _is_next(line, run[-1]) or _are_lost(strips, narrowed):
            if len(run) >= _LEAST_LINES:
                yield run, strips
            run = []
            narrowed = list(_narrowed([_Strip(float("-inf"), float("inf"))], line, page))
        run.append(line)
        strips = narrowed
    if len(run) >= _LEAST_LINES:
        yield run, strips


def _is_next(line: _Line, below: _Line) -> bool:
    return 0 < line.bottom - below.bottom <= _NEXT * line.height


def _are_lost(strips: Sequence[_Strip], narrowed: Sequence[_Strip]) -> bool:
    """Whether a line leaves too few of the strips beside numbers."""
    n_before, n_after = (sum(s.is_beside_numbers for s in some) for some in (strips, narrowed))
    return n_after < _MOSTLY * n_before


def _narrowed(strips: Sequence[_Strip], line: _Line, page: _Page) -> Iterator[_Strip]:
    """Yield what a line leaves of strips."""
    words = line.words
    ends = [float("-inf"), *(word.right for word in words)]
    begins = [*(word.left for word in words), float("inf")]
    place = 0
    for strip in strips:
        while begins[place] <= strip.left:
            place += 1
        at = place
        while at < len(ends) and ends[at] < strip.right:
            low, high = max(ends[at], strip.left), min(begins[at], strip.right)
            if low < high and 0 < at < len(words):
                yield _with(strip, (low, high), words[at - 1], words[at], line.digit, page)
            elif low < high:
                yield strip._replace(left=low, right=high)
            at += 1


def _with(
    strip: _Strip, span: Span, before: _Word, after: _Word, digit: float, page: _Page
) -> _Strip:
    """Return a strip with a gap of one more line."""
    gap = (after.left - before.right) / digit
    may_be_one = _GROUP.fullmatch(after.text) and _FIRST_GROUP.fullmatch(before.text)
    is_text = not (before.is_number or after.is_number)
    is_space = not after.is_apart if page.draws else is_text
    is_narrow = gap < page.space * (page.wide_for_thousands if may_be_one else _WIDE)
    return _Strip(
        *span,
        strip.n + 1,
        strip.n_after_numbers + before.is_number,
        strip.n_before_numbers + after.is_number,
        strip.n_narrow + is_narrow,
        strip.n_spaces + (is_narrow and is_space),
        strip.n_thousands + (is_narrow and may_be_one is not None),
        min(strip.least, gap),
    )


def _dividing(strips: Sequence[_Strip], page: _Page, digit: float) -> list[Span]:
    """Return the places of strips between columns, if any of these are of numbers."""
    wide = [strip for strip in strips if strip.right - strip.left > _THIN * digit]
    inner = [s for s in wide if s.n >= (_LEAST_LINES if s.is_beside_numbers else _LEAST_OF_TEXT)]
    if not any(strip.is_beside_numbers and _divides(strip, page) for strip in inner):
        return []
    return [(strip.left, strip.right) for strip in inner if _divides(strip, page)]


def _divides(strip: _Strip, page: _Page) -> bool:
    if page.draws:
        return not strip.n_spaces + strip.n_thousands
    has_moved = 2 * strip.n_narrow <= strip.n and strip.least >= 0.9 * page.space
    return not strip.n_narrow or (
        has_moved and strip.is_beside_numbers and not strip.n_thousands + strip.n_spaces
    )


def _cuts(line: _Line, dividing: Sequence[Span]) -> list[Cut]:
    """Return where strips divide a line: each in the gap that it is in, or most of it."""
    cuts: set[Cut] = set()
    place = 0
    gaps = [Cut(after.start, before.right, after.left) for before, after in pairwise(line.words)]
    for left, right in dividing:
        while place < len(gaps) and gaps[place].right <= left:
            place += 1
        over = takewhile(lambda gap, right=right: gap.left < right, gaps[place:])
        widths = [(min(gap.right, right) - max(gap.left, left), gap) for gap in over]
        if widths:
            cuts.add(max(widths)[1])
    return sorted(cuts)


def _is_head(line: _Line, dividing: Sequence[Span], page: _Page) -> bool:
    """Whether a line may name columns: its words stand over them, and hardly over two."""
    left, right = line.words[0].left, line.words[-1].right
    within = [strip for strip in dividing if left < strip[0] and strip[1] < right]
    cuts = {cut.place for cut in _cuts(line, within)}
    over = [(after, gap) for _, after, gap in line.gaps() if after.start in cuts]
    are_apart = (after.is_apart if page.draws else gap >= _WIDE * page.space for after, gap in over)
    return all(are_apart) and 0 < len(within) <= 2 * len(over)
