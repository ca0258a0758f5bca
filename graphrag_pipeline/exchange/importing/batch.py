"""Common parts of every import: one batch that is staged whole and never read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars as pl

from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.extraction.extractors import Extracted
from graphrag_pipeline.extraction.mentions import Extraction
from graphrag_pipeline.extraction.rules.nlp import chunk_names
from graphrag_pipeline.ingest.chunking import CHUNKS
from graphrag_pipeline.ingest.documents import Gathered, stage_documents
from graphrag_pipeline.ingest.mention_files import mention_files
from graphrag_pipeline.ingest.reading import ReadDocument
from graphrag_pipeline.ingest.stages import IMPORTED, STAGES, stage_chunks, stage_extraction
from graphrag_pipeline.store.batches import Batch, SourceChange, make_batch
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.index_store import assign_identifiers
from graphrag_pipeline.store.workspace import Workspace


@dataclass(frozen=True)
class ImportResult:
    """The result of an import.

    ``batch`` is the batch it is in; ``counts`` says how many of what were brought or left out, and
    is empty when the same files had been imported before; ``warnings`` are for a person to read.
    """

    batch: str
    counts: Mapping[str, int]
    warnings: tuple[str, ...]
    seconds: float
    done_before: bool = False


@dataclass(frozen=True)
class ImportedDocument:
    """A document and its passages: spans of ``text`` in characters, in order."""

    uri: str
    title: str
    text: str
    spans: tuple[tuple[int, int], ...]
    metadata: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id of the row in ``documents``."""
        return make_id("document", self.uri)

    @property
    def chunk_ids(self) -> list[str]:
        """The ids of the rows in ``chunks``, by span."""
        return [
            make_id("chunk", self.id, start, end, content_hash(self.text[start:end]))
            for start, end in self.spans
        ]


def import_root(label: str) -> str:
    """Return the root of an import's batches: no folder's name, so no scan removes its sources."""
    return f"import:{label}"


def unique_uris(label: str, titles: Iterable[str]) -> list[str]:
    """Return ``import:<label>/<title>`` for each title; repeated titles get a number."""
    uris: dict[str, None] = {}
    repeated: dict[str, int] = {}
    for title in titles:
        uri = f"import:{label}/{title}"
        while uri in uris:
            repeated[title] = repeated.get(title, 1) + 1
            uri = f"import:{label}/{title} ({repeated[title]})"
        uris[uri] = None
    return list(uris)


def document_of_passages(
    uri: str, title: str, passages: Sequence[str], metadata: Mapping[str, Any]
) -> ImportedDocument:
    """Make a document whose text is these passages, one paragraph each."""
    spans = []
    start = 0
    for passage in passages:
        spans.append((start, start + len(passage)))
        start += len(passage) + 2
    return ImportedDocument(uri, title, "\n\n".join(passages), tuple(spans), metadata)


def chunk_frame(documents: Iterable[ImportedDocument], encoding: str) -> pl.DataFrame:
    """Return the documents' passages as rows of ``CHUNKS``."""
    rows = [
        (chunk, document.id, ordinal, start, end, document.text[start:end])
        for document in documents
        for ordinal, (chunk, (start, end)) in enumerate(
            zip(document.chunk_ids, document.spans, strict=True)
        )
    ]
    schema = {name: dtype for name, dtype in CHUNKS.items() if name != "n_tokens"}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    counts = count_tokens(frame["text"].to_list(), encoding)
    return frame.with_columns(n_tokens=pl.Series(counts, dtype=pl.Int64)).select(list(CHUNKS))


