"""The published index: what readers open."""

from __future__ import annotations

import time

import dagster as dg

from assets.common import INDEX_POOL, OWNERS, markdown_table
from assets.embeddings import embedding_key
from graphrag_pipeline import progress
from graphrag_pipeline.publishing import PUBLISHED, publish, published_release
from graphrag_pipeline.vector_index import TABLES
from resources import IndexResource

_PREVIEW = """
SELECT id, created_at, n_documents, n_chunks, n_entities, n_relationships, n_communities, n_reports
FROM releases ORDER BY created_at DESC LIMIT 10
"""


@dg.asset(
    deps=[embedding_key(table) for table in TABLES],
    group_name="serving",
    kinds={"duckdb", "lancedb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata={"dagster/table_name": "published.main", "dagster/storage_kind": "duckdb"},
    check_specs=[
        dg.AssetCheckSpec("release_readable", asset="published_index", blocking=True),
    ],
)
def published_index(index: IndexResource) -> dg.MaterializeResult:
    """A consistent copy of graph, reports and vectors, put in place in one step."""
    started = time.perf_counter()
    progress.report("publish", 0, 1)
    release = publish(index.store, index.home, index.settings)
    progress.report("publish", 1, 1)
    path = index.home / PUBLISHED
    with index.get_connection() as con:
        preview = markdown_table(con, _PREVIEW)
    readable = published_release(index.home) == release.id
    return dg.MaterializeResult(
        metadata={
            **release.counts,
            "release": release.id,
            "new_release": release.created,
            "size_mb": round(path.stat().st_size / 1e6, 3),
            "path": dg.MetadataValue.path(str(path)),
            "seconds": round(time.perf_counter() - started, 3),
            "releases": preview,
        },
        check_results=[
            dg.AssetCheckResult(check_name="release_readable", passed=readable)
        ],
    )
