CREATE TABLE record_links (
    chunk_id VARCHAR NOT NULL,
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    names_source BOOLEAN NOT NULL,
    names_target BOOLEAN NOT NULL,
    description VARCHAR NOT NULL,
    start_char BIGINT NOT NULL,
    end_char BIGINT NOT NULL,
    batch VARCHAR NOT NULL
);
