"""Ingestion: the stages that run once per batch (documents, chunks, extractions) and their ledger.

Each stage reads, computes with no connection open, and writes its rows and its line in the ledger
in one transaction. A stage already done for a batch under the same configuration does nothing, so
a run that was killed is simply run again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import Settings, fingerprint
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.extractors import Extracted, extract, extraction_version
from graphrag_pipeline.ingest import documents
from graphrag_pipeline.ingest.chunking import CHUNKER_VERSION, chunk_documents
from graphrag_pipeline.ingest.mention_files import MentionFiles, mention_files
from graphrag_pipeline.ingest.reading.extras import missing_libraries
from graphrag_pipeline.ingest.reading.formats import reader_versions
from graphrag_pipeline.ingest.reading.ocr import tesseract_version
from graphrag_pipeline.ingest.staging import DERIVED, of_batch
from graphrag_pipeline.ingest.to_extract import Part, chunks_to_extract, parts_of
from graphrag_pipeline.store.batches import Batch, BatchLog
from graphrag_pipeline.store.frames import streamed, value_of
from graphrag_pipeline.store.index_store import IndexStore, insert

STAGES = ("documents", "chunks", "extractions")
IMPORTED = "import"
"""The version, in ``batch_stages``, of what was imported: done under whatever settings."""
READ_AGAIN = (
    "the reader of this program has changed",
    "settings of [input] have changed",
    "other libraries, or another tesseract, are installed",
    "the chunker of this program has changed",
    "settings of [chunks] have changed",
)
"""What it means where a part of the version of the stage ``chunks`` has changed, in order.

The stage ``documents`` has the first three parts.
"""
_STAGE_OUTCOMES = """
INSERT INTO staging.extractions BY NAME
SELECT o.*, coalesce(e.n, 0) AS n_entities, coalesce(r.n, 0) AS n_relationships
FROM outcomes o
LEFT JOIN (SELECT chunk_id, count(*) AS n FROM staging.entity_mentions
           WHERE batch = $batch GROUP BY chunk_id) e USING (chunk_id)
LEFT JOIN (SELECT chunk_id, count(*) AS n FROM staging.relationship_mentions
           WHERE batch = $batch GROUP BY chunk_id) r USING (chunk_id)
"""
_LIMITS = {"reader_mb", "reader_seconds"}
_STAGED_LATER = {
    "documents": ("chunks", *DERIVED),
    "chunks": DERIVED,
    "extractions": (),
}


@dataclass(frozen=True)
class StageResult:
    """The result of a stage for one batch: the time it took, and whether it was done before."""

    seconds: float
    done_before: bool = False


def stage_versions(settings: Settings, batch: Batch | None = None) -> dict[str, str]:
    """Return each stage's version: the code version and settings that shape its rows.

    Of the readers, only those of the files of a ``batch`` are part of it. The versions of documents
    and chunks have parts, divided by dots, that say what has changed (``READ_AGAIN``); that of
    extractions is one hash.
    """
    return _versions(settings, reader_versions(batch.endings if batch else None))


def _versions(settings: Settings, readers: str) -> dict[str, str]:
    input_settings = settings.input.model_dump(
        include={"max_file_mb", "encoding", "text_columns", "title_columns", "id_columns"}
    )
    ocr: tuple[object, ...] = ()
    # Limits as they are by default are not said: indexes made before there were any stay valid.
    limits = settings.input.model_dump(include=_LIMITS, exclude_defaults=True)
    installed = [*missing_libraries()]
    if settings.input.ocr:
        ocr = (settings.input.ocr_languages, settings.input.ocr_seconds)
        installed.append(tesseract_version())
    read = ".".join(
        (
            f"{documents.READER_VERSION}{readers}",
            fingerprint({**input_settings, **limits}, *ocr),
            fingerprint(*installed),
        )
    )
    cut = settings.chunks.model_dump(exclude={"prepend_metadata"})
    chunked = ".".join((read, CHUNKER_VERSION, fingerprint(cut)))
    extracted = fingerprint("extractions", chunked, extraction_version(settings))
    return {"documents": read, "chunks": chunked, "extractions": extracted}


def batch_versions(
    settings: Settings,
) -> Callable[[frozenset[str] | None], Mapping[str, str]]:
    """Return what gives :func:`stage_versions` of many batches by their ``endings``.

    It is made once for those alike.
    """
    versions: dict[str, Mapping[str, str]] = {}

    def version_of(endings: frozenset[str] | None) -> Mapping[str, str]:
        readers = reader_versions(endings)
        if readers not in versions:
            versions[readers] = _versions(settings, readers)
        return versions[readers]

    return version_of


def ingest_documents(store: IndexStore, log: BatchLog, settings: Settings, key: str) -> StageResult:
    """Read a batch's files into ``documents``; what cannot be read goes to ``quarantine``."""

    def work(line: _Line) -> None:
        with documents.readers(settings) as files:
            read = documents.read_batch(line.batch, log, files)
        with _ledger(store, line) as con:
            documents.stage_documents(con, line.batch, read)

    return _once(store, log, settings, key, "documents", work)


