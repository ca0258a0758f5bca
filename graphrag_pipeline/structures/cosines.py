"""Cosines of pairs of vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SLICE = 50_000
_DIGITS = 6


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
