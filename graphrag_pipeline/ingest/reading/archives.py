"""Formats that are a zip archive of XML: what must hold before any part of one is unpacked."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree
from xml.parsers import expat

from graphrag_pipeline.core.word_lists import word_pairs
from graphrag_pipeline.ingest.reading.model import ReadingOptions, Scalar, Unreadable

_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
SUSPECT_BYTES, SUSPECT_RATIO = 5_000_000, 100
"""What unpacks to more bytes, and to so many times its own, is a bomb."""
_MOST_ENTRIES = 20_000
_MARKUP = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")
_BLOCK = 1 << 16
Parts = Mapping[str, bytes]
"""The parts of an archive by their names: what is markup unpacked, all else empty."""

_PROPERTIES = word_pairs("fields.txt", "property")
_OF_OPENDOCUMENT = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}meta"
_PLACEHOLDERS = frozenset(("powerpoint presentation", "presentation", "slide 1"))


def open_archive(
    data: bytes, options: ReadingOptions, *, kind: str, suffix: str, most_unpacked: int = 0
) -> Parts:
    """Unpack the markup of an archive, within bounds; `kind` names the format to people.

    All markup together may have `most_unpacked` bytes (0: `max_file_bytes`). Whatever else is in
    the archive is not unpacked: it is there, and empty. Raises Unreadable for what is damaged,
    encrypted, a zip bomb or an older format of the same programs.
    """
    if data.startswith(_OLD_OFFICE):
        old = suffix[:4]
        raise Unreadable(f"encrypted, or an old {old}: save it as {suffix} without a password")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise Unreadable(f"the file is not {kind}, or it is damaged") from None
    with archive:
        _require_bounded(archive, most_unpacked or options.max_file_bytes)
        return {
            name: _unpacked(archive, part) if is_markup(name) else b""
            for name, part in {part.filename: part for part in archive.infolist()}.items()
        }


def is_markup(name: str) -> bool:
    """Whether a part of an archive is text with markup, by its name."""
    return name.lower().endswith(_MARKUP)


def _unpacked(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bytes:
    try:
        return unzipped(archive, part)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError) as error:
        raise Unreadable(f"a part of the document is damaged ({error})") from None


def unzipped(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bytes:
    """Return a part, no more of it than it says it is long.

    It is read in blocks: asked for all of a part, zipfile unpacks up to 2 GB at once and cuts off
    what is too much.
    """
    with archive.open(part) as packed:
        return b"".join(iter(lambda: packed.read(_BLOCK), b""))


def bytes_of(parts: Parts) -> io.BytesIO:
    """Return unpacked parts as a file for a library to open: nothing in it is packed any more."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as copy:
        for name, part in parts.items():
            with copy.open(name, "w") as written:
                written.write(part)
    file.seek(0)
    return file


def _require_bounded(archive: zipfile.ZipFile, most_unpacked: int) -> None:
    parts = archive.infolist()
    if len(parts) > _MOST_ENTRIES:
        raise Unreadable(f"the archive has {len(parts):,} entries, more than {_MOST_ENTRIES:,}")
    markup = [part for part in parts if is_markup(part.filename)]
    if any(part.flag_bits & 1 for part in markup):
        raise Unreadable("encrypted: save it without a password")
    size, packed = sum(part.file_size for part in markup), sum(p.compress_size for p in markup)
    if size > most_unpacked:
        raise Unreadable(
            f"the document unpacks to {size:,} bytes, more than input.max_file_mb allows "
            f"({most_unpacked / 1e6:g} MB)"
        )
    if size > SUSPECT_BYTES and size > SUSPECT_RATIO * packed:
        raise Unreadable(f"the document unpacks to {size:,} bytes from {packed:,}: a zip bomb")


def require_plain_xml(parts: Parts, most_elements: int) -> None:
    """Raise Unreadable if a part declares a DOCTYPE or all have more than `most_elements`."""
    elements = 0
    for name, xml in parts.items():
        if name.lower().endswith((".xml", ".rels")):
            refuse_doctype(xml)
            elements += xml.count(b"<") - xml.count(b"</")
    if elements > most_elements:
        raise Unreadable(f"the document has {elements:,} elements, more than {most_elements:,}")


def refuse_doctype(xml: bytes) -> None:
    """Raise Unreadable if the XML has a document type, the only place to declare entities in."""
    parser = expat.ParserCreate()
    root: list[str] = []
    parser.StartElementHandler = lambda name, _: root.append(name)
    for _ in parse_xml(xml, parser):
        if root:
            return


def parse_xml(xml: bytes, parser: expat.XMLParserType) -> Iterator[None]:
    """Feed a parser block by block, as long as somebody asks for the next one.

    Raises Unreadable at a DOCTYPE: office programs write none, and entities are declared in it.
    """

    def refuse(*_: object) -> None:
        raise Unreadable("a part of the document declares a DOCTYPE, which Office never does")

    parser.StartDoctypeDeclHandler = refuse
    for start in range(0, len(xml), _BLOCK):
        parser.Parse(xml[start : start + _BLOCK], False)
        yield
    parser.Parse(b"", True)


def properties(parts: Parts, name: str) -> dict[str, Scalar]:
    """Return the title, author, date and so on that a document says of itself in a part."""
    try:
        xml = parts[name]
        refuse_doctype(xml)
        root = ElementTree.fromstring(xml)
    except (KeyError, ElementTree.ParseError, expat.ExpatError):
        return {}
    return properties_of(next(root.iter(_OF_OPENDOCUMENT), root))


def properties_of(root: ElementTree.Element) -> dict[str, Scalar]:
    """Return the known properties below an element: of each the first that is not blank."""
    values: dict[str, Scalar] = {}
    for node in root.iter():
        name = _PROPERTIES.get(node.tag.rpartition("}")[2]) if isinstance(node.tag, str) else None
        if name and node.text and node.text.strip():
            values.setdefault(name, node.text)
    return values


def own_title(about: dict[str, Scalar]) -> str:
    """Take the title out of the properties of a document; return "" for one that says nothing."""
    title = str(about.pop("title", ""))
    return "" if title.strip().lower() in _PLACEHOLDERS else title
