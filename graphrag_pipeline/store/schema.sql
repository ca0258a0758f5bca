-- The tables of index.duckdb. No primary keys or indexes: uniqueness is the writers' duty and is
-- checked by the asset checks, which keeps the same SQL good for DuckLake.

CREATE TABLE IF NOT EXISTS meta (key VARCHAR NOT NULL, value VARCHAR NOT NULL);
COMMENT ON TABLE meta IS 'Facts about this file, such as the schema version.';
COMMENT ON COLUMN meta.key IS 'Name of the fact.';
COMMENT ON COLUMN meta.value IS 'The fact, as text.';

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
COMMENT ON TABLE batches IS 'One row per document batch, the partition of ingestion: what changed in the folder since the last look.';
COMMENT ON COLUMN batches.batch IS 'Key of the batch; keys sort by time.';
COMMENT ON COLUMN batches.created_at IS 'When the folder was looked at.';
COMMENT ON COLUMN batches.root IS 'The folder that was scanned.';
COMMENT ON COLUMN batches.status IS 'ok; partial: some of its files are quarantined; quarantined: all of them are.';
COMMENT ON COLUMN batches.n_added IS 'Files added, renamed ones included.';
COMMENT ON COLUMN batches.n_changed IS 'Files changed.';
COMMENT ON COLUMN batches.n_removed IS 'Files removed, old names included.';
COMMENT ON COLUMN batches.n_quarantined IS 'Files and records that could not be read; the table quarantine names them.';

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
COMMENT ON COLUMN batch_sources.batch IS 'The batch; joins batches.batch.';
COMMENT ON COLUMN batch_sources.uri IS 'The file; joins documents.source.';
COMMENT ON COLUMN batch_sources.action IS 'add, change, remove, rename (the old name and the new, one row each), or name: it has become the first name of its document, or no longer is it.';
COMMENT ON COLUMN batch_sources.sha256 IS 'SHA-256 of the file''s bytes; NULL if it was removed.';
COMMENT ON COLUMN batch_sources.n_bytes IS 'Size of the file in bytes; NULL if it was removed.';
COMMENT ON COLUMN batch_sources.status IS 'ok, quarantined, removed, duplicate (another name of a document) or superseded by a later batch.';
COMMENT ON COLUMN batch_sources.n_documents IS 'Documents read from it; a table or JSON file can hold many.';

CREATE TABLE IF NOT EXISTS quarantine (
    batch VARCHAR NOT NULL,
    uri VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);
COMMENT ON TABLE quarantine IS 'What could not be read, and why: a whole file, or one record of it (uri#key).';
COMMENT ON COLUMN quarantine.batch IS 'The batch; joins batches.batch.';
COMMENT ON COLUMN quarantine.uri IS 'The file, with #key for one record of it.';
COMMENT ON COLUMN quarantine.reason IS 'What is wrong with it, in words.';

CREATE TABLE IF NOT EXISTS batch_stages (
    batch VARCHAR NOT NULL,
    stage VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    finished_at TIMESTAMPTZ NOT NULL,
    seconds DOUBLE NOT NULL,
    staged BOOLEAN NOT NULL
);
COMMENT ON TABLE batch_stages IS 'Ledger: which stage has been done for which batch, under which configuration; written with the stage''s own rows.';
COMMENT ON COLUMN batch_stages.batch IS 'The batch; joins batches.batch.';
COMMENT ON COLUMN batch_stages.stage IS 'documents, chunks or extractions.';
COMMENT ON COLUMN batch_stages.version IS 'The settings and code that shape the stage''s rows, as hashes; import for what was imported.';
COMMENT ON COLUMN batch_stages.finished_at IS 'When the stage was done.';
COMMENT ON COLUMN batch_stages.seconds IS 'Seconds it took.';
COMMENT ON COLUMN batch_stages.staged IS 'Whether its rows still wait in the schema staging for the graph to take them in.';

CREATE TABLE IF NOT EXISTS identifiers (kind VARCHAR NOT NULL, id VARCHAR NOT NULL, human_readable_id BIGINT NOT NULL);
COMMENT ON TABLE identifiers IS 'Small integers shown to people and models: assigned once, never reused.';
COMMENT ON COLUMN identifiers.kind IS 'document, chunk, entity, relationship, claim or community.';
COMMENT ON COLUMN identifiers.id IS 'Id in the table of that kind.';
COMMENT ON COLUMN identifiers.human_readable_id IS 'The small integer, from 0 within each kind.';

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
    batch VARCHAR NOT NULL,
    language VARCHAR DEFAULT '',
    page_starts BIGINT[]
);
COMMENT ON TABLE documents IS 'The current version of each source document.';
COMMENT ON COLUMN documents.id IS '32 hexadecimal digits, made from the uri under which its content was first seen.';
COMMENT ON COLUMN documents.human_readable_id IS 'Small integer shown to people and models; never reused.';
COMMENT ON COLUMN documents.uri IS 'Source file, with #key for one record of a file that holds many; the first of its names, where document_names has more.';
COMMENT ON COLUMN documents.source IS 'The source file''s path.';
COMMENT ON COLUMN documents.title IS 'Its title, as found in the document, else the file''s name.';
COMMENT ON COLUMN documents.content_hash IS 'Hash of title, metadata and text: another hash is another version.';
COMMENT ON COLUMN documents.n_chars IS 'Length of text in characters.';
COMMENT ON COLUMN documents.metadata IS 'Whatever else the source said of it, as JSON.';
COMMENT ON COLUMN documents.text IS 'The cleaned text; every span of characters in this file counts in it.';
COMMENT ON COLUMN documents.batch IS 'The batch that brought this version; joins batches.batch.';
COMMENT ON COLUMN documents.language IS 'The language that it begins in (ISO 639-1), told by script and function words; empty where they do not tell.';
COMMENT ON COLUMN documents.page_starts IS 'First characters of its pages in text, in order; null where it has no pages.';

CREATE OR REPLACE VIEW source_names AS
SELECT uri, coalesce(min(uri) FILTER (batch_sources.status <> 'duplicate') OVER names,
                     min(uri) OVER names) AS first_uri
FROM (SELECT uri, max(batch) AS batch FROM batch_sources WHERE status <> 'superseded' GROUP BY uri)
JOIN batch_sources USING (uri, batch) JOIN batches USING (batch)
WHERE batch_sources.status NOT IN ('removed', 'superseded')
WINDOW names AS (
    PARTITION BY sha256, lower(regexp_extract(uri, '\.[^./]*$')),
    CASE WHEN sha256 IS NULL OR starts_with(root, 'import:')
           OR regexp_matches(uri, '^https?://', 'i') THEN uri END);
COMMENT ON VIEW source_names IS 'The files there are. Those of the same bytes and the same ending are names of one document, which is read by the first.';
COMMENT ON COLUMN source_names.uri IS 'The file.';
COMMENT ON COLUMN source_names.first_uri IS 'The first name of its document; joins documents.source.';

CREATE OR REPLACE VIEW document_names AS
SELECT d.id AS document_id, n.uri || substr(d.uri, length(d.source) + 1) AS uri, n.uri AS source,
       n.uri = d.source AS is_first
FROM documents d JOIN source_names n ON n.first_uri = d.source;
COMMENT ON VIEW document_names IS 'All names of each document: one row each. A file that is a copy of another is a further name of its document.';
COMMENT ON COLUMN document_names.document_id IS 'The document; joins documents.id.';
COMMENT ON COLUMN document_names.uri IS 'The name: a source file, with #key for one record of a file that holds many.';
COMMENT ON COLUMN document_names.source IS 'The file''s path.';
COMMENT ON COLUMN document_names.is_first IS 'Whether it is the name in documents.uri: the first in the order of characters, that of a link only if all are links.';

CREATE TABLE IF NOT EXISTS document_labels (document_id VARCHAR NOT NULL, labels VARCHAR[] NOT NULL);
COMMENT ON TABLE document_labels IS 'Who may read each document: a row for each demand, all of which must be met. A document without one is nobody''s. Empty unless access.mode is filtered.';
COMMENT ON COLUMN document_labels.document_id IS 'The document; joins documents.id.';
COMMENT ON COLUMN document_labels.labels IS 'The labels of which a reader must have one.';

CREATE TABLE IF NOT EXISTS written_from (
    kind VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    document_id VARCHAR NOT NULL
);
COMMENT ON TABLE written_from IS 'The documents that each report and summary was written from, when it was: a question limited by a filter shows it where all of them match. Empty unless access.mode is filtered.';
COMMENT ON COLUMN written_from.kind IS 'The hierarchy of a report (graph, hirag, attributed), or raptor node, or hirag entity.';
COMMENT ON COLUMN written_from.id IS 'Of a report its community; joins hierarchy_communities.id, raptor_nodes.id or hirag_entities.id.';
COMMENT ON COLUMN written_from.version IS 'Which text of it: of a report its context_hash.';
COMMENT ON COLUMN written_from.document_id IS 'A document it rests on; joins documents.id.';

