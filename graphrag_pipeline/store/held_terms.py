"""The search terms of texts in memory: which texts hold a term, and how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.store.held_vectors import places_of

if TYPE_CHECKING:
    import pyarrow as pa


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
        words = pc.split_pattern(terms.take(order), " ")  # type: ignore[attr-defined]
        n_rows, lengths = max(1, len(ids)), np.diff(words.offsets.to_numpy())
        encoded = words.flatten().dictionary_encode()
        codes = encoded.indices.to_numpy().astype(np.int64)
        pairs = np.unique(codes * n_rows + np.repeat(np.arange(len(ids)), lengths))
        self._rows = (pairs % n_rows).astype(np.int32)
        # Where the rows of each term begin, and where those of the last end.
        self._starts = np.searchsorted(pairs, np.arange(len(encoded.dictionary) + 1) * n_rows)
        self._code_of = {term: n for n, term in enumerate(encoded.dictionary.to_pylist())}

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
        code = self._code_of.get(term)
        if code is None:
            return self._rows[:0]
        return self._rows[self._starts[code] : self._starts[code + 1]]
