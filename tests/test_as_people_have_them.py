"""Files as people have them: what they say is read whole, and questions are answered by it."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator

import pytest
from asked_files import index_asked
from read_files import only, read
from test_equations import docx

from benchmarks.answers import passages_of
from graphrag_pipeline.ingest.reading.latex import latex_text
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence.bylines import authors_in, date_in

MINUTES = {
    "2023/minutes.md": "# Minutes 2023\n\nThe rent of the hall is 900 EUR.\n",
    "2024/minutes.md": "# Minutes 2024\n\nThe rent of the hall is 950 EUR.\n",
    "2025/minutes.md": "# Minutes 2025\n\nThe rent of the hall is 990 EUR.\n",
}
FILES = {
    "Terna.wiki": "{{Infobox ship\n|name=Terna\n|builder=Brun & Sønn\n|launched=1931\n}}\n"
    "The '''Terna''' is a cutter. The Terna was painted green in 1990.\n",
    "fleet.md": "# Fleet\n\n| Boat | Crew | Tons<br>(2024) | Tons<br/>(2025) |\n"
    "|:--|:-:|-:|-:|\n| Petrel | 3 | 88 | 79 |\n| Marlin | 4 | 120 | 134 |\n",
    "bank.csv": "Date,Description,Money In,Money Out\n2024-02-02,Rent Ada Finch,450.00,\n"
    "2024-02-03,Kelm Water,,32.10\n2024-02-09,Rent Bo Marsh,2475.00,\n",
    "inv.csv": "Rechnung;Kunde;Währung;Netto;Datum\n1001;Holm AG;CHF;1.200,00;02.05.2025\n"
    "1002;Voss KG;EUR;1.200,00;09.05.2025\n1003;Aas AS;NOK;89,90;11.05.2025\n",
    "leaks/a.txt": "The leak in pump 4 is at the seal.\n",
    "leaks/b.txt": "The leak in pump 4 was imagined.\n",
    "ports.csv": "Harbour,Berths,Fee (NOK)\nEidvik in the north of the sound,120,1250\n"
    "Meløy,—,980\n",
    "costs.csv": "Stelle;Art;Plan;Ist\nHafen;Material;4.000;4.210\nHafen;Personal;12.000;11.870\n"
    "Werft;Material;7.500;8.020\nWerft;Personal;9.000;9.100\n",
    "srv.jsonl": '{"time":"2023-09-01T10:00:00Z","severity":"error","msg":"disk full on /var"}\n'
    '{"time":"2023-09-05T14:00:00Z","severity":"info","msg":"certificate renewed by Ole Brekke"}\n',
    "visits.csv": "day,visitors,guide\n2025-06-01,120,Ada Finch\n2025-06-02,85,Bo Marsh\n"
    "2025-06-03,140,Cy Dunn\n",
    "help.txt": "usage: quayctl [-h] [-v] [-r] [--limit N] path\n\nControl the quays.\n\n"
    "options:\n  -h, --help       show this help and exit\n  -v, --verbose    say more\n"
    "  -r, --recurse    look into folders, too\n  --limit N        stop after N quays\n"
    "                   (default: 100)\n",
    "own/shed.md": "# Shed\n\nThe shed behind Quay 2 was built in 1901 and painted green. It has "
    "two doors and a stove. The shed behind Quay 2 belongs to Mirela Okonski. It is let.\n",
    "own/boat.md": "# Skua\n\nThe Skua is a trawler of 15 m with a crew of four. Nils Rune is her "
    "skipper and sails to Eidvik. Owned by the Tern Trust, the Skua was refitted in 2019.\n",
    "own/kai.md": "# Haus\n\nDas Haus am Kai 7 wurde 1880 gebaut und hat zwei Stockwerke. Viele "
    "kennen das Haus am Kai 7. Das Haus am Kai 7 gehört Jörg Müller. Es steht leer.\n",
    "sync.md": "# Sync\n\n## Usage\n\n```\nsync [options] SOURCE TARGET\n\n"
    "  -d, --delete     Delete at TARGET what SOURCE lacks.\n"
    "      --rate=KB    Send at most KB kilobytes a second.\n```\n\n## More\n\n"
    "- `--exclude PATTERN`: leave out files that match PATTERN.\n"
    "- `-q`, `--quiet` - print errors only.\n",
    "tide.rst": "Tided\n=====\n\n:Author: Rune Falk\n\nIt writes tables.\n\n"
    "-c NUM           Show at most NUM tides.\n--dry-run        Print what it would do.\n",
    "kelp.md": "# Kelp Forests and Net Losses\n\n**Hanna Vik¹, Jonas Berg², and Aroha Te Rangi¹**"
    "\n\n¹ Institute of Ecology, Eidvik\n\nPublished: 14 June 2022\n\n## Abstract\n\n"
    "We count nets lost in kelp.\n",
    "fog.txt": "Buoys and the Price of Fog\n\nElin Marsh\nFog Laboratory, Aldous\n\n"
    "Wei Zhang\nUniversity of Kelmouth\n\nMay 2021\n\nAbstract\nBuoys drift in fog.\n",
    "ice.md": "---\ntitle: Quay 4 in winter\nauthor: Mirela Okonski\n---\nThe quay is closed.\n",
    "quayls.1": ".TH QUAYLS 1\n.SH NAME\nquayls \\- list quays\n.SH AUTHOR\nWritten by Ida Holm.\n"
    ".SH OPTIONS\n.TP\n.B \\-\\-force\nOverwrite files.\n",
    "disk.txt": "We use quayls --force when the disk is full.\n",
    "jours.csv": "Jour;Passagers;Pilote\n02/06/2025;12;Luc Morel\n13/06/2025;19;Anne Roy\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.fixture(scope="module")
def minutes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(MINUTES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "How many tons did the Petrel land in 2025?",
            "Fleet — Boat: Petrel; Crew: 3; Tons (2024): 88; Tons (2025): 79",
        ),
        ("Who built the Terna?", "Terna — builder: Brun & Sønn"),
        ("Who paid 450 EUR?", "Rent Ada Finch — Money In: 450.00"),
        ("Who paid 2475?", "Rent Bo Marsh — Money In: 2475.00"),
        ("Wer hat 1200 EUR netto?", "Voss KG — Netto: 1.200,00; Währung: EUR"),
        ("Wer hat 1200 CHF netto?", "Holm AG — Netto: 1.200,00; Währung: CHF"),
        ("How many visitors came on 2 June 2025?", "Bo Marsh — day: 2025-06-02; visitors: 85"),
        ("How many visitors came on June 3, 2025?", "Cy Dunn — day: 2025-06-03; visitors: 140"),
        ("Combien de passagers le 13 juin 2025 ?", "Anne Roy — Jour: 13/06/2025; Passagers: 19"),
        ("Was wurde am 9. Mai 2025 berechnet?", "Voss KG — Datum: 09.05.2025"),
        ("How many berths has Meløy?", "Meløy — Berths: —"),
        (
            "Wie hoch war das Ist für Material in der Werft?",
            "Costs: row-3 — Stelle: Werft; Art: Material; Ist: 8.020",
        ),
        (
            "When was the certificate renewed?",
            "Srv: row-2 — time: 2023-09-05T14:00:00Z; msg: certificate renewed by Ole Brekke",
        ),
        ("What does -r do?", "-r, --recurse look into folders, too"),
        ("What does -v do?", "-v, --verbose say more"),
        ("What does --limit do?", "--limit N stop after N quays (default: 100)"),
        ("What does `--rate` do?", "--rate=KB Send at most KB kilobytes a second."),
        ("What does --exclude do?", "--exclude PATTERN: leave out files that match PATTERN."),
        ("What does -q do?", "-q, --quiet - print errors only."),
        ("What does --force do?", "--force: Overwrite files."),
        ("What does --dry-run do?", "--dry-run Print what it would do."),
        (
            "Who wrote the paper on kelp forests?",
            "Kelp Forests and Net Losses — author: Hanna Vik, Jonas Berg, Aroha Te Rangi",
        ),
        (
            "When was the paper on kelp published?",
            "Kelp Forests and Net Losses — date: 2022-06-14",
        ),
        ("Who wrote the paper on fog?", "Fog — author: Elin Marsh, Wei Zhang"),
        ("When was the fog paper written?", "Fog — date: 2021-05"),
        ("Who wrote Quay 4 in winter?", "Quay 4 in winter — author: Mirela Okonski"),
        ("Who wrote Tided?", "Tided — Author: Rune Falk"),
        ("Who wrote quayls?", "quayls(1) — author: Ida Holm"),
    ],
)
def test_what_is_asked_for_stands_first(asked: QueryEngine, question: str, told: str) -> None:
    assert passages_of(asked.answer(question).text)[0] == told


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What was the rent before 2024?", "Minutes 2023: The rent of the hall is 900 EUR."),
        ("What was the rent since 2025?", "Minutes 2025: The rent of the hall is 990 EUR."),
    ],
)
def test_of_another_time_than_names_of_documents_tell_nothing_is_told(
    minutes: QueryEngine, question: str, told: str
) -> None:
    assert passages_of(minutes.answer(question).text) == [told]


@pytest.mark.parametrize(
    ("head", "authors", "date"),
    [
        (
            "João da Silva\nUniversity of Porto\n\nEva Dubois\n\nMay 2019\n\nAbstract\n",
            "João da Silva, Eva Dubois",
            "2019-05",
        ),
        (
            "A. Smith, B. C. Jones & D. van der Berg\n(3 May 2001)\nABSTRACT. We",
            "A. Smith, B. C. Jones, D. van der Berg",
            "2001-05-03",
        ),
        ("Jane Doe1,2, John Q. Public2\n1 Dept of X\nSummary\n", "Jane Doe, John Q. Public", ""),
        ("Von Anna Weber und Jörg Groß, 3. März 2020\n\nText", "Anna Weber, Jörg Groß", ""),
        ("by Ann Lee\n\nOnce upon a time", "Ann Lee", ""),
        ("Harbour Press London\n\nThis is a tale of Ann Lee.\n\nAbstract\n", "", ""),
        ("Ann Lee, Bo Hill\n\nThey met in 1999.", "", ""),
        ("Tel Aviv\nNoa Levi\nFinal Version\n\nAbstract\n", "Noa Levi", ""),
        ("Cape Town, South Africa\nGrace Young, Rose Hill\nAbstract", "Grace Young, Rose Hill", ""),
        ("Fakultät für Physik\nForschungszentrum Kiel\nUwe Groß\nAbstract", "Uwe Groß", ""),
        ("Написала Ольга Орлова\n\nТекст", "Ольга Орлова", ""),
        ("Yazar: Ayşe Yılmaz\n\nMetin", "Ayşe Yılmaz", ""),
        ("By the time we came, it was late\n\nAbstract\n", "", ""),
    ],
)
def test_the_head_of_a_paper_says_who_wrote_it_and_when(head: str, authors: str, date: str) -> None:
    text = f"# Learning to Sail\n\n{head}"
    assert authors_in("Learning to Sail", text, "") == authors
    assert date_in("Learning to Sail", text) == date


@pytest.mark.parametrize(
    ("question", "owner"),
    [
        ("Who owns the shed behind Quay 2?", "belongs to Mirela Okonski"),
        ("To whom does the Skua belong?", "Owned by the Tern Trust"),
        ("Wer besitzt das Haus am Kai 7?", "gehört Jörg Müller"),
    ],
)
def test_who_owns_something_is_whom_it_belongs_to(
    asked: QueryEngine, question: str, owner: str
) -> None:
    told = asked.answer(question, sentences=1).text
    assert owner in told


def test_what_says_the_question_again_and_something_else_is_told_too(asked: QueryEngine) -> None:
    told = passages_of(asked.answer("Where is the leak in pump 4?").text)
    assert set(told) == {"The leak in pump 4 is at the seal.", "The leak in pump 4 was imagined."}


def test_of_another_day_or_year_nothing_is_told(asked: QueryEngine, minutes: QueryEngine) -> None:
    assert "120" not in asked.answer("How many visitors came on 2 June 2025?").text
    rent = minutes.answer("What was the rent of the hall in 2024?").text
    assert "950 EUR" in rent
    assert "990" not in rent


def test_messages_of_matrix_have_their_times() -> None:
    said = [
        {"sender": f"@{who}:x.org", "origin_server_ts": at, "content": {"body": text}}
        for who, at, text in (
            ("ida", 1756720800000, "Crane 7 works."),
            ("ole", 1756720900000, "Since?"),
        )
    ]
    document = only(read("room.json", json.dumps({"room_name": "Quay", "messages": said})))
    assert "[2025-09-01 10:00] @ida:x.org: Crane 7 works." in document.text


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
