"""Workbooks of Excel 2003 as XML, which many programs still export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, time

from graphrag_pipeline.ingest.reading.cell_formats import CellFormat, format_of_code
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.model import ReadingOptions
from graphrag_pipeline.ingest.reading.sheets import CellBudget, Sheet, sheet_of
from graphrag_pipeline.ingest.reading.xml_tree import XmlElement, elements_of, text_of

_MOST_ROWS, _MOST_COLUMNS = 1 << 20, 1 << 14
_CODES = {"Percent": "0%", "Euro Currency": "[$€]0.00"}
"""Formats by the names that Excel gives them, as it writes the others."""


def is_workbook(root: XmlElement) -> bool:
    """Whether XML is a workbook."""
    sheets = [each for each in elements_of(root) if each.name == "Worksheet"]
    return root.name == "Workbook" and bool(sheets)


def sheets_of(root: XmlElement, options: ReadingOptions) -> list[Sheet]:
    """Return the sheets of a workbook, as those of an xlsx file."""
    budget = CellBudget(options.max_file_bytes * 4 // 5)
    formats = dict(_formats(root))
    named = [each for each in elements_of(root) if each.name == "Worksheet"]
    return [_sheet(each, formats, budget) for each in named]


def _formats(root: XmlElement) -> Iterator[tuple[str, CellFormat]]:
    styles = [e for each in elements_of(root) if each.name == "Styles" for e in elements_of(each)]
    for style in styles:
        for each in elements_of(style):
            code = _of(each, "Format")
            shown = format_of_code(_CODES.get(code, code)) if each.name == "NumberFormat" else None
            if shown:
                yield _of(style, "ID"), shown


def _sheet(sheet: XmlElement, formats: Mapping[str, CellFormat], budget: CellBudget) -> Sheet:
    numbers: list[int] = []
    rows: list[list[str]] = []
    merged: list[tuple[tuple[int, int], tuple[int, int]]] = []
    notes: dict[tuple[int, int], str] = {}
    table = next((each for each in elements_of(sheet) if each.name == "Table"), XmlElement(""))
    number = -1
    for row in elements_of(table):
        if row.name != "Row":
            continue
        number = _count(row, "Index", number + 2, _MOST_ROWS) - 1
        cells: list[str] = []
        for cell in elements_of(row):
            place = _count(cell, "Index", len(cells) + 1, _MOST_COLUMNS) - 1
            wide = _count(cell, "MergeAcross", 0, _MOST_COLUMNS)
            high = _count(cell, "MergeDown", 0, _MOST_ROWS)
            said = _said(cell, formats.get(_of(cell, "StyleID") or _of(row, "StyleID")))
            new = [*[""] * (place - len(cells)), said, *[""] * wide]
            budget.take(len(new), len(said))
            cells.extend(new)
            if wide or high:
                merged.append(((number, place), (number + high, place + wide)))
            if note := next((each for each in elements_of(cell) if each.name == "Comment"), None):
                notes[number, place] = text_of(note)
        if any(cells):
            numbers.append(number)
            rows.append(cells)
    return sheet_of(_of(sheet, "Name"), numbers, rows, merged, budget, notes)


def _said(cell: XmlElement, shown: CellFormat | None) -> str:
    data = next((each for each in elements_of(cell) if each.name == "Data"), XmlElement(""))
    kind, text = _of(data, "Type"), text_of(data).strip()
    if kind == "DateTime":
        moment = datetime.fromisoformat(text)
        return (moment.date() if moment.time() == time() else moment).isoformat()
    if kind == "Boolean":
        return "true" if text == "1" else "false"
    return str(shown.shown(float(text))) if shown and kind == "Number" else text


def _of(element: XmlElement, name: str) -> str:
    """Return an attribute, whatever its prefix."""
    own = (v for key, v in element.attributes.items() if key.rpartition(":")[2] == name)
    return one_line(next(own, ""))


def _count(element: XmlElement, name: str, usual: int, most: int) -> int:
    written = _of(element, name)
    return min(int(written), most) if written.isdecimal() and len(written) < 9 else usual
