"""Files become clean text, and whatever is wrong with them becomes a reason."""

import csv
import io
import json
import os
import stat
import subprocess
import sys
import time
import zipfile
from datetime import datetime
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from read_files import only, read, reason

from conftest import examples
from graphrag_pipeline.ingest.reading import (
    ReadDocument,
    ReadingOptions,
    ReadResult,
    read_file,
    supported_suffixes,
)
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cleaning import clean_text
from graphrag_pipeline.ingest.reading.code import CODE_SUFFIXES
from graphrag_pipeline.ingest.reading.markdown import split_front_matter
from graphrag_pipeline.ingest.reading.records import unique_keys

TRANSCRIPTS = Path(__file__).parents[2] / "shared" / "data" / "podcast" / "transcripts.zip"


def blocks(document: ReadDocument) -> list[tuple[str, str]]:
    return [(b.kind, document.text[b.start : b.end]) for b in document.blocks]


def texts(result: ReadResult) -> dict[str, str]:
    return {document.key: document.text for document in result.documents}


def reasons(result: ReadResult) -> dict[str, str]:
    return {refused.key: refused.reason for refused in result.quarantined}


def make_pdf(pages: list[list[str]], info: str = "", trailer: str = "") -> bytes:
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [%s] >>"
        % " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages))),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        shown = "\n".join(f"({line}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td\n{shown}\nET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< {info} >>")
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    return out + (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n"
        f"<< /Size {size} /Root 1 0 R /Info {len(objects)} 0 R {trailer} >>\n"
        f"startxref\n{len(out)}\n%%EOF"
    ).encode("latin-1")


WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def make_docx(body: str, core: str = "", extra: dict[str, bytes] | None = None) -> bytes:
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/>'
        "</w:style>"
        for n in (1, 2)
    )
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
        'content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" '
        f'Type="{office}" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f"<w:document {WORD}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": f"<w:styles {WORD}>{styles}</w:styles>",
    }
    if core:
        parts["docProps/core.xml"] = (
            '<c:coreProperties xmlns:c="x" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"{core}</c:coreProperties>"
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (parts | (extra or {})).items():
            archive.writestr(name, content)
    return buffer.getvalue()


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def make_parquet(**columns) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


# Files


@pytest.mark.parametrize(
    ("first", "heading", "title"),
    [
        ("The Decline of the Herring Fleet", "Abstract", "The Decline of the Herring Fleet"),
        ("We count boats and we sell them.", "Abstract", "Abstract"),
        ("The Decline of the Fleet", "Herring of the North", "Herring of the North"),
    ],
)
def test_a_heading_of_a_part_is_no_title(first, heading, title):
    data = make_docx(paragraph(first) + paragraph(heading, "Heading1") + paragraph("We count."))
    assert only(read("a.docx", data)).title == title


def test_a_file_on_disk_is_read_and_titled_by_its_name(tmp_path):
    path = tmp_path / "annual_report_2023.TXT"
    path.write_bytes(b"Sales rose.\r\nCosts fell.\r\n")
    expected = ReadDocument("", "Annual report 2023", "Sales rose.\nCosts fell.", {})
    assert only(read_file(path, ReadingOptions())) == expected


def test_bytes_already_read_are_used_instead_of_the_disk(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("on disk")
    assert only(read_file(path, ReadingOptions(), data=b"given")).text == "given"


def test_a_vanished_file_is_quarantined(tmp_path):
    assert "no longer there" in reason(read_file(tmp_path / "gone.txt", ReadingOptions()))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_quarantined(tmp_path):
    path = tmp_path / "secret.txt"
    path.write_text("secret")
    path.chmod(stat.S_IWUSR)
    assert "permission" in reason(read_file(path, ReadingOptions()))


def test_an_error_of_the_operating_system_is_quarantined(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("text")

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert "permission" in reason(read_file(path, ReadingOptions()))


def test_what_is_not_a_regular_file_is_quarantined_without_opening_it(tmp_path):
    (tmp_path / "folder.txt").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    for name in ("folder.txt", "pipe.txt"):
        assert "regular file" in reason(read_file(tmp_path / name, ReadingOptions()))


def test_a_path_that_cannot_exist_is_quarantined():
    assert "read from disk" in reason(read_file(Path("a\0b.txt"), ReadingOptions()))


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "empty"), (b" \r\n\t", "white space"), (b"\xef\xbb\xbf \n", "no text")],
)
def test_a_file_without_text_is_quarantined(content, why):
    assert why in reason(read("a.txt", content))


def test_an_over_large_file_is_quarantined_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "large.txt"
    path.write_bytes(b"x" * 101)
    monkeypatch.delattr(Path, "read_bytes")
    assert "max_file_mb" in reason(read_file(path, ReadingOptions(max_file_bytes=100)))
    assert "101 bytes" in reason(read("a.txt", b"x" * 101, max_file_bytes=100))
    assert only(read("a.txt", b"x" * 100, max_file_bytes=100)).text == "x" * 100


def test_an_unsupported_suffix_is_quarantined_with_those_supported():
    why = reason(read("slides.key", b"PK"))
    assert ".key" in why
    assert all(suffix in why for suffix in (supported_suffixes() - CODE_SUFFIXES))
    assert reason(read("core", b"all:")).startswith("files without a suffix are not read")


