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


def test_words_and_meaning_are_weighed_in_one_scale() -> None:
    index: Any = TwoSearches(lexical=False)
    assert likely(index, "chunks", "?") == pytest.approx(
        {"a": 0.75, "b": 0.4375, "c": 0.125, "d": 0}
    )
    assert list(likely(index, "chunks", "?", 2)) == ["a", "b"]


def test_vectors_that_know_words_only_are_not_asked() -> None:
    index: Any = TwoSearches(lexical=True)
    assert likely(index, "chunks", "?") == {"a": 1.0, "b": 0.25}
