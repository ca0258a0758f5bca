-- Empty until each vector table is next brought up to date, which then compares all its rows.
CREATE TABLE staging.embedded_texts (vectors VARCHAR NOT NULL, id VARCHAR NOT NULL, digest UBIGINT NOT NULL);
