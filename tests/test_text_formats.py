"""Texts of many kinds are read as what they are: no codes, commands or times among the words."""

import re
import time
from pathlib import Path

import pytest
from read_files import only, read, reason

from graphrag_pipeline.core.extras import missing_modules
from graphrag_pipeline.ingest.reading import ReadDocument, supported_suffixes
from graphrag_pipeline.ingest.reading.code import CODE_SUFFIXES
from graphrag_pipeline.ingest.reading.formats import reader_versions
from graphrag_pipeline.ingest.reading.versions import VERSIONS

ROLLING = """WEBVTT
Kind: captions

NOTE of nobody

1
00:00:00.000 --> 00:00:02.000 align:start

Hester<00:00:00.500><c> Quill</c> went

00:00:02.000 --> 00:00:02.010
Hester Quill went

00:00:02.010 --> 00:00:04.000
Hester Quill went
to Ardglen &amp; met

00:00:04.000 --> 00:00:05.000
to Ardglen &amp; met
Bo Li there.

00:00:06.000 --> 00:00:07.000
<v Bo Li>Welcome!
"""
PAPER = r"""% draft
\documentclass[12pt]{article} \newcommand{\foo}[1]{bar #1}
\title{The {\em Tides} of M\"unster} \author{Hester Quill\thanks{Grant 7} \and Bo Li}
\begin{document}
\maketitle
\section{Intro to \textbf{tides}}\label{sec:a}
We saw 5\% of \emph{all}~\cite{x}. % a comment
See \href{https://x.org}{the site}\footnote{By Ann Bo.}, Erd\H{o}s and \'Etienne.
\begin{itemize}
\item First
\end{itemize}
With $h=3\cos t$ and \[ \frac{a+b}{2} \leq \alpha \]
\begin{verbatim}
% kept {x}
\end{verbatim}
\begin{tabular}{l|r}
\hline Name & Tons \\ \hline
Frida & 120 \\
\end{tabular}
\end{document}
not this
"""
GUIDE = """= The Guide
:toc:
// comment

== First
[source,java]
----
int x = 1;
----
* item
** https://x.org[the site], <<sec,the section>>

|===
|Name |Tons
|===
include::x.adoc[]
"""
NOTES = """#+TITLE: Log
#+AUTHOR: x
* TODO [#A] Meeting with Hester :work:
:PROPERTIES:
:ID: 1
:MAIN_SUPPLIER: [[https://x][Larch & Sons]]
:END:
See [[https://x][the site]].
#+BEGIN_SRC python
x = 1
#+END_SRC
"""
BOOK = """<!DOCTYPE book SYSTEM "http://x/y.dtd"><book><title>The Tides</title><chapter id="c">
<title>One</title><para>Hester <b>Quill</b>&nbsp;went
home.</para><pump name="P7" place="Ardglen"/></chapter></book>"""
SAVED = """From: <Saved>
Subject: Saved page
Snapshot-Content-Location: https://x.org/a
MIME-Version: 1.0
Content-Type: multipart/related; boundary="b"

--b
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

<html><body><p>M=C3=BCnster by Hester Quill.</p></body></html>
--b
Content-Type: image/png
Content-Location: https://x.org/a.png
Content-Transfer-Encoding: base64

iVBORw0KGgo=
--b--
"""
REFERENCES = """@string{jt = "Journal of Tides"} @comment{nothing}
@article{quill99, author = {Quill, Hester and {The Tide Office} and Bo Li}, month = may,
  title = "The {T}ides of M{\\"u}nster", journal = jt # { B}, year = 1999,}
@book(second, title={Second})
"""
MEETING = """BEGIN:VCALENDAR
BEGIN:VEVENT
UID:1@x
DTSTART;TZID=Europe/Berlin:20240501T100000
SUMMARY:Meeting\\, Ardglen
ORGANIZER;CN="Hester Quill":mailto:h@x
ATTENDEE;CN="Li, Bo":mailto:b@x
DESCRIPTION:On the
  lease.
BEGIN:VALARM
DESCRIPTION:Reminder
END:VALARM
END:VEVENT
END:VCALENDAR
"""
CARD = """BEGIN:VCARD
N:Quill;Hester;;;
FN:Hester Quill
ORG:Tide Office;Survey
NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Met in K=C3=B6ln=
 and Bonn
END:VCARD
"""
WALK = """<?xml version="1.0"?>
<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><metadata><name>Harbour walk</name>
<author><name>Ebba Storm</name></author></metadata>
<wpt lat="58.97" lon="5.73"><name>Old Lighthouse</name><desc>By Olaf Brandt</desc></wpt>
<trk><name>Round</name><trkseg>
<trkpt lat="58.9" lon="5.7"><time>2024-05-04T08:00:01Z</time></trkpt>
<trkpt lat="58.8" lon="5.6"><time>2024-05-04T09:12:00Z</time></trkpt></trkseg></trk></gpx>"""
HARBOURS = """<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>Harbours</name>
<Style><Icon><href>http://x/y.png</href></Icon></Style><Folder><name>North</name>
<Placemark><name>Quay 4</name><description><![CDATA[Owned by <b>Nordlys AS</b>.]]></description>
<ExtendedData><Data name="Depth"><value>7 m</value></Data></ExtendedData>
<Point><coordinates> 5.73,58.97,0 </coordinates></Point></Placemark>
<Placemark><name>Quay 5</name><Point><coordinates>5.7,58.9,1.2.3</coordinates></Point></Placemark>
</Folder></Document></kml>"""
REFERENCES_OF_RIS = """TY  - JOUR
AU  - Storm, Ebba
AU  - Brandt, Olaf, Jr.
TI  - Tides of the Fjord
PY  - 2021/05/3/Spring
AB  - Tides were measured
for nine years.
ER  -

TY  - BOOK
A1  - Lind, Petra
T1  - Dams
ER  - """
CAMT = """<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><GrpHdr>
<MsgId>M1</MsgId></GrpHdr><Stmt><Id>S1</Id><ElctrncSeqNb>12</ElctrncSeqNb><Acct><Id>
<IBAN>DE02120300000000202051</IBAN></Id><Ownr><Nm>Hafenverein Kiel</Nm></Ownr></Acct>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">80.50</Amt>
<CdtDbtInd>DBIT</CdtDbtInd></Bal>
<Ntry><Amt Ccy="EUR">120.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><BookgDt><Dt>2024-05-04</Dt></BookgDt>
<NtryDtls><TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs><RltdPties>
<Dbtr><Pty><Nm>Hafenverein Kiel</Nm></Pty></Dbtr><Cdtr><Pty><Nm>Stadtwerke Kiel AG</Nm></Pty></Cdtr>
</RltdPties><RmtInf><Ustrd>Strom Mai</Ustrd><Ustrd>Kunde 4711</Ustrd></RmtInf></TxDtls></NtryDtls>
</Ntry><Ntry><Amt Ccy="EUR">450.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><BookgDt><Dt>2024-05-05</Dt>
</BookgDt><NtryDtls>
<TxDtls><Amt Ccy="EUR">200.00</Amt><RltdPties><Dbtr><Nm>Ebba Storm</Nm></Dbtr></RltdPties></TxDtls>
<TxDtls><Amt Ccy="EUR">250.00</Amt><RltdPties><Dbtr><Nm>Olaf Brandt</Nm></Dbtr></RltdPties></TxDtls>
</NtryDtls></Ntry></Stmt></BkToCstmrStmt></Document>"""
MT940 = """:20:STARTUMS
:25:12030000/0000202051
:28C:12/1
:60F:C991230EUR1200,50
:61:2405040504D120,00N177NONREF
:86:177?00SEPA?20Rechnung 4711 vom 3. Mai 20?2124?22Danke?31DE021203
00000000202052?32Stadtwerke der Stadt Kiel A?33G
:61:991231CR450,N166NONREF
:86:Beitrag 1999
Ebba Storm
:62F:C240505EUR1530,50
-
"""
SOUND = {
    ".vtt": ROLLING,
    ".srt": "1\n00:00:01,000 --> 00:00:03,500\nWelcome, says\n<i>Dorrit</i>.\n\n2\n"
    "00:00:03,600 --> 00:00:06,000\nWe visit Corwen.\n",
    ".tex": PAPER,
    ".adoc": GUIDE,
    ".org": NOTES,
    ".emlx": "35\nFrom: a@x.org\nSubject: S\n\nHe sails.\n",
    ".vue": "<template><p>Hester</p></template>\n<script>\n// of boats\nrun()\n</script>\n",
    ".svelte": "<p>Hester</p>\n<style>\np { top: 0 }\n</style>\n",
    ".wiki": "'''Kelmouth''' is a [[town]].",
    ".dokuwiki": "====== One ======\n  - two ((three))\n^ a ^ b ^\n| [[c|d]] | ::: |\n",
    ".textile": 'h1. One\n\n## two\n|_. a |\\\\2. b |\n|/2. "c":/d | !e! |\nbc. f',
    ".tid": "title: Kelmouth\n\nIt is a town.",
    ".xml": BOOK,
    ".xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Hester</p></body></html>',
    ".mhtml": SAVED,
    ".bib": REFERENCES,
    ".ris": REFERENCES_OF_RIS,
    ".sta": MT940,
    ".mt940": MT940,
    ".gpx": WALK,
    ".kml": HARBOURS,
    ".1": ".TH HARBOUR 1\n.SH NAME\nharbour \\- count boats\n",
    ".po": 'msgid "Boat"\nmsgstr "Boot"\n',
    ".svg": "<svg><title>Marina</title><text>Berth 12</text></svg>",
    ".ged": "0 @I1@ INDI\n1 NAME Hans /Storm/\n1 BIRT\n2 PLAC Bergen\n",
    ".ics": MEETING,
    ".vcf": CARD,
    ".yaml": "# of nobody\nowner: Hester\nno: no\nwhen: 2024-05-01\n"
    "hosts: &h [a, !x b]\nmore: *h\n",
    ".toml": 'day = 2024-05-01\n[owner]\nname = "Hester"\n',
    ".log": "10:00 ERROR [pump] P7 failed\n10:01 P7 recovered\n",
}


