"""Invariants of an index: each counts the rows that break it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import duckdb

from graphrag_pipeline.store.frames import streamed
from graphrag_pipeline.store.held_vectors import are_numbers
from graphrag_pipeline.store.hierarchy import COMMUNITIES_REPORTED, GRAPH
from graphrag_pipeline.structures.structure import VectorTable

if TYPE_CHECKING:
    from graphrag_pipeline.store.vector_store import VectorStore

ENTITY_IDS_UNIQUE = "SELECT count(*) - count(DISTINCT id) FROM entities"
RELATIONSHIP_IDS_UNIQUE = "SELECT count(*) - count(DISTINCT id) FROM relationships"
ENDPOINTS_EXIST = """
SELECT count(*) FROM relationships r
WHERE r.source_id NOT IN (SELECT id FROM entities) OR r.target_id NOT IN (SELECT id FROM entities)
"""
ENTITIES_HAVE_SOURCES = """
SELECT count(*) FROM entities ANTI JOIN (
    SELECT entity_id AS id FROM entity_chunks SEMI JOIN chunks ON chunk_id = chunks.id) USING (id)
"""
EVERY_ENTITY_COVERED_ONCE = """
SELECT count(*) FROM (
    SELECT e.id, l.level, count(m.entity_id) AS n FROM entities e CROSS JOIN (
        SELECT unnest(range($first, 1 + least($last, (
            SELECT coalesce(max(last_level), 0) FROM communities)))) AS level) l
    LEFT JOIN community_members m ON m.entity_id = e.id AND m.level = l.level
    GROUP BY e.id, l.level)
WHERE n <> 1
"""
EVERY_COMMUNITY_REPORTED = GRAPH.count(
    f"{COMMUNITIES_REPORTED} AND c.level BETWEEN $first AND $last"
)
REPORTS_ON_NOTHING = """
SELECT count(*) FROM community_reports WHERE coverage = 0 AND level BETWEEN $first AND $last
"""


def violations(
    con: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object] | None = None
) -> int:
    """Return the number of rows that break an invariant."""
    row = con.execute(query, parameters or {}).fetchone()
    return int(row[0]) if row else 0


def vector_violations(
    con: duckdb.DuckDBPyConnection, vectors: VectorStore, table: VectorTable
) -> tuple[int, int]:
    """Return how many rows of the index lack a vector, and how many vectors are not numbers."""
    import pyarrow as pa

    snapshot = vectors.at({table.name: vectors.version(table.name)})
    ids, n_bad = [pa.array([], pa.string())], 0
    for part in snapshot.scan(table.name, ["id", "vector"]):
        ids.append(part["id"])
        n_bad += int((~are_numbers(part["vector"])).sum())
    with streamed(con, "held_vectors", pa.table({"id": pa.chunked_array(ids)})):
        lacking = f"SELECT count(*) FROM ({table.texts}) ANTI JOIN held_vectors USING (id)"
        return violations(con, lacking), n_bad
