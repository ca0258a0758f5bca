"""Vectors of which most numbers are zero, by dimension: arrays that a release carries.

Vectors that count words have a number for each word of a text, and zeros for all others. Without
these a table takes a fifth of the room, and is searched where a file of arrays is mapped, without
LanceDB.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.store.held_vectors import (
    SearchedVectors,
    are_numbers_in,
    places_of,
    same_rows,
    squared_lengths,
)

MOST_ROWS = 16_384
"""Vectors of tables up to so many rows are carried; of larger ones LanceDB is asked."""
# Rows are read by their ids where they are fewer than this part of all.
_FEW = 10
_ROW = np.dtype(np.uint16)
_MOST_DIMENSIONS = np.iinfo(np.uint16).max
Read = Callable[[Sequence[str] | None], tuple[list[str], npt.NDArray[np.floating[Any]]]]


@dataclass(frozen=True)
class SparseArrays:
    """The numbers of vectors that are not zero, in the order of dimensions and rows."""

    starts: npt.NDArray[np.int64]
    """Where the numbers of each dimension begin, and where those of the last end."""
    rows: npt.NDArray[np.uint16]
    """The vector of each number; these are in the order of ids."""
    numbers: npt.NDArray[np.floating[Any]]
    """In the precision that is stored."""
    lengths: npt.NDArray[np.float64]
    """The length of each vector."""

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> SparseArrays:
        """Return what :meth:`arrays` gave."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that this is made of, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        return len(self.starts) - 1


@dataclass(frozen=True)
class Versioned:
    """Vectors, and of which version of which rows they are."""

    ids: npt.NDArray[np.bytes_]
    versions: npt.NDArray[np.uint64]
    arrays: SparseArrays


class SparseVectors(SearchedVectors):
    """Vectors of :class:`SparseArrays`; ``ids`` are ascending, one for each."""

    def __init__(self, ids: npt.NDArray[np.bytes_], arrays: SparseArrays) -> None:
        self._ids, self._lengths, self._arrays = ids, arrays.lengths, arrays
        self.dimensions = arrays.dimensions

    def stored(self) -> tuple[list[str], npt.NDArray[np.floating[Any]]]:
        """Return all ids and their vectors, one a row, in the precision that is stored."""
        each = self._arrays
        dense = np.zeros((len(self._ids), self.dimensions), each.numbers.dtype)
        dense[each.rows, _dimension_of(each)] = each.numbers
        return [key.decode() for key in self._ids.tolist()], dense

    def of(self, ids: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
        """Return the vectors of those ids that there are."""
        places, is_known = places_of(self._ids, ids)
        vectors = self._part(np.arange(self.dimensions), places[is_known]).T.astype(np.float32)
        return dict(zip(itertools.compress(ids, is_known.tolist()), vectors, strict=True))

    def _add(self, sums: npt.NDArray[np.float64], dimension: int, factor: np.float32) -> None:
        rows, numbers = self._of(dimension)
        sums[rows] += factor * numbers

    def _block(self, dimensions: slice) -> npt.NDArray[np.float32]:
        block = np.zeros((dimensions.stop - dimensions.start, len(self._ids)), np.float32)
        for place, dimension in enumerate(range(dimensions.start, dimensions.stop)):
            rows, numbers = self._of(dimension)
            block[place, rows] = numbers
        return block

    def _part(
        self, dimensions: npt.NDArray[np.intp], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        part = np.zeros((len(dimensions), len(places)))
        whole = np.zeros(len(self._ids), np.float32)
        for place, dimension in enumerate(dimensions.tolist()):
            rows, numbers = self._of(dimension)
            whole[rows] = numbers
            part[place] = whole[places]
            whole[rows] = 0
        return part

    def _of(self, dimension: int) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.float32]]:
        """Return the rows that have a number in a dimension, and these."""
        each = self._arrays
        part = slice(each.starts[dimension], each.starts[dimension + 1])
        return each.rows[part], each.numbers[part].astype(np.float32, copy=False)


