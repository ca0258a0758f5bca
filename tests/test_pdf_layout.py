"""PDF as it looks: columns, running heads, page numbers, headings, tables, scanned pages."""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PIL import Image
from pypdfium2 import PdfDocument
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from benchmarks.answers import passages_of
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.ingest.reading import ReadingOptions, ReadResult, read_file
from graphrag_pipeline.ingest.reading.blocks import clean_places
from graphrag_pipeline.ingest.reading.cleaning import clean_text
from graphrag_pipeline.ingest.reading.model import ReadDocument
from graphrag_pipeline.ingest.reading.pdf_lines import read_pieces
from graphrag_pipeline.ingest.reading.pdf_rules import rules_of
from graphrag_pipeline.ingest.reading.pdf_text import rows_of, write_text
from graphrag_pipeline.query import QueryEngine

TOP, LEFT, LEADING = 760, 72, 14
LEFT_COLUMN = [f"The harbour of Tarn has {n} old piers of stone" for n in range(8)]
RIGHT_COLUMN = [f"A lighthouse keeper saw {n} ships in the fog" for n in range(8)]


def pdf(*pages: Callable[[Canvas], object], title: str = "") -> bytes:
    """Return a PDF of pages, each drawn by a function."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.setTitle(title)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def write(
    canvas: Canvas, lines: Sequence[str], *, x: float = LEFT, y: float = TOP, size=10
) -> None:
    canvas.setFont("Times-Roman", size)
    for number, line in enumerate(lines):
        canvas.drawString(x, y - number * LEADING, line)


def read(data: bytes, name: str = "the_plan.pdf", **options: object) -> ReadResult:
    return read_file(Path(name), ReadingOptions(**options), data=data)  # type: ignore[arg-type]


def only(data: bytes, name: str = "the_plan.pdf") -> ReadDocument:
    (document,) = read(data, name).documents
    return document


def kinds(document: ReadDocument) -> list[tuple[str, str]]:
    return [(block.kind, document.text[block.start : block.end]) for block in document.blocks]


def test_columns_drawn_line_by_line_are_read_one_after_the_other() -> None:
    def draw(canvas: Canvas) -> None:
        write(
            canvas, ["On the piers of Tarn, and who saw them from the lighthouse in the fog"], y=790
        )
        for number, (left, right) in enumerate(zip(LEFT_COLUMN, RIGHT_COLUMN, strict=True)):
            write(canvas, [left], y=TOP - LEADING * number)
            write(canvas, [right], x=310, y=TOP - LEADING * number)
        write(
            canvas, ["Below both of them stands a caption that is as wide as the whole page"], y=600
        )

    text = only(pdf(draw)).text
    places = [text.index(line) for line in ("On the piers", *LEFT_COLUMN, *RIGHT_COLUMN, "Below")]
    assert places == sorted(places)


def test_the_cells_of_a_table_stay_in_their_rows_and_are_marked() -> None:
    rows = [("Marigold", "1923", f"{n} tons", "Bergen") for n in range(12)]

    def draw(canvas: Canvas) -> None:
        for number, row in enumerate(rows):
            for x, cell in zip((72, 180, 300, 420), row, strict=True):
                write(canvas, [cell], x=x, y=TOP - LEADING * number)

    document = only(pdf(draw))
    assert document.text.split("\n") == [f"| {' | '.join(row)} |" for row in rows]
    assert [kind for kind, _ in kinds(document)] == ["table"]


def body(page: int) -> list[str]:
    return [f"On day {page} of the voyage the crew of the Halcyon rested at anchor.", "It rained."]


@pytest.mark.parametrize("n_pages", [3, 6])
def test_running_heads_and_page_numbers_are_left_out_and_nothing_else(n_pages: int) -> None:
    def page(number: int) -> Callable[[Canvas], None]:
        def draw(canvas: Canvas) -> None:
            write(canvas, ["The voyage of the Halcyon"], y=810)
            write(canvas, [f"Chapter {number // 3}: at sea"], y=790, x=300)
            write(canvas, [*body(number), f"Alice slept {number} hours."])
            write(canvas, [f"{number + 4} | Tarn Press"], y=40)

        return draw

    text = only(pdf(*map(page, range(n_pages)))).text
    assert "The voyage of the Halcyon" not in text
    assert "Tarn Press" not in text
    said = [line for n in range(n_pages) for line in (body(n)[0], f"Alice slept {n} hours.")]
    assert [text.count(line) for line in said] == [1] * (2 * n_pages)


def test_a_head_whose_chapter_changes_goes_with_its_page_number() -> None:
    def page(number: int) -> Callable[[Canvas], None]:
        def draw(canvas: Canvas) -> None:
            write(canvas, [f"{'ABCDE'[number]} is a chapter of its own   {number + 9}"], y=810)
            write(canvas, body(number))

        return draw

    assert "chapter" not in only(pdf(*map(page, range(5)))).text


def test_notes_at_the_foot_of_pages_stay_though_their_numbers_are_near_those_of_pages() -> None:
    notes = {0: 1, 1: 3, 2: 4, 3: 7, 4: 8, 5: 8}

    def page(number: int) -> Callable[[Canvas], None]:
        def draw(canvas: Canvas) -> None:
            write(canvas, body(number))
            write(canvas, [f"{notes[number]} Captain {'ABCDEF'[number]} disagreed."], y=80)
            write(canvas, [str(number + 1)], y=40)

        return draw

    text = only(pdf(*map(page, range(6)))).text
    assert [text.count(f"Captain {letter} disagreed.") for letter in "ABCDEF"] == [1] * 6
    assert "\n6" not in text


def test_what_stands_on_two_pages_stays_but_for_their_numbers() -> None:
    def page(number: int) -> Callable[[Canvas], None]:
        def draw(canvas: Canvas) -> None:
            write(canvas, ["Tarn Harbour Board"], y=810)
            write(canvas, [f"The year {1950 + number} was dry.", *body(number)])
            write(canvas, [f"Page {number + 1} of 2"], y=40)

        return draw

    text = only(pdf(page(0), page(1))).text
    assert text.count("Tarn Harbour Board") == 2
    assert text.count("was dry") == 2
    assert "of 2" not in text


def test_the_same_line_on_all_pages_is_kept_where_there_is_no_other() -> None:
    def draw(canvas: Canvas) -> None:
        write(canvas, ["Alice Smith met Bob Jones."])

    assert only(pdf(draw, draw, draw)).text.count("Alice Smith") == 3


def test_a_sentence_goes_on_over_the_end_of_a_page_and_a_broken_word_too() -> None:
    first = [
        "The committee met again to discuss the agree-",
        "ment on the well-being of all inter-",
    ]
    second = ["national crews, and their well-", "being too."]
    pages = [lambda canvas: write(canvas, first), lambda canvas: write(canvas, second)]
    assert only(pdf(*pages)).text == (
        "The committee met again to discuss the agreement on the well-being of all international "
        "crews, and their well-being too."
    )


def test_it_is_known_where_each_page_begins_within_a_sentence_and_after_an_empty_page() -> None:
    begun = "The survey of the harbour was ended by a commit-"
    first, second = [["Chapter one.", begun], ["tee of the town in May.", "Its report is lost."]]
    drawn = [first, second, [], [], ["An end."]]
    document = only(pdf(*(lambda c, lines=lines: write(c, lines) for lines in drawn), lambda c: c))
    text, starts = document.text, document.page_starts
    pages = [text[a:b] for a, b in itertools.pairwise((*starts, len(text)))]
    assert pages[0].endswith("ended by a commit")
    assert pages[1].startswith("tee of the town")
    assert (pages[2], pages[3], pages[4], pages[5]) == ("", "", "An end.", "")


@pytest.mark.parametrize(
    "text", ["one\r\ntwo\r\nthree", "  one\u200b two\x00 three  ", "one two three"]
)
def test_places_stand_before_the_same_words_when_a_text_is_cleaned(text: str) -> None:
    words = ["one", "two", "three"]
    cleaned = clean_text(text)
    assert clean_places(text, [text.index(word) for word in words]) == tuple(
        cleaned.index(word) for word in words
    )
    assert clean_places(text, [0, len(text)]) == (0, len(cleaned))


def test_larger_lines_are_headings_and_lists_are_lists() -> None:
    def draw(canvas: Canvas) -> None:
        write(canvas, ["A plan for the", "harbour of Tarn"], size=18, y=800)
        write(canvas, ["The old piers were built of stone from Corrie Quarry and stay."], y=740)
        write(canvas, ["Who is to pay"], size=13, y=700)
        write(canvas, ["- the Tarn Harbour Board", "- the union"], y=680)

    document = only(pdf(draw, title="Microsoft Word - plan_v3.docx"))
    assert kinds(document) == [
        ("heading", "A plan for the harbour of Tarn"),
        ("heading", "Who is to pay"),
        ("list", "- the Tarn Harbour Board\n- the union"),
    ]
    assert document.title == "A plan for the harbour of Tarn"


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("The plan of 1923", "The plan of 1923"),
        ("untitled", "The plan"),
        ("Document1", "The plan"),
        ("the_plan", "The plan"),
        ("(anonymous)", "The plan"),
    ],
)
def test_a_placeholder_is_no_title(given: str, title: str) -> None:
    assert only(pdf(lambda canvas: write(canvas, body(1)), title=given)).title == title


def scanned(canvas: Canvas) -> None:
    canvas.drawInlineImage(Image.new("L", (40, 40), 200), 100, 400, 300, 300)


def empty(canvas: Canvas) -> None:
    """Draw nothing."""


def page_of_text(canvas: Canvas) -> None:
    write(canvas, body(1))


@pytest.mark.parametrize(
    ("pages", "named"),
    [
        ((page_of_text, scanned, empty, scanned, scanned, page_of_text), "pages 2, 4-5"),
        ((page_of_text, scanned), "page 2"),
    ],
)
def test_scanned_pages_among_others_are_named(pages: tuple, named: str) -> None:
    result = read(pdf(*pages))
    assert [refused.key for refused in result.quarantined] == [named]
    assert "input.ocr" in result.quarantined[0].reason
    assert body(1)[0] in result.documents[0].text


def test_pages_with_text_or_nothing_on_them_are_not_named() -> None:
    assert read(pdf(page_of_text, empty)).quarantined == []


def test_list_items_and_short_lines_of_a_page_without_places_stay_apart() -> None:
    page = "Contents\r\nA line that is clearly as long as any here\r\n- item\r\n2) item"
    assert write_text([rows_of(page)]).text == page.replace("\r\n", "\n")


def test_what_is_filled_into_a_form_stands_after_its_label() -> None:
    def draw(canvas: Canvas) -> None:
        form = canvas.acroForm
        for number, (label, value) in enumerate({"Vessel": "Kittiwake", "Berth:": "C 27"}.items()):
            y = 700 - 40 * number
            write(canvas, [label], y=y)
            form.textfield(name=label, value=value, x=250, y=y - 4, width=250, height=18)
        form.textfield(name="notes", value="Comes in May", x=72, y=600, width=400, height=18)
        form.textfield(name="empty", value="", x=72, y=570, width=400, height=18)
        for number, (label, checked) in enumerate({"Electricity": True, "Water": False}.items()):
            y = 500 - 20 * number
            form.checkbox(name=label, checked=checked, x=72, y=y - 4, size=14)
            write(canvas, [label], x=100, y=y)

    lines = [line for line in only(pdf(draw)).text.split("\n") if line]
    assert lines == [
        "Vessel: Kittiwake",
        "Berth: C 27",
        "Comes in May",
        "☒ Electricity",
        "☐ Water",
    ]


def filled_form(policy: str, person: str, amount: str) -> bytes:
    def draw(canvas: Canvas) -> None:
        write(canvas, ["Report of damage"], y=780, size=18)
        fields = {"Policy number": policy, "Insured:": person, "Amount of damage (EUR)": amount}
        for number, (label, value) in enumerate(fields.items()):
            y = 700 - 40 * number
            write(canvas, [label], y=y)
            canvas.acroForm.textfield(name=label, value=value, x=250, y=y - 4, width=250, height=18)
        write(canvas, ["Phone"], y=500)
        canvas.acroForm.textfield(name="p", value="0431 5577", x=120, y=496, width=90, height=18)
        write(canvas, ["Town"], x=300, y=500)
        canvas.acroForm.textfield(name="t", value="Corwen", x=360, y=496, width=90, height=18)

    return pdf(draw)


def test_fields_of_a_form_are_facts_of_one_record_and_tell_two_of_the_form_apart(
    tmp_path: Path,
) -> None:
    forms = {"vik.pdf": ("HM-448213", "Runa Vik", "80"), "moen.pdf": ("HM-99", "Ole Moen", "75")}
    for name, fields in forms.items():
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_bytes(filled_form(*fields))
    document = only(filled_form(*forms["vik.pdf"]), "vik.pdf")
    assert document.title == "Report of damage (Vik)"
    assert [text for kind, text in kinds(document) if kind == "fact"] == [
        "Policy number: HM-448213",
        "Insured: Runa Vik",
        "Amount of damage (EUR): 80",
        "Phone: 0431 5577",
        "Town: Corwen",
    ]
    settings = Settings(home=str(tmp_path / "home"))
    Index(settings).update(tmp_path / "in")
    with QueryEngine(tmp_path / "home", settings=settings) as engine:
        told = [
            passages_of(engine.answer(question).text)[0]
            for question in (
                "What is the policy number of Ole Moen?",
                "What is the policy number of the form of Runa Vik?",
                "How much was the damage of Runa Vik?",
            )
        ]
    assert told == [
        "Report of damage (Moen) — Policy number: HM-99",
        "Report of damage (Vik) — Policy number: HM-448213",
        "Report of damage (Vik) — Amount of damage (EUR): 80",
    ]


def table(canvas: Canvas, rows: Sequence[Sequence[str]], *, y: float = TOP, pitch=20) -> None:
    """Draw a table, each cell's lines around the middle of its row, as office programs do."""
    for number, row in enumerate(rows):
        for x, cell in zip((72, 240, 420), row, strict=True):
            lines = cell.split("\n")
            top = y - number * pitch + (len(lines) - 1) * 6
            for place, line in enumerate(lines):
                write(canvas, [line], x=x, y=top - 12 * place)


