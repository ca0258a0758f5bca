"""XML of any kind: records where it is data, else the text of its elements in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from graphrag_pipeline.core.records import field_words
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.bank_statements import is_camt, read_camt
from graphrag_pipeline.ingest.reading.blocks import joined_lines
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.html import read_html
from graphrag_pipeline.ingest.reading.library_records import marc_entries
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Scalar,
    whole_document,
)
from graphrag_pipeline.ingest.reading.records import read_object, read_records
from graphrag_pipeline.ingest.reading.sheets import read_sheets
from graphrag_pipeline.ingest.reading.spreadsheet_xml import is_workbook, sheets_of
from graphrag_pipeline.ingest.reading.tables import read_value
from graphrag_pipeline.ingest.reading.tei import is_tei, read_tei
from graphrag_pipeline.ingest.reading.wikitext import read_dump
from graphrag_pipeline.ingest.reading.xml_tree import (
    XmlElement,
    elements_in,
    elements_of,
    line_of,
    root_of,
    text_of,
)

_LONGEST_TITLE = 200
_TITLES = ("title", "head", "heading", "name")
_NAMED_BY = ("title", "name", "label", "text")
"""Attributes that say what an element of others is."""
_FEWEST_RECORDS = 2
_LONG_VALUE = 100
_PROSE_WORDS = 4
_LONGEST_OF_DATA, _FEWEST_FIELDS, _MOSTLY = 200, 4, 0.5
_MEASURES = {"currency", "ccy", "unit", "uom"}
"""Words of attributes that say in what an amount is."""
_NOT_TEXT = ("id", "href", "src", "class", "style", "type", "version")


def read_xml(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read the text of all elements, a line for each; what stands amid text stays in its line.

    Data, which is elements of one name with fields in them, is read as JSON would be: a document
    for each, its fields the elements and attributes within; so is an invoice or a setting, which is
    one object of fields. Of a text, an element without text its
    attributes are said, and of one of others its name. XML whose root is ``html`` is a web page;
    statements of banks are bookings, MARC is entries of a bibliography, a dump of MediaWiki its
    pages, a workbook has its sheets, TEI its divisions and speeches, and a property list is read as
    JSON.
    """
    root = root_of(data)
    if root.name.lower() == "html":
        return read_html(path, data, options)
    if root.name == "mediawiki":
        return read_dump(root, options)
    if root.name == "plist" and len(inner := elements_of(root)) == 1:
        return read_value(path, _property(inner[0]), options, "property list")
    if is_tei(root):
        return read_tei(path, root)
    if is_workbook(root):
        return read_sheets(path, sheets_of(root, options), options)
    if is_camt(root):
        return read_camt(path, root, options)
    if entries := marc_entries(root):
        return read_records(path, entries, options)
    if found := _records(root):
        elements, beside = found
        return read_records(path, map(_value, elements), options, beside)
    if _is_data(root) and isinstance(value := _value(root), dict):
        return read_object(path, value, options)
    lines = [*_lines(root)] if root.name != "svg" else [*_of_picture(root)]
    title = next((line for line, name in lines if line and name in _TITLES), "")
    heads = ("\n\n", "heading")
    marks = (heads if name in _TITLES[:3] else ("\n", None) for _, name in lines)
    text, blocks = joined_lines(
        (gap, line, kind) for (line, _), (gap, kind) in zip(lines, marks, strict=True)
    )
    return whole_document(path, text, title[:_LONGEST_TITLE], blocks=blocks)


def _records(root: XmlElement) -> tuple[list[XmlElement], dict[str, Scalar]] | None:
    """Return the records that an element holds, and what stands beside them; None for a text.

    They are several elements of one name, of fields, and nowhere prose.
    """
    while len(inner := elements_of(root)) == 1 and elements_of(inner[0]):
        root = inner[0]
    if not inner:
        return None
    name, count = Counter(each.name for each in inner).most_common(1)[0]
    if count < _FEWEST_RECORDS or any(elements_of(each) for each in inner if each.name != name):
        return None
    records = [each for each in inner if each.name == name]
    if not all(len(elements_of(each)) > 1 or _fields(each) for each in records):
        return None
    leaves = [leaf for record in records for leaf in _leaves(record)]
    if None in leaves or median(len(leaf or "") for leaf in leaves) > _LONG_VALUE:
        return None
    beside = {each.name: one_line(text_of(each)) for each in inner if each.name != name}
    return records, {**beside, **_fields(root)}


