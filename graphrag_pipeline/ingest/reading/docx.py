"""Word documents, by mammoth: pure Python and 0.7 MB, where python-docx with lxml is 14 MB."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.archives import (
    bytes_of,
    open_archive,
    properties,
    require_plain_xml,
)
from graphrag_pipeline.ingest.reading.charts import chart_markup
from graphrag_pipeline.ingest.reading.docx_notes import comment_lines, page_lines
from graphrag_pipeline.ingest.reading.docx_numbers import with_marks, with_values
from graphrag_pipeline.ingest.reading.equations import with_equations
from graphrag_pipeline.ingest.reading.html import Page, parse_html
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)

_MOST_ELEMENTS = 1_000_000  # mammoth takes about 0.1 ms and 1 kB for each
_MOST_TITLE_WORDS = 20
_CHART = pattern_of(r"word/charts/chart\d{0,9}\.xml")
_SIMPLE_FIELD = pattern_of(rb"(</?)w:fldSimple(?=[\s/>])")
_BOX = pattern_of(r'<input [^<>]*type="checkbox"[^<>]*>')
_OF_TABLES = pattern_of(r"<(/?)(table|thead|tbody|tr|td|th)\b[^<>]*>")
_BACK_LINK = pattern_of(r'<a href="#[^"<>]*-ref-[^"<>]*">↑</a>')


def read_docx(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one Word document: headings, paragraphs, lists, tables and notes in their order.

    Charts, heads and feet of pages and comments follow at the end. The parts of the archive may
    unpack to at most `max_file_bytes` of XML, together; a zip bomb is refused before it unpacks.
    """
    parts = open_archive(data, options, kind="a Word document", suffix=".docx")
    require_plain_xml(parts, _MOST_ELEMENTS)
    about = properties(parts, "docProps/core.xml")
    marked = with_marks(parts)
    file = bytes_of({name: with_equations(_unfielded(xml)) for name, xml in marked.items()})
    charts = "".join(
        markup
        for name, xml in parts.items()
        if _CHART.fullmatch(name)
        for markup in chart_markup(xml)
    )
    body = _with_boxes(_without_inner_tables(_BACK_LINK.sub("", with_values(_as_html(file)))))
    around = [line for line in page_lines(parts) if html.escape(line) not in body]
    beside = "".join(f"<p>{html.escape(line)}</p>" for line in [*around, *comment_lines(parts)])
    page = parse_html(body + charts + beside)
    if not page.text:
        raise Unreadable("the document holds no text")
    title = str(about.pop("title", "")) or _title(page)
    return whole_document(path, page.text, title, about, page.blocks)


def _unfielded(xml: bytes) -> bytes:
    """Return a part in which the text of simple fields, which mammoth passes over, is kept."""
    return _SIMPLE_FIELD.sub(rb"\1w:smartTag", xml)


def _with_boxes(body: str) -> str:
    """Return a page on which it is text whether a box is ticked."""
    return _BOX.sub(lambda box: "☒ " if "checked=" in box[0] else "☐ ", body)


def _without_inner_tables(body: str) -> str:
    """Return a page on which a table within a cell is lines of text of that cell."""
    depth = 0

    def plain(tag: re.Match[str]) -> str:
        nonlocal depth
        is_table = tag[2] == "table"
        depth += is_table and not tag[1]
        is_inner = depth > 1
        depth -= is_table and bool(tag[1])
        return " <br>" if is_inner and tag[2] == "tr" else " " if is_inner else tag[0]

    return _OF_TABLES.sub(plain, body)


def _title(page: Page) -> str:
    """Return the first heading, or the first line where that only names a part: Abstract."""
    first = page.text.partition("\n")[0]
    names_part = " " not in page.heading.strip() and page.heading not in first
    is_title = 1 < len(first.split()) <= _MOST_TITLE_WORDS and first[-1].isalnum()
    return first if names_part and is_title else page.heading


def _as_html(file: io.BytesIO) -> str:
    import mammoth

    ignore_images = mammoth.images.img_element(lambda _image: {})
    result = mammoth.convert_to_html(file, convert_image=ignore_images, external_file_access=False)
    return result.value


DOCX = FileFormat(read_docx, versions.of("office", "HTML"))