def sparse_arrays(
    ids: npt.NDArray[np.bytes_],
    versions: npt.NDArray[np.uint64],
    read: Read,
    before: Versioned | None = None,
) -> SparseArrays | None:
    """Return the vectors of rows with these ids, which are ascending.

    ``read`` returns those of some ids, or of all for None, in any order. What ``before`` has in the
    same version is taken from there. None where they would take no less room than with their
    zeros, or some are not finite.
    """
    if before is None:
        return _made(ids, np.arange(len(ids)), *read(None))
    row_of, is_same = same_rows(ids, versions, before.ids, before.versions)
    places = np.flatnonzero(~is_same)
    if not is_same.any():
        return _made(ids, places, *read(None))
    kept = _taken_over(before.arrays, row_of, len(ids))
    if not len(places):
        return kept
    is_few = len(places) < len(ids) // _FEW
    made = _made(ids, places, *read([key.decode() for key in ids[places]] if is_few else None))
    return _joined(kept, made) if made is not None and _fits(kept, made) else None


def _fits(kept: SparseArrays, made: SparseArrays) -> bool:
    return kept.dimensions == made.dimensions and kept.numbers.dtype == made.numbers.dtype


def _made(
    ids: npt.NDArray[np.bytes_],
    places: npt.NDArray[np.int64],
    keys: Sequence[str],
    vectors: npt.NDArray[np.floating[Any]],
) -> SparseArrays | None:
    """Return the arrays of vectors at some places among ids, of which more may be given."""
    given = np.array([key.encode() for key in keys], dtype=ids.dtype)
    order = np.argsort(given, kind="stable")
    order = order[np.searchsorted(given[order], ids[places])] if len(places) else order[:0]
    vectors = vectors[order]
    # Zeros have either sign; numpy compares numbers in half precision one by one.
    filled = np.flatnonzero(vectors.view(np.dtype(f"u{vectors.itemsize}")) << 1 != 0)
    n_bytes, n_dimensions = len(filled) * (vectors.itemsize + _ROW.itemsize), vectors.shape[1]
    if n_bytes > vectors.nbytes or n_dimensions > _MOST_DIMENSIONS:
        return None
    if not are_numbers_in(vectors).all():
        return None
    dimension = (filled % n_dimensions).astype(np.uint16)
    by_dimension = np.argsort(dimension, kind="stable")
    filled, dimension = filled[by_dimension], dimension[by_dimension]
    lengths = np.zeros(len(ids))
    lengths[places] = np.sqrt(squared_lengths(vectors))
    return SparseArrays(
        starts=np.searchsorted(dimension, np.arange(n_dimensions + 1)),
        rows=places[filled // n_dimensions].astype(_ROW),
        numbers=vectors.ravel()[filled],
        lengths=lengths,
    )


def _taken_over(before: SparseArrays, row_of: npt.NDArray[np.int32], n_rows: int) -> SparseArrays:
    """Return arrays under new numbers of rows, without those that have none."""
    rows, numbers, starts = row_of[before.rows], before.numbers, before.starts
    stays = row_of >= 0
    if not stays.all():
        of_stay = rows >= 0
        numbers_before = np.concatenate([[0], np.cumsum(of_stay)])
        rows, numbers, starts = rows[of_stay], numbers[of_stay], numbers_before[starts]
    lengths = np.zeros(n_rows)
    lengths[row_of[stays]] = before.lengths[stays]
    return SparseArrays(starts, rows.astype(_ROW), numbers, lengths)


def _joined(kept: SparseArrays, made: SparseArrays) -> SparseArrays:
    """Return the arrays of other rows each as one."""
    kept_keys, made_keys = (
        _dimension_of(each).astype(np.uint32) << 16 | each.rows for each in (kept, made)
    )
    places = np.searchsorted(kept_keys, made_keys)
    return SparseArrays(
        starts=kept.starts + made.starts,
        rows=np.insert(kept.rows, places, made.rows),
        numbers=np.insert(kept.numbers, places, made.numbers),
        lengths=kept.lengths + made.lengths,
    )


def _dimension_of(arrays: SparseArrays) -> npt.NDArray[np.uint16]:
    return np.repeat(np.arange(arrays.dimensions, dtype=np.uint16), np.diff(arrays.starts))
