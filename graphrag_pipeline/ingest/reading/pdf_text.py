"""The lines of a PDF become paragraphs, headings, lists and rows of tables.

PDF keeps no paragraphs. A line goes on in the next one when it is about as long as the long lines
of its column, or ends inside a sentence that the next goes on with in small letters; so does the
last line of a column or page. A new paragraph begins after more white than stands between lines,
and with a line that is indented.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.blocks import Block, BlockKind
from graphrag_pipeline.ingest.reading.cleaning import clean_text
from graphrag_pipeline.ingest.reading.pdf_layout import LEAST_CELLS, Row, usual_height
from graphrag_pipeline.ingest.reading.pdf_lines import SOFT_HYPHEN

_FULL_LINE = 0.75  # of the column's long lines
_FAR = 2.0  # of the height of a line
_LONG_LINES = 0.9  # of a column's lines are no longer than its long lines
_INDENTED = 0.6  # of a line's height
_WHITE = 1.4  # of the usual distance of two lines
_LARGER = 1.15  # than most text: a heading
_SAME_SIZE = 0.08
_LONGEST_HEADING = 200
_LIST_ITEM = pattern_of(r"\s*(?:[-•*–▪◦‣]|\(?(?:\d{1,3}|[a-z]|[ivx]{2,4})[.)]|\(?[A-Z]\))\s")
_LEADER_DOTS = 5
_LEADER = pattern_of(rf"(?:\s?\.){{{_LEADER_DOTS},}}\s*\S{{0,8}}\s*$")
_CJK = pattern_of("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_HALF_WORD = pattern_of(r"([^\W\d_]+)[-\ufffe]$")
_OTHER_HALF = pattern_of(r"[^\W\d_]+")
_WORDS = pattern_of(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_SENTENCE_END = ".!?:;"


@dataclass(frozen=True)
class PdfText:
    """The text of a PDF with its blocks; `heading` is the largest of its first page, or "".

    ``page_starts`` are the first characters of its pages; one without text begins with the next.
    """

    text: str
    blocks: list[Block]
    heading: str
    page_starts: list[int]


@dataclass(slots=True)
class _Paragraph:
    parts: list[str]
    kind: BlockKind | None
    gap: str
    last: Row
    begun: dict[int, int]
    """By the number of a page that begins in it, how many of its parts are before that."""

    @property
    def page(self) -> int:
        return next(iter(self.begun))


def write_text(pages: Sequence[Sequence[Row]]) -> PdfText:
    """Return the lines of pages as one text; paragraphs are lines, more white is a blank line."""
    words = _Words(pages)
    body = usual_height(pages)
    paragraphs: list[_Paragraph] = []
    for number, page in enumerate(pages):
        for _, column in groupby(page, key=lambda row: row.column):
            _add_column(paragraphs, list(column), number, body, words)
    for paragraph in paragraphs:
        if paragraph.kind == "heading" and sum(map(len, paragraph.parts)) > _LONGEST_HEADING:
            paragraph.kind = None
    return _written(paragraphs, len(pages))


def rows_of(text: str) -> list[Row]:
    """Return the lines of a page of which only the text is known."""
    rows: list[Row] = []
    height = 0.0
    for line in clean_text(text).split("\n"):
        height -= 1.0
        if line.strip():
            written = line.strip()
            rows.append(Row(written, 0.0, len(written), height, 1.0, 0))
    return rows


def _add_column(
    paragraphs: list[_Paragraph], rows: list[Row], page: int, body: float, words: _Words
) -> None:
    """Add the lines of a column to the paragraphs before it."""
    left = min(row.left for row in rows)
    full = left + _FULL_LINE * (_high(row.right for row in rows) - left)
    apart = _high_of_lower_half(above.bottom - below.bottom for above, below in pairwise(rows))
    for place, row in enumerate(rows):
        beside = (*rows[max(place - 1, 0) : place], *rows[place + 1 : place + 2])
        has_cells = _has_cells(row) and any(map(_has_cells, beside))
        kind = _kind(row, body, is_table=has_cells or row.table > 0)
        last = paragraphs[-1] if paragraphs else None
        if last is None:
            paragraphs.append(_Paragraph([row.text], kind, "", row, {page: 0}))
            continue
        if row.table and row.table == last.last.table:
            gap = "\n"
        elif place == 0:
            gap = None if _goes_over(last, row, kind) else "\n\n"
        else:
            gap = _gap(last, row, kind, left, full, apart)
        if gap is None:
            words.join(last.parts, row.text)
            last.last = row
            last.begun.setdefault(page, len(last.parts) - 1)
        else:
            paragraphs.append(_Paragraph([row.text], kind, gap, row, {page: 0}))


def _has_cells(row: Row) -> bool:
    return len(row.cells) >= LEAST_CELLS and not row.table


def _kind(row: Row, body: float, *, is_table: bool) -> BlockKind | None:
    if is_table or (row.text.count(".") >= _LEADER_DOTS and _LEADER.search(row.text)):
        return "table"
    if _is_labelled(row):
        return "list"
    if row.height > _LARGER * body and sum(map(str.isalpha, row.text)) > 1:
        return "heading"
    return "list" if _LIST_ITEM.match(row.text) else None


def _is_labelled(row: Row) -> bool:
    """Whether a line is a label with what stands apart after it, as in a form."""
    return len(row.cells) > 1 and row.cells[0].text.endswith(":")


def _gap(
    last: _Paragraph, row: Row, kind: BlockKind | None, left: float, full: float, apart: float
) -> str | None:
    """Return what divides a line from the paragraph before it; None if it goes on with it."""
    before = last.last
    is_white = apart > 0 and before.bottom - row.bottom > _WHITE * apart
    if kind == "heading" and last.kind == "heading":
        is_apart = is_white and before.bottom - row.bottom > _WHITE * row.height
        return None if _same_size(before, row) and not is_apart else "\n\n"
    if "heading" in (kind, last.kind) or is_white:
        return "\n\n"
    if kind is not None or last.kind == "table" or not _edges(before).isdisjoint(_edges(row)):
        return "\n"
    moved = (row.left - before.left) / row.height
    ends = before.text[-1] in _SENTENCE_END
    if ends and (moved < -_INDENTED or (moved > _INDENTED and before.left - left < row.height / 4)):
        return "\n"
    is_label = abs(moved) > _INDENTED and before.right - left < (full - left) / 2
    if _is_inside(before.text, row.text) and not is_label:
        return None
    return None if before.right >= full else "\n"


def _edges(row: Row) -> set[int]:
    """Return where what stands apart in a line begins and ends.

    Words of a justified line stand less far apart.
    """
    pairs = pairwise(row.cells)
    cells = [cell for other, cell in pairs if cell.left - other.right > _FAR * row.height]
    return {round(edge) for cell in cells for edge in (cell.left, cell.right)}


def _is_inside(text: str, following: str) -> bool:
    """Whether a sentence goes on from one line to the next."""
    return following[0].islower() and text[-1] not in _SENTENCE_END


def _goes_over(last: _Paragraph, row: Row, kind: BlockKind | None) -> bool:
    """Whether a paragraph goes on in the next column or on the next page."""
    return (
        kind is None
        and last.kind in (None, "list")
        and _same_size(last.last, row)
        and _is_inside(last.last.text, row.text)
    )


def _same_size(one: Row, other: Row) -> bool:
    return abs(one.height - other.height) <= _SAME_SIZE * max(one.height, other.height)


class _Words:
    """The words of a document, which tell whether a word broken at a hyphen has one."""

    def __init__(self, pages: Iterable[Iterable[Row]]) -> None:
        self._pages = pages
        self._known: set[str] | None = None

    def join(self, parts: list[str], following: str) -> None:
        """Add a line to the lines that go on in it; a hyphen that only breaks a word goes."""
        text = parts[-1]
        is_cut = text.endswith(("-", SOFT_HYPHEN))
        broken, rest = is_cut and _HALF_WORD.search(text), _OTHER_HALF.match(following)
        if broken and rest:
            parts[-1] = text[:-1]
            parts.append("" if self._is_one_word(broken[1], rest.group()) else "-")
        elif not (text.endswith("-") or (_CJK.match(text[-1]) and _CJK.match(following))):
            parts.append(" ")
        parts.append(following)

    def _is_one_word(self, begun: str, rest: str) -> bool:
        if not rest[0].islower():
            return False
        if self._known is None:
            self._known = {
                word.lower()
                for page in self._pages
                for row in page
                for word in _WORDS.findall(row.text)
            }
        whole = f"{begun}{rest}".lower()
        return whole in self._known or f"{begun}-{rest}".lower() not in self._known


def _written(paragraphs: Sequence[_Paragraph], n_pages: int) -> PdfText:
    parts: list[str] = []
    blocks: list[Block] = []
    starts: list[int] = []
    place = 0
    previous: BlockKind | None = None
    for paragraph in paragraphs:
        text = "".join(paragraph.parts).replace(SOFT_HYPHEN, "-")
        start = place + len(paragraph.gap)
        place = start + len(text)
        for page, before in paragraph.begun.items():
            missing = page + 1 - len(starts)
            starts += [start + sum(map(len, paragraph.parts[:before]))] * missing
        parts += [paragraph.gap, text]
        kind = paragraph.kind
        if kind is not None and kind == previous and kind != "heading":
            blocks[-1] = Block(blocks[-1].start, place, kind)
        elif kind is not None:
            blocks.append(Block(start, place, kind))
        previous = kind
    starts += [place] * (n_pages - len(starts))
    return PdfText("".join(parts), blocks, _first_heading(paragraphs), starts)


def _first_heading(paragraphs: Sequence[_Paragraph]) -> str:
    """Return the largest heading of the first page that has text, the first of several."""
    first = [p for p in paragraphs if p.page == paragraphs[0].page and p.kind == "heading"]
    largest = max(first, key=lambda p: round(p.last.height), default=None)
    return "".join(largest.parts) if largest else ""


def _high(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * _LONG_LINES), len(ordered) - 1)]


def _high_of_lower_half(values: Iterator[float]) -> float:
    ordered = sorted(value for value in values if value > 0)
    return ordered[(len(ordered) - 1) // 2] if ordered else 0.0
