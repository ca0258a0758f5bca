"""The vectors of one table in memory, searched exactly by one product; ids kept sorted as bytes."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.arrays import places_in

if TYPE_CHECKING:
    import pyarrow as pa

# Single precision is sure of no more, and equal vectors must tie wherever their rows stand.
_DECIMALS = 6
# Fewer dimensions than this part of all are added one by one, more by so many at a time.
_FEW, _BLOCK = 4, 32
_HALF_EXPONENT = np.uint16(0x7C00)


def are_numbers(vectors: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which vectors of a column hold finite numbers alone."""
    flat = vectors.flatten().to_numpy(zero_copy_only=False)
    return are_numbers_in(flat.reshape(len(vectors), -1))


def are_numbers_in(rows: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.bool_]:
    """Return which vectors, one a row, hold finite numbers alone."""
    if rows.dtype == np.float16:
        # All bits of the exponent are set; numpy looks at numbers in half precision one by one.
        exponents = rows.view(np.uint16) & _HALF_EXPONENT
        return np.asarray(exponents.max(axis=1, initial=0) < _HALF_EXPONENT)
    return np.asarray(np.isfinite(rows).all(axis=1))


class SearchedVectors(ABC):
    """Vectors by id. A vector of zeros has no direction, and is like nothing.

    They are held by dimension: a question of few words has few dimensions where vectors count
    words, and the others are not read.
    """

    dimensions: int
    """The length of each vector."""
    _ids: npt.NDArray[np.bytes_]
    _lengths: npt.NDArray[np.float64]

    def nearest(
        self, query: npt.NDArray[np.float32], k: int, among: Sequence[str] | None = None
    ) -> tuple[list[str], npt.NDArray[np.float64]]:
        """Return the ids of the ``k`` nearest vectors and their cosines, best first, ties by id.

        Of all, or of those with the ids ``among``.
        """
        if not query.any():
            return [], np.empty(0)
        if among is not None:
            places, is_known = places_of(self._ids, among)
            own = np.setdiff1d(places[is_known], self._without_direction)
            scores = self._cosines(query, own)
            nearest = highest(scores, min(k, len(own)))
            return [key.decode() for key in self._ids[own[nearest]].tolist()], scores[nearest]
        scores = self._cosines(query)
        scores[self._without_direction] = -np.inf
        rows = highest(scores, min(k, len(scores) - len(self._without_direction)))
        return [key.decode() for key in self._ids[rows].tolist()], scores[rows]

    def similarities(self, query: npt.NDArray[np.float32], ids: Sequence[str]) -> dict[str, float]:
        """Return the cosine of a query and each of those ids that there is."""
        places, is_known = places_of(self._ids, ids)
        scores = self._cosines(query, places[is_known])
        keys_held = (key for key, is_held in zip(ids, is_known.tolist(), strict=True) if is_held)
        return dict(zip(keys_held, scores.tolist(), strict=True))

    @functools.cached_property
    def _without_direction(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self._lengths == 0)

    def _cosines(
        self, query: npt.NDArray[np.float32], places: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the cosine of a query and each vector, or those at some places among the ids."""
        unit = query / (np.linalg.norm(query) or 1)
        filled = np.flatnonzero(unit)
        lengths = self._lengths if places is None else self._lengths[places]
        lengths = np.where(lengths > 0, lengths, 1)
        if places is not None:
            return rounded(unit[filled] @ self._part(filled, places) / lengths)
        # Not by BLAS: its threads wait for each other longer than one product takes.
        sums = np.zeros(len(self._ids))
        if len(filled) < len(unit) // _FEW:
            for dimension in filled.tolist():
                self._add(sums, dimension, unit[dimension])
        else:
            for first in range(0, len(unit), _BLOCK):
                block = slice(first, min(first + _BLOCK, len(unit)))
                sums += np.einsum("i,ij->j", unit[block], self._block(block))
        return rounded(self._by_id(sums) / lengths)

    @abstractmethod
    def _add(self, sums: npt.NDArray[np.float64], dimension: int, factor: np.float32) -> None:
        """Add the numbers of one dimension to sums, each times a factor."""

    @abstractmethod
    def _block(self, dimensions: slice) -> npt.NDArray[np.float32]:
        """Return the numbers of some dimensions, shape (dimensions, vectors)."""

    @abstractmethod
    def _part(
        self, dimensions: npt.NDArray[np.intp], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Return the numbers of some dimensions of the vectors at some places among the ids."""

    def _by_id(self, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return sums, which are in the order of vectors, in the order of ids."""
        return sums


class HeldVectors(SearchedVectors):
    """Vectors with every number of them.

    Parameters
    ----------
    n_rows
        How many vectors there are.
    parts
        Distinct ids, in any order, and their vectors, shape (ids, dimensions).
    dimensions
        The length of each vector.
    """

    def __init__(
        self,
        n_rows: int,
        parts: Iterable[tuple[Sequence[str], npt.NDArray[np.floating[Any]]]],
        dimensions: int,
    ) -> None:
        self.dimensions = dimensions
        self._columns = np.empty((dimensions, n_rows), np.float32)
        squares, keys = np.zeros(n_rows), []
        for ids, vectors in parts:
            rows = slice(len(keys), len(keys) + len(ids))
            keys += [key.encode() for key in ids]
            self._columns[:, rows] = vectors.T
            squares[rows] = squared_lengths(vectors)
        unsorted = np.array(keys, dtype=np.bytes_)
        self._row_of = np.argsort(unsorted, kind="stable")
        self._ids = unsorted[self._row_of]
        self._lengths = np.sqrt(squares)[self._row_of]

    def _add(self, sums: npt.NDArray[np.float64], dimension: int, factor: np.float32) -> None:
        sums += factor * self._columns[dimension]

    def _block(self, dimensions: slice) -> npt.NDArray[np.float32]:
        return self._columns[dimensions]

    def _part(
        self, dimensions: npt.NDArray[np.intp], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        return self._columns[np.ix_(dimensions, self._row_of[places])].astype(np.float64)

    def _by_id(self, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return sums[self._row_of]


def squared_lengths(vectors: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """Return the square of the length of each vector, one a row."""
    exact = vectors.astype(np.float32, copy=False)
    return np.einsum("ij,ij->i", exact, exact, dtype=np.float64)


def rounded(cosines: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """Return cosines to the decimals that can be relied on."""
    return np.round(cosines.astype(np.float64), _DECIMALS)


def places_of(
    sorted_ids: npt.NDArray[np.bytes_], ids: Iterable[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return where each id stands among sorted ones, and whether it does."""
    return places_in(sorted_ids, np.array([key.encode() for key in ids], dtype=np.bytes_))


def same_rows(
    ids: npt.NDArray[np.bytes_],
    versions: npt.NDArray[np.uint64],
    ids_before: npt.NDArray[np.bytes_],
    versions_before: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Return the new place of each earlier row, -1 for none, and which rows are as they were.

    Both ids are ascending.
    """
    at, is_same = places_in(ids_before, ids)
    is_same[is_same] = versions_before[at[is_same]] == versions[is_same]
    row_of = np.full(len(ids_before), -1, np.int32)
    row_of[at[is_same]] = np.flatnonzero(is_same)
    return row_of, is_same


def highest(scores: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.intp]:
    """Return the places of the ``k`` highest scores, best first, equal ones in their order."""
    if k < 1:
        return np.empty(0, np.intp)
    least = np.partition(scores, -k)[-k]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.concatenate([above[np.argsort(-scores[above], kind="stable")], equal])[:k]