def test_a_table_keeps_its_cells_apart_below_the_head_that_names_them() -> None:
    rows = [("Pile", "Scour (m)", "Protected"), ("R-01", "5.8", "no"), ("R-05", "0.4", "yes")]

    def draw(canvas: Canvas) -> None:
        write(canvas, ["We measured the depth of scour at the piles of the Roompot in spring."])
        table(canvas, rows, y=700)
        write(canvas, ["The deepest hole was found at the pile that nobody had protected."], y=600)

    assert only(pdf(draw)).text.split("\n\n")[0].split("\n")[1:] == [
        "| Pile | Scour (m) | Protected |",
        "| --- | --- | --- |",
        "| R-01 | 5.8 | no |",
        "| R-05 | 0.4 | yes |",
    ]


def test_lines_of_one_cell_are_put_together_whatever_was_drawn_first() -> None:
    rows = [
        ("Service", "Who pays", "Price\n(EUR)"),
        ("Berth with water\nand electricity\nand showers", "Owner", "42.50"),
        ("Crane", "Owner, or the yard\nthat asks for it", "180.00"),
        ("Pilot", "Agent", "310.00"),
    ]
    text = only(pdf(lambda canvas: table(canvas, rows, pitch=42))).text
    assert text.split("\n")[2:] == [
        "| Berth with water and electricity and showers | Owner | 42.50 |",
        "| Crane | Owner, or the yard that asks for it | 180.00 |",
        "| Pilot | Agent | 310.00 |",
    ]


