"""Search within a view: vectors and full text of what it shows, and of nothing else.

A text has the vector that it would have anywhere. So those of texts that the release has, too, are
taken from there, and others are embedded when a table is first searched. How rare a word is, and
how long a text usually is, is counted among the texts of the view.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.text import stored_terms
from graphrag_pipeline.llm.embedders import Embedder, stored
from graphrag_pipeline.query.limited_release import found_within
from graphrag_pipeline.store.full_text import FullText, TextSearch, full_text, hits_of, no_hits
from graphrag_pipeline.store.held_vectors import HeldVectors, places_of
from graphrag_pipeline.store.vector_store import (
    HALF_DIGEST,
    VectorSnapshot,
    row_digest,
    row_digests,
    row_schema,
)
from graphrag_pipeline.structures.vector_tables import CHUNKS, rows_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_AT_ONCE = 4_096


class VisibleVectors(TextSearch):
    """The searches of :class:`VectorSnapshot` that questions make, over the rows of a view.

    ``cursor`` opens the tables of the view; ``whole`` are the vectors of the release. Passages are
    searched among those of the release, for their texts are the same in both.
    """

    def __init__(
        self,
        cursor: Callable[[], contextlib.AbstractContextManager[duckdb.DuckDBPyConnection]],
        whole: VectorSnapshot,
        embedder: Callable[[], Embedder],
    ) -> None:
        self._cursor, self._whole, self._embedder = cursor, whole, embedder
        self._lock = threading.RLock()
        self._tables: dict[str, _Table] = {}

    def search(
        self,
        table: str,
        vector: npt.NDArray[np.float32],
        k: int,
        *,
        among: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the ``k`` rows nearest to a vector; see :meth:`VectorSnapshot.search`."""
        own = self._table(table)
        if k < 1 or not len(own.ids):
            return no_hits()
        if table == CHUNKS.name:
            ids = own.id_set if among is None else own.id_set.intersection(among)
            # Which row an index misses depends on the others that it is made of.
            return found_within(partial(self._whole.search, table, vector, exact=True), ids, k)
        return hits_of(*self._held(own).nearest(vector, k, among))

    def similarities(
        self, table: str, vector: npt.NDArray[np.float32], ids: Sequence[str]
    ) -> dict[str, float]:
        """Return the cosine of a vector and each of those ids that the view has."""
        own = self._table(table)
        if table == CHUNKS.name:
            return self._whole.similarities(table, vector, [id for id in ids if id in own.id_set])
        return self._held(own).similarities(vector, ids) if len(own.ids) else {}

    def texts(self, table: str, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of those ids that the view has."""
        own = self._table(table)
        known = [key for key in ids if key in own.id_set]
        texts = own.rows["text"].take(places_of(own.keys, known)[0])
        return dict(zip(known, texts.to_pylist(), strict=True))

    def link_synonyms(self, least: float) -> None:
        """Link the entities of the view whose titles are so alike, in its tables."""
        from graphrag_pipeline.structures.synonyms.linking import make_synonyms

        titles = self._table("entity_titles")
        vectors = self._made(titles)
        with self._cursor() as cursor:
            make_synonyms(cursor, lambda ids: vectors[places_of(titles.keys, ids)[0]], least)

    def _table(self, name: str) -> _Table:
        with self._lock:
            if name not in self._tables:
                self._tables[name] = _Table(name, self._rows(name))
            return self._tables[name]

    def _rows(self, name: str) -> pa.Table:
        """Return what the view has for a vector table: nothing where the release has none."""
        import duckdb

        from graphrag_pipeline.structures.registry import known_vector_tables

        table = known_vector_tables().get(name)
        if table is not None and name in self._whole.versions:
            # The tables of a structure from elsewhere are not in a view.
            with contextlib.suppress(duckdb.CatalogException), self._cursor() as cursor:
                return rows_of(cursor, table)
        return row_schema().empty_table()

    def _held(self, table: _Table) -> HeldVectors:
        with self._lock:
            if table.held is None:
                vectors = self._made(table)
                ids = table.ids
                table.held = HeldVectors(len(ids), [(ids, vectors)], vectors.shape[1])
            return table.held

    def held_text(self, table: str) -> FullText:
        """Return the full-text index of a table of the view, made when first asked for."""
        own = self._table(table)
        with self._lock:
            if own.text is None:
                embedder, before = self._embedder().name, self._whole.held_text(table)
                own.text = full_text(own.keys, own.versions(embedder), own.terms, before)
            return own.text

    def _made(self, table: _Table) -> npt.NDArray[np.float32]:
        """Return the vectors of a table's rows: those that the release has, and new ones.

        Which texts are new depends on what is hidden. So who happens to ask first is not told what
        they cost, nor does he pay for them.
        """
        embedder = self._embedder()
        before = self._whole.held_text(table.name)
        places, is_there = places_of(before.ids, table.ids)
        versions = table.versions(embedder.name)
        known = before.versions[places[is_there]]
        is_same = known == versions[is_there]
        if not stored(embedder).by_terms:
            # What an older program made knows of no language, and is of the same text.
            is_same |= known == table.versions(embedder.name, by_terms=False)[is_there]
        is_there[is_there] = is_same
        vectors = np.zeros((len(table.ids), embedder.dimensions), np.float32)
        same = [table.ids[place] for place in np.flatnonzero(is_there)]
        stored_vectors = self._whole.vectors(table.name, same) if same else {}
        for place, key in zip(np.flatnonzero(is_there), same, strict=True):
            vectors[place] = stored_vectors[key]
        other = np.flatnonzero(~is_there)
        for start in range(0, len(other), _AT_ONCE):
            part = other[start : start + _AT_ONCE]
            texts = table.rows["text"].take(part).to_pylist()
            vectors[part] = Context().run(embedder.embed, texts)
        return vectors.astype(np.float16).astype(np.float32) if stored(embedder).half else vectors


class _Table:
    """The rows of a vector table in a view, in the order of ids, and what is made of them."""

    def __init__(self, name: str, rows: pa.Table) -> None:
        self.name = name
        self.rows = rows.sort_by("id").combine_chunks()
        self.ids: list[str] = self.rows["id"].to_pylist()
        self.id_set = frozenset(self.ids)
        self.held: HeldVectors | None = None
        self.text: FullText | None = None

    @property
    def keys(self) -> npt.NDArray[np.bytes_]:
        """The ids, as bytes."""
        return np.array([key.encode() for key in self.ids], np.bytes_)

    def versions(self, embedder: str, *, by_terms: bool = True) -> npt.NDArray[np.uint64]:
        """Return what tells each text from another, as :class:`FullText` has it.

        Not ``by_terms``: as it has those of whose language nothing was known.
        """
        hashes = self.rows["content_hash"]
        if by_terms:
            digests = row_digests(self.rows["text"], hashes, embedder)
        else:
            digests = [row_digest(value, embedder) for value in hashes.to_pylist()]
        joint = "".join(digest[:HALF_DIGEST] for digest in digests)
        return np.frombuffer(bytes.fromhex(joint), np.uint64)

    def terms(self, ids: Sequence[str] | None) -> pa.Table:
        """Return ``id`` and search terms of some rows, or of all."""
        import pyarrow as pa

        rows = self.rows if ids is None else self.rows.take(places_of(self.keys, ids)[0])
        words = pa.array(stored_terms(rows["text"].to_pylist()), pa.string())
        return pa.table({"id": rows["id"], "terms": words})
