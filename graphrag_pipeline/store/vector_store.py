"""Vectors and full text in LanceDB: tables kept equal to what the pipeline wants in them.

Every table holds one row per id with its text, its search terms, its vector and two columns to
filter by. :class:`VectorStore` is the writer's side. :class:`VectorSnapshot` is the reader's: the
tables as they were at given versions, which is what a published release records, so that readers
never see a table half written.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core import progress
from graphrag_pipeline.core.arrays import fixed_bytes
from graphrag_pipeline.core.errors import StorageError, first_line
from graphrag_pipeline.core.hardening.memory import require_memory
from graphrag_pipeline.core.languages import analysis_version, language_of
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import stored_terms
from graphrag_pipeline.llm.embedders import Embedder, PartEmbedder, stored
from graphrag_pipeline.store.full_text import FullText, TextSearch, full_text, hits_of, no_hits
from graphrag_pipeline.store.held_vectors import HeldVectors, SearchedVectors, rounded
from graphrag_pipeline.store.lance import connect
from graphrag_pipeline.store.sparse_vectors import (
    SparseArrays,
    SparseVectors,
    Versioned,
    sparse_arrays,
)
from graphrag_pipeline.store.vector_files import drop_damaged, has_version, mend, put_on_disk

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.expr import Expr
    from lancedb.table import LanceTable

VECTOR_INDEX_ROWS = 250_000
"""From here a table gets an approximate index; below, exact search takes under 0.2 s."""

UNINDEXED_ROWS = 2_000
"""New rows that vector search may scan unindexed before a sync folds them into the index."""

HELD_BYTES = 384 * 2**20
"""Readers hold the vectors of a table up to this size in memory; a larger one LanceDB searches."""

SLICE_ROWS = 4_096
"""Rows embedded and committed at a time, of a slow embedder fewer: what a crash can lose."""

_ID_FILTER_ROWS = 10_000
# An approximate index finds this many times k rows, whose exact similarity then decides.
_REFINE = 10
_FLOAT_BYTES = 4
_VECTOR = "vector"
_TERMS = "terms"
HALF_DIGEST = 16
"""Hexadecimal digits of half of what :func:`row_digest` gives."""
_ID_AND_VECTOR = ["id", _VECTOR]
_ID_AND_TERMS = ["id", _TERMS]
_LANCE, _LANCE_IO = "lance", "LanceError(IO)"
_SOURCE = pattern_of(r", [^ ]*\.rs:\d.*|, /rustc/.*")
_MISREAD = pattern_of(r"Invalid (user )?input|Encountered corrupt")
"""How LanceDB begins to tell that it could make nothing of a file."""
_LONGEST = 160
_Method = TypeVar("_Method", bound=Callable[..., Any])
_NAME = pattern_of(r"[a-z][a-z0-9_]*")
_TAG = pattern_of(r"[A-Za-z0-9._-]+")
_EMBEDDER = b"embedder"
# optimize() without an age cleans up after seven days and fails on the first older tag.
_NEVER = timedelta(days=36_500)
# What may pass between asking for a clean-up and its looking at the clock.
_CLOCK_MARGIN = timedelta(minutes=1)


@functools.cache
def row_schema() -> pa.Schema:
    """Return the columns that :meth:`VectorStore.sync` takes."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            pa.field("level", pa.int32()),
            pa.field("batch", pa.string()),
            pa.field("content_hash", pa.string(), nullable=False),
        ]
    )


class VectorStoreError(StorageError):
    """A request the vector store cannot serve; the message says what to do next."""