def text_of(suffix: str) -> str:
    return only(read(f"a{suffix}", SOUND[suffix])).text


def parts_of(document: ReadDocument, kind: str) -> list[str]:
    return [document.text[b.start : b.end] for b in document.blocks if b.kind == kind]


def test_subtitles_are_what_is_said_once_by_whom():
    assert text_of(".vtt") == "Hester Quill went to Ardglen & met Bo Li there.\nBo Li: Welcome!"
    assert text_of(".srt") == "Welcome, says Dorrit.\nWe visit Corwen."
    assert "no subtitles" in reason(read("a.srt", "Only words."))


def test_latex_is_its_text_without_commands_comments_and_preamble():
    document = only(read("a.tex", PAPER))
    assert (document.title, document.metadata) == (
        "The Tides of Münster",
        {"author": "Hester Quill, Bo Li"},
    )
    assert parts_of(document, "heading") == ["# The Tides of Münster", "## Intro to tides"]
    assert parts_of(document, "code") == ["```\n% kept {x}\n```"]
    lines = [" ".join(line.split()) for line in document.text.split("\n") if line.strip()]
    for line in (
        "We saw 5% of all.",
        "See the site (By Ann Bo.), Erdős and Étienne.",
        "- First",
        "| Name | Tons |",
        "| Frida | 120 |",
    ):
        assert line in lines
    assert "h=3cos t" in document.text
    assert "(a+b)/2 ≤" in document.text
    assert not re.search(r"bar|Grant|not this|comment|draft|sec:a|\\", document.text)