def test_code_and_texts_without_an_ending_are_read_by_name():
    made = only(read("GNUmakefile", "# Builds the marsh pump.\nall:\n\tcc pump.c\n"))
    assert made.title == "GNUmakefile"
    assert made.metadata == {"language": "Make"}
    assert [made.text[b.start : b.end].strip() for b in made.blocks] == ["all:\n\tcc pump.c"]
    assert only(read("Dockerfile", "FROM debian\n")).metadata == {"language": "Dockerfile"}
    for name in ("README", "LICENSE", "copyright"):
        assert only(read(name, "The pump of the marsh.")).text == "The pump of the marsh."


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG"),
        (make_pdf([["x"]]), "a PDF"),
        (bytes(range(256)) * 40, "binary"),
        (b"\0\1\2\3" * 100, "binary"),
    ],
)
def test_binary_content_behind_a_text_suffix_is_quarantined(content, why):
    assert why in reason(read("a.txt", content))


# Characters

FRENCH = "Le café de Noël était près de l’église – où l’été…"
CHINESE = "人工智能是计算机科学的一个分支,它企图了解智能的实质。" * 3
TAIWANESE = "人工智慧是電腦科學的一個分支,它企圖了解智慧的實質。" * 3
JAPANESE = "人工知能はコンピュータ科学の一分野であり、知能の本質を理解しようとする。" * 3


@pytest.mark.parametrize(
    ("text", "encoding", "mark"),
    [
        (FRENCH, "utf-8", b""),
        (FRENCH, "utf-8", b"\xef\xbb\xbf"),
        (FRENCH, "utf-16-le", b"\xff\xfe"),
        (FRENCH, "utf-16-be", b"\xfe\xff"),
        (FRENCH, "utf-16-le", b""),
        (CHINESE, "utf-16-le", b"\xff\xfe"),
        (FRENCH, "utf-32-le", b"\xff\xfe\0\0"),
        (FRENCH, "cp1252", b""),
        ("Grüße aus München", "latin-1", b""),
        ("café", "latin-1", b""),
        (CHINESE, "gb18030", b""),
        (TAIWANESE, "big5", b""),
        (JAPANESE, "shift_jis", b""),
    ],
)
def test_an_encoding_is_detected(text, encoding, mark):
    assert only(read("a.txt", mark + text.encode(encoding))).text == text


def test_a_configured_encoding_is_used_unless_a_mark_says_otherwise():
    assert only(read("a.txt", "Łódź".encode("cp1250"), encoding="cp1250")).text == "Łódź"
    assert only(read("a.txt", b"\xef\xbb\xbf" + "Łódź".encode(), encoding="cp1250")).text == "Łódź"


@pytest.mark.parametrize("encoding", ["nonsense", "base64"])
def test_an_unknown_encoding_is_refused_when_configured(encoding):
    with pytest.raises(ValueError, match=encoding):
        ReadingOptions(encoding=encoding)


def test_a_broken_byte_in_utf8_costs_one_character_not_the_file():
    assert only(read("a.txt", CHINESE.encode() + b"\xff!")).text == CHINESE + "\ufffd!"


def test_control_characters_and_surrogates_are_removed_and_newlines_are_one():
    assert clean_text(" a\0\x07b\x7f\x9fc\ud800\ufeff\u00add\r\ne\rf\u2028g\x0ch\t ") == (
        "abcd\ne\nf\ng\nh"
    )


def test_nuls_in_a_text_file_are_removed():
    assert only(read("a.txt", b"hello\0 world\x07")).text == "hello world"


def test_unpaired_surrogates_in_utf16_do_not_survive():
    data = b"\xff\xfe" + "some words ".encode("utf-16-le") + b"\x00\xd8" + b"a\0"
    only(read("a.txt", data)).text.encode()


@pytest.mark.parametrize("suffix", ["txt", "csv", "html", "json"])
def test_what_is_not_seen_divides_no_name(suffix):
    name = "\x1b[1;32mNord\u200bwind\x1b[0m \u202aGm\u00adbH\u2060"
    written = {
        "txt": name,
        "csv": f"name,town\n{name},Rydal\n",
        "html": f"<p>{name}</p>",
        "json": json.dumps({"name": name, "town": "Rydal"}),
    }
    assert "Nordwind GmbH" in only(read(f"a.{suffix}", written[suffix])).text


@given(st.text(st.characters()))
def test_cleaning_is_encodable_and_changes_clean_text_no_more(text):
    cleaned = clean_text(text)
    cleaned.encode()
    assert clean_text(cleaned) == cleaned


# Markdown


def test_markdown_is_kept_without_front_matter_and_comments():
    document = only(
        read(
            "a.md",
            "---\ntitle: 'The plan'\nauthor: Ada, the first\nyear: 2024\ndraft: false\n"
            "day: 2024-05-01\nat: 10:30\nversion: '010'\nabout: >\n  Two\n  lines\nempty:\n"
            "tags:\n  - x\n  - y\nkinds: [a, 'b']\nby: {name: Ada, mail: [x, y]}\n"
            "---\n# Heading\n\n<!-- a\nb -->\n"
            "Some *text* <!-- c -->here.\n\n```\n<!-- code -->\n# no heading\n```\n",
        )
    )
    assert document.title == "The plan"
    assert document.metadata == {
        "author": "Ada, the first",
        "year": 2024,
        "draft": False,
        "day": "2024-05-01",
        "at": "10:30",
        "version": "010",
        "about": "Two lines",
        "tags": "x, y",
        "kinds": "a, b",
        "by": "name: Ada, mail: x, y",
    }
    expected = "# Heading\n\nSome *text* here.\n\n```\n<!-- code -->\n# no heading\n```"
    assert document.text == expected


