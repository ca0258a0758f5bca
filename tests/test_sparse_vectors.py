"""Vectors that count words, without their zeros: the same answers, and LanceDB left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.store.held_vectors import HeldVectors
from graphrag_pipeline.store.sparse_vectors import (
    SparseArrays,
    SparseVectors,
    Versioned,
    sparse_arrays,
)

Matrix = npt.NDArray[np.floating[Any]]
DIMENSIONS = 96


def vectors(seed: int, n_rows: int, density: float = 0.2, kind: Any = np.float16) -> Matrix:
    """Return vectors of few numbers each; the last is of zeros, the one before like the first."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, DIMENSIONS)) * (rng.random((n_rows, DIMENSIONS)) < density)
    rows[-1] = 0
    rows[-2:-1] = rows[:1]
    return rows.astype(kind)


def keys_of(n_rows: int) -> list[str]:
    return [f"k{number:05d}" for number in range(n_rows)]


class Table:
    """Rows as they are stored, in an order of their own, which tells what is read of it."""

    def __init__(self, keys: Sequence[str], rows: Matrix) -> None:
        self.keys, self.rows = keys, rows
        self.read_ids: list[Sequence[str] | None] = []

    def read(self, ids: Sequence[str] | None) -> tuple[list[str], Matrix]:
        self.read_ids.append(ids)
        wanted = range(len(self.keys)) if ids is None else map(self.keys.index, ids)
        places = [*wanted][::-1]
        return [self.keys[place] for place in places], self.rows[places]


def as_ids(keys: Sequence[str]) -> npt.NDArray[np.bytes_]:
    return np.array([key.encode() for key in keys], np.bytes_)


def held_both(seed: int, n_rows: int, kind: Any) -> tuple[HeldVectors, SparseVectors]:
    keys, rows = keys_of(n_rows), vectors(seed, n_rows, kind=kind)
    arrays = sparse_arrays(as_ids(keys), np.arange(n_rows, dtype="u8"), Table(keys, rows).read)
    assert arrays is not None
    places = np.random.default_rng(seed).permutation(n_rows)
    parts = [([keys[place] for place in places], rows[places].astype(np.float32))]
    return HeldVectors(n_rows, parts, DIMENSIONS), SparseVectors(as_ids(keys), arrays)


@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(2, 60),
    n_terms=st.integers(0, DIMENSIONS),
    kind=st.sampled_from([np.float16, np.float32]),
)
def test_they_find_what_vectors_with_their_zeros_find_to_the_last_digit(
    seed, n_rows, n_terms, kind
) -> None:
    dense, sparse = held_both(seed, n_rows, kind)
    query = np.zeros(DIMENSIONS, np.float32)
    query[:n_terms] = np.random.default_rng(seed + 1).normal(size=n_terms)
    some = [*keys_of(n_rows)[::2], "unknown"]
    for among in (None, some):
        (ids, scores), expected = sparse.nearest(query, 9, among), dense.nearest(query, 9, among)
        assert (ids, scores.tolist()) == (expected[0], expected[1].tolist())
    assert sparse.similarities(query, some) == dense.similarities(query, some)
    assert keys_of(n_rows)[-1] not in sparse.nearest(query, n_rows)[0]


@given(seed=st.integers(0, 10**6), n_changed=st.integers(0, 12), n_new=st.integers(0, 12))
def test_vectors_by_difference_are_those_made_anew(seed, n_changed, n_new) -> None:
    n_before, n_now = 40, 30 + n_new
    before_rows, rows = vectors(seed, n_before), vectors(seed + 1, 60)
    before_versions = np.arange(n_before, dtype="u8")
    now = np.sort(np.random.default_rng(seed).permutation(60)[:n_now])
    versions = np.where(now < n_changed, 1_000 + now, now).astype("u8")
    is_same = (now >= n_changed) & (now < n_before)
    rows[now[is_same]] = before_rows[now[is_same]]
    every = keys_of(60)
    table = Table([every[place] for place in now], rows[now])
    before_ids, ids = as_ids(every[:n_before]), as_ids(table.keys)
    before = sparse_arrays(before_ids, before_versions, Table(every[:n_before], before_rows).read)
    anew = sparse_arrays(ids, versions, table.read)
    assert before is not None
    assert anew is not None
    table.read_ids.clear()
    by_difference = sparse_arrays(
        ids, versions, table.read, Versioned(before_ids, before_versions, before)
    )
    assert by_difference is not None
    for name, array in anew.arrays().items():
        assert np.array_equal(by_difference.arrays()[name], array), name
    new = [key for key, same in zip(table.keys, is_same.tolist(), strict=True) if not same]
    few = len(new) < len(now) // 10
    assert table.read_ids == ([] if not new else [new] if few else [None])


def test_what_they_hold_comes_back_as_it_was() -> None:
    keys, rows = keys_of(20), vectors(3, 20)
    arrays = sparse_arrays(as_ids(keys), np.arange(20, dtype="u8"), Table(keys, rows).read)
    assert arrays is not None
    carried = SparseVectors(as_ids(keys), SparseArrays.of_arrays(arrays.arrays()))
    stored_keys, stored_rows = carried.stored()
    assert stored_keys == keys
    assert stored_rows.dtype == rows.dtype
    assert np.array_equal(stored_rows, rows)
    some = carried.of(["k00003", "unknown", "k00001"])
    assert [*some] == ["k00003", "k00001"]
    assert np.array_equal(some["k00001"], rows[1].astype(np.float32))


@pytest.mark.parametrize("damage", ["dense", "not a number"])
def test_what_saves_no_room_or_is_no_number_is_left_to_lancedb(damage) -> None:
    keys = keys_of(20)
    rows = vectors(5, 20, density=0.9 if damage == "dense" else 0.2)
    if damage != "dense":
        rows[4, 7] = np.nan
    assert sparse_arrays(as_ids(keys), np.arange(20, dtype="u8"), Table(keys, rows).read) is None


def test_vectors_of_another_embedder_are_not_taken_over() -> None:
    keys, rows = keys_of(20), vectors(6, 20)
    ids, versions = as_ids(keys), np.arange(20, dtype="u8")
    before = sparse_arrays(ids, versions, Table(keys, rows).read)
    assert before is not None
    other = Table(keys, rows[:, : DIMENSIONS // 2])
    after = sparse_arrays(
        ids, versions + np.uint64(99), other.read, Versioned(ids, versions, before)
    )
    assert after is not None
    assert after.dimensions == DIMENSIONS // 2
