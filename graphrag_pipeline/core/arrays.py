"""Arrays of numbers and of short texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct values of an array of one dimension, ascending.

    As ``numpy.unique``, which since its version 2.3 hashes integers, and takes up to eighteen times
    as long.
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def places_in(
    ordered: npt.NDArray[Any], values: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return where each value stands among ascending ones, and whether it does."""
    places = np.searchsorted(ordered, values)
    is_there = places < len(ordered)
    is_there[is_there] = ordered[places[is_there]] == values[is_there]
    return places, is_there


def fixed_bytes(texts: pa.Array) -> npt.NDArray[np.bytes_]:
    """Return texts or bytes without nulls; where all are equally long, without looking at any."""
    import pyarrow as pa

    texts = texts.cast(pa.binary())
    if len(texts):
        offsets = np.frombuffer(texts.buffers()[1], np.int32)
        offsets = offsets[texts.offset : texts.offset + len(texts) + 1]
        lengths = np.diff(offsets)
        if lengths.min() == lengths.max() and lengths[0]:
            data = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
            return data.view(f"S{lengths[0]}")
    return np.array(texts.to_pylist(), dtype=np.bytes_)
