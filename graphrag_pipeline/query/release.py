"""A published release, opened for reading: one DuckDB file and the vectors that belong to it."""

from __future__ import annotations

import contextlib
import copy
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.core.errors import (
    AccessError,
    ConfigError,
    InputError,
    NothingPublishedError,
    StorageError,
    first_line,
)
from graphrag_pipeline.core.hardening.memory import return_freed_memory
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.languages import LANGUAGES, language_asked
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.core.sharing import sharing_of
from graphrag_pipeline.core.text import asked_in, asked_language, counted
from graphrag_pipeline.core.tokens import encoding_for
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.running import watched
from graphrag_pipeline.query.asked_dates import with_days
from graphrag_pipeline.query.control import Control, Usage
from graphrag_pipeline.query.limited_release import (
    DocumentPlace,
    Labels,
    Where,
    described,
    found_within,
    known_labels,
    labelled,
    whole_ids,
)
from graphrag_pipeline.query.memory.entity_names import EntityNames
from graphrag_pipeline.query.memory.graph_arrays import GraphArrays
from graphrag_pipeline.query.memory.mapped_arrays import GRAPH, NAMES, CarriedArrays, rows_name
from graphrag_pipeline.query.memory.rows_in_memory import KeptRows, read_if_small
from graphrag_pipeline.query.question import AnalysedQuestion, without_asking
from graphrag_pipeline.query.short_titles import (
    TITLES,
    ShortTitles,
    short_titles_of,
    with_short_titles,
)
from graphrag_pipeline.query.trace import Trace
from graphrag_pipeline.query.visible_vectors import VisibleVectors
from graphrag_pipeline.releases.kept_releases import ACCESS, nothing_published
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.store.bare_names import SEARCH_PATH, bare_names
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.limits import DatabaseLimits, drop_cached_blocks
from graphrag_pipeline.store.older_files import add_what_older_lack, is_of_first_schema
from graphrag_pipeline.store.vector_store import VectorSnapshot
from graphrag_pipeline.structures.structure import STRUCTURES
from graphrag_pipeline.structures.vector_tables import TABLES

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from graphrag_pipeline.core.settings import Settings
    from graphrag_pipeline.llm.embedders import Embedder
    from graphrag_pipeline.store.array_file import Arrays

VECTORS = "vectors"
_LIMITS_REMEMBERED = 8
_COUNTED = ("n_documents", "n_chunks", "n_entities", "n_relationships", "n_communities")
_COUNT = "SELECT count(*) AS n FROM {table}"
_QUESTIONS_REMEMBERED = 64

T = TypeVar("T")
_NO_TABLE = pattern_of(r"Table with name (\w+) does not exist")

_TABLES = """
SELECT table_name AS name FROM duckdb_tables()
WHERE database_name = $database AND estimated_size > 0
"""
_TABLE = """
SELECT 1 FROM duckdb_tables() WHERE database_name = 'published' AND table_name = $name
"""
_FACTS = """
SELECT id, created_at::VARCHAR AS created_at, embedder, vector_versions::VARCHAR AS versions,
       n_documents, n_chunks, n_entities, n_relationships, n_communities, n_reports
FROM releases ORDER BY releases.created_at DESC, id DESC LIMIT 1
"""
_ACCESS = "SELECT value FROM meta WHERE key = $key"
_BY_ID = """
SELECT * FROM ({rows}) JOIN (SELECT unnest($ids::JSON::VARCHAR[]) AS id) wanted USING (id)
"""


@dataclass(frozen=True)
class ReleaseFacts:
    """The row of ``releases`` that describes the open release."""

    id: str
    created_at: str
    embedder: str
    vector_versions: Mapping[str, int]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class _Limit:
    """The documents a release shows, and where that is; no place: it shows all that there are."""

    where: Where = field(default_factory=dict)
    labels: Labels = None
    place: DocumentPlace | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """The key that tells one from another."""
        return (*self.where.items(), self.labels)