def test_asciidoc_and_org_have_headings_code_and_words_of_links():
    guide, notes = only(read("a.adoc", GUIDE)), only(read("a.org", NOTES))
    assert parts_of(guide, "heading") == ["# The Guide", "## First"]
    assert parts_of(guide, "code") == ["```\nint x = 1;\n```"]
    assert parts_of(guide, "list") == ["- item\n  - the site, the section"]
    assert parts_of(guide, "table") == ["| Name | Tons |"]
    assert not re.search("toc|comment|include|source", guide.text)
    assert parts_of(notes, "heading") == ["# Log", "# Meeting with Hester"]
    assert (notes.title, parts_of(notes, "code")) == ("Log", ["```\nx = 1\n```"])
    assert "See the site." in notes.text
    assert not re.search("AUTHOR|PROPERTIES|ID|work", notes.text)
    assert "\nMain supplier: Larch & Sons\n" in notes.text


HEADED = ["| Harbour | Fee |", "| --- | --- |", "| Sarn | 12 |", "| Lund | 14 |"]
_ROWS = "Sarn & 12 \\\\ Lund & 14 \\\\"


@pytest.mark.parametrize(
    ("name", "table", "lines"),
    [
        (
            "a.adoc",
            "[options=header]\n|===\n|Harbour |Fee\n|Sarn |12\n|Lund |14\n|===",
            HEADED,
        ),
        ("a.adoc", "|===\n|Harbour |Fee\n\n|Sarn\n|12\n\n|Lund\n|14\n|===", HEADED),
        (
            "a.adoc",
            '[%header,cols="1,2"]\n|===\n|Harbour\n|Fee\n|Sarn ^|12\n|Lund\n|14\n|===',
            HEADED,
        ),
        ("a.adoc", "|===\n|Sarn |12\n|Lund |14\n|===", HEADED[2:]),
        ("a.adoc", "[cols=2*]\n|===\n|Sarn |12\n2+|of 2024\n|===", [HEADED[2], "| of 2024 |  |"]),
        ("a.tex", f"\\toprule Harbour & Fee \\\\ \\midrule {_ROWS} \\bottomrule", HEADED),
        ("a.tex", f"\\hline\nHarbour & Fee \\\\ \\hline\\hline {_ROWS} \\hline", HEADED),
        ("a.tex", f"Harbour & Fee \\\\ \\endhead {_ROWS}", HEADED),
        ("a.tex", f"\\hline {_ROWS} \\hline", HEADED[2:]),
        (
            "a.tex",
            "Sarn & \\begin{tabular}{l}a \\\\ \\hline b & c\\end{tabular} \\\\",
            ["| Sarn | a b c |"],
        ),
        (
            "a.tex",
            "& \\multicolumn{2}{c}{2024} & \\multicolumn{2}{c}{2025} \\\\ \\cmidrule(lr){2-3}"
            "Harbour & boats & tons & boats & tons \\\\ \\midrule Sarn & 1 & 2 & 3 & 4 \\\\",
            [
                "| Harbour | 2024 boats | 2024 tons | 2025 boats | 2025 tons |",
                "| --- | --- | --- | --- | --- |",
                "| Sarn | 1 | 2 | 3 | 4 |",
            ],
        ),
    ],
)
def test_tables_keep_the_head_that_names_their_columns(name, table, lines):
    inside = f"\\begin{{tabular}}{{lr}}{table}\\end{{tabular}}" if name == "a.tex" else table
    text = only(read(name, f"Before.\n\n{inside}\n\nAfter |x|.")).text
    assert [line for line in text.split("\n") if line] == ["Before.", *lines, "After |x|."]


