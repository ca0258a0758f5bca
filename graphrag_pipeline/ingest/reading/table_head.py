"""The head of a table: lines above it, and the rows that name its columns, if any does."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from graphrag_pipeline.core.records import field_head
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.cleaning import one_line

LOOKED_AT = 50
"""Rows from the top of a table by which its head is told."""
REPEATED = 200
"""Characters of a cell of several rows that is said in each of these."""
_MOST_CAPTIONS = 20
_MOSTLY = 0.8
_MOST_ROWS = 3
_LEAST_ROWS = 2
_SENTENCE_WORDS = 10
_NUMBER = re.compile(
    r"[-+(]?[$€£¥]?\s?\d[\d.,' \u00a0\u202f]*\s?(?:[%$€£¥]|[A-Z]{3}|[a-zµ]{1,3})?\)?"
    r"|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}"
)
_YEAR = re.compile(r"(1[5-9]|20)\d\d")
_ADDRESS = re.compile(r"[^@\s,;]+@[^@\s,;]+\.[^@\s,;]+|https?://\S+")
_LONGEST_UNIT = 12
_BRACKETED = re.compile(r"\s*(?:\([^()\d]+\)|\[[^][\d]+])\s*")
_NOTE = re.compile(r"[*†‡§¹²³©]|\(?[a-z\d]\)|[^:]{2,20}: ")
_SHORT_NAME = re.compile(r"\b[A-Z]\w{0,3}\.$")
_NO_VALUE = re.compile(
    r"n\W?[ad]\W?|nan|null|nil|none|unknown|missing|tb[acd]|not? .*|closed|empty|pending",
    re.IGNORECASE,
)
MOST_NOTES = 20
_LABEL = re.compile(r"([^\W\d_][^:\n]{1,29}): (?=[^\W\d_])[^\n:;]{2,80}")
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

    A row names columns unless it holds a number where the rows below it hold numbers, too. Years
    name columns of other numbers. A head has several rows where cells of it are merged; where
    nobody knows of merged cells, where several names stand over two columns or more, and the row
    below names these; of three, where the first names what the other two are of. Short words under
    the names of numbers, and nothing under the others, are units: "Length (m)". What names few of
    the columns that most rows fill is no head, but a row of a form.
    """
    n_captions = _captions(rows)
    captions = as_lines(rows[:n_captions])
    below = rows[n_captions:]
    if not below or _is_record(below[0], below[1:]):
        return TableHead(captions, (), n_captions)
    n_rows = _height(below, [(a - n_captions, b - n_captions, c, d) for a, b, c, d in spans])
    names = joined_names(below[:n_rows])
    if _names_few(names, below[n_rows:]):
        return TableHead(captions, (), n_captions)
    if n_rows == 1 and not spans and len(below) > 2 and _are_units(below[0], below[1], below[2:]):
        n_rows, units = 2, [cell.strip() for cell in below[1]]
        names = [
            f"{name} ({unit.strip('()[]')})" if unit.strip("-") else name
            for name, unit in zip(names, units + [""] * len(names), strict=False)
        ]
    return TableHead(captions, names, n_captions + n_rows)


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
    if len(rows) < _MOST_ROWS or sum(map(bool, rows[0])) != 1 or is_number("".join(rows[0])):
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


def _captions(rows: Sequence[Row]) -> int:
    """Return the number of rows of one cell above rows of which most have several.

    Rows of more cells are above a table if they are more than a head has, and the first row that
    is full names columns of numbers.
    """
    filled = [n_filled(row) for row in rows[:LOOKED_AT]]
    while filled and filled[-1] <= 1:  # notes
        filled.pop()
    first = next((number for number, cells in enumerate(filled) if cells > 1), 0)
    full = filled.index(max(filled)) if filled else 0
    if full - first >= _MOST_ROWS and names_numbers(rows[full:]):
        first = full
    several = sum(cells > 1 for cells in filled[first:])
    is_table = first <= _MOST_CAPTIONS and several >= _MOSTLY * len(filled[first:])
    return first if is_table else 0


