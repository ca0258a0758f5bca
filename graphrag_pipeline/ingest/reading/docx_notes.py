"""Texts of Word beside the document's own: comments, and the heads and feet of its pages."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.archives import Parts
from graphrag_pipeline.ingest.reading.cleaning import one_line

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_AROUND = pattern_of(r"word/(?:header|footer)\d{0,9}\.xml")
_LONGEST_QUOTE, _MOST_AROUND = 200, 200
_OF_PAGES = pattern_of(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES|DATE|TIME|FILENAME)\b")
_NO_TEXT = "\0"


def comment_lines(parts: Parts) -> Iterator[str]:
    """Yield each comment as a line of a chat: who says when what on which words.

    The XML has no document type: that is refused before.
    """
    comments = root_of(parts.get("word/comments.xml", b""))
    quotes = _quotes(root_of(parts.get("word/document.xml", b""))) if len(comments) else {}
    for comment in comments.iter(f"{_WORD}comment"):
        author = one_line(comment.get(f"{_WORD}author", ""))
        date = comment.get(f"{_WORD}date", "")[:16].replace("T", " ")
        quoted = quotes.get(comment.get(f"{_WORD}id", ""), "")
        if said := one_line(" ".join(_text(each) for each in comment.iter(f"{_WORD}p"))):
            on = f'on "{quoted}": ' if quoted else ""
            yield f"[{date or 'undated'}] {author or 'Comment'}: {on}{said}"


def page_lines(parts: Parts) -> list[str]:
    """Return what stands at the head or the foot of pages, each once, without numbers of pages."""
    paragraphs = (
        _text(paragraph)
        for name, xml in parts.items()
        if _AROUND.fullmatch(name)
        for paragraph in root_of(xml).iter(f"{_WORD}p")
    )
    pieces = (piece for text in paragraphs for piece in text.split("\t") if _NO_TEXT not in piece)
    lines = map(one_line, pieces)
    said = dict.fromkeys(line for line in lines if any(map(str.isalpha, line)))
    return list(said)[:_MOST_AROUND]


def root_of(xml: bytes) -> ElementTree.Element:
    """Return the root of a part; an empty one where there is none, or it is broken."""
    try:
        return ElementTree.fromstring(xml) if xml else ElementTree.Element("none")
    except ElementTree.ParseError:
        return ElementTree.Element("none")


def _text(paragraph: ElementTree.Element) -> str:
    """Return the text of a paragraph, with a mark where it shows the number of a page."""
    parts: list[str] = []
    for each in paragraph.iter():
        if each.tag == f"{_WORD}t":
            parts.append(each.text or "")
        elif each.tag in (f"{_WORD}tab", f"{_WORD}br", f"{_WORD}ptab"):
            parts.append("\t")
        elif _OF_PAGES.match(each.get(f"{_WORD}instr") or "") or (
            each.tag == f"{_WORD}instrText" and _OF_PAGES.match(each.text or "")
        ):
            parts.append(_NO_TEXT)
    return "".join(parts)


def _quotes(document: ElementTree.Element) -> dict[str, str]:
    """Return the words that each comment is on, by its id."""
    parts: list[str] = []
    place = 0
    begins: dict[str, int] = {}
    ends: dict[str, int] = {}
    for each in document.iter():
        if each.tag == f"{_WORD}t":
            parts.append(each.text or "")
        elif each.tag == f"{_WORD}p":
            parts.append("\n")
        elif each.tag == f"{_WORD}commentRangeStart":
            begins.setdefault(each.get(f"{_WORD}id", ""), place)
            continue
        elif each.tag == f"{_WORD}commentRangeEnd":
            ends.setdefault(each.get(f"{_WORD}id", ""), place)
            continue
        else:
            continue
        place += len(parts[-1])
    text = "".join(parts)
    return {
        number: one_line(text[start : min(ends.get(number, start), start + _LONGEST_QUOTE)])
        for number, start in begins.items()
    }
