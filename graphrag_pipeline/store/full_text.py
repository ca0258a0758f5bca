"""Full-text search over the search terms of texts: BM25, exact, on arrays that a file may hold.

An inverted index: for each term the rows of the texts that hold it and how often. It is made of
numbers alone; a term is known by 64 bits of its hash, so that no text can be read out of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.arrays import distinct, fixed_bytes, places_in
from graphrag_pipeline.core.text import MARKS, asked_terms
from graphrag_pipeline.store.held_vectors import highest, places_of, same_rows

if TYPE_CHECKING:
    import pyarrow as pa

_K1, _B = 1.2, 0.75
# Sums of doubles depend on their order in the last digits, and equal texts must tie.
_DECIMALS = 6
_SLICE_ROWS = 65_536
# Rows are read by their ids where they are fewer than this part of all.
_FEW = 10
_MOST_COUNTED = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class FullText:
    """Texts by id, searched by their terms. Safe to use from several threads."""

    ids: npt.NDArray[np.bytes_]
    """Ascending; the texts are numbered in this order."""
    versions: npt.NDArray[np.uint64]
    """The beginning of what each row holds as hash of its content."""
    lengths: npt.NDArray[np.int32]
    """The number of terms in each text."""
    terms: npt.NDArray[np.uint64]
    """The hashes of the terms, ascending."""
    starts: npt.NDArray[np.int64]
    """Where the rows of each term begin, and where those of the last end."""
    rows: npt.NDArray[np.int32]
    """The texts that hold each term, ascending."""
    counts: npt.NDArray[np.uint16]
    """How often each of them holds it, at most 65,535."""

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> FullText:
        """Return what :meth:`arrays` gave."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that this is made of, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return len(self.ids)

    def count(self, term: str) -> int:
        """Return how many texts hold a term."""
        return len(self._holding(term)[0])

    def counts_of(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return how many texts hold each term: for many terms."""
        places, is_known = places_in(self.terms, _hashes(terms))
        counts = np.zeros(len(terms), np.int64)
        counts[is_known] = np.diff(self.starts)[places[is_known]]
        return counts

    @cached_property
    def languages(self) -> dict[str, int]:
        """The number of texts by language, those of English and all others under an empty one."""
        counts = {code: n for code, mark in MARKS.items() if (n := self.count(mark))}
        return {"": len(self) - sum(counts.values()), **counts}

    def weights(self, forms: Mapping[tuple[str, ...], float]) -> dict[str, float]:
        """Return the weights of terms by those of words, each of which has one or more forms.

        Different texts have different forms, by their languages; a word counts by the number of
        texts that have any.
        """
        weights: dict[str, float] = {}
        for terms, weight in forms.items():
            shares = [1.0] if len(terms) == 1 else self._shares(terms)
            for term, share in zip(terms, shares, strict=True):
                weights[term] = weights.get(term, 0.0) + weight * share
        return weights

    def _shares(self, forms: Sequence[str]) -> list[float]:
        """Return how much less each form of a word counts than its own rarity would have it."""
        n_rows = [self.count(form) for form in forms]
        of_word = self._idf(min(len(self), sum(n_rows)))
        return [of_word / self._idf(n) for n in n_rows]

    def _idf(self, n_rows: int) -> float:
        return float(np.log(1 + (len(self) - n_rows + 0.5) / (n_rows + 0.5)))

    def held(self, ids: Sequence[str], terms: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return which texts hold which terms, shape (ids, terms); an unknown id holds none."""
        places, is_known = places_of(self.ids, ids)
        held = np.zeros((len(ids), len(terms)), np.bool_)
        for column, term in enumerate(terms):
            rows = self._holding(term)[0]
            held[:, column] = is_known & places_in(rows, places)[1]
        return held

    def best(
        self, weights: Mapping[str, float], k: int, among: Sequence[str] | None = None
    ) -> tuple[list[str], npt.NDArray[np.float64]]:
        """Return the ids of the ``k`` texts with the highest scores and these, best first.

        Ties are in the order of ids, texts with no score left out. Each term counts by its weight.
        ``among`` are the ids to choose from, in place of all.

        Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, with k1 = 1.2
        and b = 0.75; idf = ln(1 + (N - n + .5) / (n + .5)), which is never negative.
        """
        scores = np.zeros(len(self))
        for term, weight in weights.items():
            rows, counts = self._holding(term)
            n_rows = len(rows)
            if n_rows:
                idf = self._idf(n_rows)
                times = counts.astype(np.float64)
                scores[rows] += weight * idf * (_K1 + 1) * times / (times + self._norms[rows])
        chosen = _among(self.ids, among) if among is not None else np.flatnonzero(scores)
        values = np.round(scores[chosen], _DECIMALS)
        places = highest(values, min(k, int(np.count_nonzero(values > 0))))
        return [key.decode() for key in self.ids[chosen[places]].tolist()], values[places]

    @cached_property
    def _norms(self) -> npt.NDArray[np.float64]:
        """The share of each text's length that is added to the count of a term."""
        mean = self.lengths.mean() if len(self) else 1.0
        return np.asarray(_K1 * (1 - _B + _B * self.lengths / max(mean, 1e-9)), np.float64)

    def _holding(self, term: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
        """Return the rows of the texts that hold a term, ascending, and how often each does."""
        key = _hashes([term])[0]
        place = int(np.searchsorted(self.terms, key))
        if place == len(self.terms) or self.terms[place] != key:
            return self.rows[:0], self.counts[:0]
        part = slice(self.starts[place], self.starts[place + 1])
        return self.rows[part], self.counts[part]


@dataclass(frozen=True)
class _Postings:
    """Terms with the texts that hold them, and how often, in the order of terms and rows."""

    terms: npt.NDArray[np.uint64]
    """Ascending."""
    codes: npt.NDArray[np.int32]
    """The place among ``terms`` of each."""
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]


class TextSearch(ABC):
    """Full-text search over tables, each by the full-text index that is held of it."""

    @abstractmethod
    def held_text(self, table: str) -> FullText:
        """Return the full-text index of a table."""

    def match_terms(
        self,
        table: str,
        weights: Mapping[str, float],
        k: int,
        *,
        among: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the ``k`` rows that best match search terms by BM25, each by its weight."""
        return hits_of(*self.held_text(table).best(weights, k, among))

    def fulltext(
        self, table: str, query: str, k: int, *, among: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the ``k`` rows that best match a text by BM25 over search terms.

        Any string is a valid query: it is split into terms and has no operators. ``among`` are the
        ids of the rows to look at. The ``score`` is positive and unbounded.
        """
        full_text = self.held_text(table)
        weights = full_text.weights(asked_terms(query, full_text.languages))
        return self.match_terms(table, weights, k, among=among)

    def term_counts(self, table: str, terms: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return how many rows hold each search term, and of how many rows."""
        full_text = self.held_text(table)
        return dict(zip(terms, full_text.counts_of(terms).tolist(), strict=True)), len(full_text)

    def languages(self, table: str) -> dict[str, int]:
        """Return the number of rows by language, as :class:`FullText` has it."""
        return self.held_text(table).languages

    def terms_held(
        self, table: str, ids: Sequence[str], terms: Sequence[str]
    ) -> npt.NDArray[np.bool_]:
        """Return which rows hold which search terms, shape (ids, terms)."""
        return self.held_text(table).held(ids, terms)


def hits_of(ids: Sequence[str], scores: npt.NDArray[np.float64]) -> pa.Table:
    """Return hits, best first, as a table of ``id`` and ``score``."""
    import pyarrow as pa

    # As an array, PyArrow would load what NumPy has for masked ones: .05 CPU s.
    score = pa.array(scores.tolist(), pa.float64())
    return pa.table({"id": pa.array(ids, pa.string()), "score": score})


def no_hits() -> pa.Table:
    """Return no hits."""
    return hits_of([], np.empty(0))


def full_text(
    ids: npt.NDArray[np.bytes_],
    versions: npt.NDArray[np.uint64],
    read: Callable[[Sequence[str] | None], pa.Table],
    before: FullText | None = None,
) -> FullText:
    """Return the index of texts with these distinct ids, in any order.

    ``read`` returns ``id`` and ``terms``, joined by spaces, of the texts with some ids, or of all
    for None. What ``before`` has in the same version is taken from there.
    """
    order = np.argsort(ids, kind="stable")
    keys, versions = ids[order], versions[order]
    if before is None or not len(before):
        return _made(keys, versions, [_postings(keys, read(None))])
    row_of, is_same = same_rows(keys, versions, before.ids, before.versions)
    new = [key.decode() for key in keys[~is_same].tolist()]
    parts = [_taken_over(before, row_of)]
    if new:
        parts.append(_postings(keys, read(new if len(new) < len(keys) // _FEW else None), new))
    return _made(keys, versions, parts)


def _postings(
    keys: npt.NDArray[np.bytes_], texts: pa.Table, only: Sequence[str] | None = None
) -> _Postings:
    """Return the postings of texts, of which there may be more than those wanted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # No term is split into one that is empty.
    texts = texts.filter(pc.field("terms") != "")
    if only is not None:
        texts = texts.filter(pc.field("id").isin(pa.array(only)))
    # They come a thousand rows at a time; a term is hashed once in each slice.
    slices = (texts.slice(start, _SLICE_ROWS) for start in range(0, len(texts), _SLICE_ROWS))
    parts = [_postings_of_slice(keys, part.combine_chunks()) for part in slices]
    return _together(parts)


def _postings_of_slice(keys: npt.NDArray[np.bytes_], texts: pa.Table) -> _Postings:
    import pyarrow.compute as pc

    terms_of = texts["terms"].combine_chunks()
    words = pc.split_pattern(terms_of, " ")  # type: ignore[attr-defined]
    encoded = words.flatten().dictionary_encode()
    terms, codes = np.unique(_hashes(encoded.dictionary.to_pylist()), return_inverse=True)
    rows = np.searchsorted(keys, fixed_bytes(texts["id"].combine_chunks()))
    rows = np.repeat(rows, np.diff(words.offsets.to_numpy()))
    places = codes.astype(np.int64)[encoded.indices.to_numpy()] * len(keys) + rows
    pairs, counts = np.unique(places, return_counts=True)
    return _Postings(
        terms=terms,
        codes=(pairs // len(keys)).astype(np.int32),
        rows=(pairs % len(keys)).astype(np.int32),
        counts=counts.astype(np.int32),
    )


def _taken_over(before: FullText, row_of: npt.NDArray[np.int32]) -> _Postings:
    """Return the postings of an index under new numbers of rows; those without one are left out."""
    rows = row_of[before.rows]
    codes = np.repeat(np.arange(len(before.terms), dtype=np.int32), np.diff(before.starts))
    stay = rows >= 0
    return _Postings(before.terms, codes[stay], rows[stay], before.counts[stay].astype(np.int32))


def _together(parts: Sequence[_Postings]) -> _Postings:
    """Return lists of other texts each as one; a term that no text holds is left out."""
    if not parts:
        none = np.empty(0, np.int32)
        return _Postings(np.empty(0, np.uint64), none, none, none)
    used = [part.terms[np.bincount(part.codes, minlength=len(part.terms)) > 0] for part in parts]
    terms = distinct(np.concatenate(used))
    codes = [np.searchsorted(terms, part.terms).astype(np.int32)[part.codes] for part in parts]
    code, row = np.concatenate(codes), np.concatenate([part.rows for part in parts])
    # Each part is in order already, so that these sort by merging.
    order = np.argsort(code.astype(np.int64) << 32 | row, kind="stable")
    counts = np.concatenate([part.counts for part in parts])
    return _Postings(terms, code[order], row[order], counts[order])


def _made(
    keys: npt.NDArray[np.bytes_], versions: npt.NDArray[np.uint64], parts: Sequence[_Postings]
) -> FullText:
    joint = _together(parts)
    lengths = np.bincount(joint.rows, joint.counts, minlength=len(keys))
    return FullText(
        ids=keys,
        versions=versions,
        lengths=lengths.astype(np.int32),
        terms=joint.terms,
        starts=np.searchsorted(joint.codes, np.arange(len(joint.terms) + 1)),
        rows=joint.rows,
        counts=np.minimum(joint.counts, _MOST_COUNTED).astype(np.uint16),
    )


def _among(ids: npt.NDArray[np.bytes_], among: Sequence[str]) -> npt.NDArray[np.int64]:
    places, is_known = places_of(ids, among)
    return distinct(places[is_known])


def _hashes(terms: Sequence[str]) -> npt.NDArray[np.uint64]:
    digests = b"".join(blake2b(term.encode(), digest_size=8).digest() for term in terms)
    return np.frombuffer(digests, "<u8")
