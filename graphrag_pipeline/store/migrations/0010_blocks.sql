CREATE TABLE blocks (
    document_id VARCHAR NOT NULL,
    start_char BIGINT NOT NULL,
    end_char BIGINT NOT NULL,
    kind VARCHAR NOT NULL,
    batch VARCHAR NOT NULL
);

CREATE TABLE staging.blocks AS FROM main.blocks LIMIT 0;
