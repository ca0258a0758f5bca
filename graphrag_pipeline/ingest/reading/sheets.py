"""Sheets of a workbook are read as csv files are: a header, then a document for each row.

xlsx is read by openpyxl as a stream. calamine, ten times faster, reserves memory for the square of
a sheet's corners, and a file of 1 kB with two cells far apart ends the whole process.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.archives import bytes_of, open_archive, refuse_doctype
from graphrag_pipeline.ingest.reading.cleaning import clean_text, one_line
from graphrag_pipeline.ingest.reading.extras import require_extra
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    Quarantined,
    ReadDocument,
    ReadingOptions,
    ReadResult,
    Unreadable,
    readable_name,
)
from graphrag_pipeline.ingest.reading.tables import read_csv

_MOST_VISITED = 20_000_000
_MOST_CELLS = 1_000_000  # openpyxl reads about 40,000 a second
_MOST_ROWS = 200_000  # a document of its own each: about 1 kB
_UNPACKED_TO_PACKED = 4
_CAPTION, _MOST_CAPTIONS = "caption", 20


@dataclass(frozen=True)
class Sheet:
    """A sheet: its name, and its rows of cells as text; rows may be of any length."""

    name: str
    rows: list[list[str]]


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
    del parts
    with require_extra("openpyxl", "office", "xlsx"):
        from openpyxl import load_workbook
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        try:
            budget = _Budget(options.max_file_bytes * 4 // 5)
            sheets = [Sheet(sheet.title, list(budget.rows(sheet))) for sheet in book.worksheets]
        finally:
            book.close()
    return read_sheets(path, sheets, options)


class _Budget:
    """Counts the cells of a workbook, empty ones between others too, and their characters."""

    def __init__(self, characters: int) -> None:
        self.visited = self.cells = 0
        self.characters = characters
        self.rows_left = _MOST_ROWS

    def rows(self, sheet: Any) -> Iterator[list[str]]:
        sheet.reset_dimensions()
        for row in sheet.iter_rows(values_only=True):
            self.visited += len(row) + 1
            cells = [_shown(value) for value in row]
            while cells and not cells[-1]:
                cells.pop()
            self.cells += len(cells)
            self.characters -= sum(map(len, cells))
            if self.visited > _MOST_VISITED or self.cells > _MOST_CELLS or self.characters < 0:
                raise Unreadable(
                    f"the sheets have more than {_MOST_CELLS:,} cells, or too much text: "
                    "save them as csv files"
                )
            if cells:
                self.rows_left -= 1
                _require_rows(self.rows_left)
                yield cells


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
    if isinstance(value, date | time):
        return value.isoformat()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def read_sheets(path: Path, sheets: Iterable[Sheet], options: ReadingOptions) -> ReadResult:
    """Read each sheet that has rows as the csv file it would be saved as.

    Keys are those of a csv file; where several sheets have rows, after the sheet's name and "!".
    Lines above the header, in one cell each, are a document of their own, "caption".
    Raises Unreadable if no sheet gives a document.
    """
    filled = [sheet for sheet in sheets if any(any(row) for row in sheet.rows)]
    if not filled:
        raise Unreadable("the workbook holds no cells with text")
    _require_rows(_MOST_ROWS - sum(len(sheet.rows) for sheet in filled))
    documents: list[ReadDocument] = []
    quarantined: list[Quarantined] = []
    for sheet in filled:
        name = one_line(sheet.name).replace("/", " ").strip(".") or "sheet"
        alone = len(filled) == 1
        as_csv = path.with_name(f"{path.stem}{'' if alone else f' {name}'}.csv")
        prefix = "" if alone else f"{name}!"
        table = _read_sheet(as_csv, sheet, options)
        documents += (_prefixed(prefix, document) for document in table.documents)
        quarantined += (
            Quarantined(f"{prefix}{refused.key}".rstrip("!"), refused.reason)
            for refused in table.quarantined
        )
    if not documents and len(quarantined) == 1 and not quarantined[0].key:
        raise Unreadable(quarantined[0].reason)
    return ReadResult(documents, quarantined)


def _read_sheet(path: Path, sheet: Sheet, options: ReadingOptions) -> ReadResult:
    captions, header = _captions(sheet.rows)
    data = _as_csv(sheet.rows[header:])
    sheet.rows.clear()
    try:
        table = read_csv(path, data, replace(options, encoding="utf-8"))
    except Unreadable as error:
        table = ReadResult([], [Quarantined("", str(error))])
    if captions and not any(document.key == _CAPTION for document in table.documents):
        title = readable_name(path)
        caption = ReadDocument(_CAPTION, title, clean_text("\n".join(captions)))
        table = ReadResult([caption, *table.documents], table.quarantined)
    return table


def _captions(rows: list[list[str]]) -> tuple[list[str], int]:
    """Return the lines above a table, each in one cell, and the number of its header's row."""
    filled = [sum(map(bool, row)) for row in rows[:_MOST_CAPTIONS]]
    header = next((n for n, cells in enumerate(filled) if cells > 1), 0)
    return ["".join(row) for row in rows[:header]], header


def _as_csv(rows: list[list[str]]) -> bytes:
    """Return a table as a csv file whose header is as wide as its widest row."""
    written = io.BytesIO()
    text = io.TextIOWrapper(written, "utf-8", "replace", newline="")
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    header = rows[0]
    writer.writerow([*header, *[""] * (max(map(len, rows)) - len(header))])
    writer.writerows(rows[1:])
    text.flush()
    return written.getvalue()


def _prefixed(prefix: str, document: ReadDocument) -> ReadDocument:
    return replace(document, key=f"{prefix}{document.key}") if prefix else document


XLSX = FileFormat(read_xlsx, versions.OFFICE | versions.RECORDS)
