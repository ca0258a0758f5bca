"""Ingestion: documents, chunks and extractions, partitioned by document batch."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import dagster as dg

from graphrag_pipeline.assets.common import OWNERS, adorned
from graphrag_pipeline.assets.names import Names
from graphrag_pipeline.assets.stages import (
    AssetStage,
    StageOutcome,
    StageTable,
)
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.ingest.stages import StageResult, chunks_without_extraction
from graphrag_pipeline.ingest.staging import of_batch
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.releases.quality import batch_quality, quality_line
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.structures.structure import Check, Preview

# Dagster would say so three times in every process of the UI.
warnings.filterwarnings("ignore", "Parameter `backfill_policy`", dg.BetaWarning)

GROUP = "ingestion"
INBOX = dg.AssetKey("inbox")
WEB_PAGES = dg.AssetKey("web_pages")
DOCUMENTS = dg.AssetKey("documents")
CHUNKS = dg.AssetKey("chunks")
EXTRACTIONS = dg.AssetKey("extractions")

_DOCUMENT_FACTS = f"""
SELECT count(*) AS "dagster/partition_row_count", coalesce(sum(n_chars), 0)::BIGINT AS characters,
       max(n_chars) AS longest, median(n_chars) AS median_length,
       (SELECT count(*) FROM quarantine WHERE batch = $key) AS quarantined
FROM ({of_batch("documents")})
"""
_CHUNK_FACTS = f"""
SELECT count(*) AS "dagster/partition_row_count", coalesce(sum(n_tokens), 0)::BIGINT AS tokens,
       avg(n_tokens) AS tokens_per_chunk
FROM ({of_batch("chunks")})
"""
_EXTRACTION_FACTS = f"""
SELECT count(*) AS "dagster/partition_row_count", count(*) FILTER (status = 'failed') AS failed,
       (SELECT count(*) FROM ({of_batch("entity_mentions")})) AS entity_mentions,
       (SELECT count(*) FROM ({of_batch("relationship_mentions")})) AS relationship_mentions,
       count(*) FILTER (status = 'ok' AND n_entities = 0) AS without_entities
FROM ({of_batch("extractions")})
"""
_FIGURES = (
    *("entities_a_chunk", "relationships_a_chunk"),
    *("single", "cut", "copied", "doubled", "alike"),
)
_LONG_CELL = 240
_DOCUMENT_PREVIEW = f"""
SELECT title, n_chars AS characters, uri FROM ({of_batch("documents")}) ORDER BY uri LIMIT 8
"""
_CHUNK_PREVIEW = f"""
SELECT d.title AS document, c.ordinal AS chunk, c.n_tokens AS tokens, c.text
FROM ({of_batch("chunks")}) c JOIN ({of_batch("documents")}) d ON d.id = c.document_id
ORDER BY c.human_readable_id LIMIT 5
"""
_SAMPLES = f"""
SELECT d.title AS document, c.ordinal AS chunk, left(c.text, 120) || '…' AS begins,
       string_agg(m.title, ', ' ORDER BY m.start_char, m.title) AS found
FROM ({of_batch("chunks")}) c JOIN ({of_batch("documents")}) d ON d.id = c.document_id
LEFT JOIN (SELECT chunk_id, title, min(start_char) AS start_char
           FROM ({of_batch("entity_mentions")}) GROUP BY ALL) m ON m.chunk_id = c.id