def test_a_table_goes_on_on_the_next_page_without_its_head() -> None:
    head = ("Asset", "Maker", "Installed")
    rows = [(f"A-{n}", "Haldor Pumps" if n % 2 else "Tanaka", f"{2000 + n}") for n in range(12)]
    parts = [rows[:6], rows[6:]]
    pages = [lambda canvas, part=part: table(canvas, [head, *part]) for part in parts]
    lines = [line for line in only(pdf(*pages)).text.split("\n") if line]
    assert lines[0] == "| Asset | Maker | Installed |"
    assert lines[2:] == [f"| {' | '.join(row)} |" for row in rows]


def test_lines_that_only_seem_to_have_columns_stay_text() -> None:
    words = [
        "The",
        "notation",
        "to",
        "access",
        "the",
        "group",
        "type",
        "of",
        "the",
        "example",
        "above",
        "is",
        "long",
    ]

    def draw(canvas: Canvas) -> None:
        for number, word in enumerate(words):
            write(canvas, [word], x=72 + 70 * number)
        write(canvas, ["value"], x=142, y=TOP - LEADING)
        write(canvas, ["INTEGER"], x=212, y=TOP - LEADING)
        write(canvas, ["other"], x=142, y=TOP - 2 * LEADING)
        write(canvas, ["BOOLEAN"], x=212, y=TOP - 2 * LEADING)
        for number, mark in enumerate(("1.", "2.", "3.", "4.")):
            write(canvas, [mark], y=600 - LEADING * number)
            write(canvas, [f"{number + 7}"], x=120, y=600 - LEADING * number)

    assert "|" not in only(pdf(draw)).text


