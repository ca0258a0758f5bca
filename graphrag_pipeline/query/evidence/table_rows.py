"""Rows of tables in documents, as evidence: each by itself, its cells with the heads above them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from graphrag_pipeline.core.records import SEPARATOR
from graphrag_pipeline.query.evidence.sentences import Sentence

ROW = "row"
"""The kind of a row, beside the kinds of blocks."""
CELL_END = "; "
"""What stands between the cells of a row that is told with its heads."""
_RULE = re.compile(r":?-{2,}:?")
_EDGE = re.compile(r"(?<!\\)\|")
_MOST_CELLS = 60


def by_rows(
    sentences: Sequence[Sentence], kinds: Sequence[str]
) -> tuple[list[Sentence], list[str]]:
    """Return sentences and their kinds, each row of a table in place of what it was read in."""
    rows: list[Sentence] = []
    their_kinds: list[str] = []
    read: set[tuple[str, int]] = set()
    for sentence, kind in zip(sentences, kinds, strict=True):
        within = [sentence] if kind != "table" else list(_rows(sentence))
        for row in within:
            place = (row.window.row["document_id"], row.start)
            if kind != "table" or place not in read:
                read.add(place)
                rows.append(row)
                their_kinds.append(ROW if kind == "table" and row is not sentence else kind)
    return rows, their_kinds


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
        if line.strip() and not _is_rule(line) and not _is_rule(following):
            end = start + len(line.rstrip())
            yield sentence._replace(
                last=sentence.place, start=start, end=end, first=line.rstrip(), quote=line.rstrip()
            )


def _is_rule(line: str) -> bool:
    """Whether the cells of a line are dashes alone; looked at one by one, in linear time."""
    return all(map(_RULE.fullmatch, _cells(line)))


def with_heads(row: Sentence) -> str:
    """Return a row with the head of each cell before it; as it stands where its head is not near.

    ``| Astrid | Norway |`` below ``| ship | country |`` is ``ship: Astrid; country: Norway``.
    """
    offset, text = row.window.row["window_start"], row.window.row["text"]
    above = text[: row.start - offset].split("\n")[:-1]
    heads: list[str] = []
    for place in range(len(above) - 1, 0, -1):
        if not above[place].lstrip().startswith("|"):
            break
        if _is_rule(above[place]):
            heads = _cells(above[place - 1])
            break
    cells = _cells(row.quote)
    if not any(heads) or len(heads) != len(cells) or len(cells) > _MOST_CELLS:
        return row.quote
    pairs = zip(heads, cells, strict=True)
    return CELL_END.join(f"{h}{SEPARATOR}{c}" if h else c for h, c in pairs if c) or row.quote


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in _EDGE.split(inner)]
