-- A release as if it held only the documents in `kept_documents`, in a schema of its own beside it.
-- Nothing that rests on another document is shown: rows of chunks by their chunk; entities and
-- relationships by what the kept chunks say of them; summaries only where all below them is kept.
-- What is `whole` rests on kept documents alone; what is `mixed` does not.

CREATE TABLE kept_chunks AS
SELECT c.id, c.document_id FROM published.chunks c SEMI JOIN kept_documents k ON k.id = c.document_id;

CREATE VIEW documents AS FROM published.documents SEMI JOIN kept_documents USING (id);
CREATE VIEW blocks AS
FROM published.blocks b SEMI JOIN kept_documents k ON k.id = b.document_id;
CREATE VIEW chunks AS FROM published.chunks SEMI JOIN kept_chunks USING (id);
CREATE VIEW chunk_titles AS FROM published.chunk_titles t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW chunk_names AS FROM published.chunk_names t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW extractions AS FROM published.extractions t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW entity_mentions AS
FROM published.entity_mentions t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW relationship_mentions AS
FROM published.relationship_mentions t SEMI JOIN kept_chunks k ON k.id = t.chunk_id;
CREATE VIEW releases AS FROM published.releases;
CREATE VIEW chnsw AS FROM published.chnsw LIMIT 0;
CREATE VIEW report_elements AS FROM published.report_elements LIMIT 0;

-- The entities that kept documents name themselves. A key is shown with the name of the record that
-- it refers to only where that name is one of these.
CREATE TABLE stated AS
SELECT entity_id, document_id, count(*) AS n FROM (
    SELECT entity_id, chunk_id FROM entity_mentions
    UNION ALL SELECT source_id, chunk_id FROM published.record_links)
JOIN kept_chunks k ON k.id = chunk_id GROUP BY ALL;
CREATE VIEW record_links AS
FROM published.record_links t SEMI JOIN kept_chunks k ON k.id = t.chunk_id
SEMI JOIN stated s ON s.entity_id = t.target_id;

-- Names are one entity where a kept document has both, or where they differ in spelling alone: the
-- other names of each are compared with one, `main`, which is that of the release if it is kept.
CREATE TABLE named AS
WITH names AS (
    SELECT coalesce(canonical_id, s.entity_id) AS group_id, s.entity_id, sum(s.n) AS n,
           any_value(rule) AS rule
    FROM stated s LEFT JOIN published.entity_aliases a ON a.entity_id = s.entity_id GROUP BY ALL),
chosen AS (
    SELECT group_id, arg_max(entity_id, (entity_id = group_id, n, entity_id)) AS main
    FROM names GROUP BY ALL)
SELECT entity_id, group_id,
       entity_id = main OR (main = group_id AND rule IN ('spelling', 'plural')) OR entity_id IN (
           SELECT s.entity_id FROM stated s JOIN published.entity_aliases a USING (entity_id)
           JOIN chosen c ON c.group_id = a.canonical_id
           JOIN stated o ON o.entity_id = c.main AND o.document_id = s.document_id) AS is_one
FROM names JOIN chosen USING (group_id);
CREATE TABLE entity_aliases AS
SELECT a.* REPLACE (a.title AS canonical_title, '{}'::JSON AS evidence)
FROM published.entity_aliases a SEMI JOIN (FROM named WHERE is_one) USING (entity_id);
-- Entities that are made anew from their mentions, as some of their names are not theirs here.
CREATE TABLE parted AS
SELECT DISTINCT unnest([group_id, entity_id]) AS id FROM named WHERE NOT is_one;

-- What was written of a document that is not kept, in whatever words and whenever. Where documents
-- have labels, what does not say from which it was written counts as that.
CREATE TABLE closed_writings AS
SELECT DISTINCT kind, id FROM published.written_from w
ANTI JOIN kept_documents k ON k.id = w.document_id
UNION
SELECT kind, id FROM (
    SELECT hierarchy AS kind, community_id AS id FROM published.hierarchy_reports
    UNION ALL SELECT 'raptor node', id FROM published.raptor_nodes
    UNION ALL SELECT 'hirag entity', id FROM published.hirag_entities) n
