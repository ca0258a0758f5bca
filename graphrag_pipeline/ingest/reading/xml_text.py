"""XML of any kind: the text of its elements in their order."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.html import read_html
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)

_MOST_DEPTH = 200
_MOST_ELEMENTS = 1_000_000
_BLOCK = 1 << 16
_LONGEST_TITLE = 200
_TITLES = ("title", "head", "heading", "name")
_NOT_TEXT = ("id", "href", "src", "class", "style", "type", "version")


@dataclass
class _Element:
    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    within: list[str | _Element] = field(default_factory=list)


class _Tree:
    """Makes elements of what a parser reads; declares no entities and opens no other file."""

    def __init__(self) -> None:
        self.top = _Element("")
        self.open = [self.top]
        self.elements = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = lambda _name: self.open.pop()
        self.parser.CharacterDataHandler = lambda text: self.open[-1].within.append(text)
        self.parser.EntityDeclHandler = self._refuse
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
        element = _Element(name.rpartition(":")[2], attributes)
        self.open[-1].within.append(element)
        self.open.append(element)

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            self.open[-1].within.append(html.unescape(f"&{name};"))

    def _refuse(self, *_: object) -> None:
        raise Unreadable("the XML declares entities of its own, which are not read")

    def read(self, data: bytes) -> _Element:
        for start in range(0, len(data), _BLOCK):
            self.parser.Parse(data[start : start + _BLOCK], False)
        self.parser.Parse(b"", True)
        return self.top


def read_xml(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read the text of all elements, a line for each; what stands amid text stays in its line.

    Of an element without text its attributes are said. XML whose root is ``html`` is a web page.
    """
    try:
        top = _Tree().read(data)
    except expat.ExpatError as error:
        raise Unreadable(f"the file is not well-formed XML ({one_line(str(error))})") from None
    root = next((each for each in top.within if isinstance(each, _Element)), top)
    if root.name.lower() == "html":
        return read_html(path, data, options)
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


def _lines(element: _Element) -> Iterator[tuple[str, str]]:
    """Yield the lines of an element, each with the name of the element it is of."""
    has_text = any(isinstance(each, str) and each.strip() for each in element.within)
    inner = [each for each in element.within if isinstance(each, _Element)]
    if has_text:
        yield one_line(_whole(element)), element.name.lower()
    elif inner:
        for each in inner:
            yield from _lines(each)
    elif said := _attributes(element):
        yield said, ""


def _whole(element: _Element) -> str:
    return "".join(each if isinstance(each, str) else _whole(each) for each in element.within)


def _attributes(element: _Element) -> str:
    return ", ".join(
        f"{name}: {one_line(value)}"
        for name, value in element.attributes.items()
        if value.strip() and name.lower() not in _NOT_TEXT and ":" not in name and name != "xmlns"
    )


XML = FileFormat(read_xml, versions.XML | versions.HTML, SMALL_RECORDS)
XHTML = FileFormat(read_html, versions.XML | versions.HTML, SMALL)
