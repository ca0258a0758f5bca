"""Web pages as text, in one pass over their tags and without a tree.

No link, entity or image is ever resolved.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.html_events import End, Event, Start, Text, read_events
from graphrag_pipeline.ingest.reading.model import (
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    whole_document,
)

_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]{1,40})", re.I)
_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_SPACE = re.compile(r"[ \t\n\r\f\xa0]+")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VOID = _names("area base br col embed hr img input link meta param source track wbr frame")
_DROPPED = _names(
    "script style nav footer aside noscript template svg math iframe object canvas audio video "
    "noembed noframes select textarea button datalist map"
)
_PARAGRAPHS = _names(
    "p h1 h2 h3 h4 h5 h6 ul ol dl table blockquote pre figure hr section article main form "
    "fieldset details"
)
_LINES = _names(
    "html body div li tr dt dd br caption figcaption header address summary legend thead tbody "
    "tfoot center dialog hgroup menu search nav footer aside"
)
_HEADINGS = _names("h1 h2 h3 h4 h5 h6")
_CLOSED_BY = {
    "li": _names("li"),
    "dt": _names("dt dd"),
    "dd": _names("dt dd"),
    "td": _names("td th"),
    "th": _names("td th"),
    "tr": _names("td th tr"),
    "tbody": _names("td th tr thead tbody"),
}
_META = {"author": "author", "date": "date", "article:published_time": "date"}


@dataclass
class Page:
    """The readable part of a page; `heading` is its first heading, `title` its `<title>`."""

    text: str = ""
    title: str = ""
    heading: str = ""
    metadata: dict[str, Scalar] = field(default_factory=dict)


def read_html(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one web page; an encoding that the page declares is used if none is configured."""
    page = parse_html(decode(data, options.encoding or _declared_encoding(data)))
    if not page.text:
        raise Unreadable("the page has no readable text: it may need a browser to fill it")
    return whole_document(path, page.text, page.title or page.heading, page.metadata)


def parse_html(markup: str) -> Page:
    """Return the text of a page without scripts, styles, navigation and hidden parts.

    Paragraphs are separated by a blank line, lines by a newline, table cells by " | "; list items
    start with "- "; white space is collapsed outside `<pre>`.
    """
    parser = _PageParser()
    for event in read_events(markup):
        parser.take(event)
    return parser.finish()


def _declared_encoding(data: bytes) -> str | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        declared = _DECLARED.search(data[:2048])
        try:
            name = declared.group(1).decode("ascii") if declared else ""
            b"a".decode(name or "utf-8")
        except (LookupError, UnicodeError):
            return None
        return {"": None, "gb2312": "gb18030", "gbk": "gb18030"}.get(name.lower(), name)
    return None


class _Writer:
    """Collects text, separated as the blocks it came from were."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._line: list[str] = []
        self._gap = 0
        self._cell = self._prefix = ""

    def write(self, text: str) -> None:
        self._line.append(text)

    def end_line(self, gap: int, *, preformatted: bool = False) -> None:
        line = "".join(self._line)
        line = line.rstrip() if preformatted else _SPACE.sub(" ", line).strip()
        self._line = []
        if line.strip():
            separator = self._cell or "\n" * self._gap
            self.parts += [separator if self.parts else "", self._prefix, line]
            self._gap, self._cell, self._prefix = 0, "", ""
        self._gap = max(self._gap, gap)

    def start_item(self) -> None:
        self._prefix = "- "

    def start_cell(self) -> None:
        self._cell += " | "

    def end_row(self) -> None:
        self._cell = ""


class _PageParser:
    """Follows the open elements, and writes what is visible in them."""

    def __init__(self) -> None:
        self.page = Page()
        self.out = _Writer()
        self.open: list[str] = []
        self.depth: Counter[str] = Counter()
        self.dropped_from: int | None = None
        self.cells = 0
        self.heading_from = 0

    def take(self, event: Event) -> None:
        match event:
            case Text():
                self._text(event)
            case End():
                self._close(event.name)
            case Start():
                self._imply_closed(event.name)
                self._open(event)

    def finish(self) -> Page:
        while self.open:
            self._pop()
        self.out.end_line(0)
        self.page.text = "".join(self.out.parts)
        return self.page

    def _text(self, text: Text) -> None:
        if self.dropped_from is not None:
            return
        if self.open and self.open[-1] == "title":
            self.page.title = self.page.title or text.unescaped
        else:
            self.out.write(text.unescaped)

    def _open(self, tag: Start) -> None:
        name, visible = tag.name, self.dropped_from is None
        if visible:
            self._start(name)
        if name == "meta":
            self._meta(tag.attributes())
        if name in _VOID or (not visible and tag.is_self_closing):
            return
        if visible and (name in _DROPPED or _is_hidden(tag)):
            if tag.is_self_closing and name in ("svg", "math"):
                return
            self.dropped_from = len(self.open)
        self.open.append(name)
        self.depth[name] += 1

    def _start(self, name: str) -> None:
        self._break(name)
        if name == "li":
            self.out.start_item()
        elif name == "tr":
            self.cells = 0
        elif name in ("td", "th"):
            if self.cells:
                self.out.start_cell()
            self.cells += 1
        elif name in _HEADINGS:
            self.heading_from = len(self.out.parts)

    def _close(self, name: str) -> None:
        if name in ("br", "p") and not self.depth[name] and self.dropped_from is None:
            self._break(name)
        if not self.depth[name]:
            return
        while self._pop() != name:
            pass

    def _pop(self) -> str:
        name = self.open.pop()
        if self.dropped_from is None:
            self._end(name)
        elif len(self.open) <= self.dropped_from:
            self.dropped_from = None
        self.depth[name] -= 1
        return name

    def _end(self, name: str) -> None:
        self._break(name)
        if name in _HEADINGS and not self.page.heading:
            self.page.heading = "".join(self.out.parts[self.heading_from :]).strip(" \n|-")
        elif name == "tr":
            self.out.end_row()

    def _break(self, name: str) -> None:
        if name in _PARAGRAPHS:
            nested = self.depth["li"] or self.depth["tr"]
            self.out.end_line(1 if nested else 2, preformatted=bool(self.depth["pre"]))
        elif name in _LINES:
            self.out.end_line(1, preformatted=bool(self.depth["pre"]))
        elif name in ("td", "th"):
            self.out.end_line(0)

    def _imply_closed(self, name: str) -> None:
        """Close what the standard lets authors leave open: `<p>`, `<li>`, `<td>` and the like."""
        if (name in _PARAGRAPHS or name in _LINES) and name != "br":
            self._close_top(frozenset({"p"}))
        if name in _CLOSED_BY:
            self._close_top(_CLOSED_BY[name])

    def _close_top(self, names: frozenset[str]) -> None:
        while self.open and self.open[-1] in names:
            self._pop()

    def _meta(self, attributes: dict[str, str]) -> None:
        kind = attributes.get("name") or attributes.get("property") or ""
        name = _META.get(kind.lower())
        if name:
            self.page.metadata.setdefault(name, attributes.get("content", ""))


def _is_hidden(tag: Start) -> bool:
    source = tag.written.lower()
    if "hidden" not in source and "none" not in source:
        return False
    attributes = tag.attributes()
    return (
        ("hidden" in attributes and attributes["hidden"].lower() != "false")
        or attributes.get("aria-hidden", "").lower() == "true"
        or bool(_INVISIBLE.search(attributes.get("style", "")))
    )
