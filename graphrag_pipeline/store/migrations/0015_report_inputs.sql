CREATE TABLE staging.report_inputs (
    hierarchy VARCHAR NOT NULL,
    community_id VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    context_hash VARCHAR NOT NULL
);