@pytest.mark.parametrize(
    "text",
    ["```\n# code\n```\n## The **plan** ##\nText", "The plan\n===\nText", "#tag\n# The plan"],
)
def test_the_first_heading_is_the_title_of_markdown(text):
    assert only(read("a.markdown", text)).title.replace("*", "") == "The plan"


def test_an_empty_line_of_breaks_divides_paragraphs():
    page = "<p>The pump was built by<br>Ida Brandt.<br>\n<br/>It leaks.<ul><li>a<br><br>b</ul>"
    assert only(read("a.html", page)).text == (
        "The pump was built by\nIda Brandt.\n\nIt leaks.\n\n- a\nb"
    )


def test_front_matter_in_toml_is_metadata():
    text = """+++
title = "The plan"
date = 2024-05-01
draft = false
weight = 7
tags = ["pumps", "mills"]
[params]
author = "Ida Brandt"
+++
# Heading
Text."""
    read_as = only(read("a.md", text))
    assert (read_as.title, read_as.text) == ("The plan", "# Heading\nText.")
    assert read_as.metadata == {
        "date": "2024-05-01",
        "draft": False,
        "weight": 7,
        "tags": "pumps, mills",
        "params": "author: Ida Brandt",
    }


@pytest.mark.parametrize("broken", ["a = ", "a" * 70_000 + " = 1", "a = " + "[" * 30_000])
def test_front_matter_in_broken_toml_is_text(broken):
    assert "More." in only(read("a.md", f"+++\n{broken}\n+++\nMore.")).text
    assert only(read("a.md", f"+++\n{broken}\n+++\nMore.")).metadata == {}


def test_ruled_lines_are_not_front_matter():
    text = "---\nJust a sentence.\n---\nMore."
    assert split_front_matter(text) == ({}, text)
    assert only(read("a.md", text)).text == text


@pytest.mark.parametrize(
    "front_matter",
    [
        "author: Ada: the first",
        "tags: [a, b",
        "a: &a x\nb: *a",
        "- a\n- b",
        "a: " + "x" * 70_000,
        "a: " + "[" * 20_000,
        "a: " + "{x: " * 10_000,
        "? " * 20_000,
        "!!python/object/apply:os.system [ls]",
    ],
    ids=lambda text: text[:12],
)
def test_front_matter_that_is_broken_or_hostile_is_text(front_matter):
    text = f"---\n{front_matter}\n---\n# The plan\nMore."
    start = time.process_time()
    document = only(read("a.md", text))
    assert time.process_time() - start < 5
    assert document.text == clean_text(text)
    assert (document.title, document.metadata) == ("The plan", {})


def test_tags_of_front_matter_make_no_objects():
    document = only(read("a.md", "---\na: !!python/name:os.system\nb: !!int x\n---\nText"))
    assert document.metadata == {"b": "x"}


def test_a_comment_never_closed_is_text():
    assert only(read("a.md", "One <!-- two\nthree")).text == "One <!-- two\nthree"


def test_markdown_of_front_matter_only_is_quarantined():
    assert "no text" in reason(read("a.md", "---\ntitle: x\n---\n"))


# Web pages


def test_the_main_text_of_a_page_is_read():
    document = only(
        read(
            "a.html",
            """<!DOCTYPE html><html><head><title>News &amp; more</title>
            <meta name="author" content="Ada"><style>p {}</style><script>"<p>no</p>"</script>
            </head><body><nav><a>Home</a></nav><header>Top</header>
            <h1>Big   news</h1><p>First <b>bold</b>&nbsp;text &lt;3 &eacute;<br>line two
            <p>Second<!-- no --><noscript>no</noscript></p>
            <ul><li>one<li>two</ul><table><tr><th>a<th>b<tr><td><p>1</p></td><td></td><td>3</td>
            </table><div hidden>no</div><p style="display: none">no</p>
            <span aria-hidden="true">no</span><aside>no</aside>
            <pre>x = 1
  y = 2</pre><template>no</template><footer>no</footer></body></html>""",
        )
    )
    assert document.title == "News & more"
    assert document.metadata == {"author": "Ada"}
    assert document.text == (
        "Big news\n\nFirst bold text <3 é\nline two\n\nSecond\n\n- one\n- two\n\n"
        "| a | b |\n| --- | --- |\n| 1 |  | 3 |\n\n```\nx = 1\n  y = 2\n```"
    )
    assert blocks(document) == [
        ("heading", "Big news"),
        ("list", "- one\n- two"),
        ("table", "| a | b |\n| --- | --- |\n| 1 |  | 3 |"),
        ("code", "```\nx = 1\n  y = 2\n```"),
    ]


PROSE = "Barley is sown in March and cut in August, when the last of the rain has gone. " * 3


