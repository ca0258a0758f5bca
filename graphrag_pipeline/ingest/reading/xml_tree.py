"""Elements of XML: read within bounds, and asked for their text."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.html import parse_html
from graphrag_pipeline.ingest.reading.model import Unreadable

_MOST_DEPTH = 200
_MOST_ELEMENTS = 1_000_000
_BLOCK = 1 << 16
_LONGEST_ENTITY = 200
_MOST_GROWTH, _LEAST_ROOM = 3, 10_000


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
        self.is_file = False
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._said
        self.parser.EntityDeclHandler = self._declared
        self.parser.SkippedEntityHandler = self._skipped
        self.parser.UseForeignDTD(True)
        self.parser.ExternalEntityRefHandler = lambda *_: 1
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_UNLESS_STANDALONE)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.is_file = attributes.get("encoding") == "base64" or name == "binary"
        self.elements += 1
        if len(self.open) > _MOST_DEPTH:
            raise Unreadable(f"the XML is nested more than {_MOST_DEPTH} deep")
        if self.elements > _MOST_ELEMENTS:
            raise Unreadable(f"the XML has more than {_MOST_ELEMENTS:,} elements: divide it")
        self._fill(sum(map(len, attributes.values())))
        element = XmlElement(name.rpartition(":")[2], {} if self.is_file else attributes)
        self.open[-1].within.append(element)
        self.open.append(element)

    def _end(self, _name: str) -> None:
        self.is_file = False
        self.open.pop()

    def _said(self, text: str) -> None:
        if self.is_file:
            return
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


def root_of(data: bytes) -> XmlElement:
    """Return the outermost element of XML; raises Unreadable for what is none, or asks too much."""
    try:
        top = _Tree(len(data)).read(data)
    except expat.ExpatError as error:
        raise Unreadable(f"the file is not well-formed XML ({one_line(str(error))})") from None
    return next((each for each in top.within if isinstance(each, XmlElement)), top)


def elements_in(element: XmlElement, names: Collection[str]) -> Iterator[XmlElement]:
    """Yield the elements of these names in another, at any depth, none within one of them."""
    for each in elements_of(element):
        if each.name in names:
            yield each
        else:
            yield from elements_in(each, names)


def said_of(element: XmlElement, *path: str) -> str:
    """Return the text of the element that a path of names leads to, on one line; markup as text."""
    for name in path:
        element = next((each for each in elements_of(element) if each.name == name), XmlElement(""))
    text = line_of(element)
    return one_line(parse_html(text).text) if "<" in text else text


def elements_of(element: XmlElement) -> list[XmlElement]:
    """Return the elements that stand in another, in order."""
    return [each for each in element.within if isinstance(each, XmlElement)]


def line_of(element: XmlElement) -> str:
    """Return the text of an element on one line; of markup in it, as feeds have it, its text."""
    text = one_line(text_of(element))
    is_markup = text.startswith("<") and text.endswith(">")
    return one_line(parse_html(text).text) if is_markup else text


def text_of(element: XmlElement) -> str:
    """Return all text of an element as it stands."""
    return "".join(each if isinstance(each, str) else text_of(each) for each in element.within)