ANTI JOIN published.written_from w ON w.kind = n.kind AND w.id = n.id
WHERE (SELECT count(*) > 0 FROM published.document_labels);

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
    SELECT e.id FROM published.entities e ANTI JOIN (
        SELECT coalesce(canonical_id, entity_id) AS id
        FROM stated LEFT JOIN entity_aliases USING (entity_id)) s ON s.id = e.id
    UNION
    FROM parted
    UNION
    SELECT canonical_id FROM published.entity_aliases ANTI JOIN stated USING (entity_id)
    UNION
    SELECT unnest([source_id, target_id]) FROM published.relationships
    ANTI JOIN (FROM counted_relationships WHERE is_whole) USING (id)
    UNION
    SELECT coalesce(canonical_id, subject_id) FROM published.claims
    LEFT JOIN published.entity_aliases ON entity_id = subject_id
    ANTI JOIN kept_chunks k ON k.id = chunk_id
    UNION
    SELECT id FROM closed_writings WHERE kind = 'hirag entity'
    UNION
    SELECT l.id FROM mixed JOIN (
        SELECT id, entity_id FROM published.hirag_basis
        UNION ALL SELECT target_id, source_id FROM published.hirag_relationships) l
    ON l.entity_id = mixed.id)
FROM mixed;

-- What kept chunks say of mixed entities.
CREATE TABLE own_mentions AS
SELECT chunk_id, coalesce(canonical_id, m.entity_id) AS entity_id, m.title, m.type, description,
       start_char, end_char
FROM (SELECT chunk_id, entity_id, title, type, description, start_char, end_char
      FROM entity_mentions
      UNION ALL
      SELECT chunk_id, source_id, source, 'OTHER', description, start_char, end_char
      FROM record_links WHERE names_source
      UNION ALL
      SELECT chunk_id, target_id, target, 'OTHER', description, start_char, end_char
      FROM record_links WHERE names_target) m
LEFT JOIN entity_aliases a ON a.entity_id = m.entity_id
SEMI JOIN mixed_entities x ON x.id = coalesce(canonical_id, m.entity_id);
CREATE TABLE shown_entities AS
WITH said AS (
    SELECT entity_id AS id, mode(title ORDER BY title) AS title, list(DISTINCT title) AS titles,
           mode(type ORDER BY type) AS type, count(DISTINCT chunk_id) AS own,
           array_to_string(list(DISTINCT description ORDER BY description)
               FILTER (WHERE description <> '')[:5], chr(10)) AS description
    FROM own_mentions GROUP BY ALL),
mixed AS (
    SELECT s.id,
           coalesce(e.human_readable_id, row_number() OVER (ORDER BY s.id) + (
               SELECT max(human_readable_id) FROM published.entities)) AS human_readable_id,
           CASE WHEN list_contains(titles, e.title) THEN e.title ELSE s.title END AS title,
           s.type, coalesce(s.description, '') AS description, s.own AS frequency, 0 AS degree,
           strlen(concat(s.title, s.type, s.description)) // 3 + 1 AS n_tokens
    FROM said s LEFT JOIN published.entities e USING (id))
SELECT * FROM published.entities ANTI JOIN mixed_entities USING (id)
UNION ALL BY NAME FROM mixed;
CREATE TABLE entity_chunks AS
FROM published.entity_chunks t SEMI JOIN kept_chunks k ON k.id = t.chunk_id
ANTI JOIN parted p ON p.id = t.entity_id SEMI JOIN shown_entities e ON e.id = t.entity_id
UNION ALL BY NAME
SELECT entity_id, chunk_id, count(*) AS n_mentions,
       min(c.start_char + m.start_char) AS start_char,
       arg_min(c.start_char + m.end_char, m.start_char) AS end_char
FROM own_mentions m SEMI JOIN parted p ON p.id = m.entity_id
JOIN published.chunks c ON c.id = m.chunk_id GROUP BY ALL;
CREATE TABLE claims AS
SELECT c.* REPLACE (coalesce(e.title, c.subject) AS subject)
FROM published.claims c SEMI JOIN kept_chunks k ON k.id = c.chunk_id
LEFT JOIN shown_entities e ON e.id = c.subject_id;

CREATE TABLE shown_relationships AS
WITH whole AS (
    SELECT r.* FROM published.relationships r
    SEMI JOIN (FROM counted_relationships WHERE is_whole) USING (id)
    ANTI JOIN parted s ON s.id = source_id ANTI JOIN parted t ON t.id = target_id),
said AS (
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
        LEFT JOIN entity_aliases t ON t.entity_id = m.target_id)
    WHERE one <> two GROUP BY ALL),