def ingest_chunks(store: IndexStore, log: BatchLog, settings: Settings, key: str) -> StageResult:
    """Cut a batch's documents into ``chunks``."""

    def work(line: _Line) -> None:
        with store.read() as con:
            texts = con.execute(
                f"SELECT id, text FROM ({of_batch('documents')}) ORDER BY human_readable_id",
                {"key": key},
            ).pl()
        chunks = chunk_documents(texts, settings.chunks)
        chunks = chunks.with_columns(batch=pl.lit(key))
        with _ledger(store, line) as con:
            stage_chunks(con, chunks, key)

    return _once(store, log, settings, key, "chunks", work)


def ingest_extractions(
    store: IndexStore, log: BatchLog, settings: Settings, key: str
) -> StageResult:
    """Find entities and relationships in a batch's chunks that have no extraction yet."""

    def work(line: _Line) -> None:
        version = extraction_version(settings)
        todo = _Todo(store, settings, key, version)
        extracted = todo.extracted()
        extractor = settings.extraction.extractor
        with (
            mention_files(settings.home_path, extracted.found, store.limits) as mentions,
            _ledger(store, line) as con,
        ):
            chunk_ids = todo.chunk_ids()
            stage_extraction(con, chunk_ids, mentions, extracted, extractor, version, key)

    return _once(store, log, settings, key, "extractions", work)


@dataclass
class _Todo:
    """The chunks of a batch without an extraction, read part by part."""

    store: IndexStore
    settings: Settings
    key: str
    version: str
    ids: list[pl.Series] = field(default_factory=list)

    def extracted(self) -> Extracted:
        """Return what is found in them; of several parts, each is read when the last is done."""
        with self.store.read() as con:
            parts = parts_of(con, self.settings, self.key)
        if len(parts) == 1:
            return self._extracted(parts[0])
        return Extracted(found for part in parts for found in self._extracted(part).found)

    def _extracted(self, part: Part) -> Extracted:
        with self.store.read() as con:
            chunks = chunks_to_extract(con, self.settings, self.key, self.version, part)
        self.ids.append(chunks["id"])
        return extract(chunks, self.settings, self.key)

    def chunk_ids(self) -> pl.Series:
        """Return the ids of those that were read."""
        return pl.concat(self.ids)


INGESTION: Mapping[str, Callable[[IndexStore, BatchLog, Settings, str], StageResult]] = {
    "documents": ingest_documents,
    "chunks": ingest_chunks,
    "extractions": ingest_extractions,
}
"""The stages of ingestion, in order; each takes in one batch, given by its key."""


def chunks_without_extraction(con: duckdb.DuckDBPyConnection, key: str) -> int:
    """Return how many of a batch's chunks have no extraction at all."""
    return value_of(
        con,
        f"""SELECT count(*) FROM ({of_batch("chunks")}) c ANTI JOIN (
                SELECT chunk_id FROM staging.extractions WHERE status <> 'failed' UNION ALL
                SELECT chunk_id FROM extractions WHERE status <> 'failed') e
            ON e.chunk_id = c.id""",
        {"key": key},
    )


def stage_extraction(
    con: duckdb.DuckDBPyConnection,
    chunk_ids: pl.Series,
    mentions: MentionFiles,
    extracted: Extracted,
    extractor: str,
    version: str,
    batch: str,
) -> None:
    """Stage the extraction of some of a batch's chunks. Call it in a transaction."""
    for table in DERIVED:
        con.execute(f"DELETE FROM staging.{table} WHERE batch = ?", [batch])
    mentions.stage(con, batch)
    outcomes = _all_ok(chunk_ids) if extracted.outcomes is None else extracted.outcomes
    outcomes = _with_attempts(con, outcomes, version).with_columns(
        extractor=pl.lit(extractor), version=pl.lit(version), batch=pl.lit(batch)
    )
    with streamed(con, "outcomes", outcomes):
        con.execute(_STAGE_OUTCOMES, {"batch": batch})
    if extracted.claims is not None:
        _stage_claims(con, extracted.claims.with_columns(batch=pl.lit(batch)))
    if extracted.names is not None:
        insert(
            con, "staging.chunk_names", _named(extracted.names).with_columns(batch=pl.lit(batch))
        )


