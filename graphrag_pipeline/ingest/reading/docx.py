"""Word documents, by mammoth: pure Python and 0.7 MB, where python-docx with lxml is 14 MB."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from graphrag_pipeline.ingest.reading.html import parse_html
from graphrag_pipeline.ingest.reading.model import (
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    whole_document,
)

_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SUSPECT_BYTES, _SUSPECT_RATIO = 5_000_000, 100
_MOST_ELEMENTS = 1_000_000  # mammoth takes about 0.1 ms and 1 kB for each
_BACK_LINK = re.compile(r'<a href="#[^"<>]*-ref-[^"<>]*">↑</a>')
_PROPERTIES = {"title": "title", "creator": "author", "created": "date", "subject": "subject"}


def read_docx(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one Word document: headings, paragraphs, lists, tables and notes in their order.

    The parts of the archive may unpack to at most `max_file_bytes` of XML, together,
    and a zip bomb is refused before it unpacks.
    """
    if data.startswith(_OLD_OFFICE):
        raise Unreadable("encrypted, or an old .doc: save it as .docx without a password")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        raise Unreadable("the file is not a Word document, or it is damaged") from None
    with archive:
        _require_sound(archive, options)
        properties = _properties(archive)
    page = parse_html(_BACK_LINK.sub("", _as_html(data)))
    if not page.text:
        raise Unreadable("the document holds no text")
    title = str(properties.pop("title", "")) or page.heading
    return whole_document(path, page.text, title, properties)


def _require_sound(archive: zipfile.ZipFile, options: ReadingOptions) -> None:
    xml = [part for part in archive.infolist() if part.filename.endswith((".xml", ".rels"))]
    size, packed = sum(part.file_size for part in xml), sum(part.compress_size for part in xml)
    if size > options.max_file_bytes:
        raise Unreadable(
            f"the document unpacks to {size:,} bytes, more than input.max_file_mb allows"
        )
    if size > _SUSPECT_BYTES and size > _SUSPECT_RATIO * packed:
        raise Unreadable(f"the document unpacks to {size:,} bytes from {packed:,}: a zip bomb")
    if any(part.flag_bits & 1 for part in xml):
        raise Unreadable("encrypted: save it without a password")
    elements = sum(_elements(archive.read(part)) for part in xml)
    if elements > _MOST_ELEMENTS:
        raise Unreadable(f"the document has {elements:,} elements, more than {_MOST_ELEMENTS:,}")


def _elements(xml: bytes) -> int:
    if b"<!DOCTYPE" in xml[:4096].replace(b"\0", b""):
        raise Unreadable("a part of the document declares a DOCTYPE, which Word never does")
    return xml.count(b"<") - xml.count(b"</")


def _as_html(data: bytes) -> str:
    import mammoth

    ignore_images = mammoth.images.img_element(lambda _image: {})
    result = mammoth.convert_to_html(
        io.BytesIO(data), convert_image=ignore_images, external_file_access=False
    )
    return result.value


def _properties(archive: zipfile.ZipFile) -> dict[str, Scalar]:
    try:
        core = ElementTree.fromstring(archive.read("docProps/core.xml"))
    except (KeyError, ElementTree.ParseError):
        return {}
    pairs = ((_PROPERTIES.get(node.tag.rpartition("}")[2]), node.text) for node in core)
    return {name: text for name, text in pairs if name and text}
