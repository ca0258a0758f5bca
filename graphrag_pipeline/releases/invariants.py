"""What must hold of an index: each invariant counts the rows that break it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from graphrag_pipeline.structures.vector_tables import ids_of

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
SYNONYMS_EXIST = """
SELECT count(*) FROM synonym_edges
WHERE source_id NOT IN (SELECT id FROM entities) OR target_id NOT IN (SELECT id FROM entities)
"""
RAPTOR_LEADS_TO_CHUNKS = """
SELECT count(*) FROM raptor_edges e LEFT JOIN raptor_nodes n ON n.id = e.node_id
WHERE n.id IS NULL OR NOT CASE WHEN n.layer = 1 THEN child_id IN (SELECT id FROM chunks)
    ELSE (child_id, n.layer - 1) IN (SELECT (id, layer) FROM raptor_nodes) END
"""
RAPTOR_NODES_HAVE_CHILDREN = """
SELECT count(*) FROM raptor_nodes n
WHERE n_children < 2 OR n_children <> (SELECT count(*) FROM raptor_edges e WHERE e.node_id = n.id)
"""
HIRAG_ENDS_EXIST = """
WITH nodes AS (SELECT id FROM entities UNION ALL SELECT id FROM hirag_entities)
SELECT count(*) FROM hirag_relationships
WHERE source_id NOT IN (SELECT id FROM nodes) OR target_id NOT IN (SELECT id FROM hirag_entities)
"""
HIRAG_RESTS_ON_TEXT = """
WITH RECURSIVE reached AS (
    SELECT target_id AS id FROM hirag_relationships SEMI JOIN entity_chunks ON entity_id = source_id
    UNION
    SELECT r.target_id FROM hirag_relationships r JOIN reached ON r.source_id = reached.id)
SELECT count(*) FROM hirag_entities ANTI JOIN reached USING (id)
"""
HIRAG_SPARSITY_KNOWN = """
SELECT count(DISTINCT layer) FROM hirag_entities ANTI JOIN hirag_layers USING (layer)
"""
SIMILAR_EXIST = """
SELECT count(*) FROM similarity_edges
WHERE source_id NOT IN (SELECT id FROM entities) OR target_id NOT IN (SELECT id FROM entities)
"""
ATTRIBUTED_COVER_ENTITIES_ONCE = """
SELECT count(*) FROM (
    SELECT e.id, level, count(a.entity_id) AS n
    FROM entities e CROSS JOIN (SELECT DISTINCT level FROM attributed_communities) l
    LEFT JOIN (SELECT entity_id, c.level AS first, last_level FROM attributed_entities
               JOIN attributed_communities c ON c.id = community_id) a
        ON a.entity_id = e.id AND level BETWEEN a.first AND last_level
    GROUP BY ALL) WHERE n <> 1
"""
ATTRIBUTED_LEAD_TO_ENTITIES = """
SELECT count(*) FROM attributed_communities ANTI JOIN (
    SELECT community_id AS id FROM attributed_entities SEMI JOIN entities e ON e.id = entity_id)
USING (id)
"""
CHNSW_HOLDS_EVERY_NODE = """
WITH nodes AS (
    SELECT 0 AS layer, count(*) AS n FROM entities UNION ALL
    SELECT level, count(*) FROM attributed_communities WHERE full_content IS NOT NULL GROUP BY ALL)
SELECT coalesce(sum(abs(coalesce(n, 0) - coalesce(n_nodes, 0))), 0)
FROM nodes FULL JOIN chnsw USING (layer)
"""
EVERY_ENTITY_COVERED_ONCE = """
SELECT count(*) FROM (
    SELECT e.id, count(m.entity_id) AS n FROM entities e
    LEFT JOIN community_members m ON m.entity_id = e.id AND m.level = $level
    WHERE $level <= (SELECT coalesce(max(last_level), 0) FROM communities) GROUP BY e.id)
WHERE n <> 1
"""
EVERY_COMMUNITY_REPORTED = """
SELECT count(*) FROM communities c
ANTI JOIN (SELECT community_id FROM community_reports UNION ALL
           SELECT community_id FROM report_failures) r ON r.community_id = c.id
WHERE c.size >= 2 AND c.level BETWEEN $first AND $last
"""


def violations(
    con: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object] | None = None
) -> int:
    """Return the number of rows that break an invariant of this module."""
    row = con.execute(query, parameters or {}).fetchone()
    return int(row[0]) if row else 0


def vector_violations(con: duckdb.DuckDBPyConnection, vectors: Path, table: str) -> dict[str, int]:
    """Return how many rows of the index lack a vector, and how many vectors are not numbers."""
    import numpy as np

    from graphrag_pipeline.store.vector_store import VectorStore

    ids = ids_of(con, table)
    if not ids:
        return {"missing": 0, "not_finite": 0}
    store = VectorStore(vectors)
    found = store.at({table: store.version(table)}).vectors(table, ids)
    bad = sum(not np.isfinite(vector).all() for vector in found.values())
    return {"missing": len(ids) - len(found), "not_finite": int(bad)}
