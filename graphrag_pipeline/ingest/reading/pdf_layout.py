"""The reading order of a page of a PDF, and what stands around its text.

Pages are drawn in any order, most of them in that of reading. It is kept where a page has one
column. Where a strip of white divides running text, each column is read by itself, and what goes
over the strip (a title, a wide figure's caption) divides the page into bands that are read from top
to bottom. A table has such strips too, but its cells do not fill their columns.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.pdf_lines import LinePiece
from graphrag_pipeline.ingest.reading.pdf_rules import Span

_GUTTER = 8  # points: no narrower strip divides columns
_MIDDLE = (0.2, 0.8)  # of the page's width: where a strip is looked for
_MOST_OVER = 0.3  # of the lines at the fullest place: as many may go over a strip
_LEAST_SHARE = 0.15  # of the page's characters: so many stand on each side of a strip
_LEAST_LINES = 5
_FULL = 0.7  # of a column's width
_FULL_SHARE = 0.5  # of a column's lines
_LEAST_CHARS = 15  # of a column's lines, in the middle
_MOST_DIVISIONS = 2

_BESIDE = 15  # heights of a label: what it is the label of is no farther away
_LONGEST_VALUE = 60  # characters

_EDGE_LINES = 3
_SAME_HEIGHT = 3.0  # points
_LEAST_PAGES = 3
_TALL = 1.15  # of the height of most text
_NUMBER = pattern_of(r"(?<![\w.,])(?:\d{1,4}|[ivxlc]{1,7})(?![\w]|[.,]\d)")
_NUMERALS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_WORDS_OF = "of|von|de|di|sur|av|van|z|из|页"
_BARE = pattern_of(
    r"\W*(?:page|pag|pg|p|seite|s|página|pagina|pág|side|sida|strona|str|стр|страница|第)?\W*#\W*"
    rf"(?:(?:{_WORDS_OF})?\W*\d{{0,4}}\W*)?",
    re.I,
)
_OF = pattern_of(rf"#\s?(?:/|{_WORDS_OF})\s?\d", re.I)

LEAST_CELLS = 3
"""As many pieces of a line are cells, even where no other line has cells below them."""


class RowCell(NamedTuple):
    """A piece of a line that stands apart from others, with its place in points.

    ``within`` are the places of the rules on both sides of it, if there are any.
    """

    text: str
    left: float
    right: float
    within: Span | None = None


class Row(NamedTuple):
    """One line of a column, with its place in points, to an eighth.

    ``column`` numbers the parts of a page in the order of reading; ``cells`` are the pieces of the
    line, if it has several or stands between rules, and ``parts`` these as columns of numbers
    divide them, if they do; ``table`` is the number of the table whose row it is, 0 for none.
    """

    text: str
    left: float
    right: float
    bottom: float
    height: float
    column: int
    cells: Sequence[RowCell] = ()
    parts: Sequence[RowCell] = ()
    table: int = 0


def in_reading_order(pieces: Sequence[LinePiece]) -> list[Row]:
    """Return the lines of a page in the order of reading, column by column."""
    rows: list[Row] = []
    for column, part in enumerate(_parts(_with_values(pieces), _MOST_DIVISIONS)):
        for _, line in groupby(part, key=lambda piece: piece.line):
            rows.append(_row(list(line), column))
    return rows


def _with_values(pieces: Sequence[LinePiece]) -> Sequence[LinePiece]:
    """Return the pieces of a page, labels that are drawn together with what stands beside each.

    ``Date:`` and ``Total:`` are drawn below each other, and so is what they say, before or after.
    """
    alone = Counter(piece.line for piece in pieces)
    ends = [p.text.endswith(":") and alone[p.line] == 1 for p in pieces]
    labels = {n for n, pair in enumerate(pairwise(ends)) if all(pair)}
    if not labels:
        return pieces
    heights: dict[int, list[int]] = {}
    for number, piece in enumerate(pieces):
        heights.setdefault(round(piece.bottom / _SAME_HEIGHT), []).append(number)
    values: dict[int, int] = {}
    for label in sorted({*labels, *(n + 1 for n in labels)}):
        own, height = pieces[label], round(pieces[label].bottom / _SAME_HEIGHT)
        beside = [
            (pieces[n].left, n)
            for near in (height - 1, height, height + 1)
            for n in heights.get(near, ())
            if pieces[n].left >= own.right and abs(pieces[n].bottom - own.bottom) < _SAME_HEIGHT
        ]
        left, value = min(beside, default=(0.0, label))
        is_near = left - own.right <= _BESIDE * own.height
        is_value = len(pieces[value].text) <= _LONGEST_VALUE and not ends[value]
        if is_near and is_value and alone[pieces[value].line] == 1:
            values[label] = value
    taken = set(values.values())
    return [
        each
        for number, piece in enumerate(pieces)
        if number not in taken
        for each in (piece, *_of_line(pieces, values.get(number), piece.line))
    ]


def _of_line(pieces: Sequence[LinePiece], number: int | None, line: int) -> Iterator[LinePiece]:
    """Yield a piece, if there is one of a number, as it were of another line."""
    if number is not None:
        yield pieces[number]._replace(line=line)


def without_running_heads(pages: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """Return the lines of pages without running heads and feet, and without page numbers.

    These are lines among the three next to an edge of their page: those that have the same text at
    the same height on three pages or more; those that begin or end with the number of the page, at
    a height where three pages have one that is counted alike, as notes are not; and those that are
    nothing but it, on two pages or more.
    Where nothing else is left, all is kept.
    """
    edges = [_edges(page) for page in pages]
    texts = [[page[row].text for row in edge] for page, edge in zip(pages, edges, strict=True)]
    offsets = _offsets(texts)
    tall = _TALL * usual_height(pages)
    keys = [
        {row: list(_keys(page[row], number, is_top, offsets, tall)) for row, is_top in edge.items()}
        for number, (page, edge) in enumerate(zip(pages, edges, strict=True))
    ]
    counts = Counter(key for page in keys for key in {key for own in page.values() for key in own})
    kept = [
        [row for number, row in enumerate(page) if not _is_around(own.get(number, ()), counts)]
        for page, own in zip(pages, keys, strict=True)
    ]
    return kept if any(kept) else [list(page) for page in pages]


def usual_height(pages: Iterable[Iterable[Row]]) -> float:
    """Return the height of most of the text."""
    counts: Counter[float] = Counter()
    for page in pages:
        for row in page:
            counts[row.height] += len(row.text)
    return max(counts, key=lambda height: (counts[height], -height), default=0.0)


class _Key(NamedTuple):
    """Key that lines at the edges of several pages share."""

    text: str
    is_top: bool
    height: int
    least: int


def _keys(
    row: Row, page: int, is_top: bool, offsets: frozenset[int], tall: float
) -> Iterator[_Key]:
    """Yield what a line may have in common with others: its text, also without the page's number.

    A line of larger letters is a heading, which may count on with the pages.
    """
    height = round(row.bottom / _SAME_HEIGHT)
    yield _Key(row.text, is_top, height, _LEAST_PAGES)
    for match in _NUMBER.finditer(row.text):
        offset = _value(match.group()) - page
        if offset not in offsets:
            continue
        text = f"{row.text[: match.start()]}#{row.text[match.end() :]}"
        if _BARE.fullmatch(text):
            yield _Key(text, is_top, height, 2)
        elif _OF.search(text):
            yield _Key(text, is_top, height, _LEAST_PAGES)
        elif row.height < tall and (text.startswith("#") or text.endswith("#")):
            yield _Key(f"{offset}#...", is_top, height, _LEAST_PAGES)


def _is_around(keys: Iterable[_Key], counts: Counter[_Key]) -> bool:
    return any(
        sum(counts[key._replace(height=key.height + near)] for near in (-1, 0, 1)) >= key.least
        for key in keys
    )


def _edges(page: Sequence[Row]) -> dict[int, bool]:
    """Return the numbers of the rows next to the edges of a page, and whether they are at its top.

    Rows of one height count as one line.
    """
    by_height = sorted(range(len(page)), key=lambda number: -page[number].bottom)
    lines: list[list[int]] = []
    for number in by_height:
        if lines and page[lines[-1][0]].bottom - page[number].bottom < _SAME_HEIGHT:
            lines[-1].append(number)
        else:
            lines.append([number])
    near = min(_EDGE_LINES, (len(lines) + 1) // 2)
    ends = ((True, lines[:near]), (False, lines[max(near, len(lines) - near) :]))
    return {row: is_top for is_top, some in ends for line in some for row in line}


def _offsets(texts: Sequence[Sequence[str]]) -> frozenset[int]:
    """Return by how much the numbers of pages differ from their places, where two pages agree."""
    votes = Counter(
        offset
        for page, lines in enumerate(texts)
        for offset in {value - page for line in lines for value in _values(line)}
    )
    return frozenset(offset for offset, number in votes.items() if number > 1)


def _values(line: str) -> Iterator[int]:
    yield from (_value(match.group()) for match in _NUMBER.finditer(line))


def _value(written: str) -> int:
    if written.isdecimal():
        return int(written)
    values = [_NUMERALS[letter] for letter in written]
    return sum(
        -value if after > value else value
        for value, after in zip(values, [*values[1:], 0], strict=True)
    )


def _parts(pieces: Sequence[LinePiece], divisions: int) -> Iterator[Sequence[LinePiece]]:
    """Yield the parts of a page that are read one after the other."""
    middle = _find_gutter(pieces) if divisions else None
    if middle is None:
        yield pieces
        return
    over = sorted((p for p in pieces if p.left < middle < p.right), key=lambda piece: -piece.bottom)
    heights = [-piece.bottom for piece in over]
    bands: dict[int, tuple[list[LinePiece], list[LinePiece]]] = {}
    for piece in pieces:
        if not piece.left < middle < piece.right:
            band = bisect_left(heights, -piece.bottom)
            bands.setdefault(band, ([], []))[piece.left >= middle].append(piece)
    for band in range(len(over) + 1):
        for side in bands.get(band, ()):
            if side:
                yield from _parts(_downwards(side), divisions - 1)
        if band < len(over):
            yield [over[band]]


def _downwards(pieces: Iterable[LinePiece]) -> list[LinePiece]:
    return sorted(pieces, key=lambda piece: (-round(piece.bottom), piece.left))


def _find_gutter(pieces: Sequence[LinePiece]) -> float | None:
    """Return the middle of the strip that divides columns of running text, None if none does."""
    placed = [piece for piece in pieces if piece.right > piece.left]
    if len(placed) < 2 * _LEAST_LINES:
        return None
    left = int(min(piece.left for piece in placed))
    width = int(max(piece.right for piece in placed)) - left + 1
    steps = [0] * (width + 1)
    for piece in placed:
        steps[int(piece.left) - left] += 1
        steps[int(piece.right) - left] -= 1
    covered = list(accumulate(steps))[:width]
    most = _MOST_OVER * max(covered)
    best: tuple[int, int, float] | None = None
    first, last = (int(share * width) for share in _MIDDLE)
    for is_free, run in groupby(range(first, last), key=lambda place: covered[place] <= most):
        places = list(run)
        if is_free and len(places) >= _GUTTER:
            lowest = min(covered[place] for place in places)
            free = [place for place in places if covered[place] == lowest]
            middle = left + (free[0] + free[-1]) / 2
            rank = (-lowest, len(places), middle)
            best = max(best, rank) if best else rank
    if best is None or not _divides(placed, best[2]):
        return None
    return best[2]


def _divides(pieces: Sequence[LinePiece], middle: float) -> bool:
    """Whether there is running text on both sides of a place, and not cells of a table."""
    sides = (
        [piece for piece in pieces if piece.right <= middle],
        [piece for piece in pieces if piece.left >= middle],
    )
    whole = sum(len(piece.text) for piece in pieces)
    return all(
        len(side) >= _LEAST_LINES
        and sum(len(piece.text) for piece in side) >= _LEAST_SHARE * whole
        and _is_running(side)
        for side in sides
    )


def _is_running(side: Sequence[LinePiece]) -> bool:
    width = max(piece.right for piece in side) - min(piece.left for piece in side)
    full = sum(piece.right - piece.left >= _FULL * width for piece in side)
    lengths = sorted(len(piece.text) for piece in side)
    return full >= _FULL_SHARE * len(side) and lengths[len(side) // 2] >= _LEAST_CHARS


def _rounded(points: float) -> float:
    """Return a place to an eighth of a point; the same number is one object in all of a file."""
    return _number(round(points * 8))


@lru_cache(65_536)
def _number(eighths: int) -> float:
    return eighths / 8


def _row(pieces: Sequence[LinePiece], column: int) -> Row:
    text, left, right, bottom, _, height, *_ = pieces[0]
    if len(pieces) > 1:
        text = " ".join(piece.text for piece in pieces)
        left = min(piece.left for piece in pieces)
        right = max(piece.right for piece in pieces)
        bottom = min(piece.bottom for piece in pieces)
        height = max(piece.height for piece in pieces)
    left, right, bottom, height = map(_rounded, (left, right, bottom, height))
    has_cells = len(pieces) > 1 or pieces[0].within is not None
    cells = tuple(RowCell(p.text, p.left, p.right, p.within) for p in pieces)
    parts: tuple[RowCell, ...] = ()
    if any(piece.parts for piece in pieces):
        parts = tuple(RowCell(*part[:3], p.within) for p in pieces for part in p.parts or [p])
    return Row(text, left, right, bottom, height, column, cells if has_cells else (), parts)
