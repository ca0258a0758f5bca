"""Lines of a PDF whose pieces stand in columns are rows of a table, said again as Markdown's.

PDF draws words at places and knows no tables. Lines below each other, whose pieces each stand over
or under those of one column, are a table; a line of fewer pieces that stands close to one of more
is a further line of its cells. All else stays as it is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise

from graphrag_pipeline.ingest.reading.html_lines import n_names
from graphrag_pipeline.ingest.reading.pdf_layout import LEAST_CELLS, Row, RowCell
from graphrag_pipeline.ingest.reading.pdf_rules import Span
from graphrag_pipeline.ingest.reading.table_head import (
    Spans,
    head_of,
    is_number,
    is_year,
    joined_names,
    markdown_lines,
    names_numbers,
)

_SAME_LINE = 0.3  # of a line's height: pieces of one line are no further up or down
_NEXT = 3.5  # of a line's height: the next row of a table is no further down
_JUMP = 6.0  # of a line's height: what is further up or down is another part of the page
_WITHIN = 0.8  # of a line's height: closer lines are of one row
_CLOSE = 1.3  # of the smallest distance of lines: as far apart are lines of one cell
_DRAWN_NEAR = 12  # lines: cells of one line are drawn no further apart
_LOOKED_AT = 60  # lines, of which the one with most cells has all columns
_LEAST_LINES = 3
_MOST_COLUMNS = 60
_FILLED = 0.5  # of the cells of a table
_LEADERS = "....."
_OFF = 0.15  # of the width of columns: what stands over them is no farther from their middle
_MARKS = 4  # characters of what may number the items of a list


@dataclass(slots=True)
class _Line:
    """Pieces at one height, with the rows that they are of, by their numbers."""

    bottom: float
    height: float
    cells: list[RowCell]
    rows: list[int]


@dataclass(slots=True)
class _Table:
    """Lines with the columns of each of their cells; `columns` are left and right ends."""

    columns: list[Span]
    lines: list[_Line]
    places: list[list[range]] = field(default_factory=list)
    head: Sequence[Sequence[str]] = ()

    @property
    def rows(self) -> frozenset[int]:
        """The numbers of the rows that are in it."""
        return frozenset(chain.from_iterable(line.rows for line in self.lines))


def with_tables(pages: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """Return the rows of pages, those of tables as lines of Markdown with the table's number.

    A table at the top of a page goes on with the one at the end of the page before, if they have
    the same columns: a head that is repeated there is left out.
    """
    written: list[list[Row]] = []
    last: _Table | None = None
    number = 0
    for page in pages:
        rows: list[Row] = []
        for _, column in groupby(page, key=lambda row: row.column):
            drawn = list(column)
            place = 0
            tables = _best_tables(drawn)
            skipped = frozenset(chain.from_iterable(table.rows for table in tables))
            for table in tables:
                taken = sorted(table.rows)
                rows += (drawn[n] for n in range(place, taken[0]) if n not in skipped)
                goes_on = last is not None and rows == [] and _has_columns(table, last)
                number += not goes_on
                rows += _as_markdown(table, drawn[taken[0]], number, last if goes_on else None)
                rows += [drawn[n] for n in range(taken[0], taken[-1]) if n not in skipped]
                place, last = taken[-1] + 1, table
            rows += drawn[place:]
            last = last if drawn[place:] == [] else None
        written.append(rows)
    return written


def _best_tables(rows: Sequence[Row]) -> list[_Table]:
    """Return tables as columns of numbers divide their lines, where these leave no line out."""
    plain = list(_tables(rows, divided=False))
    if not any(row.parts for row in rows):
        return plain
    divided = list(_tables(rows, divided=True))
    while True:
        known = [row for table in divided for row in table.rows]
        lost = [t for t in plain if not t.rows.issubset(known)]
        kept = [t for t in divided if all(t.rows.isdisjoint(other.rows) for other in lost)]
        if len(kept) == len(divided):
            break
        divided = kept
    rest = [t for t in plain if all(t.rows.isdisjoint(other.rows) for other in divided)]
    return sorted([*divided, *rest], key=lambda table: min(table.rows))


def _tables(rows: Sequence[Row], *, divided: bool) -> Iterator[_Table]:
    for lines in _parts(_lines(rows, divided=divided)):
        start = 0
        while start < len(lines):
            near = lines[start : start + _LOOKED_AT]
            fullest = start + max(range(len(near)), key=lambda n: (len(near[n].cells), -n))
            table, end = _around(lines, start, fullest)
            if _is_table(table):
                yield table
            start = end


def _lines(rows: Sequence[Row], *, divided: bool) -> list[_Line]:
    """Return lines in the order of the page, whatever cells of theirs were drawn first."""
    lines: list[_Line] = []
    begin = 0
    for number, row in enumerate(rows):
        if lines and abs(lines[-1].bottom - row.bottom) > _JUMP * row.height:
            begin = len(lines)
        place = len(lines)
        first = max(begin, place - _DRAWN_NEAR)
        while place > first and lines[place - 1].bottom < row.bottom - _SAME_LINE * row.height:
            place -= 1
        parts = row.parts if divided else ()
        cells = list(parts or row.cells or (RowCell(row.text, row.left, row.right),))
        above = lines[place - 1] if place > first else None
        if above and _is_beside(above, cells, row):
            above.cells = sorted([*above.cells, *cells], key=lambda cell: cell.left)
            above.rows.append(number)
        else:
            lines.insert(place, _Line(row.bottom, row.height, cells, [number]))
    return lines


def _is_beside(line: _Line, cells: Sequence[RowCell], row: Row) -> bool:
    gap = _SAME_LINE * row.height
    is_near = abs(line.bottom - row.bottom) <= gap
    return (
        is_near
        and len(line.cells) + len(cells) <= _MOST_COLUMNS
        and all(
            cell.right + gap < other.left or other.right + gap < cell.left
            for cell in cells
            for other in line.cells
        )
    )


def _parts(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yield lines below each other of which the first and the last have several cells."""
    part: list[_Line] = []
    for line in lines:
        apart = part[-1].bottom - line.bottom if part else 0.0
        if part and (apart < 0 or apart > _NEXT * line.height):
            yield from _trimmed(part)
            part = []
        part.append(line)
    yield from _trimmed(part)


