"""Manual pages, catalogues of translations, pictures with words, texts without an ending."""

import time

import pytest
from read_files import only, read, reason

from graphrag_pipeline.ingest.reading.files import is_of_other_kind

PAGE = r"""'\" t
.\" a remark
.de Hidden
.B nothing
..
.if n \{\
.ds lq ``
.\}
.TH HARBOUR 1 2024-03-01 "Harbour 2.4" "User Commands"
.SH NAME
harbour \- count boats \(em and \fIberths\fR
.SH OPTIONS
.TP
.BR \-r ", " \-\^\-recursive
Count the boats of
.B all
quays.
.IP "\fB\-q\fR" 4
Say nothing; see
.BR grep (1).
.SH EXAMPLES
.nf
harbour \-r
  /quays
.fi
.TS
l l.
Code	Meaning
0	T{
All is
well.
T}
1	None found
.TE
"""
MDOC = """.Dd $Mdocdate: March 1 2024 $
.Dt BERTH 5
.Os
.Sh NAME
.Nm berth
.Nd file of berths
.Sh DESCRIPTION
Read by
.Xr harbour 1 ,
unless
.Fl q
.Op Fl f Ar file
is given.
.Bl -tag
.It Cm length Ar metres
The length of
.Nm .
.El
"""


def test_a_manual_page_says_an_option_with_its_text() -> None:
    page = only(read("harbour.1", PAGE))
    assert (page.title, page.metadata) == ("harbour(1)", {"section": "1", "date": "2024-03-01"})
    assert page.text.split("\n\n") == [
        "NAME",
        "harbour - count boats — and berths",
        "OPTIONS",
        "-r, --recursive: Count the boats of all quays.",
        "-q: Say nothing; see grep(1).",
        "EXAMPLES",
        "harbour -r\n  /quays",
        "| Code | Meaning |\n| --- | --- |\n| 0 | All is well. |\n| 1 | None found |",
    ]
    kinds = [block.kind for block in page.blocks]
    assert kinds == ["heading", "heading", "heading", "code", "table"]


def test_a_manual_page_of_mdoc_is_read_too() -> None:
    page = only(read("berth.5", MDOC))
    assert (page.title, page.metadata["date"]) == ("berth(5)", "March 1 2024")
    assert page.text.split("\n\n")[1::2] == [
        "berth — file of berths",
        "Read by harbour(1), unless -q [-f file] is given.",
    ]
    assert page.text.endswith("length metres: The length of berth.")


def test_what_is_numbered_and_no_manual_page_is_text() -> None:
    assert only(read("harbour.log.1", "The Frida left.")).text == "The Frida left."
    assert only(read("GPL-2.0", "Version 2 of the licence.")).text == "Version 2 of the licence."
    assert is_of_other_kind(reason(read("libharbour.so.1", b"\x7fELF\0\1" * 9)))


@pytest.mark.parametrize("name", ["GPL-3", "README-fr", "CHANGES", "mit"])
def test_texts_without_an_ending_are_known_by_their_first_word(name: str) -> None:
    assert only(read(name, "Olav Strand keeps the quay.")).text == "Olav Strand keeps the quay."


@pytest.mark.parametrize(
    "hostile", [".if \\{\n", ".TP\n\\fBa\n", ".TS\na.\n", "\\f[", "\\s'", "T{\n"]
)
def test_time_to_read_a_manual_page_is_linear(hostile: str) -> None:
    took: list[float] = []
    for times in (20_000, 80_000):
        begin = time.process_time()
        read("a.1", f".TH A 1\n.SH B\nText.\n{hostile * times}")
        took.append(time.process_time() - begin)
    assert took[1] < 10 * took[0] + 0.5


CATALOGUE = r"""# by nobody
msgid ""
msgstr ""
"Project-Id-Version: harbour 2.4\n"
"Last-Translator: Jana Kral <jana@x.org>\n"
"Language-Team: LANGUAGE <LL@li.org>\n"
"Language: de\n"
"Content-Type: text/plain; charset=ISO-8859-1\n"

#: main.c:45
msgctxt "chart"
msgid ""
"Draw the depth "
"contours | all"
msgstr "Tiefenlinien \"zeichnen\""

msgid "%d berth"
msgid_plural "%d berths"
msgstr[0] "%d Liegeplatz"
msgstr[1] "%d Liegeplätze"

#~ msgid "Gone"
#~ msgstr "Weg"
"""


