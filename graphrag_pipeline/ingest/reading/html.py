"""Web pages as text, in one pass over their tags and without a tree.

No address, entity or image is ever followed.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists, word_set
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.blocks import Block, BlockKind
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.decoding import decode
from graphrag_pipeline.ingest.reading.equations import with_linear_math
from graphrag_pipeline.ingest.reading.html_events import QUOTED, read_attributes, read_pieces
from graphrag_pipeline.ingest.reading.html_lines import (
    LANDMARK,
    LINK_LIST,
    NAVIGATION,
    Cells,
    Line,
    PageLines,
    Region,
    as_rows,
    heading_of,
    is_data,
    mark_of,
    render,
)
from graphrag_pipeline.ingest.reading.html_links import address_of, marked, with_addresses
from graphrag_pipeline.ingest.reading.model import (
    SMALL,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Scalar,
    Unreadable,
    whole_document,
)
from graphrag_pipeline.ingest.reading.preformatted import reads_as_prose

_DECLARED = pattern_of(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]{1,40})", re.I)
_INVISIBLE = pattern_of(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
# One space stays as it is.
_SPACE = pattern_of(r"[\t\n\r\f\xa0][ \t\n\r\f\xa0]*| [ \t\n\r\f\xa0]+")
_UNUSUAL_SPACE = "\x0b\x1c\x1d\x1e\x1f"  # to Python, and not to a page
_WORDS = pattern_of(r"[^a-z0-9]+")
_LINE_ENDS = pattern_of(r"[ \t\r\f]+(?=\n)|\r(?=\n)")
_PERMALINKS = frozenset(("¶", "§", "#", "¤", "🔗", "⚓", "∞"))
_BETWEEN_TITLES = pattern_of(r"\s*(?:[—–|·»«:]|-(?=\s|$)|(?<=\s)-)\s*")


_VOID = word_set("area base br col embed hr img input link meta param source track wbr frame")
_DROPPED = word_set(
    "script style noscript template svg math iframe object canvas audio video "
    "noembed noframes select textarea button datalist map comment"
)
_PARAGRAPHS = word_set(
    "p h1 h2 h3 h4 h5 h6 ul ol dl table blockquote pre figure hr section article main form "
    "fieldset details"
)
_LINES = word_set(
    "html body div li tr dt dd br caption figcaption header address summary legend thead tbody "
    "tfoot center dialog hgroup menu search nav footer aside"
)
_CELLS = word_set("td th")
_BREAKS = _PARAGRAPHS | _LINES | _CELLS
_ENDS_PARAGRAPH = (_PARAGRAPHS | _LINES) - word_set("br")
_SECTIONS = word_set("article aside main nav section")
_HEADINGS = word_set("h1 h2 h3 h4 h5 h6")
_LISTS = word_set("ul ol menu")
_LISTS_OF_LINKS = word_set("ul ol dl menu table p div")
_REGIONS = word_set("main article nav header footer aside")
_NEVER_AROUND = word_set("html body main article h1 h2 h3 h4 h5 h6 pre section td th")
_CLOSED_BY = {
    "li": word_set("li"),
    "dt": word_set("dt dd"),
    "dd": word_set("dt dd"),
    "td": word_set("td th"),
    "th": word_set("td th"),
    "tr": word_set("td th tr"),
    "tbody": word_set("td th tr thead tbody"),
}
_MARKING = word_set("hidden aria-hidden style role class id")
_META = {"author": "author", "date": "date", "article:published_time": "date"}
_FEW_LINKS = 4
_FEW_ANCHORS = 3
_LINK_SHARE = 0.75
_STEPS = pattern_of(
    r"""\b(?:rel|accesskey)\s*=\s*["']?(?:prev|next|up|home|start|[pnuh]\b)""", re.I
)
# Inline elements that only say how their text looks: most tags of a page of code.
_LOOKS = (
    r"</?+(?:s(?:pan|trong|mall|amp)|em|b(?:ig)?+|i|u|tt|var|c(?:ite|ode)|kbd|font|a(?:bbr|cronym)"
    r"|mark)"
)
_INLINE = pattern_of(_LOOKS + r"(?:\s++[\w:-]++=\"[^\"<>]*+\")*+\s*+>", re.I)
_OF_LOOKS = pattern_of(rf"{_LOOKS}\b{QUOTED}(.?)", re.I)
# Words that may hide an element, written so as to be searched for fast.
_HIDDEN = pattern_of("[hHnN][iIoO](?:[dD]{2}[eE][nN]|[nN][eE])")
_LONGEST_TAG = 2_000
_POWER = pattern_of(r"<sup(?<=\d<sup)\b[^<>]*>(?=\s*(?:<a\b[^<>]*>\s*)?[-+−]?\d)")
"""What begins a number above a number: the power of one, or the mark of a note."""
_SPAN = pattern_of(r"\b(row|col)span\s*=\s*[\"']?\s*(\d{1,4})", re.I)
_FIRST_NUMBER = pattern_of(r"(?<![\w-])(?:start|value)\s*=\s*[\"']?\s*([1-9]\d{0,3})\b", re.I)
_UNNUMBERED = pattern_of(r"\breversed\b|list-style[^;\"']{0,30}none", re.I)
_COUNTED_BY = pattern_of(r"(?<![\w-])type\s*=\s*[\"']?([aAiI])\b")
_MOST_SPANNED = 50
_MOST_INDENTED = 8
_FEWEST_WITHIN, _MOST_WITHIN = 3, 8  # rows of a table in a cell of another, and how deep
_MOST_LINES = 1_000_000  # each takes about 200 bytes
_DEEPEST = 512  # elements in each other, as in browsers
_BETWEEN_PAGES = "\n\n"