def test_xml_is_the_text_of_its_elements_in_order_and_opens_nothing():
    document = only(read("a.xml", BOOK))
    said = "The Tides\n\nOne\nHester Quill went home.\nname: P7, place: Ardglen"
    assert (document.title, document.text) == ("The Tides", said)
    assert parts_of(document, "heading") == ["The Tides", "One"]
    assert text_of(".xhtml") == "Hester"
    inside = "<!DOCTYPE l [<!ENTITY a {}><!ENTITY b 'B'>]><l>Of &a;.</l>"
    for entity in ("'&b;&b;'", f"'{'a' * 300}'"):
        assert "declares entities" in reason(read("a.xml", inside.format(entity)))
    assert only(read("a.xml", inside.format('"Hester <i>Quill</i>"'))).text == "Of Hester Quill."
    assert only(read("a.xml", inside.format('SYSTEM "file:///etc/passwd"'))).text == "Of ."
    grown = f"<!DOCTYPE l [<!ENTITY a '{'b' * 200}'>]><l>{'&a;' * 1_000}</l>"
    assert "as long" in reason(read("a.xml", grown))
    assert "deep" in reason(read("a.xml", "<a>" * 10_000))
    assert "not well-formed" in reason(read("a.xml", "<a>"))


FEED = """<rss version="2.0"><channel><title>Harbour news</title><item><title>Crane arrives</title>
<pubDate>Wed, 12 Mar 2025</pubDate><description><![CDATA[<p>Of <b>Kranverk</b>.</p>]]></description>
</item><item><title>Berth sold</title><pubDate>Thu, 13 Mar 2025</pubDate></item></channel></rss>"""
ORDERS = """<orders xmlns:x="urn:x"><order id="17" date="2024-02-01"><customer>Ann Lee</customer>
<item sku="A1" qty="3">Winch</item><item sku="B2" qty="1">Buoy</item></order>
<order id="18" date="2024-02-03"><customer>Bo Li</customer></order></orders>"""