def test_a_catalogue_is_a_table_of_messages_and_translations() -> None:
    catalogue = only(read("de.po", CATALOGUE.encode("latin-1")))
    assert catalogue.text == (
        "Project: harbour 2.4\nLast translator: Jana Kral <jana@x.org>\nLanguage: de\n\n"
        "| Message | Translation (de) | Context |\n| --- | --- | --- |\n"
        '| Draw the depth contours \\| all | Tiefenlinien "zeichnen" | chart |\n'
        "| %d berth | %d Liegeplatz / %d Liegeplätze |  |"
    )
    assert catalogue.metadata["Last translator"] == "Jana Kral <jana@x.org>"
    assert "no messages" in reason(read("a.pot", "nothing"))


def test_a_picture_says_its_words_alone() -> None:
    picture = """<svg xmlns="http://www.w3.org/2000/svg"><title>Marina</title><style>.a{}</style>
    <path d="M 1 1" label="quay"/><g><text><tspan>Fuel dock:</tspan>
    <tspan>diesel only</tspan></text></g><text>Berth <tspan>12</tspan></text></svg>"""
    read_as = only(read("plan.svg", picture))
    assert (read_as.title, read_as.text) == ("Marina", "Marina\nFuel dock: diesel only\nBerth 12")


def test_messages_of_a_mac_are_a_conversation() -> None:
    chat = only(
        read(
            "tern.txt",
            "Mar 03, 2024  5:29:42 PM (Read by you after 2 minutes)\nAstrid Vik\n"
            "The engine is fixed.\n\nMar 03, 2024  5:31:10 PM\nMe\nWhat did it cost?\n\n"
            "Mar 04, 2024 12:05:00 AM\n+4790012345\n7400 kroner.\nPaid.\n\n".replace(
                "4 12:", "4  12:"
            ),
        )
    )
    assert chat.text == (
        "[2024-03-03 17:29] Astrid Vik: The engine is fixed.\n"
        "[2024-03-03 17:31] Me: What did it cost?\n"
        "[2024-03-04 00:05] +4790012345: 7400 kroner.\nPaid."
    )
    assert chat.metadata == {"from": "Astrid Vik, Me, +4790012345", "date": "2024-03-03T17:29"}


def test_a_chat_that_telegram_exports_as_a_page_is_a_conversation() -> None:
    def message(kind: str, when: str, inner: str) -> str:
        date = f'<div class="pull_right date details" title="{when} UTC+02:00">{when[11:16]}</div>'
        return f'<div class="message {kind}"><div class="body">{date}{inner}</div></div>'

    name = '<div class="from_name">\n{}\n</div>'
    said = '<div class="text">\n{}\n</div>'
    by = name.format("R. Moe &amp; Co")
    chain = name.format("Eva") + said.format("It needs <b>40 m</b>.")
    noon = name.format("Jon Lie") + said.format("At noon.")
    page = "".join(
        [
            '<div class="page_header"><div class="text bold">\nHarbour watch\n</div></div>',
            '<div class="page_body chat_page">',
            '<div class="message service"><div class="body details">12 May 2024</div></div>',
            message(
                "default",
                "12.05.2024 08:15:31",
                by + said.format("Adrift."),
            ),
            message(
                "default joined",
                "12.05.2024 08:16:02",
                f'<div class="forwarded body">{chain}</div>',
            ),
            message("default", "12.05.2024 09:01:44", noon),
            "</div>",
        ]
    )
    chat = only(read("messages.html", page))
    assert (chat.title, chat.metadata["from"]) == ("Harbour watch", "R. Moe & Co, Jon Lie")
    assert chat.text == (
        "[2024-05-12 08:15] R. Moe & Co: Adrift.\n[2024-05-12 08:16] R. Moe & Co: It needs 40 m.\n"
        "[2024-05-12 09:01] Jon Lie: At noon."
    )
