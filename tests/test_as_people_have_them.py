"""Files as people have them: what they say is read whole, and questions are answered by it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator

import pytest
from asked_files import index_asked
from read_files import only, read
from test_equations import docx

from benchmarks.answers import passages_of
from graphrag_pipeline.ingest.reading.latex import latex_text
from graphrag_pipeline.query import QueryEngine

FILES = {
    "2023/minutes.md": "# Minutes 2023\n\nThe rent of the hall is 900 EUR.\n",
    "2024/minutes.md": "# Minutes 2024\n\nThe rent of the hall is 950 EUR.\n",
    "2025/minutes.md": "# Minutes 2025\n\nThe rent of the hall is 990 EUR.\n",
    "fleet.md": "# Fleet\n\n| Boat | Crew | Tons<br>(2024) | Tons<br/>(2025) |\n"
    "|:--|:-:|-:|-:|\n| Petrel | 3 | 88 | 79 |\n| Marlin | 4 | 120 | 134 |\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What was the rent before 2024?", "Minutes 2023: The rent of the hall is 900 EUR."),
        ("What was the rent since 2025?", "Minutes 2025: The rent of the hall is 990 EUR."),
        (
            "How many tons did the Petrel land in 2025?",
            "Fleet — Boat: Petrel; Crew: 3; Tons (2024): 88; Tons (2025): 79",
        ),
    ],
)
def test_what_is_asked_for_stands_first(asked: QueryEngine, question: str, told: str) -> None:
    assert passages_of(asked.answer(question).text)[0] == told


def test_of_a_time_that_names_of_documents_tell_no_other_is_told(asked: QueryEngine) -> None:
    answer = asked.answer("What was the rent of the hall before 2024?").text
    assert "900 EUR" in answer
    assert "950" not in answer
    assert "990" not in answer


def test_simple_fields_of_word_are_text() -> None:
    field = '<w:fldSimple w:instr=" AUTHOR "><w:r><w:t>Siv Aas</w:t></w:r></w:fldSimple>'
    body = f'<w:p><w:r><w:t xml:space="preserve">The master is </w:t></w:r>{field}</w:p>'
    assert "The master is Siv Aas" in only(read("a.docx", docx(body))).text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"\SI{4}{\milli\metre} thick", "4 mm thick"),
        (r"\qty[mode=text]{12.5}{km/h}", "12.5 km/h"),
        (r"\SI{3}{\kilo\metre\per\hour}.", "3 km/h."),
        (r"\SIrange{1}{2}{\cubic\metre}", "1–2 m³"),
        (r"\SI{5}{\metre\squared} and \num{1200}", "5 m² and 1200"),
    ],
)
def test_quantities_of_latex_have_their_units(source: str, text: str) -> None:
    assert latex_text(source) == text


def winmail(*files: tuple[str, bytes]) -> bytes:
    def attribute(number: int, value: bytes) -> bytes:
        return struct.pack("<BII", 2, number, len(value)) + value + b"\0\0"

    attached = b"".join(
        attribute(0x69002, b"\1\0")
        + attribute(0x6800F, data)
        + attribute(0x18010, name.encode() + b"\0")
        for name, data in files
    )
    return b"\x78\x9f\x3e\x22\1\0" + attribute(0x89006, b"\0\0\1\0") + attached


def mail_with(data: bytes) -> bytes:
    head = b"From: Ida <ida@x.org>\nTo: Ole <ole@y.org>\nSubject: Pump\nMIME-Version: 1.0\n"
    parts = (
        b"Content-Type: text/plain\n\nSee the list.\n",
        b'Content-Type: application/ms-tnef; name="winmail.dat"\n'
        b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(data),
    )
    body = b"".join(b"--x\n" + part + b"\n" for part in parts)
    return head + b"Content-Type: multipart/mixed; boundary=x\n\n" + body + b"--x--\n"


def test_files_in_winmail_dat_are_attachments() -> None:
    packed = winmail(("list.csv", b"Pump,Depth\nP-7,12\n"), ("note.txt", b"Pump 7 leaks."))
    result = read("a.eml", mail_with(packed))
    assert [(d.key, d.title) for d in result.documents] == [
        ("", "Pump"),
        ("attachment-1/list.csv/P-7", "List: P-7"),
        ("attachment-1/note.txt", "Note"),
    ]
    assert result.documents[1].metadata["sender"] == "Ida, ida@x.org"
    assert result.quarantined == []


def test_a_winmail_dat_that_is_cut_off_is_named() -> None:
    result = read("a.eml", mail_with(winmail(("note.txt", b"Pump 7 leaks."))[:-9]))
    assert [d.key for d in result.documents] == [""]
    assert [(q.key, q.reason.partition(":")[0]) for q in result.quarantined] == [
        ("attachment-1", "the attachment of Outlook is cut off")
    ]
