"""Rows of tables in documents, as evidence: each by itself, its cells with the heads above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import SEPARATOR
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.evidence.sentences import Sentence
from graphrag_pipeline.query.evidence.units import CELL_END, ROW, Unit
from graphrag_pipeline.query.question import AnalysedQuestion

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_RULE = pattern_of(r":?-+:?")
_EDGE = pattern_of(r"(?<!\\)\|")
_MOST_CELLS = 60
_LONGEST_CAPTION = 100
_LONG_ROW, _SHORT_CELL = 200, 40
_BRACKETED = pattern_of(r"\([^()]*\)")
_LONGEST = 1_000_000  # characters of a table above a row
_TABLES = """
SELECT b.document_id, b.start_char,
       substr(d.text, b.start_char + 1, max(a.place) + 1 - b.start_char) AS text
FROM (SELECT unnest($ids::JSON::VARCHAR[]) AS id, unnest($places::JSON::BIGINT[]) AS place) a
JOIN blocks b ON b.document_id = a.id AND b.kind = 'table'
             AND a.place BETWEEN b.start_char AND least(b.end_char, b.start_char + $most)
JOIN documents d ON d.id = a.id
GROUP BY b.document_id, b.start_char, d.text
"""
_Place = tuple[str, int]


def by_rows(question: AnalysedQuestion, units: Sequence[Unit]) -> list[Unit]:
    """Return units, each row of a table in place of what it was read in."""
    cut: list[Unit] = []
    read: set[_Place] = set()
    for unit in units:
        if unit.kind != "table":
            cut.append(unit)
            continue
        for row in _rows(unit.sentence):
            if _place(row) not in read:
                read.add(_place(row))
                cut.append(Unit(row, unit.kind if row is unit.sentence else ROW))
    return cut


def _rows(sentence: Sentence) -> Iterator[Sentence]:
    """Yield the rows that a sentence reaches into, whole; itself where it is not drawn in bars."""
    window = sentence.window
    offset, text = window.row["window_start"], window.row["text"]
    begin = text.rfind("\n", 0, sentence.start - offset) + 1
    stop = text.find("\n", sentence.end - offset)
    lines = text[begin : stop if stop >= 0 else len(text)].split("\n")
    if not all(line.lstrip().startswith("|") for line in lines if line.strip()):
        yield sentence
        return
    for line in lines:
        start = offset + begin
        begin += len(line) + 1
        following = text[begin : begin + len(line) + 1].partition("\n")[0]
        if line.strip() and not is_rule(line) and not is_rule(following):
            yield sentence.part(start, start + len(line.rstrip()))


def is_rule(line: str) -> bool:
    """Whether the cells of a line are dashes alone; looked at one by one, in linear time."""
    return all(map(_RULE.fullmatch, cells_of(line)))


def tell_rows(index: Release, question: AnalysedQuestion, units: Sequence[Unit]) -> None:
    """Set what units say as their ``line``, of rows of tables with the head of each cell before it.

    What stands above the table is said first, where it says a word that is asked: whose results a
    table has is often said by a heading alone.

    Of a long row short cells stay, and of the long ones those whose heads the question says.

    ``| Astrid | Norway |`` below ``| ship | country |`` is ``ship: Astrid; country: Norway``. A row
    without a head stays as it stands. Of a long table, the head is looked for in its document.
    """
    rows = [unit.sentence for unit in units if unit.kind == ROW]
    heads = {_place(row): _heads_near(row) for row in rows}
    far = [row for row in rows if not heads[_place(row)]]
    heads |= _heads_far(index, far) if far else {}
    for unit in units:
        unit.line = unit.sentence.quote
        if unit.kind == ROW:
            own = heads.get(_place(unit.sentence), [])
            unit.line = row_told(unit.line, own, _caption(unit.sentence), question)


def _place(row: Sentence) -> _Place:
    return row.document_id, row.start


def _heads_near(row: Sentence) -> list[str]:
    """Return the heads above a row, where they are in the same window."""
    offset, text = row.window.row["window_start"], row.window.row["text"]
    above = text[: row.start - offset].split("\n")[:-1]
    for place in range(len(above) - 1, 0, -1):
        if not above[place].lstrip().startswith("|"):
            break
        if is_rule(above[place]):
            return cells_of(above[place - 1])
    return []


def _caption(row: Sentence) -> str:
    """Return the line above the table of a row: its heading, or a short one that ends as such."""
    offset, text = row.window.row["window_start"], row.window.row["text"]
    caption = caption_of(text[: row.start - offset], is_whole=offset == 0)
    return caption if caption != row.window.row["title"] else ""


def caption_of(above: str, *, is_whole: bool = False) -> str:
    """Return the last line of a text that is in no table: a heading, or a short one ending as such.

    Of a text that is no whole one the first line does not count.
    """
    lines = (line.strip() for line in reversed(above.split("\n")[not is_whole :]))
    line = next((line for line in lines if line and not line.startswith("|")), "")
    is_short = len(line) <= _LONGEST_CAPTION and not line.endswith((".", "!", "?", ";"))
    return line.lstrip("# ").strip("*_: ") if is_short else ""


def _heads_far(index: Release, rows: Sequence[Sentence]) -> dict[_Place, list[str]]:
    """Return the heads above rows, by their documents and places, as far as these tables go."""
    if not index.has_rows("blocks"):
        return {}
    asked = set(map(_place, rows))
    ids, places = zip(*sorted(asked), strict=True)
    heads: dict[_Place, list[str]] = {}
    for table in index.rows(_TABLES, ids=list(ids), places=list(places), most=_LONGEST):
        at, before, current = table["start_char"], "", []
        for line in table["text"].split("\n"):
            if not line.lstrip().startswith("|"):
                current = []
            elif "--" in line and is_rule(line):
                current = cells_of(before)
            if (table["document_id"], at) in asked:
                heads[table["document_id"], at] = current
            at, before = at + len(line) + 1, line
    return heads


def row_told(row: str, heads: Sequence[str], caption: str, question: AnalysedQuestion) -> str:
    """Return a row with the heads of its cells, after the caption if a question says a word of it.

    ``row`` is drawn in bars. See ``tell_rows``.
    """
    told = _told(row, heads, question)
    is_asked = not set(terms(caption)).isdisjoint(question.terms)
    return f"{caption}{CELL_END}{told}" if is_asked else told


def _told(row: str, heads: Sequence[str], question: AnalysedQuestion) -> str:
    cells = cells_of(row)
    # Empty cells at the end of a row are not always written.
    if not any(heads) or len(heads) < len(cells) or len(cells) > _MOST_CELLS:
        return row
    pairs = [(head, cell) for head, cell in zip(heads, cells, strict=False) if cell]
    said = _said(heads, question) if len(row) > _LONG_ROW else frozenset[str]()
    if said and any(head in said for head, _ in pairs):
        pairs = [(head, cell) for head, cell in pairs if head in said or len(cell) <= _SHORT_CELL]
    return CELL_END.join(f"{h}{SEPARATOR}{c}" if h else c for h, c in pairs) or row


def _said(heads: Sequence[str], question: AnalysedQuestion) -> frozenset[str]:
    """Return the heads of which a question says all words but those in brackets.

    Without those whose words are among another's: *Programmer* beside *Lead Programmer (L4)*.
    """
    asked = frozenset(question.terms)
    words = {head: frozenset(terms(_BRACKETED.sub("", head))) for head in heads}
    said = [head for head, own in words.items() if own and own <= asked]
    return frozenset(head for head in said if not any(words[head] < words[o] for o in said))


def cells_of(line: str) -> list[str]:
    """Return the cells of a row that is drawn in bars."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in _EDGE.split(inner)]
