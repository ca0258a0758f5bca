"""Documents: the files of a batch, read and kept as the current version of each document."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import polars as pl

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.languages import READ_CHARS, language_of_document
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.ingest.reading import ReadDocument, ReadingOptions, ReadResult
from graphrag_pipeline.ingest.reading.files import refused, too_large, why_not_opened
from graphrag_pipeline.ingest.reading.model import DocumentTable, OcrOptions
from graphrag_pipeline.ingest.reading.separate import Readers, ReadingLimits
from graphrag_pipeline.store.batches import Batch, BatchLog
from graphrag_pipeline.store.frames import streamed
from graphrag_pipeline.store.index_store import insert
from graphrag_pipeline.store.snapshots import shown_path
from graphrag_pipeline.store.source_files import open_source
from graphrag_pipeline.store.sources import Source, SourceChange

READER_VERSION = "17"
_READERS = 4
_MOST_LANGUAGES = 1_000
_FILES_AT_ONCE = 16
_ROWS_AT_ONCE = 50_000

DOCUMENTS = pl.Schema(
    {
        "id": pl.String,
        "uri": pl.String,
        "source": pl.String,
        "title": pl.String,
        "content_hash": pl.String,
        "n_chars": pl.Int64,
        "metadata": pl.String,
        "text": pl.String,
        "page_starts": pl.List(pl.Int64),
        "batch": pl.String,
    }
)
BLOCKS = pl.Schema(
    {
        "document_id": pl.String,
        "start_char": pl.Int64,
        "end_char": pl.Int64,
        "kind": pl.String,
        "batch": pl.String,
    }
)
BATCH_SOURCES = pl.Schema(
    {
        "batch": pl.String,
        "uri": pl.String,
        "action": pl.String,
        "sha256": pl.String,
        "n_bytes": pl.Int64,
        "status": pl.String,
        "n_documents": pl.Int64,
    }
)
_READ = pl.Schema(
    {
        **dict.fromkeys(("source", "identity", "key", "title", "text", "metadata"), pl.String),
        **dict.fromkeys(("pages", "starts", "ends"), pl.List(pl.Int64)),
        "kinds": pl.List(pl.String),
    }
)
"""What is read of a file, a row for each document, with its blocks."""
QUARANTINE = pl.Schema({"batch": pl.String, "uri": pl.String, "reason": pl.String})


@dataclass(frozen=True)
class BatchDocuments:
    """The yield of reading a batch: rows of the tables that are named as its fields are."""

    documents: pl.DataFrame
    sources: list[dict[str, object]]
    quarantine: list[dict[str, object]] = field(default_factory=list)
    blocks: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=BLOCKS))

    @property
    def status(self) -> str:
        """``ok``, ``partial`` or ``quarantined``, for the batch as a whole."""
        if not self.quarantine:
            return "ok"
        return "quarantined" if self.documents.is_empty() else "partial"


class Gathered:
    """Rows read so far, file by file."""

    def __init__(self, batch: str) -> None:
        self.batch = batch
        self.sources: list[dict[str, object]] = []
        self.quarantine: list[dict[str, object]] = []
        self._documents: list[pl.DataFrame] = []
        self._blocks: list[pl.DataFrame] = []
        self._rows: list[tuple[object, ...]] = []

    def add(self, source: str, identity: str, documents: Sequence[ReadDocument]) -> None:
        """Add the documents of a file."""
        if isinstance(documents, DocumentTable):
            self._end_rows()
            of_file = {"source": pl.lit(source), "identity": pl.lit(identity)}
            for part in documents.rows.iter_slices(_ROWS_AT_ONCE):
                self._take(part.with_columns(**of_file, pages=pl.lit(None, _READ["pages"])))
            return
        for d in documents:
            metadata = json.dumps(d.metadata, ensure_ascii=False, default=str, sort_keys=True)
            spans = tuple(zip(*d.blocks, strict=True)) or (None, None, None)
            pages = d.page_starts or None
            self._rows.append((source, identity, d.key, d.title, d.text, metadata, pages, *spans))

    def record(self, change: SourceChange, *, status: str, n_documents: int = 0) -> None:
        """Note what became of a file of the batch."""
        self.sources.append(
            {
                "batch": self.batch,
                "uri": change.uri,
                "action": change.action,
                "sha256": change.sha256,
                "n_bytes": change.n_bytes,
                "status": status,
                "n_documents": n_documents,
            }
        )

    def all(self) -> BatchDocuments:
        """Return what was read of all files."""
        self._end_rows()
        batch = pl.lit(self.batch).alias("batch")
        return BatchDocuments(
            pl.concat(self._documents, rechunk=False).with_columns(batch),
            self.sources,
            self.quarantine,
            pl.concat(self._blocks, rechunk=False).with_columns(batch),
        )

    def _end_rows(self) -> None:
        self._take(pl.DataFrame(self._rows, schema=_READ, orient="row"))
        self._rows.clear()

    def _take(self, rows: pl.DataFrame) -> None:
        """Take in rows of ``_READ`` as rows of ``DOCUMENTS`` and ``BLOCKS``, in their order."""
        newline = pl.lit("\n")
        contents = pl.concat_str("title", newline, "metadata", newline, "text")
        hashes = map(content_hash, rows.select(contents).to_series())
        names = rows.select("identity", "key").iter_rows()
        ids = [make_id("document", _join(*name)) for name in names]
        uri = pl.concat_str("source", pl.lit("#"), "key")
        documents = rows.select(
            pl.Series("id", ids, dtype=pl.String),
            pl.when(pl.col("key") == "").then("source").otherwise(uri).alias("uri"),
            "source",
            "title",
            pl.Series("content_hash", hashes, dtype=pl.String),
            pl.col("text").str.len_chars().cast(pl.Int64).alias("n_chars"),
            "metadata",
            "text",
            page_starts="pages",
        )
        spans = {"start_char": "starts", "end_char": "ends", "kind": "kinds"}
        blocks = rows.select(document_id=documents["id"], **spans).explode(*spans)
        self._documents.append(documents)
        self._blocks.append(blocks.drop_nulls("kind"))


def reading_options(settings: Settings) -> ReadingOptions:
    """Return the reader's options as configured."""
    options = settings.input
    return ReadingOptions(
        max_file_bytes=options.max_file_bytes,
        text_columns=options.text_columns,
        title_columns=options.title_columns,
        id_columns=options.id_columns,
        encoding=options.encoding or None,
        ocr=ocr_options(settings) if options.ocr else None,
    )