def stage_import(
    con: duckdb.DuckDBPyConnection,
    workspace: Workspace,
    label: str,
    documents: Sequence[ImportedDocument],
    chunks: pl.DataFrame,
    extracted: pl.Series,
    extraction: Extraction,
) -> Batch:
    """Stage an import as a batch, in place of what was imported under this label before.

    ``extracted`` are the ids of the chunks that the ``extraction`` tells of: the import's own, or
    others of the index. Call it in a transaction of the workspace. The batch counts as done under
    whatever settings.
    """
    start = datetime.now(UTC)
    batch = make_batch(import_root(label), list(_changes(con, label, documents)))
    read = Gathered(batch.key)
    for document in documents:
        whole = ReadDocument("", document.title, document.text, dict(document.metadata))
        read.add(document.uri, document.uri, [whole])
    for change in batch.changes:
        is_removal = change.action == "remove"
        status = "removed" if is_removal else "ok"
        read.record(change, status=status, n_documents=int(not is_removal))
    for kind, ids in (
        ("document", [document.id for document in documents]),
        ("chunk", chunks["id"]),
    ):
        number(con, kind, [(id, place) for place, id in enumerate(ids)])
    stage_documents(con, batch, read.all())
    stage_chunks(con, chunks.with_columns(batch=pl.lit(batch.key)), batch.key)
    texts = con.execute(
        """SELECT id, text FROM (FROM staging.chunks UNION BY NAME FROM chunks)
           WHERE id IN (SELECT unnest($ids::JSON::VARCHAR[]))""",
        {"ids": json.dumps(extracted.to_list())},
    ).pl()
    outcome = Extracted((), names=chunk_names(texts.unique("id")))
    home, limits = workspace.settings.home_path, workspace.store.limits
    with mention_files(home, [extraction], limits) as mentions:
        stage_extraction(con, extracted, mentions, outcome, IMPORTED, IMPORTED, batch.key)
    seconds = (datetime.now(UTC) - start).total_seconds()
    con.executemany(
        "INSERT INTO batch_stages VALUES (?, ?, ?, ?, ?, true)",
        [[batch.key, stage, IMPORTED, datetime.now(UTC), seconds] for stage in STAGES],
    )
    return batch


def save_manifest(workspace: Workspace, key: str) -> None:
    """Write the manifest of a batch that is in the index, unless it is there."""
    log = workspace.batches
    if (log.folder / f"{key}.json").is_file():
        return
    with workspace.store.read() as con:
        facts = con.execute("SELECT created_at, root FROM batches WHERE batch = ?", [key])
        created_at, root = facts.fetchall()[0]
        sources = con.execute(
            "SELECT uri, action, sha256, n_bytes FROM batch_sources WHERE batch = ? ORDER BY uri",
            [key],
        ).fetchall()
    changes = tuple(
        SourceChange(uri, action, sha256, n_bytes, 0) for uri, action, sha256, n_bytes in sources
    )
    log.save(Batch(key, created_at, root, changes))


def number(con: duckdb.DuckDBPyConnection, kind: str, pairs: Sequence[tuple[str, int]]) -> None:
    """Give ids the numbers they had elsewhere.

    Where things of this kind have numbers already, or those given are not unique, the next free
    ones are given in that order.
    """
    frame = (
        pl.DataFrame(pairs, schema={"id": pl.String, "n": pl.Int64}, orient="row")
        .sort("n", maintain_order=True)
        .unique("id", keep="first", maintain_order=True)
    )
    row = con.execute("SELECT count(*) FROM identifiers WHERE kind = ?", [kind]).fetchone()
    put_rows(con, "numbered", frame)
    if row == (0,) and frame["n"].is_unique().all():
        con.execute("INSERT INTO identifiers SELECT ?, id, n FROM numbered", [kind])
    else:
        assign_identifiers(con, kind, "SELECT id FROM numbered ORDER BY n")
    drop_rows(con, "numbered")


def _changes(
    con: duckdb.DuckDBPyConnection, label: str, documents: Sequence[ImportedDocument]
) -> Iterator[SourceChange]:
    before = {
        uri
        for (uri,) in con.execute(
            """SELECT source FROM (FROM documents UNION ALL BY NAME FROM staging.documents)
               SEMI JOIN (SELECT batch FROM batches WHERE root = ?) USING (batch)""",
            [import_root(label)],
        ).fetchall()
    }
    for document in documents:
        action = "change" if document.uri in before else "add"
        n_bytes = len(document.text.encode())
        yield SourceChange(document.uri, action, content_hash(document.text), n_bytes, 0)
    for uri in sorted(before - {document.uri for document in documents}):
        yield SourceChange(uri, "remove", None, 0, 0)
