"""Office files, books, mail, notebooks and source code become documents, or a reason why not."""

import builtins
import datetime
import io
import json
import random
import time
import zipfile
from pathlib import Path

import pytest
from openpyxl import Workbook
from pptx import Presentation
from read_files import only, read, reason

from graphrag_pipeline.ingest.reading import ReadDocument, ReadingOptions
from graphrag_pipeline.ingest.reading.rst import read_rst

OPENDOCUMENT = 'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" ' + " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "meta", "presentation")
)


def zipped(parts: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def make_pptx() -> bytes:
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Whales & ships"
    slide.placeholders[1].text = "Ahab sails\nIshmael tells"
    slide.notes_slide.notes_text_frame.text = "Speak slowly."
    table = slide.shapes.add_table(1, 2, 0, 0, 100, 100).table
    table.cell(0, 0).text, table.cell(0, 1).text = "crew", "30"
    presentation.core_properties.title = ""
    presentation.core_properties.author = "Ada"
    buffer = io.BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def make_xlsx(**sheets: list[list[object]]) -> bytes:
    book = Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def make_sheet(cells: str) -> bytes:
    """Return a workbook whose sheet's XML is written by hand."""
    parts: dict[str, str | bytes] = {}
    with zipfile.ZipFile(io.BytesIO(make_xlsx(S=[["a"]]))) as archive:
        for name in archive.namelist():
            parts[name] = archive.read(name)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
    return zipped(parts | {"xl/worksheets/sheet1.xml": sheet})


def make_opendocument(body: str, title: str = "") -> bytes:
    return zipped(
        {
            "content.xml": f"<office:document-content {OPENDOCUMENT}><office:body>{body}"
            "</office:body></office:document-content>",
            "meta.xml": '<m xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<dc:title>{title}</dc:title></m>",
        }
    )


def make_odt(text: str, title: str = "") -> bytes:
    return make_opendocument(f"<office:text>{text}</office:text>", title)


def make_slide(title: str, texts: str, notes: str = "") -> str:
    """Return a slide as LibreOffice writes one: its notes have a thumbnail and a page number."""
    frame = (
        '<draw:frame presentation:class="{}"><draw:text-box><text:p>{}</text:p></draw:text-box>'
        "</draw:frame>"
    )
    number = frame.format("page-number", "<text:page-number>&lt;number&gt;</text:page-number>")
    items = (
        f"<text:list><text:list-item>{frame.format('outline', texts)}</text:list-item></text:list>"
    )
    return (
        f"<draw:page>{frame.format('title', title)}{items}"
        "<presentation:notes><draw:page-thumbnail/>"
        f"{frame.format('notes', notes)}{number}</presentation:notes></draw:page>"
    )


def make_odp(*slides: str, title: str = "") -> bytes:
    body = f"<office:presentation>{''.join(slides)}</office:presentation>"
    return make_opendocument(body, title)


def make_ods(rows: str) -> bytes:
    table = f'<table:table table:name="S">{rows}</table:table>'
    return make_opendocument(f"<office:spreadsheet>{table}</office:spreadsheet>")


def make_epub(chapters: list[str], more: dict[str, str | bytes] | None = None) -> bytes:
    items = "".join(
        f'<item id="c{n}" href="c%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in reversed(range(len(chapters))))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The Book</dc:title>'
        f"<dc:creator>Ada</dc:creator></metadata><manifest>{items}</manifest>"
        f"<spine>{spine}</spine></package>"
    )
    container = '<container><rootfiles><rootfile full-path="OEBPS/o.opf"/></rootfiles></container>'
    pages = {
        f"OEBPS/c {n}.xhtml": f"<!DOCTYPE html><html><body>{chapter}</body></html>"
        for n, chapter in enumerate(chapters)
    }
    parts = {"META-INF/container.xml": container, "OEBPS/o.opf": package, **pages}
    return zipped(parts | (more or {}))


MAIL = """From: =?utf-8?q?Ad=C3=A4?= <ada@example.org>
To: bob@example.org
Subject: Re: The ship
Date: Mon, 02 Jan 2023 10:00:00 +0100
Message-ID: <1@example.org>
Content-Type: multipart/mixed; boundary=B

--B
Content-Type: text/plain; charset=utf-8

I agree.

On Sunday, Bob
<bob@example.org> wrote:
> Shall we sail?

Let us go at 9.
--\x20
Ada, Tel. 123
--B
Content-Type: application/pdf
Content-Disposition: attachment; filename="plan.pdf"

xx
--B--
"""
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "source": ["# Whales\n", "They swim."]},
            {"cell_type": "code", "source": "count()", "outputs": [{"text": "secret"}]},
        ],
        "metadata": {"language_info": {"name": "python"}},
    }
)
FLAT = """<office:document office:mimetype="x" xmlns:office="urn:a:office:1.0"
 xmlns:text="urn:a:text:1.0" xmlns:table="urn:a:table:1.0" xmlns:draw="urn:a:drawing:1.0"
 xmlns:presentation="urn:a:presentation:1.0"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:style="urn:a:style:1.0">
<office:meta><dc:title>{}</dc:title><dc:creator>Ada</dc:creator></office:meta>
<office:master-styles><style:footer><text:p>Page 1</text:p></style:footer></office:master-styles>
<office:body>{}</office:body></office:document>"""
SOUND = {
    ".pptx": make_pptx(),
    ".xlsx": make_xlsx(S=[["id", "text"], ["a", "one"], ["b", "two"]]),
    ".odt": make_odt("<text:h>One</text:h><text:p>two</text:p>"),
    ".odp": make_odp(make_slide("One", "two", "three")),
    ".ods": make_ods("<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
                     "</table:table-row>" * 2),
    ".fodt": FLAT.format("", "<office:text><text:p>two</text:p></office:text>").encode(),
    ".fodp": FLAT.format("", make_slide("One", "two")).encode(),
    ".fods": FLAT.format("", '<table:table table:name="S">' + (
                             "<table:table-row><table:table-cell><text:p>a</text:p>"
                             "</table:table-cell></table:table-row>" * 2)
                             + "</table:table>").encode(),
    ".epub": make_epub(["<h1>One</h1><p>two</p>"]),
    ".eml": MAIL.encode(),
    ".mbox": f"From a@x Mon Jan  2 10:00:00 2023\n{MAIL}\n".encode() * 2,
    ".ipynb": NOTEBOOK.encode(),
    ".rst": b"One\n===\n\n.. note:: two\n\n::\n\n  three\n\n+-+-+\n|a|b|\n+-+-+\n\n== ==\n1  2",
    ".py": b'"""Doc."""\nx = "a" # b\n\'\'\'c',
    ".rs": b"fn a<'b>() { '\"' } // c\n/* d",
}  # fmt: skip