def test_a_foot_that_says_page_1_of_4_is_left_out_in_large_letters_too() -> None:
    def page(number: int) -> Callable[[Canvas], None]:
        def draw(canvas: Canvas) -> None:
            write(canvas, [*body(number), "Then the crew of the Halcyon slept for an hour."])
            write(canvas, [f"Page {number + 1} of 4 - Confidential"], y=40, size=13)

        return draw

    assert "Confidential" not in only(pdf(*map(page, range(4)))).text


def test_a_title_of_two_lines_with_much_white_between_is_one() -> None:
    def draw(canvas: Canvas) -> None:
        write(canvas, ["Scour around monopile foundations"], y=TOP + 50, size=18)
        write(canvas, ["in tidal channels"], y=TOP + 27, size=18)
        write(canvas, [*body(1), *body(2), *body(3)])

    assert only(pdf(draw)).title == "Scour around monopile foundations in tidal channels"


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_page_that_is_turned_is_read_as_if_it_were_upright(degrees: int) -> None:
    width, height = A4
    origin = {0: (0, 0), 90: (width, 0), 180: (width, height), 270: (0, height)}

    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(degrees)
        canvas.translate(*origin[degrees])
        canvas.rotate(degrees)
        write(canvas, ["Ships of Tarn"], y=540, size=18)
        write(canvas, ["These are the ships that lay in the harbour of Tarn in winter."], y=500)
        table(
            canvas,
            [("Ship", "Length (m)", "Port"), *[(f"Tern {n}", f"5{n}", "Tarn") for n in range(3)]],
            y=470,
        )

    document = only(pdf(draw))
    assert document.title == "Ships of Tarn"
    assert "| Ship | Length (m) | Port |\n| --- | --- | --- |\n| Tern 0 | 50 |" in document.text