@pytest.mark.parametrize(
    "around",
    [
        '<div class="navheader"><table><tr><td><a href="a">Prev</a><td>Up</table></div>',
        '<div class="related" role="navigation"><h3>Navigation</h3><p>Oats »</p></div>',
        '<div class="sphinxsidebar"><h3>Table of Contents</h3><p>Barley</p></div>',
        '<ol class="breadcrumb"><li>Home</li><li>Farm</li></ol>',
        '<a class="skip-link" href="#main">Skip to content</a>',
        '<div role="banner">The Farm</div>',
        "<footer><p>Copyright the farm</p></footer>",
        "<header>The Farm <a href=/>Home</a></header>",
        '<div id="cookie-banner">We use cookies.</div>',
        '<div class="site-footer"><p>Copyright</p></div>',
        "<p><a href=a rel=prev>Oats</a> <a href=b rel=next>Rye</a></p>",
        '<ul><li><a href="#a">One</a><li><a href="#b">Two</a><li><a href="#c">Three</a></ul>',
        "<table><tr><td>"
        + "<td>".join(f'<a href="{n}.html">Field {n}</a>' for n in range(5))
        + "</table>",
        "<aside><p>Other farms</p></aside>",
    ],
)
def test_what_stands_around_the_text_of_a_page_is_not_read(around):
    page = f"<title>Barley</title>{around}<h1>Barley</h1><p>{PROSE}</p>{around}"
    assert only(read("a.html", page)).text == f"Barley\n\n{PROSE.strip()}"


@pytest.mark.parametrize(
    "body",
    [
        f'<section id="navigation"><h1>Barley</h1><p>{PROSE}</p></section>',
        f'<div class="menu-layout sidebar"><h1>Barley</h1><p>{PROSE}</p></div>',
        f'<div id="header"><h1>Barley</h1><p>{PROSE}</p></div><p>{PROSE}</p>',
        f"<main><header><h1>Barley</h1></header><p>{PROSE}</p><aside>Note.</aside></main>",
        f"<nav><h1>Barley</h1><p>{PROSE * 3}</p></nav>",
        f"<h1>Barley</h1><p>{PROSE}</p><ul><li>See <a href=a>oats</a> for more of it</ul>",
    ],
)
def test_text_is_read_whatever_it_is_marked_as(body):
    document = only(read("a.html", body))
    assert document.text.startswith(f"Barley\n\n{PROSE.strip()}")
    assert document.text.count(PROSE.strip()) == body.count(PROSE)


def test_a_box_with_an_icon_is_no_table():
    icon = "<td rowspan='2'><img alt='[Note]' src='note.png'></td>"
    box = f"<table><tr>{icon}<th>Note</th></tr><tr><td><p>Barley is wet.</p></td></tr></table>"
    page = only(read("a.html", f"<h1>Barley</h1><p>{PROSE}</p>{box}<p>{PROSE}</p>"))
    assert "\n\nNote\nBarley is wet.\n\n" in page.text
    assert "|" not in page.text


def test_items_of_lists_have_the_numbers_that_a_page_shows():
    within = "<ul><li>of hemp<li>of steel</ul>"
    body = f"<ol><li>Call.<li>Bring lines {within}</li><li><p>Rest.</p></ol><p>{PROSE}</p>"
    later = "<ol start='4'><li>Pay.<li>Go.</ol><ol type=a><li>tea</ol>"
    later += "<ol style='list-style:none'><li>A</ol>"
    text = only(read("a.html", f"<h1>Mooring</h1>{body}{later}<ul><li>end</ul>")).text
    items = [line for line in text.split("\n") if line.lstrip()[:1] in set("-12345a")]
    numbered = ["1. Call.", "2. Bring lines", "  - of hemp", "  - of steel", "3. Rest.", "4. Pay."]
    assert items == [*numbered, "5. Go.", "a) tea", "- A", "- end"]


def test_a_list_of_links_that_the_text_announces_is_read():
    links = "".join(f'<li><a href="{n}.html">Field {n}</a>' for n in range(9))
    for wrapped in (f"<ul>{links}</ul>", f"<div class=toctree><ul>{links}</ul></div>"):
        text = only(read("a.html", f"<h1>Fields</h1><p>{PROSE} They are:</p>{wrapped}")).text
        assert text.count("- [Field ") == 9
        assert "Field" not in only(read("a.html", f"<p>{PROSE}</p>{wrapped}")).text


def test_only_the_main_part_of_a_page_is_read_and_the_title_above_it():
    page = f"<h1>Barley</h1><p>Farm news</p><main><p>{PROSE}</p></main><p>Write to us.</p>"
    assert only(read("a.html", page)).text == f"Barley\n\n{PROSE.strip()}"


def test_a_main_part_with_hardly_any_text_does_not_stand_for_the_page():
    assert PROSE.strip() in only(read("a.html", f"<main>Loading</main><p>{PROSE}</p>")).text


def test_headings_lose_their_permalinks_and_titles_the_name_of_their_site():
    page = f"""<title>Sowing barley — The farm's pages</title>
        <h1>Sowing barley<a class="headerlink" href="#sow">¶</a></h1><p>{PROSE}</p>
        <dl><dt class="sig">sow(field)<a href="#f">¶</a></dt><dd>{PROSE}</dd></dl>"""
    document = only(read("a.html", page))
    assert (document.title, "¶" in document.text) == ("Sowing barley", False)
    assert blocks(document) == [("heading", "Sowing barley"), ("code", "sow(field)")]


def test_code_with_fences_in_it_has_a_longer_one():
    document = only(read("a.html", "<pre>```\nx\n```</pre>"))
    assert document.text == "````\n```\nx\n```\n````"


def test_a_page_laid_out_in_a_table_is_no_table():
    page = f"<table><tr><td><h1>Barley</h1><td><pre>x</pre><p>{PROSE}</table>"
    assert [kind for kind, _ in blocks(only(read("a.html", page)))] == ["heading", "code"]


