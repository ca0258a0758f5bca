"""Equations of Word (OMML) and of web pages (MathML) as linear text: ``(a+b)/2``, ``x_1^2``."""

from __future__ import annotations

import html
import re
from functools import reduce
from xml.etree import ElementTree as ET

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.cleaning import one_line

_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_EQUATIONS = (f"{_MATH}oMath", f"{_MATH}oMathPara")
_DEEPEST = 40
_OF_PAGES = pattern_of(
    r"(?:<span\b[^<>]*display:\s*none[^<>]*>\s*)?<math\b[^<>]{0,2000}>.{0,20000}?</math\s*>",
    re.I | re.S,
)
"""Wikipedia hides it, and shows a picture."""
_ENTITY = pattern_of(r"&(?!(?:lt|gt|amp|quot);)#?\w{1,40};")
_PARTS = {
    **dict.fromkeys(("msup", "mover"), (None, 1)),
    **dict.fromkeys(("msub", "munder"), (1, None)),
    **dict.fromkeys(("msubsup", "munderover"), (1, 2)),
}
"""Which part of an element stands below its first one, and which above."""
_ACCENTS = frozenset("¯‾^~→˙˜ˆ_")


def with_equations(xml: bytes) -> bytes:
    """Return a part of a document with a run of text instead of each equation.

    The part has no DOCTYPE: see ``require_plain_xml``.
    """
    if b"oMath" not in xml:
        return xml
    root = ET.fromstring(xml)
    for parent in list(root.iter()):
        for place, child in enumerate(parent):
            if child.tag in _EQUATIONS:
                parent[place] = _run(one_line(_linear(child)), child.tail)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _run(text: str, tail: str | None) -> ET.Element:
    run = ET.Element(f"{_WORD}r")
    written = ET.SubElement(run, f"{_WORD}t", {_SPACE: "preserve"})
    written.text, run.tail = text, tail
    return run


def _linear(node: ET.Element, depth: int = 0) -> str:
    """Return what an element of an equation says, on one line."""
    name = node.tag.removeprefix(_MATH)
    if depth > _DEEPEST:
        return "".join(text.text or "" for text in node.iter(f"{_MATH}t"))
    if name == "t":
        return node.text or ""
    if name == "oMathPara":
        return " ; ".join(_linear(child, depth + 1) for child in node if child.tag in _EQUATIONS)

    def part(of: str) -> str:
        inner = node.find(f"{_MATH}{of}")
        return _linear(inner, depth + 1) if inner is not None else ""

    if name == "f":
        return f"{_grouped(part('num'))}/{_grouped(part('den'))}"
    if name == "rad":
        return f"{part('deg')}√({part('e')})"
    if name in ("sSup", "sSub", "sSubSup", "limLow", "limUpp"):
        low = part("sub") or (part("lim") if name == "limLow" else "")
        high = part("sup") or (part("lim") if name == "limUpp" else "")
        return f"{_grouped(part('e'))}{_marked('_', low)}{_marked('^', high)}"
    if name == "nary":
        sign = _property(node, "chr", "∫")
        return f"{sign}{_marked('_', part('sub'))}{_marked('^', part('sup'))} {part('e')}"
    inside = [_linear(child, depth + 1) for child in node if child.tag.startswith(_MATH)]
    if name == "d":
        between = _property(node, "sepChr", "|")
        begin, end = _property(node, "begChr", "("), _property(node, "endChr", ")")
        return f"{begin}{between.join(filter(None, inside))}{end}"
    if name == "func":
        return f"{part('fName')} {part('e')}"
    if name == "m":
        return f"[{'; '.join(filter(None, inside))}]"
    return (", " if name == "mr" else "").join(inside)


def _property(node: ET.Element, name: str, otherwise: str) -> str:
    found = node.find(f"{node.tag}Pr/{_MATH}{name}")
    return otherwise if found is None else found.get(f"{_MATH}val", "")


def _grouped(text: str) -> str:
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _marked(mark: str, text: str) -> str:
    return f"{mark}{_grouped(text)}" if text else ""


def with_linear_math(markup: str) -> str:
    """Return a page with text instead of each equation in it; one that is broken says nothing."""
    return _OF_PAGES.sub(_said_of_page, markup) if "<math" in markup else markup


def _said_of_page(match: re.Match[str]) -> str:
    start = match.group().lower().index("<math")
    xml = _ENTITY.sub(lambda entity: html.unescape(entity.group()), match.group()[start:])
    try:
        said = _linear_mathml(ET.fromstring(xml.replace("mml:", "")))
    except (ET.ParseError, ValueError):
        return ""
    return html.escape(one_line(said))


def _linear_mathml(node: ET.Element, depth: int = 0) -> str:
    """Return what an element of an equation of a page says, on one line."""
    name = node.tag.rpartition("}")[2]
    if depth > _DEEPEST or name.startswith("annotation") or name == "mphantom":
        return ""
    parts = [_linear_mathml(child, depth + 1) for child in node]
    if not parts:
        return one_line((node.text or "").replace("\u2062", " ").replace("\u2061", " "))
    if name == "semantics":
        return parts[0]
    if name == "mfrac" and len(parts) > 1:
        return f"{_grouped(parts[0])}/{_grouped(parts[1])}"
    if name == "mroot" and len(parts) > 1:
        return f"{parts[1]}√({parts[0]})"
    if name in _PARTS and len(parts) > 1:
        low, high = (parts[n] if n and n < len(parts) else "" for n in _PARTS[name])
        high = "" if high in _ACCENTS else high
        return f"{_grouped(parts[0])}{_marked('_', low)}{_marked('^', high)}"
    if name in ("mtable", "mtr"):
        return f"[{'; '.join(parts)}]" if name == "mtable" else ", ".join(parts)
    if name == "mfenced":
        return f"{node.get('open', '(')}{', '.join(parts)}{node.get('close', ')')}"
    inside = reduce(_beside, parts)
    return f"√({inside})" if name == "msqrt" else inside


def _beside(one: str, other: str) -> str:
    """Return two parts of an equation, apart where they would be one word."""
    is_word = one[-1:].isalnum() and other[:1].isalnum()
    return f"{one} {other}" if is_word else f"{one}{other}"
