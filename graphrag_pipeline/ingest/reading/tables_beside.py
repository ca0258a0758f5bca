"""Tables that stand beside each other in one sheet or file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphrag_pipeline.ingest.reading.table_head import Spans, is_number, names_numbers

_MOSTLY = 0.6


def side_by_side(
    rows: list[list[str]], spans: Spans = ()
) -> Iterator[tuple[list[list[str]], Spans]]:
    """Yield the tables that stand beside each other, an empty column between.

    They are several where one has more rows than another, both have a column of one name, or each
    has rows with names and numbers of their own: else the column is but a space within one table,
    and so it is where numbers beside it have no names but those of the rows of the first.
    """
    runs = _filled_columns(rows)
    parts = [[row[first:stop] for row in rows] for first, stop in runs]
    wide = [[row for row in part if sum(map(bool, map(str.strip, row))) > 1] for part in parts]
    if len(runs) < 2 or min(map(len, wide)) < 2:
        yield rows, spans
        return
    heads = [{cell.strip() for cell in body[0]} - {""} for body in wide]
    is_one = len(set(map(len, wide))) == 1 and not set.intersection(*heads)
    if _names_rows_of_others(wide) or (is_one and not all(map(_has_own_rows, wide))):
        yield rows, spans
        return
    for (first, stop), part in zip(runs, parts, strict=True):
        own = [(a, b, c - first, d - first) for a, b, c, d in spans if first <= c and d < stop]
        yield part, own


def _filled_columns(rows: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Return the first column, and that after the last, of those between empty ones."""
    filled = [False] * max(map(len, rows), default=0)
    for row in rows:
        for place, cell in enumerate(row):
            filled[place] = filled[place] or bool(cell.strip())
        if all(filled):
            break
    runs: list[tuple[int, int]] = []
    for place, is_filled in enumerate(filled):
        if is_filled and place and filled[place - 1]:
            runs[-1] = (runs[-1][0], place + 1)
        elif is_filled:
            runs.append((place, place + 1))
    return runs


def _names_rows_of_others(wide: Sequence[Sequence[Sequence[str]]]) -> bool:
    """Whether the first of several bodies has names in its first column, another numbers alone."""
    shares = [sum(is_number(row[0]) for row in body) / len(body) for body in wide]
    return shares[0] < _MOSTLY / 2 and max(shares) >= _MOSTLY


def _has_own_rows(body: Sequence[Sequence[str]]) -> bool:
    """Whether the first column names each row by another name, and another names numbers."""
    names = [row[0].strip() for row in body]
    is_named = all(names) and len(set(names)) == len(names) and not any(map(is_number, names))
    return is_named and names_numbers(body)
