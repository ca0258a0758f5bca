-- Of releases from now on: the figures of older ones were kept nowhere.
CREATE TABLE model_quality (
    release VARCHAR NOT NULL,
    chunks BIGINT NOT NULL,
    entities_a_chunk DOUBLE NOT NULL,
    relationships_a_chunk DOUBLE NOT NULL,
    single DOUBLE NOT NULL,
    cut DOUBLE NOT NULL,
    copied DOUBLE NOT NULL,
    doubled DOUBLE NOT NULL,
    alike DOUBLE NOT NULL,
    findings BIGINT NOT NULL,
    unreferenced DOUBLE NOT NULL
);