@dataclass
class Page:
    """The readable part of a page; `heading` is its first heading, `title` its `<title>`."""

    text: str = ""
    title: str = ""
    heading: str = ""
    metadata: dict[str, Scalar] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


def read_html(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read one web page; an encoding that the page declares is used if none is configured.

    Links to other documents in its text are those of Markdown: ``[words](address)``.
    """
    markup = decode(data, options.encoding or _declared_encoding(data))
    page = _PageParser(with_links=True).parse(markup)
    if not page.text:
        raise Unreadable("the page has no readable text: it may need a browser to fill it")
    title = title_of(page.title, page.heading)
    return whole_document(path, page.text, title, page.metadata, page.blocks)


def parse_html(markup: str) -> Page:
    """Return the text of a page without scripts, styles, navigation and hidden parts.

    Paragraphs are separated by a blank line, lines by a newline; list items start with "- " or with
    their number, rows of tables are "| a | b |", code stands between fences; white space is
    collapsed outside `<pre>`.
    """
    return _PageParser().parse(markup)


def joined_pages(pages: Sequence[Page]) -> tuple[Page, list[int]]:
    """Return pages as one, a blank line between, and where in its text each of them begins."""
    texts, blocks, starts = [], [], []
    place = 0
    for page in pages:
        starts.append(place)
        if page.text:
            blocks += [block.moved(place) for block in page.blocks]
            texts.append(page.text)
            place += len(page.text) + len(_BETWEEN_PAGES)
    text = _BETWEEN_PAGES.join(texts)
    heading = next((page.heading for page in pages if page.heading), "")
    joined = Page(text, heading=heading, blocks=blocks)
    return joined, [min(start, len(text)) for start in starts]


def title_of(title: str, heading: str) -> str:
    """Return the title of a page without the name of its site, which its heading does not have.

    >>> title_of("Sorting — Python documentation", "Sorting")
    'Sorting'
    """
    title, heading = one_line(title), one_line(heading)
    if not title or not heading:
        return title or heading
    before, found, after = title.partition(heading)
    is_part = found and (
        (not before and _BETWEEN_TITLES.match(after))
        or (not after and _BETWEEN_TITLES.search(before[-4:]))
    )
    return heading if is_part else title


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


def _without_looks(markup: str) -> str:
    """Return the page without tags that neither divide nor hide its text, unless some do hide."""
    for word in _HIDDEN.finditer(markup):
        start = markup.rfind("<", max(word.start() - _LONGEST_TAG, 0), word.start())
        tag = _OF_LOOKS.match(markup, start) if start >= 0 else None
        # What is after the end of a tag hides nothing, unless quotes in it do not match.
        if tag and (tag.end() > word.start() or tag.group(1) != ">"):
            return markup
    return _INLINE.sub("", markup)


class _PageParser:
    """Follows the open elements, and writes the lines of what is visible in them."""

    def __init__(self, *, with_links: bool = False) -> None:
        self.page = Page()
        self.with_links = with_links
        self.addresses: list[str] = []
        self.address = ""
        self.out = PageLines()
        self.open: list[str] = []
        self.at_end: dict[int, list[Callable[[], None]]] = {}
        self.depth: defaultdict[str, int] = defaultdict(int)
        self.dropped_from: int | None = None
        self.parts: list[str] = []
        self.gap = self.links = self.anchors = self.steps = self.linked = 0
        self.link_from: int | None = None
        self.written = self.written_in_links = 0
        self.prefix = ""
        self.numbers: list[int] = []
        self.counted_by: list[str] = []
        self.cells = Cells()
        self.row = self.cell = self.groups = self.group = self.definition = 0
        self.heading = 0
        self.is_term = self.is_signature = self.is_wide = False
        self.defined: Line | None = None
        self.main = 0
        self.has_usual_space = False

    def parse(self, markup: str) -> Page:
        self.has_usual_space = not any(map(markup.__contains__, _UNUSUAL_SPACE))
        markup = _POWER.sub("^", markup) if "<sup" in markup else markup
        markup = with_linear_math(markup)
        for text, slash, name, attributes in read_pieces(_without_looks(markup)):
            if text and self.dropped_from is None:
                self._text(text)
            if slash:
                self._close(name)
            elif name:
                self._open(name, attributes)
        while self.open:
            self._pop()
        self._end_line(0)
        lines = self.out.keep()
        for line in lines if self.addresses else ():
            line.text = with_addresses(line.text, self.addresses)
        self.page.text, self.page.blocks = render(lines)
        self.page.heading = heading_of(lines)
        return self.page

    def _text(self, written: str) -> None:
        if self.open and self.open[-1] == "title":
            self.page.title = self.page.title or html.unescape(written)
        elif self.parts or self.link_from is not None or self.depth["pre"] or not written.isspace():
            self.parts.append(html.unescape(written))

    def _open(self, name: str, written: str) -> None:
        if self.open:
            self._imply_closed(name)
        visible = self.dropped_from is None
        if visible and name in _BREAKS:
            self._break(name)
        if name in _VOID or (not visible and written.endswith("/")):
            if name == "meta":
                self._meta(read_attributes(written))
            return
        if visible:
            marks = _PLAIN
            if written:
                marks = (_marks if len(written) <= _LONGEST_TAG else _read_marks)(written)
            if name in _DROPPED or marks.is_hidden:
                if written.endswith("/") and name in ("svg", "math"):
                    return
                self.dropped_from = len(self.open)
            else:
                self._start(name, written, marks)
        self.open.append(name)
        self.depth[name] += 1

    def _start(self, name: str, written: str, marks: _Marks) -> None:
        if name in _CELLS:
            self._start_cell(name, written)
        elif name in _HEADINGS:
            self.heading = int(name[1])
        elif name == "dt":
            self.is_term, self.is_signature = True, marks.is_signature
        elif name == "li":
            self.prefix = self._mark_of_item(written)
        elif name == "tr":
            self.row, self.cell = self.row + 1, -1
        elif name == "pre" and not self.depth["pre"]:
            self._at_end(self._end_code)
        elif name in _LISTS:
            self._start_list(name, written)
        elif start := _STARTS.get(name):
            start(self, written)
        if name in _LISTS_OF_LINKS:
            self._watch_links(name)
        if marks is not _PLAIN or name in _REGIONS:
            self._mark(name, marks)

    def _start_definition(self, written: str) -> None:
        start, outer = len(self.out.lines), self.definition
        self.definition = start
        self._at_end(lambda: self._define(start, outer))

    def _define(self, start: int, outer: int) -> None:
        """Write a definition of one line into the line of its terms, and a further one after it.

        The terms are those after the line where the definition that it is in begins.
        """
        self.definition = outer
        lines = self.out.lines
        if len(lines) != start + 1 or lines[start].kind is not None:
            self.defined = None
            return
        first = start
        while first > outer and lines[first - 1].kind == "heading" and not lines[first - 1].level:
            first -= 1
        said = ", ".join(line.text for line in lines[first:start]).rstrip(" :") + ": "
        if first == start > outer and lines[start - 1] is self.defined:
            first = start - 1
            said = lines[first].text
            said += " " if said.endswith(".") else "; "
        if first < start:
            lines[start].text = f"{said}{lines[start].text}"
            lines[start].gap = lines[first].gap
            lines[start].linked += sum(line.linked for line in lines[first:start])
            self.defined = lines[start]
            del lines[first:start]

    def _start_cell(self, name: str, written: str) -> None:
        self.cell += 1
        self.is_wide |= self.cell > 0
        if name == "td" and not self.depth["thead"]:
            self.cells.bodies.add(self.row)
        elif name == "th" and not self.cell:
            self.cells.labelled.add(self.row)
        if "span" in written:
            spans = {kind.lower(): int(n) for kind, n in _SPAN.findall(written[:_LONGEST_TAG])}
            height = min(spans.get("row", 1), _MOST_SPANNED) or 1
            width = min(spans.get("col", 1), _MOST_SPANNED) or 1
            self.cells.spans[self.row, self.cell] = (height, width)

    def _mark(self, name: str, marks: _Marks) -> None:
        """Write down the region of an element that is around the text, or that is the text."""
        if name == "main" or marks.is_main:
            self.main += 1
            self._region(self.out.main, 0)
            self._at_end(self._leave_main)
        elif name == "article":
            self._region(self.out.articles, 0)
        elif name == "nav" or marks.is_landmark:
            self._region(self.out.regions, LANDMARK)
        elif name in ("header", "footer", "aside"):
            is_sites = not self.main and not any(self.depth[section] for section in _SECTIONS)
            if is_sites or marks.is_navigation:
                self._region(self.out.regions, LANDMARK)
        elif marks.is_navigation and name not in _NEVER_AROUND:
            self._region(self.out.regions, NAVIGATION)

    def _region(self, regions: list[Region], why: int) -> None:
        if self.parts:
            self._end_line(1)
        if len(self.open) > _DEEPEST:
            return
        start = len(self.out.lines)

        def end() -> None:
            self._end_line(1)
            if start < len(self.out.lines):
                regions.append(Region(start, len(self.out.lines), why))

        self._at_end(end)

    def _leave_main(self) -> None:
        self.main -= 1

    def _watch_links(self, name: str) -> None:
        """Write down the lines of an element as a list of links if they are nearly all links."""
        if len(self.open) > _DEEPEST:
            return
        start, links, anchors, steps = len(self.out.lines), self.links, self.anchors, self.steps
        written, in_links = self.written, self.written_in_links

        def end() -> None:
            n_links, n_anchors = self.links - links, self.anchors - anchors
            least = _FEW_ANCHORS if n_links == n_anchors else _FEW_LINKS
            if n_links < (1 if n_links == self.steps - steps else least):
                return
            self._end_line(1)
            stop = len(self.out.lines)
            mostly = _LINK_SHARE * (self.written - written)
            is_bar = name in ("p", "div")
            if self.written_in_links - in_links >= mostly and not (is_bar and stop - start > 1):
                self.out.regions.append(Region(start, stop, LINK_LIST))

        self._at_end(end)

    def _start_link(self, written: str) -> None:
        self.link_from = len(self.parts)
        self.address = ""
        if "href" in written:
            if self.with_links and not (self.heading or self.is_term or self.depth["pre"]):
                self.address = address_of(written)
            self.links += 1
            self.anchors += "#" in written
            self.steps += bool(_STEPS.search(written))

    def _end_link(self) -> None:
        if self.link_from is None:
            return
        text = "".join(self.parts[self.link_from :]).strip()
        if text in _PERMALINKS:
            del self.parts[self.link_from :]
        else:
            # "Default:" is the name of a field, whatever it leads to.
            if self.address and text and not text.endswith(":"):
                words = marked("".join(self.parts[self.link_from :]), len(self.addresses))
                self.linked += len(words) - len(text)
                self.parts[self.link_from :] = [words]
                self.addresses.append(self.address)
            self.linked += len(text)
        self.link_from = None

    def _start_list(self, name: str, written: str) -> None:
        """Note the number of its first item, 0 where items have none, and what counts them."""
        group = self.group
        if not group:
            self.groups += 1
            self.group = self.groups
        first = _FIRST_NUMBER.search(written)
        is_numbered = name == "ol" and not _UNNUMBERED.search(written)
        self.numbers.append(int(first[1]) if first and is_numbered else int(is_numbered))
        counted_by = _COUNTED_BY.search(written)
        self.counted_by.append(counted_by[1] if counted_by else "1")
        self._at_end(lambda: self._leave_list(group))

    def _leave_list(self, group: int) -> None:
        self.group = group
        self.numbers.pop()
        self.counted_by.pop()

    def _mark_of_item(self, written: str) -> str:
        """Return the mark of an item, or a dash, after two blanks for each list around it."""
        number = self.numbers[-1] if self.numbers else 0
        indent = "  " * min(len(self.numbers) - 1, _MOST_INDENTED)
        if not number:
            return f"{indent}- "
        own = _FIRST_NUMBER.search(written)
        number = int(own[1]) if own else number
        self.numbers[-1] = number + 1
        counted_by = _COUNTED_BY.search(written)
        return f"{indent}{mark_of(number, counted_by[1] if counted_by else self.counted_by[-1])} "

    def _start_table(self, written: str) -> None:
        # A page that is laid out by a table has one column, and rows of others within it.
        is_within = self.depth["table"] > 0
        if is_within and (self.is_wide or self.depth["table"] > _MOST_WITHIN):
            return
        around = (self.row, self.cell, self.cells)
        start = len(self.out.lines)
        self.row, self.is_wide = 0, False
        self.cells = cells = Cells()

        def end() -> None:
            self._end_line(1)
            lines = self.out.lines[start:]
            n_rows = len({line.row for line in lines})
            last, (self.row, self.cell, self.cells) = self.row, around
            if is_data(lines) and (not is_within or n_rows >= _FEWEST_WITHIN):
                self.groups += 1
                self.out.lines[start:] = as_rows(lines, self.groups, cells)
                # Rows are fewer lines than their cells: none of them is left out by itself.
                for regions in (self.out.regions, self.out.main, self.out.articles):
                    while regions and regions[-1].end > start:
                        regions.pop()
                self.is_wide = False
            elif is_within:
                self.row += last
                self.cells.take(cells, around[0])
                for line in lines:
                    line.row += around[0]

        self._at_end(end)

    def _at_end(self, action: Callable[[], None]) -> None:
        self.at_end.setdefault(len(self.open), []).append(action)

    def _close(self, name: str) -> None:
        if not self.depth[name]:
            if name in ("br", "p") and self.dropped_from is None:
                self._break(name)
            return
        while self._pop() != name:
            pass

    def _pop(self) -> str:
        name = self.open.pop()
        if self.dropped_from is None:
            self._end(name, len(self.open))
        elif len(self.open) <= self.dropped_from:
            self.dropped_from = None
        self.depth[name] -= 1
        return name

    def _end(self, name: str, place: int) -> None:
        if name in _BREAKS:
            self._break(name)
        elif name == "a":
            self._end_link()
        if place in self.at_end:
            for action in self.at_end.pop(place):
                action()
        if self.heading and name in _HEADINGS:
            self.heading = 0
        elif name == "dt":
            self.is_term = False

    def _break(self, name: str) -> None:
        if self.depth["pre"]:
            if self.parts and name != "pre":
                self.parts.append("\n")
            return
        if name in _PARAGRAPHS:
            self._end_line(1 if self.depth["li"] or self.row else 2)
        else:
            n_lines = len(self.out.lines)
            self._end_line(0 if name in _CELLS else 1)
            is_second = self.gap and len(self.out.lines) == n_lines
            if name == "br" and is_second and not self.depth["li"] and not self.row:
                self.gap = 2  # an empty line, which divides paragraphs

    def _end_line(self, gap: int) -> None:
        if self.parts:
            text = "".join(self.parts)
            if self.has_usual_space and text.isascii():
                text = " ".join(text.split())
            else:
                text = _SPACE.sub(" ", text).strip()
            self._end_parts()
            if text:
                self._add(text, self._kind())
        if gap > self.gap:
            self.gap = gap

    def _end_parts(self) -> None:
        if self.link_from is not None:
            self.linked += sum(map(len, self.parts[self.link_from :]))
            self.link_from = 0
        self.parts = []

    def _kind(self) -> BlockKind | None:
        if self.heading:
            return "heading"
        if self.is_term:
            return "code" if self.is_signature else "heading"
        return "list" if self.group else None

    def _add(self, text: str, kind: BlockKind | None) -> None:
        if len(self.out.lines) == _MOST_LINES:
            raise Unreadable(f"the page has more than {_MOST_LINES:,} lines")
        self.out.lines.append(
            Line(
                text,
                self.gap,
                prefix=self.prefix,
                kind=kind,
                group=self.group,
                row=self.row,
                cell=max(self.cell, 0),
                linked=min(self.linked, len(text)),
                level=self.heading,
            )
        )
        self.written += len(text)
        self.written_in_links += min(self.linked, len(text))
        self.gap = self.linked = 0
        self.prefix = ""

    def _end_code(self) -> None:
        code = _LINE_ENDS.sub("", "".join(self.parts).replace("\xa0", " "))
        self._end_parts()
        code = code.rstrip().lstrip("\n")
        if code.strip():
            self.prefix = ""
            is_code = not reads_as_prose(code)
            self._add(code, "code" if is_code else None)
            self.out.lines[-1].is_fenced = is_code
        self.gap = max(self.gap, 1 if self.depth["li"] or self.row else 2)

    def _imply_closed(self, name: str) -> None:
        """Close what the standard lets authors leave open: `<p>`, `<li>`, `<td>` and the like."""
        if self.open[-1] == "p" and name in _ENDS_PARAGRAPH:
            self._pop()
        closed = _CLOSED_BY.get(name)
        while closed and self.open and self.open[-1] in closed:
            self._pop()

    def _meta(self, attributes: dict[str, str]) -> None:
        kind = attributes.get("name") or attributes.get("property") or ""
        name = _META.get(kind.lower())
        if name:
            self.page.metadata.setdefault(name, attributes.get("content", ""))


_STARTS: Mapping[str, Callable[[_PageParser, str], None]] = {
    "a": _PageParser._start_link,
    "dd": _PageParser._start_definition,
    "table": _PageParser._start_table,
}


@dataclass(frozen=True)
class _Marks:
    """Marks that the attributes of an element put on it."""

    is_hidden: bool = False
    is_main: bool = False
    is_landmark: bool = False
    is_navigation: bool = False
    is_signature: bool = False


_PLAIN = _Marks()


def _read_marks(written: str) -> _Marks:
    if "=" not in written and "hidden" not in written.lower():
        return _PLAIN
    said = [pair for pair in read_attributes(written).items() if pair[0] in _MARKING]
    return _marks_of(*said) if said else _PLAIN


_marks = lru_cache(4096)(_read_marks)


@lru_cache(1024)
def _marks_of(*said: tuple[str, str]) -> _Marks:
    words = word_lists("pages.txt")
    attributes = dict(said)
    role = attributes.get("role", "").lower()
    classes = attributes.get("class", "").lower().split()
    identifier = attributes.get("id", "").lower()
    marks = _Marks(
        is_hidden=(
            ("hidden" in attributes and attributes["hidden"].lower() != "false")
            or attributes.get("aria-hidden", "").lower() == "true"
            or bool(_INVISIBLE.search(attributes.get("style", "")))
        ),
        is_main=role == "main",
        is_landmark=role in words["role"],
        is_navigation=identifier in words["id"] or any(map(_names_navigation, classes)),
        is_signature=not words["signature"].isdisjoint(classes),
    )
    return _PLAIN if marks == _PLAIN else marks


def _names_navigation(name: str) -> bool:
    words = word_lists("pages.txt")
    if name in words["exact"]:
        return True
    parts = set(_WORDS.split(name))
    return not words["navigation"].isdisjoint(parts) and words["text"].isdisjoint(parts)


HTML = FileFormat(read_html, versions.of("HTML"), SMALL)
