"""The vectors of one table in memory, searched exactly by one product; ids kept sorted as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# Single precision is sure of no more, and equal vectors must tie wherever their rows stand.
_DECIMALS = 6


class HeldVectors:
    """Vectors by id. A vector of zeros has no direction, and is like nothing.

    Parameters
    ----------
    ids
        Distinct, in any order.
    matrix
        Shape (len(ids), dimensions); one vector a row.
    """

    def __init__(self, ids: Sequence[str], matrix: npt.NDArray[np.float32]) -> None:
        keys = np.array([key.encode() for key in ids], dtype=np.bytes_)
        order = np.argsort(keys, kind="stable")
        self._ids, self._matrix = keys[order], matrix[order]
        lengths = np.sqrt(np.einsum("ij,ij->i", self._matrix, self._matrix))
        self._matrix /= np.where(lengths > 0, lengths, 1)[:, None]
        self._without_direction = np.flatnonzero(lengths == 0)

    @property
    def dimensions(self) -> int:
        """Return the length of each vector."""
        return self._matrix.shape[1]

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
            scores = self._cosines(query, self._matrix[own])
            nearest = highest(scores, min(k, len(own)))
            return [key.decode() for key in self._ids[own[nearest]].tolist()], scores[nearest]
        scores = self._cosines(query, self._matrix)
        scores[self._without_direction] = -np.inf
        rows = highest(scores, min(k, len(scores) - len(self._without_direction)))
        return [key.decode() for key in self._ids[rows].tolist()], scores[rows]

    def similarities(self, query: npt.NDArray[np.float32], ids: Sequence[str]) -> dict[str, float]:
        """Return the cosine of a query and each of those ids that there is."""
        places, is_known = places_of(self._ids, ids)
        scores = self._cosines(query, self._matrix[places[is_known]])
        keys_held = (key for key, is_held in zip(ids, is_known.tolist(), strict=True) if is_held)
        return dict(zip(keys_held, scores.tolist(), strict=True))

    @staticmethod
    def _cosines(
        query: npt.NDArray[np.float32], unit: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        # Not by BLAS: its threads wait for each other longer than one product takes.
        return rounded(np.einsum("ij,j->i", unit, query / (np.linalg.norm(query) or 1)))


def rounded(cosines: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """Return cosines to the decimals that can be relied on."""
    return np.round(cosines.astype(np.float64), _DECIMALS)


def places_of(
    sorted_ids: npt.NDArray[np.bytes_], ids: Iterable[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return where each id stands among sorted ones, and whether it does."""
    keys = np.array([key.encode() for key in ids], dtype=np.bytes_)
    places = np.searchsorted(sorted_ids, keys)
    is_known = places < len(sorted_ids)
    is_known[is_known] = sorted_ids[places[is_known]] == keys[is_known]
    return places, is_known


def highest(scores: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.intp]:
    """Return the places of the ``k`` highest scores, best first, equal ones in their order."""
    if k < 1:
        return np.empty(0, np.intp)
    least = np.partition(scores, -k)[-k]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.concatenate([above[np.argsort(-scores[above], kind="stable")], equal])[:k]