CREATE TABLE IF NOT EXISTS blocks (
    document_id VARCHAR NOT NULL,
    start_char BIGINT NOT NULL,
    end_char BIGINT NOT NULL,
    kind VARCHAR NOT NULL,
    batch VARCHAR NOT NULL
);
COMMENT ON TABLE blocks IS 'What of each document is not running prose. Blocks of one document do not overlap; what none covers is prose.';
COMMENT ON COLUMN blocks.document_id IS 'The document; joins documents.id.';
COMMENT ON COLUMN blocks.start_char IS 'First character in documents.text, from 0.';
COMMENT ON COLUMN blocks.end_char IS 'End of the block, exclusive.';
COMMENT ON COLUMN blocks.kind IS 'heading, code, table or list; of a record, title, field (names something), key (of another record, perhaps) or value; fact, a field of what a document is about.';
COMMENT ON COLUMN blocks.batch IS 'The batch that brought the document; joins batches.batch.';

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
COMMENT ON COLUMN chunks.id IS '32 hexadecimal digits, made from document, span and text.';
COMMENT ON COLUMN chunks.human_readable_id IS 'Small integer shown to people and models; never reused.';
COMMENT ON COLUMN chunks.document_id IS 'The document it is cut from; joins documents.id.';
COMMENT ON COLUMN chunks.ordinal IS 'Its place among the chunks of its document, from 0.';
COMMENT ON COLUMN chunks.start_char IS 'First character of the span in documents.text, from 0; substr(text, start_char + 1, end_char - start_char) is the chunk.';
COMMENT ON COLUMN chunks.end_char IS 'End of the span, exclusive.';
COMMENT ON COLUMN chunks.n_tokens IS 'Length in tokens.';
COMMENT ON COLUMN chunks.text IS 'The text of the span; consecutive chunks overlap.';
COMMENT ON COLUMN chunks.batch IS 'The batch that brought it; joins batches.batch.';

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
    batch VARCHAR NOT NULL,
    tried_version VARCHAR,
    attempts BIGINT
);
COMMENT ON TABLE extractions IS 'What was tried on each chunk, and what it gave.';
COMMENT ON COLUMN extractions.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN extractions.extractor IS 'nlp (by rule), llm (a model) or import.';
COMMENT ON COLUMN extractions.version IS 'Hash of the settings, prompts and code that shape what is found.';
COMMENT ON COLUMN extractions.status IS 'ok, failed, cut (what came before the answer was cut off) or outdated (the last attempt failed, an earlier extraction stands); all but ok are tried again.';
COMMENT ON COLUMN extractions.error IS 'Why the last attempt failed; NULL if it did not.';
COMMENT ON COLUMN extractions.n_entities IS 'Mentions of entities found.';
COMMENT ON COLUMN extractions.n_relationships IS 'Mentions of relationships found.';
COMMENT ON COLUMN extractions.prompt_tokens IS 'Tokens sent to the model, gleaning included; 0 without a model.';
COMMENT ON COLUMN extractions.completion_tokens IS 'Tokens the model answered with.';
COMMENT ON COLUMN extractions.batch IS 'The batch of the chunk; joins batches.batch.';
COMMENT ON COLUMN extractions.tried_version IS 'The version of the last attempt: another one where an earlier extraction stands.';
COMMENT ON COLUMN extractions.attempts IS 'How often it was tried under that version; an outage of the model does not count.';

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
COMMENT ON COLUMN entity_mentions.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN entity_mentions.entity_id IS 'The entity before aliases are resolved; joins entities.id or entity_aliases.entity_id. The view resolved_entity_mentions has it resolved.';
COMMENT ON COLUMN entity_mentions.title IS 'The name as found.';
COMMENT ON COLUMN entity_mentions.type IS 'The type as found.';
COMMENT ON COLUMN entity_mentions.description IS 'What is said of it there.';
COMMENT ON COLUMN entity_mentions.start_char IS 'First character in chunks.text, from 0; NULL if not known.';
COMMENT ON COLUMN entity_mentions.end_char IS 'End of the span, exclusive; NULL if not known.';
COMMENT ON COLUMN entity_mentions.batch IS 'The batch of the chunk; joins batches.batch.';

CREATE TABLE IF NOT EXISTS relationship_mentions (
    chunk_id VARCHAR NOT NULL,
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    weight DOUBLE NOT NULL,
    start_char BIGINT,
    end_char BIGINT,
    batch VARCHAR NOT NULL,
    type VARCHAR DEFAULT ''
);
COMMENT ON TABLE relationship_mentions IS 'Relationships as found in chunks, before merging. Spans are characters of the chunk''s text.';
COMMENT ON COLUMN relationship_mentions.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN relationship_mentions.source_id IS 'One end before aliases are resolved; joins entities.id or entity_aliases.entity_id.';
COMMENT ON COLUMN relationship_mentions.target_id IS 'The other end, likewise.';
COMMENT ON COLUMN relationship_mentions.description IS 'What is said to relate them; by rule, the sentence they share.';
COMMENT ON COLUMN relationship_mentions.weight IS 'What the instance counts: 1, unless an import says otherwise.';
COMMENT ON COLUMN relationship_mentions.start_char IS 'First character of the evidence in chunks.text, from 0; NULL if not known.';
COMMENT ON COLUMN relationship_mentions.end_char IS 'End of that span, exclusive; NULL if not known.';
COMMENT ON COLUMN relationship_mentions.batch IS 'The batch of the chunk; joins batches.batch.';
COMMENT ON COLUMN relationship_mentions.type IS 'What kind of relationship it is, where that is said: the field of a record, the predicate of an imported triple; else empty.';

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
COMMENT ON COLUMN claims.id IS '32 hexadecimal digits, made from chunk and claim.';
COMMENT ON COLUMN claims.human_readable_id IS 'Small integer shown to people and models; never reused.';
COMMENT ON COLUMN claims.chunk_id IS 'The chunk that claims it; joins chunks.id.';
COMMENT ON COLUMN claims.subject_id IS 'Whom it is about, before aliases are resolved; joins entities.id; NULL if the subject has no entity. The view resolved_claims has it resolved.';
COMMENT ON COLUMN claims.subject IS 'Whom or what it is about, as written.';
COMMENT ON COLUMN claims.object IS 'Whom or what else it concerns, as written; NULL if nobody.';
COMMENT ON COLUMN claims.type IS 'What kind of claim it is.';
COMMENT ON COLUMN claims.status IS 'TRUE, FALSE or SUSPECTED, as the text has it.';
COMMENT ON COLUMN claims.start_date IS 'When it began to hold, ISO 8601; NULL if the text does not say.';
COMMENT ON COLUMN claims.end_date IS 'When it ceased to hold, ISO 8601; NULL if the text does not say.';
COMMENT ON COLUMN claims.description IS 'The claim in words.';
COMMENT ON COLUMN claims.source_text IS 'The words of the text that it rests on.';
COMMENT ON COLUMN claims.batch IS 'The batch of the chunk; joins batches.batch.';

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
COMMENT ON COLUMN entity_aliases.entity_id IS 'The entity that was folded into another; no longer in entities.';
COMMENT ON COLUMN entity_aliases.canonical_id IS 'The entity it was folded into; joins entities.id, unless both together were too rare to become one.';
COMMENT ON COLUMN entity_aliases.title IS 'Title it had.';
COMMENT ON COLUMN entity_aliases.canonical_title IS 'Title of the entity it was folded into, when that was decided.';
COMMENT ON COLUMN entity_aliases.type IS 'Type it had.';
COMMENT ON COLUMN entity_aliases.method IS 'rule, model, or user (aliases.csv).';
COMMENT ON COLUMN entity_aliases.rule IS 'Why they are the same.';
COMMENT ON COLUMN entity_aliases.confidence IS 'How sure this is, up to 1.';
COMMENT ON COLUMN entity_aliases.evidence IS 'What the decision rests on, as JSON: shared documents, similarities, the line of aliases.csv.';

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
COMMENT ON COLUMN entities_kept_apart.one_id IS 'One of the pair; joins entities.id, unless it was too rare to become one.';
COMMENT ON COLUMN entities_kept_apart.two_id IS 'The other of the pair, likewise.';
COMMENT ON COLUMN entities_kept_apart.one_title IS 'Title of the one.';
COMMENT ON COLUMN entities_kept_apart.two_title IS 'Title of the other.';
COMMENT ON COLUMN entities_kept_apart.method IS 'rule, model, or user (aliases.csv).';
COMMENT ON COLUMN entities_kept_apart.reason IS 'Why they were not merged.';
COMMENT ON COLUMN entities_kept_apart.evidence IS 'What the decision rests on, as JSON.';