def test_a_page_without_title_is_titled_by_its_first_heading():
    assert only(read("a.htm", "<p>x<h2>The plan</h2>y")).title == "The plan"


@pytest.mark.parametrize(
    "markup",
    [
        "<nav>menu</nav>kept",
        "<div><nav>menu</div>kept",
        "<p hidden>no<p>kept",
        "<svg><path d='M'/><g><title>no</title></g></svg>kept",
        '<img alt="a > b">kept',
        "kept<!-- never closed",
        "kept<script>never closed",
        '<div hidden="">no</div>kept',
        "</div>kept</p>",
        '<a title="never closed>kept',
    ],
)
def test_text_beside_what_is_dropped_is_kept(markup):
    assert only(read("a.html", markup)).text == "kept"


@pytest.mark.parametrize("word", ["three", "none", "hidden"])
def test_a_word_that_could_hide_is_text_outside_of_a_tag(word):
    page = f'<p>One <span class="menu">two</span> <b>{word}</b> four</p>'
    assert only(read("a.html", page)).text == f"One two {word} four"


def test_a_page_declares_its_encoding():
    page = '<meta charset="windows-1251"><p>Москва</p>'
    assert only(read("a.html", page.encode("cp1251"))).text == "Москва"


def test_a_page_without_readable_text_is_quarantined():
    assert "no readable text" in reason(read("a.html", "<script>x</script>"))


@pytest.mark.parametrize(
    "hostile",
    [
        "<div>" * 300_000,
        "<b><p>" * 200_000,
        "<table><tr><td>" * 100_000,
        "<" * 500_000,
        "<!--" * 300_000,
        "<a '\"" * 300_000,
        "<a " + "b=c " * 300_000,
        "</div>" * 300_000,
        "<script>" * 200_000,
        "&" * 500_000,
        "<!-- - -->" * 100_000,
        "<title>a</title>" * 100_000,
        "<div>" * 150_000 + "</p>" * 150_000,
        "<p>" + "".join(f"<b a={n}>" for n in range(50_000)) + "</p>" + "<p>x</p>" * 50_000,
    ],
    ids=lambda hostile: hostile[:8] + hostile[-4:],
)
def test_hostile_pages_take_linear_time(hostile):
    start = time.process_time()
    result = read("a.html", "<p>kept</p>" + hostile)
    assert time.process_time() - start < 8
    assert result.documents[0].text.startswith("kept")


# Tables


def with_said(key, title, text, said, metadata):
    """Return a record with its short values said below its own text."""
    start = len(text) + 2
    block = Block(start, start + len(said), "value")
    return ReadDocument(key, title, f"{text}\n\n{said}", metadata, (block,))


