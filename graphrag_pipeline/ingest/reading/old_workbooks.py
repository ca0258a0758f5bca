"""Workbooks of Excel 97 to 2003, or older, and what else is called .xls."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.cell_formats import format_of_code
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.extras import require_extra
from graphrag_pipeline.ingest.reading.html import read_html
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
)
from graphrag_pipeline.ingest.reading.sheets import (
    CellBudget,
    SheetMarks,
    read_sheets,
    read_xlsx,
    sheet_read,
)
from graphrag_pipeline.ingest.reading.tables import read_csv
from graphrag_pipeline.ingest.reading.xml_text import read_xml

_BEFORE_PAGES, _LOOKED_THROUGH = b"\xef\xbb\xbf \r\n\t", 10_000
_LASTS = pattern_of(r"\[(?:h+|m+|s+)]", re.I)
"""What the format of a time has that is no hour of a day: 26:00."""


def read_xls(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a workbook of Excel 97 to 2003, or older, as `read_xlsx` does.

    Web pages and text that are called a workbook, as many programs save tables, are read as such.
    """
    if data.startswith(b"PK"):
        return read_xlsx(path, data, options)
    is_page = data.lstrip(_BEFORE_PAGES)[:1] == b"<"
    if is_page and b":office:spreadsheet" in data[:_LOOKED_THROUGH]:
        return read_xml(path, data, options)
    if is_page:
        return read_html(path, data, options)
    if not is_page and b"\t" in data and data[:1] > b"\t" and b"\0" not in data[:_LOOKED_THROUGH]:
        return read_csv(path.with_suffix(".tsv"), data, options)
    with require_extra("xlrd", "legacy", "xls"):
        import xlrd
        from xlrd.biffh import XLRDError
    try:
        with open(os.devnull, "w") as nowhere:
            book = xlrd.open_workbook(
                file_contents=data, formatting_info=True, ragged_rows=True, logfile=nowhere
            )
    except XLRDError as error:
        raise Unreadable(f"the workbook cannot be read: {one_line(str(error))[:200]}") from None
    budget = CellBudget(options.max_file_bytes * 4 // 5)
    marks = {
        sheet.name: SheetMarks(
            merged=[((a, c), (b - 1, d - 1)) for a, b, c, d in sheet.merged_cells],
            notes={cell: note.text for cell, note in sheet.cell_note_map.items()},
        )
        for sheet in book.sheets()
    }
    sheets = [sheet_read(_OldSheet(book, each), budget, marks) for each in book.sheets()]
    return read_sheets(path, sheets, options)


class _OldSheet:
    """A sheet of xlrd's, with what is asked of one of openpyxl's."""

    def __init__(self, book: Any, sheet: Any) -> None:
        self.title = self._worksheet_path = sheet.name
        self._book, self._sheet = book, sheet

    def reset_dimensions(self) -> None:
        """Do nothing: xlrd knows how many rows there are."""

    def iter_rows(self, *, values_only: bool) -> Iterator[list[object]]:
        """Yield the values of each row."""
        for number in range(self._sheet.nrows):
            yield [self._value(cell) for cell in self._sheet.row(number)]

    def _value(self, cell: Any) -> object:
        from xlrd import XL_CELL_BOOLEAN, XL_CELL_DATE, XL_CELL_ERROR
        from xlrd.biffh import error_text_from_code
        from xlrd.xldate import XLDateError, xldate_as_datetime

        if cell.ctype == XL_CELL_BOOLEAN:
            return bool(cell.value)
        if cell.ctype == XL_CELL_ERROR:
            return error_text_from_code.get(cell.value, "")
        style = self._book.xf_list[cell.xf_index]
        format_ = self._book.format_map.get(style.format_key)
        if cell.ctype == XL_CELL_DATE:
            with suppress(XLDateError, ValueError, OverflowError):
                if format_ and _LASTS.search(format_.format_str):
                    return timedelta(days=cell.value)
                moment = xldate_as_datetime(cell.value, self._book.datemode)
                return moment.time() if cell.value < 1 else moment
        shown = format_of_code(format_.format_str) if format_ else None
        return shown.shown(cell.value) if shown else cell.value


XLS = FileFormat(read_xls, versions.of("XLS", "records"))
