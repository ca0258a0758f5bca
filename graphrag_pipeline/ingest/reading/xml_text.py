"""XML of any kind: records where it is data, else the text of its elements in their order."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from xml.parsers import expat

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.html import parse_html, read_html
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    whole_document,
)
from graphrag_pipeline.ingest.reading.records import FileRecord, read_records

_MOST_DEPTH = 200
_MOST_ELEMENTS = 1_000_000
_BLOCK = 1 << 16
_LONGEST_ENTITY = 200
_MOST_GROWTH, _LEAST_ROOM = 3, 10_000
_LONGEST_TITLE = 200
_TITLES = ("title", "head", "heading", "name")
_FEWEST_RECORDS = 2
_LONG_VALUE = 100
_PROSE_WORDS = 4
_NOT_TEXT = ("id", "href", "src", "class", "style", "type", "version")


@dataclass
class XmlElement:
    """An element: its name without a prefix, and what stands within it, in order."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    within: list[str | XmlElement] = field(default_factory=list)


class _Tree:
    """Makes elements of what a parser reads; opens no other file."""

    def __init__(self, size: int) -> None:
        self.top = XmlElement("")
        self.room = _MOST_GROWTH * size + _LEAST_ROOM
        self.open = [self.top]
        self.elements = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = lambda _name: self.open.pop()
        self.parser.CharacterDataHandler = self._said
        self.parser.EntityDeclHandler = self._declared
        self.parser.SkippedEntityHandler = self._skipped
        self.parser.UseForeignDTD(True)
        self.parser.ExternalEntityRefHandler = lambda *_: 1
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_UNLESS_STANDALONE)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if len(self.open) > _MOST_DEPTH:
            raise Unreadable(f"the XML is nested more than {_MOST_DEPTH} deep")
        if self.elements > _MOST_ELEMENTS:
            raise Unreadable(f"the XML has more than {_MOST_ELEMENTS:,} elements: divide it")
        self._fill(sum(map(len, attributes.values())))
        element = XmlElement(name.rpartition(":")[2], attributes)
        self.open[-1].within.append(element)
        self.open.append(element)

    def _said(self, text: str) -> None:
        self._fill(len(text))
        self.open[-1].within.append(text)

    def _fill(self, n_chars: int) -> None:
        self.room -= n_chars
        if self.room < 0:
            raise Unreadable(
                f"entities that the XML declares make it more than {_MOST_GROWTH} times as long"
            )

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            self.open[-1].within.append(html.unescape(f"&{name};"))

    def _declared(self, _name: str, _is_parameter: bool, value: str | None, *_: object) -> None:
        """Take words that stand for others as they are; what is in another file is left out."""
        if value and (not {"&", "%"}.isdisjoint(value) or len(value) > _LONGEST_ENTITY):
            raise Unreadable(
                "the XML declares entities that are made of others, or longer than "
                f"{_LONGEST_ENTITY} characters, which are not read"
            )

    def read(self, data: bytes) -> XmlElement:
        for start in range(0, len(data), _BLOCK):
            self.parser.Parse(data[start : start + _BLOCK], False)
        self.parser.Parse(b"", True)
        return self.top


