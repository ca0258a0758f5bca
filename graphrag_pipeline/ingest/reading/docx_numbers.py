"""Numbers of the items of Word's lists, which mammoth counts anew after each paragraph between.

They are marked in the paragraphs before it reads these, and the marks become values of items.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.docx_notes import root_of

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PROPERTIES = pattern_of(rb"<w:pPr>(.*?)</w:pPr>", re.DOTALL)
_WORDS = pattern_of(rb"(<w:t[ >])|</w:p>")
_LEVEL, _LIST, _STYLE = (
    pattern_of(rb'<w:%b w:val="([^"]{1,100})"' % name) for name in (b"ilvl", b"numId", b"pStyle")
)
_MARK = pattern_of(r"(<li>)?\ue000(\d+)([aAiI]?)\ue001")
_COUNTED_BY = {
    "decimal": "",
    "lowerLetter": "a",
    "upperLetter": "A",
    "lowerRoman": "i",
    "upperRoman": "I",
}
_MOST_LEVELS = 9

_Place = tuple[str, int]
"""A list, and a level of it, from 0."""


@dataclass
class _Lists:
    """The lists of a document: what each counts, and how far."""

    counted_as: dict[str, str] = field(default_factory=dict)
    """What counts the items of a list: several lists may go on with one count."""
    firsts: dict[_Place, tuple[int, str]] = field(default_factory=dict)
    """The first numbers of levels that are counted, and by what: figures, letters."""
    anew: dict[_Place, int] = field(default_factory=dict)
    """The numbers with which a list begins though another one counts its items, too."""
    counts: defaultdict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def number(self, name: str, level: int) -> str:
        """Count an item, and return its number and what it is counted by; "" where it has none."""
        counted_as = self.counted_as.get(name, "")
        counts = self.counts[counted_as]
        first, counted_by = self.firsts.get((counted_as, level), (1, None))
        begins = self.anew.pop((name, level), None)
        counts[level] = begins if begins is not None else counts.get(level, first - 1) + 1
        for deeper in range(level + 1, _MOST_LEVELS):
            counts.pop(deeper, None)
        return "" if counted_by is None else f"{counts[level]}{counted_by}"


def with_marks(parts: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the parts of a document with the numbers of items before their words."""
    body, numbering = (parts.get(f"word/{name}.xml", b"") for name in ("document", "numbering"))
    if not numbering or b"<w:p" not in body:
        return {**parts}
    lists = _lists_of(root_of(numbering))
    by_style = _lists_of_styles(root_of(parts.get("word/styles.xml", b"")))

    def marked(match: re.Match[bytes]) -> bytes:
        said = match[1]
        style = _STYLE.search(said)
        own, level = _LIST.search(said), _LEVEL.search(said)
        place = by_style.get(style[1].decode() if style else "")
        if own:
            place = (own[1].decode(), int(level[1]) if level else 0)
        words = _WORDS.search(body, match.end()) if place else None
        if place is None or words is None or not words[1]:
            return match[0]
        number = lists.number(*place)
        run = f"<w:r><w:t>\ue000{number}\ue001</w:t></w:r>" if number else ""
        return match[0] + run.encode()

    return {**parts, "word/document.xml": _PROPERTIES.sub(marked, body)}


def with_values(markup: str) -> str:
    """Return the page that mammoth made, with the marks as values of its items."""

    def item(mark: re.Match[str]) -> str:
        counted_by = f" type={mark[3]}" if mark[3] else ""
        return f"<li value={mark[2]}{counted_by}>" if mark[1] else ""

    return _MARK.sub(item, markup)


def _lists_of(numbering: ElementTree.Element) -> _Lists:
    lists = _Lists()
    for each in numbering.iter(f"{_W}abstractNum"):
        name = each.get(f"{_W}abstractNumId", "")
        for level in each.iter(f"{_W}lvl"):
            counted_by = _COUNTED_BY.get(_value(level, "numFmt"))
            if counted_by is not None:
                first = _number(_value(level, "start"), 1)
                lists.firsts[name, _number(level.get(f"{_W}ilvl"), 0)] = (first, counted_by)
    for each in numbering.iter(f"{_W}num"):
        name = each.get(f"{_W}numId", "")
        lists.counted_as[name] = _value(each, "abstractNumId")
        for level in each.iter(f"{_W}lvlOverride"):
            if first := _value(level, "startOverride"):
                lists.anew[name, _number(level.get(f"{_W}ilvl"), 0)] = _number(first, 1)
    return lists


def _lists_of_styles(styles: ElementTree.Element) -> dict[str, _Place]:
    places: dict[str, _Place] = {}
    for style in styles.iter(f"{_W}style"):
        if name := next((each.get(f"{_W}val", "") for each in style.iter(f"{_W}numId")), ""):
            level = next((each.get(f"{_W}val") for each in style.iter(f"{_W}ilvl")), "0")
            places[style.get(f"{_W}styleId", "")] = (name, _number(level, 0))
    return places


def _value(element: ElementTree.Element, name: str) -> str:
    child = element.find(f"{_W}{name}")
    return "" if child is None else child.get(f"{_W}val", "")


def _number(written: str | None, otherwise: int) -> int:
    return int(written) if written and written.isdecimal() and len(written) < 6 else otherwise