mixed AS (
    SELECT coalesce(r.id, left(sha256(s.source_id || s.target_id), 32)) AS id,
           coalesce(r.human_readable_id, row_number() OVER (ORDER BY s.source_id, s.target_id) + (
               SELECT max(human_readable_id) FROM published.relationships)) AS human_readable_id,
           coalesce(r.source_id, s.source_id) AS source_id,
           coalesce(r.target_id, s.target_id) AS target_id, '' AS source, '' AS target,
           coalesce(s.description, '') AS description, s.weight, 0 AS pmi, 0 AS combined_degree,
           strlen(s.description) // 3 + 8 AS n_tokens, '' AS type
    FROM said s LEFT JOIN published.relationships r
        ON least(r.source_id, r.target_id) = s.source_id
        AND greatest(r.source_id, r.target_id) = s.target_id
    ANTI JOIN whole w ON w.id = r.id
    -- What the graph has left out, as too weak, stays out.
    WHERE r.id IS NOT NULL OR s.source_id IN (FROM parted) OR s.target_id IN (FROM parted))
SELECT r.* REPLACE (a.title AS source, b.title AS target)
FROM (FROM whole UNION ALL BY NAME FROM mixed) r
JOIN shown_entities a ON a.id = r.source_id JOIN shown_entities b ON b.id = r.target_id;
CREATE TABLE parted_relationships AS
SELECT id, source_id, target_id FROM shown_relationships SEMI JOIN parted p ON p.id = source_id
UNION
SELECT id, source_id, target_id FROM shown_relationships SEMI JOIN parted p ON p.id = target_id;
CREATE TABLE degrees AS
SELECT id, count(*) AS n FROM (SELECT unnest([source_id, target_id]) AS id FROM shown_relationships)
GROUP BY ALL;
CREATE VIEW entities AS
SELECT e.* REPLACE (coalesce(n, 0) AS degree) FROM shown_entities e LEFT JOIN degrees USING (id);
CREATE VIEW relationships AS
SELECT r.* REPLACE (s.n + t.n AS combined_degree)
FROM shown_relationships r JOIN degrees s ON s.id = source_id JOIN degrees t ON t.id = target_id;
CREATE TABLE relationship_chunks AS
FROM published.relationship_chunks t SEMI JOIN kept_chunks k ON k.id = t.chunk_id
SEMI JOIN shown_relationships r ON r.id = t.relationship_id
ANTI JOIN parted_relationships p ON p.id = t.relationship_id
UNION ALL BY NAME
SELECT r.id AS relationship_id, chunk_id, count(*) AS n_mentions,
       min(c.start_char + m.start_char) AS start_char,
       arg_min(c.start_char + m.end_char, m.start_char) AS end_char
FROM (
    SELECT chunk_id, source_id, target_id, start_char, end_char FROM relationship_mentions
    UNION ALL SELECT chunk_id, source_id, target_id, start_char, end_char FROM record_links) m
LEFT JOIN entity_aliases s ON s.entity_id = m.source_id
LEFT JOIN entity_aliases t ON t.entity_id = m.target_id
JOIN parted_relationships r
    ON least(r.source_id, r.target_id)
        = least(coalesce(s.canonical_id, m.source_id), coalesce(t.canonical_id, m.target_id))
    AND greatest(r.source_id, r.target_id)
        = greatest(coalesce(s.canonical_id, m.source_id), coalesce(t.canonical_id, m.target_id))
JOIN published.chunks c ON c.id = m.chunk_id GROUP BY ALL;
CREATE VIEW synonym_edges AS
FROM published.synonym_edges t SEMI JOIN shown_entities s ON s.id = t.source_id
SEMI JOIN shown_entities e ON e.id = t.target_id;
CREATE VIEW similarity_edges AS
FROM published.similarity_edges t ANTI JOIN mixed_entities s ON s.id = t.source_id
ANTI JOIN mixed_entities e ON e.id = t.target_id;

CREATE VIEW hirag_entities AS FROM published.hirag_entities ANTI JOIN mixed_entities USING (id);
CREATE VIEW hirag_relationships AS
FROM published.hirag_relationships t ANTI JOIN mixed_entities s ON s.id = t.source_id
ANTI JOIN mixed_entities e ON e.id = t.target_id;

-- A community holds the entities of it that are shown, and is called by them. One of another kind
-- than those of graphs is shown only where it is whole.
CREATE TABLE hierarchy_members AS
FROM published.hierarchy_members m
SEMI JOIN (SELECT id FROM shown_entities UNION ALL SELECT id FROM hirag_entities) e
    ON e.id = m.entity_id
