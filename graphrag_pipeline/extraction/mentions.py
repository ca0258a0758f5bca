"""What every extractor gives back: mentions, one row per instance found in a chunk."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

UNREADABLE = "the model's answer held no"
"""How the error of a chunk begins whose answer came but could not be read."""

ENTITY_MENTIONS = pl.Schema(
    {
        "chunk_id": pl.String,
        "title": pl.String,
        "type": pl.String,
        "description": pl.String,
        "start_char": pl.Int64,
        "end_char": pl.Int64,
    }
)
RELATIONSHIP_MENTIONS = pl.Schema(
    {
        "chunk_id": pl.String,
        "source": pl.String,
        "target": pl.String,
        "description": pl.String,
        "weight": pl.Float64,
        "start_char": pl.Int64,
        "end_char": pl.Int64,
    }
)


@dataclass(frozen=True)
class Extraction:
    """The mentions found in a set of chunks.

    ``entities`` has the columns of ``ENTITY_MENTIONS``, ``relationships`` those of
    ``RELATIONSHIP_MENTIONS``. ``start_char`` and ``end_char`` are the evidence's span in the
    chunk's own text (0-based code points, end exclusive), null where the extractor knows none.
    Titles are as written; the graph merges them by ``text.normalize_title``.
    """

    entities: pl.DataFrame
    relationships: pl.DataFrame


def empty_extraction() -> Extraction:
    """Return an extraction with no rows and the right columns."""
    return Extraction(
        ENTITY_MENTIONS.to_frame(),
        RELATIONSHIP_MENTIONS.to_frame(),
    )
