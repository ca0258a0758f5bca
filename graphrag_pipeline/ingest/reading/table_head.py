"""The head of a table: lines above it, and the rows that name its columns, if any does."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from graphrag_pipeline.ingest.reading.cleaning import one_line

LOOKED_AT = 50
"""Rows from the top of a table by which its head is told."""
_MOST_CAPTIONS = 20
_MOSTLY = 0.8
_MOST_ROWS = 3
_NUMBER = re.compile(
    r"[-+(]?[$€£¥]?\s?\d[\d.,' \u00a0\u202f]*\s?[%$€£¥]?\)?|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}"
)
_YEAR = re.compile(r"(1[5-9]|20)\d\d")

Row = Sequence[str]
Spans = Collection[tuple[int, int, int, int]]
"""Merged cells: the first and the last row and column of each, from 0."""


@dataclass(frozen=True)
class TableHead:
    """Lines above the rows of a table, and the names of its columns."""

    captions: Sequence[str]
    """Lines above the table."""
    names: Sequence[str]
    """Names of columns, in one line each; empty where no row names them."""
    n_rows: int
    """How many rows from the top are no records."""


def head_of(rows: Sequence[Row], spans: Spans = ()) -> TableHead:
    """Tell the head of a table from its first rows, blank ones left out.

    A row names columns unless it holds a number where the rows below it hold numbers, too. Years
    name columns of other numbers. A head has several rows where cells of it are merged; where
    nobody knows of merged cells, where several names stand over two columns or more, and the row
    below names these.
    """
    n_captions = _captions(rows)
    captions = [one_line(" ".join(filter(None, row))) for row in rows[:n_captions]]
    below = rows[n_captions:]
    if not below or _is_record(below[0], below[1:]):
        return TableHead(captions, (), n_captions)
    n_rows = _height(below, [_moved(span, n_captions) for span in spans])
    names = joined_names(below[:n_rows])
    return TableHead(captions, names, n_captions + n_rows)


def _captions(rows: Sequence[Row]) -> int:
    """Return the number of rows of one cell above rows of which most have several."""
    filled = [sum(map(bool, map(str.strip, row))) for row in rows[:LOOKED_AT]]
    first = next((number for number, cells in enumerate(filled) if cells > 1), 0)
    several = sum(cells > 1 for cells in filled[first:])
    is_table = first <= _MOST_CAPTIONS and several >= _MOSTLY * len(filled[first:])
    return first if is_table else 0


def _is_record(first: Row, others: Sequence[Row]) -> bool:
    """Whether the first row is a record like the others, and names nothing."""
    if not all(map(str.strip, first)):
        return False
    columns = [
        [cell for row in others if place < len(row) and (cell := row[place].strip())]
        for place in range(len(first))
    ]
    over = list(zip(map(str.strip, first), columns, strict=True))
    names_numbers = any(
        cells and not _is_number(cell) and _are_numbers(cells) for cell, cells in over
    )
    return not names_numbers and any(
        _is_number(cell) and _is_like(cell, cells) for cell, cells in over
    )


def _are_numbers(cells: Sequence[str]) -> bool:
    return 2 * sum(map(_is_number, cells)) > len(cells)


def _is_like(number: str, cells: Sequence[str]) -> bool:
    """Whether a number stands over numbers, and a year over years."""
    if not cells or _YEAR.fullmatch(number) is None:
        return not cells or _are_numbers(cells)
    return 2 * sum(_YEAR.fullmatch(cell) is not None for cell in cells) > len(cells)


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None


def _height(rows: Sequence[Row], spans: Spans) -> int:
    """Return how many rows name the columns."""
    if spans:
        last = 0
        for first_row, last_row, first_column, last_column in sorted(spans):
            if 0 <= first_row <= last:
                is_wide = last_column > first_column
                last = max(last, last_row + is_wide)
        return min(last + 1, _MOST_ROWS, max(1, len(rows) - 1))
    return 2 if len(rows) > 2 and _is_under_names(rows[0], rows[1], rows[2:]) else 1


def _is_under_names(first: Row, second: Row, others: Sequence[Row]) -> bool:
    """Whether names of the first row stand over several columns each, named by the second."""
    wide = [
        place
        for place in range(1, min(len(first), len(second)))
        if not first[place].strip() and first[place - 1].strip()
    ]
    is_named = all(second[place].strip() and second[place - 1].strip() for place in wide)
    has_numbers = any(_is_number(cell) for row in others for cell in row)
    return len(wide) > 1 and is_named and has_numbers and not any(map(_is_number, second))


def joined_names(rows: Sequence[Row]) -> list[str]:
    """Return the names of columns: those of each row, from the top, each said once."""
    width = max(map(len, rows))
    names: list[list[str]] = [[] for _ in range(width)]
    for number, row in enumerate(rows):
        above = ""
        for place in range(width):
            cell = one_line(row[place]) if place < len(row) else ""
            under = any(place < len(other) and other[place].strip() for other in rows[number + 1 :])
            above = cell or (above if under else "")
            if above and above not in names[place]:
                names[place].append(above)
    return [" ".join(parts) for parts in names]


def _moved(span: tuple[int, int, int, int], rows: int) -> tuple[int, int, int, int]:
    return span[0] - rows, span[1] - rows, span[2], span[3]