CREATE TABLE IF NOT EXISTS record_links (
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
    batch VARCHAR NOT NULL,
    type VARCHAR DEFAULT ''
);
COMMENT ON TABLE record_links IS 'Keys in records that are those of other records (foreign keys), looked up among all documents whenever the graph is folded.';
COMMENT ON COLUMN record_links.chunk_id IS 'The chunk that holds the key; joins chunks.id.';
COMMENT ON COLUMN record_links.source_id IS 'The entity of the record that holds the key, before aliases are resolved.';
COMMENT ON COLUMN record_links.target_id IS 'The entity of the record that the key is of, likewise.';
COMMENT ON COLUMN record_links.source IS 'What the record that holds the key is called.';
COMMENT ON COLUMN record_links.target IS 'What the record that the key is of is called.';
COMMENT ON COLUMN record_links.names_source IS 'Whether the source, too, is known by a key alone, as in a table that joins two others.';
COMMENT ON COLUMN record_links.names_target IS 'Whether the target is known by its key: else the record names it.';
COMMENT ON COLUMN record_links.description IS 'What relates them: source, field, target.';
COMMENT ON COLUMN record_links.start_char IS 'First character of the field in chunks.text, from 0.';
COMMENT ON COLUMN record_links.end_char IS 'End of the field, exclusive.';
COMMENT ON COLUMN record_links.batch IS 'The batch of the chunk; joins batches.batch.';
COMMENT ON COLUMN record_links.type IS 'What kind of relationship it is: the name of the field, without what only says that it is a key.';

CREATE OR REPLACE VIEW resolved_entity_mentions AS
SELECT m.chunk_id, coalesce(a.canonical_id, m.entity_id) AS entity_id, m.entity_id AS mentioned_id,
       m.title, m.type, m.description, m.start_char, m.end_char, m.batch
FROM (SELECT chunk_id, entity_id, title, type, description, start_char, end_char, batch
      FROM entity_mentions
      UNION ALL
      FROM (SELECT chunk_id, target_id, target, 'OTHER', description, start_char, end_char, batch
            FROM record_links WHERE names_target
            UNION ALL
            SELECT chunk_id, source_id, source, 'OTHER', description, start_char, end_char, batch
            FROM record_links WHERE names_source)) m
LEFT JOIN entity_aliases a ON a.entity_id = m.entity_id;
COMMENT ON VIEW resolved_entity_mentions IS 'Mentions under the entity they are folded into, those by a foreign key (record_links) among them.';
COMMENT ON COLUMN resolved_entity_mentions.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN resolved_entity_mentions.title IS 'The name as found.';
COMMENT ON COLUMN resolved_entity_mentions.type IS 'The type as found.';
COMMENT ON COLUMN resolved_entity_mentions.description IS 'What is said of it there.';
COMMENT ON COLUMN resolved_entity_mentions.start_char IS 'First character in chunks.text, from 0; NULL if not known.';
COMMENT ON COLUMN resolved_entity_mentions.end_char IS 'End of the span, exclusive; NULL if not known.';
COMMENT ON COLUMN resolved_entity_mentions.batch IS 'The batch of the chunk; joins batches.batch.';
COMMENT ON COLUMN resolved_entity_mentions.entity_id IS 'The entity it counts for; joins entities.id. What was found once only by rule may have no row there.';
COMMENT ON COLUMN resolved_entity_mentions.mentioned_id IS 'The entity before aliases were resolved.';

CREATE OR REPLACE VIEW resolved_relationship_mentions AS
SELECT chunk_id, least(one, two) AS source_id, greatest(one, two) AS target_id, description, weight,
       start_char, end_char, batch, type
FROM (SELECT m.*, coalesce(s.canonical_id, m.source_id) AS one,
             coalesce(t.canonical_id, m.target_id) AS two
      FROM (SELECT chunk_id, source_id, target_id, description, weight, start_char, end_char, batch,
                   type
            FROM relationship_mentions
            UNION ALL
            SELECT chunk_id, source_id, target_id, description, 1.0, start_char, end_char, batch,
                   type
            FROM record_links) m
      LEFT JOIN entity_aliases s ON s.entity_id = m.source_id
      LEFT JOIN entity_aliases t ON t.entity_id = m.target_id)
WHERE one <> two;
COMMENT ON VIEW resolved_relationship_mentions IS 'Mentions between the entities their ends are folded into; those of an entity with itself left out.';
COMMENT ON COLUMN resolved_relationship_mentions.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN resolved_relationship_mentions.description IS 'What is said to relate them; by rule, the sentence they share.';
COMMENT ON COLUMN resolved_relationship_mentions.weight IS 'What the instance counts: 1, unless an import says otherwise.';
COMMENT ON COLUMN resolved_relationship_mentions.start_char IS 'First character of the evidence in chunks.text, from 0; NULL if not known.';
COMMENT ON COLUMN resolved_relationship_mentions.end_char IS 'End of that span, exclusive; NULL if not known.';
COMMENT ON COLUMN resolved_relationship_mentions.batch IS 'The batch of the chunk; joins batches.batch.';
COMMENT ON COLUMN resolved_relationship_mentions.source_id IS 'The end with the smaller id; joins entities.id.';
COMMENT ON COLUMN resolved_relationship_mentions.target_id IS 'The end with the larger id; joins entities.id.';

CREATE OR REPLACE VIEW resolved_claims AS
SELECT c.* REPLACE (coalesce(a.canonical_id, c.subject_id) AS subject_id)
FROM claims c LEFT JOIN entity_aliases a ON a.entity_id = c.subject_id;
COMMENT ON VIEW resolved_claims IS 'Claims about the entity their subject is folded into.';
COMMENT ON COLUMN resolved_claims.id IS 'The claim; joins claims.id.';
COMMENT ON COLUMN resolved_claims.subject_id IS 'Whom it is about; joins entities.id.';

CREATE TABLE IF NOT EXISTS graph_batches (batch VARCHAR NOT NULL, version VARCHAR NOT NULL);
COMMENT ON TABLE graph_batches IS 'Ledger: the batches merged into the graph, and the extraction version of each.';
COMMENT ON COLUMN graph_batches.batch IS 'The batch; joins batches.batch.';
COMMENT ON COLUMN graph_batches.version IS 'Version of its extractions that the graph holds.';

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
COMMENT ON COLUMN entities.id IS '32 hexadecimal digits, made from the normalised title.';
COMMENT ON COLUMN entities.human_readable_id IS 'Small integer shown to people and models; never reused.';
COMMENT ON COLUMN entities.title IS 'Its name, in the fullest form found.';
COMMENT ON COLUMN entities.type IS 'The type most of its mentions have.';
COMMENT ON COLUMN entities.description IS 'What its mentions say of it, merged.';
COMMENT ON COLUMN entities.frequency IS 'Number of chunks that mention it.';
COMMENT ON COLUMN entities.degree IS 'Number of distinct neighbours in relationships.';
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
    n_tokens BIGINT NOT NULL,
    type VARCHAR DEFAULT ''
);
COMMENT ON TABLE relationships IS 'Undirected edges of the graph, each pair once.';
COMMENT ON COLUMN relationships.id IS '32 hexadecimal digits, made from the ids of both ends.';
COMMENT ON COLUMN relationships.human_readable_id IS 'Small integer shown to people and models; never reused.';
COMMENT ON COLUMN relationships.source_id IS 'One end; joins entities.id. Which end is the source means nothing.';
COMMENT ON COLUMN relationships.target_id IS 'The other end; joins entities.id.';
COMMENT ON COLUMN relationships.source IS 'Title of the one end.';
COMMENT ON COLUMN relationships.target IS 'Title of the other end.';
COMMENT ON COLUMN relationships.description IS 'What its mentions say of it, merged.';
COMMENT ON COLUMN relationships.weight IS 'Sum over the instances that support it (1 each, unless an import says otherwise); a sentence that three documents or more have in the same words is one.';
COMMENT ON COLUMN relationships.pmi IS 'Normalised pointwise mutual information of its ends over chunks, -1 to 1.';
COMMENT ON COLUMN relationships.combined_degree IS 'Degree of source plus degree of target.';
COMMENT ON COLUMN relationships.n_tokens IS 'Tokens of source, target and description.';
COMMENT ON COLUMN relationships.type IS 'What kind of relationship it is, where a mention says so: the field of a record that names the other end, the predicate of an imported triple; several by frequency, with "; " between. Empty where only a text relates both.';