def _trimmed(part: list[_Line]) -> Iterator[list[_Line]]:
    several = [n for n, line in enumerate(part) if len(line.cells) > 1]
    if len(several) < 2:
        return
    first, last = several[0], several[-1] + 1
    while first and _leads(part[first - 1], part[first]):
        first -= 1
    while last < len(part) and _ends_row(part[last - 1], part[last]):
        last += 1
    yield part[first:last]


def _leads(line: _Line, following: _Line) -> bool:
    """Whether a line of one cell belongs to the row after it, or stands over cells of it."""
    apart = line.bottom - following.bottom
    ruled = line.cells[0].within
    cells = [(cell.left, cell.right) for cell in following.cells]
    return apart < _WITHIN * following.height or (
        ruled is not None and len(_over(cells, ruled)) > 1
    )


def _ends_row(before: _Line, line: _Line) -> bool:
    """Whether a line of one cell belongs to the row before it."""
    apart = before.bottom - line.bottom
    inner = line.cells[0].left > before.cells[0].right and apart < _CLOSE * line.height
    return apart < _WITHIN * line.height or inner


def _around(lines: Sequence[_Line], start: int, fullest: int) -> tuple[_Table, int]:
    """Return the lines around one that keep to its columns, and the number of the line after."""
    table = _Table([(c.left, c.right) for c in lines[fullest].cells], [], [])
    end = fullest
    while end < len(lines) and (places := _places(table.columns, lines[end], may_span=False)):
        table.lines.append(lines[end])
        table.places.append(places)
        end += 1
    if not table.lines:
        return table, fullest + 1
    apart = [above.bottom - below.bottom for above, below in pairwise(table.lines)]
    furthest = _CLOSE * max(apart, default=_NEXT * lines[fullest].height)
    for line in reversed(lines[start:fullest]):
        places = _places(table.columns, line, may_span=True)
        if not places or line.bottom - table.lines[0].bottom > furthest:
            break
        table.lines.insert(0, line)
        table.places.insert(0, places)
    return table, max(end, fullest + 1)


