-- The tables of index.duckdb. No primary keys or indexes: uniqueness is the writers' duty and is
-- checked by the asset checks, which keeps the same SQL good for DuckLake.

CREATE TABLE IF NOT EXISTS meta (key VARCHAR NOT NULL, value VARCHAR NOT NULL);
COMMENT ON TABLE meta IS 'Facts about this file, such as the schema version.';

CREATE TABLE IF NOT EXISTS batches (
    batch VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    root VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    n_added BIGINT NOT NULL,
    n_changed BIGINT NOT NULL,
    n_removed BIGINT NOT NULL,
    n_quarantined BIGINT NOT NULL
);
COMMENT ON TABLE batches IS 'One row per document batch, the partition of ingestion.';
COMMENT ON COLUMN batches.root IS 'The folder that was scanned.';
COMMENT ON COLUMN batches.status IS 'ok; partial: some of its files are quarantined; quarantined: all of them are.';

CREATE TABLE IF NOT EXISTS batch_sources (
    batch VARCHAR NOT NULL,
    uri VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    sha256 VARCHAR,
    n_bytes BIGINT,
    status VARCHAR NOT NULL,
    n_documents BIGINT NOT NULL
);
COMMENT ON TABLE batch_sources IS 'The manifest of each batch: one row per source file added, changed or removed.';
COMMENT ON COLUMN batch_sources.action IS 'add, change or remove.';
COMMENT ON COLUMN batch_sources.status IS 'ok, quarantined, removed, or superseded by a later batch.';

CREATE TABLE IF NOT EXISTS quarantine (
    batch VARCHAR NOT NULL,
    uri VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);
COMMENT ON TABLE quarantine IS 'What could not be read, and why: a whole file, or one record of it (uri#key).';

CREATE TABLE IF NOT EXISTS batch_stages (
    batch VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    finished_at TIMESTAMPTZ NOT NULL,
    seconds DOUBLE NOT NULL,
    staged BOOLEAN NOT NULL
);
COMMENT ON COLUMN batch_stages.staged IS 'Whether its rows still wait in the schema staging for the graph to take them in.';
COMMENT ON TABLE batch_stages IS 'Ledger: which stage has been done for which batch, under which configuration; written with the stage''s own rows.';

CREATE TABLE IF NOT EXISTS identifiers (kind VARCHAR NOT NULL, id VARCHAR NOT NULL, human_readable_id BIGINT NOT NULL);
COMMENT ON TABLE identifiers IS 'Small integers shown to people and models: assigned once, never reused.';

CREATE TABLE IF NOT EXISTS documents (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    uri VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    content_hash VARCHAR NOT NULL,
    n_chars BIGINT NOT NULL,
    metadata JSON NOT NULL,
    text VARCHAR NOT NULL,
    batch VARCHAR NOT NULL
);
COMMENT ON TABLE documents IS 'The current version of each source document.';
COMMENT ON COLUMN documents.uri IS 'Source file, with #key for one record of a file that holds many.';
COMMENT ON COLUMN documents.source IS 'The source file''s path.';
COMMENT ON COLUMN documents.metadata IS 'Whatever else the source said of it, as JSON.';

CREATE TABLE IF NOT EXISTS chunks (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    document_id VARCHAR NOT NULL,
    ordinal BIGINT NOT NULL,
    start_char BIGINT NOT NULL,
    end_char BIGINT NOT NULL,
    n_tokens BIGINT NOT NULL,
    text VARCHAR NOT NULL,
    batch VARCHAR NOT NULL
);
COMMENT ON TABLE chunks IS 'Text units: spans of documents.';
COMMENT ON COLUMN chunks.start_char IS 'First character of the span in documents.text, from 0; substr(text, start_char + 1, end_char - start_char) is the chunk.';
COMMENT ON COLUMN chunks.end_char IS 'End of the span, exclusive.';

CREATE TABLE IF NOT EXISTS extractions (
    chunk_id VARCHAR NOT NULL,
    extractor VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    error VARCHAR,
    n_entities BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    batch VARCHAR NOT NULL
);
COMMENT ON TABLE extractions IS 'What was tried on each chunk, and what it gave.';
COMMENT ON COLUMN extractions.status IS 'ok or failed; a failed chunk is tried again by the next run.';