CREATE TABLE IF NOT EXISTS description_summaries (
    id VARCHAR NOT NULL,
    input_hash VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    model VARCHAR NOT NULL
);
COMMENT ON TABLE description_summaries IS 'What a model made of several descriptions of one entity or relationship.';
COMMENT ON COLUMN description_summaries.id IS 'The entity or relationship; joins entities.id or relationships.id.';
COMMENT ON COLUMN description_summaries.input_hash IS 'Hash of the descriptions it was made from: it serves as long as they are the same.';
COMMENT ON COLUMN description_summaries.description IS 'The summary.';
COMMENT ON COLUMN description_summaries.model IS 'The model that wrote it.';

CREATE TABLE IF NOT EXISTS chunk_names (
    chunk_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    batch VARCHAR NOT NULL
);
COMMENT ON TABLE chunk_names IS 'Names that rules find in chunks whose entities a model or an import gave: the method ppr walks over them, too.';
COMMENT ON COLUMN chunk_names.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN chunk_names.title IS 'The name as the text first spells it.';
COMMENT ON COLUMN chunk_names.entity_id IS 'The id that an entity of this title has; not all are entities.';
COMMENT ON COLUMN chunk_names.batch IS 'The batch that brought the chunk.';

CREATE TABLE IF NOT EXISTS chunk_titles (
    chunk_id VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    kind VARCHAR NOT NULL
);
COMMENT ON TABLE chunk_titles IS 'What each chunk is about: the title of its document and the headings of its sections, names that the method ppr walks over. One row for each way to call it.';
COMMENT ON COLUMN chunk_titles.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN chunk_titles.entity_id IS 'The id that an entity so called has; not all are entities.';
COMMENT ON COLUMN chunk_titles.title IS 'The title, without the marks of a heading.';
COMMENT ON COLUMN chunk_titles.key IS 'What a question may call it: without case and accents, whole or without a bracketed ending or what follows the last comma.';
COMMENT ON COLUMN chunk_titles.kind IS 'document, or section: a heading that no other document has.';

CREATE TABLE IF NOT EXISTS entity_chunks (
    entity_id VARCHAR NOT NULL,
    chunk_id VARCHAR NOT NULL,
    n_mentions BIGINT NOT NULL,
    start_char BIGINT,
    end_char BIGINT
);
COMMENT ON TABLE entity_chunks IS 'Provenance: the chunks that mention an entity; the span is the first mention''s, in characters of the document.';
COMMENT ON COLUMN entity_chunks.entity_id IS 'The entity; joins entities.id.';
COMMENT ON COLUMN entity_chunks.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN entity_chunks.n_mentions IS 'How often the chunk names it.';
COMMENT ON COLUMN entity_chunks.start_char IS 'First character of the first mention in documents.text, from 0; NULL if not known.';
COMMENT ON COLUMN entity_chunks.end_char IS 'End of that span, exclusive; NULL if not known.';

CREATE TABLE IF NOT EXISTS relationship_chunks (
    relationship_id VARCHAR NOT NULL,
    chunk_id VARCHAR NOT NULL,
    n_mentions BIGINT NOT NULL,
    start_char BIGINT,
    end_char BIGINT
);
COMMENT ON TABLE relationship_chunks IS 'Provenance: the chunks that support a relationship; the span is the first evidence''s, in characters of the document.';
COMMENT ON COLUMN relationship_chunks.relationship_id IS 'The relationship; joins relationships.id.';
COMMENT ON COLUMN relationship_chunks.chunk_id IS 'The chunk; joins chunks.id.';
COMMENT ON COLUMN relationship_chunks.n_mentions IS 'How often the chunk supports it.';
COMMENT ON COLUMN relationship_chunks.start_char IS 'First character of the first evidence in documents.text, from 0; NULL if not known.';
COMMENT ON COLUMN relationship_chunks.end_char IS 'End of that span, exclusive; NULL if not known.';

CREATE OR REPLACE VIEW facts AS
SELECT left(sha256('fact' || source_id || target_id || lower(said)), 32) AS id, source_id, target_id,
       min(said) AS text, count(DISTINCT chunk_id) AS n_chunks, count(*) AS n_mentions
FROM (SELECT m.chunk_id, m.source_id, m.target_id,
             CASE WHEN x.extractor IS DISTINCT FROM 'nlp'
                   AND contains(lower(m.description), lower(s.title))
                   AND contains(lower(m.description), lower(t.title)) THEN m.description
                  ELSE s.title || ', ' || t.title || ': ' || m.description END AS said
      FROM resolved_relationship_mentions m
      SEMI JOIN relationships r ON r.source_id = m.source_id AND r.target_id = m.target_id
      JOIN entities s ON s.id = m.source_id JOIN entities t ON t.id = m.target_id
      LEFT JOIN extractions x ON x.chunk_id = m.chunk_id)
GROUP BY source_id, target_id, lower(said);
COMMENT ON VIEW facts IS 'What single texts say of two entities, each statement once: an imported triple, a model''s description of a relationship, or, by rule, the pair and the sentence it shares.';
COMMENT ON COLUMN facts.id IS '32 hexadecimal digits, made from both ends and the text without regard to case.';
COMMENT ON COLUMN facts.source_id IS 'The end with the smaller id; joins entities.id.';
COMMENT ON COLUMN facts.target_id IS 'The end with the larger id; joins entities.id.';
COMMENT ON COLUMN facts.text IS 'The statement; both ends are named before it where it does not name them itself, and always where it was found by rule.';
COMMENT ON COLUMN facts.n_chunks IS 'How many chunks say so.';
COMMENT ON COLUMN facts.n_mentions IS 'How often it is said.';

CREATE TABLE IF NOT EXISTS synonym_edges (
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    similarity DOUBLE NOT NULL
);
COMMENT ON TABLE synonym_edges IS 'Entities whose titles are alike by vector: of each entity the 100 nearest. Empty unless embeddings.synonyms is set.';
COMMENT ON COLUMN synonym_edges.source_id IS 'The entity; joins entities.id.';
COMMENT ON COLUMN synonym_edges.target_id IS 'One of those nearest to it; joins entities.id. The pair stands here the other way round too, unless that one has 100 nearer.';
COMMENT ON COLUMN synonym_edges.similarity IS 'Cosine of the vectors of both titles, at least embeddings.synonym_similarity.';

CREATE TABLE IF NOT EXISTS raptor_nodes (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    layer INTEGER NOT NULL,
    text VARCHAR NOT NULL,
    n_tokens BIGINT NOT NULL,
    n_children BIGINT NOT NULL,
    written_by VARCHAR NOT NULL
);
COMMENT ON TABLE raptor_nodes IS 'The RAPTOR tree: summaries of like chunks, and of like summaries above them. Empty unless hierarchies.raptor is set.';
COMMENT ON COLUMN raptor_nodes.id IS '32 hexadecimal digits, made from the layer and the texts that are summarised.';
COMMENT ON COLUMN raptor_nodes.human_readable_id IS 'Small integer shown to people and models; never reused.';
COMMENT ON COLUMN raptor_nodes.layer IS '1 for a summary of chunks, 2 for one of such summaries, and so on.';
COMMENT ON COLUMN raptor_nodes.text IS 'The summary.';
COMMENT ON COLUMN raptor_nodes.n_tokens IS 'Its length in tokens.';
COMMENT ON COLUMN raptor_nodes.n_children IS 'How many chunks or summaries it is made from.';
COMMENT ON COLUMN raptor_nodes.written_by IS 'The model that wrote it, or extractive.';

CREATE TABLE IF NOT EXISTS raptor_edges (node_id VARCHAR NOT NULL, child_id VARCHAR NOT NULL);
COMMENT ON TABLE raptor_edges IS 'What each summary of the RAPTOR tree is made from; a chunk or summary can be part of several.';
COMMENT ON COLUMN raptor_edges.node_id IS 'The summary; joins raptor_nodes.id.';
COMMENT ON COLUMN raptor_edges.child_id IS 'What it is made from: of layer 1 joins chunks.id, above raptor_nodes.id of the layer below.';