def test_a_row_of_words_alone_is_no_head_and_contents_are_no_table() -> None:
    rows = [
        ("postscriptname", "String", "Family name"),
        ("fonthashint", "Bool", "Has hinting"),
        ("order", "Int", "Order number"),
    ]
    contents = [
        ("4.1", "Mapping bitstreams . . . . . .", "7"),
        ("4.2", "Multiplication . . . . . .", "8"),
        ("4.3", "Rolling . . . . . . . . . . .", "9"),
    ]

    def draw(canvas: Canvas) -> None:
        table(canvas, rows)
        table(canvas, contents, y=500)

    written = only(pdf(draw)).text
    assert written.startswith("| postscriptname | String | Family name |\n| fonthashint |")
    assert "---" not in written
    assert "4.1 Mapping" in written


def test_a_field_without_a_form_around_it_does_no_harm_and_nobody_is_called_anonymous() -> None:
    def draw(canvas: Canvas) -> None:
        write(canvas, ["Berth"])
        canvas.acroForm.textfield(name="a", value="C 27", x=200, y=TOP, width=90, height=18)

    document = only(pdf(draw).replace(b"/AcroForm", b"/NoneForm"))
    assert document.text == "Berth"
    assert "author" not in document.metadata


def test_a_justified_line_with_wide_gaps_stays_in_its_paragraph() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Times-Roman", 10)
        for number, (begin, end) in enumerate(
            (("The bearing of the mill", "was"), ("oiled by the keeper of the", "weir"))
        ):
            canvas.drawString(LEFT, TOP - number * LEADING, begin)
            canvas.drawRightString(204, TOP - number * LEADING, end)
        canvas.drawString(LEFT, TOP - 2 * LEADING, "in each week of May.")

    assert only(pdf(draw)).text == (
        "The bearing of the mill was oiled by the keeper of the weir in each week of May."
    )


