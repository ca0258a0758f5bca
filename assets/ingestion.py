"""Ingestion: documents, chunks and extractions, partitioned by document batch."""

import warnings
from collections.abc import Callable

import dagster as dg
import duckdb

from graphrag_pipeline.assets.common import (
    INDEX_POOL,
    OWNERS,
    column_schema,
    facts,
    markdown_table,
    stage,
    storage,
    warning,
)
from graphrag_pipeline.ingest import stages as ingest
from graphrag_pipeline.ingest.stages import StageResult
from graphrag_pipeline.ingest.staging import of_batch
from graphrag_pipeline.resources import IndexResource

# Dagster would say so three times in every process of the UI.
warnings.filterwarnings("ignore", "Parameter `backfill_policy`", dg.BetaWarning)

BATCHES = dg.DynamicPartitionsDefinition(name="document_batch")
GROUP = "ingestion"

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
_QUARANTINED = "SELECT uri, reason FROM quarantine WHERE batch = $key ORDER BY uri LIMIT 20"
_N_QUARANTINED = "SELECT count(*) FROM quarantine WHERE list_contains($keys, batch)"

inbox = dg.AssetSpec(
    "inbox",
    group_name=GROUP,
    kinds={"file"},
    owners=OWNERS,
    description="The folder of source documents, watched by the inbox sensor.",
)


@dg.asset(
    deps=[inbox],
    partitions_def=BATCHES,
    backfill_policy=dg.BackfillPolicy.single_run(),
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("documents"),
    check_specs=[
        dg.AssetCheckSpec(
            "nothing_quarantined",
            asset="documents",
            description="Warns of files that could not be read; the rest is indexed.",
        )
    ],
)
def documents(context: dg.AssetExecutionContext, index: IndexResource) -> dg.MaterializeResult:
    """Source documents, read and cleaned; files that cannot be read are quarantined."""

    def work(key: str) -> StageResult:
        return ingest.ingest_documents(index.store, index.log, index.settings, key)

    def metadata(con: duckdb.DuckDBPyConnection, key: dict[str, str]) -> dict[str, object]:
        found = facts(con, _DOCUMENT_FACTS, key)
        if found["quarantined"]:
            found["quarantined_files"] = markdown_table(con, _QUARANTINED, key)
        return {**found, "preview": markdown_table(con, _DOCUMENT_PREVIEW, key)}

    _each_batch(context, index, work, metadata)
    with index.get_connection() as con:
        row = con.execute(_N_QUARANTINED, {"keys": list(context.partition_keys)}).fetchone()
    what = "could not be read; the metadata and the table quarantine say why"
    number = row[0] if row else 0
    return dg.MaterializeResult(
        check_results=[warning("documents", "nothing_quarantined", number, what)]
    )


@dg.asset(
    deps=[documents],
    partitions_def=BATCHES,
    backfill_policy=dg.BackfillPolicy.single_run(),
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("chunks"),
)
def chunks(context: dg.AssetExecutionContext, index: IndexResource) -> None:
    """Text units: spans of documents of about equal token length."""

    def work(key: str) -> StageResult:
        return ingest.ingest_chunks(index.store, index.settings, key)

    def metadata(con: duckdb.DuckDBPyConnection, key: dict[str, str]) -> dict[str, object]:
        return {
            **facts(con, _CHUNK_FACTS, key),
            "preview": markdown_table(con, _CHUNK_PREVIEW, key),
        }

    _each_batch(context, index, work, metadata)


@dg.asset(
    deps=[chunks],
    partitions_def=BATCHES,
    backfill_policy=dg.BackfillPolicy.single_run(),
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata=storage("extractions"),
    check_specs=[
        dg.AssetCheckSpec(
            "every_chunk_extracted",
            asset="extractions",
            description="Warns of chunks whose extraction failed; the next run tries them again.",
        )
    ],
)
def extractions(context: dg.AssetExecutionContext, index: IndexResource) -> dg.MaterializeResult:
    """Entities and relationships found in each chunk, before merging."""

    def work(key: str) -> StageResult:
        return ingest.ingest_extractions(index.store, index.settings, key)

    def metadata(con: duckdb.DuckDBPyConnection, key: dict[str, str]) -> dict[str, object]:
        found = facts(con, _EXTRACTION_FACTS, key)
        if found["failed"]:
            found["failures"] = markdown_table(con, _FAILURES, key, _LONG_CELL)
        return {
            **found,
            "most_found": markdown_table(con, _MOST_FOUND, key),
            "preview": markdown_table(con, _SAMPLES, key, _LONG_CELL),
        }

    _each_batch(context, index, work, metadata)
    with index.get_connection() as con:
        missing = sum(ingest.chunks_without_extraction(con, key) for key in context.partition_keys)
    what = "chunks have no extraction yet; the next run tries them again"
    return dg.MaterializeResult(
        check_results=[warning("extractions", "every_chunk_extracted", missing, what)]
    )


def _each_batch(
    context: dg.AssetExecutionContext,
    index: IndexResource,
    work: Callable[[str], StageResult],
    metadata: Callable[[duckdb.DuckDBPyConnection, dict[str, str]], dict[str, object]],
) -> None:
    """Do the work of a stage batch by batch; each partition is told what is its own."""
    table = context.asset_key.path[-1]
    keys = sorted(context.partition_keys)
    for number, key in enumerate(keys):
        with stage(table, number, len(keys)), index.spending() as spent:
            done = work(key)
        with index.get_connection() as con:
            found = {**metadata(con, {"key": key}), **column_schema(con, table)}
        found |= {"seconds": round(done.seconds, 3), "done_before": done.done_before}
        found |= spent.metadata
        context.add_asset_metadata(found, partition_key=key)