def _places(columns: list[Span], line: _Line, *, may_span: bool) -> list[range] | None:
    """Return the columns of each cell of a line, None if it keeps to none; columns grow by it.

    One that may span several is over those between its rules, if it has any.
    """
    if len(columns) > _MOST_COLUMNS or _LEADERS in "".join(
        cell.text for cell in line.cells
    ).replace(" ", ""):
        return None
    ruled = _between_rules(columns, line) if may_span else []
    places: list[range] = []
    grown = list(columns)
    for number, cell in enumerate(line.cells):
        over = ruled[number] if ruled else _over(grown, (cell.left, cell.right))
        is_wide = len(over) > 1
        is_taken = any(over.start in place for place in places)
        may_be_wide = ruled or (may_span and len(line.cells) > 1)
        if not over or is_taken or (is_wide and not may_be_wide):
            return None
        places.append(over if ruled else over[:1])
        if not is_wide:
            a, b = grown[over.start]
            grown[over.start] = (min(a, cell.left), max(b, cell.right))
    if any(a[1] > b[0] for a, b in pairwise(grown)):
        return None
    columns[:] = grown
    return places


def _between_rules(columns: Sequence[Span], line: _Line) -> list[range]:
    """Return the columns between the rules of each cell of a head; none if two are over one.

    No rule need stand beside the first column, and what stands over that and others is a caption.
    A label of a form is no head.
    """
    places: list[range] = []
    for cell in line.cells:
        over = _over(columns, cell.within) if cell.within else range(0)
        if over.start == 0 and len(line.cells) > 1:
            over = _over(columns, (cell.left, cell.right))
        is_caption = len(over) > 1 and (over.start == 0 or ":" in cell.text)
        if not over or is_caption:
            return []
        places.append(over)
    is_over_one = any(place.stop > after.start for place, after in pairwise(places))
    return [] if is_over_one else places


def _over(columns: Sequence[Span], span: Span) -> range:
    """Return the columns that something is over or under."""
    over = [n for n, (left, right) in enumerate(columns) if span[0] < right and left < span[1]]
    return range(over[0], over[-1] + 1) if over else range(0)


def _is_table(table: _Table) -> bool:
    n_columns = len(table.columns)
    if n_columns < 2 or len(table.lines) < _LEAST_LINES:
        return False
    rows = _cells(table)
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    several = sum(sum(map(bool, row)) > 1 for row in rows)
    filled = sum(map(len, columns))
    are_labels = any(2 * sum(c.endswith(":") for c in column) > len(column) for column in columns)
    n_single = sum(len(column) < 2 for column in columns)
    if several < _LEAST_LINES or 2 * several < len(rows) or are_labels or 4 * n_single > n_columns:
        return False
    if n_columns < LEAST_CELLS:
        is_list = all(len(cell) <= _MARKS for cell in columns[0])
        return not is_list and 2 * sum(map(is_number, columns[1])) > len(columns[1])
    return filled >= _FILLED * n_columns * several


def _cells(table: _Table, *, spanning: bool = False) -> list[list[str]]:
    """Return the rows of a table, ``spanning`` ones with their text in all columns of a cell."""
    rows: list[list[str]] = []
    for numbers in _groups(table):
        parts: list[list[str]] = [[] for _ in table.columns]
        for number in numbers:
            for cell, over in zip(table.lines[number].cells, table.places[number], strict=True):
                for place in over if spanning else over[:1]:
                    parts[place].append(cell.text.strip())
        rows.append([" ".join(cell) for cell in parts])
    return rows