def read_xml(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read the text of all elements, a line for each; what stands amid text stays in its line.

    Data, which is elements of one name with fields in them, is read as JSON would be: a document
    for each, its fields the elements and attributes within. Of a text, an element without text its
    attributes are said. XML whose root is ``html`` is a web page.
    """
    root = root_of(data)
    if root.name.lower() == "html":
        return read_html(path, data, options)
    if found := _records(root):
        elements, beside = found
        records = [FileRecord(number, _value(each)) for number, each in enumerate(elements, 1)]
        return read_records(path, records, options, beside)
    blocks: list[Block] = []
    parts: list[str] = []
    title, place = "", 0
    for line, name in _lines(root):
        is_title = name in _TITLES[:3]
        title = title or (line if name in _TITLES else "")
        gap = "\n\n" if is_title and parts else "\n" if parts else ""
        if is_title:
            blocks.append(Block(place + len(gap), place + len(gap) + len(line), "heading"))
        parts.append(gap + line)
        place += len(gap) + len(line)
    return whole_document(path, "".join(parts), title[:_LONGEST_TITLE], blocks=blocks)


def root_of(data: bytes) -> XmlElement:
    """Return the outermost element of XML; raises Unreadable for what is none, or asks too much."""
    try:
        top = _Tree(len(data)).read(data)
    except expat.ExpatError as error:
        raise Unreadable(f"the file is not well-formed XML ({one_line(str(error))})") from None
    return next((each for each in top.within if isinstance(each, XmlElement)), top)


def elements_in(element: XmlElement, names: Collection[str]) -> Iterator[XmlElement]:
    """Yield the elements of these names in another, at any depth, none within one of them."""
    for each in _inner(element):
        if each.name in names:
            yield each
        else:
            yield from elements_in(each, names)


def said_of(element: XmlElement, *path: str) -> str:
    """Return the text of the element that a path of names leads to, on one line; markup as text."""
    for name in path:
        element = next((each for each in _inner(element) if each.name == name), XmlElement(""))
    text = _text(element)
    return one_line(parse_html(text).text) if "<" in text else text


def _records(root: XmlElement) -> tuple[list[XmlElement], dict[str, Scalar]] | None:
    """Return the records that an element holds, and what stands beside them; None for a text.

    They are several elements of one name, of fields, and nowhere prose.
    """
    while len(inner := _inner(root)) == 1 and _inner(inner[0]):
        root = inner[0]
    if not inner:
        return None
    name, count = Counter(each.name for each in inner).most_common(1)[0]
    if count < _FEWEST_RECORDS or any(_inner(each) for each in inner if each.name != name):
        return None
    records = [each for each in inner if each.name == name]
    if not all(len(_inner(each)) > 1 or _fields(each) for each in records):
        return None
    leaves = [leaf for record in records for leaf in _leaves(record)]
    if None in leaves or median(len(leaf or "") for leaf in leaves) > _LONG_VALUE:
        return None
    beside = {each.name: one_line(_whole(each)) for each in inner if each.name != name}
    return records, {**beside, **_fields(root)}


def _leaves(element: XmlElement) -> Iterator[str | None]:
    """Yield the texts of elements without others; None where text and elements are mixed, or where
    elements of one name in another are prose."""
    inner = _inner(element)
    if not inner:
        yield _whole(element).strip()
        return
    if any(isinstance(each, str) and each.strip() for each in element.within):
        yield None
    counts = Counter(each.name for each in inner)
    for each in inner:
        is_alike = counts[each.name] > 1 and not _inner(each)
        if is_alike and len(_whole(each).split()) > _PROSE_WORDS:
            yield None
        yield from _leaves(each)


def _inner(element: XmlElement) -> list[XmlElement]:
    return [each for each in element.within if isinstance(each, XmlElement)]


def _fields(element: XmlElement) -> dict[str, Scalar]:
    """Return the attributes that are values, and no declarations."""
    return {
        name: value
        for name, value in element.attributes.items()
        if ":" not in name and name != "xmlns" and value.strip()
    }


def _text(element: XmlElement) -> str:
    """Return the text of an element on one line; of markup in it, as feeds have it, its text."""
    text = one_line(_whole(element))
    is_markup = text.startswith("<") and text.endswith(">")
    return one_line(parse_html(text).text) if is_markup else text


def _value(element: XmlElement) -> object:
    """Return an element as JSON would have it: its attributes and elements by their names."""
    fields: dict[str, object] = {**_fields(element)}
    inner = _inner(element)
    text = _text(element) if not inner else ""
    if not inner and (not fields or not text):
        return fields or text
    if text:
        return {"value" if "name" in fields else "name": text, **fields}
    several = {name for name, count in Counter(each.name for each in inner).items() if count > 1}
    for each in inner:
        key = f"{each.name}.value" if each.name in element.attributes else each.name
        if each.name in several:
            listed = fields.setdefault(key, [])
            if isinstance(listed, list):
                listed.append(_value(each))
        else:
            fields[key] = _value(each)
    return fields


def _lines(element: XmlElement) -> Iterator[tuple[str, str]]:
    """Yield the lines of an element, each with the name of the element it is of."""
    has_text = any(isinstance(each, str) and each.strip() for each in element.within)
    inner = _inner(element)
    if has_text:
        yield one_line(_whole(element)), element.name.lower()
    elif inner:
        for each in inner:
            yield from _lines(each)
    elif said := _attributes(element):
        yield said, ""


def _whole(element: XmlElement) -> str:
    return "".join(each if isinstance(each, str) else _whole(each) for each in element.within)


def _attributes(element: XmlElement) -> str:
    return ", ".join(
        f"{name}: {one_line(value)}"
        for name, value in element.attributes.items()
        if value.strip() and name.lower() not in _NOT_TEXT and ":" not in name and name != "xmlns"
    )


XML = FileFormat(read_xml, versions.of("XML", "HTML", "records"), SMALL_RECORDS)
XHTML = FileFormat(read_html, versions.of("XML", "HTML"), SMALL)