def ocr_options(settings: Settings) -> OcrOptions:
    """Return how scanned pages are recognised, as configured."""
    options = settings.input
    cache = Home(settings.home_path).ocr
    return OcrOptions(cache, options.ocr_languages, options.ocr_seconds)


def readers(settings: Settings) -> Readers:
    """Return what reads files within the limits of the settings."""
    limits = ReadingLimits(settings.input.reader_mb, settings.input.reader_seconds)
    return Readers(reading_options(settings), limits, Home(settings.home_path).reader_deaths)


def read_batch(batch: Batch, log: BatchLog, files: Readers) -> BatchDocuments:
    """Read the files of a batch, leaving out those a later batch has taken over.

    A document of several names is read by the first. A file that cannot be read is quarantined
    with its reason; the rest is kept.
    """
    sources, firsts = log.sources(), log.first_names()
    result = Gathered(batch.key)
    own = {c.uri for c in batch.changes if c.uri in sources and sources[c.uri].batch == batch.key}
    readable = [c for c in batch.changes if c.uri in own and firsts[c.uri] == c.uri]
    read = _read(readable, sources, log, files)
    outcome = {c.uri: pair for c, pair in zip(readable, read, strict=True)}
    for change in batch.changes:
        if change.action == "remove" and change.uri not in sources:
            result.record(change, status="removed")
        elif change.uri in outcome:
            _record_read(change, outcome.pop(change.uri), result)
        else:
            is_name = change.uri in own
            result.record(change, status="duplicate" if is_name else "superseded")
        if change.origin is not None:
            gone = SourceChange(change.origin, "rename", None, 0, 0)
            is_back = change.origin in sources
            result.record(gone, status="superseded" if is_back else "removed")
    return result.all()


def read_changes(
    changes: Sequence[SourceChange],
    sources: Mapping[str, Source],
    log: BatchLog,
    settings: Settings,
) -> BatchDocuments:
    """Read the files of some changes, whether or not a batch holds them, of these sources."""
    result = Gathered("")
    with readers(settings) as files:
        read = _read(changes, sources, log, files)
        for change, outcome in zip(changes, read, strict=True):
            _record_read(change, outcome, result)
    return result.all()


