CREATE TABLE chunk_names (
    chunk_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    batch VARCHAR NOT NULL
);

CREATE TABLE staging.chunk_names AS FROM main.chunk_names LIMIT 0;