def test_xml_of_records_is_read_with_all_its_attributes():
    winches, other = read("a.xml", ORDERS).documents
    assert (winches.key, other.key) == ("17", "18")
    lines = winches.text.split("\n")
    for line in ("customer: Ann Lee", "date: 2024-02-01", "item.1.name: Winch", "item.2.qty: 1"):
        assert line in lines
    crane, berth = read("a.xml", FEED).documents
    assert (crane.title, berth.title) == ("Crane arrives", "Berth sold")
    assert "pubDate: Wed, 12 Mar 2025\ndescription: Of Kranverk." in crane.text
    assert crane.metadata["title"] == "Harbour news"


def test_a_property_list_is_read_as_the_json_that_says_the_same():
    inside = "<key>Name</key><string>Kelm Tides</string><key>Depth</key><integer>8</integer>"
    inside += "<key>Open</key><true/><key>Icon</key><data>QUJD</data>"
    inside += "<key>Quays</key><array><string>West</string><string>East</string></array>"
    listed = only(read("a.plist", f'<plist version="1.0"><dict>{inside}</dict></plist>'))
    as_json = '{"Name": "Kelm Tides", "Depth": "8", "Open": true, "Quays": ["West", "East"]}'
    assert listed == only(read("a.json", as_json))


def test_xml_of_prose_stays_one_text():
    chapters = (
        "<c n='{}'><p>Hester Quill went home at noon.</p><p>Bo Li stayed on the quay.</p></c>"
    )
    book = f"<b>{chapters.format(1)}{chapters.format(2)}</b>"
    assert only(read("a.xml", book)).text.count("Hester Quill went home at noon.") == 2
    mixed = "<b><l n='1'>See <x>Bo Li</x> now</l><l n='2'>Or <x>Ann Lee</x></l></b>"
    assert only(read("a.xml", mixed)).text == "See Bo Li now\nOr Ann Lee"


def test_a_saved_page_is_the_page():
    document = only(read("a.mhtml", SAVED))
    assert document.text == "Münster by Hester Quill."
    assert (document.title, document.metadata) == ("Saved page", {"address": "https://x.org/a"})


def test_yaml_and_toml_are_read_as_the_json_that_says_the_same():
    said = '{"owner": "Hester", "no": "no", "when": "2024-05-01", "hosts": ["a", "b"]'
    as_json = only(read("a.json", said + ', "more": ["a", "b"]}'))
    assert only(read("a.yaml", SOUND[".yaml"])) == as_json
    as_json = only(read("a.json", '{"day": "2024-05-01", "owner": {"name": "Hester"}}'))
    assert only(read("a.toml", SOUND[".toml"])) == as_json
    assert [d.title for d in read("a.yml", "- name: Ada\n- name: Bo\n").documents] == ["Ada", "Bo"]
    assert len(read("a.yaml", "a: x\n---\na: y\n").documents) == 2


def test_yaml_that_stands_for_far_more_than_it_is_is_refused_at_once():
    rows = ["a0: &a0 [x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    start = time.process_time()
    assert "aliases" in reason(read("a.yaml", "\n".join(rows)))
    assert "deep" in reason(read("a.yaml", "a: &a [*a]"))
    assert "deep" in reason(read("a.yaml", "[" * 5_000))
    assert time.process_time() - start < 5


def test_yaml_with_keys_that_are_lists_says_them_in_words():
    document = only(read("a.yaml", "? [Hester, Bo Li]\n: friends\n? {port: Corwen}\n: open\n"))
    assert document.text == "Hester, Bo Li: friends\nport, Corwen: open"


@pytest.mark.parametrize(
    "rows",
    [
        "# Whose it is\nowner: {{ .Values.owner }}\n{{- if .Values.port }}\nport: 1\n{{- end }}",
        "# Whose it is\nowner:\n\tname: Hester",
        "# Whose it is\ntitle: Quays: a report",
        "# Whose it is\nowner: [Hester",
    ],
)
@pytest.mark.parametrize("ending", ["yaml", "toml"])
def test_a_config_that_is_none_is_its_text_with_comments_as_prose(rows: str, ending: str):
    document = only(read(f"a.{ending}", rows))
    assert document.text == rows
    (block,) = document.blocks
    assert (block.kind, document.text[block.start :]) == ("code", rows.partition("is")[2])


def test_a_graph_of_graphviz_is_text_and_a_template_of_word_is_named_as_one():
    graph = '// Who sails where\ndigraph g { "Astrid" -> "Bergen"; }'
    assert [only(read(f"a.{ending}", graph)).text for ending in ("dot", "gv")] == [graph] * 2
    for data in (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), b"PK\x03\x04" + bytes(99)):
        assert "save it as docx" in reason(read("a.dot", data))


