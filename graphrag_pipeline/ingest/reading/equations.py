"""Equations of Word (OMML) as linear text: ``(a+b)/2``, ``x_1^2``, ``√(x)``."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from graphrag_pipeline.ingest.reading.cleaning import one_line

_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_EQUATIONS = (f"{_MATH}oMath", f"{_MATH}oMathPara")
_DEEPEST = 40


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
