"""TEI: plays, poems and books as libraries keep them, with their divisions and who speaks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.blocks import joined_lines
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.model import ReadResult, whole_document
from graphrag_pipeline.ingest.reading.xml_tree import (
    XmlElement,
    elements_in,
    elements_of,
    line_of,
    text_of,
)

_ROOTS = ("TEI", "TEI.2")
_DIVISION = pattern_of(r"div\d?")
# A head that says no more than which division it is, of those around it: Scene 2, Chapter IV.
_NUMBERED = pattern_of(r"(?:[^\W\d_]+\s+)?(?:\d+|[IVXLC]+)\W*", re.IGNORECASE)
_OF_PAGES = ("pb", "fw", "lb", "cb", "milestone", "figDesc")
_CAST = "Cast of characters"
_HEADING, _LINE, _PARAGRAPH = "heading", "line", "paragraph"
_LINES = ("l", "item", "castItem", "row", "dateline", "salute", "signed", "stage")


def is_tei(root: XmlElement) -> bool:
    """Whether XML is a text as the Text Encoding Initiative has it."""
    return root.name in _ROOTS and any(each.name == "text" for each in elements_of(root))


def read_tei(path: Path, root: XmlElement) -> ReadResult:
    """Read one text: heads of divisions are headings, a speech begins with who speaks it.

    Title, author and editor are those of the header, of which nothing else is read; a scene or
    chapter that has only a number is called by that of its act, too.
    """
    of_text = next(each for each in elements_of(root) if each.name == "text")
    text, blocks = joined_lines(
        ("\n" if kind == _LINE else "\n\n", line, "heading" if kind == _HEADING else None)
        for line, kind in _lines(of_text, "")
    )
    about = next(elements_in(root, ("titleStmt",)), XmlElement(""))
    title = next(map(line_of, elements_in(about, ("title",))), "")
    people = {
        name: ", ".join(dict.fromkeys(_person(each) for each in elements_in(about, (name,))))
        for name in ("author", "editor")
    }
    return whole_document(path, text, title, people, blocks)


def _person(element: XmlElement) -> str:
    """Return a name, without the numbers of catalogues beside it."""
    names = [*elements_in(element, ("persName", "name"))]
    return " ".join(map(one_line, re.split(r"\n\s*", _said(names[0] if names else element))))


def _lines(element: XmlElement, within: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of an element, each with what it is; ``within`` is the head around it."""
    for each in element.within:
        if isinstance(each, str):
            if each.strip():
                yield one_line(each), _PARAGRAPH
            continue
        name = each.name
        if _DIVISION.fullmatch(name) or name == "castList":
            head = _head(each, within) or _CAST * (name == "castList")
            yield from ((head, _HEADING) for _ in range(bool(head)))
            yield from _lines(each, head or within)
        elif name == "sp":
            yield from _speech(each)
        elif name in _LINES or name in ("p", "ab") or not elements_of(each):
            said = _line(each)
            is_head = name == "head" and within.endswith(said)
            if said and name != "speaker" and not is_head:
                yield said, _LINE if name in _LINES else _PARAGRAPH
        elif name not in _OF_PAGES:
            yield from _lines(each, within)


def _head(division: XmlElement, within: str) -> str:
    head = next((line_of(each) for each in elements_of(division) if each.name == "head"), "")
    return f"{within}, {head}" if within and _NUMBERED.fullmatch(head) else head


def _speech(speech: XmlElement) -> Iterator[tuple[str, str]]:
    """Yield the lines of a speech, the first of them after who speaks."""
    speaker = next((line_of(each) for each in elements_of(speech) if each.name == "speaker"), "")
    before = f"{speaker.rstrip('.:').upper()}: " if speaker else ""
    goes_on = False
    for line, _ in _lines(speech, ""):
        is_said = not line.startswith("[")
        yield f"{before}{line}" if is_said and not goes_on else line, _LINE
        goes_on = is_said


def _line(element: XmlElement) -> str:
    said = one_line(_said(element))
    if element.name == "stage" and said:
        return said if said.startswith(("[", "(")) else f"[{said}]"
    if element.name == "castItem" and (role := next(elements_in(element, ("role",)), None)):
        name = line_of(role)
        rest = said.removeprefix(name).lstrip(" ,.:")
        return f"- {name}: {rest}" if rest else f"- {name}"
    return f"- {said}" if element.name in ("item", "castItem") and said else said


def _said(element: XmlElement) -> str:
    """Return the text of an element, notes in brackets, without what is of its pages."""
    parts: list[str] = []
    for each in element.within:
        if isinstance(each, str):
            parts.append(each)
        elif each.name == "note":
            parts.append(f" ({one_line(text_of(each))})")
        elif each.name in _OF_PAGES:
            parts.append(" ")
        else:
            parts.append(_said(each))
    return "".join(parts)
