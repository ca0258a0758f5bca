"""Comments of Word, and what stands at the head and the foot of its pages."""

from read_files import only, read
from test_equations import MAIN, docx


def paragraph(inside: str) -> str:
    return f"<w:p>{inside}</w:p>"


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def part(name: str, inside: str) -> str:
    return f'<w:{name} xmlns:w="{MAIN}">{inside}</w:{name}>'


def text_of(body: str, **parts: str) -> list[str]:
    named = {f"word/{name}.xml": xml for name, xml in parts.items()}
    return [line for line in only(read("a.docx", docx(body, named))).text.split("\n") if line]


def test_a_comment_is_said_by_whom_and_when_on_which_words() -> None:
    body = paragraph(
        f'{run("The supplier is ")}<w:commentRangeStart w:id="0"/>{run("Norvik AS")}'
        f'<w:commentRangeEnd w:id="0"/>{run(".")}'
    )
    comments = part(
        "comments",
        '<w:comment w:id="0" w:author="Henrik Dahl" w:date="2024-03-01T09:30:00Z">'
        f"{paragraph(run('Still solvent?'))}{paragraph(run('Ask Greta.'))}</w:comment>"
        f'<w:comment w:id="7">{paragraph(run("Lost."))}</w:comment>',
    )
    assert text_of(body, comments=comments) == [
        "The supplier is Norvik AS.",
        '[2024-03-01 09:30] Henrik Dahl: on "Norvik AS": Still solvent? Ask Greta.',
        "[undated] Comment: Lost.",
    ]


SPACES = (
    'xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"'
)


def flat(kind: str, body: str) -> str:
    head = "<o:meta><dc:creator>Ida Holm</dc:creator></o:meta>"
    return f"<o:document {SPACES}>{head}<o:body><o:{kind}>{body}</o:{kind}></o:body></o:document>"


def test_a_comment_of_opendocument_is_said_by_whom_and_when() -> None:
    comment = (
        "<o:annotation><dc:creator>Per Lund</dc:creator><dc:date>2024-05-02T10:00:00.5</dc:date>"
        "<text:p>Still &lt;90&gt;?</text:p></o:annotation>"
    )
    document = only(read("a.fodt", flat("text", f"<text:p>The fee is {comment}90.</text:p>")))
    assert document.metadata["author"] == "Ida Holm"
    assert document.text.split("\n\n") == [
        "The fee is 90.",
        "[2024-05-02 10:00] Per Lund: Still <90>?",
    ]


def test_a_cell_of_several_rows_of_opendocument_is_said_in_each() -> None:
    def row(*cells: str) -> str:
        return f"<table:table-row>{''.join(cells)}</table:table-row>"

    def cell(text: str, spans: str = "") -> str:
        return f"<table:table-cell {spans}><text:p>{text}</text:p></table:table-cell>"

    covered = "<table:covered-table-cell/>"
    rows = (
        row(cell("Ship"), cell("Name"), cell("Tons"))
        + row(cell("Astrid", 'table:number-rows-spanned="3"'), cell("Ida"), cell("3"))
        + row(covered, cell("Per"), cell("4"))
        + row(covered)
        + row(cell(""), cell("Eva"), cell("5"))
    )
    book = read("a.fods", flat("spreadsheet", f"<table:table>{rows}</table:table>"))
    ships = [("Astrid" in d.text, d.text.count("\n")) for d in book.documents]
    assert ships == [(True, 2), (True, 2), (False, 1)]


def test_what_stands_at_the_head_of_pages_is_said_once_and_without_their_numbers() -> None:
    page = '<w:fldSimple w:instr=" PAGE "><w:r><w:t>3</w:t></w:r></w:fldSimple>'
    complex_page = f"<w:r><w:instrText> NUMPAGES </w:instrText></w:r>{run('4')}"
    tab = "<w:r><w:tab/></w:r>"
    head = part("hdr", paragraph(f"{run('Contract NV-17')}{tab}{run('Page ')}{page}"))
    foot = part("ftr", paragraph(run("of ") + complex_page) + paragraph(run("Varde &amp; Sons")))
    body = paragraph(run("The fee is 90 EUR."))
    assert text_of(body, header1=head, header2=head, footer1=foot) == [
        "The fee is 90 EUR.",
        "Contract NV-17",
        "Varde & Sons",
    ]
    assert text_of(paragraph(run("Varde &amp; Sons")), footer1=foot) == ["Varde & Sons"]


def test_items_have_the_numbers_that_word_shows() -> None:
    def level(number: int, kind: str, start: int = 1, more: str = "") -> str:
        said = f'<w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>{more}'
        return f'<w:lvl w:ilvl="{number}">{said}</w:lvl>'

    def item(text: str, name: int, depth: int = 0) -> str:
        place = f'<w:ilvl w:val="{depth}"/><w:numId w:val="{name}"/>'
        words = run(text) if text else ""
        return paragraph(f"<w:pPr><w:numPr>{place}</w:numPr></w:pPr>{words}")

    step = '<w:pStyle w:val="Step"/>'
    kinds = (
        level(0, "decimal") + level(1, "decimal"),
        level(0, "bullet"),
        level(0, "decimal", 4, step),
    )
    numbering = "".join(
        f'<w:abstractNum w:abstractNumId="{n}">{levels}</w:abstractNum>'
        for n, levels in enumerate(kinds)
    )
    anew = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    for name, (kind, more) in enumerate(((0, ""), (1, ""), (2, ""), (0, anew)), 1):
        numbering += f'<w:num w:numId="{name}"><w:abstractNumId w:val="{kind}"/>{more}</w:num>'
    of_style = '<w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr>'
    style = f'<w:style w:type="paragraph" w:styleId="Step">{of_style}</w:style>'
    body = item("Opening", 1) + item("Budget", 1) + item("Cranes", 1, 1) + item("", 1)
    body += paragraph(run("A break.")) + item("Vote", 1) + item("Berths", 1, 1) + item("Ida", 2)
    body += paragraph(f"<w:pPr>{step}</w:pPr>{run('Cast off')}") + item("Again", 4)
    parts = {"numbering": part("numbering", numbering), "styles": part("styles", style)}
    assert text_of(body, **parts) == [
        "1. Opening",
        "2. Budget",
        "  1. Cranes",
        "A break.",
        "3. Vote",
        "  1. Berths",
        "- Ida",
        "4. Cast off",
        "1. Again",
    ]