CREATE TABLE IF NOT EXISTS entity_mentions (
    chunk_id VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    start_char BIGINT,
    end_char BIGINT,
    batch VARCHAR NOT NULL
);
COMMENT ON TABLE entity_mentions IS 'Entities as found in chunks, before merging. Spans are characters of the chunk''s text.';

CREATE TABLE IF NOT EXISTS relationship_mentions (
    chunk_id VARCHAR NOT NULL,
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    weight DOUBLE NOT NULL,
    start_char BIGINT,
    end_char BIGINT,
    batch VARCHAR NOT NULL
);
COMMENT ON TABLE relationship_mentions IS 'Relationships as found in chunks, before merging. Spans are characters of the chunk''s text.';

CREATE TABLE IF NOT EXISTS claims (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    chunk_id VARCHAR NOT NULL,
    subject_id VARCHAR,
    subject VARCHAR NOT NULL,
    object VARCHAR,
    type VARCHAR,
    status VARCHAR,
    start_date VARCHAR,
    end_date VARCHAR,
    description VARCHAR NOT NULL,
    source_text VARCHAR,
    batch VARCHAR NOT NULL
);
COMMENT ON TABLE claims IS 'Claims (covariates) about entities, as found in chunks.';

CREATE TABLE IF NOT EXISTS entity_aliases (
    entity_id VARCHAR NOT NULL,
    canonical_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    canonical_title VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    rule VARCHAR NOT NULL,
    confidence DOUBLE NOT NULL,
    evidence JSON NOT NULL
);
COMMENT ON TABLE entity_aliases IS 'Entities folded into another by resolution: one row each, never a chain.';
COMMENT ON COLUMN entity_aliases.method IS 'rule, model, or user (aliases.csv).';
COMMENT ON COLUMN entity_aliases.rule IS 'Why they are the same.';
COMMENT ON COLUMN entity_aliases.confidence IS 'How sure this is, up to 1.';

CREATE TABLE IF NOT EXISTS entities_kept_apart (
    one_id VARCHAR NOT NULL,
    two_id VARCHAR NOT NULL,
    one_title VARCHAR NOT NULL,
    two_title VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    evidence JSON NOT NULL
);
COMMENT ON TABLE entities_kept_apart IS 'Pairs that look alike and were not merged, the most important 1,000, for review.';

CREATE VIEW IF NOT EXISTS resolved_entity_mentions AS
SELECT m.chunk_id, coalesce(a.canonical_id, m.entity_id) AS entity_id, m.entity_id AS mentioned_id,
       m.title, m.type, m.description, m.start_char, m.end_char, m.batch
FROM entity_mentions m LEFT JOIN entity_aliases a ON a.entity_id = m.entity_id;
COMMENT ON VIEW resolved_entity_mentions IS 'Mentions under the entity they are folded into.';

CREATE VIEW IF NOT EXISTS resolved_relationship_mentions AS
SELECT chunk_id, least(one, two) AS source_id, greatest(one, two) AS target_id, description, weight,
       start_char, end_char, batch
FROM (SELECT m.*, coalesce(s.canonical_id, m.source_id) AS one,
             coalesce(t.canonical_id, m.target_id) AS two
      FROM relationship_mentions m
      LEFT JOIN entity_aliases s ON s.entity_id = m.source_id
      LEFT JOIN entity_aliases t ON t.entity_id = m.target_id)
WHERE one <> two;
COMMENT ON VIEW resolved_relationship_mentions IS 'Mentions between the entities their ends are folded into; those of an entity with itself left out.';

CREATE VIEW IF NOT EXISTS resolved_claims AS
SELECT c.* REPLACE (coalesce(a.canonical_id, c.subject_id) AS subject_id)
FROM claims c LEFT JOIN entity_aliases a ON a.entity_id = c.subject_id;
COMMENT ON VIEW resolved_claims IS 'Claims about the entity their subject is folded into.';

