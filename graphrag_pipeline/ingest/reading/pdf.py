"""PDF by pypdfium2: lines become paragraphs in their order of reading, without running heads."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    Quarantined,
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    readable_name,
    whole_document,
)
from graphrag_pipeline.ingest.reading.ocr import recognised
from graphrag_pipeline.ingest.reading.pdf_forms import with_facts, with_fields
from graphrag_pipeline.ingest.reading.pdf_layout import (
    Row,
    in_reading_order,
    without_running_heads,
)
from graphrag_pipeline.ingest.reading.pdf_lines import quarter_turns, read_pieces
from graphrag_pipeline.ingest.reading.pdf_rules import rules_of
from graphrag_pipeline.ingest.reading.pdf_tables import with_tables
from graphrag_pipeline.ingest.reading.pdf_text import rows_of, write_text

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_PDFIUM = threading.Lock()  # PDFium is not thread-safe
_PASSWORD_ERROR = 4
_NO_OCR = "set input.ocr to read them"
_NO_TEXT = "the PDF has no text layer: set input.ocr, or run OCR first"
_DATE = pattern_of(r"D:(\d{4})(\d{2})?(\d{2})?")
_PREFIX = pattern_of(r"^(?:Microsoft (?:Word|PowerPoint|Excel) - )+", re.I)
_PLACEHOLDER = pattern_of(
    r"(?:untitled|unbenannt|sans titre|title|document|presentation|powerpoint presentation|"
    r"(?:document|presentation|slide|layout|book|page|unknown|microsoft word)\s?\d*|\W*|"
    r"\(?anonymous\)?|untitled.*)",
    re.I,
)
_FILE_NAME = pattern_of(
    r"\.(?:docx?|odt|rtf|pptx?|xlsx?|tex|dvi|ps|p65|indd|qxd|html?|md|txt|pdf|pages|fm)$", re.I
)


def read_pdf(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one PDF; its title, author and date are those it names itself.

    Running heads and feet, and page numbers, are left out; columns are read one after the other.
    Where the title is a placeholder or a file's name, the largest heading of the first page is the
    title. Metadata also hold the number of `pages`, and of `pages_without_text` if any. Those that
    are pictures are read where OCR is on; where that gives no text, they are named as unreadable.
    """
    with _PDFIUM:
        document = _open(data)
        try:
            properties = document.get_metadata_dict()
            filled: list[str] = []
            pages = _pages(document, options, filled)
            pictures = [n for n, page in enumerate(pages) if not page and _is_picture(document, n)]
        finally:
            document.close()
    blank = [number for number, page in enumerate(pages) if not page]
    why = _NO_OCR
    if blank and options.ocr is not None:
        render = functools.partial(_image, data, options.ocr.most_pixels)
        try:
            for number, text in recognised(data, blank, render, options.ocr).items():
                pages[number] = rows_of(text)
            why = "OCR found no text on them"
        except Unreadable as error:
            if len(blank) == len(pages):
                raise
            why = str(error)
    if not any(pages):
        raise Unreadable(_NO_TEXT if options.ocr is None else "OCR found no text in the PDF")
    written = write_text(with_tables(without_running_heads(pages)))
    author = one_line(properties.get("Author", ""))
    metadata: dict[str, Scalar] = {
        "author": "" if _PLACEHOLDER.fullmatch(author) else author,
        "date": _date(properties.get("CreationDate", "")),
        "pages": len(pages),
    }
    if not all(pages):
        metadata["pages_without_text"] = sum(not page for page in pages)
    title = _title(properties, path) or written.heading
    blocks: Sequence[Block] = written.blocks
    if filled:  # a form that several have filled in has one title
        blocks = with_facts(written.text, blocks, filled)
        title = f"{title} ({readable_name(path)})" if title else ""
    result = whole_document(path, written.text, title, metadata, blocks, written.page_starts)
    if unread := [number + 1 for number in pictures if not pages[number]]:
        what = f"{'page' if len(unread) == 1 else 'pages'} {_ranges(unread)}"
        result.quarantined.append(Quarantined(what, f"scanned, without text: {why}"))
    return result


def _open(data: bytes) -> PdfDocument:
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        return PdfDocument(data)
    except PdfiumError as error:
        if error.err_code == _PASSWORD_ERROR:
            raise Unreadable("the PDF is encrypted: save it without a password") from None
        raise Unreadable("the PDF is damaged, or it is not a PDF") from None


def _image(data: bytes, most_pixels: int, number: int) -> bytes:
    """Return a page as a grey image (PGM) of 300 dots an inch, or as many as the pixels allow."""
    with _PDFIUM:
        document = _open(data)
        try:
            page = document[number]
            width, height = page.get_size()
            scale = min(300 / 72, (most_pixels / max(width * height, 1)) ** 0.5)
            # The library takes fractions too: only its annotation says int.
            grey = page.render(scale=scale, grayscale=True).to_numpy()  # type: ignore[arg-type]
            page.close()
        finally:
            document.close()
    rows, columns = grey.shape[:2]
    return b"P5 %d %d 255\n" % (columns, rows) + grey.tobytes()


def _pages(document: PdfDocument, options: ReadingOptions, filled: list[str]) -> list[list[Row]]:
    pages: list[list[Row]] = []
    document.init_forms()
    room = options.max_file_bytes
    for number in range(len(document)):
        page = document[number]
        text_page = page.get_textpage()
        turns = quarter_turns(text_page)
        drawn = read_pieces(text_page, turns, rules_of(page, turns))
        pieces = with_fields(document, page, drawn, turns, filled)
        text_page.close()
        page.close()
        pages.append(in_reading_order(pieces))
        room -= sum(len(row.text) for row in pages[-1])
        if room < 0:
            raise Unreadable(f"the PDF unpacks to more text than {options.allowed}")
    return pages


def _is_picture(document: PdfDocument, number: int) -> bool:
    """Whether a page without text shows a picture, and is not merely empty."""
    from pypdfium2 import raw

    page = document[number]
    try:
        return any(page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=2))
    finally:
        page.close()


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers in words.

    >>> _ranges([2, 5, 6, 7])
    '2, 5-7'
    """
    ends: list[list[int]] = []
    for number in numbers:
        if ends and ends[-1][-1] == number - 1:
            ends[-1] = [ends[-1][0], number]
        else:
            ends.append([number])
    return ", ".join("-".join(map(str, end)) for end in ends)


def _title(properties: dict[str, str], path: Path) -> str:
    """Return the title that the file names, "" if it is a placeholder or the name of a file."""
    title = _PREFIX.sub("", one_line(properties.get("Title", "")))
    is_stem = title.casefold() == path.stem.casefold() or ("_" in title and " " not in title)
    return "" if is_stem or _PLACEHOLDER.fullmatch(title) or _FILE_NAME.search(title) else title


def _date(value: str) -> str:
    match = _DATE.match(value)
    return "-".join(filter(None, match.groups())) if match else ""


PDF = FileFormat(read_pdf, versions.of("PDF"))
