-- A release as if it held only the documents in `kept_documents`, in a schema of its own beside it.
-- Nothing that rests on another document is shown: rows of chunks by their chunk; entities and
-- relationships by what the kept chunks say of them; reports, summaries and communities only where
-- all below them is kept. What is `whole` rests on kept documents alone.

CREATE TABLE kept_chunks AS
SELECT c.id FROM published.chunks c SEMI JOIN kept_documents k ON k.id = c.document_id;

CREATE VIEW documents AS FROM published.documents SEMI JOIN kept_documents USING (id);
CREATE VIEW blocks AS
FROM published.blocks b SEMI JOIN kept_documents k ON k.id = b.document_id;
CREATE VIEW chunks AS FROM published.chunks SEMI JOIN kept_chunks USING (id);
CREATE VIEW chunk_titles AS FROM published.chunk_titles t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW chunk_names AS FROM published.chunk_names t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW record_links AS FROM published.record_links t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW extractions AS FROM published.extractions t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW entity_mentions AS
FROM published.entity_mentions t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW relationship_mentions AS
FROM published.relationship_mentions t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW releases AS FROM published.releases;
CREATE VIEW chnsw AS FROM published.chnsw LIMIT 0;

CREATE TABLE entity_aliases AS
SELECT * REPLACE (title AS canonical_title) FROM published.entity_aliases a SEMI JOIN (
    SELECT entity_id AS id FROM entity_mentions
    UNION ALL SELECT source_id FROM record_links UNION ALL SELECT target_id FROM record_links) m
ON m.id = a.entity_id;

-- How many chunks each rests on, and how many of these are kept.
CREATE TABLE counted_entities AS
SELECT entity_id AS id, count(k.id) AS own, count(*) = count(k.id) AS is_whole
FROM published.entity_chunks e LEFT JOIN kept_chunks k ON k.id = e.chunk_id GROUP BY ALL;
CREATE TABLE counted_relationships AS
SELECT relationship_id AS id, count(k.id) AS own, count(*) = count(k.id) AS is_whole
FROM published.relationship_chunks r LEFT JOIN kept_chunks k ON k.id = r.chunk_id GROUP BY ALL;
CREATE TABLE mixed_entities AS
WITH RECURSIVE mixed AS (
    SELECT id FROM published.entities ANTI JOIN (FROM counted_entities WHERE is_whole) USING (id)
    UNION
    SELECT unnest([source_id, target_id]) FROM published.relationships
    ANTI JOIN (FROM counted_relationships WHERE is_whole) USING (id)
    UNION
    SELECT coalesce(canonical_id, subject_id) FROM published.claims
    LEFT JOIN published.entity_aliases ON entity_id = subject_id
    ANTI JOIN kept_chunks k ON k.id = chunk_id
    UNION
    SELECT target_id FROM published.hirag_relationships l JOIN mixed ON mixed.id = l.source_id)
FROM mixed;

CREATE TABLE shown_entities AS
WITH said AS (
    SELECT entity_id AS id, mode(title) AS title, list(DISTINCT title) AS titles, mode(type) AS type,
           array_to_string(list(DISTINCT description ORDER BY description)
               FILTER (WHERE description <> '')[:5], chr(10)) AS description
    FROM (
        SELECT chunk_id, coalesce(canonical_id, m.entity_id) AS entity_id, m.title, m.type,
               description
        FROM entity_mentions m LEFT JOIN entity_aliases a ON a.entity_id = m.entity_id)
    GROUP BY ALL)
SELECT e.* REPLACE (
    CASE WHEN m.id IS NULL OR list_contains(s.titles, e.title) THEN e.title ELSE s.title END AS title,
    CASE WHEN m.id IS NULL THEN e.type ELSE s.type END AS type,
    CASE WHEN m.id IS NULL THEN e.description ELSE coalesce(s.description, '') END AS description,
    c.own AS frequency)
FROM published.entities e JOIN counted_entities c ON c.id = e.id AND c.own > 0
LEFT JOIN mixed_entities m ON m.id = e.id LEFT JOIN said s ON s.id = e.id
WHERE m.id IS NULL OR s.id IS NOT NULL;

CREATE VIEW entity_chunks AS
FROM published.entity_chunks t SEMI JOIN kept_chunks k ON k.id = t.chunk_id
SEMI JOIN shown_entities e ON e.id = t.entity_id;
CREATE TABLE claims AS
SELECT c.* REPLACE (coalesce(e.title, c.subject) AS subject)
FROM published.claims c SEMI JOIN kept_chunks k ON k.id = c.chunk_id
LEFT JOIN shown_entities e ON e.id = c.subject_id;

CREATE TABLE shown_relationships AS
WITH said AS (
    SELECT least(one, two) AS source_id, greatest(one, two) AS target_id, sum(weight) AS weight,
           array_to_string(list(DISTINCT description ORDER BY description)
               FILTER (WHERE description <> '')[:5], chr(10)) AS description
    FROM (
        SELECT coalesce(s.canonical_id, m.source_id) AS one,
               coalesce(t.canonical_id, m.target_id) AS two, m.description, m.weight
        FROM (
            SELECT source_id, target_id, description, weight FROM relationship_mentions
            UNION ALL SELECT source_id, target_id, description, 1.0 FROM record_links) m
        LEFT JOIN entity_aliases s ON s.entity_id = m.source_id
        LEFT JOIN entity_aliases t ON t.entity_id = m.target_id) GROUP BY ALL)