def test_contents_whose_lines_have_most_pieces_of_a_page_are_read_as_text() -> None:
    rows = [("Chapter", "", "Page"), *((f"{n}. Weirs", ".......", str(n + 7)) for n in range(1, 6))]
    written = only(pdf(lambda canvas: table(canvas, rows))).text
    assert "1. Weirs" in written
    assert "|" not in written


def test_labels_drawn_apart_from_what_stands_beside_them_are_said_with_it() -> None:
    values = ["1 Jan 2022", "31 Jan 2022", "$127.50"]

    def text(labels: Sequence[str], values: Sequence[str], place: int = 150) -> str:
        def draw(canvas: Canvas) -> None:
            write(canvas, values, x=place)
            write(canvas, labels, x=60)

        return only(pdf(draw)).text

    labels = ["Date:", "Due date:", "Total:"]
    lines = ["Date: 1 Jan 2022", "Due date: 31 Jan 2022", "Total: $127.50"]
    assert text(labels, values).split("\n") == lines
    for apart in (
        text(["Notes", "Due date:", "Paid"], values),  # one label makes no column of them
        text(labels, values, 450),
        text(labels, ["1 Jan", f"31 Jan {'of that year ' * 5}", "$1"]),
    ):
        assert "date: 31" not in apart
    assert "Date: Ship" not in text(labels, ["Ship to:", *values[1:]])


def ruled(
    canvas: Canvas, rows: Sequence[Sequence[tuple[int, str]]], edges: Sequence[int], pitch: int = 16
) -> None:
    """Draw a table with rules around its cells; a cell is its width in columns, and its text."""
    canvas.setFont("Times-Roman", 10)
    for number, row in enumerate(rows):
        top, place = TOP - number * pitch, 0
        canvas.line(edges[0], top, edges[-1], top)
        for width, text in row:
            left, right = edges[place], edges[place + width]
            canvas.line(left, top, left, top - pitch)
            canvas.drawCentredString((left + right) / 2, top - pitch + 5, text)
            place += width
        canvas.line(edges[-1], top, edges[-1], top - pitch)
    canvas.line(edges[0], TOP - len(rows) * pitch, edges[-1], TOP - len(rows) * pitch)


NARROW = (72, 120, 146, 172, 198, 224)
BODY = [
    [(1, quay), *((1, n) for n in figures)]
    for quay, *figures in (
        ("North Quay", "112", "4,310", "140", "5,020"),
        ("Salt Pier", "58", "1,940", "61", "2,015"),
        ("Old Basin", "17", "480", "12", "350"),
    )
]


def test_rules_divide_cells_that_stand_close_and_say_what_a_head_is_over() -> None:
    heads = [
        [(1, ""), (2, "2023"), (2, "2024")],
        [(1, "Quay"), (1, "Ships"), (1, "Tons"), (1, "Ships"), (1, "Tons")],
    ]
    document = only(pdf(lambda canvas: ruled(canvas, [*heads, *BODY], NARROW)))
    assert document.text.split("\n") == [
        "| Quay | 2023 Ships | 2023 Tons | 2024 Ships | 2024 Tons |",
        "| --- | --- | --- | --- | --- |",
        "| North Quay | 112 | 4,310 | 140 | 5,020 |",
        "| Salt Pier | 58 | 1,940 | 61 | 2,015 |",
        "| Old Basin | 17 | 480 | 12 | 350 |",
    ]


@pytest.mark.parametrize(
    "first",
    [[(5, "Harbour traffic")], [(3, "Port: Tarn"), (2, "Of: 2024")], [(1, ""), (4, "Year: 2024")]],
)
def test_captions_and_labels_above_a_head_are_no_part_of_it(first: list[tuple[int, str]]) -> None:
    head = [(1, "Quay"), (1, "Ships"), (1, "Tons"), (1, "Crews"), (1, "Tugs")]
    text = only(pdf(lambda canvas: ruled(canvas, [first, head, *BODY], NARROW))).text
    assert "| North Quay | 112 | 4,310 | 140 | 5,020 |" in text
    assert f"{first[-1][1]} Tons" not in text
    assert all(said in text for _, said in first)