def test_entries_of_bibliographies_calendars_and_contacts_are_records_with_their_people():
    article, book = read("a.bib", REFERENCES).documents
    assert (article.key, article.title, book.key) == ("quill99", "The Tides of Münster", "second")
    for line in ("author.1: Hester Quill", "author.2: The Tide Office", "author.3: Bo Li"):
        assert line in article.text.split("\n")
    assert "journal: Journal of Tides B\nyear: 1999" in article.text.replace("month: May\n", "")
    meeting = only(read("a.ics", MEETING))
    assert (meeting.key, meeting.title) == ("1@x", "Meeting, Ardglen")
    assert meeting.metadata["starts"] == "2024-05-01T10:00:00"
    for line in ("organizer: Hester Quill", "attendee: Bo Li", "description: On the lease."):
        assert line in meeting.text.split("\n")
    card = only(read("a.vcf", CARD))
    assert card.title == "Hester Quill"
    assert "organization: Tide Office\ndepartment: Survey\nnote: Met in Köln and Bonn" in card.text


def test_a_reference_says_what_stands_after_it_in_the_file():
    article, whole = read(
        "a.bib",
        """@inproceedings{vik_20, author={Vik, Una}, title={Cranes}, crossref={conf_20}, year=2021}
        @proceedings{conf_20, title={Port Days}, year=2020, editor={Berg, Bo},
        publisher=pub # { Ltd}}
        @String(pub = np) @string{np = {Nordic Press}} @string{np = "Other Press"}""",
    ).documents
    assert set(article.text.split("\n")) == {
        *(
            "title: Cranes",
            "author: Una Vik",
            "booktitle: Port Days",
            "publisher: Nordic Press Ltd",
        ),
        *(
            "editor: Bo Berg",
            "crossref: conf_20",
            "year: 2021",
            "id: vik_20",
            "type: inproceedings",
        ),
    }
    assert "publisher: Nordic Press Ltd" in whole.text


def test_every_ending_in_the_list_of_formats_is_read_and_no_other_is():
    page = (Path(__file__).parents[1] / "docs/how-to/run.md").read_text()
    table = page.partition("## What is read")[2].partition("\n\n`.xlsx`")[0]
    cells = [row.split(" | ")[0] for row in table.split("\n") if row.startswith("| `.")]
    listed = {ending for cell in cells for ending in re.findall(r"`(\.\w+)`", cell)}
    assert listed - CODE_SUFFIXES == supported_suffixes() - CODE_SUFFIXES
    from test_fuzzing import SOUND as OTHERS

    alike = {".htm": ".html", ".markdown": ".md", ".xlsm": ".xlsx", ".ndjson": ".jsonl"}
    alike |= {".mht": ".mhtml", ".yml": ".yaml", ".text": ".txt", ".debian": ".log"}
    alike |= {".asciidoc": ".adoc", ".tab": ".tsv", ".psv": ".csv"}
    alike |= dict.fromkeys((".geojson", ".jsonld"), ".json")
    alike |= dict.fromkeys((".mdx", ".qmd", ".rmd"), ".md")
    alike |= dict.fromkeys((".rss", ".atom", ".opml", ".enex", ".fb2", ".plist"), ".xml")
    alike |= dict.fromkeys((".ini", ".cfg"), ".toml")
    alike |= dict.fromkeys((".conf", ".properties", ".patch", ".diff", ".weechatlog"), ".log")
    alike |= {".out": ".log", ".err": ".log", ".mbx": ".mbox"}
    alike |= {".mediawiki": ".wiki"}
    alike |= {**dict.fromkeys((f".{n}" for n in (*"023456789", "man")), ".1"), ".pot": ".po"}
    alike |= {".docm": ".docx", ".pptm": ".pptx", ".ppsx": ".pptx"}
    others = {".rtf", ".xls", ".msg"} if missing_modules("legacy") else set()
    for ending in sorted(listed - CODE_SUFFIXES - others):
        sound = {**OTHERS, **SOUND}[alike.get(ending, ending)]
        assert read(f"a.md{ending}", sound).documents, ending


