-- One set of tables for all hierarchies; their old names become views of schema.sql.
CREATE TABLE hierarchy_communities (
    hierarchy VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    level INTEGER NOT NULL,
    last_level INTEGER NOT NULL,
    parent_id VARCHAR,
    title VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL
);

CREATE TABLE hierarchy_members (
    hierarchy VARCHAR NOT NULL,
    community_id VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    level INTEGER NOT NULL
);

CREATE TABLE hierarchy_reports (
    hierarchy VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    community_id VARCHAR NOT NULL,
    level INTEGER NOT NULL,
    title VARCHAR NOT NULL,
    summary VARCHAR NOT NULL,
    rating DOUBLE NOT NULL,
    rating_explanation VARCHAR NOT NULL,
    findings STRUCT(summary VARCHAR, explanation VARCHAR, chunk_id VARCHAR, start_char BIGINT, end_char BIGINT)[] NOT NULL,
    full_content VARCHAR NOT NULL,
    n_tokens BIGINT NOT NULL,
    context_hash VARCHAR NOT NULL,
    context_tokens BIGINT NOT NULL,
    coverage DOUBLE NOT NULL,
    writer VARCHAR NOT NULL,
    outdated DOUBLE DEFAULT 0
);

CREATE TABLE hierarchy_failures (
    hierarchy VARCHAR NOT NULL,
    community_id VARCHAR NOT NULL,
    level INTEGER NOT NULL,
    context_hash VARCHAR NOT NULL,
    error VARCHAR NOT NULL,
    attempts INTEGER NOT NULL
);

INSERT INTO hierarchy_communities BY NAME SELECT 'graph' AS hierarchy, * FROM communities;
INSERT INTO hierarchy_communities BY NAME SELECT 'hirag' AS hierarchy, * FROM hirag_communities;
INSERT INTO hierarchy_communities BY NAME
SELECT 'attributed' AS hierarchy, id, human_readable_id, level, last_level, parent_id, title, size,
       n_relationships
FROM attributed_communities;

INSERT INTO hierarchy_members BY NAME SELECT 'graph' AS hierarchy, * FROM community_members;
INSERT INTO hierarchy_members BY NAME SELECT 'hirag' AS hierarchy, * FROM hirag_community_members;
INSERT INTO hierarchy_members BY NAME
SELECT 'attributed' AS hierarchy, community_id, entity_id,
       unnest(range(c.level, c.last_level + 1))::INTEGER AS level
FROM attributed_entities JOIN attributed_communities c ON c.id = community_id;

INSERT INTO hierarchy_reports BY NAME SELECT 'graph' AS hierarchy, * FROM community_reports;
INSERT INTO hierarchy_reports BY NAME SELECT 'hirag' AS hierarchy, * FROM hirag_community_reports;
INSERT INTO hierarchy_reports BY NAME
SELECT 'attributed' AS hierarchy, left(sha256(concat('report', strlen(id), ':', id)), 32) AS id,
       id AS community_id, level, title, summary, rating, rating_explanation, findings,
       full_content, n_tokens, context_hash, context_tokens, coverage, writer
FROM attributed_communities WHERE full_content IS NOT NULL;

INSERT INTO hierarchy_failures BY NAME SELECT 'graph' AS hierarchy, * FROM report_failures;
INSERT INTO hierarchy_failures BY NAME
SELECT 'hirag' AS hierarchy, * FROM staging.hirag_report_failures;
INSERT INTO hierarchy_failures BY NAME
SELECT 'attributed' AS hierarchy, id AS community_id, level, context_hash, error, attempts
FROM attributed_communities WHERE error IS NOT NULL;

DROP VIEW attributed_entities;
DROP TABLE attributed_members;
DROP TABLE attributed_communities;
DROP TABLE hirag_communities;
DROP TABLE hirag_community_members;
DROP TABLE hirag_community_reports;
DROP TABLE staging.hirag_report_failures;
DROP TABLE communities;
DROP TABLE community_members;
DROP TABLE community_reports;
DROP TABLE report_failures;

UPDATE meta SET key = 'graph:' || key
WHERE key = 'communities_state' OR starts_with(key, 'reports_state:');