def test_a_second_row_of_numbers_is_no_head_below_wide_cells() -> None:
    rows = [
        [(1, "Vote"), (2, "Measure 48"), (2, "Measure 49")],
        [(1, "Tarn"), (1, "Yes"), (1, "90"), (1, "Yes"), (1, "109")],
        [(1, "Osvik"), (1, "No"), (1, "142"), (1, "No"), (1, "105")],
        [(1, "Varde"), (1, "No"), (1, "17"), (1, "Yes"), (1, "31")],
    ]
    text = only(pdf(lambda canvas: ruled(canvas, rows, NARROW))).text
    assert "| Tarn | Yes | 90 | Yes | 109 |" in text
    assert "Measure 48 90" not in text


def test_a_line_over_the_first_column_and_others_is_no_head_of_them() -> None:
    head = [(1, "Quay"), (1, "Ships"), (1, "Tons"), (1, "Crews"), (1, "Tugs")]

    def draw(canvas: Canvas) -> None:
        ruled(canvas, [head, *BODY], NARROW)
        write(canvas, ["Traffic of the three quays"], x=NARROW[0], y=TOP + 5)
        write(canvas, ["in 2024"], x=NARROW[-2], y=TOP + 5)

    text = only(pdf(draw)).text
    assert "Traffic of the three quays" in text
    assert "quays Ships" not in text
    assert "| North Quay | 112 | 4,310 | 140 | 5,020 |" in text


def test_names_that_may_stand_over_other_columns_are_a_line_of_their_own() -> None:
    names = ["System", *["Win", "Tie"] * 3]
    rows = [
        names,
        *([system, *map(str, range(n, n + 6))] for n, system in ((31, "Local"), (44, "Drift"))),
    ]

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 8)
        for right, name in zip((177, 234, 291), ("Overall", "Harbour", "Market"), strict=True):
            canvas.drawRightString(right, TOP, name)
        for number, row in enumerate(rows, 1):
            canvas.drawString(50, TOP - number * 12, row[0])
            for place, cell in enumerate(row[1:]):
                canvas.drawRightString(149 + 28.4 * place, TOP - number * 12, cell)

    lines = only(pdf(draw)).text.split("\n")
    assert lines[0] == "Overall Harbour Market"
    assert lines[-2:] == [f"| {' | '.join(row)} |" for row in rows[1:]]
    assert not any("Harbour Win" in line for line in lines)


def test_a_box_behind_a_word_and_a_picture_divide_no_line() -> None:
    before, line = (
        "Set the field named ",
        "Set the field named tide_level to 4 before the gate opens.",
    )

    def draw(canvas: Canvas) -> None:
        write(canvas, [line])
        place = LEFT + canvas.stringWidth(before) - 1
        canvas.rect(place, TOP - 3, 42, 13)
        picture = canvas.beginPath()
        picture.moveTo(place, TOP - 40)
        for step in range(8):
            picture.lineTo(place + step % 2, TOP + 8 * step)
        canvas.drawPath(picture)
        canvas.line(LEFT + 8, TOP - 40, LEFT + 8, TOP + 40)  # through a word

    with contextlib.closing(PdfDocument(pdf(draw))) as document:
        page = document[0]
        pieces = read_pieces(page.get_textpage(), 0, rules_of(page, 0))
    assert [piece.text for piece in pieces] == [line]


@pytest.mark.parametrize(("n_rules", "is_divided"), [(900, True), (1_100, False)])
def test_a_page_of_very_many_rules_is_a_drawing(n_rules: int, is_divided: bool) -> None:
    def draw(canvas: Canvas) -> None:
        write(canvas, ["one two"])
        place = LEFT + canvas.stringWidth("one") + 1
        canvas.line(place, TOP - 30, place, TOP + 30)
        for number in range(n_rules):
            canvas.line(LEFT + 4 * number, 20, LEFT + 4 * number, 60)

    with contextlib.closing(PdfDocument(pdf(draw))) as document:
        page = document[0]
        pieces = read_pieces(page.get_textpage(), 0, rules_of(page, 0))
    assert [piece.text for piece in pieces] == (["one", "two"] if is_divided else ["one two"])


