"""Sheets, slides, invoices and lists of terms as offices have them: what they say is told right."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from asked_files import index_asked
from openpyxl import load_workbook
from read_files import only, read
from test_formats import make_odp, make_ods, make_odt, make_slide, make_xlsx
from test_reading import make_docx, paragraph

from benchmarks.answers import passages_of
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.ingest.reading.tables_beside import side_by_side
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence.asked_fields import says_asked_field
from graphrag_pipeline.query.question import AnalysedQuestion

INVOICE = """\
NORDWIND MARINE AS
INVOICE No 2025-0417

Item                          Qty     Unit price       Amount
-------------------------------------------------------------
Mooring rope 24 mm              4         310.00     1,240.00
Fender, cylindrical            12          85.50     1,026.00
-------------------------------------------------------------
                                Subtotal             2,266.00
                                VAT 25 %               566.50
                                                   ----------
                                TOTAL EUR            2,832.50
                                                   ==========
Amount paid                                          1,000.00
Balance due                                          1,832.50
"""
TERMS = """<h1>Harbour</h1><p>Words of the harbour.</p><dl>
<dt>Bollard</dt><dd>A short post on a quay.</dd>
<dt>Fender</dt><dt>Bumper</dt><dd>What keeps a ship off the quay.</dd>
<dt>Draught:</dt><dd>How deep a ship lies.</dd><dd>In Eidvik at most 7.4 m</dd><dd>since 2020.</dd>
<dt>Warp</dt><dd><p>To move a ship by ropes.</p><p>Done in calm weather.</p></dd></dl>
<dl><div><dt>Phone</dt><dd>+47 555 01 99</dd></div>
<div><dt>Harbour master</dt><dd>Ole Brekke</dd></div></dl>"""
BESIDE = "Boat,Tons,,Harbour,Berths\nPetrel,88,,Kelm,12\nMarlin,120,,Eidvik,40\n"
VOTES = "State,Voted Yes no.,Voted Yes %,Pupils\nAlba,2374,57.8,91%\nBern,2145,64.9,88%\n"


def texts(name: str, content: str | bytes) -> dict[str, str]:
    return {document.key: document.text for document in read(name, content).documents}


def merged(rows: list[list[object]], *cells: str) -> bytes:
    """Return a workbook of one sheet in which some cells are merged."""
    book = load_workbook(io.BytesIO(make_xlsx(S=rows)))
    for span in cells:
        book["S"].merge_cells(span)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    files = {"invoice.txt": INVOICE, "terms.html": TERMS, "ports.csv": BESIDE, "votes.csv": VOTES}
    yield from index_asked(files, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How much is the VAT?", "Invoice — VAT 25 %: 566.50"),
        ("What is the subtotal?", "Invoice — Subtotal: 2,266.00"),
        ("What is the balance due?", "Invoice — Balance due: 1,832.50"),
        (
            "What is the unit price of the mooring rope?",
            "Invoice — Item: Mooring rope 24 mm; Qty: 4; Unit price: 310.00; Amount: 1,240.00",
        ),
        ("What is the phone number?", "Harbour — Phone: +47 555 01 99"),
        ("Who is the harbour master?", "Harbour — Harbour master: Ole Brekke"),
        ("How many berths has Eidvik?", "Eidvik — Berths: 40"),
        ("How many tons has the Petrel?", "Petrel — Tons: 88"),
        ("How many voted Yes in Bern?", "Bern — Voted Yes no.: 2145"),
        ("What percentage voted Yes in Alba?", "Alba — Voted Yes %: 57.8"),
        ("How many % voted Yes in Alba?", "Alba — Voted Yes %: 57.8"),
    ],
)
def test_what_is_asked_of_papers_is_told_first(
    asked: QueryEngine, question: str, told: str
) -> None:
    assert passages_of(asked.answer(question).text)[0] == told


@pytest.mark.parametrize(
    ("line", "gain"),
    [
        ("Enrolled: 10", 1),
        ("Enrolled: 10 Points: 4 Passed: 30%", 1),
        ("Enrolled: 30%", -1),
        ("Enrolled %: 30", -1),
    ],
)
def test_how_many_is_no_share(line: str, gain: int) -> None:
    question = AnalysedQuestion.of("How many are enrolled in Algebra?")
    assert says_asked_field(question, "Algebra", line, line, frozenset()) == gain


def test_the_total_of_an_invoice_is_told(asked: QueryEngine) -> None:
    told = passages_of(asked.answer("What is the total of invoice 2025-0417?").text)
    assert "Invoice — TOTAL: EUR 2,832.50" in told


def test_amounts_at_the_ends_of_lines_are_fields_and_rows_of_columns_stay() -> None:
    dotted = "Net .............. 432,80 EUR\n19 % MwSt. .......  82,23 EUR\nTea    2.80\n"
    assert only(read("a.txt", dotted)).text.split("\n") == [
        "Net: 432,80 EUR",
        "19 % MwSt: 82,23 EUR",
        "Tea: 2.80",
    ]
    columns = "Fees       1,200.00     1,340.50\nLoans                     500.00\n"
    assert only(read("a.txt", columns)).text == columns.strip()
    assert only(read("a.txt", f"{columns}Total      500.00\n")).text.endswith("\nTotal: 500.00")
    for line in ("Chapter two ........ 12", "See the list of prices on page 12.50"):
        assert only(read("a.txt", line)).text == line


def test_under_a_rule_of_one_piece_rows_keep_to_the_names_above_it() -> None:
    rows = "Boat      Tons   Port\n---------------------\nSkua        60   Kelm\n"
    table = "| Boat | Tons | Port |\n|---|---|---|\n| Skua | 60 | Kelm |"
    assert only(read("a.txt", rows)).text == table
    # What stands under two names, or lacks a cell, is no row of the table.
    wide = "Marlin of Eidvik    120   Kelm"
    assert only(read("a.txt", rows + wide)).text == f"{table}\n\n{wide}"
    assert (
        "|" not in only(read("a.txt", f"A title of its own\n{'-' * 18}\nOne   two   three\n")).text
    )


def test_a_definition_of_one_line_stands_in_the_line_of_its_terms() -> None:
    lines = [line for line in only(read("a.html", TERMS)).text.split("\n") if line]
    assert lines[2:] == [
        "Bollard: A short post on a quay.",
        "Fender, Bumper: What keeps a ship off the quay.",
        "Draught: How deep a ship lies. In Eidvik at most 7.4 m; since 2020.",
        *("Warp", "To move a ship by ropes.", "Done in calm weather."),
        *("Phone: +47 555 01 99", "Harbour master: Ole Brekke"),
    ]


def test_slides_are_pages(tmp_path: Path) -> None:
    slides = [
        make_slide("Plan", "Quay 4 is rebuilt by Holm Freight."),
        make_slide("", ""),
        make_slide("Fees", "The mooring fee is 120 NOK a night."),
    ]
    said = "<office:annotation><text:p>Who pays?</text:p></office:annotation></draw:page>"
    commented = slides[0].replace("</draw:page>", said)
    document = only(read("a.odp", make_odp(commented, *slides[1:])))
    begins = [document.text[start:].partition("\n")[0] for start in document.page_starts]
    assert begins == ["Plan", "Fees", "Fees"]
    assert 0 < document.text.index("Who pays?") < document.page_starts[1]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.odp").write_bytes(make_odp(*slides))
    settings = Settings(home=str(tmp_path / "home"))
    Index(settings).update(tmp_path / "in")
    with QueryEngine(tmp_path / "home", settings=settings) as engine:
        assert engine.answer("What is the mooring fee?").citations[0].page == 3
        assert engine.answer("Who rebuilds Quay 4?").citations[0].page == 1


def test_slides_of_powerpoint_are_pages_and_their_tables_have_heads() -> None:
    from pptx import Presentation

    show = Presentation()
    for title in ("Plan", "Staff"):
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = title
    table = slide.shapes.add_table(2, 3, 0, 0, 9, 9).table
    for row, cells in enumerate((["Role", "2025", "2026"], ["Pilots", "6", "8"])):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    file = io.BytesIO()
    show.save(file)
    document = only(read("a.pptx", file.getvalue()))
    rows = ["| Role | 2025 | 2026 |", "| --- | --- | --- |", "| Pilots | 6 | 8 |"]
    assert document.text.split("\n\n") == ["Plan", "Staff", "\n".join(rows)]
    assert document.page_starts == (0, 6)


def test_years_over_numbers_are_the_head_of_a_table_of_a_page() -> None:
    def text(*rows: str) -> str:
        cells = "".join(f"<tr><td>{row.replace(' ', '<td>')}" for row in rows)
        return only(read("a.html", f"<body><table>{cells}</table></body>")).text

    assert "---" in text("Role 2025 2026", "Pilots 6 8", "Divers 2 3")
    assert "---" not in text("Built 2019 2020", "Sold 2021 2022", "Lost 2023 2024")
    assert "---" not in text("Pilots 2019 8", "Divers 2 3", "Cooks 5 7")


def test_a_text_of_libreoffice_has_no_pages() -> None:
    assert only(read("a.odt", make_odt("<text:p>One</text:p>"))).page_starts == ()


def test_tables_beside_each_other_with_names_and_numbers_of_their_own_are_several() -> None:
    apart = {
        "row-1": "Boat: Petrel\nTons: 88",
        "row-2": "Boat: Marlin\nTons: 120",
        "table-2!row-1": "Harbour: Kelm\nBerths: 12",
        "table-2!row-2": "Harbour: Eidvik\nBerths: 40",
    }
    assert texts("a.csv", BESIDE) == apart
    quoted = BESIDE.replace("Kelm", '"Kelm"')
    assert texts("a.csv", f"Of 2024\n\n{quoted}") == {"caption": "Of 2024", **apart}
    assert texts("a.xlsx", make_xlsx(S=[r.split(",") for r in BESIDE.split()])) == apart
    for one in (
        BESIDE.replace("Marlin", "Petrel"),  # returns: not what rows are called by
        BESIDE.replace("12\n", "a\n").replace("40\n", "b\n"),  # no numbers
        BESIDE.replace("Eidvik", "2"),  # a number is no name
        BESIDE.replace("12\n", "\n").replace("40\n", "\n"),  # rows of one cell
    ):
        row = texts("a.csv", one)["row-1"].split("\n")
        assert {"Boat: Petrel", "Harbour: Kelm"} < set(row)


def test_merged_cells_go_with_the_table_that_they_lie_in() -> None:
    rows = [row.split(",") for row in BESIDE.split()]
    spans = [(0, 0, 0, 1), (1, 2, 3, 4), (0, 0, 1, 3), (2, 2, 0, 2)]
    assert [own for _, own in side_by_side(rows, spans)] == [[(0, 0, 0, 1)], [(1, 2, 0, 1)]]


def test_numbers_beside_an_empty_column_are_of_the_rows_that_have_names() -> None:
    rows = [
        ["State", "Yes", "No", "", "Yes", "All"],
        ["Alba", 1, 2, "", 3, 6],
        ["Bern", 4, 5, "", 7, 8],
    ]
    told = texts("a.xlsx", make_xlsx(S=[*rows, ["", "", "", "", 9, 9]]))
    assert told["row-1"] == "State: Alba\nYes: 1\nNo: 2\nYes~2: 3\nAll: 6"


def test_rows_of_numbers_and_names_of_groups_are_no_head_though_cells_are_merged() -> None:
    rows = [
        ["", "Yes", "", "No", ""],
        ["All of them", "", "", "", ""],
        ["All of them", "96%", "", "51%", ""],
        ["By town", "", "", "", ""],
        ["Alba", "90%", "", "33%", ""],
    ]
    spans = ("B1:C1", "D1:E1", "A2:E2", "B3:C3", "D3:E3", "A4:E4")
    told = texts("a.xlsx", merged(rows, *spans))
    assert told["row-2"] == "column-1: All of them\nYes: 96%\nNo: 51%"
    assert told["row-4"] == "column-1: Alba\nYes: 90%\nNo: 33%"


def test_a_sheet_of_sentences_is_a_text() -> None:
    first = "The data are those of the survey of 2014, with the answers of all."
    lines = [[first], ["It was made in May."], ["S - Data are suppressed."]]
    assert texts("a.xlsx", make_xlsx(S=lines))["caption"] == "\n".join(line for (line,) in lines)
    contents = [
        ["Bureau"],
        ["", "Contents"],
        ["", "Tables"],
        *[["", f"Table {n}"] for n in range(4)],
    ]
    told = texts("a.xlsx", make_xlsx(S=[*contents, ["", "Table 4", "Response by state"]]))
    assert told["caption"].split("\n")[-1] == "Table 4 Response by state"
    assert texts("a.xlsx", make_xlsx(S=[["Ship"], ["Ada"], ["Bo"]]))["row-1"] == "Ship: Ada"
    half = [["Ship", "Note"], ["Ada"], ["Bo"], ["Cy"], ["Di"], ["Ed"]]
    assert texts("a.xlsx", make_xlsx(S=half))["row-1"] == "Ship: Ada"


def test_what_names_few_of_the_columns_of_a_form_is_no_head() -> None:
    rows = [
        ["", "", "", "SWITCHBOARD", "", "MODEL-000"],
        *[["1.1", "", "Voltage", "kV", ":", "130"], ["1.2", "", "Phases", "", ":", "3"]],
    ]
    told = texts("a.xlsx", make_xlsx(S=rows))
    assert "column-6: 130" in told["row-2"].split("\n")
    assert not any("MODEL-000: " in text or "SWITCHBOARD: " in text for text in told.values())


def test_many_notes_below_a_small_table_leave_it_its_head() -> None:
    rows = [["Survey of 2017"], ["State", "Yes"], ["Alba", 12], ["Bern", 14]]
    notes = [["(a) Includes blank responses"], ["(b) With Norfolk"], ["© Bureau 2017"]]
    told = texts("a.xlsx", make_xlsx(S=[*rows, *notes]))
    assert told["row-1"] == "State: Alba\nYes: 12"
    assert told["caption"].split("\n") == [row[0] for row in (rows[0], *notes)]


def test_empty_cells_to_the_end_of_each_row_fill_no_sheet() -> None:
    def row(*cells: str, empty: int) -> str:
        filled = [f"<table:table-cell><text:p>{c}</text:p></table:table-cell>" for c in cells]
        gap = f'<table:table-cell table:number-columns-repeated="{empty}"/>'
        filled[-1:-1] = [gap] * bool(empty)
        return f"<table:table-row>{''.join(filled)}</table:table-row>"

    names = [f"B{number}" for number in range(100)]
    rows = [row("Boat", "Port", "", empty=16_000), *(row(n, "x", "", empty=16_000) for n in names)]
    told = texts("a.ods", make_ods("".join(rows)))
    assert (len(told), told["B7"]) == (100, "Boat: B7\nPort: x")
    apart = row("Boat", "Port", empty=0) + row("Ada", "x", "y", empty=3)
    assert texts("a.ods", make_ods(apart))["row-1"] == "Boat: Ada\nPort: x\ncolumn-6: y"


def test_terms_within_a_definition_are_no_terms_of_it() -> None:
    page = """<body><p>Of ports.</p><dl><dt>Berth</dt><dd><dl>
        <dt>Inner</dt><dd>For small boats.</dd><dt>Outer</dt><dd>For ships.</dd>
        </dl></dd><dd>Both are let.</dd></dl>"""
    lines = [line for line in only(read("a.html", page)).text.split("\n") if line]
    assert lines[1:] == ["Berth", "Inner: For small boats.", "Outer: For ships.", "Both are let."]


def test_boxes_of_word_are_ticked_or_not() -> None:
    def box(checked: int, text: str) -> str:
        name = "http://schemas.microsoft.com/office/word/2010/wordml"
        state = (
            f'<w14:checkbox xmlns:w14="{name}"><w14:checked w14:val="{checked}"/></w14:checkbox>'
        )
        sign = "<w:sdtContent><w:r><w:t>☐</w:t></w:r></w:sdtContent>"
        run = f"<w:r><w:t>{text}</w:t></w:r>"
        return f"<w:p><w:sdt><w:sdtPr>{state}</w:sdtPr>{sign}</w:sdt>{run}</w:p>"

    document = only(read("a.docx", make_docx(box(1, "Tea") + box(0, "Milk"))))
    assert document.text == "☒ Tea\n\n☐ Milk"


def test_a_table_within_a_cell_of_word_stays_in_that_cell() -> None:
    def cells(*texts: str) -> str:
        paragraphs = (t if "<" in t else paragraph(t) for t in texts)
        return f"<w:tr>{''.join(f'<w:tc>{each}</w:tc>' for each in paragraphs)}</w:tr>"

    inner = f"<w:tbl>{cells('Low', '7')}{cells('High', '9')}</w:tbl>{paragraph('')}"
    table = f"<w:tbl>{cells('Quay', 'Water', 'Fee')}{cells('Four', inner, '120')}</w:tbl>"
    last = only(read("a.docx", make_docx(table))).text.split("\n")[-1]
    assert last == "| Four | Low 7 High 9 | 120 |"


def test_names_below_a_wide_cell_of_a_slide_name_columns() -> None:
    from pptx import Presentation

    show = Presentation()
    frame = show.slides.add_slide(show.slide_layouts[6]).shapes.add_table(3, 3, 0, 0, 9, 9)
    rows = (["Port", "Boats", ""], ["Name", "Own", "Let"], ["Kelm", "7", "9"])
    for row, cells in enumerate(rows):
        for column, text in enumerate(cells):
            frame.table.cell(row, column).text = text
    frame.table.cell(0, 1).merge(frame.table.cell(0, 2))
    file = io.BytesIO()
    show.save(file)
    head, _, last = only(read("a.pptx", file.getvalue())).text.split("\n")
    assert (head, last) == ("| Port Name | Boats Own | Boats Let |", "| Kelm | 7 | 9 |")