def test_batches_with_files_that_were_refused_before_are_read_again_and_no_others():
    for suffix in SOUND:
        assert reader_versions([".txt", suffix]) != reader_versions([".txt"])
    assert (
        reader_versions([".txt", ".py", ".csv"])
        == f"-records{VERSIONS['records']}-text{VERSIONS['text']}"
    )


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=YEARLY", "every year"),
        (
            "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO,TH;UNTIL=20261231T000000Z",
            "every 2 weeks on Monday, Thursday until 2026-12-31",
        ),
        ("FREQ=MONTHLY;COUNT=10;BYDAY=-1FR", "every month on the last Friday 10 times"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,31", "every month on day 1, 31"),
        (
            "freq=yearly;bymonth=1,12;byday=2SU",
            "every year on the second Sunday in January, December",
        ),
    ],
)
def test_a_repetition_is_told_in_words(rule, words) -> None:
    assert repetition(rule) == words


@pytest.mark.parametrize(
    "rule",
    [
        *("FREQ=MONTHLY;BYSETPOS=-1;BYDAY=MO,TU", "FREQ=OFTEN", "INTERVAL=2", "daily"),
        *("FREQ=YEARLY;BYMONTH=0", "FREQ=YEARLY;BYMONTH=13", "FREQ=MONTHLY;BYMONTHDAY=-1"),
        *("FREQ=MONTHLY;BYDAY=6MO", "FREQ=DAILY;INTERVAL=x", "FREQ=DAILY;COUNT=0"),
        "FREQ=DAILY;UNTIL=tomorrow",
    ],
)
def test_a_repetition_that_words_cannot_tell_stays_as_it_stands(rule) -> None:
    assert repetition(rule) == rule


def repetition(rule: str) -> str:
    event = MEETING.replace("UID:", f"RRULE:{rule}\nUID:")
    return only(read("meeting.ics", event)).text.partition("\nrepeats: ")[2].partition("\n")[0]