# Presentations, spreadsheets and texts of office programs


def test_a_presentation_is_its_slides_with_titles_tables_and_notes():
    document = only(read("talk.pptx", make_pptx()))
    assert document.title == "Whales & ships"
    assert document.metadata["author"] == "Ada"
    words = ("Whales & ships", "- Ahab sails", "- Ishmael tells", "crew", "30", "Speak slowly.")
    places = [document.text.index(part) for part in words]
    assert places == sorted(places)


def test_opendocument_in_one_file_is_read_as_the_packed_one_is():
    body = (
        "<office:text><text:h>One</text:h><text:p>two<draw:frame><draw:image><office:binary-data>"
        "iVBORw0KGgo</office:binary-data></draw:image></draw:frame></text:p></office:text>"
    )
    document = only(read("a.fodt", FLAT.format("Whales", body).encode()))
    assert (document.title, document.text) == ("Whales", "One\n\ntwo")
    assert document.metadata["author"] == "Ada"
    cells = "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell>"
    cells += "<table:table-cell><text:p>{}</text:p></table:table-cell></table:table-row>"
    rows = cells.format("Name", "Town") + cells.format("Bo Li", "Oden")
    table = f'<table:table table:name="S">{rows}</table:table>'
    sheet = FLAT.format("", f"<office:spreadsheet>{table}</office:spreadsheet>")
    assert only(read("a.fods", sheet.encode())).text == "Name: Bo Li\nTown: Oden"
    assert reason(read("a.fodt", b"no XML"))


