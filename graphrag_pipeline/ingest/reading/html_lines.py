"""The lines of a web page become its text: which of them it keeps, and what they are."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import field_words
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.ingest.reading.blocks import Block, BlockKind
from graphrag_pipeline.ingest.reading.table_head import (
    MOST_HEADS,
    REPEATED,
    is_number,
    joined_names,
    n_over,
    names_numbers,
    names_values,
)

AROUND_MAIN, LINK_LIST, NAVIGATION, LANDMARK = 1, 2, 3, 4
"""Why a line is left out, the more certain the higher."""
_LEAST_WITHOUT = {LINK_LIST: 140, NAVIGATION: 60, LANDMARK: 20}
_MUCH_LOST = 300
_FENCE = pattern_of("`{3,}")
_MAIN_SHARE = 0.25
_MOST_NAVIGATION = 0.4
_MOSTLY_LINKS = 0.5
_LONG_CELL = 400
_LEAST_ROWS = 3  # of a table whose first row is told by half of its words
_LABEL_WORDS = 3
_FIELD = 2  # cells: what a field is called, and what it holds
_ROMAN = (
    *("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"),
    *("xi", "xii", "xiii", "xiv", "xv", "xvi", "xvii", "xviii", "xix", "xx"),
)
_LABELS = ("label", "key", "person", "place", "organisation", "of_person", "of_place", "of_work")


@dataclass(slots=True)
class Line:
    """One line of a page; code may have newlines in it.

    ``gap`` is the number of newlines before it, ``group`` the number of the list or table it is in,
    ``row`` and ``cell`` its place in a table, ``linked`` how many of its characters are links,
    ``level`` that of a heading.
    """

    text: str
    gap: int
    prefix: str = ""
    kind: BlockKind | None = None
    group: int = 0
    row: int = 0
    cell: int = 0
    linked: int = 0
    level: int = 0
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Lines [start, end) that are perhaps to be left out, and why."""

    start: int
    end: int
    why: int


@dataclass
class PageLines:
    """The lines of a page, in order, and the regions of them; `main` holds the text itself."""

    lines: list[Line] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    main: list[Region] = field(default_factory=list)
    articles: list[Region] = field(default_factory=list)

    def keep(self) -> list[Line]:
        """Return the lines that are the page's text; where hardly any are, those around it too."""
        sizes = [len(line.text) for line in self.lines]
        reasons = self._reasons(sizes)
        amounts = [0] * (LANDMARK + 1)
        for why, line in zip(reasons, self.lines, strict=True):
            # Links of navigation are no text that could be lost.
            amounts[why] += len(line.text) - (line.linked if why > LINK_LIST else 0)
        most, kept = 0, amounts[0]
        for why, least in _LEAST_WITHOUT.items():
            if kept == 0 or (kept < least and amounts[why] >= _MUCH_LOST):
                most, kept = why, kept + amounts[why]
        return [line for line, why in zip(self.lines, reasons, strict=True) if why <= most]

    def _reasons(self, sizes: list[int]) -> list[int]:
        """Return for each line why it is left out, 0 where it is not."""
        written = list(itertools.accumulate(sizes, initial=0))
        linked = list(itertools.accumulate((line.linked for line in self.lines), initial=0))
        reasons = [0] * len(sizes)
        titles = [number for number, line in enumerate(self.lines) if line.level == 1]
        title = titles[0] if len(titles) == 1 else -1
        beyond = 0
        for region in sorted(self.regions, key=lambda r: (r.start, -r.end, -r.why)):
            if region.end <= beyond:
                continue
            size = written[region.end] - written[region.start]
            links = linked[region.end] - linked[region.start]
            is_text = links < _MOSTLY_LINKS * size and (
                size > _MOST_NAVIGATION * written[-1] or region.start <= title < region.end
            )
            if region.why == NAVIGATION and is_text:
                continue
            if region.why == LINK_LIST and self._is_introduced(region, reasons):
                continue
            start = max(region.start, beyond)
            reasons[start : region.end] = [region.why] * (region.end - start)
            beyond = region.end
        self._spare_title(reasons)
        self._leave_what_is_around_main(reasons, sizes)
        return reasons

    def _is_introduced(self, region: Region, reasons: list[int]) -> bool:
        """Whether the text before a list of links says that it follows."""
        before = region.start - 1
        return before >= 0 and not reasons[before] and self.lines[before].text.endswith((":", "："))

    def _spare_title(self, reasons: list[int]) -> None:
        """Keep the title that stands in the header of the page, where the text has none."""
        titles = [number for number, line in enumerate(self.lines) if line.level == 1]
        if titles and all(reasons[number] for number in titles):
            reasons[titles[0]] = 0

    def _leave_what_is_around_main(self, reasons: list[int], sizes: list[int]) -> None:
        text = sum(size for size, why in zip(sizes, reasons, strict=True) if not why)
        for regions in (self.main, self.articles):
            inside = [False] * len(sizes)
            for region in _outermost(regions):
                inside[region.start : region.end] = [True] * (region.end - region.start)
            rows = zip(sizes, reasons, inside, strict=True)
            if sum(size for size, why, within in rows if within and not why) > _MAIN_SHARE * text:
                has_title = any(
                    line.level == 1
                    for line, within in zip(self.lines, inside, strict=True)
                    if within
                )
                for number, within in enumerate(inside):
                    is_title = self.lines[number].level == 1 and not has_title
                    if not within and not reasons[number] and not is_title:
                        reasons[number] = AROUND_MAIN
                return


