"""Mentions, which every extractor returns: one row per instance found in a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

ENTITY_MENTIONS: Mapping[str, type] = {
    "chunk_id": str,
    "title": str,
    "type": str,
    "description": str,
    "start_char": int,
    "end_char": int,
}
RELATIONSHIP_MENTIONS: Mapping[str, type] = {
    "chunk_id": str,
    "source": str,
    "target": str,
    "description": str,
    "weight": float,
    "start_char": int,
    "end_char": int,
    "type": str,
}


@dataclass(frozen=True)
class Extraction:
    """The mentions found in a set of chunks.

    ``entities`` has the columns of ``ENTITY_MENTIONS``, ``relationships`` those of
    ``RELATIONSHIP_MENTIONS``. ``start_char`` and ``end_char`` are the evidence's span in the
    chunk's own text (0-based code points, end exclusive), null where the extractor knows none.
    The ``type`` of a relationship is the field of a record or the predicate of a triple that says
    so, else empty. Titles are as written; the graph merges them by ``text.normalize_title``.
    """

    entities: pl.DataFrame
    relationships: pl.DataFrame