def test_a_presentation_of_libreoffice_has_its_titles_and_notes_and_no_page_numbers():
    slides = (
        make_slide("Harbour plan", "Quay 4 is rebuilt.", "Ana asked."),
        make_slide("Costs", "9"),
    )
    document = only(read("a.odp", make_odp(*slides, title="PowerPoint Presentation")))
    assert document.title == "Harbour plan"
    heads = [document.text[b.start : b.end] for b in document.blocks if b.kind == "heading"]
    assert heads == ["Harbour plan", "Costs"]
    said = "Harbour plan\n\n- Quay 4 is rebuilt.\n\nNotes:\n\nAna asked.\n\nCosts\n\n- 9"
    assert document.text == said
    assert only(read("a.odp", make_odp(*slides, title="Of 2024"))).title == "Of 2024"


def test_a_show_and_a_presentation_with_macros_are_read_as_others_are():
    plain = read("a.pptx", make_pptx())
    with zipfile.ZipFile(io.BytesIO(make_pptx())) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    kinds = {
        "a.ppsx": "application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
        "a.pptm": "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    }
    usual = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
    for name, kind in kinds.items():
        types = parts["[Content_Types].xml"].replace(usual.encode(), kind.encode())
        assert kind.encode() in types
        assert read(name, zipped({**parts, "[Content_Types].xml": types})) == plain


def test_rows_of_a_sheet_are_documents_as_those_of_a_csv_file_are():
    day = datetime.datetime(2020, 1, 2)
    rows = [["id", "title", "text", "when", "n"], ["a", "Ada", "One; two", day, 3.0]]
    as_csv = "id,title,text,when,n\na,Ada,One; two,2020-01-02,3\n"
    assert read("t.xlsx", make_xlsx(S=rows)) == read("t.csv", as_csv)


def test_several_sheets_tell_their_rows_apart_and_lines_above_a_header_are_not_it():
    data = make_xlsx(People=[["Our people"], [], ["name", "age"], ["Ada", 36]], Ships=[["n"], [1]])
    documents = {each.key: each.text for each in read("t.xlsx", data).documents}
    assert documents == {
        "People!caption": "Our people",
        "People!row-1": "name: Ada\nage: 36",
        "Ships!row-1": "n: 1",
    }


def test_a_text_of_libreoffice_keeps_its_structure_and_loses_deletions():
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1">Plan &amp; goal</text:h>'
        "<text:p>We<text:s/>go<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>soon</text:p></text:note-body></text:note>."
        "<office:annotation><text:p>comment</text:p></office:annotation></text:p>"
        "<text:list><text:list-item><text:p>ship</text:p></text:list-item></text:list>"
    )
    document = only(read("a.odt", make_odt(body)))
    assert document.title == "Plan & goal"
    assert document.text == "Plan & goal\n\nWe go (soon).\n\n- ship\n\n[undated] Comment: comment"
    assert only(read("a.odt", make_odt(body, "Property"))).title == "Property"


LISTS = """<office:document xmlns:office="urn:a:office:1.0" xmlns:text="urn:a:text:1.0"
 xmlns:style="urn:a:style:1.0"><office:styles><text:list-style style:name="N">
<text:list-level-style-number text:level="1" style:num-format="1"/>
<text:list-level-style-number text:level="2" style:num-format="1"/></text:list-style>
<text:list-style style:name="B"><text:list-level-style-bullet text:level="1"/></text:list-style>
</office:styles><office:body><office:text>{}</office:text></office:body></office:document>"""


