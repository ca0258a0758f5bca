CREATE TABLE chunk_titles (
    chunk_id VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    kind VARCHAR NOT NULL
);