def cells_at(
    rights: Sequence[float], rows: Sequence[Sequence[str]], *, by_words: bool = False
) -> Callable[[Canvas], None]:
    """Return what draws rows of a name and numbers, which end at places, and a line above them."""

    def draw(canvas: Canvas) -> None:
        write(
            canvas, ["What the ships of each quay took with them in these years, in tons."], y=790
        )
        for number, (name, *figures) in enumerate(rows):
            y = TOP - LEADING * number
            write(canvas, [name], y=y)
            for right, figure in zip(rights, figures, strict=True):
                for word in reversed(figure.split() if by_words else [figure]):
                    canvas.drawRightString(right, y, word)
                    right -= canvas.stringWidth(f"{word} ")

    return draw


CLOSE = [
    ("Quay", "2019", "2020", "2021", "2022"),
    ("North", "120", "130", "118", "141"),
    ("Salt", "97", "110", "95", "108"),
    ("Basin", "131", "-", "122", "140"),
]


def test_columns_of_numbers_are_told_where_they_stand_as_close_as_words() -> None:
    document = only(pdf(cells_at((130, 153, 176, 199), CLOSE)))
    said = document.text.split("\n")[1:]
    assert said[0] == "| Quay | 2019 | 2020 | 2021 | 2022 |"
    assert said[2:] == [f"| {' | '.join(row)} |" for row in CLOSE[1:]]
    assert [kind for kind, _ in kinds(document)] == ["table"]


@pytest.mark.parametrize("by_words", [False, True])
def test_thousands_that_stand_apart_are_one_number(by_words: bool) -> None:
    rows = [
        ("Wages", "12 300", "9 100", "118 220"),
        ("Ropes", "8 450", "12 500", "9 870"),
        ("Coal", "31 000", "7 250", "14 610"),
        ("Tar", "1 940", "2 015", "940"),
    ]
    text = only(pdf(cells_at((140, 185, 230), rows, by_words=by_words))).text
    assert text.split("\n")[1:] == [f"| {' | '.join(row)} |" for row in rows]


def test_words_of_a_head_stand_over_close_columns_and_those_of_a_sentence_over_none() -> None:
    rows = [("Quay", "Ships", "Crew", "Mates"), *CLOSE[1:]]
    rows = [row[:4] for row in rows]
    head, _, *body = only(pdf(cells_at((136, 161, 190), rows))).text.split("\n")[1:]
    assert head == "| Quay | Ships | Crew | Mates |"
    assert body == [f"| {' | '.join(row)} |" for row in rows[1:]]


def test_numbers_that_are_not_told_apart_for_sure_stay_together() -> None:
    rows = [(f"Call {n}", f"405 680 37{n}1", f"918 831 63{n}2") for n in range(5)]
    text = only(pdf(cells_at((190, 280), rows))).text
    assert "405 680 3701" in text
    assert "918 831 6342" in text


@pytest.mark.parametrize(
    ("names", "following"),
    [(["Let", "Own", "Lent", "Sold", "Bare", "New"], "| --- |"), (2 * ["Let", "Own", "New"], "|")],
)
def test_what_stands_over_columns_names_none_where_nothing_says_which(
    names: list[str], following: str
) -> None:
    rows = [[row[0], *row[1:4], *row[2:]] for row in CLOSE[1:]]

    def draw(canvas: Canvas) -> None:
        write(canvas, ["Lots"], x=165, y=TOP + LEADING)
        write(canvas, ["Farms"], x=300, y=TOP + LEADING)
        cells_at((140, 185, 230, 275, 320, 365), [["Quay", *names], *rows])(canvas)

    lines = only(pdf(draw)).text.split("\n")
    place = lines.index(f"| Quay | {' | '.join(names)} |")
    assert lines[place - 1] == "Lots Farms"
    assert lines[place + 1].startswith(following)
    assert f"| {' | '.join(rows[0])} |" in lines[place + 1 : place + 3]