def test_lists_of_a_text_keep_their_numbers_and_what_is_within_them() -> None:
    def listed(*items: str, attributes: str = "") -> str:
        within = "".join(f"<text:list-item>{item}</text:list-item>" for item in items)
        return f"<text:list {attributes}>{within}</text:list>"

    def said(*texts: str) -> list[str]:
        return [f"<text:p>{text}</text:p>" for text in texts]

    numbered, goes_on = 'text:style-name="N"', 'text:continue-numbering="true"'
    opening, budget = said("Opening", "Budget")
    body = listed(opening, budget + listed(*said("Cranes", "Lamps")), attributes=numbered)
    body += "<text:p>A break.</text:p>"
    body += listed(listed(*said("Berths")), *said("Vote"), attributes=f"{numbered} {goes_on}")
    body += listed(*said("Ida Moen"), attributes='text:style-name="B"')
    body += listed(*said("Rule"), attributes=numbered).replace(
        "-item>", '-item text:start-value="7">', 1
    )
    lines = only(read("a.fodt", LISTS.format(body))).text.split("\n")
    assert [line for line in lines if line] == [
        "1. Opening",
        "2. Budget",
        "  1. Cranes",
        "  2. Lamps",
        "A break.",
        "  1. Berths",
        "3. Vote",
        "- Ida Moen",
        "7. Rule",
    ]


@pytest.mark.parametrize("is_repeated", [True, False])
def test_the_merged_head_of_a_table_in_a_text_names_its_columns(is_repeated):
    def cells(style: str, *texts: str, first: str = "") -> str:
        text = f'<text:p text:style-name="{style}">{{}}</text:p>'
        cell = f"<table:table-cell {{}}>{text}</table:table-cell>"
        return cell.format(first, texts[0]) + "".join(cell.format("", text) for text in texts[1:])

    style = "P1" if is_repeated else "Table_20_Heading"
    covered = "<table:covered-table-cell><text:p>old</text:p></table:covered-table-cell>"
    wide, high = 'table:number-columns-spanned="2"', 'table:number-rows-spanned="2"'
    head = (
        f"<table:table-row>{cells(style, 'Quay', first=high)}"
        f"{cells(style, 'Ships', first=wide)}{covered}</table:table-row>"
        f"<table:table-row>{covered}{cells(style, '2022', '2023')}</table:table-row>"
    )
    if is_repeated:
        head = f"<table:table-header-rows>{head}</table:table-header-rows>"
    row = f"<table:table-row>{cells('Standard', 'Quay 4', '120', '133')}</table:table-row>"
    document = only(read("a.odt", make_odt(f"<table:table>{head}{row}</table:table>")))
    assert document.text == (
        "| Quay | Ships 2022 | Ships 2023 |\n| --- | --- | --- |\n| Quay 4 | 120 | 133 |"
    )


def test_cells_of_an_ods_sheet_are_numbers_and_dates_as_they_are():
    cell = "<table:table-cell {}><text:p>{}</text:p></table:table-cell>"
    header = cell.format("", "name") + cell.format("", "n") + cell.format("", "day")
    row = (
        cell.format("", "Ada")
        + cell.format('office:value-type="float" office:value="3.5"', "3,5 €")
        + cell.format('office:value-type="date" office:date-value="2020-01-02"', "2.1.20")
    )
    rows = "".join(f"<table:table-row>{cells}</table:table-row>" for cells in (header, row))
    empty = '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/>'
    document = only(read("t.ods", make_ods(f"{rows}{empty}</table:table-row>")))
    assert document.text == "name: Ada\nn: 3.5\nday: 2020-01-02"


def ods_row(*cells: str) -> str:
    """Return a row; "2 Tons" is merged with the cell beside it, "|2 Port" with that below."""
    parts = []
    for cell in cells:
        kind = "rows" if cell.startswith("|") else "columns"
        is_merged = cell.startswith(("2 ", "|2 "))
        merged = f' table:number-{kind}-spanned="2"' if is_merged else ""
        text = cell.partition("2 ")[2] if is_merged else cell
        name = "table:covered-table-cell" if cell == "-" else "table:table-cell"
        inside = f"<text:p>{text}</text:p>" if text not in ("", "-") else ""
        parts.append(f"<{name}{merged}>{inside}</{name}>")
    return f"<table:table-row>{''.join(parts)}</table:table-row>"


