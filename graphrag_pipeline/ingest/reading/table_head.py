"""The head of a table: lines above it, and the rows that name its columns, if any does."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import field_head
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.cleaning import one_line

LOOKED_AT = 50
"""Rows from the top of a table by which its head is told."""
REPEATED = 200
"""Characters of a cell of several rows that is said in each of these."""
_MOST_CAPTIONS = 20
_MOSTLY = 0.8
_MANY_ROWS = 3
MOST_HEADS = 5
_LEAST_ROWS = 2
_LEAST_WIDE = 2
_SENTENCE_WORDS = 10
_NUMBER = pattern_of(
    r"[-+(]?[$€£¥]?\s?\d[\d.,' \u00a0\u202f]*\s?(?:[%$€£¥]|[A-Z]{3}|[a-zµ]{1,3})?\)?"
    r"|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}"
)
_YEAR = pattern_of(r"(1[5-9]|20)\d\d")
_DATE = pattern_of(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}")
_HOUR = r"(?:[01]?\d|2[0-4])[:h][0-5]\d(?::[0-5]\d)?(?: ?[ap]\.?m\.?)?"
_TIME = pattern_of(rf"{_HOUR}(?: ?[-–] ?{_HOUR})?|\d{{1,2}} ?[ap]\.?m\.?", re.IGNORECASE)
_ROUND = pattern_of(r"\d{1,2}(?:[:h](?:00|15|30|45)\b.*| ?[ap]\.?m\.?)", re.IGNORECASE)
_ADDRESS = pattern_of(r"[^@\s,;]+@[^@\s,;]+\.[^@\s,;]+|https?://\S+")
_LONGEST_UNIT = 12
_BRACKETED = pattern_of(r"\s*(?:\([^()\d]+\)|\[[^][\d]+])\s*")
_NOTE = pattern_of(r"[*†‡§¹²³©]|\(?[a-z\d]\)|\[[a-z\d]{1,2}]|[^:]{2,20}: ")
_SHORT_NAME = pattern_of(r"\b[A-Z]\w{0,3}\.$")
_NO_VALUE = pattern_of(
    r"n\W?[ad]\W?|nan|null|nil|none|unknown|missing|tb[acd]|not? .*|closed|empty|pending",
    re.IGNORECASE,
)
MOST_NOTES = 20
_LABEL = pattern_of(r"([^\W\d_][^:\n]{1,29}): (?=[^\W\d_])[^\n:;]{2,80}")
_WORDS = word_lists("nlp_records.txt")
_NAMED = _WORDS["person"] | _WORDS["organisation"] | _WORDS["place"]

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

    A row names columns unless it holds a number where the rows below it hold numbers, too. Years,
    dates and times name columns of what is none: see :func:`names_values`. A head has several rows
    where cells of it are merged; where nobody knows of merged cells, where :func:`n_over` says so.
    Short words under the names of numbers, and nothing under the others, are units: "Length (m)".
    What names few of the columns that most rows fill is no head, but a row of a form.
    """
    n_captions = _captions(rows, spans)
    captions = as_lines(rows[:n_captions])
    below = rows[n_captions:]
    if not below or _is_record(below[0], below[1:]):
        return TableHead(captions, (), n_captions)
    n_rows = _height(below, spans, n_captions)
    if n_rows == 1 and _names_rest(below):
        captions, below, n_captions = [*captions, *as_lines(below[:1])], below[1:], n_captions + 1
    names = joined_names(below[:n_rows])
    if _names_few(names, below[n_rows:]):
        return TableHead(captions, (), n_captions)
    units = below[n_rows] if len(below) > n_rows + 1 else []
    if units and _are_units(names, units, below[n_rows + 1 :]):
        n_rows, units = n_rows + 1, [cell.strip() for cell in units]
        names = [
            f"{name} ({unit.strip('()[]')})" if unit.strip("-") else name
            for name, unit in zip(names, units + [""] * len(names), strict=False)
        ]
    return TableHead(captions, names, n_captions + n_rows)


def _names_rest(rows: Sequence[Row]) -> bool:
    """Whether the second row names all columns, and numbers where the first has no name.

    So pivot tables are saved, with what they sum up and the word for columns above these.
    """
    second = rows[1] if len(rows) > _LEAST_ROWS else ()
    named = {place for place, cell in enumerate(rows[0]) if cell.strip()}
    unnamed = [place for place in range(len(second)) if place not in named]
    if len(unnamed) < _LEAST_WIDE or not all(cell.strip() and not kind_of(cell) for cell in second):
        return False
    below = [[row[place] for row in rows[2:] if place < len(row)] for place in unnamed]
    return all(cells and all(map(is_number, filter(None, cells))) for cells in below)