@pytest.mark.parametrize("suffix", [".tex", ".bib", ".vtt", ".adoc", ".org", ".ics"])
def test_what_opens_and_never_closes_takes_no_more_than_its_length(suffix):
    start = time.process_time()
    for unit in ("{", "\\begin{itemize}", "\\footnote{", "@a{b,c={", "$", "[[", "|", "\\frac{a}{"):
        read(f"a{suffix}", unit * (50_000 // len(unit)))
    assert time.process_time() - start < 5


@pytest.mark.parametrize("name", ["a.txt", "a.log", "README"])
def test_files_written_into_addresses_are_no_text(name):
    picture = "data:image/png;base64," + 400 * "iVBORw0KGgo"
    document = only(read(name, f"The quay ({picture}) is old. data:image/png;base64, begins."))
    assert document.text == "The quay () is old. data:image/png;base64, begins."


def test_the_kind_of_an_entry_of_a_bibliography_is_no_name():
    entries = [
        f"@{kind}{{k{n}, title={{Tides of Sea {n}}}}}"
        for n, kind in enumerate(["incollection", "article", "incollection", "article"])
    ]
    documents = read("refs.bib", "\n".join(entries)).documents
    kinds = {b.kind for d in documents for b in d.blocks if "type: " in d.text[b.start : b.end]}
    assert kinds == {"value"}
    assert [d.metadata["type"] for d in documents[:2]] == ["incollection", "article"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_words_that_lines_break_are_whole(newline):
    text = (
        "The har-\nbour master of Ber-\ngen, well-known here, is well-\nknown in Alsace-\n"
        "Lorraine and re-\nceived it.\n"
    )
    assert only(read("scan.txt", text.replace("\n", newline))).text == (
        "The harbour\nmaster of Bergen,\nwell-known here, is well-known\nin Alsace-Lorraine\n"
        "and received\nit."
    )
    assert only(read("scan.txt", "The har\u00ad\nbour.")).text == "The harbour."


@pytest.mark.parametrize(
    "text", ["Bergen-\nOslo and its rail-\nway", "a-\nb c-\nd e-\nf g-\nh", "x = 1 -\n2 -\n3 -\n4"]
)
def test_a_dash_at_the_end_of_a_line_stays_where_words_are_not_broken(text: str):
    assert only(read("note.txt", text)).text == text


def test_words_broken_by_a_blank_are_whole_where_the_text_has_them_otherwise():
    text = (
        "The har- bour and its informa- tion for Ber- gen. State- of-the- art LLM- based cranes "
        "are time- and cost-saving, well- known and rel- evant. Harbour, information, Bergen, "
        "relevant are known as well in the harbour."
    )
    assert only(read("paper.txt", text)).text == (
        "The harbour and its information for Bergen. State-of-the-art LLM-based cranes are "
        "time- and cost-saving, well-known and relevant. Harbour, information, Bergen, relevant "
        "are known as well in the harbour."
    )


@pytest.mark.parametrize(
    "text",
    [
        "Vor- und Nachteile, Haupt- oder Neben- sowie Ein- und Ausgang: Vorund und Einund.",
        "He was- he said- you know- not there. Washe? I- I mean the- the boat.",
        "- one\n- two\n- three- four\n",
    ],
)
def test_dashes_before_a_blank_stay_where_few_words_are_known_otherwise(text: str):
    assert only(read("talk.txt", text)).text == text.strip()


def test_fields_side_by_side_are_on_lines_of_theirs():
    text = "Number: 4711      Month: May 2024\nOwner: Ida Brandt\tPort: Corwen, at 10:30   sharp\n"
    assert only(read("a.txt", text)).text == (
        "Number: 4711\nMonth: May 2024\nOwner: Ida Brandt\nPort: Corwen, at 10:30   sharp"
    )
    prose = "He said: this   and that: so it is."
    assert only(read("a.txt", prose)).text == prose


def test_places_and_tracks_of_maps_are_records():
    light, walk = read("walk.gpx", WALK).documents
    assert light.title == "Old Lighthouse"
    assert "description: By Olaf Brandt\nlatitude: 58.97\nlongitude: 5.73" in light.text
    assert light.metadata["author"] == "Ebba Storm"
    assert "begins: 2024-05-04T08:00:01Z\nends: 2024-05-04T09:12:00Z" in walk.text
    quay, _ = read("harbours.kml", HARBOURS).documents
    assert quay.text == (
        "name: Quay 4\ndescription: Owned by Nordlys AS.\nDepth: 7 m\n"
        "folder: Harbours / North\nlatitude: 58.97\nlongitude: 5.73"
    )
    assert "no places" in reason(read("a.kml", "<kml><Document/></kml>"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_entries_of_ris_are_those_of_a_bibliography(newline):
    article, book = read("a.ris", "\ufeff" + REFERENCES_OF_RIS.replace("\n", newline)).documents
    assert article.text == (
        "title: Tides of the Fjord\ntype: article\nauthor.1: Ebba Storm\n"
        "author.2: Olaf Brandt Jr.\nyear: 2021-05-03\n"
        "abstract: Tides were measured for nine years."
    )
    assert book.text == "title: Dams\ntype: book\nauthor: Petra Lind"
    assert "no entries" in reason(read("a.ris", "Some words."))


def test_bookings_of_banks_are_records_with_who_is_paid_or_pays():
    statement, paid, first, second = read("camt.xml", CAMT).documents
    assert "owner: Hafenverein Kiel" in statement.text
    assert "closing balance: -80.50 EUR" in statement.text
    assert paid.text == (
        "owner: Hafenverein Kiel\ndate: 2024-05-04\namount: -120.00 EUR\n"
        "payee: Stadtwerke Kiel AG\npurpose: Strom Mai Kunde 4711\naccount: DE02120300000000202051"
    )
    assert "amount: 200.00 EUR\npayer: Ebba Storm" in first.text
    assert "amount: 250.00 EUR\npayer: Olaf Brandt" in second.text
    statement, paid, got = read("may.sta", MT940).documents
    assert "opening balance: 1200.50 EUR" in statement.text
    for said in (
        "payee: Stadtwerke der Stadt Kiel AG",
        "date: 2024-05-04\namount: -120.00 EUR",
        "purpose: Rechnung 4711 vom 3. Mai 2024 Danke",
    ):
        assert said in paid.text
    assert "date: 1999-12-31\namount: 450 EUR" in got.text
    assert "purpose: Beitrag 1999 Ebba Storm" in got.text
    assert "no bookings" in reason(read("a.sta", "Some words."))
