"""The blocks in each chunk: what of its text is heading, code, table or list."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

CHUNK_BLOCKS = pl.List(pl.Struct({"start": pl.Int64, "end": pl.Int64, "kind": pl.String}))
_LONGEST = 2**36


def chunk_blocks(chunks: pl.DataFrame, blocks: pl.DataFrame) -> pl.Series:
    """Return, for each chunk, the blocks that overlap it: a column of ``CHUNK_BLOCKS``.

    Chunks have ``document_id``, ``start_char`` and ``end_char``; blocks are rows of the table
    ``blocks``, in any order. Spans count in the chunk's text and are cut off at its ends.
    """
    import pyarrow as pa

    numbers = blocks.select(pl.col("document_id").unique(maintain_order=True)).with_row_index("n")
    ordered = _placed(blocks, numbers).sort("start")
    wanted = _placed(chunks, numbers)
    starts, ends = ordered["start"].to_numpy(), ordered["end"].to_numpy()
    chunk_starts, chunk_ends = wanted["start"].to_numpy(), wanted["end"].to_numpy()
    first = np.searchsorted(ends, chunk_starts, side="right")
    last = np.searchsorted(starts, chunk_ends, side="left")
    offsets = np.concatenate(([0], np.cumsum(np.maximum(last - first, 0))))
    chunk = np.repeat(np.arange(len(chunks)), np.diff(offsets))
    block = np.arange(offsets[-1]) - offsets[chunk] + first[chunk]
    origin = chunk_starts[chunk]
    found = pa.StructArray.from_arrays(
        [
            pa.array(_within(starts[block], chunk_starts[chunk], chunk_ends[chunk]) - origin),
            pa.array(_within(ends[block], chunk_starts[chunk], chunk_ends[chunk]) - origin),
            ordered["kind"].gather(block).to_arrow().cast(pa.large_string()),
        ],
        names=["start", "end", "kind"],
    )
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), found)
    return pl.Series("blocks", pl.from_arrow(lists), dtype=CHUNK_BLOCKS)


def _placed(spans: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """Give the spans of all documents places on one line, those of no document before it."""
    origin = (pl.col("n").cast(pl.Int64).fill_null(-2) + 1) * _LONGEST
    return spans.join(numbers, "document_id", how="left", maintain_order="left").select(
        (pl.col("start_char") + origin).alias("start"),
        (pl.col("end_char") + origin).alias("end"),
        *(pl.col(name) for name in spans.columns if name == "kind"),
    )


def _within(
    places: npt.NDArray[np.int64], first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    return np.minimum(np.maximum(places, first), last)
