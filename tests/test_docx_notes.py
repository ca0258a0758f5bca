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