def _groups(table: _Table) -> list[list[int]]:
    """Return the lines of each row.

    Lines that stand closer than others are of one row if one of them has all cells that the row
    has and the others have fewer. Where that is not so, each line is a row, but for one cell close
    below the others, and not in the first column.
    """
    lines = table.lines
    apart = [above.bottom - below.bottom for above, below in pairwise(lines)]
    far = [d for d, line in zip(apart, lines[1:], strict=True) if d >= _WITHIN * line.height]
    close = _CLOSE * min(far, default=0.0)
    has_two = any(d > close for d in far)
    groups = [[0]]
    for number, distance in enumerate(apart, 1):
        if distance < _WITHIN * lines[number].height or (has_two and distance <= close):
            groups[-1].append(number)
        else:
            groups.append([number])
    if all(_is_row([table.places[number] for number in group]) for group in groups):
        return groups
    groups = [[0]]
    for number, distance in enumerate(apart, 1):
        of_above = table.places[number][0].start > 0 and len(table.places[number]) == 1
        if distance < _WITHIN * lines[number].height or (
            of_above and distance <= _CLOSE * lines[number].height
        ):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _is_row(lines: Sequence[Sequence[range]]) -> bool:
    filled = set(chain.from_iterable(chain.from_iterable(lines)))
    return sum(sum(map(len, places)) == len(filled) for places in lines) <= 1


def _has_columns(table: _Table, other: _Table) -> bool:
    return len(table.columns) == len(other.columns) and all(
        a < d and c < b for (a, b), (c, d) in zip(table.columns, other.columns, strict=True)
    )


def _as_markdown(table: _Table, first: Row, number: int, before: _Table | None) -> Iterator[Row]:
    rows = _cells(table)
    if before is None:
        spanning = _cells(table, spanning=True)
        n_heads = _n_heads(spanning, list(_spans(table)))
        above = _groups(table)[: max(n_heads - 1, 0)]
        joined = joined_names(spanning[:n_heads]) if above else []
        is_apart = len(set(joined)) == len(joined)
        if not (is_apart and all(_are_over(table, n) for numbers in above for n in numbers)):
            names = spanning[n_heads - 1]
            for row in rows[: n_heads - 1]:
                yield first._replace(text=" ".join(filter(None, row)))
            rows, spanning = rows[n_heads - 1 :], spanning[n_heads - 1 :]
            n_heads = int(all(names) and len(set(names)) == len(names))
        table.head = spanning[:n_heads]
        rows = [*table.head, *rows[n_heads:]]
    else:
        n_heads, table.head = 0, before.head
        size = len(table.head)
        rows = rows[size:] if size and rows[:size] == table.head else rows
    for text in markdown_lines(rows, n_heads):
        yield first._replace(text=text, table=number)


def _are_over(table: _Table, number: int) -> bool:
    """Whether what stands over columns without rules is in the middle of those up to the next."""
    line, places = table.lines[number], table.places[number]
    ends = [*(place.start for place in places[1:]), len(table.columns)]
    for cell, place, end in zip(line.cells, places, ends, strict=True):
        left, right = table.columns[place.start][0], table.columns[end - 1][1]
        apart = abs(cell.left + cell.right - left - right) / 2
        is_wide = len(place) > 1 or end - place.start > 1
        if cell.within is None and is_wide and apart > _OFF * (right - left):
            return False
    return True


def _spans(table: _Table) -> Iterator[tuple[int, int, int, int]]:
    """Yield the cells over several columns: first and last row and column of each."""
    for row, numbers in enumerate(_groups(table)):
        for over in table.places[numbers[0]] if len(numbers) == 1 else ():
            if len(over) > 1:
                yield row, row, over[0], over[-1]


def _n_heads(rows: Sequence[Sequence[str]], spans: Spans) -> int:
    """Return how many rows name the columns: by words for that, or as they stand over numbers.

    What else the first row of a page has may be a row like the others.
    """
    if not (names_numbers(rows) or n_names(rows)):
        return 0
    head = head_of(rows, spans)
    if not head.names or head.captions:
        return 0
    names = joined_names(rows[: head.n_rows])[1:]
    is_named = all(any(map(str.isalnum, name)) for name in names)
    further = (cell for row in rows[1 : head.n_rows] for cell in row)
    is_named = is_named and not any(is_number(cell) and not is_year(cell) for cell in further)
    return head.n_rows if is_named else 0
