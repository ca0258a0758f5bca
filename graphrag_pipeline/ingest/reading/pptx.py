"""Presentations by python-pptx."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.archives import (
    bytes_of,
    open_archive,
    own_title,
    properties,
    require_plain_xml,
)
from graphrag_pipeline.ingest.reading.charts import chart_markup
from graphrag_pipeline.ingest.reading.extras import require_extra
from graphrag_pipeline.ingest.reading.html import joined_pages, parse_html
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)

_MOST_ELEMENTS = 400_000  # lxml and python-pptx take about 0.5 kB for each
_TYPES = "[Content_Types].xml"
"""It tells a show, `.ppsx`, from a presentation; python-pptx reads the second only."""
_FURNITURE = frozenset(("DATE", "FOOTER", "SLIDE_NUMBER", "HEADER"))


def read_pptx(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a presentation: titles of slides as headings, texts, tables, charts and notes.

    Its slides are the pages of the document. Dates, footers and slide numbers are left out.
    """
    parts = open_archive(data, options, kind="a presentation", suffix=".pptx")
    require_plain_xml(parts, _MOST_ELEMENTS)
    about = properties(parts, "docProps/core.xml")
    kinds = parts.get(_TYPES, b"").replace(b".slideshow.", b".presentation.")
    file = bytes_of({**parts, _TYPES: kinds})
    with require_extra("pptx", "office", "pptx"):
        from pptx import Presentation
    presentation = Presentation(file)
    page, starts = joined_pages([parse_html("".join(_slide(s))) for s in presentation.slides])
    if not page.text:
        raise Unreadable("the presentation holds no text")
    title = own_title(about) or page.heading
    return whole_document(path, page.text, title, about, page.blocks, starts)


def _slide(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and title.has_text_frame:
        yield f"<h2>{_escaped(title.text_frame.text)}</h2>"
    for shape in _flat(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            yield from _shape(shape)
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        paragraphs = [paragraph.text for paragraph in notes.paragraphs if paragraph.text.strip()]
        if paragraphs:
            yield "<p>Notes:</p>" + "".join(f"<p>{_escaped(text)}</p>" for text in paragraphs)


def _flat(shapes: Iterable[Any]) -> Iterator[Any]:
    """Yield the shapes, those of groups too, in their order."""
    pending = list(shapes)[::-1]
    while pending:
        shape = pending.pop()
        if hasattr(shape, "shapes"):
            pending.extend(list(shape.shapes)[::-1])
        else:
            yield shape


def _shape(shape: Any) -> Iterator[str]:
    if shape.is_placeholder and shape.placeholder_format.type.name in _FURNITURE:
        return
    if getattr(shape, "has_table", False):
        tags = itertools.chain(["th"] if shape.table.first_row else [], itertools.repeat("td"))
        rows = (
            "".join(_cell(tag, cell) for cell in row.cells if not cell.is_spanned)
            for tag, row in zip(tags, shape.table.rows, strict=False)
        )
        yield "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
    elif getattr(shape, "has_chart", False):
        yield from chart_markup(shape.chart.part.blob)
    elif shape.has_text_frame:
        texts = [p.text for p in shape.text_frame.paragraphs if p.text.strip()]
        tag = "li" if shape.is_placeholder and len(texts) > 1 else "p"
        items = "".join(f"<{tag}>{_escaped(text)}</{tag}>" for text in texts)
        yield f"<ul>{items}</ul>" if tag == "li" else items


def _cell(tag: str, cell: Any) -> str:
    spans = f" rowspan={cell.span_height} colspan={cell.span_width}" * cell.is_merge_origin
    return f"<{tag}{spans}>{_escaped(cell.text)}</{tag}>"


def _escaped(text: str) -> str:
    return html.escape(text.replace("\v", "\n"), quote=False).replace("\n", "<br>")


PPTX = FileFormat(read_pptx, versions.of("office", "HTML"))
