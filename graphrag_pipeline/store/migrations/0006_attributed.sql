CREATE TABLE similarity_edges (
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    similarity DOUBLE NOT NULL
);

CREATE TABLE attributed_communities (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    level INTEGER NOT NULL,
    last_level INTEGER NOT NULL,
    parent_id VARCHAR,
    title VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    n_members BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL,
    summary VARCHAR,
    rating DOUBLE,
    rating_explanation VARCHAR,
    findings STRUCT(summary VARCHAR, explanation VARCHAR, chunk_id VARCHAR, start_char BIGINT, end_char BIGINT)[],
    full_content VARCHAR,
    n_tokens BIGINT,
    context_hash VARCHAR,
    context_tokens BIGINT,
    coverage DOUBLE,
    writer VARCHAR,
    error VARCHAR,
    attempts INTEGER NOT NULL
);

CREATE TABLE attributed_members (
    community_id VARCHAR NOT NULL,
    member_id VARCHAR NOT NULL,
    level INTEGER NOT NULL
);

CREATE VIEW attributed_entities AS
WITH RECURSIVE under AS (
    SELECT community_id, member_id AS entity_id FROM attributed_members WHERE level = 1
    UNION ALL
    SELECT m.community_id, under.entity_id
    FROM attributed_members m JOIN under ON under.community_id = m.member_id)
SELECT community_id, entity_id FROM under;

CREATE TABLE chnsw (
    layer INTEGER NOT NULL,
    n_nodes BIGINT NOT NULL,
    ids_hash VARCHAR NOT NULL,
    links BLOB NOT NULL,
    down BLOB NOT NULL
);

CREATE TABLE staging.similarity_searched (entity_id VARCHAR NOT NULL, text_hash VARCHAR NOT NULL);

CREATE TABLE staging.similarity_nearest (
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    similarity DOUBLE NOT NULL
);

CREATE TABLE staging.attributed_clusters (
    attributed_level INTEGER NOT NULL,
    id VARCHAR NOT NULL,
    level INTEGER NOT NULL,
    last_level INTEGER NOT NULL,
    parent_id VARCHAR,
    members VARCHAR[] NOT NULL
);