class DamagedVectorsError(VectorStoreError):
    """Vectors are there and cannot be read; ``reason`` is what LanceDB says of it."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"vectors of {table} cannot be read ({reason}): run graphrag-pipeline check --repair"
        )
        self.reason = reason


@dataclass(frozen=True)
class VectorChanges:
    """The result of one :meth:`VectorStore.sync` of a table."""

    reused: int
    """Wanted rows whose vector was there already."""
    embedded: int
    """Wanted rows that were new or changed, and were embedded."""
    removed: int
    """Rows no longer wanted."""
    version: int
    """Version of the table that equals the wanted rows."""


class VectorStore:
    """The writer's view of the vector tables under one LanceDB location.

    One writer at a time is assumed, as everywhere in the pipeline; readers are not disturbed.

    ``uri`` is a folder (made on first write) or an object-store address.
    """

    def __init__(self, uri: str | Path) -> None:
        self.uri = os.fspath(uri)

    @functools.cached_property
    def _db(self) -> DBConnection:
        return connect(self.uri)

    def sync(
        self,
        table: str,
        rows: pa.Table,
        embedder: Embedder,
        gone: Sequence[str] | None = None,
    ) -> VectorChanges:
        """Make a table hold exactly these rows, embedding only what is new or changed.

        A row is kept when its id is there with the same content hash and the same embedder; where
        only level, batch or search terms have changed, it is written without embedding, unless the
        embedder makes its vectors of terms. Slices are committed as they
        are made, so a sync that was killed is completed by the next one, which embeds only what
        is still missing. When nothing differs, nothing is written.

        Another embedder, or other dimensions, start the table anew. Its earlier versions stay
        readable.

        Parameters
        ----------
        rows
            Columns of :func:`row_schema`: the complete wanted content, ids unique.
        gone
            Where given, ``rows`` are those alone that may be new or changed, these ids are to be
            removed, and all other rows of the table stay as they are.

        Raises
        ------
        VectorStoreError
            Unknown table, columns missing or null, or ids repeated.
        StorageError
            The disk is full or read-only; what was committed before stays.
        """
        _check_table(table)
        target_rows = _wanted(rows, embedder)
        with _writing(self.uri):
            target = self._open_for(table, embedder, len(target_rows))
            there = _rows(target, ["id", "content_hash", "level", "batch"])
            plan = _plan(target_rows, there, gone, by_terms=stored(embedder).by_terms)
            _embed(target, table, target_rows.take(plan.embed), embedder)
            for part in _slices(target_rows.take(plan.refresh), SLICE_ROWS):
                _upsert(target, _with_stored_vectors(part, target))
            for part in _batched(plan.remove):
                target.delete(_has_id(part))
            _refresh_indexes(target)
            self._put_on_disk(table, target)
        return VectorChanges(
            reused=target.count_rows() - len(plan.embed),
            embedded=len(plan.embed),
            removed=len(plan.remove),
            version=target.version,
        )

    def version(self, table: str) -> int:
        """Return the current version of a table; 0 if it was never written."""
        lance_table = _open(self._db, table)
        return 0 if lance_table is None else lance_table.version

    def embedder_name(self, table: str) -> str | None:
        """Return the name of the embedder a table was written with."""
        return _embedder_name(_open(self._db, table))

    def tag(self, release: str, tables: Sequence[str] | None = None) -> dict[str, int]:
        """Protect the current versions of tables under a release id and return the versions.

        ``tables`` are all, unless given; those never written are left out. A tagged version
        survives :meth:`optimize`. Tagging a release again moves its tags to the versions current
        then.

        Raises
        ------
        VectorStoreError
            A release id with other characters than ASCII letters, digits, and ``. _ -``.
        """
        if not _TAG.fullmatch(release):
            raise VectorStoreError(
                f"release id {release!r} cannot name a version: use letters, digits, '.', '_', '-'"
            )
        versions: dict[str, int] = {}
        with _writing(self.uri):
            for table, lance_table in self._tables():
                if tables is not None and table not in tables:
                    continue
                versions[table] = lance_table.version
                _set_tag(lance_table, release, lance_table.version)
                self._put_on_disk(table, lance_table)
        return versions

    def tag_version(self, release: str, table: str, version: int) -> None:
        """Protect a version of a table under a release id, in place of any that was."""
        lance_table = _open(self._db, table)
        if lance_table is not None:
            with _writing(self.uri):
                _set_tag(lance_table, release, version)

    def forget(self, table: str, ids: Sequence[str]) -> None:
        """Remove rows of a table: the next :meth:`sync` embeds them again."""
        lance_table = _open(self._db, table)
        if lance_table is not None:
            with _writing(self.uri):
                for part in _batched(ids):
                    lance_table.delete(_has_id(part))

    def tags(self) -> dict[str, dict[str, int]]:
        """Return the tagged versions by release and table."""
        releases: dict[str, dict[str, int]] = {}
        for table, lance_table in self._tables():
            for release, tag in lance_table.tags.list().items():
                releases.setdefault(release, {})[table] = int(tag["version"])
        return releases

    def drop_tags(self, releases: Sequence[str]) -> None:
        """Let go of releases: :meth:`optimize` may then remove their versions."""
        with _writing(self.uri):
            for _, lance_table in self._tables():
                tags = lance_table.tags
                for release in set(releases) & tags.list().keys():
                    tags.delete(release)

    def drop_untagged(self, *, spare: Sequence[str]) -> None:
        """Remove tables that no release holds a version of, but ``spare``."""
        untagged = [
            name
            for name, lance_table in self._tables()
            if name not in spare and not lance_table.tags.list()
        ]
        with _writing(self.uri):
            for name in untagged:
                self._db.drop_table(name)

    def optimize(self, keep_days: float = 7.0, spare: int = 10) -> None:
        """Compact the tables, complete their indexes, and remove versions no one needs.

        Removed are versions older than ``keep_days`` and older than the oldest tagged one;
        LanceDB refuses to clean past a tag, and cleaning around one would strand its files. A
        table is left alone while ``spare`` versions or fewer could go: compacting writes it anew,
        and the tagged versions then no longer share its files.
        """
        with _writing(self.uri):
            for table, lance_table in self._tables():
                age = _cleanup_age(lance_table, keep_days)
                if _number_older(lance_table, age) > spare or not spare:
                    lance_table.optimize(cleanup_older_than=_NEVER)
                    # Compacting takes time, by which the tagged versions are older now.
                    lance_table.optimize(cleanup_older_than=_cleanup_age(lance_table, keep_days))
                    self._put_on_disk(table, lance_table)

    def write_anew(self) -> dict[str, int]:
        """Write every table anew, so that no file of its last version holds rows that are gone.

        Returns these versions, by table. Deleted rows stay in LanceDB's data files, and their
        words in its indexes, for as long as these files hold others that are not. Earlier versions
        are left to :meth:`keep_last`.
        """
        with _writing(self.uri):
            for name, lance_table in self._tables():
                query: Any = lance_table.search()
                written = self._db.create_table(
                    name, data=query.to_batches(), schema=lance_table.schema, mode="overwrite"
                )
                _refresh_indexes(_keyed(cast("LanceTable", written)))
        return {name: lance_table.version for name, lance_table in self._tables()}

    def keep_last(self) -> None:
        """Remove every file that the last versions do not need, whoever reads another.

        Raises VectorStoreError where a release holds an earlier version: drop its tags first.
        """
        with _writing(self.uri), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, lance_table in self._tables():
                last = lance_table.version
                tags = lance_table.tags.list().items()
                if held := [release for release, tag in tags if tag["version"] != last]:
                    raise VectorStoreError(f"{name}: {', '.join(held)} needs an earlier version")
                lance_table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
                n_versions = len(lance_table.list_versions())
                if n_versions > 1:
                    raise VectorStoreError(f"{name} still has {n_versions} versions: try again")

    def at(self, versions: Mapping[str, int]) -> VectorSnapshot:
        """Return the tables as they were at these versions; tables left out are empty."""
        return VectorSnapshot(self.uri, versions)

    def newest(self, *tables: str) -> VectorSnapshot:
        """Return tables as they are now."""
        return self.at({table: self.version(table) for table in tables})

    def of(self, table: str, ids: pl.Series) -> npt.NDArray[np.float32]:
        """Return the vectors of a table's rows with these ids, in their order, a row each."""
        stored, matrix = self.newest(table).matrix(table)
        return matrix[np.searchsorted(np.array(stored), ids.to_numpy())] if len(ids) else matrix[:0]

    def holds(self, table: str) -> bool:
        """Whether there is a file of a table; to ask opens nothing."""
        return Path(self.uri, f"{table}.lance").is_dir()

    def _put_on_disk(self, table: str, lance_table: LanceTable) -> None:
        if Path(self.uri).is_dir():
            put_on_disk(Path(self.uri), table, lance_table.version)

    def _tables(self) -> Iterator[tuple[str, LanceTable]]:
        for table in sorted(self._db.list_tables().tables):
            mend(Path(self.uri), table)
            lance_table = _open(self._db, table)
            if lance_table is not None:
                yield table, lance_table

    def _open_for(self, table: str, embedder: Embedder, n_rows: int) -> LanceTable:
        mend(Path(self.uri), table)
        lance_table = _open(self._db, table)
        if (
            lance_table is not None
            and _embedder_name(lance_table) == embedder.name
            and _dimensions(lance_table) == embedder.dimensions
        ):
            return _keyed(lance_table)
        # Over one of another embedder, or what is left of one whose making was killed.
        mode = "overwrite" if table in self._db.list_tables().tables else "create"
        created = self._db.create_table(table, schema=_table_schema(embedder, n_rows), mode=mode)
        return _keyed(cast("LanceTable", created))


