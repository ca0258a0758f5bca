"""Cosines of pairs of vectors, and the nearest of each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

_SLICE = 50_000
_DIGITS = 6
PAIRS = pl.Schema({"source": pl.Int64, "target": pl.Int64, "similarity": pl.Float64})
"""Pairs of rows, by their places, and how alike they are."""


def similarities(
    vectors: npt.NDArray[np.float32], first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the cosine of each pair of rows, measured alike whatever stands beside it.

    Rows of ``vectors`` have length one; ``first`` and ``second`` are places in it, pair by pair.
    """
    parts = [
        np.einsum(
            "ij,ij->i",
            vectors[first[start : start + _SLICE]].astype(np.float64),
            vectors[second[start : start + _SLICE]].astype(np.float64),
        )
        for start in range(0, len(first), _SLICE)
    ]
    return np.concatenate([np.empty(0), *parts]).round(_DIGITS)


def nearest_of_each(pairs: pl.DataFrame, n: int) -> pl.DataFrame:
    """Return the ``n`` nearest of each source, the nearest first, ties by their places."""
    in_order = pairs.sort(["source", "similarity", "target"], descending=[False, True, False])
    return in_order.group_by("source", maintain_order=True).head(n)