GROUP BY c.id, d.title, c.ordinal, c.text ORDER BY hash(c.id) LIMIT 6
"""
_FAILURES = f"""
SELECT d.title AS document, c.ordinal AS chunk, e.error AS reason
FROM ({of_batch("extractions")}) e JOIN ({of_batch("chunks")}) c ON c.id = e.chunk_id
JOIN ({of_batch("documents")}) d ON d.id = c.document_id
WHERE e.status = 'failed' ORDER BY d.title, c.ordinal LIMIT 10
"""
_MOST_FOUND = f"""
SELECT title, type, count(*) AS mentions FROM ({of_batch("entity_mentions")}) GROUP BY ALL
ORDER BY mentions DESC, title LIMIT 15
"""
_QUARANTINED = "SELECT reason, uri FROM quarantine WHERE batch = $key ORDER BY uri LIMIT 20"
_ALL_QUARANTINED = """
SELECT reason, uri FROM quarantine WHERE list_contains($keys, batch) ORDER BY uri LIMIT 20
"""
_N_QUARANTINED = "SELECT count(*) FROM quarantine WHERE list_contains($keys, batch)"


def build_inbox(settings: Settings, names: Names) -> dg.AssetSpec:
    """Return what all documents come from: a folder, and the pages of the web that were fetched."""
    return dg.AssetSpec(
        names.key(INBOX),
        deps=[names.key(WEB_PAGES)] if settings.input.urls else [],
        group_name=names.name(GROUP),
        kinds={"file"},
        owners=OWNERS,
        description="The folder of source documents, watched by the inbox sensor.",
        metadata={"folder": dg.MetadataValue.path(str(settings.input_path))},
    )


def read_documents(index: IndexResource, batch: str) -> StageOutcome:
    """Read the documents of a batch."""
    return _outcome(ingest(index.workspace, "documents", batch))


def cut_chunks(index: IndexResource, batch: str) -> StageOutcome:
    """Cut the documents of a batch into chunks."""
    return _outcome(ingest(index.workspace, "chunks", batch))


def extract(index: IndexResource, batch: str) -> StageOutcome:
    """Extract from the chunks of a batch; those without any extraction have failed."""
    outcome = _outcome(ingest(index.workspace, "extractions", batch))
    with index.workspace.store.read() as con:
        n_failed = chunks_without_extraction(con, batch)
    quality = adorned("quality", lambda: _quality(index, batch))
    index.workspace.hand_over()
    return replace(outcome, facts={**outcome.facts, **quality}, failed=n_failed)


def _quality(index: IndexResource, batch: str) -> dict[str, Any]:
    """Return the figures of what a model extracted from a batch; none where none was asked."""
    with index.workspace.store.read() as con:
        quality = batch_quality(con, of_batch, batch)
    if quality is None:
        return {}
    figures = quality.figures()
    line = quality_line(figures)
    return {"quality": line, **{name: figures[name] for name in _FIGURES}}


def _outcome(result: StageResult) -> StageOutcome:
    return StageOutcome({"seconds": round(result.seconds, 3), "done_before": result.done_before})


documents = AssetStage(
    name="documents",
    work=read_documents,
    by_batch=True,
    tables=[
        StageTable(
            key=DOCUMENTS,
            about="Source documents, read and cleaned; files that cannot be read are quarantined.",
            group=GROUP,
            made_from=[INBOX],
            table="documents",
            facts=_DOCUMENT_FACTS,
            previews={
                "quarantined_files": Preview(_QUARANTINED, _LONG_CELL, if_any=True),
                "preview": Preview(_DOCUMENT_PREVIEW),
            },
            checks=[
                Check(
                    "nothing_quarantined",
                    "Warns of files that could not be read; the rest is indexed.",
                    _N_QUARANTINED,
                    "of the files could not be read; the table quarantine says why",
                    warns=True,
                    shows=_ALL_QUARANTINED,
                )
            ],
        )
    ],
)
chunks = AssetStage(
    name="chunks",
    work=cut_chunks,
    by_batch=True,
    tables=[
        StageTable(
            key=CHUNKS,
            about="Text units: spans of documents of about equal token length.",
            group=GROUP,
            made_from=[DOCUMENTS],
            table="chunks",
            facts=_CHUNK_FACTS,
            previews={"preview": Preview(_CHUNK_PREVIEW)},
        )
    ],
)
extractions = AssetStage(
    name="extractions",
    work=extract,
    by_batch=True,
    tables=[
        StageTable(
            key=EXTRACTIONS,
            about="Entities and relationships found in each chunk, before merging.",
            group=GROUP,
            made_from=[CHUNKS],
            table="extractions",
            facts=_EXTRACTION_FACTS,
            previews={
                "failures": Preview(_FAILURES, _LONG_CELL, if_any=True),
                "most_found": Preview(_MOST_FOUND),
                "preview": Preview(_SAMPLES, _LONG_CELL),
            },
            checks=[
                Check(
                    "every_chunk_extracted",
                    "Warns of chunks whose extraction failed; the next run tries them again.",
                    "",
                    "chunks have no extraction yet; the next run tries them again",
                    warns=True,
                )
            ],
        )
    ],
)
