"""OpenDocument: texts (odt), presentations (odp) and spreadsheets (ods), and each in one file
that is not packed (fodt, fodp, fods).

The XML is read as a stream, and said again in HTML for the reader of web pages. The library for
the format, odfdo, keeps a tree and needs 26 s for a text of 2 MB of XML, which takes 0.2 s here.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_set
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.archives import (
    Parts,
    open_archive,
    own_title,
    parse_xml,
    properties,
)
from graphrag_pipeline.ingest.reading.equations import with_linear_math
from graphrag_pipeline.ingest.reading.html import joined_pages, parse_html
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    Unreadable,
    whole_document,
)
from graphrag_pipeline.ingest.reading.sheets import CellBudget, Sheet, read_sheets, sheet_of

_MOST_DEPTH = 500
_MOST_SPACES = 100
_DROPPED = word_set(
    "office:annotation-end office:forms text:tracked-changes text:table-of-content "
    "text:alphabetical-index text:note-citation office:settings office:event-listeners "
    "presentation:footer presentation:date-time text:page-number style:region-left "
    "table:content-validations table:tracked-changes text:sequence-decls office:binary-data "
    "office:meta office:styles office:automatic-styles office:master-styles office:scripts"
)
_STYLES = word_set("office:styles office:automatic-styles")
_MOST_NUMBERED = 9_999
_TAGS = {
    "text:p": "p",
    "table:table": "table",
    "table:table-header-rows": "thead",
    "table:table-row": "tr",
}
_SPANS = {"table:number-rows-spanned": "rowspan", "table:number-columns-spanned": "colspan"}
_OF_COMMENTS = ("http:creator", "http:date")
_Merged = list[tuple[tuple[int, int], tuple[int, int]]]
_Notes = dict[tuple[int, int], str]
_MATH_PREFIX = pattern_of(r"(</?)math:(?=\w)")
_HEAD = "Table_20_Heading"
"""The style of paragraphs in heads of tables, which not everybody has repeated on each page."""


def read_opendocument(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a text or a presentation: headings, paragraphs, lists, tables and notes in order.

    In a presentation the slides are pages and their titles headings; the speaker's notes follow the
    slide. Charts are tables of their numbers, and formulas text. Comments follow at the end, of a
    slide at its end. Changes that were tracked as deleted and tables of contents are left out.
    """
    parts = _open(path, data, options)
    content = _content(parts)
    about = properties(parts, "meta.xml")
    markup = _Markup(parts)
    page, starts = joined_pages(
        [parse_html(each) for each in markup.of(parts.get("styles.xml", b""), content)]
    )
    if not page.text:
        raise Unreadable("the document holds no text")
    title = own_title(about) or page.heading
    slides = starts if markup.slides else ()
    return whole_document(path, page.text, title, about, page.blocks, slides)