def _names_few(names: Sequence[str], rows: Sequence[Row]) -> bool:
    """Whether most columns that half of the rows fill have no name."""
    counts = [0] * max(map(len, rows), default=0)
    for row in rows:
        for place, cell in enumerate(row):
            counts[place] += bool(cell.strip())
    usual = [place for place, n in enumerate(counts) if 2 * n >= len(rows)]
    return 2 * sum(place < len(names) and bool(names[place]) for place in usual) < len(usual)


def is_prose(rows: Sequence[Row]) -> bool:
    """Whether rows of a sheet are lines of a text: one cell each, nearly, the first one, too.

    They stand in several columns, or the first is a sentence.
    """
    if len(rows) < _MANY_ROWS or sum(map(bool, rows[0])) != 1 or is_number("".join(rows[0])):
        return False
    several = sum(n_filled(row) > 1 for row in rows)
    columns = {place for row in rows for place, cell in enumerate(row) if cell.strip()}
    is_sentence = len(" ".join(rows[0]).split()) >= _SENTENCE_WORDS
    return several <= (1 - _MOSTLY) * len(rows) and (len(columns) > 1 or is_sentence)


def n_filled(row: Row) -> int:
    """Return how many cells of a row hold something."""
    return sum(map(bool, map(str.strip, row)))


def as_lines(rows: Sequence[Row]) -> list[str]:
    """Return rows as lines of text, one cell after another."""
    return [one_line(" ".join(filter(None, row))) for row in rows]


def _captions(rows: Sequence[Row], spans: Spans = ()) -> int:
    """Return the number of rows of one cell above rows of which most have several.

    Rows of more cells are above a table if they are many and no head, and the first row that is
    full names columns of numbers.
    """
    filled = [n_filled(row) for row in rows[:LOOKED_AT]]
    while filled and filled[-1] <= 1:  # notes
        filled.pop()
    first = next((number for number, cells in enumerate(filled) if cells > 1), 0)
    if first and not rows[first - 1][0].strip():  # a name over all columns but the first
        above, below = (_height(rows[n:], spans, n) for n in (first - 1, first))
        first -= above > below > 1
    full = filled.index(max(filled)) if filled else 0
    if full - first >= _MANY_ROWS and names_numbers(rows[full:]):
        first = first if first + _height(rows[first:], spans, first) > full else full
    over_all = {top for top, last, left, right in spans if top == last and right > left}
    rest = [
        cells for n, cells in enumerate(filled) if n >= first and (cells > 1 or n not in over_all)
    ]
    several = sum(cells > 1 for cells in rest)
    is_table = first <= _MOST_CAPTIONS and several >= _MOSTLY * len(rest)
    return first if is_table else 0


def _is_record(first: Row, others: Sequence[Row]) -> bool:
    """Whether the first row is a record like the others, and names nothing."""
    columns = [*_columns([first, *others])]
    if any(_ADDRESS.fullmatch(cell) and _are(_ADDRESS.fullmatch, cells) for cell, cells in columns):
        return True
    if not all(map(str.strip, first)) or names_values([first, *others]):
        return False
    return not names_numbers([first, *others]) and any(
        is_number(cell) and _is_like(cell, cells) for cell, cells in columns
    )


def names_numbers(rows: Sequence[Row]) -> bool:
    """Whether a cell of the first row that is no number stands over numbers."""
    return any(
        cell and cells and not is_number(cell) and _are_numbers(cells)
        for cell, cells in _columns(rows)
    )


def names_values(rows: Sequence[Row]) -> bool:
    """Whether the cells of the first row but the first are years, dates or times that name columns.

    Below them is nothing of their kind: numbers; or words, where several differ, and years are in
    their order. Times may stand over times that are less round, as those of a timetable.
    """
    values = [cell.strip() for cell in rows[0][1:]]
    kind = kind_of(values[0]) if values else ""
    if kind in ("", "number") or kind_of(rows[0][0]) or {*map(kind_of, values)} != {kind}:
        return False
    columns = [cells for _, cells in _columns(rows)][1:]
    alike = [cell for cells in columns for cell in cells if kind_of(cell) == kind]
    if alike and kind == "time":
        n_round = sum(map(bool, map(_ROUND.fullmatch, alike)))
        return all(map(_ROUND.fullmatch, values)) and 2 * n_round < len(alike) and len(values) > 1
    is_series = 1 < len(values) == len(set(values))
    if kind == "year":
        is_series &= sorted(values) in (values, values[::-1])
    return not alike and (is_series or all(c and _are_numbers(c) for c in columns))


def _columns(rows: Sequence[Row]) -> Iterator[tuple[str, list[str]]]:
    """Yield each cell of the first row, and the filled cells below it."""
    for place, cell in enumerate(rows[0]):
        filled = (row[place].strip() for row in rows[1:] if place < len(row))
        yield cell.strip(), [below for below in filled if below]


