"""Blocks: the spans of a document's text that are not running prose."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from graphrag_pipeline.ingest.reading.cleaning import clean_text, without_controls

BlockKind = Literal["heading", "code", "table", "list", "title", "field", "key", "value", "fact"]


class Block(NamedTuple):
    """Characters [start, end) of a text, and what they are."""

    start: int
    end: int
    kind: BlockKind

    def moved(self, by: int) -> Block:
        """Return the same block of a text that begins so many characters later."""
        return Block(self.start + by, self.end + by, self.kind)


def joined_lines(lines: Iterable[tuple[str, str, BlockKind | None]]) -> tuple[str, list[Block]]:
    """Return pieces of text as one, and its blocks.

    Of each piece there is what parts it from the one before, its text, and what it is.
    """
    parts: list[str] = []
    blocks: list[Block] = []
    place = 0
    for gap, text, kind in lines:
        parts += [gap, text] if parts else [text]
        place += len(gap) * (len(parts) > 1) + len(text)
        if kind:
            blocks.append(Block(place - len(text), place, kind))
    return "".join(parts), blocks


def clean_places(text: str, places: Sequence[int]) -> tuple[int, ...]:
    """Return where places of a text, in order, are in it when it is clean."""
    if not places or clean_text(text) == text:
        return tuple(places)
    edges = [0, *places, len(text)]
    parts = [without_controls(text[a:b]) for a, b in itertools.pairwise(edges)]
    whole = "".join(parts)
    lead, length = len(whole) - len(whole.lstrip()), len(whole.strip())
    ends = itertools.accumulate(map(len, parts[:-1]))
    return tuple(min(max(end - lead, 0), length) for end in ends)


def clean_blocks(text: str, blocks: Iterable[Block]) -> tuple[str, tuple[Block, ...]]:
    """Return clean text, and the blocks where they stand in it.

    The blocks are in order, none over another; those with nothing but white space are left out.
    """
    given = list(blocks)
    if not given:
        return clean_text(text), ()
    if clean_text(text) == text:
        return text, tuple(block for block in given if text[block.start : block.end].strip())
    edges = [0, *(edge for block in given for edge in block[:2]), len(text)]
    parts = [without_controls(text[a:b]) for a, b in itertools.pairwise(edges)]
    whole = "".join(parts)
    cleaned = whole.strip()
    place = len(parts[0]) - (len(whole) - len(whole.lstrip()))
    kept: list[Block] = []
    for number, block in enumerate(given):
        inside, after = parts[2 * number + 1 : 2 * number + 3]
        start = max(place, 0)
        end = min(place + len(inside), len(cleaned))
        if inside.strip():
            kept.append(Block(start, end, block.kind))
        place += len(inside) + len(after)
    return cleaned, tuple(kept)
