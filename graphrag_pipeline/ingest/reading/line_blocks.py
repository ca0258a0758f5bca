"""The blocks of a text that is written in lines: Markdown, and plain text with its habits."""

from __future__ import annotations

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.blocks import Block, BlockKind

_FENCE = pattern_of(r"[ \t]*(`{3,}|~{3,})")
_HEADING = pattern_of(r"#{1,6}[ \t]+\S")
_UNDERLINE = pattern_of(r"(=+|-{3,}|~{3,})[ \t]*$")
_ITEM = pattern_of(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S")
_ROW = pattern_of(r"[ \t]*\|.*\|[ \t]*$")
_INDENTED = pattern_of(r"(?: {4}|\t)[ \t]*\S")
_CONTINUED = pattern_of(r"(?: {2}|\t)[ \t]*\S")
_LONGEST_LINE = 10_000  # a heading or a row of a table is no longer


def line_blocks(text: str, *, markdown: bool) -> list[Block]:
    """Return the blocks of a text: headings, lists, tables and, in Markdown, fences and code.

    The text stays as it is.
    """
    blocks: list[Block] = []
    position = 0
    fence = ""
    previous: tuple[int, int, str | None] = (0, 0, None)
    blank = True
    for line in text.split("\n"):
        start, end = position, position + len(line)
        position = end + 1
        if not fence and not line.strip():
            blank = True
            continue
        mark = _FENCE.match(line) if markdown else None
        kind: BlockKind | None
        if fence:
            kind = "code"
            closes = mark is not None and line.strip() == mark.group(1)
            if closes and mark is not None and mark.group(1).startswith(fence):
                fence = ""
            blocks[-1] = Block(blocks[-1].start, max(end, blocks[-1].end), "code")
        elif mark is not None:
            fence, kind = mark.group(1), "code"
            blocks.append(Block(start, end, kind))
        elif (
            not blank
            and previous[2] is None
            and _UNDERLINE.match(line)
            and previous[1] - previous[0] <= _LONGEST_LINE
        ):
            kind = "heading"
            blocks.append(Block(previous[0], end, kind))
        elif (kind := _kind(line, previous[2], blank=blank, markdown=markdown)) is not None:
            goes_on = blocks and previous[2] == kind and kind != "heading"
            if goes_on and (not blank or kind != "table"):
                blocks[-1] = Block(blocks[-1].start, end, kind)
            else:
                blocks.append(Block(start, end, kind))
        previous, blank = (start, end, kind), False
    return blocks


def _kind(line: str, previous: str | None, *, blank: bool, markdown: bool) -> BlockKind | None:
    if markdown and _HEADING.match(line):
        return "heading"
    if len(line) <= _LONGEST_LINE and _ROW.match(line):
        return "table"
    if _ITEM.match(line) and (blank or previous == "list" or not line[0].isspace()):
        return "list"
    if previous == "list" and (not blank or _CONTINUED.match(line)):
        return "list"
    if markdown and _INDENTED.match(line) and (blank or previous == "code"):
        return "code"
    return None
