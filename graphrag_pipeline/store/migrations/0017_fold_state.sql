CREATE TABLE staging.folded (version VARCHAR NOT NULL, words VARCHAR NOT NULL);
CREATE TABLE staging.folded_chunks (chunk UBIGINT NOT NULL, document UBIGINT, by_rule BOOLEAN, content UBIGINT NOT NULL);
CREATE TABLE staging.folded_mentions (chunk UBIGINT NOT NULL, entity UBIGINT NOT NULL, sentence UBIGINT NOT NULL);
CREATE TABLE staging.folded_links (chunk UBIGINT NOT NULL, source UBIGINT NOT NULL, target UBIGINT NOT NULL, sentence UBIGINT NOT NULL, is_sentence BOOLEAN NOT NULL);
CREATE TABLE staging.folded_aliases (entity UBIGINT NOT NULL, canonical UBIGINT NOT NULL);
CREATE TABLE staging.folded_repeated (sentence UBIGINT NOT NULL);
CREATE TABLE staging.folded_meetings (
    id VARCHAR NOT NULL,
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    n_chunks BIGINT NOT NULL,
    weight DOUBLE NOT NULL,
    by_rule BOOLEAN NOT NULL,
    stated BOOLEAN NOT NULL
);
CREATE TABLE staging.folded_descriptions (id VARCHAR NOT NULL, input_hash VARCHAR, summary UBIGINT);
CREATE TABLE staging.folded_titles (written VARCHAR NOT NULL, kind VARCHAR NOT NULL, title VARCHAR NOT NULL, entity_id VARCHAR NOT NULL, key VARCHAR NOT NULL);
CREATE TABLE staging.folded_records (folder VARCHAR NOT NULL, content UBIGINT NOT NULL);