def test_csv_rows_are_documents_with_the_other_columns_as_metadata():
    result = read(
        "a.csv",
        '\ufeffID,Title,Text,Year\nx,One,"first, with\r\nnewline ""q""",2024\n,Two,second,\n',
    )
    assert result.quarantined == []
    assert result.documents == [
        with_said("x", "One", 'first, with\nnewline "q"', "Year: 2024", {"Year": "2024"}),
        ReadDocument("row-2", "Two", "second", {}),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_the_separator_of_a_csv_is_found(delimiter, suffix):
    out = io.StringIO()
    rows = [["id", "text"], ["1", "a, b; c\td | e"], ["2", "f, g"]]
    csv.writer(out, delimiter=delimiter).writerows(rows)
    expected = {"1": "a, b; c\td | e", "2": "f, g"}
    assert texts(read(f"a{suffix}", out.getvalue())) == expected


TABLES = {
    "lines above the header": (
        "Extract of 2025-01-06\nStation;Operator\n17;Brunner\n18;Medina Oil\n",
        ["Extract of 2025-01-06", "Station: 17\nOperator: Brunner", "Station: 18"],
    ),
    "escapes": (
        '"name","boss"\n"332","Surname\\, Firstname"\n"Tove","foo (\\"Ragna Moe\\")"\n',
        ["name: 332\nboss: Surname, Firstname", 'name: Tove\nboss: foo ("Ragna Moe")'],
    ),
    "backslashes that are none": (
        'name,path\n"Ada, B","C:\\new"\nTove,\\srv\\x\n',
        ["name: Ada, B\npath: C:\\new", "name: Tove\npath: \\srv\\x"],
    ),
    "no header": (
        "Liv Strand,Oslofjord,41\nPer Haug,Tromvik,39\n",
        [
            "column-1: Liv Strand\ncolumn-2: Oslofjord\ncolumn-3: 41",
            "column-1: Per Haug\ncolumn-2: Tromvik\ncolumn-3: 39",
        ],
    ),
    "one record and no header": ("Liv,41\n", ["column-1: Liv\ncolumn-2: 41"]),
    "years as names": ("Land,2020,2021\nNorway,12,14\n", ["Land: Norway\n2020: 12\n2021: 14"]),
    "codes as names": ("id,1001\n7,120\n", ["id: 7\n1001: 120"]),
    "a year in a record": ("Liv,1985\nPer,1990\n", ["column-1: Liv", "column-1: Per"]),
    "a header of two rows": (
        "Port,2024,,2025,\n,Tons,Boats,Tons,Boats\nElvik,80,2,75,3\n",
        ["Port: Elvik\n2024 Tons: 80\n2024 Boats: 2\n2025 Tons: 75\n2025 Boats: 3"],
    ),
    "a column without a name": (",name,age\nx,Anna,\ny,Bob,32\n", ["name: Anna", "name: Bob"]),
    "Excel's line": ("sep=;\r\na;b\r\n1,5;2\r\n", ["a: 1,5\nb: 2"]),
    "a table of one column": ("text\nHello\nfoo\n", ["Hello", "foo"]),
}


@pytest.mark.parametrize("kind", TABLES)
def test_the_head_of_a_table_is_told_from_its_rows(kind):
    table, expected = TABLES[kind]
    found = list(texts(read("a.csv", table)).values())
    assert len(found) == len(expected)
    assert all(
        set(want.split("\n")) <= set(text.split("\n"))
        for want, text in zip(expected, found, strict=True)
    ), found


def test_merged_cells_of_a_workbook_name_each_column_below_them():
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Catch", 0)
    for row in (
        ["Catch"],
        [],
        ["Port", "Weight"],
        ["", "Tons", "Boats"],
        ["Elvik", 75, 3],
        ["Vik", "=B5*2", 1],
    ):
        sheet.append(row)
    sheet.merge_cells("B3:C3")
    sheet.merge_cells("A3:A4")
    file = io.BytesIO()
    book.save(file)
    found = list(texts(read("a.xlsx", file.getvalue())).values())
    assert found == [
        "Catch",
        "Port: Elvik\nWeight Tons: 75\nWeight Boats: 3",
        "Port: Vik\nWeight Tons: =B5*2\nWeight Boats: 1",
    ]


def test_a_csv_without_a_text_column_loses_nothing():
    document = only(read("a.csv", "name,city,note\nAda,London,\n"))
    assert (document.key, document.title) == ("row-1", "Ada")
    assert document.text == "name: Ada\ncity: London"


def test_bad_rows_of_a_csv_are_quarantined_and_the_rest_is_kept():
    result = read(
        "a.csv", 'id,text\n1,one\n2,\n3,too,many\n4,"bad" quote\n5,"never closed\n6,six\n7,seven\n'
    )
    assert texts(result) == {"1": "one", "6": "six", "7": "seven"}
    why = reasons(result)
    assert set(why) == {"2", "row-3", "row-4", "row-5"}
    assert "no text in any of the columns" in why["2"]
    assert "3 fields where the header has 2" in why["row-3"]
    assert "quotes in line 6" in why["row-5"]


def test_a_csv_field_may_be_very_large():
    assert only(read("a.csv", f"text\n{'x' * 200_000}\n")).text == "x" * 200_000


def test_a_csv_of_a_header_only_is_quarantined():
    assert "no records" in reason(read("a.csv", "id,text\n"))


@pytest.mark.parametrize("line", ['"a', '"""', ',"', '"",""x', 'x"",""","'])
def test_hostile_csv_quotes_take_bounded_time(line):
    start = time.process_time()
    read("a.csv", "id,text\n" + f"{line}\n" * 50_000)
    assert time.process_time() - start < 8


def test_repeated_ids_are_made_unique_and_nothing_is_lost():
    result = read("a.csv", "id,text\nx,1\nx,2\nx~2,3\nx,4\n")
    assert texts(result) == {"x": "1", "x~3": "2", "x~2": "3", "x~4": "4"}


@given(st.lists(st.sampled_from(["x", "x~2", "x~3", "row-1", "y"])))
def test_unique_keys_are_unique_and_keep_what_was_first(keys):
    unique = unique_keys(keys)
    assert len(set(unique)) == len(keys)
    assert all(unique[keys.index(key)] == key for key in keys)


def test_a_json_object_is_a_document():
    document = only(read("a.json", '{"id": 7, "title": "T", "content": "C", "n": 1.5, "b": true}'))
    assert document == with_said("", "T", "C", "n: 1.5", {"id": "7", "n": 1.5, "b": True})


def test_a_json_object_without_text_column_is_its_leaves():
    document = only(read("a.json", '{"a": {"b": ["x", {"c": 1}]}, "d": null, "e": "y"}'))
    assert document.text == "a.b.1: x\na.b.2.c: 1\ne: y"


def test_a_json_array_of_objects_is_its_records():
    result = read(
        "my_news.json",
        '[{"id": "a", "text": ["p", "q"], "tags": ["t"]}, {"x": 1}, 5, {"body": "z", "n": null}]',
    )
    assert result.documents == [
        ReadDocument("a", "My news: a", "p\n\nq", {"tags": '["t"]'}),
        ReadDocument("row-4", "My news: row-4", "z", {}),
    ]
    assert set(reasons(result)) == {"row-2", "row-3"}


def test_a_json_array_of_strings_is_its_documents():
    result = read("a.json", '["one", " ", "three"]')
    assert texts(result) == {"row-1": "one", "row-3": "three"}
    assert set(reasons(result)) == {"row-2"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"a": ', "not valid JSON"),
        ("[]", "no records"),
        ("{}", "no text"),
        ("12", "bare value"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_json_without_documents_is_quarantined(content, why):
    assert why in reason(read("a.json", content))


def test_surrogates_escaped_in_json_do_not_survive():
    document = only(read("a.json", r'{"text": "a\ud800 \ud83d\ude00", "k\udc00": "v\udfff"}'))
    assert document.text == "a 😀\n\nk: v"
    assert document.metadata == {"k": "v"}


def test_metadata_can_be_written_as_json():
    content = '{"text": "a", "x": NaN, "y": Infinity, "z": 99999999999999999999, "o": {"p": [NaN]}}'
    json.dumps(only(read("a.json", content)).metadata, allow_nan=False)


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".json"])
def test_a_bad_line_of_jsonl_is_quarantined_and_the_rest_is_kept(suffix):
    result = read(f"a{suffix}", '{"id": "a", "text": "x\u2028y"}\r\n\n{"text": \n"plain"\n[]\n')
    assert texts(result) == {"a": "x\ny", "row-4": "plain"}
    why = reasons(result)
    assert "not valid JSON" in why["row-3"]
    assert set(why) == {"row-3", "row-5"}


def test_parquet_rows_are_documents():
    when = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns"))
    data = make_parquet(
        id=[1, 2], text=["one", None], when=when, score=[0.5, 1.0], raw=[b"a", b"b"]
    )
    result = read("a.parquet", data)
    expected = {"when": "2023-11-14 22:13:20.123456789", "score": 0.5}
    said = "when: 2023-11-14 22:13:20.123456789\nscore: 0.5"
    assert result.documents == [with_said("1", "A: 1", "one", said, expected)]
    assert set(reasons(result)) == {"2"}


def test_parquet_times_with_a_zone_are_read():
    when = pa.array([datetime(2024, 5, 6)], pa.timestamp("us", tz="Europe/Berlin"))
    assert "2024-05-06" in str(
        only(read("a.parquet", make_parquet(text=["x"], when=when))).metadata
    )


def test_parquet_is_bounded_by_what_it_unpacks_to():
    data = make_parquet(text=["x" * 10_000] * 1_000)
    assert len(data) < 100_000
    assert "max_file_mb" in reason(read("a.parquet", data, max_file_bytes=100_000))


def test_damaged_parquet_is_quarantined():
    data = make_parquet(text=["x" * 10_000])
    assert "damaged" in reason(read("a.parquet", data[:-20]))
    assert "damaged" in reason(read("a.parquet", b"not parquet"))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet"])
def test_ten_thousand_records_take_seconds_of_processor(suffix):
    rows = [
        {"id": n, "title": f"T{n}", "text": f"Text of {n}. " * 10, "y": n} for n in range(10_000)
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    content = {
        ".csv": out.getvalue().encode(),
        ".jsonl": "\n".join(map(json.dumps, rows)).encode(),
        ".json": json.dumps(rows).encode(),
        ".parquet": make_parquet(**{name: [row[name] for row in rows] for name in rows[0]}),
    }[suffix]
    start = time.process_time()
    result = read(f"a{suffix}", content)
    assert time.process_time() - start < 4
    assert len(result.documents) == 10_000


# PDF


def test_a_pdf_is_read_with_its_properties():
    info = "/Title (The plan) /Author (Ada) /CreationDate (D:20240102030405Z)"
    document = only(read("a.pdf", make_pdf([["First page."], ["Second page."]], info)))
    expected = {"author": "Ada", "date": "2024-01-02", "pages": 2}
    text = "First page.\n\nSecond page."
    assert document == ReadDocument("", "The plan", text, expected, page_starts=(0, 13))


def test_words_and_paragraphs_broken_over_lines_of_a_pdf_are_whole():
    lines = [
        "The committee met again to discuss the inter-",
        "national agreement on trade which had",
    ]
    lines += ["been signed in Geneva.", "A second paragraph follows here and it is"]
    text = only(read("a.pdf", make_pdf([[*lines, "long enough."]]))).text
    assert text == (
        "The committee met again to discuss the international agreement on trade which had "
        "been signed in Geneva.\nA second paragraph follows here and it is long enough."
    )


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - plan.doc", "plan.docx"])
def test_a_pdf_with_a_placeholder_for_a_title_is_named_by_its_file(title):
    pdf = make_pdf([["First page."]], f"/Title ({title})")
    assert only(read("the_plan.pdf", pdf)).title == "The plan"


def test_a_scanned_pdf_is_quarantined_and_its_scanned_pages_are_counted():
    assert "run OCR first" in reason(read("a.pdf", make_pdf([[], []])))
    assert only(read("a.pdf", make_pdf([["x"], []]))).metadata["pages_without_text"] == 1


def test_an_encrypted_pdf_is_quarantined():
    key = "<" + "00" * 32 + ">"
    encrypt = f"/Encrypt << /Filter /Standard /V 1 /R 2 /O {key} /U {key} /P -4 >> /ID [<00> <00>]"
    assert "encrypted" in reason(read("a.pdf", make_pdf([["x"]], trailer=encrypt)))


def test_a_damaged_pdf_is_quarantined():
    assert "damaged" in reason(read("a.pdf", b"%PDF-1.7 nothing"))


# Word


def test_a_word_document_is_read_in_order():
    cell = "<w:tc>{}</w:tc>".format
    row = f"<w:tr>{cell(paragraph('a'))}{cell(paragraph('b'))}</w:tr>"
    body = (
        paragraph("The plan", "Heading1")
        + paragraph("Before &amp; first.")
        + f"<w:tbl>{row}</w:tbl>"
        + paragraph("After.")
    )
    document = only(read("a.docx", make_docx(body, "<dc:creator>Ada</dc:creator>")))
    assert document.text == "The plan\n\nBefore & first.\n\n| a | b |\n\nAfter."
    assert (document.title, document.metadata) == ("The plan", {"author": "Ada"})
    assert blocks(document) == [("heading", "The plan"), ("table", "| a | b |")]


def test_the_title_property_of_a_word_document_comes_first():
    data = make_docx(paragraph("Heading", "Heading1"), "<dc:title>Property</dc:title>")
    assert only(read("a.docx", data)).title == "Property"


def test_a_word_document_is_bounded_by_what_it_unpacks_to():
    data = make_docx(paragraph("x" * 1_000_000))
    assert len(data) < 10_000
    said = reason(read("a.docx", data, max_file_bytes=100_000))
    assert "unpacks to" in said
    assert "input.max_file_mb allows (0.1 MB)" in said


def test_a_zip_bomb_is_refused_before_it_unpacks():
    start = time.process_time()
    assert "zip bomb" in reason(read("a.docx", make_docx("<w:p/>" * 1_000_000)))
    assert time.process_time() - start < 2


def test_a_word_document_of_too_many_elements_is_refused(monkeypatch):
    monkeypatch.setattr("graphrag_pipeline.ingest.reading.docx._MOST_ELEMENTS", 100)
    assert "elements" in reason(read("a.docx", make_docx(paragraph("x") * 100)))


def test_a_word_document_with_entities_of_its_own_is_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    doctype = f'<!DOCTYPE d [<!ENTITY e SYSTEM "file://{secret}">]>'
    xml = f"{doctype}<w:document {WORD}><w:body>{paragraph('&e;')}</w:body></w:document>"
    data = make_docx("", extra={"word/document.xml": xml.encode()})
    assert "DOCTYPE" in reason(read("a.docx", data))


def test_a_deeply_nested_word_document_does_not_crash():
    depth = 5_000
    nested = "<w:tbl><w:tr><w:tc>" * depth + paragraph("x") + "</w:tc></w:tr></w:tbl>" * depth
    assert "could not be read as docx" in reason(read("a.docx", make_docx(nested)))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (make_docx(""), "no text"),
        (b"no zip", "damaged"),
        (make_docx("<w:p>"), "could not be read as docx"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "without a password"),
    ],
)
def test_a_word_document_without_readable_text_is_quarantined(content, why):
    assert why in reason(read("a.docx", content))


