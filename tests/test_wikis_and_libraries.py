"""Pages of wikis, entries of libraries and logs of IRC, as programs keep and export them."""

import json
import time

import pytest
from read_files import only, read, reason

IRSSI = """--- Log opened Mon Apr 01 09:00:00 2024
09:01 -!- rune [~r@x] has joined #pumps
09:02 < rune> pump <12> trips at 40 bar
09:03 <@kari> set the valve to 35 bar
--- Day changed Tue Apr 02 2024
08:30  * kari waves
"""
SAID = [
    "[2024-04-01 09:02] rune: pump <12> trips at 40 bar",
    "[2024-04-01 09:03] kari: set the valve to 35 bar",
    "[2024-04-02 08:30] kari: * waves",
]
WEECHAT = (
    "2024-04-01 09:00:01\t-->\trune (~r@x) has joined #pumps\n"
    "2024-04-01 09:02:12\trune\tpump <12> trips at 40 bar\n"
    "2024-04-01 09:03:40\t@kari\tset the valve to 35 bar\n"
)
ZNC = (
    "[09:00:12] *** Joins: rune (r@x)\n[09:02:30] <rune> pump <12> trips at 40 bar\n"
    "[09:03:00] <kari> set the valve to 35 bar\n"
)
HEXCHAT = (
    "**** BEGIN LOGGING AT Mon Apr  1 09:00:00 2024\n\n"
    "Apr 01 09:01:12 *\tNow talking on #pumps\nApr 01 09:02:12 <rune>\tpump <12> trips at 40 bar\n"
    "Apr 01 09:03:12 <kari>\tset the valve to 35 bar\n"
)


@pytest.mark.parametrize(
    ("name", "log", "said"),
    [
        ("a.log", IRSSI, SAID),
        ("#pumps.weechatlog", WEECHAT, SAID[:2]),
        ("#pumps_20240401.log", ZNC, SAID[:2]),
        ("a.txt", HEXCHAT, SAID[:2]),
    ],
)
def test_a_log_of_irc_is_a_conversation(name: str, log: str, said: list[str]) -> None:
    document = only(read(name, log))
    assert document.text == "\n".join(said)
    assert (document.metadata["from"], document.metadata["date"]) == (
        "rune, kari",
        "2024-04-01T09:02",
    )


def test_a_log_of_a_program_is_no_log_of_irc() -> None:
    log = "10:00:01 <main> INFO start\n10:00:02 ERROR disk\n10:00:03 ERROR disk\n10:00:04 WARN x"
    assert only(read("a.log", log)).text == log


KELMOUTH = """{{Infobox town
| name = Kelmouth
| mayor = [[Dagny Holt|Dagny]]
}}<!-- checked -->
'''Kelmouth''' lies {{convert|3|km}} up the [[River Kelm]]<ref>{{cite book|x}}</ref>.{{fact}}

== History ==
* A fire in [https://x.org 1702]

{| class="wikitable"
! Year !! Ships
|-
| align="right" | 1950 || 87
|}
[[File:a.png|thumb|x]][[Category:Towns]]
"""


def test_a_page_of_mediawiki_is_its_text_fields_tables_and_links() -> None:
    document = only(read("Kelmouth.wiki", KELMOUTH))
    lines = [line for line in document.text.split("\n") if line]
    assert document.title == "Kelmouth"
    assert lines == [
        "# Kelmouth",
        "name: Kelmouth",
        "mayor: Dagny",
        "Kelmouth lies 3 km up the [River Kelm](River%20Kelm.md).",
        "## History",
        "- A fire in 1702",
        "| Year | Ships |",
        "| --- | --- |",
        "| 1950 | 87 |",
        "Category: Towns",
    ]