def _set_tag(table: LanceTable, release: str, version: int) -> None:
    tags = table.tags
    (tags.update if release in tags.list() else tags.create)(release, version)


def _read(read: _Method) -> _Method:
    """Let a method of a snapshot raise DamagedVectorsError for whatever LanceDB raises of files."""

    @functools.wraps(read)
    def reading(*given: Any, **named: Any) -> Any:
        with _reading(str(given[1] if len(given) > 1 else named["table"])):
            return read(*given, **named)

    return cast(_Method, reading)


@contextlib.contextmanager
def _reading(table: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _LANCE not in str(error):
            raise
        raise DamagedVectorsError(table, lance_reason(error)) from error


def lance_reason(error: BaseException) -> str:
    """Return what an error of LanceDB says, without the place in its own source it ends with."""
    said = _SOURCE.sub("", first_line(error)).split(_LANCE_IO)[-1].strip(": ")
    return "its bytes are damaged" if _MISREAD.match(said) else said[:_LONGEST]


class VectorSnapshot(TextSearch):
    """Vector and full-text search over the tables at fixed versions, read-only.

    Later writes do not change what it returns. A table without a version is empty. Vectors of up
    to :data:`HELD_BYTES` a table are loaded when first searched, and then stay in memory. Equal
    scores are in the order of ids. Safe to use from several threads.

    Raises
    ------
    VectorStoreError
        On first use of a table whose version is gone.

    ``full_texts`` are the full-text indexes of tables that are held already, ``carried`` the
    vectors, with the name of their embedder. Tables of which both are there are searched without
    LanceDB.
    """

    def __init__(
        self,
        uri: str | Path,
        versions: Mapping[str, int],
        full_texts: Mapping[str, FullText] | None = None,
        carried: Mapping[str, tuple[str, SparseVectors]] | None = None,
    ) -> None:
        self.versions = dict(versions)
        self._uri = os.fspath(uri)
        self._lock = threading.Lock()
        self._opened: dict[str, LanceTable | None] = {}
        self._carried = dict(carried or {})
        self._held: dict[str, SearchedVectors | None] = {
            table: vectors for table, (_, vectors) in self._carried.items()
        }
        self._full_texts = dict(full_texts or {})

    @_read
    def search(
        self,
        table: str,
        vector: Sequence[float] | npt.NDArray[np.floating[Any]],
        k: int,
        *,
        among: Sequence[str] | None = None,
        exact: bool = False,
    ) -> pa.Table:
        """Return the ``k`` rows nearest to a vector.

        Exact below :data:`VECTOR_INDEX_ROWS` rows; above, scores are exact and a row may be missed.

        Parameters
        ----------
        among
            The ids of the rows to look at.
        exact
            Look at all rows, however many there are: no row is missed.

        Returns
        -------
        pyarrow.Table
            ``id`` and ``score`` (cosine similarity, -1 to 1, to six decimals, best first). What has
            no direction, a vector of zeros, is like nothing.
        """
        in_memory = self._hold(table)
        lance_table = self._table(table) if in_memory is None else None
        if k < 1 or (in_memory is None and lance_table is None):
            return no_hits()
        query = self._checked_query(table, vector)
        if in_memory is not None:
            return hits_of(*in_memory.nearest(query, k, among))
        assert lance_table is not None
        search: Any = lance_table.search(query, vector_column_name=_VECTOR, query_type="vector")
        search = search.distance_type("cosine").refine_factor(_REFINE).limit(k)
        search = search.select(["id", "_distance"])
        if exact:
            search = search.bypass_vector_index()
        if among is not None:
            search = search.where(_has_id(among), prefilter=True)
        hits = search.to_arrow()
        found = hits_of(hits["id"].to_pylist(), rounded(1.0 - hits["_distance"].to_numpy()))
        return found.sort_by([("score", "descending"), ("id", "ascending")])

    @_read
    def similarities(
        self,
        table: str,
        vector: Sequence[float] | npt.NDArray[np.floating[Any]],
        ids: Sequence[str],
    ) -> dict[str, float]:
        """Return the cosine of a vector and each of those ids that the table holds."""
        in_memory = self._hold(table)
        lance_table = self._table(table) if in_memory is None else None
        if in_memory is None and lance_table is None:
            return {}
        query = self._checked_query(table, vector)
        if in_memory is None:
            assert lance_table is not None
            found, matrix = _matrix(_rows(lance_table, _ID_AND_VECTOR, ids))
            in_memory = HeldVectors(len(found), [(found, matrix)], matrix.shape[1])
        return in_memory.similarities(query, ids)

    @_read
    def texts(self, table: str, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of those ids that the table holds."""
        lance_table = self._table(table)
        if lance_table is None:
            return {}
        rows = _rows(lance_table, ["id", "text"], ids).to_pylist()
        return {row["id"]: row["text"] for row in rows}

    @_read
    def vectors(self, table: str, ids: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
        """Return the vectors of those ids that the table holds."""
        if table in self._carried:
            return self._carried[table][1].of(ids)
        lance_table = self._table(table)
        return {} if lance_table is None else _vectors_of(lance_table, ids)

    @_read
    def matrix(self, table: str) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the ids of a table, ascending, and their vectors, one a row."""
        ids, vectors = self.stored(table)
        return ids, vectors.astype(np.float32, copy=False)

    @_read
    def stored(self, table: str) -> tuple[list[str], npt.NDArray[np.floating[Any]]]:
        """Return what :meth:`matrix` does, in the precision that is stored."""
        if table in self._carried:
            return self._carried[table][1].stored()
        lance_table = self._table(table)
        if lance_table is None:
            return [], np.empty((0, 0), np.float32)
        ids, vectors = _stored_matrix(_rows(lance_table, _ID_AND_VECTOR))
        # Arrow sorts rows that have lists ten times as slowly.
        order = sorted(range(len(ids)), key=ids.__getitem__)
        return [ids[place] for place in order], vectors[order]

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of all rows of a table, some thousand rows at a time."""
        with _reading(table):
            lance_table = self._table(table)
            if lance_table is not None:
                query: Any = lance_table.search().select(list(columns))
                yield from query.to_batches(SLICE_ROWS)

    @_read
    def dimensions(self, table: str) -> int:
        """Return the length of a table's vectors; 0 where it has no version."""
        if table in self._carried:
            return self._carried[table][1].dimensions
        lance_table = self._table(table)
        return 0 if lance_table is None else _dimensions(lance_table)

    @_read
    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        lance_table = self._table(table)
        return 0 if lance_table is None else lance_table.count_rows()

    def embedder_name(self, table: str) -> str | None:
        """Return the name of the embedder that queries on a table must use."""
        if table in self._carried:
            return self._carried[table][0]
        return _embedder_name(self._table(table))

    def holds_text(self, table: str) -> bool:
        """Whether the full text of a table is held, so that it is searched without LanceDB."""
        return table in self._full_texts

    def check_stored(self, table: str) -> None:
        """Raise VectorStoreError where there is no such version; for that LanceDB is not needed."""
        version = self.versions[table]
        if not has_version(Path(self._uri), table, version):
            raise VectorStoreError(f"version {version} of vector table {table} is gone")

    @functools.cached_property
    def _db(self) -> DBConnection:
        # Put off: full text that is held is searched without LanceDB, which is slow to import.
        return connect(self._uri)

    def _table(self, table: str) -> LanceTable | None:
        _check_table(table)
        if table not in self._opened:
            version = self.versions.get(table, 0)
            self._opened[table] = _open(self._db, table, version) if version else None
        return self._opened[table]

    def _hold(self, table: str) -> SearchedVectors | None:
        """Return the vectors of a table; None where they are too many, or there is none."""
        _check_table(table)
        with self._lock:
            if table not in self._held:
                lance_table = self._table(table)
                if lance_table is None:
                    return None
                size = lance_table.count_rows() * _dimensions(lance_table) * _FLOAT_BYTES
                few = size <= HELD_BYTES
                self._held[table] = _held(lance_table) if few else None
            return self._held[table]

    def _checked_query(
        self, table: str, vector: Sequence[float] | npt.NDArray[np.floating[Any]]
    ) -> npt.NDArray[np.float32]:
        query = np.asarray(vector, dtype=np.float32)
        held = self._held.get(table)
        dimensions = self.dimensions(table) if held is None else held.dimensions
        if query.shape != (dimensions,):
            raise VectorStoreError(
                f"the query vector has shape {query.shape}, the vectors of {table} have "
                f"{dimensions} dimensions: embed the query with {self.embedder_name(table)}"
            )
        return query

    def sparse(
        self, table: str, text: FullText, before: Versioned | None = None
    ) -> SparseArrays | None:
        """Return the vectors of a table whose full text is given; ``before`` of an earlier version.

        None where they have no less room without their zeros.
        """
        lance_table = self._table(table)
        if lance_table is None:
            return None

        def read(ids: Sequence[str] | None) -> tuple[list[str], npt.NDArray[np.floating[Any]]]:
            return _stored_matrix(_rows(lance_table, _ID_AND_VECTOR, ids))

        return sparse_arrays(text.ids, text.versions, read, before)

    @_read
    def held_text(self, table: str) -> FullText:
        """Return the full-text index of a table, made when first asked for, then held."""
        with self._lock:
            if table not in self._full_texts:
                self._full_texts[table] = self.full_text(table)
            return self._full_texts[table]

    @_read
    def full_text(self, table: str, before: FullText | None = None) -> FullText:
        """Return the full-text index of a table; ``before`` is that of an earlier version."""
        lance_table = self._table(table)
        if lance_table is None:
            none = np.empty(0, np.bytes_), np.empty(0, np.uint64)
            return full_text(*none, lambda _: _no_terms())
        rows = _rows(lance_table, ["id", "content_hash"])
        ids, digests = (fixed_bytes(rows[name].combine_chunks()) for name in rows.column_names)
        versions = np.frombuffer(bytes.fromhex(digests.astype("S16").tobytes().decode()), np.uint64)
        return full_text(
            ids, versions, functools.partial(_rows, lance_table, _ID_AND_TERMS), before
        )


@dataclass(frozen=True)
class _Plan:
    embed: pa.Array
    """Positions of wanted rows without a vector."""
    refresh: pa.Array
    """Positions of wanted rows of which only level, batch or search terms changed."""
    remove: list[str]


def _plan(
    target: pa.Table, before: pa.Table, gone: Sequence[str] | None, *, by_terms: bool
) -> _Plan:
    """Compare wanted rows with those that are stored, by column."""
    import pyarrow as pa

    compute: Any = import_module("pyarrow.compute")
    places = compute.index_in(target["id"], before["id"].combine_chunks())
    matches = before.take(places)
    is_same, same_level, same_batch = (
        compute.equal(_filled(matches[name]), _filled(target[name])).to_numpy()
        for name in ("content_hash", "level", "batch")
    )
    of_text = (
        compute.utf8_slice_codeunits(_filled(rows["content_hash"]), HALF_DIGEST)
        for rows in (matches, target)
    )
    same_text = is_same if by_terms else compute.equal(*of_text).to_numpy()
    has_vector = places.is_valid().to_numpy() & same_text
    others = target["id"].combine_chunks() if gone is None else pa.array(gone, pa.string())
    is_gone = compute.is_in(before["id"], others).to_numpy() ^ (gone is None)
    return _Plan(
        embed=pa.array(np.flatnonzero(~has_vector)),
        refresh=pa.array(np.flatnonzero(has_vector & ~(is_same & same_level & same_batch))),
        remove=sorted(before["id"].filter(pa.array(is_gone)).to_pylist()),
    )


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of numbers or words, with what is none of them in place of null."""
    import pyarrow as pa

    return column.fill_null(-1 if pa.types.is_integer(column.type) else "\0")


def _wanted(rows: pa.Table, embedder: Embedder) -> pa.Table:
    import pyarrow as pa

    absent = set(row_schema().names) - set(rows.column_names)
    if absent:
        raise VectorStoreError(f"rows to store lack the columns {sorted(absent)}")
    for name in ("id", "text", "content_hash"):
        if rows[name].null_count:
            raise VectorStoreError(f"rows to store have null in column {name}: fill it")
    target = rows.select(row_schema().names).cast(row_schema())
    if len(target["id"].unique()) != len(target):
        raise VectorStoreError("rows to store have repeated ids: ids must be unique in a table")
    digests = row_digests(target["text"], target["content_hash"], embedder.name)
    column = target.schema.get_field_index("content_hash")
    field = target.schema.field(column)
    return target.set_column(column, field, pa.array(digests, pa.string())).combine_chunks()


def row_digests(
    texts: pa.ChunkedArray, content_hashes: pa.ChunkedArray, embedder: str
) -> list[str]:
    """Return what rows hold of their texts, how these became terms, and their embedder."""
    return [
        row_digest(content_hash, embedder, language_of(text))
        for text, content_hash in zip(texts.to_pylist(), content_hashes.to_pylist(), strict=True)
    ]


def row_digest(content_hash: str, embedder: str, language: str = "") -> str:
    """Return what a row holds of its text, its terms and its embedder.

    The second half is of text and embedder alone: another half, another vector. The first changes
    with the terms as well.
    """
    digest = blake2b(f"{embedder}\0{content_hash}".encode(), digest_size=16).hexdigest()
    if not language:
        return digest
    by = f"{digest}\0{language}\0{analysis_version()}"
    return blake2b(by.encode(), digest_size=8).hexdigest() + digest[HALF_DIGEST:]


def _embed(target: LanceTable, table: str, rows: pa.Table, embedder: Embedder) -> None:
    """Embed and write rows, slice by slice; where there are several, say how far it is."""
    parts = list(_slices(rows, min(SLICE_ROWS, stored(embedder).rows)))
    n_done = 0

    def tell() -> None:
        if len(parts) > 1:
            progress.report(f"{table}_vectors", n_done, len(rows))

    tell()
    texts = (part["text"].to_pylist() for part in parts)
    if len(parts) > 1 and isinstance(embedder, PartEmbedder):
        all_vectors = embedder.embed_parts(texts)
    else:
        all_vectors = map(embedder.embed, texts)
    for part, vectors in zip(parts, all_vectors, strict=True):
        _upsert(target, _with_vectors(part, vectors, embedder))
        n_done += len(part)
        tell()


def _with_vectors(rows: pa.Table, given: npt.NDArray[Any], embedder: Embedder) -> pa.Table:
    vectors = np.ascontiguousarray(given, dtype=np.float32)
    if vectors.shape != (len(rows), embedder.dimensions) or not np.isfinite(vectors).all():
        raise VectorStoreError(
            f"embedder {embedder.name} returned an array of shape {vectors.shape} with "
            f"{np.count_nonzero(~np.isfinite(vectors))} values that are no numbers for "
            f"{len(rows)} texts; expected ({len(rows)}, {embedder.dimensions}) finite numbers"
        )
    return _table_rows(rows, vectors)


def _with_stored_vectors(rows: pa.Table, table: LanceTable) -> pa.Table:
    ids = rows["id"].to_pylist()
    vectors = _vectors_of(table, ids)
    return _table_rows(rows, np.stack([vectors[key] for key in ids]))


def _table_rows(rows: pa.Table, vectors: npt.NDArray[np.float32]) -> pa.Table:
    import pyarrow as pa

    words = pa.array(stored_terms(rows["text"].to_pylist()), pa.string())
    dimensions = vectors.shape[1]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimensions)
    schema = _schema_with_vectors(dimensions)
    return pa.table(rows.append_column(_TERMS, words).append_column(_VECTOR, column)).cast(schema)


def _schema_with_vectors(dimensions: int, *, half: bool = False) -> pa.Schema:
    import pyarrow as pa

    item = pa.field("item", pa.float16() if half else pa.float32())
    return (
        row_schema()
        .append(pa.field(_TERMS, pa.string()))
        .append(pa.field(_VECTOR, pa.list_(item, dimensions)))
    )


def _table_schema(embedder: Embedder, n_rows: int) -> pa.Schema:
    # LanceDB takes nine times as long to make a vector index in half precision.
    half = stored(embedder).half and n_rows < VECTOR_INDEX_ROWS
    schema = _schema_with_vectors(embedder.dimensions, half=half)
    return schema.with_metadata({_EMBEDDER: embedder.name.encode()})


def _upsert(table: LanceTable, rows: pa.Table) -> None:
    """Write rows, their vectors as precise as those of the table."""
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    column = rows.schema.get_field_index(_VECTOR)
    field = rows.schema.field(column).with_type(table.schema.field(_VECTOR).type)
    merge.execute(rows.set_column(column, field, rows[_VECTOR].cast(field.type)))


def _keyed(table: LanceTable) -> LanceTable:
    """Return the table with its primary key, which a crash may have left out."""
    if not table.schema.field("id").metadata:
        table.set_unenforced_primary_key("id")
    return table


def _refresh_indexes(table: LanceTable) -> None:
    # Of an older program: full text is searched without LanceDB.
    for index in _indexes_on(table, _TERMS):
        table.drop_index(index.name)
    if table.count_rows() >= VECTOR_INDEX_ROWS and not _indexes_on(table, _VECTOR):
        from lancedb.index import IvfPq

        table.create_index(_VECTOR, config=IvfPq(distance_type="cosine"))
    if any((index.num_unindexed_rows or 0) > UNINDEXED_ROWS for index in table.list_indices()):
        table.optimize(cleanup_older_than=_NEVER)


def _indexes_on(table: LanceTable, column: str) -> list[Any]:
    return [index for index in table.list_indices() if index.columns == [column]]


def _cleanup_age(table: LanceTable, keep_days: float) -> timedelta:
    age = timedelta(days=keep_days)
    tagged = {int(tag["version"]) for tag in table.tags.list().values()}
    times = [v["timestamp"] for v in table.list_versions() if v["version"] in tagged]
    if not times:
        return age
    # LanceDB gives local time without a zone.
    since = datetime.now(UTC) - min(times).astimezone(UTC)
    return max(age, since + _CLOCK_MARGIN)


def _number_older(table: LanceTable, age: timedelta) -> int:
    moment = datetime.now(UTC) - age
    return sum(v["timestamp"].astimezone(UTC) < moment for v in table.list_versions())


@contextlib.contextmanager
def _writing(uri: str) -> Iterator[None]:
    """Turn what LanceDB raises about the disk (OSError, RuntimeError) into a StorageError.

    Raises OutOfMemoryError where memory is short.
    """
    require_memory()
    try:
        yield
    except (OSError, RuntimeError) as error:
        message = first_line(error)
        if isinstance(error, RuntimeError) and _LANCE_IO not in message:
            raise
        reason = message.split(_LANCE_IO)[-1].split(", /")[0].strip(": ")
        raise StorageError(f"cannot write {uri}: {reason}") from error


def _open(db: DBConnection, table: str, version: int | None = None) -> LanceTable | None:
    """Open a version of a table, or its last; None where there is no table, or none with a version.

    The making of a table without a version was killed.
    """
    _check_table(table)
    if table not in db.list_tables().tables:
        return None
    if version is None and not _has_version(db, table):
        return None
    try:
        return cast("LanceTable", db.open_table(table, version=version))
    except (RuntimeError, ValueError, OSError) as error:
        with contextlib.suppress(OSError):
            if drop_damaged(Path(db.uri), table):
                return _open(db, table, version)
        raise VectorStoreError(
            f"version {version} of vector table {table} cannot be opened ({error}): "
            "publish again, or restore the folder from a backup"
        ) from error


def _has_version(db: DBConnection, table: str) -> bool:
    versions = Path(db.uri) / f"{table}.lance" / "_versions"
    return any(versions.glob("*.manifest"))


def _check_table(table: str) -> None:
    if not _NAME.fullmatch(table):
        raise VectorStoreError(
            f"{table!r} cannot name a vector table: use lower-case letters, digits and underscores"
        )


def _embedder_name(table: LanceTable | None) -> str | None:
    if table is None:
        return None
    return (table.schema.metadata or {}).get(_EMBEDDER, b"").decode() or None


def _dimensions(table: LanceTable) -> int:
    return table.schema.field(_VECTOR).type.list_size


def _vectors_of(table: LanceTable, ids: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
    return dict(zip(*_matrix(_rows(table, _ID_AND_VECTOR, ids)), strict=True))


def _rows(table: LanceTable, columns: list[str], ids: Sequence[str] | None = None) -> pa.Table:
    """Return columns of those rows that the table holds: of some ids, or of all for None."""
    import pyarrow as pa

    def query() -> Any:
        return table.search().select(columns)

    if ids is None:
        return query().to_arrow()
    parts = _batched(list(dict.fromkeys(ids)))
    found = [query().where(_has_id(part)).to_arrow() for part in parts]
    return pa.concat_tables(found) if found else table.schema.empty_table().select(columns)


def _no_terms() -> pa.Table:
    import pyarrow as pa

    return pa.table({"id": pa.array([], pa.string()), _TERMS: pa.array([], pa.string())})


def _held(table: LanceTable) -> HeldVectors:
    """Return all vectors of a table, read a slice at a time."""
    import pyarrow as pa

    query: Any = table.search().select(_ID_AND_VECTOR)
    batches = (pa.Table.from_batches([batch]) for batch in query.to_batches(SLICE_ROWS))
    return HeldVectors(table.count_rows(), map(_matrix, batches), _dimensions(table))


def _matrix(rows: pa.Table) -> tuple[list[str], npt.NDArray[np.float32]]:
    ids, vectors = _stored_matrix(rows)
    return ids, vectors.astype(np.float32, copy=False)


def _stored_matrix(rows: pa.Table) -> tuple[list[str], npt.NDArray[np.floating[Any]]]:
    column = rows[_VECTOR].combine_chunks()
    flat = column.flatten().to_numpy(zero_copy_only=False)
    return rows["id"].to_pylist(), flat.reshape(len(rows), column.type.list_size)


def _has_id(ids: Sequence[str]) -> Expr:
    from lancedb.expr import col

    return col("id").isin(ids)


def _batched(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Return ids in parts that a filter takes."""
    starts = range(0, len(ids), _ID_FILTER_ROWS)
    return (ids[start : start + _ID_FILTER_ROWS] for start in starts)


def _slices(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    starts = range(0, len(rows), size)
    return (rows.slice(start, size).combine_chunks() for start in starts)
