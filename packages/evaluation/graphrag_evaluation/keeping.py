"""Results kept while work goes on: in small transactions, so that a killed run loses little."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import polars as pl

from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.store.frames import streamed

_EVERY_SECONDS = 1.0


@contextmanager
def keeping(
    store: EvaluationStore, table: str, key: str, schema: Mapping[str, Any] | None = None
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield what keeps a row of a table: a second's rows together, the rest at the end.

    A row whose ``key`` is there is left alone. ``table`` and ``key`` are names of the project's own
    schema; ``schema`` tells the types of columns that rows alone do not show.
    """
    waiting: list[Mapping[str, Any]] = []
    began = time.monotonic()

    def flush() -> None:
        nonlocal began
        if waiting:
            rows = pl.DataFrame(waiting, schema_overrides=schema, infer_schema_length=None)
            distinct = rows.unique(key, keep="first", maintain_order=True)
            with store.transaction() as con, streamed(con, "made", distinct):
                con.execute(
                    f"INSERT INTO {table} BY NAME FROM made "
                    f"WHERE {key} NOT IN (SELECT {key} FROM {table})"
                )
            waiting.clear()
        began = time.monotonic()

    def keep(row: Mapping[str, Any]) -> None:
        waiting.append(row)
        if time.monotonic() - began > _EVERY_SECONDS:
            flush()

    try:
        yield keep
    finally:
        flush()
