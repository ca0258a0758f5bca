"""Where a walk sets out: rows by words and by meaning, in one scale."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from graphrag_pipeline.query.operators import likely
from graphrag_pipeline.query.trace import Trace


class TwoSearches:
    """A release whose words find ``a`` then ``b``, and whose vectors ``b`` then ``c``."""

    def __init__(self, *, lexical: bool) -> None:
        self.lexical, self.trace = lexical, Trace()

    def search_text(self, *_: object) -> pa.Table:
        return pa.table({"id": ["a", "b"], "score": [8.0, 2.0]})

    def search_vectors(self, *_: object) -> pa.Table:
        return pa.table({"id": ["b", "c", "d"], "score": [0.9, 0.6, 0.3]})


def test_words_and_meaning_are_weighed_by_how_far_rows_stand_out() -> None:
    index: Any = TwoSearches(lexical=False)
    # Standardised by hand: a 1.373 and -1.225, b -.392 and 1.225; c and d are below the average.
    assert likely(index, "chunks", "?") == pytest.approx({"b": 1.0, "a": 0.178}, abs=1e-3)
    assert list(likely(index, "chunks", "?", 1)) == ["b"]
    assert list(likely(index, "chunks", "?", words=1.0)) == ["a"]


def test_a_row_that_stands_out_by_words_outweighs_meaning_in_which_none_does() -> None:
    index: Any = TwoSearches(lexical=False)
    rows = [f"r{n:02}" for n in range(100)]
    index.search_text = lambda *_: pa.table({"id": ["r99"], "score": [3.0]})
    even = [0.5 - n / 1000 for n in range(100)]
    index.search_vectors = lambda *_: pa.table({"id": rows, "score": even})
    assert list(likely(index, "chunks", "?"))[:2] == ["r99", "r00"]


def test_searches_that_find_nothing_or_no_difference_rank_nothing() -> None:
    index: Any = TwoSearches(lexical=False)
    nothing = pa.table({"id": pa.array([], pa.string()), "score": pa.array([], pa.float64())})
    index.search_text = lambda *_: nothing
    index.search_vectors = lambda *_: pa.table({"id": ["a", "b"], "score": [0.5, 0.5]})
    assert likely(index, "chunks", "?") == {}
    index.search_vectors = lambda *_: nothing
    assert likely(index, "chunks", "?") == {}


def test_vectors_that_know_words_only_are_not_asked() -> None:
    index: Any = TwoSearches(lexical=True)
    assert likely(index, "chunks", "?") == {"a": 1.0, "b": 0.25}