def _are(of_kind: Callable[[str], object], cells: Sequence[str]) -> bool:
    """Whether most cells are of a kind."""
    return 2 * sum(bool(of_kind(cell)) for cell in cells) > len(cells)


def _are_numbers(cells: Sequence[str]) -> bool:
    return _are(is_number, cells)


def _is_like(number: str, cells: Sequence[str]) -> bool:
    """Whether a number stands over numbers, and a year, date or time over such."""
    kind = kind_of(number)
    is_kind = is_number if kind == "number" else lambda cell: kind_of(cell) == kind
    return not cells or _are(is_kind, cells)


def kind_of(cell: str) -> str:
    """Return whether a cell is a "year", "date", "time" or other "number"; "" if it is none.

    >>> [*map(kind_of, ("2024", "2024-05-01", "05:30", "8-9 Boats", "8 %"))]
    ['year', 'date', 'time', '', 'number']
    """
    cell = cell.strip()
    if not cell[:1].isdigit():
        return "number" if is_number(cell) else ""
    kinds = (("year", _YEAR), ("date", _DATE), ("time", _TIME), ("number", _NUMBER))
    return next((kind for kind, pattern in kinds if pattern.fullmatch(cell)), "")


def is_year(cell: str) -> bool:
    """Whether a cell is a year, which names a column of other numbers."""
    return _YEAR.fullmatch(cell.strip()) is not None


def is_number(cell: str) -> bool:
    """Whether a cell is a number, a date or a time."""
    cell = cell.strip()
    return (_NUMBER.fullmatch(cell) or _TIME.fullmatch(cell)) is not None


def _height(rows: Sequence[Row], spans: Spans, first: int) -> int:
    """Return how many rows, of which the top one is that number of all, name the columns."""
    last = 0
    own = [(a - first, b - first, left, right) for a, b, left, right in spans]
    for first_row, last_row, first_column, last_column in sorted(own):
        if 0 <= first_row <= last:
            last = max(last, last_row + (last_column > first_column))
    height = min(last + 1, MOST_HEADS, max(1, len(rows) - 1))
    while height > 1 and _is_below_names(rows, height - 1, own):
        height -= 1
    return max(height, n_over(rows))


def _is_below_names(rows: Sequence[Row], number: int, spans: Spans) -> bool:
    """Whether a row that may name columns is one of numbers with a name, or that of a group."""
    filled = [cell for cell in rows[number] if cell.strip()]
    is_under = any(left == 0 and top < number <= last for top, last, left, _ in spans)
    numbers = [cell for cell in filled if is_number(cell) and not is_year(cell)]
    is_named = rows[number][:1] == filled[:1] and not is_under and not is_number(filled[0])
    return is_named and (len(filled) == 1 or 2 * len(numbers) >= len(filled))


def n_over(rows: Sequence[Row], *, is_merged: bool = False) -> int:
    """Return how many rows name columns, where names of one stand over several of the next; or 1.

    They are two names or more, unless cells are known to be merged, or the row is one of three. The
    last names each column that no other does. It has no numbers, and rows below it have; or it
    says the same again below each wide name, as they do not.
    """
    width = max(map(len, rows[:MOST_HEADS]), default=0)
    if not rows or not any(_wide(rows[0], width)):
        return 1
    most = range(min(MOST_HEADS, len(rows) - 1), 1, -1)
    least = 1 if is_merged else _LEAST_WIDE
    return next((n for n in most if _are_over(rows[:n], rows[n:], least)), 1)


def _are_over(heads: Sequence[Row], below: Sequence[Row], least: int) -> bool:
    last = heads[-1]
    width = max(map(len, heads))
    wide = [*_wide(heads[0], width)]
    for upper, lower in pairwise(heads):
        wide = [*_wide(upper, width)]
        is_led = upper is not heads[0] and lower[0].strip() and upper[0].strip() in ("", lower[0])
        is_over_all = len(heads) > _LEAST_WIDE and len(wide) == 1 and wide[0][0] > 0
        is_wide = len(wide) >= least or is_led or is_over_all
        if not is_wide or any(kind_of(cell) == "number" for cell in upper):
            return False
        if not all(start < len(lower) and lower[start].strip() for start, _ in wide):
            return False
    names = joined_names(heads)
    if not all(names) or len(set(names)) < len(names):
        return False
    if any(map(is_number, last)):
        return _says_again(last, wide) and not any(_says_again(row, wide) for row in below)
    has_numbers = any(is_number(cell) for row in below for cell in row)
    return has_numbers or (
        _says_again(last, wide) and not any(_says_again(row, wide) for row in below)
    )