def test_a_sheet_of_opendocument_has_its_merged_head_and_the_table_below_another():
    rows = [
        ods_row("2 ", "-", ""),
        ods_row("|2 Port", "2 Tons", "-"),
        ods_row("-", "2023", "2024"),
        ods_row("Quay", "11", "12"),
        ods_row("Mole", "21", "22"),
        ods_row(""),
        ods_row("Boat", "Berths", "Crew"),
        ods_row("Gull", "14", "4"),
        ods_row("Tern", "15", "5"),
    ]
    documents = read("t.ods", make_ods("".join(rows))).documents
    assert [document.text for document in documents] == [
        "Port: Quay\nTons 2023: 11\nTons 2024: 12",
        "Port: Mole\nTons 2023: 21\nTons 2024: 22",
        "Boat: Gull\nBerths: 14\nCrew: 4",
        "Boat: Tern\nBerths: 15\nCrew: 5",
    ]
    assert documents[2].key == "table-2!row-1"


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch):
    real = builtins.__import__

    def without_office(name, *args, **kwargs):
        if name.partition(".")[0] in ("pptx", "openpyxl"):
            raise ModuleNotFoundError(name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_office)
    for suffix in (".pptx", ".xlsx"):
        assert "the extra [office]" in reason(read(f"a{suffix}", SOUND[suffix]))


# Books, mail, notebooks, rst, source code


def test_a_book_is_read_in_the_order_of_its_spine():
    document = only(read("b.epub", make_epub(["<h1>Second</h1>", "<h1>First</h1><p>Words</p>"])))
    assert (document.title, document.metadata) == ("The Book", {"author": "Ada"})
    assert document.text == "First\n\nWords\n\nSecond"
    assert [document.text[b.start : b.end] for b in document.blocks] == ["First", "Second"]


def test_a_book_under_drm_is_quarantined_and_one_with_hidden_fonts_is_read():
    name = "META-INF/encryption.xml"
    xml = '<e xmlns="x"><EncryptionMethod Algorithm="{}"/></e>'
    aes = "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
    font = "http://www.idpf.org/2008/embedding"
    assert "DRM" in reason(read("b.epub", make_epub(["x"], {name: xml.format(aes)})))
    assert only(read("b.epub", make_epub(["x"], {name: xml.format(font)}))).text == "x"


def test_a_message_says_its_own_words_and_who_wrote_to_whom_and_when():
    result = read("m.eml", MAIL)
    assert [each.key for each in result.quarantined] == ["attachment-1"]
    assert result.documents[0] == ReadDocument(
        "",
        "Re: The ship",
        "[2023-01-02 10:00] Adä to bob@example.org:\n\n"
        "I agree.\n\n> Shall we sail?\nLet us go at 9.",
        {
            "from": "Adä <ada@example.org>",
            "to": "bob@example.org",
            "date": "2023-01-02T10:00:00+01:00",
            "sender": "Adä, ada@example.org",
            "recipients": "bob@example.org",
            "message_id": "1@example.org",
            "thread": "1@example.org",
            "attachments": "plan.pdf",
        },
    )


@pytest.mark.parametrize(
    ("header", "head"),
    [
        (
            'From: "Kovac, Ana" <a@x.org>\nTo: bo.lind@x.org, Cai <c@x.org>',
            "Ana Kovac to Bo Lind, Cai",
        ),
        ("From: =?utf-8?q?S=C3=B8ren_Vik?= <s@x.org>\nCc: s@x.org, office@x.org", None),
        ("From: office@x.org\nTo: " + ", ".join(f"p{n}@x.org" for n in range(12)), "and 2 more"),
        ('From: "Tide 24, Inc." <t@x.org>', "Tide 24, Inc."),
        ("From: =?utf-8?q?Vik=2C_S=C3=B8ren?= <s@x.org>", "Søren Vik"),
        ("From: Ida <a@x.org>\nDate: in\n spring", "[in spring] Ida"),
        ("To: a@x.org", ""),
    ],
)
def test_a_message_begins_with_who_says_it_to_whom(header, head):
    text = only(read("m.eml", f"{header}\nSubject: a\n\nCome.")).text
    assert text.endswith("Come.")
    said = text.removesuffix("Come.").removesuffix(":\n\n")
    assert said.startswith("Søren Vik to s@x.org, office@x.org") if head is None else head in said
    assert bool(said) == (head != "")


