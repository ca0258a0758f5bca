-- What resolution keeps between runs, so that it decides again only what may have changed.
CREATE TABLE staging.resolution_names (
    id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    is_open BOOLEAN NOT NULL,
    words VARCHAR NOT NULL,
    signature HUGEINT NOT NULL
);

CREATE TABLE staging.resolution_keys (id VARCHAR NOT NULL, kind VARCHAR NOT NULL, key VARCHAR NOT NULL);

CREATE TABLE staging.resolution_pairs (
    kind VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    one_id VARCHAR NOT NULL,
    two_id VARCHAR NOT NULL,
    rule VARCHAR NOT NULL,
    confidence DOUBLE NOT NULL,
    evidence VARCHAR NOT NULL,
    nearness DOUBLE NOT NULL
);

CREATE TABLE staging.resolution_refusals (
    one_id VARCHAR NOT NULL,
    two_id VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    confidence DOUBLE NOT NULL,
    evidence VARCHAR NOT NULL
);

CREATE TABLE staging.resolution_stated (chunk_id VARCHAR NOT NULL, acronym VARCHAR, text VARCHAR);

CREATE TABLE staging.resolution_endings (
    acronym VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    short VARCHAR NOT NULL,
    place BIGINT NOT NULL,
    key VARCHAR NOT NULL
);

CREATE TABLE staging.resolution_vectors (id VARCHAR NOT NULL, vector BLOB NOT NULL);