def _outermost(regions: Sequence[Region]) -> Iterable[Region]:
    beyond = 0
    for region in sorted(regions, key=lambda r: (r.start, -r.end)):
        if region.end > beyond:
            yield region
            beyond = region.end


def mark_of(number: int, by: str) -> str:
    """Return the mark of an item of a list that counts by "1", "a" or "A", or as Rome did.

    >>> mark_of(2, "A"), mark_of(14, "i"), mark_of(3, "1"), mark_of(28, "a")
    ('B)', 'xiv)', '3.', '28.')
    """
    letters = {"a": ascii_lowercase, "i": _ROMAN}.get(by.lower(), ())
    if number > len(letters):
        return f"{number}."
    said = letters[number - 1]
    return f"{said.upper() if by.isupper() else said})"


def heading_of(lines: Sequence[Line]) -> str:
    """Return the first heading of the highest level, unless it is but that of a list of contents.

    Such a one has links alone below it, and is one of several.
    """
    headings = [number for number, line in enumerate(lines) if line.level]
    first = min(headings, key=lambda number: lines[number].level != 1, default=None)
    if first is None:
        return ""
    below = lines[first + 1] if first + 1 < len(lines) else lines[first]
    n_equal = sum(lines[number].level == lines[first].level for number in headings)
    is_of_contents = n_equal > 1 and 0 < len(below.text) <= below.linked
    return "" if is_of_contents else lines[first].text


def is_data(lines: Sequence[Line]) -> bool:
    """Whether the lines of a `<table>` are rows of cells, and not a page laid out in columns.

    A box with an icon beside *Note* and its text has no two cells in a row.
    """
    cells = {(line.row, line.cell) for line in lines if line.row}
    rows = {row for row, _ in cells}
    wide = {row for row, cell in cells if cell}
    if 2 * len(wide) < len(rows) or len(cells) == len(rows):
        return False
    size = sum(len(line.text) for line in lines)
    is_plain = all(line.kind not in ("code", "heading", "table") for line in lines)
    return is_plain and size < _LONG_CELL * len(cells)


@dataclass
class Cells:
    """Facts of a table's cells beside their text, by row and cell as they are written."""

    bodies: set[int] = field(default_factory=set)
    """Rows that do not name columns."""
    labelled: set[int] = field(default_factory=set)
    """Rows whose first cell is a head."""
    spans: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """How many rows and columns a cell takes, where these are several."""

    def take(self, others: Cells, above: int) -> None:
        """Take the cells of a table within this one, below as many of its rows."""
        self.bodies.update(row + above for row in others.bodies)
        self.labelled.update(row + above for row in others.labelled)
        self.spans |= {(row + above, cell): span for (row, cell), span in others.spans.items()}


def as_rows(lines: Sequence[Line], group: int, cells: Cells) -> list[Line]:
    """Return the lines of a table with a line for each row, and one of dashes below its head.

    A head of several rows is one line. A row of a head and one cell is a field, "Owner: Ann". What
    stands in a cell of several rows is said in each.
    """
    rows: list[Line] = []
    written: list[list[str]] = []
    n_heads, first = 0, 0
    columns = _Columns(cells.spans)
    for row, of_row in itertools.groupby(lines, key=lambda line: line.row):
        inside = list(of_row)
        if not row:
            rows += inside
            continue
        first = first if written else len(rows)
        texts = [""] * (1 + max(line.cell for line in inside))
        for line in inside:
            texts[line.cell] = f"{texts[line.cell]} {line.prefix}{line.text}".strip()
        n_heads += row not in cells.bodies and n_heads == len(written)
        written.append(columns.placed(row, texts))
        linked = sum(line.linked for line in inside)
        gap = 1 if rows else inside[0].gap
        is_field = row in cells.labelled & cells.bodies and len(texts) == _FIELD and all(texts)
        text = ": ".join([texts[0].rstrip(" :"), texts[1]]) if is_field else _row(written[-1])
        rows.append(Line(text, gap, kind="table", group=group, linked=linked))
    n_heads = (
        n_heads if n_heads > 1 else max(n_heads, n_names(written, is_merged=bool(cells.spans)))
    )
    if 0 < n_heads < len(written) and n_heads <= MOST_HEADS and rows[first].kind == "table":
        names = joined_names(written[:n_heads])
        head = Line(_row(names), rows[first].gap, kind="table", group=group)
        dashes = Line(_row(["---"] * len(names)), 1, kind="table", group=group)
        rows[first : first + n_heads] = [head, dashes]
    return rows