DOKUWIKI = """====== Harbour handbook ======
The **harbour** of //Kelm//((since 1911)) is run by [[people:ida|Ida Moen]], see https://kelm.org/a.

===== Mooring =====
  - Check the wind
  - Ready the lines
    * Bow line
  - Call 112 \\\\ or the master

{{:crane.jpg?200|The crane}}
^ Quay ^ Ships ^ Tons ^
| North | 112 | 4310 |
| ::: || 480 |
<code bash>
tide **
</code>
"""
TEXTILE = """h1. Harbour handbook

p(note). By *Ida Moen*, see "the wiki":https://kelm.org/wiki.

# Build @make dist@
## on Linux
# Go - or not - on

table(grid).
|_. Port |_. Year |_. Ships |_. Tons |
|/2. Kelm | 2023 | 12 | 140 |
| 2024 |\\2. 150 |

bc. tide *

!crane.png(The crane)!
"""


@pytest.mark.parametrize("name", ["handbook.txt", "handbook.dokuwiki"])
def test_a_page_of_dokuwiki_is_its_text_lists_and_tables(name: str) -> None:
    document = only(read(name, DOKUWIKI))
    assert document.title == "Harbour handbook"
    assert [line for line in document.text.split("\n") if line] == [
        "# Harbour handbook",
        "The harbour of Kelm (since 1911) is run by [Ida Moen](people:ida.md), see https://kelm.org/a.",
        "## Mooring",
        "1. Check the wind",
        "2. Ready the lines",
        "  - Bow line",
        "3. Call 112  or the master",
        "The crane",
        "| Quay | Ships | Tons |",
        "| --- | --- | --- |",
        "| North | 112 | 4310 |",
        "| North |  | 480 |",
        "```",
        "tide **",
        "```",
    ]


def test_a_page_of_textile_keeps_its_cells_below_their_heads() -> None:
    document = only(read("handbook.textile", TEXTILE))
    assert document.title == "Harbour handbook"
    assert [line for line in document.text.split("\n") if line] == [
        "# Harbour handbook",
        "By Ida Moen, see [the wiki](https://kelm.org/wiki).",
        "1. Build `make dist`",
        "  1. on Linux",
        "2. Go - or not - on",
        "| Port | Year | Ships | Tons |",
        "| --- | --- | --- | --- |",
        "| Kelm | 2023 | 12 | 140 |",
        "| Kelm | 2024 | 150 |  |",
        "```",
        "tide *",
        "```",
        "The crane",
    ]


def test_items_of_a_wiki_are_numbered_as_it_shows_them() -> None:
    text = only(read("a.wiki", "# Look\n# Call\n## 112\n# Go\n\nThen\n# Rest\n")).text
    assert text.split("\n")[2:6] == ["1. Look", "2. Call", "  1. 112", "3. Go"]
    assert text.endswith("\n1. Rest")


def test_a_dump_of_mediawiki_is_its_pages_by_their_latest_revisions() -> None:
    pages = [("Skua", "Old."), ("R", "#REDIRECT [[Skua]]")]
    written = "".join(
        f"<page><title>{title}</title><revision><timestamp>2023-01-01T00:00:00Z</timestamp>"
        f"<text>{text}</text></revision>{{}}</page>"
        for title, text in pages
    ).format(
        "<revision><timestamp>2024-01-01T00:00:00Z</timestamp>"
        "<text>The '''Skua''' is a boat.</text></revision>",
        "",
    )
    document = only(read("dump.xml", f"<mediawiki><siteinfo/>{written}</mediawiki>"))
    assert (document.key, document.title) == ("Skua", "Skua")
    assert document.text.endswith("The Skua is a boat.")
    assert document.metadata == {"date": "2024-01-01T00:00:00Z"}


def test_a_note_of_tiddlywiki_has_its_fields_and_links() -> None:
    note = (
        "created: 20230304101112000\ncreator: Rasmus Eng\ntitle: Skarv\n"
        "type: text/vnd.tiddlywiki\n\n"
        "! Light\nKept by [[Tove|Tove Lund]] at https://x.org, //lit//."
    )
    document = only(read("a.tid", note))
    assert document.title == "Skarv"
    for line in (
        "created: 2023-03-04 10:11",
        "creator: Rasmus Eng",
        "# Light",
        "Kept by [Tove](Tove%20Lund.md) at https://x.org, lit.",
    ):
        assert line in document.text.split("\n")