SELECT r.* REPLACE (
    a.title AS source, b.title AS target,
    CASE WHEN c.is_whole THEN r.description ELSE coalesce(s.description, '') END AS description,
    CASE WHEN c.is_whole THEN r.type ELSE '' END AS type,
    CASE WHEN c.is_whole THEN r.pmi ELSE 0 END AS pmi,
    CASE WHEN c.is_whole THEN r.weight ELSE s.weight END AS weight)
FROM published.relationships r JOIN counted_relationships c ON c.id = r.id AND c.own > 0
JOIN shown_entities a ON a.id = r.source_id JOIN shown_entities b ON b.id = r.target_id
LEFT JOIN said s ON s.source_id = least(r.source_id, r.target_id)
    AND s.target_id = greatest(r.source_id, r.target_id)
WHERE c.is_whole OR s.source_id IS NOT NULL;
CREATE TABLE degrees AS
SELECT id, count(*) AS n FROM (SELECT unnest([source_id, target_id]) AS id FROM shown_relationships)
GROUP BY ALL;
CREATE VIEW entities AS
SELECT e.* REPLACE (coalesce(n, 0) AS degree) FROM shown_entities e LEFT JOIN degrees USING (id);
CREATE VIEW relationships AS
SELECT r.* REPLACE (s.n + t.n AS combined_degree)
FROM shown_relationships r JOIN degrees s ON s.id = source_id JOIN degrees t ON t.id = target_id;
CREATE VIEW relationship_chunks AS
FROM published.relationship_chunks t SEMI JOIN kept_chunks k ON k.id = t.chunk_id
SEMI JOIN shown_relationships r ON r.id = t.relationship_id;
CREATE VIEW synonym_edges AS
FROM published.synonym_edges t SEMI JOIN shown_entities s ON s.id = t.source_id
SEMI JOIN shown_entities e ON e.id = t.target_id;
CREATE VIEW similarity_edges AS
FROM published.similarity_edges t SEMI JOIN shown_entities s ON s.id = t.source_id
SEMI JOIN shown_entities e ON e.id = t.target_id;

CREATE VIEW hirag_entities AS FROM published.hirag_entities ANTI JOIN mixed_entities USING (id);
CREATE VIEW hirag_relationships AS
FROM published.hirag_relationships t ANTI JOIN mixed_entities s ON s.id = t.source_id
ANTI JOIN mixed_entities e ON e.id = t.target_id;

-- A community under one that is not kept stands in its place, up to the root.
CREATE TABLE kept_communities AS
WITH kept AS (
    SELECT DISTINCT hierarchy, community_id AS id FROM published.hierarchy_members
    ANTI JOIN (
        SELECT DISTINCT hierarchy, community_id FROM published.hierarchy_members m
        SEMI JOIN mixed_entities x ON x.id = m.entity_id) mixed USING (hierarchy, community_id))
SELECT c.* REPLACE (
    p.id AS parent_id,
    CASE WHEN p.id IS NULL AND c.hierarchy <> 'attributed' THEN 0 ELSE c.level END AS level)
FROM published.hierarchy_communities c JOIN kept k ON k.hierarchy = c.hierarchy AND k.id = c.id
LEFT JOIN kept p ON p.hierarchy = c.hierarchy AND p.id = c.parent_id;
CREATE VIEW hierarchy_communities AS FROM kept_communities;
CREATE TABLE hierarchy_members AS
SELECT m.hierarchy, m.community_id, m.entity_id, unnest(range(c.level, c.last_level + 1)) AS level
FROM (SELECT DISTINCT hierarchy, community_id, entity_id FROM published.hierarchy_members) m
JOIN kept_communities c ON c.hierarchy = m.hierarchy AND c.id = m.community_id
WHERE m.hierarchy <> 'attributed'
UNION ALL
FROM (SELECT hierarchy, community_id, entity_id, level FROM published.hierarchy_members) m
SEMI JOIN kept_communities c ON c.hierarchy = m.hierarchy AND c.id = m.community_id
WHERE hierarchy = 'attributed';
CREATE VIEW hierarchy_reports AS
FROM published.hierarchy_reports r
SEMI JOIN kept_communities c ON c.hierarchy = r.hierarchy AND c.id = r.community_id;
CREATE VIEW hierarchy_failures AS FROM published.hierarchy_failures LIMIT 0;

CREATE TABLE mixed_nodes AS
WITH RECURSIVE mixed AS (
    SELECT node_id AS id FROM published.raptor_edges e
    JOIN published.chunks c ON c.id = e.child_id ANTI JOIN kept_chunks k ON k.id = c.id
    UNION
    SELECT node_id FROM published.raptor_edges e JOIN mixed ON mixed.id = e.child_id)
FROM mixed;
CREATE VIEW raptor_nodes AS FROM published.raptor_nodes ANTI JOIN mixed_nodes USING (id);
CREATE VIEW raptor_edges AS
FROM published.raptor_edges e ANTI JOIN mixed_nodes m ON m.id = e.node_id;
