"""Ingestion: documents, chunks and extractions, partitioned by document batch."""

from collections.abc import Callable

import dagster as dg

from assets.common import INDEX_POOL, OWNERS, column_schema, markdown_table, storage
from graphrag_pipeline import ingest, progress
from graphrag_pipeline.config import load_settings
from graphrag_pipeline.ingest import StageResult
from graphrag_pipeline.staging import of_batch
from resources import IndexResource

BATCHES = dg.DynamicPartitionsDefinition(name="document_batch")
GROUP = "ingestion"
_VERSIONS = ingest.stage_versions(load_settings())

_DOCUMENT_PREVIEW = "SELECT title, uri, n_chars FROM ({rows}) ORDER BY uri LIMIT 10"
_CHUNK_PREVIEW = "SELECT ordinal, n_tokens, text FROM ({rows}) ORDER BY human_readable_id LIMIT 5"
_MENTION_PREVIEW = """
SELECT title, type, count(*) AS mentions FROM ({rows}) GROUP BY ALL
ORDER BY mentions DESC, title LIMIT 15
"""
_QUARANTINE_PREVIEW = "SELECT uri, reason FROM quarantine WHERE batch = $key LIMIT 20"

inbox = dg.AssetSpec(
    "inbox",
    group_name=GROUP,
    kinds={"file"},
    owners=OWNERS,
    description="The folder of source documents, looked at by the inbox sensor and by `index`.",
)


@dg.asset(
    deps=[inbox],
    partitions_def=BATCHES,
    backfill_policy=dg.BackfillPolicy.single_run(),
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    code_version=_VERSIONS["documents"],
    metadata=storage("documents"),
    check_specs=[dg.AssetCheckSpec("nothing_quarantined", asset="documents")],
)
def documents(context: dg.AssetExecutionContext, index: IndexResource) -> dg.MaterializeResult:
    """Source documents, read and cleaned; files that cannot be read are quarantined."""
    done = _per_batch(
        context,
        "documents",
        lambda key: ingest.ingest_documents(index.store, index.log, index.settings, key),
    )
    metadata = _metadata(index, context.partition_keys, "documents", _DOCUMENT_PREVIEW, done)
    with index.get_connection() as con:
        bad = con.execute(
            "SELECT count(*) FROM quarantine WHERE list_contains($keys, batch)",
            {"keys": list(context.partition_keys)},
        ).fetchone()
        if bad and bad[0]:
            con.execute("SET VARIABLE batch = ?", [context.partition_keys[-1]])
            metadata["quarantined"] = markdown_table(
                con, _QUARANTINE_PREVIEW.replace("$key", "getvariable('batch')")
            )
    warning = dg.AssetCheckResult(
        check_name="nothing_quarantined",
        passed=not (bad and bad[0]),
        severity=dg.AssetCheckSeverity.WARN,
        description="see the table quarantine for each file's reason",
        metadata={"quarantined": bad[0] if bad else 0},
    )
    return dg.MaterializeResult(metadata=metadata, check_results=[warning])


@dg.asset(
    deps=[documents],
    partitions_def=BATCHES,
    backfill_policy=dg.BackfillPolicy.single_run(),
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    code_version=_VERSIONS["chunks"],
    metadata=storage("chunks"),
)
def chunks(context: dg.AssetExecutionContext, index: IndexResource) -> dg.MaterializeResult:
    """Text units: spans of documents of about equal token length."""
    done = _per_batch(
        context, "chunks", lambda key: ingest.ingest_chunks(index.store, index.settings, key)
    )
    return dg.MaterializeResult(
        metadata=_metadata(index, context.partition_keys, "chunks", _CHUNK_PREVIEW, done)
    )


@dg.asset(
    deps=[chunks],
    partitions_def=BATCHES,
    backfill_policy=dg.BackfillPolicy.single_run(),
    group_name=GROUP,
    kinds={"python", "duckdb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    code_version=_VERSIONS["extractions"],
    metadata=storage("extractions"),
    check_specs=[dg.AssetCheckSpec("every_chunk_extracted", asset="extractions")],
)
def extractions(context: dg.AssetExecutionContext, index: IndexResource) -> dg.MaterializeResult:
    """Entities and relationships found in each chunk, before merging."""
    done = _per_batch(
        context,
        "extractions",
        lambda key: ingest.ingest_extractions(index.store, index.settings, key),
    )
    metadata = _metadata(index, context.partition_keys, "entity_mentions", _MENTION_PREVIEW, done)
    with index.get_connection() as con:
        missing = sum(ingest.chunks_without_extraction(con, key) for key in context.partition_keys)
    covered = dg.AssetCheckResult(
        check_name="every_chunk_extracted",
        passed=missing == 0,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"missing": missing},
        description="chunks that failed are tried again by the next run",
    )
    return dg.MaterializeResult(metadata=metadata, check_results=[covered])


def _per_batch(
    context: dg.AssetExecutionContext, stage: str, work: Callable[[str], StageResult]
) -> list[StageResult]:
    keys = sorted(context.partition_keys)
    done = []
    for number, key in enumerate(keys):
        progress.report(stage, number, len(keys))
        done.append(work(key))
    progress.report(stage, len(keys), len(keys))
    return done


def _metadata(
    index: IndexResource,
    keys: list[str],
    table: str,
    preview: str,
    done: list[StageResult],
) -> dict[str, object]:
    with index.get_connection() as con:
        con.execute("SET VARIABLE batch = ?", [sorted(keys)[-1]])
        rows = of_batch(table).replace("$key", "getvariable('batch')")
        count = sum(
            row[0]
            for key in keys
            if (
                row := con.execute(
                    f"SELECT count(*) FROM ({of_batch(table)})", {"key": key}
                ).fetchone()
            )
        )
        shown = markdown_table(con, preview.format(rows=rows))
        schema = column_schema(con, table)
    totals: dict[str, object] = {}
    for result in done:
        for name, number in result.counts.items():
            totals[name] = int(str(totals.get(name, 0))) + number
    return {
        **totals,
        "dagster/partition_row_count": count,
        "dagster/column_schema": schema,
        "seconds": round(sum(result.seconds for result in done), 3),
        "batches_done_before": sum(result.done_before for result in done),
        "preview": shown,
    }