# Everything

SOUND = {
    ".pdf": make_pdf([["Some text"]]),
    ".docx": make_docx(paragraph("Some text")),
    ".parquet": make_parquet(id=["a", "b"], text=["one", "two"]),
    ".json": b'[{"id": "a", "text": "one"}, "two"]',
    ".jsonl": b'{"id": "a", "text": "one"}\n"two"\n',
    ".csv": b'id,text\na,"one"\nb,two\n',
    ".html": b"<title>t</title><p>one<table><tr><td>two",
    ".md": b"---\ntitle: t\n---\n# one\n<!-- two -->",
}


def damaged(sound: bytes):
    cut = st.integers(0, len(sound))
    spliced = st.tuples(cut, st.binary(max_size=8), cut)
    return spliced.map(lambda parts: sound[: parts[0]] + parts[1] + sound[parts[2] :])


def contents(suffix: str):
    return st.binary(max_size=300) | damaged(SOUND.get(suffix, b"Plain words, and more."))


@pytest.mark.parametrize("suffix", sorted((supported_suffixes() - CODE_SUFFIXES) | {".py"}))
@examples(50)
@given(data=st.data())
def test_reading_never_raises_and_gives_only_clean_text(suffix, data):
    result = read(f"a{suffix}", data.draw(contents(suffix)))
    assert result.documents or result.quarantined
    for document in result.documents:
        assert document.text
        assert document.title
        assert clean_text(document.text) == document.text
        json.dumps(document.metadata, allow_nan=False, ensure_ascii=False).encode()
        f"{document.key}{document.title}{document.text}".encode()
    for refused in result.quarantined:
        assert refused.reason
        f"{refused.key}{refused.reason}".encode()