-- Communities, members and reports of all hierarchies: store/hierarchy.py says which there are. The
-- views below show each hierarchy under names of its own.
CREATE TABLE IF NOT EXISTS hierarchy_communities (
    hierarchy VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    level INTEGER NOT NULL,
    last_level INTEGER NOT NULL,
    parent_id VARCHAR,
    title VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    n_relationships BIGINT NOT NULL
);
COMMENT ON TABLE hierarchy_communities IS 'Communities of every hierarchy; the views communities, hirag_communities and attributed_communities have one hierarchy each.';
COMMENT ON COLUMN hierarchy_communities.hierarchy IS 'graph: hierarchical Leiden over the graph; hirag: over the graph of all layers (HiRAG); attributed: of what is linked and alike (ArchRAG).';
COMMENT ON COLUMN hierarchy_communities.id IS '32 hexadecimal digits; kept as long as most of its members stay together. Unique in its hierarchy.';
COMMENT ON COLUMN hierarchy_communities.human_readable_id IS 'Small integer shown to people and models; never reused.';
COMMENT ON COLUMN hierarchy_communities.level IS 'The level it first stands at, 0 = root; of attributed ones 1 = of entities, and parents stand higher.';
COMMENT ON COLUMN hierarchy_communities.last_level IS 'The last level this community still stands at: beyond level where it is split no further, so that every level covers every entity.';
COMMENT ON COLUMN hierarchy_communities.parent_id IS 'The community of this hierarchy that it is a part of; NULL at the root.';
COMMENT ON COLUMN hierarchy_communities.title IS 'Titles of its most important entities, or as imported; its report has a title of its own.';
COMMENT ON COLUMN hierarchy_communities.size IS 'Number of entities in it.';
COMMENT ON COLUMN hierarchy_communities.n_relationships IS 'Number of relationships with both ends in it.';

CREATE TABLE IF NOT EXISTS hierarchy_members (
    hierarchy VARCHAR NOT NULL,
    community_id VARCHAR NOT NULL,
    entity_id VARCHAR NOT NULL,
    level INTEGER NOT NULL
);
COMMENT ON TABLE hierarchy_members IS 'Membership at every level of every hierarchy: each entity once per level.';
COMMENT ON COLUMN hierarchy_members.hierarchy IS 'The hierarchy, as in hierarchy_communities.';
COMMENT ON COLUMN hierarchy_members.community_id IS 'The community; joins hierarchy_communities.id of the same hierarchy.';
COMMENT ON COLUMN hierarchy_members.entity_id IS 'The entity; joins entities.id, in the hierarchy hirag also hirag_entities.id.';
COMMENT ON COLUMN hierarchy_members.level IS 'The level this holds at; a community that is not split has rows at all levels that it stands at.';

