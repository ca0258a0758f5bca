"""A document of an index as an index of its own: with its chunks and all that was extracted.

Nothing is read, cut or extracted again, so nothing is paid again, whatever the extraction came
from. Ids of documents and chunks are those of the whole.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.exchange.importing.batch import import_root, number, save_manifest
from graphrag_pipeline.ingest.chunking import CHUNKS
from graphrag_pipeline.ingest.documents import DOCUMENTS, BatchDocuments, stage_documents
from graphrag_pipeline.ingest.stages import IMPORTED, STAGES, stage_chunks
from graphrag_pipeline.ingest.staging import DERIVED
from graphrag_pipeline.store.batches import Batch, SourceChange, make_batch
from graphrag_pipeline.store.index_store import connect_published, insert
from graphrag_pipeline.store.workspace import Workspace

_LABEL = "part"
_OF_DOCUMENT = "SELECT * FROM {} WHERE document_id = ?"
_OF_CHUNKS = "SELECT * FROM {} WHERE chunk_id IN (SELECT id FROM chunks WHERE document_id = ?)"


def stage_part(workspace: Workspace, release_file: Path, document: str) -> str:
    """Stage a document of a release, by id, unless it is there; the next run takes it in.

    Returns the key of its batch. Raises InputError where the release has no such document.
    """
    with workspace.store.read() as con:
        known = con.execute("SELECT batch FROM batches ORDER BY batch").fetchall()
    key = known[0][0] if known else _stage(workspace, release_file, document)
    save_manifest(workspace, key)
    return key


def _stage(workspace: Workspace, release_file: Path, document: str) -> str:
    release = connect_published(release_file)
    try:
        rows = release.execute("SELECT * FROM documents WHERE id = ?", [document]).pl()
        if rows.is_empty():
            raise InputError(f"there is no document {document} in {release_file}")
        of_document = {
            table: release.execute(_OF_DOCUMENT.format(table), [document]).pl()
            for table in ("blocks", "chunks")
        }
        derived = {
            table: release.execute(_OF_CHUNKS.format(table), [document]).pl() for table in DERIVED
        }
    finally:
        release.close()
    return _write(workspace, rows, of_document["blocks"], of_document["chunks"], derived)


def _write(
    workspace: Workspace,
    documents: pl.DataFrame,
    blocks: pl.DataFrame,
    chunks: pl.DataFrame,
    derived: dict[str, pl.DataFrame],
) -> str:
    start = datetime.now(UTC)
    batch = _batch_of(documents)
    own = pl.lit(batch.key).alias("batch")
    read = BatchDocuments(
        documents.with_columns(own).select(list(DOCUMENTS)),
        [
            {
                "batch": batch.key, "uri": change.uri, "action": change.action,
                "sha256": change.sha256, "n_bytes": change.n_bytes, "status": "ok",
                "n_documents": 1,
            }
            for change in batch.changes
        ],
        blocks=blocks.with_columns(own),
    )  # fmt: skip
    with workspace.store.transaction() as con:
        for kind, rows in (("document", documents), ("chunk", chunks)):
            number(con, kind, list(rows.select("id", "human_readable_id").iter_rows()))
        stage_documents(con, batch, read)
        columns = [name for name in CHUNKS if name != "batch"]
        stage_chunks(con, chunks.select(*columns, own), batch.key)
        for table, rows in derived.items():
            insert(con, f"staging.{table}", rows.with_columns(own))
        seconds = (datetime.now(UTC) - start).total_seconds()
        con.executemany(
            "INSERT INTO batch_stages VALUES (?, ?, ?, ?, ?, true)",
            [[batch.key, stage, IMPORTED, datetime.now(UTC), seconds] for stage in STAGES],
        )
    return batch.key


def _batch_of(documents: pl.DataFrame) -> Batch:
    (row,) = documents.select("source", "content_hash", "n_chars").rows()
    return make_batch(import_root(_LABEL), [SourceChange(row[0], "add", row[1], row[2], 0)])
