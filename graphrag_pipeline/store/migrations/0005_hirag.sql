CREATE TABLE hirag_entities (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    layer INTEGER NOT NULL,
    title VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    degree BIGINT NOT NULL,
    n_tokens BIGINT NOT NULL
);

CREATE TABLE hirag_relationships (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    layer INTEGER NOT NULL,
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    weight DOUBLE NOT NULL,
    combined_degree BIGINT NOT NULL,
    n_tokens BIGINT NOT NULL
);

CREATE TABLE hirag_layers (
    layer INTEGER NOT NULL,
    n_nodes BIGINT NOT NULL,
    n_clusters BIGINT NOT NULL,
    n_entities BIGINT NOT NULL,
    sparsity DOUBLE NOT NULL
);

CREATE TABLE hirag_communities (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    level INTEGER NOT NULL,
    last_level INTEGER NOT NULL,
    parent_id VARCHAR,
    title VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL
);

CREATE TABLE hirag_community_members (
    community_id VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    level INTEGER NOT NULL
);

CREATE TABLE hirag_community_reports (
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

CREATE TABLE staging.hirag_mixtures (layer INTEGER NOT NULL, mixture BLOB NOT NULL, n_fitted BIGINT NOT NULL, n_changed BIGINT NOT NULL);
CREATE TABLE staging.hirag_nodes (layer INTEGER NOT NULL, node_id VARCHAR NOT NULL, text_hash VARCHAR NOT NULL);
CREATE TABLE staging.hirag_summaries (hash VARCHAR NOT NULL, summary VARCHAR NOT NULL);
CREATE TABLE staging.hirag_report_failures AS FROM main.report_failures LIMIT 0;