def test_the_messages_of_a_conversation_have_its_first_in_common():
    first, second = "Message-ID: <1@x>", "Message-ID: <2@x>\nIn-Reply-To: <1@x>"
    third = "Message-ID: <3@x>\nReferences: <1@x>\n <2@x>\nIn-Reply-To: <2@x>"
    mails = (f"Subject: a\n{ids}\n\nCome." for ids in (first, second, third))
    threads = [only(read("m.eml", mail)).metadata["thread"] for mail in mails]
    assert threads == ["1@x"] * 3


def test_a_message_in_html_only_is_read_as_a_page_and_a_forwarded_one_is_kept():
    page = "Subject: a\nContent-Type: text/html\n\n<script>no</script><p>Come &amp; see"
    assert only(read("m.eml", page)).text == "Come & see"
    assert only(read("m.eml", "Subject: Fwd\n\n> all\n> of it")).text == "> all\n> of it"


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        ("Subject: a\n\nBring\n\n- a lamp\n- a rope\n\nAda", ["list"]),
        ("Subject: a\n\n> gone\n\nThe plan\n--------\n\nCome.", ["heading"]),
        (
            "Subject: a\nContent-Type: text/html\n\n<p>See</p><pre>f(1)</pre><ul><li>it</ul>",
            ["code", "list"],
        ),
    ],
)
def test_lists_headings_and_code_of_a_message_are_marked(message, kinds):
    assert [block.kind for block in only(read("m.eml", message)).blocks] == kinds


def test_messages_of_a_mailbox_are_keyed_by_their_message_id():
    separator = "From a@x Mon Jan  2 10:00:00 2023\n"
    box = (
        f"{separator}{MAIL}\n{separator}Subject: Two\n\n>From here\n\n{separator}Subject: None\n\n"
    )
    result = read("all.mbox", box)
    assert [each.key for each in result.documents] == ["1@example.org", "message-2"]
    assert result.documents[1].text == "From here"
    refused = [each.key for each in result.quarantined]
    assert refused == ["1@example.org/attachment-1", "message-3"]


OFFER = """From: a@example.org
Subject: Offer
Date: Mon, 2 Jan 2023 10:00:00 +0100
Content-Type: multipart/mixed; boundary=b

--b

See both.
--b
Content-Type: text/csv
Content-Disposition: attachment; filename="../../prices.csv"

boat,price,yard
Frida,1200,Elvik
Greta,900,Vik
--b
Content-Type: image/png
Content-Disposition: attachment; filename="photo.png"

no text
--b
Content-Type: message/rfc822

From: x@example.org
Subject: Oars

Kaja Storm sells oars.
--b--
"""


def test_what_is_attached_is_a_document_of_its_own_with_its_message():
    result = read("m.eml", OFFER)
    assert result.quarantined == []
    assert [each.key for each in result.documents] == [
        "",
        "attachment-1/row-1",
        "attachment-1/row-2",
        "attachment-3",
    ]
    message, row, _, forwarded = result.documents
    assert (message.text, message.metadata["attachments"]) == (
        "[2023-01-02 10:00] a@example.org:\n\nSee both.",
        "../../prices.csv, photo.png, Oars",
    )
    assert "Frida" in row.text
    assert row.metadata["message"] == "Offer"
    assert row.metadata["date"] == "2023-01-02T10:00:00+01:00"
    assert (forwarded.title, forwarded.text) == (
        "Oars",
        "x@example.org:\n\nKaja Storm sells oars.",
    )
    assert forwarded.metadata["from"] == "x@example.org"