ANTI JOIN (
    SELECT DISTINCT community_id FROM published.hierarchy_members
    SEMI JOIN mixed_entities x ON x.id = entity_id WHERE hierarchy = 'attributed') w
    ON m.hierarchy = 'attributed' AND w.community_id = m.community_id;
-- A report rests on what it was written from, which may be behind the graph by a little: then it is
-- open only where it says from which documents it was written.
CREATE TABLE mixed_communities AS
SELECT hierarchy, community_id AS id FROM published.hierarchy_members
SEMI JOIN mixed_entities x ON x.id = entity_id
UNION
SELECT hierarchy, community_id FROM published.hierarchy_reports r
ANTI JOIN published.written_from w ON w.kind = r.hierarchy AND w.id = r.community_id
WHERE outdated > 0
UNION
SELECT kind, id FROM closed_writings
UNION
SELECT 'graph', community_id FROM published.report_basis b
ANTI JOIN (
    SELECT id FROM shown_entities ANTI JOIN mixed_entities USING (id)
    UNION ALL SELECT id FROM counted_relationships WHERE is_whole
    UNION ALL SELECT id FROM claims) w ON w.id = b.element_id;
CREATE TABLE hierarchy_communities AS
WITH held AS (
    SELECT m.hierarchy, m.community_id AS id, count(*) AS size,
           list(e.title ORDER BY e.degree DESC, e.title)[:3] AS titles
    FROM hierarchy_members m
    JOIN published.hierarchy_communities c
        ON c.hierarchy = m.hierarchy AND c.id = m.community_id AND c.level = m.level
    JOIN (SELECT id, title, degree FROM entities
          UNION ALL SELECT id, title, degree FROM hirag_entities) e ON e.id = m.entity_id
    GROUP BY ALL),
inside AS (
    SELECT s.hierarchy, s.community_id AS id, count(*) AS n
    FROM hierarchy_members s
    JOIN published.hierarchy_communities c
        ON c.hierarchy = s.hierarchy AND c.id = s.community_id AND c.level = s.level
    JOIN (SELECT source_id, target_id FROM shown_relationships
          UNION ALL SELECT source_id, target_id FROM hirag_relationships) r
        ON r.source_id = s.entity_id
    JOIN hierarchy_members t ON t.entity_id = r.target_id AND t.hierarchy = s.hierarchy
        AND t.community_id = s.community_id AND t.level = s.level
    GROUP BY ALL)
SELECT c.* REPLACE (
    p.id AS parent_id,
    CASE WHEN x.id IS NULL THEN c.size ELSE h.size END AS size,
    CASE WHEN x.id IS NULL THEN c.n_relationships ELSE coalesce(i.n, 0) END AS n_relationships,
    CASE WHEN x.id IS NULL THEN c.title ELSE array_to_string(h.titles, ', ') END AS title)
FROM published.hierarchy_communities c
JOIN held h ON h.hierarchy = c.hierarchy AND h.id = c.id
LEFT JOIN held p ON p.hierarchy = c.hierarchy AND p.id = c.parent_id
LEFT JOIN inside i ON i.hierarchy = c.hierarchy AND i.id = c.id
LEFT JOIN mixed_communities x ON x.hierarchy = c.hierarchy AND x.id = c.id;
CREATE TABLE hierarchy_reports AS
FROM published.hierarchy_reports r
SEMI JOIN hierarchy_communities c ON c.hierarchy = r.hierarchy AND c.id = r.community_id
ANTI JOIN mixed_communities x ON x.hierarchy = r.hierarchy AND x.id = r.community_id;
CREATE VIEW hierarchy_failures AS FROM published.hierarchy_failures LIMIT 0;

CREATE TABLE mixed_nodes AS
WITH RECURSIVE mixed AS (
    SELECT node_id AS id FROM published.raptor_edges e
    JOIN published.chunks c ON c.id = e.child_id ANTI JOIN kept_chunks k ON k.id = c.id
    UNION
    SELECT id FROM closed_writings WHERE kind = 'raptor node'
    UNION
    SELECT node_id FROM published.raptor_edges e JOIN mixed ON mixed.id = e.child_id)
FROM mixed;
CREATE VIEW raptor_nodes AS FROM published.raptor_nodes ANTI JOIN mixed_nodes USING (id);
CREATE VIEW raptor_edges AS
FROM published.raptor_edges e ANTI JOIN mixed_nodes m ON m.id = e.node_id;
