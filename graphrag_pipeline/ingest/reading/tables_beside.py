"""Tables that stand beside each other in one sheet or file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphrag_pipeline.ingest.reading.table_head import Spans, is_number, n_filled, names_numbers

Rows = Sequence[Sequence[str]]
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
    wide = _bodies(rows, runs)
    if len(runs) > 1 and _share_of_numbers(wide[0]) < _MOSTLY / 2:
        named = [n for n, body in enumerate(wide) if not n or _share_of_numbers(body) < _MOSTLY]
        ends = [*(runs[n - 1][1] for n in named[1:]), runs[-1][1]]
        runs = [(runs[n][0], end) for n, end in zip(named, ends, strict=True)]
        wide = _bodies(rows, runs)
    if len(runs) < 2 or min(map(len, wide)) < 2 or _are_one(wide):
        yield rows, spans
        return
    for first, stop in runs:
        own = [(a, b, c - first, d - first) for a, b, c, d in spans if first <= c and d < stop]
        yield [row[first:stop] for row in rows], own


def _are_one(bodies: Sequence[Rows]) -> bool:
    """Whether tables of as many rows have neither a column of one name nor rows of their own."""
    heads = [{cell.strip() for cell in body[0]} - {""} for body in bodies]
    is_apart = len(set(map(len, bodies))) > 1 or set.intersection(*heads)
    return not is_apart and not all(map(_has_own_rows, bodies))


def _bodies(rows: Rows, runs: Sequence[tuple[int, int]]) -> list[Rows]:
    """Return of each run of columns the rows that have several cells there."""
    parts = ([row[first:stop] for row in rows] for first, stop in runs)
    return [[row for row in part if n_filled(row) > 1] for part in parts]


def _filled_columns(rows: Rows) -> list[tuple[int, int]]:
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


def _share_of_numbers(body: Rows) -> float:
    """Return how many of the rows begin with a number, or with nothing."""
    return sum(is_number(row[0]) or not row[0].strip() for row in body) / max(len(body), 1)


def _has_own_rows(body: Rows) -> bool:
    """Whether the first column names each row by another name, and another names numbers."""
    names = [row[0].strip() for row in body]
    is_named = all(names) and len(set(names)) == len(names) and not any(map(is_number, names))
    return is_named and names_numbers(body)