def read_ods(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read a spreadsheet as the csv reader reads tables: a document for each row of each sheet."""
    content = _content(_open(path, data, options))
    return read_sheets(path, _Sheets(options).of(content), options)


def _open(path: Path, data: bytes, options: ReadingOptions) -> Parts:
    """Return the parts of a file; one that is not packed is its content and its properties."""
    if path.suffix.lower().startswith(".f"):
        return {"content.xml": data, "meta.xml": data}
    return open_archive(data, options, kind="an OpenDocument file", suffix=path.suffix.lower())


def _content(parts: Parts) -> bytes:
    if b"encryption-data" in parts.get("META-INF/manifest.xml", b""):
        raise Unreadable("encrypted: save it without a password")
    if "content.xml" not in parts:
        raise Unreadable("the file is not an OpenDocument file: it has no content.xml")
    return parts["content.xml"]


class _Reader:
    """Follows the elements of the body; what is in a dropped one is not seen."""

    dropped = _DROPPED

    def __init__(self) -> None:
        self.open: list[str] = []
        self.dropped_from = 0

    def parse(self, xml: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        for _ in parse_xml(xml, parser):
            pass

    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...

    def _start(self, written: str, attributes: dict[str, str]) -> None:
        name = _short(written)
        self.open.append(name)
        if len(self.open) > _MOST_DEPTH:
            raise Unreadable(f"elements are nested more than {_MOST_DEPTH} deep")
        if self.dropped_from:
            return
        if name in self.dropped:
            self.dropped_from = len(self.open)
        else:
            self.start(name, {_short(key): value for key, value in attributes.items()})

    def _end(self, _: str) -> None:
        name = self.open.pop()
        if not self.dropped_from:
            self.end(name)
        elif len(self.open) < self.dropped_from:
            self.dropped_from = 0

    def _characters(self, text: str) -> None:
        if not self.dropped_from:
            self.text(text)


def _short(name: str) -> str:
    """Return "text:p" for "urn:oasis:names:tc:opendocument:xmlns:text:1.0 p"."""
    space, _, local = name.rpartition(" ")
    return f"{space.rpartition(':')[0].rpartition(':')[2]}:{local}"


@dataclass
class _List:
    """An open list: its style, and the number of its next item; 0 where items have none."""

    style: str
    number: int
    is_counted: bool = False
    """Whether the number of the open item is used: one that only holds a list shows none."""


@dataclass
class _Lists:
    """The open lists, and what their styles say of their numbers."""

    firsts: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    """The number of the first item and what counts it, by style and level, where any does."""
    style: str = ""
    open: list[_List] = field(default_factory=list)
    ended: dict[tuple[str, int], int] = field(default_factory=dict)
    """The next number of the last list of a style and level, which another may continue."""

    def learn(self, name: str, attributes: dict[str, str]) -> None:
        """Note what an element says of a style."""
        if name == "text:list-style":
            self.style = attributes.get("style:name", "")
        elif name == "text:list-level-style-number" and attributes.get("style:num-format"):
            level = _number(attributes.get("text:level"), 1, _MOST_DEPTH)
            first = _number(attributes.get("text:start-value"), 1, _MOST_NUMBERED)
            self.firsts[self.style, level] = (first, attributes["style:num-format"])

    def begin(self, attributes: dict[str, str]) -> tuple[str, str]:
        """Return the tags of a list."""
        style = attributes.get("text:style-name", self.open[-1].style if self.open else "")
        place = (style, len(self.open) + 1)
        number, counted_by = self.firsts.get(place, (0, ""))
        if (
            attributes.get("text:continue-numbering") == "true"
            or "text:continue-list" in attributes
        ):
            number = self.ended.get(place, number)
        self.open.append(_List(style, number))
        if not number:
            return "<ul>", "</ul>"
        return f"<ol start={number} type={counted_by}>", "</ol>"

    def end(self) -> None:
        """Close a list."""
        level = len(self.open)
        ended = self.open.pop()
        self.ended[ended.style, level] = ended.number

    def item(self, attributes: dict[str, str]) -> str:
        """Return the tag of an item."""
        if not self.open or not self.open[-1].number:
            return "<li>"
        within = self.open[-1]
        within.number = _number(attributes.get("text:start-value"), within.number, _MOST_NUMBERED)
        within.is_counted = False
        return f"<li value={within.number}>"

    def count(self) -> None:
        """Count an item, which has text."""
        if self.open and self.open[-1].number and not self.open[-1].is_counted:
            self.open[-1].number += 1
            self.open[-1].is_counted = True


class _Markup(_Reader):
    """Says a text, or each slide of a presentation, again in HTML."""

    dropped = (_DROPPED - _STYLES) | {"table:covered-table-cell"}

    def __init__(self, objects: Parts) -> None:
        super().__init__()
        self.objects = objects
        self.lists = _Lists()
        self.parts = [""]
        self.closing: list[str] = []
        self.inside = self.notes_from = self.comment_from = 0
        self.comments: list[str] = []
        self.slides: list[str] = []
        self.said_by: dict[str, str] = {}

    def of(self, styles: bytes, xml: bytes) -> list[str]:
        if styles:
            self.parse(styles)
        self.parse(xml)
        return self.slides or [self._taken()]

    def _taken(self) -> str:
        """Return what was said since it was last asked for, comments at the end."""
        said = "".join([*self.parts, *self.comments])
        self.parts, self.comments = [""], []
        return said

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if attributes.get("text:style-name") == _HEAD and self.parts[-1].startswith("<td"):
            self.parts[-1] = self.parts[-1].replace("td", "th", 1)
            self.closing[-1] = "</th>"
        opened, closed = self._tags(name, attributes)
        if name == "drawing:object":
            opened = self._object(attributes.get("http:href", "").removeprefix("./"))
        self.parts.append(opened)
        self.closing.append(closed)
        self.inside += name in ("text:p", "text:h")
        if self.open[-2:-1] == ["text:list-item"] and name in ("text:p", "text:h"):
            self.lists.count()
        self.lists.learn(name, attributes)
        if name == "presentation:notes":
            self.notes_from = len(self.parts)
        elif name == "office:annotation":
            self.comment_from, self.said_by = len(self.parts), {}

    def _object(self, name: str) -> str:
        """Return the markup of a chart or a formula, which is a part of its own."""
        xml = self.objects.get(f"{name}/content.xml", b"")
        if b"<math" in xml:
            return with_linear_math(_MATH_PREFIX.sub(r"\1", xml.decode("utf-8", "replace")))
        return "".join(_Markup({}).of(b"", xml)) if xml else ""

    def end(self, name: str) -> None:
        self.parts.append(self.closing.pop())
        self.inside -= name in ("text:p", "text:h")
        if name == "text:list":
            self.lists.end()
        notes = self.parts[self.notes_from :] if name == "presentation:notes" else []
        if any(part.strip() and not part.startswith("<") for part in notes):
            self.parts.insert(self.notes_from, "<p>Notes:</p>")
        elif name == "office:annotation":
            self._take_comment()
        elif name == "drawing:page":
            self.slides.append(self._taken())

    def _take_comment(self) -> None:
        """Take a comment out of the text, as a line of a chat."""
        pieces = self.parts[self.comment_from :]
        del self.parts[self.comment_from :]
        said = " ".join("".join(" " if p.startswith("<") else p for p in pieces).split())
        when = self.said_by.get("http:date", "")[:16].replace("T", " ") or "undated"
        who = html.escape(self.said_by.get("http:creator", "").strip() or "Comment")
        if said:
            self.comments.append(f"<p>[{html.escape(when)}] {who}: {said}</p>")

    def text(self, text: str) -> None:
        if self.open[-1] in _OF_COMMENTS:
            self.said_by[self.open[-1]] = self.said_by.get(self.open[-1], "") + text
        elif self.inside:
            self.parts.append(html.escape(text, quote=False))

    def _tags(self, name: str, attributes: dict[str, str]) -> tuple[str, str]:
        if name == "text:h":
            level = _number(attributes.get("text:outline-level"), 1, 6)
            return f"<h{level}>", f"</h{level}>"
        if name == "text:note":
            return " (", ")"
        if "text:note" in self.open:
            begins = next(filter(None, reversed(self.parts)), "") == " ("
            return ("" if begins else " "), ""
        if name == "drawing:frame" and attributes.get("presentation:class") == "title":
            return "<h2>", "</h2>"
        if name == "text:s":
            return " " * _number(attributes.get("text:c"), 1, _MOST_SPACES), ""
        if name == "text:tab":
            return "\t", ""
        if name == "text:line-break":
            return "<br>", ""
        if name == "table:table-cell":
            spans = (
                (_SPANS[key], _number(n, 1, 1000)) for key, n in attributes.items() if key in _SPANS
            )
            return f"<td{''.join(f' {name}={n}' for name, n in spans)}>", "</td>"
        if name == "text:list":
            return self.lists.begin(attributes)
        if name == "text:list-item":
            return self.lists.item(attributes), "</li>"
        tag = _TAGS.get(name)
        if tag == "p" and "</h2>" in self.closing:
            return " ", ""
        return (f"<{tag}>", f"</{tag}>") if tag else ("", "")


class _Sheets(_Reader):
    """Collects the cells of each sheet; repeated ones count as often as they are repeated."""

    def __init__(self, options: ReadingOptions) -> None:
        super().__init__()
        self.budget = CellBudget(options.max_file_bytes)
        self.tables: list[tuple[str, list[int], list[list[str]], _Merged, _Notes]] = []
        self.row: list[str] = []
        self.number = self.empty = 0
        self.cell: list[str] = []
        self.value = ""
        self.repeated = self.row_repeated = 1

    def of(self, xml: bytes) -> list[Sheet]:
        self.parse(xml)
        return [
            sheet_of(name, numbers, rows, merged, self.budget, notes)
            for name, numbers, rows, merged, notes in self.tables
        ]

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "table:table":
            self.number = 0
            self.tables.append((attributes.get("table:name", ""), [], [], [], {}))
        elif name == "table:table-row":
            self.row, self.empty = [], 0
            self.row_repeated = _number(attributes.get("table:number-rows-repeated"), 1, 1 << 20)
        elif name in ("table:table-cell", "table:covered-table-cell"):
            self.cell = []
            self.value = _typed(attributes)
            columns = attributes.get("table:number-columns-repeated")
            self.repeated = _number(columns, 1, 1 << 14)
            self._note_span(attributes)
        elif name == "text:s":
            self.cell.append(" " * _number(attributes.get("text:c"), 1, _MOST_SPACES))
        elif name == "text:p" and self.cell:
            self.cell.append("\n")

    def end(self, name: str) -> None:
        if name in ("table:table-cell", "table:covered-table-cell"):
            self._add(self.value or "".join(self.cell).strip())
            self.cell = []
        elif name == "table:table-row":
            _, numbers, rows, *_ = self.tables[-1]
            if self.row:
                again = self.row_repeated - 1
                self.budget.take(again * len(self.row), again * sum(map(len, self.row)))
                rows.extend([self.row] * self.row_repeated)
                numbers.extend(range(self.number, self.number + self.row_repeated))
            self.number += self.row_repeated

    def text(self, text: str) -> None:
        if "office:annotation" in self.open:
            at = (self.number, len(self.row) + self.empty)
            notes = self.tables[-1][4]
            notes[at] = (
                f"{notes.get(at, '')}{text}"
                if self.open[-1].startswith("text:")
                else notes.get(at, "")
            )
        elif self.open[-1].startswith("text:"):
            self.cell.append(text)

    def _add(self, value: str) -> None:
        """Add a cell as often as it is repeated; empty ones only before another."""
        if not value:
            self.empty += self.repeated
            return
        self.budget.take(self.empty + self.repeated, len(value) * self.repeated)
        self.row += [*[""] * self.empty, *[value] * self.repeated]
        self.empty = 0

    def _note_span(self, attributes: dict[str, str]) -> None:
        """Note a merged cell by its first and last row and column."""
        wide = _number(attributes.get("table:number-columns-spanned"), 1, 1 << 14)
        high = _number(attributes.get("table:number-rows-spanned"), 1, 1 << 20)
        row, column = self.number, len(self.row) + self.empty
        if wide * high > 1:
            last = (row + high - 1, column + wide - 1)
            self.tables[-1][3].append(((row, column), last))


def _typed(attributes: dict[str, str]) -> str:
    """Return a number or a date as it is, not as the language of the sheet shows it."""
    kind = attributes.get("office:value-type")
    if kind in ("float", "currency"):
        return attributes.get("office:value", "")
    if kind == "date":
        return attributes.get("office:date-value", "").removesuffix("T00:00:00")
    return attributes.get("office:boolean-value", "") if kind == "boolean" else ""


def _number(written: str | None, least: int, most: int) -> int:
    """Return a count as written, within bounds; `least` for what is none."""
    digits = written or ""
    if not (digits.isascii() and digits.isdigit() and len(digits) < 12):
        return least
    return min(max(int(digits), least), most)


OPENDOCUMENT = FileFormat(read_opendocument, versions.of("office", "HTML"))
ODS = FileFormat(read_ods, versions.of("office", "records"))