def _named(names: pl.DataFrame) -> pl.DataFrame:
    """Give names the ids of the entities of their titles, each once in a chunk."""
    ids = [make_id("entity", key) if (key := normalize_title(t)) else None for t in names["title"]]
    identified = names.with_columns(entity_id=pl.Series(ids, dtype=pl.String)).drop_nulls()
    return identified.unique(["chunk_id", "entity_id"], keep="first", maintain_order=True)


def _all_ok(chunk_ids: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"chunk_id": chunk_ids}).with_columns(
        status=pl.lit("ok"),
        error=pl.lit(None, pl.String),
        transient=pl.lit(value=False),
        prompt_tokens=pl.lit(0),
        completion_tokens=pl.lit(0),
    )


def _with_attempts(
    con: duckdb.DuckDBPyConnection, outcomes: pl.DataFrame, version: str
) -> pl.DataFrame:
    """Count the attempts at each chunk under this version; an outage is none."""
    before = con.execute(
        """SELECT chunk_id, attempts AS before FROM extractions
           WHERE tried_version = ? AND status <> 'ok'""",
        [version],
    ).pl()
    tried = pl.col("before").fill_null(0) + (~pl.col("transient")).cast(pl.Int64)
    counted = outcomes.join(before, "chunk_id", "left", maintain_order="left")
    counted = counted.with_columns(attempts=tried, tried_version=pl.lit(version))
    return counted.drop("before", "transient")


def _stage_claims(con: duckdb.DuckDBPyConnection, claims: pl.DataFrame) -> None:
    subjects = claims["subject"].unique()
    keys = [normalize_title(subject) for subject in subjects]
    ids = pl.DataFrame(
        {"subject": subjects, "subject_id": [make_id("entity", key) for key in keys]},
        schema={"subject": pl.String, "subject_id": pl.String},
    )
    parts = ("chunk_id", "subject", "object", "type", "description")
    with_ids = claims.join(ids, "subject", maintain_order="left").with_columns(
        id=pl.Series(
            [make_id("claim", *map(str, row)) for row in claims.select(parts).iter_rows()],
            dtype=pl.String,
        )
    )
    unique = with_ids.unique("id", keep="first", maintain_order=True)
    insert(con, "staging.claims", unique.with_row_index("human_readable_id"))


def stage_chunks(con: duckdb.DuckDBPyConnection, chunks: pl.DataFrame, key: str) -> None:
    """Stage a batch's chunks: rows of ``CHUNKS`` and ``batch``. Call it in a transaction."""
    con.execute("DELETE FROM staging.chunks WHERE batch = ?", [key])
    with streamed(con, "new_chunks", chunks):
        con.execute(
            f"""INSERT INTO staging.chunks BY NAME
                SELECT n.*, row_number() OVER (ORDER BY d.human_readable_id, n.ordinal) - 1
                       AS human_readable_id
                FROM new_chunks n
                JOIN (SELECT id, human_readable_id FROM ({of_batch("documents")})) d
                ON d.id = n.document_id""",
            {"key": key},
        )


@dataclass(frozen=True)
class _Line:
    """A stage's line in ``batch_stages``, to be written when it is done."""

    batch: Batch
    stage: str
    version: str
    start: float


def _once(
    store: IndexStore,
    log: BatchLog,
    settings: Settings,
    key: str,
    stage: str,
    work: Callable[[_Line], None],
) -> StageResult:
    start = time.perf_counter()
    batch = log.get(key)
    version = stage_versions(settings, batch)[stage]
    with store.read() as con:
        row = con.execute(
            """SELECT 1 FROM batch_stages WHERE batch = ? AND stage = ? AND version IN (?, ?)
               AND (stage <> 'extractions' OR NOT EXISTS (
                   SELECT 1 FROM extractions WHERE batch = ? AND status <> 'ok'))""",
            [key, stage, version, IMPORTED, key],
        ).fetchone()
    if row:
        return StageResult(0.0, done_before=True)
    work(_Line(batch, stage, version, start))
    return StageResult(time.perf_counter() - start)


@contextlib.contextmanager
def _ledger(store: IndexStore, line: _Line) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a transaction that also writes the stage's line in ``batch_stages``."""
    key = line.batch.key
    with store.transaction() as con:
        yield con
        for outdated in STAGES[STAGES.index(line.stage) :]:
            con.execute("DELETE FROM batch_stages WHERE batch = ? AND stage = ?", [key, outdated])
        for table in _STAGED_LATER[line.stage]:
            con.execute(f"DELETE FROM staging.{table} WHERE batch = ?", [key])
        con.execute(
            "INSERT INTO batch_stages VALUES (?, ?, ?, ?, ?, true)",
            [key, line.stage, line.version, datetime.now(UTC), time.perf_counter() - line.start],
        )
