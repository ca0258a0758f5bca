"""Cells of workbooks are said as the sheet shows them."""

import io
from datetime import timedelta
from typing import Any

from openpyxl import load_workbook
from read_files import read, reason
from test_formats import make_xlsx

FORMATS = {
    "#,##0.00 [$EUR]": "450 EUR",
    '_-"£"* #,##0_-;-"£"* #,##0_-': "£450",
    '0.0" kg"': "450 kg",
    "0000": "0450",
    '"INV-"00000': "INV-00450",
    '0.0,"k"': "450",
    "(000) 000": "450",
    "#,##0;[Red](#,##0)": "450",
}


def book_of(*rows: list[Any]) -> Any:
    return load_workbook(io.BytesIO(make_xlsx(S=list(rows))))


def saved(book: Any) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def texts(book: Any) -> list[str]:
    result = read("a.xlsx", saved(book))
    assert result.quarantined == []
    return [document.text for document in result.documents]


def test_numbers_are_said_with_what_their_format_adds() -> None:
    names = [f"c{number}" for number in range(len(FORMATS))]
    book = book_of(["Item", *names], ["Mast", *[450] * len(names)], ["Sail", -450])
    for column, code in enumerate(FORMATS, 2):
        book["S"].cell(2, column).number_format = code
    book["S"]["B3"].number_format = "[$£-809]#,##0"
    book["S"].append(["Oar", timedelta(hours=26, minutes=30)])
    said = "".join(f"\n{n}: {v}" for n, v in zip(names, FORMATS.values(), strict=True))
    assert texts(book) == [f"Item: Mast{said}", "Item: Sail\nc0: -£450", "Item: Oar\nc0: 26:30"]


def test_a_cell_of_several_rows_is_said_in_each() -> None:
    crew = [["Astrid", "Ida", "Captain"], [None, "Per", "Mate"], ["Marlin", "Eva", "Mate"]]
    book = book_of(["Ship", "Name", "Role"], *crew)
    book["S"].merge_cells("A2:A3")
    assert [("Astrid" in text, "Marlin" in text) for text in texts(book)] == [
        (True, False),
        (True, False),
        (False, True),
    ]


def test_cells_said_in_very_many_rows_are_counted() -> None:
    book = book_of(["x", *["y"] * 3_000], *[["x"]] * 3_000)
    book["S"].merge_cells(start_row=1, end_row=3_001, start_column=3_001, end_column=3_001)
    assert "more than 1,000,000 cells" in reason(read("a.xlsx", saved(book)))
