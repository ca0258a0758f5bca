-- What the marts read of other packages, without a row: where none offers a table, it is empty.
CREATE SCHEMA IF NOT EXISTS offered;
CREATE OR REPLACE TABLE offered.feedback (
    answer_id VARCHAR, said_by VARCHAR, said_at TIMESTAMPTZ, verdict VARCHAR, words VARCHAR,
    question VARCHAR, method VARCHAR, release VARCHAR, documents VARCHAR[], communities VARCHAR[]
);
CREATE OR REPLACE TABLE offered.versions (table_name VARCHAR, version VARCHAR);