def _row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def n_names(rows: Sequence[Sequence[str]], *, is_merged: bool = False) -> int:
    """Return how many rows name columns, where none is marked: see :func:`n_over`."""
    n_heads = n_over(rows, is_merged=is_merged)
    return n_heads if n_heads > 1 else int(len(rows) > 1 and _are_names(rows))


def _are_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns: by words for that, or as it stands over numbers."""
    numbers = [is_number(cell) for cell in rows[0]]
    is_plain = len(rows[0]) > 2 and all(rows[0]) and not any(numbers)
    is_over = names_values(rows) or _has_corner(rows)
    return is_over or _are_labels(rows) or (is_plain and names_numbers(rows))


def _has_corner(rows: Sequence[Sequence[str]]) -> bool:
    """Whether only the first cell of all is empty, and words beside it stand over other words."""
    (corner, *texts), *others = rows
    if corner or len(others) < 2 or len(texts) < 2 or any(map(is_number, texts)):
        return False
    is_short = all(0 < len(text.split()) <= _LABEL_WORDS for text in texts)
    is_apart = {cell for row in others for cell in row}.isdisjoint(texts)
    return is_short and is_apart and all(row[0] for row in others)


def _are_labels(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the cells of the first row are words that fields are called by, as Name and Town.

    All of them, or half of short ones of which none stands below; not where the first cells of rows
    are such words, as in a table of fields.
    """
    texts = rows[0]
    if len(texts) < 2 or not all(0 < len(text.split()) <= _LABEL_WORDS for text in texts):
        return False
    n_labels = sum(map(_is_label, texts))
    if n_labels == len(texts):
        return True
    if 2 * n_labels < len(texts) or len(rows) < _LEAST_ROWS or any(map(is_number, texts)):
        return False
    below = {cell for row in rows[1:] for cell in row}
    has_fields = any(_is_label(row[0]) for row in rows[1:])
    return not (has_fields or below.intersection(texts))


def _is_label(text: str) -> bool:
    return field_words(text)[-1:] in _labels()


@functools.cache
def _labels() -> frozenset[tuple[str, ...]]:
    words = word_lists("nlp_records.txt")
    return frozenset((word,) for section in _LABELS for word in words[section])


class _Columns:
    """Places the cells of one row after the other in the columns of a table."""

    def __init__(self, spans: Mapping[tuple[int, int], tuple[int, int]]) -> None:
        self._spans = spans
        self._from_above: dict[int, tuple[int, str]] = {}

    def placed(self, row: int, texts: Sequence[str]) -> list[str]:
        """Return the texts of a row, one for each column."""
        if not self._spans:
            return list(texts)
        placed: list[str] = []
        below: dict[int, tuple[int, str]] = {}
        for cell, text in enumerate(texts):
            self._take(placed, below)
            height, width = self._spans.get((row, cell), (1, 1))
            for said in [text, *[""] * (width - 1)]:
                if height > 1:
                    below[len(placed)] = (height - 1, said if len(said) <= REPEATED else "")
                placed.append(said)
        self._take(placed, below)
        self._from_above = below
        return placed

    def _take(self, placed: list[str], below: dict[int, tuple[int, str]]) -> None:
        """Add what cells of the rows above say in the next columns."""
        while len(placed) in self._from_above:
            left, said = self._from_above[len(placed)]
            if left > 1:
                below[len(placed)] = (left - 1, said)
            placed.append(said)


def render(lines: Iterable[Line]) -> tuple[str, list[Block]]:
    """Return the text of some lines, and its blocks."""
    parts: list[str] = []
    blocks: list[Block] = []
    place = group = 0
    for line in lines:
        text = _fenced(line.text) if line.is_fenced else line.text
        separator = "\n" * max(line.gap, 1) if parts else ""
        start = place + len(separator)
        place = start + len(line.prefix) + len(text)
        parts += [separator, line.prefix, text]
        if line.kind is None:
            group = 0
            continue
        if blocks and group and (group, line.kind) == (line.group, blocks[-1].kind):
            blocks[-1] = Block(blocks[-1].start, place, line.kind)
        else:
            blocks.append(Block(start, place, line.kind))
        group = line.group if line.kind in ("list", "table") else 0
    return "".join(parts), blocks


def _fenced(code: str) -> str:
    longest = max(map(len, _FENCE.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{code}\n{fence}"