@pytest.mark.parametrize(
    "part", ["{{", "{{a|\n", "<!--", "<ref>", "[[", "= ", "{|\n|", "{{A\n|b=c"]
)
def test_hostile_pages_take_time_by_their_length(part: str) -> None:
    began = time.process_time()
    read("a.wiki", part * (200_000 // len(part)))
    assert time.process_time() - began < 3


def test_entries_of_csl_have_the_fields_of_a_bibliography() -> None:
    entry = {
        "id": "a",
        "type": "article-journal",
        "title": "Silt",
        "container-title": "Coastal Works",
        "publisher-place": "Oslo",
        "author": [{"family": "Okonski", "given": "Mirela"}, {"literal": "Tern Trust"}],
        "issued": {"date-parts": [["2019", 5, 3]]},
    }
    said = only(read("a.json", json.dumps([entry]))).text.split("\n")
    assert said == [
        "title: Silt",
        "id: a",
        "type: article-journal",
        "journal: Coastal Works",
        "address: Oslo",
        "author: Mirela Okonski, Tern Trust",
        "date: 2019-05-03",
    ]
    other = {"type": "boat", "title": "Skua", "author": "Ida"}
    assert "author: Ida" in only(read("a.json", json.dumps([other]))).text


def test_entries_of_marc_have_the_fields_of_a_bibliography() -> None:
    fields = {
        "100": ("a", "Solberg, Turid,"),
        "245": ("a", "Ropes and knots /"),
        "264": ("b", "Skarv Forlag,"),
        "260": ("c", "1994."),
    }
    data = "".join(
        f'<datafield tag="{tag}"><subfield code="{code}">{said}</subfield></datafield>'
        for tag, (code, said) in fields.items()
    )
    record = f'<record><controlfield tag="001">77</controlfield>{data}</record>'
    document = only(read("a.xml", f'<collection xmlns="m">{record}</collection>'))
    assert document.text.split("\n") == [
        "title: Ropes and knots",
        "id: 77",
        "author: Turid Solberg",
        "publisher: Skarv Forlag",
        "year: 1994",
    ]


@pytest.mark.parametrize(
    "name",
    ["1709546000.M12P4.kelm:2,S", "1709546000.12345_1.mail.x.org", "1709546000.M1P2V3.a,S=9:2,"],
)
def test_a_message_of_a_maildir_is_read_by_its_name(name: str) -> None:
    mail = "From: Ida Brandt <ida@x.org>\nSubject: Tender\n\nIt holds until April."
    assert only(read(name, mail)).metadata["sender"] == "Ida Brandt, ida@x.org"


@pytest.mark.parametrize("name", ["app.log.2024-03-04", "app.log-20240304", "app.log.old", "a.err"])
def test_a_log_that_is_put_aside_is_read(name: str) -> None:
    assert only(read(name, "10:00 ERROR pump P7 failed")).text == "10:00 ERROR pump P7 failed"


def test_messages_of_apple_mail_and_thunderbird_are_read() -> None:
    mail = "From: Ida Brandt <ida@x.org>\nSubject: Tender\n\nIt holds until April.\n"
    whole = only(read("a.emlx", f"{len(mail)}  \n{mail}<plist><dict/></plist>"))
    assert whole.text == "Ida Brandt:\n\nIt holds until April."
    assert "begin with its size" in reason(read("a.emlx", mail))
    kept = only(read("Inbox", f"From - Mon Mar  4 09:12:07 2024\n{mail}"))
    assert kept.text == whole.text


def test_an_archive_of_a_mailing_list_is_a_mailbox() -> None:
    archive = (
        "From ada at x.org  Mon Mar  4 09:12:07 2024\nFrom: ada at x.org (Ada Finch)\n"
        "Date: Mon, 4 Mar 2024 09:12:07 +0100\nSubject: Dredger\n\nIt is late.\n"
    )
    document = only(read("2024-March.txt", archive))
    assert document.metadata["sender"] == "Ada Finch, ada@x.org"
    assert document.text == "[2024-03-04 09:12] Ada Finch:\n\nIt is late."
    assert only(read("a.txt", "From the sea at 09:12:07 it came\n\nA tale")).title == "A"