def test_a_message_without_words_is_what_is_attached():
    head, *parts = OFFER.split("--b\n")
    document = only(read("m.eml", "--b\n".join([head, parts[-1]])))
    assert (document.key, document.text) == (
        "attachment-1",
        "x@example.org:\n\nKaja Storm sells oars.",
    )
    assert document.metadata["message"] == "Offer"


def test_messages_in_messages_end_somewhere():
    mail = "Subject: last\n\nThe end."
    for depth in range(60):
        mail = f"Subject: {depth}\nContent-Type: message/rfc822\n\n{mail}"
    result = read("m.eml", mail)
    assert len(result.documents) + len(result.quarantined) <= 6


def test_a_line_of_a_message_that_begins_with_from_begins_no_other():
    separator = "From a@x Mon Jan  2 10:00:00 2023\n"
    said = "It works.\n\nFrom here on it does.\n\nFrom then on, too: well."
    box = (
        f"{separator}{MAIL}\n{separator}Subject: Two\n\n{said}\n\n{separator}Subject: Three\n\nx\n"
    )
    result = read("all.mbox", box)
    assert [each.title for each in result.documents] == ["Re: The ship", "Two", "Three"]
    assert result.documents[1].text == said


@pytest.mark.parametrize(
    ("charset", "written", "encoding"),
    [
        ("iso-8859-1", "Renée’s boat", "utf-8"),
        ("windows-1252", "Renée’s boat", "windows-1252"),
        ("iso-8859-1", "Renée", "iso-8859-1"),
        ("us-ascii", "船が出る", "utf-8"),
        ("utf-8", "Renée", "iso-8859-1"),
    ],
)
def test_a_message_that_says_the_wrong_charset_is_read_in_the_right_one(charset, written, encoding):
    head = f"Subject: a\nContent-Type: text/plain; charset={charset}\n\n"
    assert only(read("m.eml", head.encode() + written.encode(encoding))).text == written


def test_a_notebook_is_its_cells():
    document = only(read("n.ipynb", NOTEBOOK))
    assert document.title == "Whales"
    assert document.text == "# Whales\nThey swim.\n\n```python\ncount()\n```"


def test_rst_of_sphinx_becomes_markdown():
    source = """
.. _top:

========
The ship
========

.. toctree::
   one

See :ref:`the deck <deck>`, :func:`~os.path.join` and `the map <https://x.org>`_::

   hoist(sails)

.. note:: Mind
   the gap.

.. versionadded:: 3.2

Crew
----

+------+-----+
| Name | Age |
+======+=====+
| Ada  | 36  |
+------+-----+

.. a comment
   of two lines
"""
    document = only(read_rst(Path("a.rst"), source.encode(), ReadingOptions()))
    assert document.title == "The ship"
    lines = [line for line in document.text.split("\n") if line]
    assert lines == [
        "# The ship",
        "See [the deck](deck.rst), join and the map:",
        *("```", "hoist(sails)", "```"),
        "Note: Mind",
        "  the gap.",
        "Added in version 3.2",
        "## Crew",
        *("| Name | Age |", "|---|---|", "| Ada | 36 |"),
    ]


@pytest.mark.parametrize(
    ("name", "source", "code"),
    [
        ("a.py", '"""Doc."""\nx = "# no"  # why\n', ['x = "# no"']),
        ("a.js", "/** Doc */\nf(`// no`); // why\n", ["f(`// no`);"]),
        ("a.rs", "// why\nfn f<'a>() { '\"'; }", ["fn f<'a>() { '\"'; }"]),
        ("a.sh", "#!/bin/sh\n# why\necho $# '#no'\n", ["#!/bin/sh", "echo $# '#no'"]),
        ("a.sql", "-- why\nSELECT '--no';", ["SELECT '--no';"]),
    ],
)
def test_all_but_the_comments_of_source_code_is_a_block_of_code(name, source, code):
    document = only(read(name, source))
    assert document.title == name
    assert document.text == source.strip()
    assert {block.kind for block in document.blocks} == {"code"}
    assert [document.text[b.start : b.end].strip() for b in document.blocks] == code


