"""Rows of a release in memory, by column, found by the ids that stand in them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.arrays import fixed_bytes

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 256 * 2**20
"""What the texts of one kind of record may take in memory; more is read by SQL each time."""

ROWS_REMEMBERED = 1 << 10
"""Rows that are remembered as they were taken; there are no more at any time."""
_VALUES, _DISTINCT, _CODES, _ORDER, _STARTS = "values", "distinct", "codes", "order", "starts"


@dataclass(frozen=True)
class Ids:
    """A column of ids: the distinct ones, ascending, and the place among them of each row's."""

    distinct: npt.NDArray[np.bytes_]
    codes: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> npt.NDArray[np.bytes_]:
        return self.distinct[self.codes[rows]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[np.bytes_]:
        return self.distinct[self.codes]


class KeptRows:
    """The rows of a query, numbered from 0 in its order. Safe to use from several threads.

    ``held`` is what :meth:`arrays` gave, where a file has it; only then may ``table`` be None.
    """

    def __init__(
        self, table: pa.Table | None, held: Mapping[str, npt.NDArray[Any]] | None = None
    ) -> None:
        self._rows = table
        self._lock = threading.RLock()
        self._arrays = dict(held or {})
        self._texts: dict[str, list[str]] = {}
        self._taken: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        if self._rows is not None:
            return len(self._rows)
        columns = (a for n, a in self._arrays.items() if n.endswith((_VALUES, _CODES)))
        return len(next(columns, ()))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return ids and numbers of all columns as arrays, by name."""
        import pyarrow as pa

        if self._rows is None:
            return dict(self._arrays)
        for name, kind in zip(self._table.schema.names, self._table.schema.types, strict=True):
            if pa.types.is_string(kind):
                self._sorted(name)
            else:
                self.values(name)
        return dict(self._arrays)

    def values(self, column: str) -> npt.NDArray[Any]:
        """Return a column of numbers; null is NaN."""
        return self._once(
            column, _VALUES, lambda: self._table[column].to_numpy(zero_copy_only=False)
        )

    def texts(self, column: str) -> list[str]:
        """Return a column of texts."""
        with self._lock:
            if column not in self._texts:
                self._texts[column] = self._table[column].to_pylist()
            return self._texts[column]

    def ids(self, column: str) -> Ids:
        """Return a column of ids as bytes; null is empty."""
        with self._lock:
            if f"{column}/{_CODES}" not in self._arrays:
                distinct, codes = _coded(self._table[column])
                self._arrays[f"{column}/{_DISTINCT}"] = distinct
                self._arrays[f"{column}/{_CODES}"] = codes
            return Ids(self._arrays[f"{column}/{_DISTINCT}"], self._arrays[f"{column}/{_CODES}"])

    def having(
        self, column: str, ids: Iterable[str]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the rows that have one of these ids in a column, and the place of that id.

        Sorted by place, then as the rows are. The ids must be distinct.
        """
        distinct, order, offsets = self._sorted(column)
        keys = as_bytes(ids)
        if not len(distinct) or not len(keys):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        at = np.minimum(np.searchsorted(distinct, keys), len(distinct) - 1)
        is_known = distinct[at] == keys
        starts = offsets[at]
        counts = np.where(is_known, offsets[at + 1] - starts, 0)
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        rows = order[np.repeat(starts, counts) + within].astype(np.intp, copy=False)
        return rows, np.repeat(np.arange(len(keys)), counts)

    def take(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> list[dict[str, Any]]:
        """Return some rows, in the order given; flat ones of late are remembered.

        A question often takes the same ones twice. A list in a row would be shared.
        """
        places = np.asarray(rows).tolist()
        if not places:
            return []
        if not self._is_flat:
            return self._table.take(places).to_pylist()
        taken = {place: row for place in places if (row := self._taken.get(place))}
        if new := [place for place in dict.fromkeys(places) if place not in taken]:
            read = dict(zip(new, self._table.take(new).to_pylist(), strict=True))
            taken |= read
            self._remember(read)
        return [dict(taken[place]) for place in places]

    def _remember(self, read: Mapping[int, dict[str, Any]]) -> None:
        with self._lock:
            if len(self._taken) + len(read) > ROWS_REMEMBERED:
                self._taken.clear()
            self._taken |= islice(read.items(), ROWS_REMEMBERED)

    @cached_property
    def _is_flat(self) -> bool:
        import pyarrow as pa

        return not any(pa.types.is_nested(kind) for kind in self._table.schema.types)

    @property
    def _table(self) -> pa.Table:
        assert self._rows is not None, "these rows have no texts"
        return self._rows

    def _sorted(
        self, column: str
    ) -> tuple[npt.NDArray[np.bytes_], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the distinct ids, the rows in their order, and where those of each begin."""
        ids = self.ids(column)

        def ordered() -> npt.NDArray[np.int32]:
            return np.argsort(ids.codes, kind="stable").astype(np.int32)

        def starts() -> npt.NDArray[np.int64]:
            counts = np.bincount(ids.codes, minlength=len(ids.distinct))
            return np.concatenate([[0], counts.cumsum()]).astype(np.int64)

        order = self._once(column, _ORDER, ordered)
        return ids.distinct, order, self._once(column, _STARTS, starts)

    def _once(self, column: str, kind: str, make: Callable[[], Any]) -> Any:
        with self._lock:
            name = f"{column}/{kind}"
            if name not in self._arrays:
                self._arrays[name] = make()
            return self._arrays[name]


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


def _coded(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.bytes_], npt.NDArray[np.int32]]:
    """Return the distinct ids of a column, ascending, and the place among them of each row's."""
    import pyarrow.compute as pc

    encoded = pc.fill_null(column, "").combine_chunks().dictionary_encode()  # type: ignore[attr-defined]
    keys = fixed_bytes(encoded.dictionary)
    order = np.argsort(keys, kind="stable")
    place_of = np.empty(len(keys), np.int32)
    place_of[order] = np.arange(len(keys), dtype=np.int32)
    return keys[order], place_of[encoded.indices.to_numpy()]
