"""PDF by pypdfium2: lines become paragraphs, words broken at line ends become whole."""

from __future__ import annotations

import functools
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.ingest.reading.cleaning import clean_text
from graphrag_pipeline.ingest.reading.model import (
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    whole_document,
)
from graphrag_pipeline.ingest.reading.ocr import recognised, tesseract_version

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_PDFIUM = threading.Lock()  # PDFium is not thread-safe
_PASSWORD_ERROR = 4
_NO_TEXT = "the PDF has no text layer: set input.ocr, or run OCR first"
_BROKEN_WORD = re.compile(r"(?<=[^\W\d_])(?:\ufffe[\r\n]*|-\r?\n)(?=[^\W\d_])")
_LIST_ITEM = re.compile(r"\s*(?:[-•*–▪◦‣]|\(?\w{1,3}[.)])\s")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")
_FULL_LINE = 0.75
_PLACEHOLDERS = ("untitled", "title", "document", "presentation", "powerpoint presentation")
_FILE_NAME = re.compile(
    r"^untitled|\.(?:docx?|odt|rtf|pptx?|xlsx?|tex|dvi|p65|indd|qxd|html?)$", re.I
)


def read_pdf(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one PDF: pages separated by a blank line, its title, author and date from the file.

    Metadata also hold the number of `pages`, and of `pages_without_text` (scanned ones) if any.
    """
    with _PDFIUM:
        document = _open(data)
        try:
            properties = document.get_metadata_dict()
            pages = _pages(document, options)
        finally:
            document.close()
    blank = [number for number, page in enumerate(pages) if not clean_text(page)]
    if blank and options.ocr is not None and (tesseract_version() or len(blank) == len(pages)):
        render = functools.partial(_image, data, options.ocr.most_pixels)
        for number, text in recognised(data, blank, render, options.ocr).items():
            pages[number] = text
    texts = [text for text in map(join_lines, pages) if text]
    if not texts:
        raise Unreadable(_NO_TEXT if options.ocr is None else "OCR found no text in the PDF")
    metadata: dict[str, Scalar] = {
        "author": properties.get("Author", ""),
        "date": _date(properties.get("CreationDate", "")),
        "pages": len(pages),
    }
    if len(texts) < len(pages):
        metadata["pages_without_text"] = len(pages) - len(texts)
    return whole_document(path, "\n\n".join(texts), _title(properties), metadata)


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


def _pages(document: PdfDocument, options: ReadingOptions) -> list[str]:
    pages: list[str] = []
    room = options.max_file_bytes
    for number in range(len(document)):
        page = document[number]
        text_page = page.get_textpage()
        pages.append(text_page.get_text_range())
        text_page.close()
        page.close()
        room -= len(pages[-1])
        if room < 0:
            raise Unreadable("the PDF unpacks to more text than input.max_file_mb allows")
    return pages


def join_lines(page: str) -> str:
    """Return the page with its lines joined to paragraphs, one a line.

    PDF keeps no paragraphs. A line goes on in the next one when it is about as long as the
    page's long lines, or ends inside a sentence that the next goes on with in lower case.
    """
    lines = [line.strip() for line in clean_text(_BROKEN_WORD.sub(_rejoined, page)).split("\n")]
    widths = sorted(len(line) for line in lines if line)
    full = _FULL_LINE * widths[len(widths) * 9 // 10] if widths else 0
    parts: list[str] = []
    previous = ""
    for line in lines:
        if parts:
            parts.append(_separator(previous, line, full))
        parts.append(line)
        previous = line
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip()


def _rejoined(match: re.Match[str]) -> str:
    after = match.string[match.end()]
    return "" if after.islower() else "-"


def _separator(line: str, following: str, full: float) -> str:
    if not line or not following or _LIST_ITEM.match(following):
        return "\n"
    goes_on = following[0].islower() and line[-1] not in ".!?:;"
    if len(line) < full and not goes_on:
        return "\n"
    if line.endswith("-") or (_CJK.match(line[-1]) and _CJK.match(following)):
        return ""
    return " "


def _title(properties: dict[str, str]) -> str:
    title = clean_text(properties.get("Title", "")).removeprefix("Microsoft Word - ")
    is_placeholder = title.lower() in _PLACEHOLDERS or _FILE_NAME.search(title)
    return "" if is_placeholder else title


def _date(value: str) -> str:
    match = _DATE.match(value)
    return "-".join(filter(None, match.groups())) if match else ""
