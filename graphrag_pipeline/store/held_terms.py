"""The search terms of texts in memory: which texts hold a term, and how many."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.store.held_vectors import places_of

if TYPE_CHECKING:
    import pyarrow as pa

_TERMS_REMEMBERED = 4096


class HeldTerms:
    """Texts, given as their terms joined by spaces, by id. Safe to use from several threads.

    Parameters
    ----------
    ids
        Distinct, in any order.
    terms
        One text for each id.
    """

    def __init__(self, ids: Sequence[str], terms: pa.Array) -> None:
        import pyarrow.compute as pc

        keys = np.array([key.encode() for key in ids], dtype=np.bytes_)
        order = np.argsort(keys, kind="stable")
        self._ids = keys[order]
        padded = pc.binary_join_element_wise("", terms.take(order), "", " ")  # type: ignore[attr-defined]
        self._texts = padded
        self._holding: dict[str, npt.NDArray[np.int32]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ids)

    def count(self, term: str) -> int:
        """Return how many texts hold a term."""
        return len(self._rows_holding(term))

    def held(self, ids: Sequence[str], terms: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return which texts hold which terms, shape (ids, terms); an unknown id holds none."""
        places, is_known = places_of(self._ids, ids)
        held = np.zeros((len(ids), len(terms)), np.bool_)
        for column, term in enumerate(terms):
            held[:, column] = np.isin(places, self._rows_holding(term)) & is_known
        return held

    def _rows_holding(self, term: str) -> npt.NDArray[np.int32]:
        """Return the rows of the texts that hold a term, ascending."""
        import pyarrow.compute as pc

        rows = self._holding.get(term)
        if rows is None:
            found = pc.match_substring(self._texts, f" {term} ")  # type: ignore[attr-defined]
            rows = np.flatnonzero(found.to_numpy(zero_copy_only=False)).astype(np.int32)
            with self._lock:
                if len(self._holding) >= _TERMS_REMEMBERED:
                    self._holding.clear()
                self._holding[term] = rows
        return rows