# What is broken, encrypted or made to harm

ENTITIES = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]>'
NESTED_MAIL = "".join(
    f"Content-Type: multipart/mixed; boundary=B{n}\n\n--B{n}\n" for n in range(2_000)
)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.pptx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "without a password"),
        ("a.xlsx", b"no zip", "not a workbook"),
        ("a.xlsx", make_xlsx(S=[]), "no cells"),
        ("a.odt", zipped({"content.xml": ENTITIES + "<d>&b;</d>"}), "DOCTYPE"),
        ("a.epub", zipped({"META-INF/container.xml": ENTITIES + "<d>&b;</d>"}), "DOCTYPE"),
        ("a.pptx", zipped({"ppt/presentation.xml": ENTITIES + "<d>&b;</d>"}), "DOCTYPE"),
        ("a.xlsx", zipped({"xl/workbook.xml": ENTITIES + "<d>&b;</d>"}), "DOCTYPE"),
        ("a.odt", zipped({"content.xml": "<a>" * 2_000_000}), "zip bomb"),
        ("a.epub", zipped({"a.xhtml": " " * 20_000_000}), "zip bomb"),
        ("a.odt", make_odt("<text:p>" * 600 + "</text:p>" * 600), "nested"),
        (
            "a.odt",
            zipped({"META-INF/manifest.xml": "<encryption-data/>", "content.xml": "x"}),
            "encrypted",
        ),
        (
            "a.ods",
            make_ods(
                '<table:table-row table:number-rows-repeated="1048576"><table:table-cell '
                'table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell>'
                "</table:table-row>"
            ),
            "cells",
        ),
        ("a.eml", NESTED_MAIL, "nested"),
        (
            "a.eml",
            "Content-Type: multipart/mixed; boundary=B\n\n" + "--B\n\nx\n" * 10_000,
            "parts",
        ),
        ("a.eml", f"Content-Type: text/plain{';' * 100_000}\n\nx", "too long"),
        ("a.eml", "no headers at all", "no headers"),
        ("a.ipynb", "[" * 200_000, "nested"),
        ("a.ipynb", '{"cells": 3}', "no cells"),
    ],
)
def test_what_is_broken_encrypted_or_a_bomb_is_refused_with_its_reason(name, content, why):
    start = time.process_time()
    assert why in reason(read(name, content))
    assert time.process_time() - start < 5


def test_two_cells_at_the_ends_of_a_sheet_cost_no_more_than_the_cells():
    far = '<row r="1"><c r="A1"><v>1</v></c></row><row r="9999"><c r="XFD9999"><v>2</v></c></row>'
    assert len(read("a.xlsx", make_sheet(far)).documents) == 2
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c></row>' for n in range(2, 2000))
    many = far.replace("</row>", f"</row>{rows}", 1)
    assert "hardly a cell is filled" in reason(read("a.xlsx", make_sheet(many)))


def test_a_sheet_of_more_rows_than_documents_can_be_is_refused(monkeypatch):
    monkeypatch.setattr("graphrag_pipeline.ingest.reading.sheets._MOST_ROWS", 3)
    assert "more than 3 rows" in reason(read("a.xlsx", make_xlsx(S=[["n"], [1], [2], [3]])))


@pytest.mark.parametrize("suffix", sorted(SOUND))
def test_cut_and_altered_bytes_give_documents_or_reasons(suffix):
    luck = random.Random(suffix)
    sound = SOUND[suffix]
    assert read(f"a{suffix}", sound).documents
    for _ in range(60 if len(sound) < 10_000 else 12):
        damaged = bytearray(sound[: luck.randint(1, len(sound))])
        for _ in range(luck.randint(0, 4)):
            damaged[luck.randrange(len(damaged))] = luck.randrange(256)
        result = read(f"a{suffix}", bytes(damaged))
        assert result.documents or result.quarantined
        assert all(each.text and each.title for each in result.documents)
        assert all(each.reason for each in result.quarantined)