def _is_data(root: XmlElement) -> bool:
    """Whether elements are fields of one object: most of the texts are one word, and none long."""
    leaves = [*_leaves(root)]
    words = [len((leaf or "").split()) for leaf in leaves if leaf != ""]
    if None in leaves or len(words) < _FEWEST_FIELDS or root.name in ("svg", "html"):
        return False
    longest = max(len(leaf or "") for leaf in leaves)
    return longest <= _LONGEST_OF_DATA and sum(n == 1 for n in words) > _MOSTLY * len(words)


def _leaves(element: XmlElement) -> Iterator[str | None]:
    """Yield the texts of elements without others; None where text and elements are mixed, or where
    elements of one name in another are prose."""
    inner = elements_of(element)
    if not inner:
        yield text_of(element).strip()
        return
    if any(isinstance(each, str) and each.strip() for each in element.within):
        yield None
    counts = Counter(each.name for each in inner)
    for each in inner:
        is_alike = counts[each.name] > 1 and not elements_of(each)
        if is_alike and len(text_of(each).split()) > _PROSE_WORDS:
            yield None
        yield from _leaves(each)


def _fields(element: XmlElement) -> dict[str, Scalar]:
    """Return the attributes that are values, and no declarations."""
    return {
        name: value
        for name, value in element.attributes.items()
        if ":" not in name and name != "xmlns" and value.strip()
    }


def _value(element: XmlElement) -> object:
    """Return an element as JSON would have it: its attributes and elements by their names."""
    fields: dict[str, object] = {**_fields(element)}
    inner = elements_of(element)
    text = line_of(element) if not inner else ""
    if not inner and (not fields or not text):
        return fields or text
    if text[:1].isdigit() and len(fields) == 1:
        name, measure = next(iter(fields.items()))
        if _MEASURES.intersection(field_words(name)):
            return f"{text} {measure}"
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


def _property(element: XmlElement) -> object:
    """Return what an element of a property list stands for, as JSON would have it."""
    inner = elements_of(element)
    if element.name == "dict":
        pairs = zip(inner[::2], inner[1::2], strict=False)
        return {line_of(key): _property(value) for key, value in pairs}
    if element.name == "array":
        return [_property(each) for each in inner]
    if element.name in ("true", "false"):
        return element.name == "true"
    return None if element.name == "data" else line_of(element)


def _lines(element: XmlElement) -> Iterator[tuple[str, str]]:
    """Yield the lines of an element, each with the name of the element it is of."""
    has_text = any(isinstance(each, str) and each.strip() for each in element.within)
    inner = elements_of(element)
    if has_text:
        yield line_of(element), element.name.lower()
    elif inner:
        names = (element.attributes.get(name, "") for name in _NAMED_BY)
        yield from ((one_line(name), "") for name in names if name.strip())
        for each in inner:
            yield from _lines(each)
    elif said := _attributes(element):
        yield said, ""


def _of_picture(root: XmlElement) -> Iterator[tuple[str, str]]:
    """Yield what a picture says; its shapes say nothing."""
    for each in elements_in(root, ("title", "desc", "text")):
        spans = elements_of(each)
        is_broken = len(spans) > 1 and len(spans) == len([w for w in each.within if str(w).strip()])
        said = " ".join(map(line_of, spans)) if is_broken else line_of(each)
        if said:
            yield said, each.name


def _attributes(element: XmlElement) -> str:
    return ", ".join(
        f"{name}: {one_line(value)}"
        for name, value in element.attributes.items()
        if value.strip() and name.lower() not in _NOT_TEXT and ":" not in name and name != "xmlns"
    )


XML = FileFormat(read_xml, versions.of("XML", "HTML", "records"), SMALL_RECORDS)
XHTML = FileFormat(read_html, versions.of("XML", "HTML"), SMALL)