def _is_record(first: Row, others: Sequence[Row]) -> bool:
    """Whether the first row is a record like the others, and names nothing."""
    columns = _columns([first, *others])
    if any(_ADDRESS.fullmatch(cell) and _are(_ADDRESS.fullmatch, cells) for cell, cells in columns):
        return True
    if not all(map(str.strip, first)):
        return False
    return not names_numbers([first, *others]) and any(
        is_number(cell) and _is_like(cell, cells) for cell, cells in _columns([first, *others])
    )


def names_numbers(rows: Sequence[Row]) -> bool:
    """Whether a cell of the first row that is no number stands over numbers."""
    return any(
        cell and cells and not is_number(cell) and _are_numbers(cells)
        for cell, cells in _columns(rows)
    )


def names_years(rows: Sequence[Row]) -> bool:
    """Whether all cells of the first row but the first are years, over numbers that are none."""
    return (
        len(rows[0]) > 1
        and not is_number(rows[0][0])
        and all(
            is_year(cell) and cells and _are_numbers(cells) and not _is_like(cell, cells)
            for cell, cells in [*_columns(rows)][1:]
        )
    )


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
    """Whether a number stands over numbers, and a year over years."""
    if not cells or _YEAR.fullmatch(number) is None:
        return not cells or _are_numbers(cells)
    return _are(_YEAR.fullmatch, cells)


def is_year(cell: str) -> bool:
    """Whether a cell is a year, which names a column of other numbers."""
    return _YEAR.fullmatch(cell.strip()) is not None


def is_number(cell: str) -> bool:
    """Whether a cell is a number or a date."""
    return _NUMBER.fullmatch(cell.strip()) is not None


def _height(rows: Sequence[Row], spans: Spans) -> int:
    """Return how many rows name the columns."""
    if spans:
        last = 0
        for first_row, last_row, first_column, last_column in sorted(spans):
            if 0 <= first_row <= last:
                is_wide = last_column > first_column
                last = max(last, last_row + is_wide)
        height = min(last + 1, _MOST_ROWS, max(1, len(rows) - 1))
        while height > 1 and _is_below_names(rows, height - 1, spans):
            height -= 1
        return height
    if len(rows) > 2 and is_under_names(rows[0], rows[1], rows[2:]):
        return 2
    return 3 if len(rows) > 3 and _is_above_names(rows[0], rows[1], rows[2], rows[3:]) else 1


def _is_below_names(rows: Sequence[Row], number: int, spans: Spans) -> bool:
    """Whether a row that may name columns is one of numbers with a name, or that of a group."""
    filled = [cell for cell in rows[number] if cell.strip()]
    is_under = any(left == 0 and top < number <= last for top, last, left, _ in spans)
    numbers = [cell for cell in filled if is_number(cell) and not is_year(cell)]
    is_named = rows[number][:1] == filled[:1] and not is_under and not is_number(filled[0])
    return is_named and (len(filled) == 1 or 2 * len(numbers) >= len(filled))


def _is_above_names(first: Row, second: Row, third: Row, others: Sequence[Row]) -> bool:
    """Whether a row has names over two rows of which one is under the other, and of all columns
    that these do not name."""
    if not is_under_names(second, third, others) or any(map(is_number, first)):
        return False
    unnamed = [place for place, cell in enumerate(third) if not cell.strip()]
    begins = next((place for place, cell in enumerate(second) if cell.strip()), 0)
    is_over = begins < len(first) and bool(first[begins].strip())
    is_wide = sum(map(bool, first)) < sum(map(bool, third)) + len(unnamed)
    return is_over and is_wide and all(place < len(first) and first[place] for place in unnamed)


def is_under_names(first: Row, second: Row, others: Sequence[Row]) -> bool:
    """Whether names of the first row stand over several columns each, named by the second."""
    wide = [
        place
        for place in range(1, min(len(first), len(second)))
        if not first[place].strip() and first[place - 1].strip()
    ]
    is_named = all(second[place].strip() and second[place - 1].strip() for place in wide)
    has_numbers = any(is_number(cell) for row in others for cell in row)
    return len(wide) > 1 and is_named and has_numbers and not any(map(is_number, second))


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
