"""Books in EPUB: an archive of web pages, and a file that says in which order to read them."""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.parsers import expat

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.archives import (
    Parts,
    open_archive,
    properties_of,
    refuse_doctype,
)
from graphrag_pipeline.ingest.reading.html import joined_pages, parse_html
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)

_MOST_PACKAGE_BYTES = 5_000_000
_PAGES = ("application/xhtml+xml", "text/html")
_ASIDE = pattern_of(r"<(/?)aside\b")
"""A note or a box in a book; beside the text of a site it is none of it."""
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


def read_epub(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one book: its chapters in reading order, without the navigation page."""
    parts = open_archive(data, options, kind="an EPUB", suffix=".epub")
    _refuse_encrypted(parts)
    place = _package_place(parts)
    package = _xml(parts, place)
    chapters = [
        parse_html(_ASIDE.sub(r"<\1div", parts[name].decode("utf-8", "replace")))
        for name in _reading_order(package, posixpath.dirname(place))
        if name in parts
    ]
    book, _ = joined_pages(chapters)
    if not book.text:
        raise Unreadable("the book holds no text")
    about = properties_of(package)
    title = str(about.pop("title", "")) or book.heading
    return whole_document(path, book.text, title, about, book.blocks)


def _refuse_encrypted(parts: Parts) -> None:
    place = "META-INF/encryption.xml"
    if place not in parts:
        return
    methods = {
        node.get("Algorithm", "")
        for node in _xml(parts, place).iter()
        if node.tag.endswith("}EncryptionMethod")
    }
    if not methods <= set(_FONTS):
        raise Unreadable("the book is encrypted (DRM)")


def _package_place(parts: Parts) -> str:
    container = _xml(parts, "META-INF/container.xml")
    for node in container.iter():
        if node.tag.endswith("rootfile") and (place := node.get("full-path")):
            return place
    raise Unreadable("the file is not an EPUB: its container names no package")


def _xml(parts: Parts, name: str) -> ElementTree.Element:
    if name not in parts:
        raise Unreadable(f"the file is not an EPUB, or it is damaged: it has no {name[:100]}")
    xml = parts[name]
    if len(xml) > _MOST_PACKAGE_BYTES:
        raise Unreadable(f"{name[:100]} has more than {_MOST_PACKAGE_BYTES:,} bytes")
    try:
        refuse_doctype(xml)
        return ElementTree.fromstring(xml)
    except (ElementTree.ParseError, expat.ExpatError) as error:
        raise Unreadable(f"the book is damaged: {name[:100]} is no XML ({error})") from None


def _reading_order(package: ElementTree.Element, folder: str) -> list[str]:
    """Return the names of the pages of the spine, each once."""
    items = {node.get("id"): node for node in package.iter() if node.tag.endswith("}item")}
    spine = [node.get("idref") for node in package.iter() if node.tag.endswith("}itemref")]
    pages = [items[name] for name in dict.fromkeys(spine) if name in items]
    return [
        posixpath.normpath(posixpath.join(folder, unquote(page.get("href", "").partition("#")[0])))
        for page in pages
        if page.get("media-type") in _PAGES and "nav" not in page.get("properties", "").split()
    ]


EPUB = FileFormat(read_epub, versions.of("office", "HTML"))