class Release:
    """One complete, unchanging release: rows by SQL, vectors by search.

    A release published meanwhile does not show: the open file stays as it is on disk, and the
    vector tables are read at the versions recorded in it. Safe to use from several threads.
    Vectors, the embedder, and the rows that questions keep asking for are loaded when first needed.
    ``trace`` takes note of what operators do with it: see :meth:`traced`. :meth:`limited` gives it
    as if it held some documents only. ``bare``: it shows documents by their bare names
    (:mod:`~graphrag_pipeline.store.bare_names`).
    """

    def __init__(
        self,
        home: Path,
        settings: Settings,
        file: Path,
        con: duckdb.DuckDBPyConnection,
        *,
        bare: bool = False,
    ) -> None:
        self.home = home
        self._file = file
        self.settings = settings
        self._con = con
        self.bare = bare
        if bare:
            bare_names(con)
        self._is_first = is_of_first_schema(con)
        self.trace = Trace()
        self.control = Control()
        self._usage = Usage()
        self._lock = threading.RLock()
        self._loaded: dict[tuple[str, str], Any] = {}
        self._has_loaded = threading.Event()
        self._whole = self
        self._is_pinned = False
        self._limit, self._says = _Limit(), ""
        self._limits: OrderedDict[tuple[object, ...], Release] = OrderedDict()
        self._limiting = threading.Lock()
        self.row_tokens: dict[tuple[str, str, str], int] = {}
        self.facts = self._read_facts()
        self._embed_question = lru_cache(_QUESTIONS_REMEMBERED)(self._embedded)

    @property
    def file(self) -> Path:
        """The file of the release. Raises AccessError where labels limit what is shown of it."""
        self.check_whole()
        return self._file

    def check_whole(self) -> None:
        """Raise AccessError where labels limit what is shown."""
        if self.labels is not None:
            raise AccessError("a caller with labels may not do this: it shows all documents")

    @property
    def encoding(self) -> str:
        """Encoding that counts tokens of a context: that of who reads it, or the chunks' own."""
        by_model = self.settings.query.answers == "llm"
        return (
            encoding_for(self.settings.llm_for("answers").model)
            if by_model
            else self.settings.chunks.encoding
        )

    def traced(self, trace: Trace) -> Release:
        """Return this release for one question; all that is loaded is shared."""
        release = copy.copy(self)
        release.trace = trace
        trace.control = self.control
        if self._says:
            trace.step(self._says)
        if self.is_limited:
            n = counted(self.facts.counts["n_documents"], "document")
            where = self._limit.where
            trace.step(f"limited to {n}" + (f": {described(where)}" if where else ""))
        return release

    def saying(self, step: str) -> Release:
        """Return this release for one question, whose first step is ``step``."""
        release = copy.copy(self)
        release._says = step
        return release

    def tell_left_out(self, what: str) -> None:
        """Say of what is written ahead of questions that some of it is not looked at here."""
        if self.is_limited:
            self.trace.step(f"{what} that rest on other documents, too, are left out")

    def limited(self, where: Where) -> Release:
        """Return this release as if it held only the documents that a filter matches.

        The last few filters are remembered. Raises InputError where no document matches, and where
        an older program made the release.
        """
        return self._shown(_Limit(where, self._limit.labels))

    def view(self, labels: Labels) -> Release:
        """Return this release as somebody with these labels may see it; None may see everything.

        A view of a view shows what both show. Raises AccessError where the labels open nothing and,
        where access is filtered, for a release that is not the published one, whose labels may have
        changed since; InputError where access is off.
        """
        if labels is None:
            return self
        mode, opening = self.access
        if mode == "off":
            raise InputError(
                "labels have no effect here, because everybody sees everything: set access.mode, "
                "and index again"
            )
        if mode == "separate":
            if not labels & opening:
                raise AccessError(f"this index is not open to {labelled(labels)}: use other labels")
            return self
        if not self._is_published():
            raise AccessError(
                "callers with labels see only the published release: leave out the release"
            )
        if not self._whole.has_table("document_labels"):
            raise AccessError(f"release {self.facts.id} has no labels yet: index again")
        with self._whole._cursor() as cursor:
            known = known_labels(cursor, labels)
        own = self._limit.labels
        known = known if own is None else known & own
        if not known:
            raise AccessError(f"no document is open to {labelled(labels)}: use other labels")
        return self._shown(_Limit(self._limit.where, known))

    @property
    def access(self) -> tuple[str, frozenset[str]]:
        """The mode of access, and the labels of which one opens a separate index.

        Those of the settings or, where these say nothing, of the release: it may be read by the
        settings of another index.
        """
        own = self.settings.access
        if own.mode != "off":
            return own.mode, frozenset(own.labels)
        return self._whole._once("access", self._whole._published_access)

    def _published_access(self) -> tuple[str, frozenset[str]]:
        rows = self._uncontrolled.rows(_ACCESS, key=ACCESS)
        access = json.loads(rows[0]["value"]) if rows else {"mode": "off", "labels": []}
        return access["mode"], frozenset(access["labels"])

    def _is_published(self) -> bool:
        with contextlib.suppress(OSError):
            return not self._is_pinned or Home(self.home).published.samefile(self._file)
        return False

    def _shown(self, limit: _Limit) -> Release:
        """Return this release within a limit, which is made once for all who ask within it."""
        whole = self._whole
        if limit == _Limit():
            return whole.controlled(self.control)
        release = whole._remembered(limit)
        if release is None:
            with whole._limiting:
                release = whole._remembered(limit) or whole._limited(limit)
                with whole._lock:
                    whole._limits[limit.key] = release
                    while len(whole._limits) > _LIMITS_REMEMBERED:
                        whole._limits.popitem(last=False)
        return release.controlled(self.control)

    def _remembered(self, limit: _Limit) -> Release | None:
        with self._lock:
            if limit.key in self._limits:
                self._limits.move_to_end(limit.key)
            return self._limits.get(limit.key)

    @property
    def is_limited(self) -> bool:
        """Whether this shows some documents only."""
        return self._limit.place is not None

    @property
    def labels(self) -> Labels:
        """The labels by which documents are seen, of those that any has; None: all are seen."""
        return self._limit.labels

    def controlled(self, control: Control) -> Release:
        """Return this release for one question that is watched and may be stopped.

        What is loaded for all questions is loaded to its end.
        """
        release = copy.copy(self)
        release.control = control
        return release

    @property
    def _uncontrolled(self) -> Release:
        """This release for what all questions share: no one question may stop it."""
        return self.controlled(Control())

    def check_readable(self) -> None:
        """Read a row of the file and of each vector table. Raises StorageError where one is gone.

        That is what a question would meet with; nothing is kept for it in memory.
        """
        self.rows("SELECT id FROM releases LIMIT 1")
        snapshot = self._open_vectors()
        for table, version in self.facts.vector_versions.items():
            if self.lexical and snapshot.holds_text(table):
                snapshot.check_stored(table)
                continue
            if version and not snapshot.dimensions(table):
                raise StorageError(f"the vectors of {table} in {self.home} are gone")
            next(snapshot.scan(table, ["id"]), None)

    def give_back_memory(self) -> None:
        """Give the system back what loading took on its way, if anything was loaded since.

        Above all the blocks of the file: what was loaded of them stays in memory, and they would
        stay beside it. Where somebody reads in this moment, the next call does it.
        """
        if not self._has_loaded.is_set():
            return
        with self._usage.pause() as is_free:
            if is_free:
                self._has_loaded.clear()
                drop_cached_blocks(self._con)
        return_freed_memory()

    def close(self) -> None:
        """Close the file as soon as no question reads it, and forget what was loaded."""
        self._usage.end()
        for limited in self._limits.values():
            limited._loaded.clear()
        self._limits.clear()
        self._con.close()
        self._loaded.clear()
        self.row_tokens.clear()
        self._embed_question.cache_clear()

    def rows(self, sql: str, **parameters: object) -> list[dict[str, Any]]:
        """Return the rows of a query, by column name; values go in as ``$name``.

        A list goes in as JSON (``$ids::JSON::VARCHAR[]``), a hundred times faster to bind.

        Methods read the tables of structures by it. Raises InputError where the release does not
        have, or does not show, the table of a structure, StorageError where the file is damaged.
        """
        with self._asked(sql, parameters) as cursor:
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def columns(self, sql: str, **parameters: object) -> pa.Table:
        """Return the same by columns: for many rows."""
        with self._asked(sql, parameters) as cursor:
            return cursor.to_arrow_table()

    def has_rows(self, table: str) -> bool:
        """Whether a table has any: a release that an older program made may lack the table."""
        place = self._limit.place if self._is_index else None
        database = place.name if place else "published"

        def read() -> set[str]:
            return {row["name"] for row in self.rows(_TABLES, database=database)}

        return table in self._once("tables", read)

    def has_table(self, name: str) -> bool:
        """Whether there is a table at all: an older program made fewer."""
        return bool(self.rows(_TABLE, name=name))

    def kept(self, sql: str) -> KeptRows:
        """Return the rows of a query without parameters, read once: for ids and numbers."""

        def read() -> KeptRows:
            held = self._carried(rows_name(sql))
            return KeptRows(None, held) if held else KeptRows(self.columns(sql))

        return self._once("kept", read, sql)

    def records(self, sql: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the rows of a query without parameters that have these distinct ids, by id.

        The query gives each id once. All its rows are read once and kept if they take no more than
        ``kept_rows.MOST_BYTES``, for that takes hardly longer than to find a few in the file.
        """
        id_list = list(ids)
        table = self.held(sql) if id_list else None
        if table is not None:
            rows = table.take(table.having("id", id_list)[0])
        else:
            rows = self.rows(_BY_ID.format(rows=sql), ids=id_list) if id_list else []
        return {row["id"]: row for row in rows}

    @property
    def graph(self) -> GraphArrays:
        """The graph as arrays, loaded when first asked for."""
        return self._once(
            "graph", lambda: GraphArrays(self._uncontrolled._read_to_keep, self._carried(GRAPH))
        )

    def _read_to_keep(self, sql: str) -> pa.Table:
        self._has_loaded.set()
        return self.columns(sql)

    @property
    def names(self) -> EntityNames:
        """The names of entities, loaded when first asked for."""

        def read() -> EntityNames:
            held = self._carried(NAMES)
            return EntityNames(held) if held else EntityNames.read(self._uncontrolled.columns)

        return self._once("names", read)

    def once(self, name: str, load: Callable[[Release], T]) -> T:
        """Return what a method loads of this release: when first asked for, then shared by all.

        ``name`` tells it from all else that is loaded so. No one question may stop ``load``.
        """
        return self._once("loaded", lambda: load(self._uncontrolled), name)

    def opened(self, load: Callable[[duckdb.DuckDBPyConnection, VectorSnapshot], T]) -> T:
        """Return what is loaded of the rows that this shows and the vectors of all documents."""
        with self._cursor() as cursor:
            return load(cursor, self._snapshot)

    def search_vectors(self, table: str, question: str, k: int) -> pa.Table:
        """Return (id, score) of the ``k`` rows of a vector table most similar to a question.

        Raises ConfigError when the release was embedded by another embedder than is configured,
        StorageError when its vectors are gone.
        """
        self._check_embedded(table)
        vector = self.embed_question(question)
        return self._within(table, k, partial(self._vectors.search, table, vector))

    def similarities(self, table: str, question: str, ids: Sequence[str]) -> dict[str, float]:
        """Return the cosine of a question and each of these rows of a vector table."""
        self._check_embedded(table)
        own = self._own(table)
        found = ids if own is None else [key for key in ids if key in own]
        return self._vectors.similarities(table, self.embed_question(question), found)

    def search_text(
        self, table: str, question: str, k: int, *, among: Sequence[str] | None = None
    ) -> pa.Table:
        """Return (id, score) of the ``k`` rows that best match a question by BM25.

        Of all, or of those with the ids ``among``. Days are looked for as tables write them, too.
        """
        own = self._own(table)
        asked = AnalysedQuestion.of(question)
        text = self.with_short_titles(without_asking(asked.read(with_days)))
        if among is not None:
            found = among if own is None else [key for key in among if key in own]
            return self._vectors.fulltext(table, text, k, among=found)
        return self._within(table, k, partial(self._vectors.fulltext, table, text))

    def with_short_titles(self, question: str) -> str:
        """Return a question with the short titles of statutes that it calls by words in full."""

        def known(index: Release) -> ShortTitles:
            return short_titles_of(row["title"] for row in index.rows(TITLES))

        return with_short_titles(question, lambda: self.once("short titles", known))

    def stored_texts(self, table: str, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of those rows of a vector table that it holds, by id."""
        return self._vectors.texts(table, ids)

    def search_terms(self, table: str, weights: Mapping[str, float], k: int) -> pa.Table:
        """Return (id, score) of the ``k`` rows that best match weighed search terms by BM25."""
        return self._within(table, k, partial(self._vectors.match_terms, table, weights))

    def term_counts(self, table: str, terms: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return how many rows of a vector table hold each search term, and of how many rows."""
        return self._vectors.term_counts(table, terms)

    def terms_held(
        self, table: str, ids: Sequence[str], terms: Sequence[str]
    ) -> npt.NDArray[np.bool_]:
        """Return which rows of a vector table hold which search terms, shape (ids, terms)."""
        return self._vectors.terms_held(table, ids, terms)

    def languages(self) -> Mapping[str, int]:
        """Return the number of passages by language, an empty one for English and all others."""
        return self._vectors.languages("chunks")

    def asked_in(self, question: str) -> contextlib.AbstractContextManager[None]:
        """Let texts be compared, in this context, as the language of a question has them.

        That is one of those that the passages are in.
        """
        return asked_in(self._language_of(question))

    def compared_in(self, question: str) -> contextlib.AbstractContextManager[None]:
        """Let texts be compared, in this context, as the language of a question has them.

        That is any that words are stemmed in: no passage of records may be long enough to be known
        to be in it.
        """
        return asked_in(self._language_of(question, LANGUAGES))

    def _language_of(self, question: str, others: Iterable[str] = ()) -> str:
        # A question that needs no passages is answered without them.
        with contextlib.suppress(StorageError):
            return language_asked(question, {**dict.fromkeys(others, 0), **self.languages()})
        return ""

    @property
    def lexical(self) -> bool:
        """Whether vectors know words only, so that texts without a common word have none."""
        return self.facts.embedder.startswith("hashing")

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, shape (n, dimensions), by the release's embedder."""
        with watched(self.control.calling):
            return self._embedder.embed(texts)

    def embed_question(self, question: str) -> npt.NDArray[np.float32]:
        """Return the vector of a question; those of the last few are remembered."""
        asked = asked_language()
        with watched(self.control.calling):
            return self._embed_question(
                question, self._language_of(question) if asked is None else asked
            )

    def held(self, sql: str) -> KeptRows | None:
        """Return all rows of a query without parameters, or None where they are too large to keep.

        Read once; for rows with texts.
        """

        def read() -> KeptRows | None:
            with self._asked(sql, {}) as cursor:
                reader = cursor.to_arrow_reader()
                return read_if_small(reader, reader.schema)

        return self._once("records", read, sql)

    def _check_embedded(self, table: str) -> None:
        """Raise InputError for a table that no method read that was chosen at indexing."""
        optional = {each.name for each in TABLES if each.read_by}
        if table in optional - self.facts.vector_versions.keys():
            raise InputError(
                f"release {self.facts.id} has no vectors of {table.replace('_', ' ')}: add the "
                "method to embeddings.methods, and index again"
            )

    def _limited(self, limit: _Limit) -> Release:
        import duckdb

        try:
            with self._usage.use():
                place = DocumentPlace(
                    self._con, limit.where, limit.labels, self.settings, bare=self.bare
                )
        except duckdb.Error as error:
            raise InputError(
                f"release {self.facts.id} cannot be limited to documents, an older program made it "
                f"({first_line(error)}): index again"
            ) from error
        release = copy.copy(self)
        release._limit = replace(limit, place=None if place.is_all else place)
        if place.is_all:
            return release
        release._loaded, release.row_tokens = {}, {}
        counts = {name: release.rows(_COUNT.format(table=name[2:]))[0]["n"] for name in _COUNTED}
        counts["n_reports"] = release.rows(_COUNT.format(table="community_reports"))[0]["n"]
        release.facts = replace(self.facts, counts={**self.facts.counts, **counts})
        if place.is_index:
            release._once("vectors", release._open_visible)
        return release

    def _open_visible(self) -> VisibleVectors:
        """Return the search of a view, once what is made by vectors is in its tables."""
        vectors = VisibleVectors(self._uncontrolled._cursor, self._snapshot, lambda: self._embedder)
        if "entity_titles" in self.facts.vector_versions:
            vectors.link_synonyms(self.settings.embeddings.synonym_similarity)
        return vectors

    def _own(self, table: str) -> frozenset[str] | None:
        """Return the ids that a limited release may find in a vector table, None for all."""
        if not self.is_limited or self._is_index:
            return None
        return self._once(
            "own", lambda: frozenset(row["id"] for row in self.rows(whole_ids(table))), table
        )

    def _within(self, table: str, k: int, search: Callable[..., pa.Table]) -> pa.Table:
        own = self._own(table)
        return search(k) if own is None else found_within(search, own, k)

    def _once(self, name: str, load: Callable[[], T], of: str = "") -> T:
        """Return what is loaded when first asked for, then shared."""
        with self._lock:
            if (name, of) not in self._loaded:
                self._loaded[name, of] = load()
                self._has_loaded.set()
            return self._loaded[name, of]

    def _embedded(self, question: str, language: str) -> npt.NDArray[np.float32]:
        # For all questions: who watches the one that asks first is known from the context.
        with asked_in(language):
            return self._embedder.embed([question])[0]

    @property
    def vectors(self) -> VectorSnapshot:
        """The vector tables of the whole release, for what labels do not limit."""
        self.check_whole()
        return self._snapshot

    @property
    def _vectors(self) -> VectorSnapshot | VisibleVectors:
        if self._is_index:
            return self._once("vectors", self._open_visible)
        return self._snapshot

    @property
    def _snapshot(self) -> VectorSnapshot:
        return self._whole._once("vectors", self._whole._open_vectors)

    @property
    def _is_index(self) -> bool:
        """Whether this is an index of its own, of what labels open."""
        return self._limit.place is not None and self._limit.place.is_index

    def _open_vectors(self) -> VectorSnapshot:
        versions, carried = self.facts.vector_versions, self._arrays
        if carried is None:
            return VectorSnapshot(self.home / VECTORS, versions)
        texts, vectors = carried.full_texts(versions), carried.vectors(versions)
        return VectorSnapshot(self.home / VECTORS, versions, texts, vectors)

    @property
    def _arrays(self) -> CarriedArrays | None:
        """The arrays that the release carries; an older one may carry none."""
        return self._whole._once(
            "arrays", lambda: CarriedArrays.of_release(self.home, self.facts.id)
        )

    def _carried(self, name: str) -> Arrays:
        """Return arrays that the release carries under a name: of all documents, if any."""
        return self._arrays.below(name) if self._arrays and not self.is_limited else {}

    @property
    def _embedder(self) -> Embedder:
        return self._whole._once("embedder", self._whole._configured_embedder)

    def _configured_embedder(self) -> Embedder:
        embedder = configured_embedder(self.settings, "query")
        if embedder.name != self.facts.embedder:
            raise ConfigError(
                f"release {self.facts.id} was embedded with {self.facts.embedder}, but the "
                f"[embeddings] settings give {embedder.name}: set them back, or index again"
            )
        return embedder

    @contextlib.contextmanager
    def _asked(
        self, sql: str, parameters: Mapping[str, object]
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        import duckdb

        try:
            with self._cursor() as cursor:
                cursor.execute(sql, {name: _bound(v) for name, v in parameters.items()})
                yield cursor
        except duckdb.InterruptException:
            self.control.check()
            raise
        except (duckdb.IOException, duckdb.CatalogException) as error:
            if why := self._without_structure(error):
                raise InputError(why) from error
            raise StorageError(f"cannot read {self._file}: {first_line(error)}") from error

    def _without_structure(self, error: Exception) -> str:
        """Return what to do where the table of a package's structure is not there; else nothing."""
        named = _NO_TABLE.search(str(error))
        table = named[1] if named else ""
        brought = {n: s for n, s in STRUCTURES.usable().items() if n not in STRUCTURES.own}
        owners = [name for name, structure in brought.items() if table in structure.tables]
        if not owners:
            return ""
        if self._limit.place:
            return (
                f"{table} is not shown where only some documents are: ask without filter or labels"
            )
        return (
            f"release {self.facts.id} has no table {table}: put {owners[0]!r} into "
            "structures.wanted and index again"
        )

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._usage.use():
            with self._lock:
                cursor = self._con.cursor()
            try:
                place = self._limit.place
                usual = SEARCH_PATH if self.bare else "published.main"
                cursor.execute(f"SET search_path = '{f'{place.name}.main' if place else usual}'")
                if self._is_first and place is None:
                    add_what_older_lack(cursor)
                with self.control.running(cursor):
                    yield cursor
            finally:
                cursor.close()

    def _read_facts(self) -> ReleaseFacts:
        rows = self.rows(_FACTS)
        if not rows:
            raise NothingPublishedError(nothing_published(self.home))
        row = rows[0]
        return ReleaseFacts(
            id=row["id"],
            created_at=row["created_at"],
            embedder=row["embedder"],
            vector_versions=json.loads(row["versions"]),
            counts={name: row[name] for name in row if name.startswith("n_")},
        )


@contextlib.contextmanager
def open_release(
    home: Path,
    *,
    settings: Settings | None = None,
    release: str | None = None,
    limits: DatabaseLimits | None = None,
    bare: bool = False,
) -> Iterator[Release]:
    """Open what is published in a home folder, for reading.

    ``release`` names another release that is kept, by its id or the beginning of it; its rows and
    its vectors are read together. ``settings`` (default: those in force) say how questions
    are embedded and how much a query retrieves; ``limits`` are those of a run that reads it;
    ``bare``: no document is named by a path of this machine.

    Raises NothingPublishedError when there is no release yet, InputError when ``release`` is none
    of those kept, StorageError when the file cannot be read.
    """
    settings = settings or load_settings(home=home)
    if settings.home_path == home.resolve():
        sharing_of(settings).follow()
    file = release_file(home, release)
    try:
        con = connect_published(file, limits=limits)
    except StorageError:
        if file.exists():
            raise
        # It was stored in another way in this moment, for a newer one was published.
        file = release_file(home, release)
        con = connect_published(file, limits=limits)
    try:
        opened = Release(home, settings, file, con, bare=bare)
        opened._is_pinned = release is not None
    except BaseException:
        con.close()
        raise
    with contextlib.closing(opened):
        yield opened


def _bound(value: object) -> object:
    return json.dumps(value) if isinstance(value, list) else value