def test_heavy_libraries_are_not_imported_until_needed():
    code = (
        "import sys; import graphrag_pipeline.ingest.reading; "
        "print(set(sys.modules) & {'pyarrow', 'polars', 'pypdfium2', 'mammoth', 'pptx', "
        "'openpyxl', 'charset_normalizer', 'numpy'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_ten_thousand_small_files_take_two_seconds_of_processor(tmp_path):
    paths = [tmp_path / f"{n}.txt" for n in range(10_000)]
    for path in paths:
        path.write_bytes(b"A small file.\r\nWith two lines.")
    start = time.process_time()
    read_count = sum(len(read_file(path, ReadingOptions()).documents) for path in paths)
    assert time.process_time() - start < 2
    assert read_count == 10_000


@pytest.mark.shared_data
@pytest.mark.skipif(not TRANSCRIPTS.exists(), reason="../shared/data is not beside the checkout")
def test_every_podcast_transcript_is_read():
    with zipfile.ZipFile(TRANSCRIPTS) as archive:
        names = [name for name in archive.namelist() if name.endswith(".txt")]
        results = [read(name, archive.read(name)) for name in names]
    documents = [only(result) for result in results]
    assert len(documents) == 1_669
    assert not any("\r" in each.text or "\ufeff" in each.text for each in documents)
    assert not any("\ufffd" in each.text for each in documents)


def test_a_table_of_links_within_another_is_rows():
    cells = "".join(f'<td><a href="#{name}">\n{name}\n' for name in ("Messages", "Contacts"))
    page = f'<table><tr><table><a href="#x">{cells}'
    assert only(read("a.html", page)).text == "| Messages | Contacts |"