CREATE TABLE IF NOT EXISTS hierarchy_reports (
    hierarchy VARCHAR NOT NULL,
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
COMMENT ON TABLE hierarchy_reports IS 'One report per community of two or more members, of every hierarchy.';
COMMENT ON COLUMN hierarchy_reports.hierarchy IS 'The hierarchy, as in hierarchy_communities.';
COMMENT ON COLUMN hierarchy_reports.id IS '32 hexadecimal digits, made from the community''s id.';
COMMENT ON COLUMN hierarchy_reports.community_id IS 'The community; joins hierarchy_communities.id of the same hierarchy.';
COMMENT ON COLUMN hierarchy_reports.level IS 'Level of the community.';
COMMENT ON COLUMN hierarchy_reports.title IS 'What the community is about.';
COMMENT ON COLUMN hierarchy_reports.summary IS 'The report in a few sentences.';
COMMENT ON COLUMN hierarchy_reports.rating IS 'How much it matters, 0 to 10.';
COMMENT ON COLUMN hierarchy_reports.rating_explanation IS 'Why it has that rating.';
COMMENT ON COLUMN hierarchy_reports.findings IS 'Findings, most important first; chunk_id and span (characters of the document) say where an extractive finding stands.';
COMMENT ON COLUMN hierarchy_reports.full_content IS 'The whole report as Markdown.';
COMMENT ON COLUMN hierarchy_reports.n_tokens IS 'Tokens of full_content.';
COMMENT ON COLUMN hierarchy_reports.context_hash IS 'Hash of what it was written from: as long as it is the same, the report stays.';
COMMENT ON COLUMN hierarchy_reports.context_tokens IS 'Tokens of what it was written from.';
COMMENT ON COLUMN hierarchy_reports.coverage IS 'Share of the community''s relationships that the context held; of an attributed one, with members that have none.';
COMMENT ON COLUMN hierarchy_reports.writer IS 'extractive, or the model that wrote it, or import.';
COMMENT ON COLUMN hierarchy_reports.outdated IS 'Share of the context, by tokens, that has changed since the report was written: 0, or in the hierarchy graph no more than reports.max_outdated.';

CREATE TABLE IF NOT EXISTS hierarchy_failures (
    hierarchy VARCHAR NOT NULL,
    community_id VARCHAR NOT NULL,
    level INTEGER NOT NULL,
    context_hash VARCHAR NOT NULL,
    error VARCHAR NOT NULL,
    attempts INTEGER NOT NULL
);
COMMENT ON TABLE hierarchy_failures IS 'Reports that could not be written, of every hierarchy; they are tried again by the next run.';
COMMENT ON COLUMN hierarchy_failures.hierarchy IS 'The hierarchy, as in hierarchy_communities.';
COMMENT ON COLUMN hierarchy_failures.community_id IS 'The community; joins hierarchy_communities.id of the same hierarchy.';
COMMENT ON COLUMN hierarchy_failures.level IS 'Level of the community.';
COMMENT ON COLUMN hierarchy_failures.context_hash IS 'Hash of what the report was to be written from.';
COMMENT ON COLUMN hierarchy_failures.error IS 'What went wrong.';
COMMENT ON COLUMN hierarchy_failures.attempts IS 'How often it was tried with this context.';

CREATE OR REPLACE VIEW communities AS
SELECT * EXCLUDE (hierarchy) FROM hierarchy_communities WHERE hierarchy = 'graph';
COMMENT ON VIEW communities IS 'Communities of hierarchical Leiden; level 0 is the root level.';
COMMENT ON COLUMN communities.level IS 'The level it first stands at, 0 = root.';
COMMENT ON COLUMN communities.parent_id IS 'The community it is a part of; joins communities.id; NULL at the root level.';

CREATE OR REPLACE VIEW community_members AS
SELECT * EXCLUDE (hierarchy) FROM hierarchy_members WHERE hierarchy = 'graph';
COMMENT ON VIEW community_members IS 'Membership at every level: each entity once per level.';
COMMENT ON COLUMN community_members.community_id IS 'The community; joins communities.id.';
COMMENT ON COLUMN community_members.entity_id IS 'The entity; joins entities.id.';

CREATE OR REPLACE VIEW community_reports AS
SELECT * EXCLUDE (hierarchy) FROM hierarchy_reports WHERE hierarchy = 'graph';
COMMENT ON VIEW community_reports IS 'One report per community of two or more entities.';
COMMENT ON COLUMN community_reports.community_id IS 'The community; joins communities.id.';
COMMENT ON COLUMN community_reports.coverage IS 'Share of the community''s relationships that the context held.';
COMMENT ON COLUMN community_reports.outdated IS 'Share of the context, by tokens, that has changed since the report was written: 0, or no more than reports.max_outdated.';

CREATE OR REPLACE VIEW report_failures AS
SELECT * EXCLUDE (hierarchy) FROM hierarchy_failures WHERE hierarchy = 'graph';
COMMENT ON VIEW report_failures IS 'Reports a model could not write; they are tried again by the next run.';
COMMENT ON COLUMN report_failures.community_id IS 'The community; joins communities.id.';

CREATE OR REPLACE VIEW hirag_communities AS
SELECT * EXCLUDE (hierarchy) FROM hierarchy_communities WHERE hierarchy = 'hirag';
COMMENT ON VIEW hirag_communities IS 'Communities of hierarchical Leiden over the graph of all layers; level 0 is the root level.';
COMMENT ON COLUMN hirag_communities.level IS 'The level it first stands at, 0 = root.';
COMMENT ON COLUMN hirag_communities.parent_id IS 'The community it is a part of; joins hirag_communities.id; NULL at the root level.';
COMMENT ON COLUMN hirag_communities.size IS 'Number of entities in it, of all layers.';

CREATE OR REPLACE VIEW hirag_community_members AS
SELECT * EXCLUDE (hierarchy) FROM hierarchy_members WHERE hierarchy = 'hirag';
COMMENT ON VIEW hirag_community_members IS 'Membership at every level: each entity of every layer once per level.';
COMMENT ON COLUMN hirag_community_members.community_id IS 'The community; joins hirag_communities.id.';
COMMENT ON COLUMN hirag_community_members.entity_id IS 'The entity; joins entities.id or hirag_entities.id.';

CREATE OR REPLACE VIEW hirag_community_reports AS
SELECT * EXCLUDE (hierarchy) FROM hierarchy_reports WHERE hierarchy = 'hirag';
COMMENT ON VIEW hirag_community_reports IS 'One report per community of two or more entities of the graph of all layers.';
COMMENT ON COLUMN hirag_community_reports.community_id IS 'The community; joins hirag_communities.id.';
COMMENT ON COLUMN hirag_community_reports.coverage IS 'Share of the community''s relationships that the context held.';
COMMENT ON COLUMN hirag_community_reports.outdated IS 'Always 0: these reports are never behind.';

CREATE OR REPLACE VIEW attributed_members AS
SELECT community_id, entity_id AS member_id, level FROM hierarchy_members
WHERE hierarchy = 'attributed' AND level = 1
UNION ALL
SELECT c.parent_id, c.id, p.level FROM hierarchy_communities c
JOIN hierarchy_communities p ON p.hierarchy = c.hierarchy AND p.id = c.parent_id
WHERE c.hierarchy = 'attributed';
COMMENT ON VIEW attributed_members IS 'Members of attributed communities.';
COMMENT ON COLUMN attributed_members.community_id IS 'The community; joins attributed_communities.id.';
COMMENT ON COLUMN attributed_members.member_id IS 'A member; joins entities.id at level 1 and attributed_communities.id above.';
COMMENT ON COLUMN attributed_members.level IS 'Level of the community.';

CREATE OR REPLACE VIEW attributed_communities AS
SELECT c.id, c.human_readable_id, c.level, c.last_level, c.parent_id,
       coalesce(r.title, c.title) AS title, c.size, coalesce(n_members, 0) AS n_members,
       c.n_relationships, r.summary, r.rating, r.rating_explanation, r.findings, r.full_content,
       r.n_tokens, coalesce(r.context_hash, f.context_hash) AS context_hash, r.context_tokens,
       r.coverage, r.writer, f.error, coalesce(f.attempts, 0) AS attempts
FROM hierarchy_communities c
LEFT JOIN (SELECT community_id, count(*) AS n_members FROM attributed_members GROUP BY ALL) n
    ON n.community_id = c.id
LEFT JOIN hierarchy_reports r ON r.hierarchy = c.hierarchy AND r.community_id = c.id
LEFT JOIN hierarchy_failures f ON f.hierarchy = c.hierarchy AND f.community_id = c.id
WHERE c.hierarchy = 'attributed';
COMMENT ON VIEW attributed_communities IS 'Communities of entities, and of such communities, that are linked and alike, with a report on each of two or more members (ArchRAG). Empty unless hierarchies.attributed is set.';
COMMENT ON COLUMN attributed_communities.level IS '1: its members are entities. Higher: communities that stand at the level below.';
COMMENT ON COLUMN attributed_communities.last_level IS 'It stands at all levels from level to this one; above, as part of its parent.';
COMMENT ON COLUMN attributed_communities.parent_id IS 'The community that it is a member of; null at the top.';
COMMENT ON COLUMN attributed_communities.title IS 'Title of its report; without one, its most connected entities.';
COMMENT ON COLUMN attributed_communities.n_members IS 'Number of members; one alone is an entity that is linked with none.';
COMMENT ON COLUMN attributed_communities.summary IS 'The report in a few sentences; null, as all below, where there is no report.';
COMMENT ON COLUMN attributed_communities.context_hash IS 'Hash of what the report was written from, or failed for: as long as it is the same, the report stays.';
COMMENT ON COLUMN attributed_communities.coverage IS 'Share of its relationships, and of members without any, that the context held.';
COMMENT ON COLUMN attributed_communities.error IS 'Why the report could not be written; it is tried again by the next run.';
COMMENT ON COLUMN attributed_communities.attempts IS 'How often that failed with this context.';

CREATE OR REPLACE VIEW attributed_entities AS
SELECT DISTINCT community_id, entity_id FROM hierarchy_members WHERE hierarchy = 'attributed';
COMMENT ON VIEW attributed_entities IS 'The entities in each attributed community, directly or through the communities in it.';
COMMENT ON COLUMN attributed_entities.community_id IS 'The community; joins attributed_communities.id.';
COMMENT ON COLUMN attributed_entities.entity_id IS 'An entity in it; joins entities.id.';

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
COMMENT ON COLUMN community_updates.updated_at IS 'When.';
COMMENT ON COLUMN community_updates.how IS 'clustered (all anew), repaired (where the graph changed), improved (all, from what there was) or adopted (from an import).';
COMMENT ON COLUMN community_updates.n_entities IS 'Entities clustered.';
COMMENT ON COLUMN community_updates.n_relationships IS 'Relationships clustered.';
COMMENT ON COLUMN community_updates.n_communities IS 'Communities afterwards, all levels together.';
COMMENT ON COLUMN community_updates.modularity IS 'Modularity of the root level afterwards, at most 1; NULL without relationships.';
COMMENT ON COLUMN community_updates.drift IS 'Share of the modularity of a fresh clustering that these communities lack.';

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
COMMENT ON COLUMN report_elements.community_id IS 'The community whose report it is; joins community_reports.community_id.';
COMMENT ON COLUMN report_elements.place IS 'Its place in what was read, from 0.';
COMMENT ON COLUMN report_elements.kind IS 'entity, relationship, claim or report.';
COMMENT ON COLUMN report_elements.element_id IS 'The element: joins entities.id, relationships.id or, for a report, communities.id.';
COMMENT ON COLUMN report_elements.n_tokens IS 'Tokens it took.';
COMMENT ON COLUMN report_elements.text_hash IS 'Hash of its text as it was then.';
COMMENT ON COLUMN report_elements.support IS 'How many chunks the element rested on; of a report, the sum of its elements.';

CREATE TABLE IF NOT EXISTS hirag_entities (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    layer INTEGER NOT NULL,
    title VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    degree BIGINT NOT NULL,
    n_tokens BIGINT NOT NULL
);
COMMENT ON TABLE hirag_entities IS 'Entities that summarise clusters of entities, in layers above those of the graph (HiRAG). Empty unless hierarchies.hirag is set.';
COMMENT ON COLUMN hirag_entities.id IS '32 hexadecimal digits, made from layer and normalised title.';
COMMENT ON COLUMN hirag_entities.human_readable_id IS 'Small integer shown to people and models; never that of an entity.';
COMMENT ON COLUMN hirag_entities.layer IS 'Its layer, from 1; the entities of the graph are layer 0.';
COMMENT ON COLUMN hirag_entities.title IS 'What the cluster has in common; by rule, its most central members and others.';
COMMENT ON COLUMN hirag_entities.type IS 'One of nine general types, by a model; by rule, the type of the most central member.';
COMMENT ON COLUMN hirag_entities.description IS 'What it is; by rule, what is known of its most central members.';
COMMENT ON COLUMN hirag_entities.size IS 'Number of entities of the graph beneath it.';
COMMENT ON COLUMN hirag_entities.degree IS 'Number of relationships it has.';
COMMENT ON COLUMN hirag_entities.n_tokens IS 'Tokens of title and description.';

CREATE TABLE IF NOT EXISTS hirag_relationships (
    id VARCHAR NOT NULL,
    human_readable_id BIGINT NOT NULL,
    layer INTEGER NOT NULL,
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    weight DOUBLE NOT NULL,
    combined_degree BIGINT NOT NULL,
    n_tokens BIGINT NOT NULL
);
COMMENT ON TABLE hirag_relationships IS 'What links the layers: a member to the entity that summarises it.';
COMMENT ON COLUMN hirag_relationships.id IS '32 hexadecimal digits, made from both ends.';
COMMENT ON COLUMN hirag_relationships.human_readable_id IS 'Small integer shown to people and models; never that of a relationship.';
COMMENT ON COLUMN hirag_relationships.layer IS 'The layer of the target.';
COMMENT ON COLUMN hirag_relationships.source_id IS 'The member; joins entities.id or hirag_entities.id.';
COMMENT ON COLUMN hirag_relationships.target_id IS 'What summarises it; joins hirag_entities.id.';
COMMENT ON COLUMN hirag_relationships.source IS 'Title of the member.';
COMMENT ON COLUMN hirag_relationships.target IS 'Title of what summarises it.';
COMMENT ON COLUMN hirag_relationships.description IS 'Why it belongs there; empty where no model says so.';
COMMENT ON COLUMN hirag_relationships.weight IS 'How many clusters link the two.';
COMMENT ON COLUMN hirag_relationships.combined_degree IS 'Degrees of both ends in the graph of all layers, summed.';
COMMENT ON COLUMN hirag_relationships.n_tokens IS 'Tokens of both titles and the description.';

CREATE TABLE IF NOT EXISTS hirag_basis (id VARCHAR NOT NULL, entity_id VARCHAR NOT NULL);
COMMENT ON TABLE hirag_basis IS 'The entities of the graph that were read, directly or as summaries of them, when a summary entity was written: those of its whole clusters, whether or not it is linked to them.';
COMMENT ON COLUMN hirag_basis.id IS 'The summary entity; joins hirag_entities.id.';
COMMENT ON COLUMN hirag_basis.entity_id IS 'The entity of the graph; joins entities.id.';

CREATE TABLE IF NOT EXISTS hirag_layers (
    layer INTEGER NOT NULL,
    n_nodes BIGINT NOT NULL,
    n_clusters BIGINT NOT NULL,
    n_entities BIGINT NOT NULL,
    sparsity DOUBLE NOT NULL
);
COMMENT ON TABLE hirag_layers IS 'How each layer was clustered. The last may be one that was not built, as it differs too little from the one before.';
COMMENT ON COLUMN hirag_layers.layer IS 'The layer, from 1.';
COMMENT ON COLUMN hirag_layers.n_nodes IS 'Entities of the layer below that were clustered, with those passed up to it.';
COMMENT ON COLUMN hirag_layers.n_clusters IS 'Clusters found; an entity may be in several.';
COMMENT ON COLUMN hirag_layers.n_entities IS 'Entities that summarise them: 0 where the layer was not built.';
COMMENT ON COLUMN hirag_layers.sparsity IS 'Cluster sparsity: 1 where each cluster is one entity, 0 where one holds all.';

CREATE TABLE IF NOT EXISTS similarity_edges (
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    similarity DOUBLE NOT NULL
);
COMMENT ON TABLE similarity_edges IS 'Entities that are alike by vector and have no relationship: they join relationships when attributed communities are found (ArchRAG). Empty unless hierarchies.attributed is set.';
COMMENT ON COLUMN similarity_edges.source_id IS 'An entity; joins entities.id. Each pair stands here once, the smaller id first.';
COMMENT ON COLUMN similarity_edges.target_id IS 'The other one; joins entities.id.';
COMMENT ON COLUMN similarity_edges.similarity IS 'Cosine of the vectors of titles and descriptions: above that of 70 of 100 relationships.';

CREATE TABLE IF NOT EXISTS chnsw (
    layer INTEGER NOT NULL,
    n_nodes BIGINT NOT NULL,
    ids_hash VARCHAR NOT NULL,
    links BLOB NOT NULL,
    down BLOB NOT NULL
);
COMMENT ON TABLE chnsw IS 'C-HNSW, the index over entities and attributed communities, without their vectors: a row per layer. Empty unless hierarchies.attributed is set.';
COMMENT ON COLUMN chnsw.layer IS '0: entities. Higher: the attributed communities of this level that have a report.';
COMMENT ON COLUMN chnsw.n_nodes IS 'Number of nodes in the layer.';
COMMENT ON COLUMN chnsw.ids_hash IS 'Hash of the ids of its nodes, which stand in this order.';
COMMENT ON COLUMN chnsw.links IS 'Links within the layer, as FAISS writes them.';
COMMENT ON COLUMN chnsw.down IS 'For each node the place of the nearest in the layer below, 4 bytes each.';

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
COMMENT ON COLUMN llm_calls.id IS 'Id of the call.';
COMMENT ON COLUMN llm_calls.called_at IS 'When the call was made.';
COMMENT ON COLUMN llm_calls.stage IS 'What it was for: extractions, summaries, resolution, community_reports, raptor_tree, hirag_clusters, embeddings, query, tune, or to try or to find a model (trial, probe).';
COMMENT ON COLUMN llm_calls.batch IS 'The batch, where the call was for one; joins batches.batch.';
COMMENT ON COLUMN llm_calls.model IS 'The model that was asked.';
COMMENT ON COLUMN llm_calls.prompt_tokens IS 'Tokens sent; of a cached answer, when it was bought.';
COMMENT ON COLUMN llm_calls.completion_tokens IS 'Tokens received; of a cached answer, when it was bought.';
COMMENT ON COLUMN llm_calls.cost IS 'US dollars: 0 from the cache; NULL where no price is known.';
COMMENT ON COLUMN llm_calls.seconds IS 'Seconds until the answer was there.';
COMMENT ON COLUMN llm_calls.cached IS 'Whether the answer came from the cache, so that nothing was paid.';
COMMENT ON COLUMN llm_calls.error IS 'What went wrong; NULL if nothing did.';

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
COMMENT ON TABLE releases IS 'Published releases, the newest last: all up to this one.';
COMMENT ON COLUMN releases.id IS 'Time of publication and the beginning of content_hash; ids sort by time.';
COMMENT ON COLUMN releases.created_at IS 'When it was published.';
COMMENT ON COLUMN releases.content_hash IS 'Hash of all that it holds.';
COMMENT ON COLUMN releases.config_hash IS 'Hash of the settings that shape an index.';
COMMENT ON COLUMN releases.n_documents IS 'Number of documents.';
COMMENT ON COLUMN releases.n_chunks IS 'Number of chunks.';
COMMENT ON COLUMN releases.n_entities IS 'Number of entities.';
COMMENT ON COLUMN releases.n_relationships IS 'Number of relationships.';
COMMENT ON COLUMN releases.n_communities IS 'Number of communities, all levels together.';
COMMENT ON COLUMN releases.n_reports IS 'Number of community reports.';
COMMENT ON COLUMN releases.modularity IS 'Modularity of the root level, at most 1; NULL without relationships.';
COMMENT ON COLUMN releases.embedder IS 'What made the vectors, and their dimensions.';
COMMENT ON COLUMN releases.vector_versions IS 'Version of each LanceDB table that belongs to it, as JSON.';

CREATE TABLE IF NOT EXISTS model_quality (
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
COMMENT ON TABLE model_quality IS 'What models made of the corpus, a row a release: shares are from 0 to 1. No row where no model was asked.';
COMMENT ON COLUMN model_quality.release IS 'The release; joins releases.id.';
COMMENT ON COLUMN model_quality.chunks IS 'Chunks that a model extracted.';
COMMENT ON COLUMN model_quality.entities_a_chunk IS 'Entities that it found in a chunk, on average.';
COMMENT ON COLUMN model_quality.relationships_a_chunk IS 'Relationships that it found in a chunk, on average.';
COMMENT ON COLUMN model_quality.single IS 'Share of chunks with exactly one entity.';
COMMENT ON COLUMN model_quality.cut IS 'Share of chunks whose answer was cut off.';
COMMENT ON COLUMN model_quality.copied IS 'Share of descriptions that only copy their text.';
COMMENT ON COLUMN model_quality.doubled IS 'Share of descriptions that the same answer gives to something else, too.';
COMMENT ON COLUMN model_quality.alike IS 'Share of descriptions that hold the commonest five words in a row.';
COMMENT ON COLUMN model_quality.findings IS 'Findings of reports that a model wrote.';
COMMENT ON COLUMN model_quality.unreferenced IS 'Share of these findings that name no record.';

CREATE TABLE IF NOT EXISTS stage_seconds (
    stage VARCHAR NOT NULL,
    runs BIGINT NOT NULL,
    seconds DOUBLE NOT NULL,
    finished_at TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE stage_seconds IS 'Time that the stages between ingestion and publishing took, a row a stage, all runs together; that of ingestion is in batch_stages.';
COMMENT ON COLUMN stage_seconds.stage IS 'The stage by the name of its step in Dagster, such as graph or reports_level_0.';
COMMENT ON COLUMN stage_seconds.runs IS 'How often it was run to its end with something to do.';
COMMENT ON COLUMN stage_seconds.seconds IS 'Seconds that these runs took.';
COMMENT ON COLUMN stage_seconds.finished_at IS 'When the last of them ended.';

-- What ingestion has made of a batch waits here until the graph takes it in, all in one
-- transaction: the tables above always belong together.
CREATE SCHEMA IF NOT EXISTS staging;
CREATE TABLE IF NOT EXISTS staging.documents AS FROM main.documents LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.blocks AS FROM main.blocks LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.chunks AS FROM main.chunks LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.extractions AS FROM main.extractions LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.entity_mentions AS FROM main.entity_mentions LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.relationship_mentions AS FROM main.relationship_mentions LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.claims AS FROM main.claims LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.chunk_names AS FROM main.chunk_names LIMIT 0;
CREATE TABLE IF NOT EXISTS staging.lost_evidence (element_id VARCHAR NOT NULL);
COMMENT ON TABLE staging.lost_evidence IS 'Entities and relationships that lost a chunk, and communities whose reports tell of them: kept until all reports are up to date.';
CREATE TABLE IF NOT EXISTS staging.report_inputs (
    hierarchy VARCHAR NOT NULL,
    community_id VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    context_hash VARCHAR NOT NULL
);
COMMENT ON TABLE staging.report_inputs IS 'Reports that are as they should be, and a digest of all that they can depend on: where it is another, the context decides.';
CREATE TABLE IF NOT EXISTS staging.resolution_names (
    id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    is_open BOOLEAN NOT NULL,
    words VARCHAR NOT NULL,
    signature HUGEINT NOT NULL
);
COMMENT ON TABLE staging.resolution_names IS 'The titles and types that resolution last saw, and a signature of the mentions of each: only what differs is decided again.';
CREATE TABLE IF NOT EXISTS staging.resolution_keys (id VARCHAR NOT NULL, kind VARCHAR NOT NULL, key VARCHAR NOT NULL);
COMMENT ON TABLE staging.resolution_keys IS 'What titles share with those they may be one with: each key stands for a block of titles that are compared.';
CREATE TABLE IF NOT EXISTS staging.resolution_pairs (
    kind VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    one_id VARCHAR NOT NULL,
    two_id VARCHAR NOT NULL,
    rule VARCHAR NOT NULL,
    confidence DOUBLE NOT NULL,
    evidence VARCHAR NOT NULL,
    nearness DOUBLE NOT NULL
);
COMMENT ON TABLE staging.resolution_pairs IS 'The pairs that rules find in each block: to be merged, or with confidence 0 to be kept apart.';
CREATE TABLE IF NOT EXISTS staging.resolution_refusals (
    one_id VARCHAR NOT NULL,
    two_id VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    confidence DOUBLE NOT NULL,
    evidence VARCHAR NOT NULL
);
COMMENT ON TABLE staging.resolution_refusals IS 'Pairs to be merged that were not, since what must stay apart would have become one.';
CREATE TABLE IF NOT EXISTS staging.resolution_stated (chunk_id VARCHAR NOT NULL, acronym VARCHAR, text VARCHAR);
COMMENT ON TABLE staging.resolution_stated IS 'The acronyms that each chunk explains; a chunk that explains none has one row without.';
CREATE TABLE IF NOT EXISTS staging.resolution_endings (
    acronym VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    short VARCHAR NOT NULL,
    place BIGINT NOT NULL,
    key VARCHAR NOT NULL
);
COMMENT ON TABLE staging.resolution_endings IS 'The keys of the names that an explained acronym may stand for, the longest first.';
CREATE TABLE IF NOT EXISTS staging.resolution_vectors (id VARCHAR NOT NULL, vector BLOB NOT NULL);
COMMENT ON TABLE staging.resolution_vectors IS 'The vectors of titles, in half precision, where making one takes long.';
CREATE TABLE IF NOT EXISTS staging.embedded_texts (vectors VARCHAR NOT NULL, id VARCHAR NOT NULL, digest UBIGINT NOT NULL);
COMMENT ON TABLE staging.embedded_texts IS 'The rows of each vector table when it was last brought up to date, and a hash of what each said: only what differs is looked at again.';
CREATE TABLE IF NOT EXISTS staging.raptor_mixtures (layer INTEGER NOT NULL, made_with VARCHAR NOT NULL, mixture BLOB NOT NULL, n_fitted BIGINT NOT NULL);
COMMENT ON TABLE staging.raptor_mixtures IS 'The Gaussian mixtures that rows are placed into the clusters of each layer of the RAPTOR tree by, and the number of rows they were fitted to.';
CREATE TABLE IF NOT EXISTS staging.raptor_fitted (layer INTEGER NOT NULL, row_id VARCHAR NOT NULL);
COMMENT ON TABLE staging.raptor_fitted IS 'Those of the rows that a layer of the RAPTOR tree was fitted to which are still there: after many changes it is fitted anew.';
CREATE TABLE IF NOT EXISTS staging.synonyms_searched (entity_id VARCHAR NOT NULL, title VARCHAR NOT NULL);
COMMENT ON TABLE staging.synonyms_searched IS 'The titles that synonyms were searched for: only others are searched again.';
CREATE TABLE IF NOT EXISTS staging.hirag_mixtures (layer INTEGER NOT NULL, mixture BLOB NOT NULL, n_fitted BIGINT NOT NULL, n_changed BIGINT NOT NULL);
COMMENT ON TABLE staging.hirag_mixtures IS 'The Gaussian mixture that each layer was clustered by, the nodes it was fitted to, and how many have changed since.';
CREATE TABLE IF NOT EXISTS staging.hirag_nodes (layer INTEGER NOT NULL, node_id VARCHAR NOT NULL, text_hash VARCHAR NOT NULL);
COMMENT ON TABLE staging.hirag_nodes IS 'The nodes each layer was clustered from, and a hash of what each says: only changes to these count.';
CREATE TABLE IF NOT EXISTS staging.hirag_summaries (hash VARCHAR NOT NULL, summary VARCHAR NOT NULL);
COMMENT ON TABLE staging.hirag_summaries IS 'What a model made of each cluster, as JSON, by a hash of what it was shown.';
CREATE TABLE IF NOT EXISTS staging.similarity_searched (entity_id VARCHAR NOT NULL, text_hash VARCHAR NOT NULL);
COMMENT ON TABLE staging.similarity_searched IS 'The texts that nearest entities were searched for: only others are searched again.';
CREATE TABLE IF NOT EXISTS staging.similarity_nearest (
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    similarity DOUBLE NOT NULL
);
COMMENT ON TABLE staging.similarity_nearest IS 'The entities nearest to each one by vector, linked or not.';
CREATE TABLE IF NOT EXISTS staging.attributed_clusters (
    attributed_level INTEGER NOT NULL,
    id VARCHAR NOT NULL,
    level INTEGER NOT NULL,
    last_level INTEGER NOT NULL,
    parent_id VARCHAR,
    members VARCHAR[] NOT NULL
);
COMMENT ON TABLE staging.attributed_clusters IS 'The clusters from which each level of attributed communities was taken: they are repaired when the graph changes.';
CREATE TABLE IF NOT EXISTS staging.folded (version VARCHAR NOT NULL, words VARCHAR NOT NULL);
COMMENT ON TABLE staging.folded IS 'The version of the rules under which the graph was folded from the tables folded_*, and the entities that the user had named or typed; no row where the next fold is one of the whole index.';
CREATE TABLE IF NOT EXISTS staging.folded_chunks (chunk UBIGINT NOT NULL, document UBIGINT, by_rule BOOLEAN, content UBIGINT NOT NULL);
COMMENT ON TABLE staging.folded_chunks IS 'The chunks the graph was folded from: hashes of the chunk, its document and all that was found in it.';
CREATE TABLE IF NOT EXISTS staging.folded_mentions (chunk UBIGINT NOT NULL, entity UBIGINT NOT NULL, sentence UBIGINT NOT NULL);
COMMENT ON TABLE staging.folded_mentions IS 'What each chunk mentions in which sentence, before aliases are resolved, as hashes.';
CREATE TABLE IF NOT EXISTS staging.folded_links (chunk UBIGINT NOT NULL, source UBIGINT NOT NULL, target UBIGINT NOT NULL, sentence UBIGINT NOT NULL, is_sentence BOOLEAN NOT NULL);
COMMENT ON TABLE staging.folded_links IS 'What each chunk relates in which sentence, before aliases are resolved, as hashes; whether it counts where sentences that many documents repeat are looked for.';
CREATE TABLE IF NOT EXISTS staging.folded_aliases (entity UBIGINT NOT NULL, canonical UBIGINT NOT NULL);
COMMENT ON TABLE staging.folded_aliases IS 'The aliases that the graph was folded with, as hashes.';
CREATE TABLE IF NOT EXISTS staging.folded_repeated (sentence UBIGINT NOT NULL);
COMMENT ON TABLE staging.folded_repeated IS 'The sentences that many documents repeat, as hashes.';
CREATE TABLE IF NOT EXISTS staging.folded_meetings (
    id VARCHAR NOT NULL,
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    n_chunks BIGINT NOT NULL,
    weight DOUBLE NOT NULL,
    by_rule BOOLEAN NOT NULL,
    stated BOOLEAN NOT NULL
);
COMMENT ON TABLE staging.folded_meetings IS 'All pairs of entities that are related, those left out as met by chance among them: what their relationship is computed from.';
CREATE TABLE IF NOT EXISTS staging.folded_descriptions (id VARCHAR NOT NULL, input_hash VARCHAR, summary UBIGINT);
COMMENT ON TABLE staging.folded_descriptions IS 'Entities and relationships not found by rule alone: a hash of their descriptions, and one of what a model had made of these.';
CREATE TABLE IF NOT EXISTS staging.folded_titles (written VARCHAR NOT NULL, kind VARCHAR NOT NULL, title VARCHAR NOT NULL, entity_id VARCHAR NOT NULL, key VARCHAR NOT NULL);
COMMENT ON TABLE staging.folded_titles IS 'The names that titles of documents and headings stand for.';
CREATE TABLE IF NOT EXISTS staging.folded_records (folder VARCHAR NOT NULL, content UBIGINT NOT NULL);
COMMENT ON TABLE staging.folded_records IS 'The folders of records whose keys were looked up, and a hash of their documents and chunks.';