CREATE TABLE IF NOT EXISTS graph_batches (batch VARCHAR NOT NULL, version VARCHAR NOT NULL);
COMMENT ON TABLE graph_batches IS 'Ledger: the batches merged into the graph, and the extraction version of each.';

CREATE TABLE IF NOT EXISTS entities (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    title VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    frequency BIGINT NOT NULL,
    degree BIGINT NOT NULL,
    n_tokens BIGINT NOT NULL
);
COMMENT ON TABLE entities IS 'Nodes of the graph.';
COMMENT ON COLUMN entities.frequency IS 'Number of chunks that mention it.';
COMMENT ON COLUMN entities.degree IS 'Number of distinct neighbours.';
COMMENT ON COLUMN entities.n_tokens IS 'Tokens of title and description.';

CREATE TABLE IF NOT EXISTS relationships (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    weight DOUBLE NOT NULL,
    pmi DOUBLE NOT NULL,
    combined_degree BIGINT NOT NULL,
    n_tokens BIGINT NOT NULL
);
COMMENT ON TABLE relationships IS 'Undirected edges of the graph, each pair once.';
COMMENT ON COLUMN relationships.weight IS 'Sum over the instances that support it (1 each unless the extractor grades them).';
COMMENT ON COLUMN relationships.pmi IS 'Normalised pointwise mutual information of its ends over chunks, -1 to 1.';
COMMENT ON COLUMN relationships.n_tokens IS 'Tokens of source, target and description.';
COMMENT ON COLUMN relationships.combined_degree IS 'Degree of source plus degree of target.';

CREATE TABLE IF NOT EXISTS description_summaries (
    id VARCHAR NOT NULL,
    input_hash VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    model VARCHAR NOT NULL
);
COMMENT ON TABLE description_summaries IS 'What a model made of several descriptions of one entity or relationship.';
COMMENT ON COLUMN description_summaries.input_hash IS 'Hash of the descriptions it was made from: it serves as long as they are the same.';

CREATE TABLE IF NOT EXISTS report_failures (
    community_id VARCHAR NOT NULL,
    level INTEGER NOT NULL,
    context_hash VARCHAR NOT NULL,
    error VARCHAR NOT NULL,
    attempts INTEGER NOT NULL
);
COMMENT ON TABLE report_failures IS 'Reports a model could not write; they are tried again by the next run.';

CREATE TABLE IF NOT EXISTS entity_chunks (
    entity_id VARCHAR NOT NULL,
    chunk_id VARCHAR NOT NULL,
    n_mentions BIGINT NOT NULL,
    start_char BIGINT,
    end_char BIGINT
);
COMMENT ON TABLE entity_chunks IS 'Provenance: the chunks that mention an entity; the span is the first mention''s, in characters of the document.';

CREATE TABLE IF NOT EXISTS relationship_chunks (
    relationship_id VARCHAR NOT NULL,
    chunk_id VARCHAR NOT NULL,
    n_mentions BIGINT NOT NULL,
    start_char BIGINT,
    end_char BIGINT
);
COMMENT ON TABLE relationship_chunks IS 'Provenance: the chunks that support a relationship; the span is the first evidence''s, in characters of the document.';

CREATE TABLE IF NOT EXISTS communities (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    level INTEGER NOT NULL,
    last_level INTEGER NOT NULL,
    parent_id VARCHAR,
    title VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL
);
COMMENT ON TABLE communities IS 'Communities of hierarchical Leiden; level 0 is the root level.';
COMMENT ON COLUMN communities.last_level IS 'The deepest level this community still stands at: beyond level for a leaf that is split no further, so that every level covers every entity.';

CREATE TABLE IF NOT EXISTS community_updates (
    updated_at TIMESTAMPTZ NOT NULL,
    how VARCHAR NOT NULL,
    n_entities BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL,
    n_communities BIGINT NOT NULL,
    modularity DOUBLE,
    drift DOUBLE
);
COMMENT ON TABLE community_updates IS 'Each time communities were clustered, repaired or adopted from an import.';
COMMENT ON COLUMN community_updates.drift IS 'Share of the modularity of a fresh clustering that these communities lack.';