def _wide(row: Row, width: int) -> Iterator[tuple[int, int]]:
    """Yield the first column, and that after the last, of each name over several.

    In these the name is said again, or nothing is.
    """
    pairs = zip(["", *row], row, strict=False)
    filled = [
        place for place, (before, cell) in enumerate(pairs) if cell.strip() not in ("", before)
    ]
    for start, end in pairwise([*filled, width]):
        if end - start > 1:
            yield start, end


def _says_again(row: Row, wide: Sequence[tuple[int, int]]) -> bool:
    """Whether a row has the same different cells below each of several wide names."""
    parts = {tuple(row[start:end]) for start, end in wide}
    cells = next(iter(parts), ())
    return len(wide) > 1 and len(parts) == 1 and len(set(cells)) == len(cells) > 1


def _are_units(names: Row, units: Row, others: Sequence[Row]) -> bool:
    """Whether a row has a short word under names of numbers only, and of most of these; or stands
    in brackets."""
    if all(map(str.strip, names)) and len(units) > 1 and all(map(_BRACKETED.fullmatch, units)):
        return not all(_BRACKETED.fullmatch(cell) for cell in others[0])
    filled = [place for place, cell in enumerate(units) if cell.strip().strip("-")]
    columns = enumerate(_columns([names, *others]))
    numeric = {place for place, (_, cells) in columns if cells and _are_numbers(cells)}
    return (
        all(map(str.strip, names))
        and 0 < len(filled) < len(names)
        and numeric.issuperset(filled)
        and 2 * len(filled) >= len(numeric)
        and all(len(units[place].strip()) <= _LONGEST_UNIT for place in filled)
        and not any(is_number(units[place]) for place in filled)
    )


def names_of_all(captions: Sequence[str]) -> list[str]:
    """Return the lines above a table that name whose or of what all of it is: Patient: Ida Moen."""
    labels = ((_LABEL.fullmatch(line), line) for line in captions)
    return [line for label, line in labels if label and field_head(label[1]) in _NAMED]


def begins_table(above: Sequence[Row], below: Sequence[Row]) -> bool:
    """Whether rows after an empty one are a table of its own, and no more rows of the one above.

    Their first names columns of numbers, also where the rows above have numbers; and it has
    another number of cells than these, or names two columns of numbers or more, or one by a word
    that begins as the name above it does and is none for a missing value.
    """
    rows = below[_captions(below) :]
    if len(above) < _LEAST_ROWS or len(rows) < _LEAST_ROWS or _is_record(rows[0], rows[1:]):
        return False
    if any(map(is_number, rows[0])) or not names_numbers([rows[0], *above[1:]]):
        return False
    named = [
        place
        for place, (cell, cells) in enumerate(_columns(rows))
        if cell and cells and _are_numbers(cells)
    ]
    widths = [n_filled(row) for row in (rows[0], above[-1])]
    return len(named) > 1 or any(
        widths[0] != widths[1] or _is_name_like(rows[0][place], above[_captions(above)][place:])
        for place in named
    )


def _is_name_like(cell: str, names: Row) -> bool:
    """Whether a cell may name a column as the first of names does: Berths, where it is Tons."""
    cell, name = cell.strip(), "".join(names[:1]).strip()
    return (
        _NO_VALUE.fullmatch(cell) is None
        and name[:1].isalpha()
        and cell[:1].isalpha()
        and cell[0].isupper() == name[0].isupper()
    )


def is_note(text: str) -> bool:
    """Whether a line below a table is a note: by a mark, "Source: ", or the end of a sentence,
    which is no short name as Jr. or Inc."""
    is_sentence = text.endswith((".", ":")) and not _SHORT_NAME.search(text)
    return _NOTE.match(text) is not None or is_sentence


def notes_below(rows: Sequence[Row]) -> int:
    """Return how many rows at the end of a table are notes: one cell each, below whole rows.

    A sentence below sentences is a record with one cell.
    """
    n_notes = 0
    for row in reversed(rows[-MOST_NOTES:]):
        cells = [cell.strip() for cell in row if cell.strip()]
        if len(cells) != 1 or not is_note(cells[0]):
            break
        n_notes += 1
    whole = rows[: len(rows) - n_notes][-MOST_NOTES:]
    if n_notes and 2 * sum(row[:1] != [] and is_note(row[0].strip()) for row in whole) >= len(
        whole
    ):
        return 0
    has_columns = 2 * sum(n_filled(row) > 1 for row in whole) > len(whole)
    return n_notes if has_columns and whole else 0


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


def markdown_lines(rows: Sequence[Row], n_heads: int) -> Iterator[str]:
    """Yield the lines of a table in Markdown, of whose rows so many name the columns, or none."""
    if n_heads:
        names = joined_names(rows[:n_heads])
        yield _line(names)
        yield _line(["---"] * len(names))
    yield from map(_line, rows[n_heads:])


def _line(cells: Row) -> str:
    return f"| {' | '.join(map(one_line, cells))} |"
