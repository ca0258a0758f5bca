"""Sources of reports and summaries: the documents of each, by which it is open.

A report is open to whoever may read all of them. They are documents, not labels: labels may change
without anything being written anew. Where everybody sees all, nothing is recorded.

Rows stay as they were when something was written. What was written anew, and what names a document
that is gone, is looked up in the graph as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from graphrag_pipeline.core.settings import AccessSettings

_CLEAR = "DELETE FROM written_from"
_BEGIN = """
CREATE OR REPLACE TEMP TABLE writings AS
SELECT hierarchy AS kind, community_id AS id, context_hash AS version,
       coalesce(outdated, 0) = 0 AS is_current
FROM hierarchy_reports
UNION ALL
SELECT 'raptor node', id, '', true FROM raptor_nodes
UNION ALL
SELECT 'hirag entity', id, left(sha256(concat(title, chr(10), description)), 16), true
FROM hirag_entities;

DELETE FROM written_from WHERE (kind, id, version) NOT IN (
    SELECT (kind, id, version) FROM writings);
DELETE FROM written_from WHERE (kind, id) IN (
    SELECT (kind, id) FROM written_from ANTI JOIN documents d ON d.id = document_id);

-- Of a report that is behind the graph, the graph does not tell what it was written from: it has
-- no rows, unless it had them when it was written, and is open to nobody with labels.
CREATE OR REPLACE TEMP TABLE unknown_writings AS
SELECT kind, id, version FROM writings n ANTI JOIN written_from w ON w.kind = n.kind AND w.id = n.id
WHERE is_current;
"""
_UNKNOWN = "SELECT count(*) FROM unknown_writings"
_SOURCES = """
CREATE OR REPLACE TEMP TABLE element_documents AS
WITH said AS (
    SELECT entity_id, chunk_id FROM entity_chunks
    UNION ALL
    SELECT unnest([source_id, target_id]), chunk_id FROM relationships r
    JOIN relationship_chunks c ON c.relationship_id = r.id
    UNION ALL
    SELECT subject_id, chunk_id FROM resolved_claims WHERE subject_id IS NOT NULL),
of_entities AS (
    SELECT DISTINCT entity_id AS id, document_id FROM said JOIN chunks c ON c.id = chunk_id)
FROM of_entities
UNION
SELECT b.id, document_id FROM hirag_basis b JOIN of_entities e ON e.id = b.entity_id;

INSERT INTO written_from
SELECT DISTINCT u.kind, u.id, u.version, document_id
FROM unknown_writings u JOIN element_documents e ON e.id = u.id WHERE u.kind = 'hirag entity';

INSERT INTO written_from
WITH RECURSIVE beneath AS (
    SELECT u.id, e.child_id FROM unknown_writings u JOIN raptor_edges e ON e.node_id = u.id
    WHERE u.kind = 'raptor node'
    UNION
    SELECT b.id, e.child_id FROM beneath b JOIN raptor_edges e ON e.node_id = b.child_id)
SELECT DISTINCT 'raptor node', b.id, '', document_id
FROM beneath b JOIN chunks c ON c.id = child_id;

-- A report rests on what is known of its members, and on all that the reports within it rest on.
INSERT INTO written_from
WITH RECURSIVE within AS (
    SELECT kind, id, id AS part_id FROM unknown_writings
    UNION
    SELECT w.kind, w.id, c.id FROM within w
    JOIN hierarchy_communities c ON c.hierarchy = w.kind AND c.parent_id = w.part_id),
sources AS (
    SELECT DISTINCT u.kind, u.id, document_id FROM unknown_writings u
    JOIN hierarchy_members m ON m.hierarchy = u.kind AND m.community_id = u.id
    JOIN element_documents e ON e.id = m.entity_id
    UNION
    SELECT w.kind, w.id, f.document_id FROM within w
    JOIN written_from f ON f.kind = w.kind AND f.id = w.part_id)
SELECT u.kind, u.id, u.version, document_id
FROM sources s JOIN unknown_writings u ON u.kind = s.kind AND u.id = s.id
WHERE u.kind NOT IN ('raptor node', 'hirag entity');

DROP TABLE element_documents;
"""
_END = "DROP TABLE writings; DROP TABLE unknown_writings"


def record_sources(con: duckdb.DuckDBPyConnection, access: AccessSettings) -> None:
    """Bring ``written_from`` up to date with what is written now, within a transaction."""
    if access.mode != "filtered":
        con.execute(_CLEAR)
        return
    con.execute(_BEGIN)
    if con.execute(_UNKNOWN).fetchone() != (0,):
        con.execute(_SOURCES)
    con.execute(_END)
