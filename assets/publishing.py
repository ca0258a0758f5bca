"""The published index: what readers open."""

from __future__ import annotations

import dagster as dg

from assets.common import INDEX_POOL, OWNERS, markdown_table, stage
from assets.embeddings import embedding_key
from graphrag_pipeline.publishing import PUBLISHED, publish, published_release
from graphrag_pipeline.vector_index import TABLES
from resources import IndexResource

_RELEASES = """
SELECT id, created_at, n_documents, n_chunks, n_entities, n_relationships, n_communities, n_reports
FROM releases ORDER BY created_at DESC LIMIT 6
"""
_CHANGES = """
WITH newest AS (
    SELECT COLUMNS('n_.*'), row_number() OVER (ORDER BY created_at DESC) AS place FROM releases
), counts AS (UNPIVOT newest ON COLUMNS('n_.*') INTO NAME counted VALUE number)
SELECT counted[3:] AS counted, coalesce(sum(number) FILTER (place = 2), 0)::BIGINT AS before,
       sum(number) FILTER (place = 1)::BIGINT AS now, printf('%+d', now - before) AS change
FROM counts GROUP BY ALL ORDER BY counted
"""


@dg.asset(
    deps=[embedding_key(table) for table in TABLES],
    group_name="serving",
    kinds={"duckdb", "lancedb"},
    owners=OWNERS,
    pool=INDEX_POOL,
    metadata={"dagster/table_name": "published.main", "dagster/storage_kind": "duckdb"},
    check_specs=[
        dg.AssetCheckSpec(
            "release_readable",
            asset="published_index",
            blocking=True,
            description="A reader who opens the published file finds this release.",
        ),
    ],
)
def published_index(index: IndexResource) -> dg.MaterializeResult:
    """A consistent copy of graph, reports and vectors, put in place in one step."""
    with stage("publish") as clock:
        release = publish(index.store, index.home, index.settings)
    path = index.home / PUBLISHED
    with index.get_connection() as con:
        changes, releases = markdown_table(con, _CHANGES), markdown_table(con, _RELEASES)
    readable = published_release(index.home) == release.id
    return dg.MaterializeResult(
        metadata={
            **release.counts,
            "release": release.id,
            "new_release": release.created,
            "since_the_release_before": changes,
            "releases": releases,
            "path": dg.MetadataValue.path(str(path)),
            "size_mb": round(path.stat().st_size / 1e6, 3),
            "seconds": clock.seconds,
        },
        check_results=[dg.AssetCheckResult(check_name="release_readable", passed=readable)],
    )