def stage_documents(con: duckdb.DuckDBPyConnection, batch: Batch, read: BatchDocuments) -> None:
    """Stage what was read of a batch, and write down its manifest. Call it in a transaction."""
    for table in ("documents", "blocks"):
        con.execute(f"DELETE FROM staging.{table} WHERE batch = ?", [batch.key])
    documents = read.documents.with_columns(language=_languages(read.documents))
    with streamed(con, "read_documents", documents):
        con.execute(
            """INSERT INTO staging.documents BY NAME
               SELECT *, row_number() OVER (ORDER BY uri) - 1 AS human_readable_id
               FROM read_documents"""
        )
    insert(con, "staging.blocks", read.blocks)
    _store_manifest(con, batch, read)


def _languages(documents: pl.DataFrame) -> pl.Series:
    """Return the language of each document; of a file that holds very many, that of the first."""
    several = documents["source"].value_counts(name="n").filter(pl.col("n") > _MOST_LANGUAGES)
    of_source = {
        source: language_of_document(documents.filter(source=source)["text"][0])
        for source in several["source"]
    }
    begins = documents.select("source", pl.col("text").str.slice(0, READ_CHARS)).iter_rows()
    told = [of_source.get(s) if s in of_source else language_of_document(t) for s, t in begins]
    return pl.Series("language", told, dtype=pl.String)


def _read(
    changes: Sequence[SourceChange], sources: Mapping[str, Source], log: BatchLog, files: Readers
) -> Iterator[tuple[ReadResult, str | None]]:
    """Yield, in order, what :func:`read_within` does of each file; some are read side by side."""
    roots = {sources[change.uri].root for change in changes}
    bounds = {root: log.bounds_of(root) for root in roots}

    def read(first: int) -> list[tuple[ReadResult, str | None]]:
        uris = [change.uri for change in changes[first : first + _FILES_AT_ONCE]]
        return [read_within(log.path_of(u), bounds[sources[u].root], files) for u in uris]

    with ThreadPoolExecutor(_READERS) as pool:
        for outcomes in pool.map(read, range(0, len(changes), _FILES_AT_ONCE)):
            yield from outcomes


def read_within(path: Path, folder: Path | None, files: Readers) -> tuple[ReadResult, str | None]:
    """Read a file that lies in a folder (None: anywhere).

    Returns the hash of exactly the bytes that were read, too, None if they were not.
    """
    most = files.options.max_file_bytes
    try:
        with open_source(path, folder) as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > most else file.read(most + 1)
    except (OSError, ValueError) as error:
        return refused(why_not_opened(error)), None
    if size > most:
        return refused(too_large(size, files.options)), None
    sha256 = hashlib.sha256(data).hexdigest()
    day = files.slack.day(path, lambda beside: read_within(Path(beside), folder, files)[0])
    return files.read(shown_path(path), data, sha256, day), sha256


def _record_read(
    change: SourceChange, outcome: tuple[ReadResult, str | None], into: Gathered
) -> None:
    read, sha256 = outcome
    into.add(change.uri, change.identity or change.uri, read.documents)
    into.quarantine.extend(
        {"batch": into.batch, "uri": _join(change.uri, bad.key), "reason": bad.reason}
        for bad in read.quarantined
    )
    status = "ok" if read.documents else "quarantined"
    change = replace(change, sha256=sha256)
    into.record(change, status=status, n_documents=len(read.documents))


def _join(source: str, key: str) -> str:
    return f"{source}#{key}" if key else source


def _store_manifest(con: duckdb.DuckDBPyConnection, batch: Batch, read: BatchDocuments) -> None:
    for table in ("batches", "batch_sources", "quarantine"):
        con.execute(f"DELETE FROM {table} WHERE batch = ?", [batch.key])
    counts = batch.counts
    con.execute(
        "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            batch.key,
            batch.created_at,
            batch.root,
            read.status,
            counts["add"] + counts["rename"],
            counts["change"],
            counts["remove"] + counts["rename"],
            len({str(q["uri"]) for q in read.quarantine}),
        ],
    )
    insert(con, "batch_sources", pl.DataFrame(read.sources, schema=BATCH_SOURCES))
    insert(con, "quarantine", pl.DataFrame(read.quarantine, schema=QUARANTINE))
