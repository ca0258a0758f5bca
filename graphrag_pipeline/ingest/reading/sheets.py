"""Sheets of a workbook are read as csv files are: a head, then a document for each row.

xlsx is read by openpyxl as a stream. calamine, ten times faster, reserves memory for the square of
a sheet's corners, and a file of 1 kB with two cells far apart ends the whole process.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import unescape

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.archives import bytes_of, open_archive, refuse_doctype
from graphrag_pipeline.ingest.reading.cell_formats import CellFormat, format_of_code
from graphrag_pipeline.ingest.reading.cell_notes import note_line, notes_of
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.extras import require_extra
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    joined,
)
from graphrag_pipeline.ingest.reading.table_head import (
    LOOKED_AT,
    REPEATED,
    Spans,
    begins_table,
)
from graphrag_pipeline.ingest.reading.tables import (
    MOST_GAPS,
    one_below_other,
    read_part,
)
from graphrag_pipeline.ingest.reading.tables_beside import side_by_side

_MOST_VISITED = 20_000_000
_MOST_CELLS = 1_000_000  # openpyxl reads about 40,000 a second
_MOST_ROWS = 200_000  # a document of its own each: about 1 kB
_UNPACKED_TO_PACKED = 4
_SHEETS = "xl/worksheets/"
_MERGED = pattern_of(rb'<mergeCell [^>]*?ref="([A-Z]{1,3}\d{1,7}):([A-Z]{1,3}\d{1,7})"')
_NO_VALUE = pattern_of(
    rb'<c [^>]*?r="([A-Z]{1,3}\d{1,7})"[^>]*><f[^>]*>([^<]*)</f>(?:<v\s*/>|<v></v>)?</c>'
)


@dataclass(frozen=True)
class Sheet:
    """A sheet: its name, and its rows of cells as text; rows may be of any length."""

    name: str
    rows: list[list[str]]
    spans: Spans = ()
    """Its merged cells, by the places of rows among ``rows``."""
    gaps: Sequence[int] = ()
    """Places of rows among ``rows`` that have empty ones above them."""
    notes: Mapping[int, str] = field(default_factory=dict)
    """Comments on cells of rows, by the places of these among ``rows``."""


def read_xlsx(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a workbook: of formulas the value last computed, hidden sheets too.

    Its XML may unpack to four times `max_file_bytes`, as it says each cell in about 40 bytes.
    """
    most = _UNPACKED_TO_PACKED * options.max_file_bytes
    parts = open_archive(data, options, kind="a workbook", suffix=".xlsx", most_unpacked=most)
    for name, xml in parts.items():
        if name.lower().endswith((".xml", ".rels")):
            refuse_doctype(xml[: 1 << 20])
    file = bytes_of(parts)
    marks = {
        name: _marks(xml, notes_of(parts, name))
        for name, xml in parts.items()
        if name.startswith(_SHEETS)
    }
    del parts
    with require_extra("openpyxl", "office", "xlsx"):
        from openpyxl import load_workbook
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        try:
            budget = CellBudget(options.max_file_bytes * 4 // 5)
            formats = _formats(book)
            sheets = [
                sheet_read(_WithFormats(each, formats) if formats else each, budget, marks)
                for each in book.worksheets
            ]
        finally:
            book.close()
    return read_sheets(path, sheets, options)


def _formats(book: Any) -> dict[int, CellFormat]:
    """Return the formats that say more than a number, by the numbers of a workbook's styles."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_MAX_SIZE

    own = dict(enumerate(book._number_formats, BUILTIN_FORMATS_MAX_SIZE))
    codes = {number: format_of_code(code) for number, code in (BUILTIN_FORMATS | own).items()}
    styles = enumerate(book._cell_styles)
    return {n: shown for n, style in styles if (shown := codes.get(style.numFmtId))}


class _WithFormats:
    """A sheet of openpyxl's in which numbers are values as they are shown: "25%"."""

    def __init__(self, sheet: Any, formats: Mapping[int, CellFormat]) -> None:
        self.title, self._worksheet_path = sheet.title, sheet._worksheet_path
        self.reset_dimensions = sheet.reset_dimensions
        self._sheet, self._formats = sheet, formats

    def iter_rows(self, *, values_only: bool) -> Iterator[list[object]]:
        """Yield the values of each row."""
        for row in self._sheet.iter_rows():
            shown = (self._formats.get(getattr(cell, "_style_id", -1)) for cell in row)
            yield [
                each.shown(cell.value) if each else cell.value
                for each, cell in zip(shown, row, strict=True)
            ]


Merged = Sequence[tuple[tuple[int, int], tuple[int, int]]]
"""The first and the last of cells that are one, by rows and columns."""


@dataclass(frozen=True)
class SheetMarks:
    """Marks of a sheet that openpyxl does not give of a stream, by rows and columns."""

    formulas: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """Those without a value."""
    merged: Merged = ()
    notes: Mapping[tuple[int, int], str] = field(default_factory=dict)


def _marks(xml: bytes, notes: Mapping[str, str]) -> SheetMarks:
    formulas = {
        _place(match[1].decode()): f"={unescape(match[2].decode('utf-8', 'replace'))}"
        for match in _NO_VALUE.finditer(xml)
    }
    merged = [
        (_place(match[1].decode()), _place(match[2].decode())) for match in _MERGED.finditer(xml)
    ]
    return SheetMarks(formulas, merged, {_place(cell): note for cell, note in notes.items()})


def sheet_read(sheet: Any, budget: CellBudget, marks: Mapping[str, SheetMarks]) -> Sheet:
    """Read a sheet; of a formula without a value the formula itself."""
    own = marks.get(str(getattr(sheet, "_worksheet_path", "")).lstrip("/"), SheetMarks())
    numbers, rows = [], []
    for number, cells in budget.rows(sheet, own.formulas):
        numbers.append(number)
        rows.append(cells)
    return sheet_of(sheet.title, numbers, rows, own.merged, budget, own.notes)


def sheet_of(
    name: str,
    numbers: Sequence[int],
    rows: list[list[str]],
    merged: Merged,
    budget: CellBudget,
    notes: Mapping[tuple[int, int], str],
) -> Sheet:
    """Return the sheet of rows that have cells, with their numbers in it, from 0."""
    _say_again(rows, numbers, merged, budget)
    gaps = [place for place, (a, b) in enumerate(pairwise(numbers), 1) if b > a + 1]
    places = {number: place for place, number in enumerate(numbers)} if notes else {}
    lines: dict[int, str] = {}
    for (row, column), note in sorted(notes.items()):
        if (place := places.get(row)) is not None:
            line = note_line(rows, place, column, note)
            lines[place] = f"{lines[place]}; {line}" if place in lines else line
    return Sheet(name, rows, list(_spans(merged, numbers[:LOOKED_AT])), gaps, lines)


def _say_again(
    rows: list[list[str]], numbers: Sequence[int], merged: Merged, budget: CellBudget
) -> None:
    """Say what stands in a cell of several rows in each of these that has cells."""
    free: dict[int, int] = {}
    for (first, left), (last, _) in sorted(merged):
        start = bisect_left(numbers, first)
        if last == first or first < free.get(left, 0) or start == len(rows):
            continue
        free[left] = last + 1
        text = rows[start][left] if numbers[start] == first and left < len(rows[start]) else ""
        if 0 < len(text) <= REPEATED:
            for place in range(start + 1, bisect_right(numbers, last)):
                # Rows that are repeated are one list.
                missing = [""] * (left + 1 - len(rows[place]))
                budget.take(len(missing), len(text))
                row = rows[place] = [*rows[place], *missing]
                row[left] = row[left] or text


def _spans(merged: Merged, numbers: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the merged cells among rows of these numbers, by the places of the rows."""
    for (first, left), (last, right) in merged:
        if first in numbers:
            within = [place for place, number in enumerate(numbers) if first <= number <= last]
            yield within[0], within[-1], left, right


def _place(cell: str) -> tuple[int, int]:
    """Return the row and the column of a cell, from 0, by its name: B1 is (0, 1)."""
    letters = cell.rstrip("0123456789")
    column = 0
    for letter in letters:
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(cell[len(letters) :]) - 1, column - 1


class CellBudget:
    """Counts the cells of a workbook, empty ones between others too, and their characters."""

    def __init__(self, characters: int) -> None:
        self.visited = self.cells = 0
        self.characters = characters
        self.rows_left = _MOST_ROWS

    def rows(
        self, sheet: Any, formulas: Mapping[tuple[int, int], str]
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield each row that has cells with its number, from 0."""
        sheet.reset_dimensions()
        with_formulas = {row for row, _ in formulas}
        for number, row in enumerate(sheet.iter_rows(values_only=True)):
            self.visited += len(row) + 1
            cells = [_shown(value) for value in row]
            if number in with_formulas:
                cells = [c or formulas.get((number, place), "") for place, c in enumerate(cells)]
            while cells and not cells[-1].strip():
                cells.pop()
            self.take(len(cells), sum(map(len, cells)))
            if cells:
                self.rows_left -= 1
                _require_rows(self.rows_left)
                yield number, cells

    def take(self, cells: int, characters: int) -> None:
        """Count cells and their characters; raises Unreadable where they are too many."""
        self.cells += cells
        self.characters -= characters
        if self.visited > _MOST_VISITED or self.cells > _MOST_CELLS or self.characters < 0:
            raise Unreadable(
                f"the sheets have more than {_MOST_CELLS:,} cells, or too much text: "
                "save them as csv files"
            )


def _require_rows(left: int) -> None:
    if left < 0:
        raise Unreadable(f"the workbook has more than {_MOST_ROWS:,} rows: save it as csv files")


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return (value.date() if value.time() == time() else value).isoformat()
    if isinstance(value, time):
        return value.isoformat("auto" if value.second or value.microsecond else "minutes")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration(value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _duration(value: timedelta) -> str:
    """Return a time as workbooks show it: 26:00, 0:00:30."""
    minutes, seconds = divmod(abs(round(value.total_seconds())), 60)
    end = f":{seconds:02}" if seconds else ""
    return f"{'-' if value < timedelta() else ''}{minutes // 60}:{minutes % 60:02}{end}"


def read_sheets(path: Path, sheets: Iterable[Sheet], options: ReadingOptions) -> ReadResult:
    """Read each sheet that has rows as the csv file it would be saved as.

    Keys are those of a csv file; where several sheets have rows, after the sheet's name and "!".
    Lines above the header and notes below the rows, in one cell each, are a document of their
    own, "caption". Raises Unreadable if no sheet gives a document.
    """
    filled = [sheet for sheet in sheets if any(any(row) for row in sheet.rows)]
    if not filled:
        raise Unreadable("the workbook holds no cells with text")
    _require_rows(_MOST_ROWS - sum(len(sheet.rows) for sheet in filled))
    tables: list[ReadResult] = []
    for sheet in filled:
        name = one_line(sheet.name).replace("/", " ").strip(".") or "sheet"
        alone = len(filled) == 1
        as_csv = path.with_name(f"{path.stem}{'' if alone else f' {name}'}.csv")
        table = _read_sheet(as_csv, sheet, options)
        tables.append(table if alone else table.under(f"{name}!"))
    read = joined(tables)
    if not read.documents and len(read.quarantined) == 1 and not read.quarantined[0].key:
        raise Unreadable(read.quarantined[0].reason)
    return read


def _read_sheet(path: Path, sheet: Sheet, options: ReadingOptions) -> ReadResult:
    rows, starts = sheet.rows, [0]
    for gap in sheet.gaps[:MOST_GAPS]:
        above = rows[starts[-1] : min(gap, starts[-1] + LOOKED_AT)]
        if begins_table(above, rows[gap : gap + LOOKED_AT]):
            starts.append(gap)
    # Merged cells are told by their places in the sheet: those of the first table are as they are.
    tables = [
        read_part(path, part, spans, options, _beside(sheet.notes, start, end))
        for start, end in pairwise([*starts, len(rows)])
        for part, spans in side_by_side(rows[start:end], () if start else sheet.spans)
    ]
    sheet.rows.clear()
    return one_below_other(tables)


def _beside(notes: Mapping[int, str], start: int, end: int) -> dict[int, str]:
    return {place - start: note for place, note in notes.items() if start <= place < end}


XLSX = FileFormat(read_xlsx, versions.of("office", "records"))