CREATE TABLE IF NOT EXISTS community_members (
    community_id VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    level INTEGER NOT NULL
);
COMMENT ON TABLE community_members IS 'Membership at every level: each entity once per level.';

CREATE TABLE IF NOT EXISTS community_reports (
    id VARCHAR NOT NULL,
    community_id VARCHAR NOT NULL,
    level INTEGER NOT NULL,
    title VARCHAR NOT NULL,
    summary VARCHAR NOT NULL,
    rating DOUBLE NOT NULL,
    rating_explanation VARCHAR NOT NULL,
    findings STRUCT(summary VARCHAR, explanation VARCHAR, chunk_id VARCHAR, start_char BIGINT, end_char BIGINT)[] NOT NULL,
    full_content VARCHAR NOT NULL,
    n_tokens BIGINT NOT NULL,
    context_hash VARCHAR NOT NULL,
    context_tokens BIGINT NOT NULL,
    coverage DOUBLE NOT NULL,
    writer VARCHAR NOT NULL,
    outdated DOUBLE DEFAULT 0
);
COMMENT ON TABLE community_reports IS 'One report per community of two or more entities.';
COMMENT ON COLUMN community_reports.coverage IS 'Share of the community''s relationships that the context held.';
COMMENT ON COLUMN community_reports.findings IS 'Findings, most important first; chunk_id and span (characters of the document) say where an extractive finding stands.';
COMMENT ON COLUMN community_reports.writer IS 'extractive, or the model that wrote it, or import.';
COMMENT ON COLUMN community_reports.outdated IS 'Share of the context, by tokens, that has changed since the report was written: 0, or no more than reports.max_outdated.';

CREATE TABLE IF NOT EXISTS report_elements (
    community_id VARCHAR NOT NULL,
    place INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    element_id VARCHAR NOT NULL,
    n_tokens BIGINT NOT NULL,
    text_hash VARCHAR NOT NULL,
    support BIGINT NOT NULL
);
COMMENT ON TABLE report_elements IS 'What each report was written from, in order: entities, relationships, and reports on sub-communities.';
COMMENT ON COLUMN report_elements.kind IS 'entity, relationship or report; element_id is of entities, relationships or communities.';
COMMENT ON COLUMN report_elements.support IS 'How many chunks the element rested on; of a report, the sum of its elements.';

CREATE TABLE IF NOT EXISTS llm_calls (
    id VARCHAR NOT NULL,
    called_at TIMESTAMPTZ NOT NULL,
    stage VARCHAR NOT NULL,
    batch VARCHAR,
    model VARCHAR NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    cost DOUBLE,
    seconds DOUBLE NOT NULL,
    cached BOOLEAN NOT NULL,
    error VARCHAR
);
COMMENT ON TABLE llm_calls IS 'Every model call, and what it cost in US dollars.';

CREATE TABLE IF NOT EXISTS releases (
    id VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    content_hash VARCHAR NOT NULL,
    config_hash VARCHAR NOT NULL,
    n_documents BIGINT NOT NULL,
    n_chunks BIGINT NOT NULL,
    n_entities BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL,
    n_communities BIGINT NOT NULL,
    n_reports BIGINT NOT NULL,
    modularity DOUBLE,
    embedder VARCHAR NOT NULL,
    vector_versions JSON NOT NULL
);
COMMENT ON TABLE releases IS 'Published releases, the newest last; vector_versions are the LanceDB versions that belong to it.';

-- What ingestion has made of a batch waits here until the graph takes it in, all in one
-- transaction: the tables above always belong together.
CREATE SCHEMA IF NOT EXISTS staging;
CREATE TABLE IF NOT EXISTS staging.documents AS FROM main.documents LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.chunks AS FROM main.chunks LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.extractions AS FROM main.extractions LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.entity_mentions AS FROM main.entity_mentions LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.relationship_mentions AS FROM main.relationship_mentions LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.claims AS FROM main.claims LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.lost_evidence (element_id VARCHAR NOT NULL);
COMMENT ON TABLE staging.lost_evidence IS 'Entities and relationships that lost a chunk, and communities whose reports tell of them: kept until all reports are up to date.';
