"""Rows of a release in memory, by column, found by the ids that stand in them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 64 * 2**20
"""What the texts of one kind of record may take in memory; more is read by SQL each time."""


class KeptRows:
    """The rows of a query, numbered from 0 in its order. Safe to use from several threads."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._lock = threading.RLock()
        self._made: dict[tuple[str, str], Any] = {}

    def __len__(self) -> int:
        return len(self._table)

    def values(self, column: str) -> npt.NDArray[Any]:
        """Return a column of numbers; null is NaN."""
        return self._once(
            "values", column, lambda: self._table[column].to_numpy(zero_copy_only=False)
        )

    def texts(self, column: str) -> list[str]:
        """Return a column of texts."""
        return self._once("texts", column, lambda: self._table[column].to_pylist())

    def ids(self, column: str) -> npt.NDArray[np.bytes_]:
        """Return a column of ids as bytes; null is empty."""
        return self._once("ids", column, lambda: as_bytes(self._table[column].to_pylist()))

    def having(
        self, column: str, ids: Iterable[str]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the rows that have one of these ids in a column, and the place of that id.

        Sorted by place, then as the rows are. The ids must be distinct.
        """
        order, keys = self._once("sorted", column, lambda: self._sorted(column))
        id_keys = as_bytes(ids)
        starts = np.searchsorted(keys, id_keys, "left")
        counts = np.searchsorted(keys, id_keys, "right") - starts
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        return order[np.repeat(starts, counts) + within], np.repeat(np.arange(len(id_keys)), counts)

    def take(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> list[dict[str, Any]]:
        """Return some rows, in the order given."""
        return self._table.take(rows).to_pylist()

    def _sorted(self, column: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bytes_]]:
        keys = self.ids(column)
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def _once(self, kind: str, column: str, make: Callable[[], Any]) -> Any:
        with self._lock:
            if (kind, column) not in self._made:
                self._made[kind, column] = make()
            return self._made[kind, column]


def read_if_small(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> KeptRows | None:
    """Return the rows of batches, or None once they take more than :data:`MOST_BYTES`."""
    import pyarrow as pa

    read: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > MOST_BYTES:
            return None
        read.append(batch)
    return KeptRows(pa.Table.from_batches(read, schema).combine_chunks())


def as_bytes(ids: Iterable[str | None]) -> npt.NDArray[np.bytes_]:
    """Return ids as an array to sort and search, in which none is empty."""
    return np.array([(key or "").encode() for key in ids], dtype=np.bytes_)
