CREATE TABLE community_updates (
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

ALTER TABLE community_reports ADD COLUMN outdated DOUBLE DEFAULT 0;
COMMENT ON COLUMN community_reports.outdated IS 'Share of the context, by tokens, that has changed since the report was written: 0, or no more than reports.max_outdated.';

CREATE TABLE report_elements (
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

CREATE TABLE staging.lost_evidence (element_id VARCHAR NOT NULL);
COMMENT ON TABLE staging.lost_evidence IS 'Entities and relationships that lost a chunk, and communities whose reports tell of them: kept until all reports are up to date.';

CREATE TABLE entity_aliases (
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

CREATE TABLE entities_kept_apart (
    one_id VARCHAR NOT NULL,
    two_id VARCHAR NOT NULL,
    one_title VARCHAR NOT NULL,
    two_title VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    evidence JSON NOT NULL
);
COMMENT ON TABLE entities_kept_apart IS 'Pairs that look alike and were not merged, the most important 1,000, for review.';

CREATE VIEW resolved_entity_mentions AS
SELECT m.chunk_id, coalesce(a.canonical_id, m.entity_id) AS entity_id, m.entity_id AS mentioned_id,
       m.title, m.type, m.description, m.start_char, m.end_char, m.batch
FROM entity_mentions m LEFT JOIN entity_aliases a ON a.entity_id = m.entity_id;
COMMENT ON VIEW resolved_entity_mentions IS 'Mentions under the entity they are folded into.';

CREATE VIEW resolved_relationship_mentions AS
SELECT chunk_id, least(one, two) AS source_id, greatest(one, two) AS target_id, description, weight,
       start_char, end_char, batch
FROM (SELECT m.*, coalesce(s.canonical_id, m.source_id) AS one,
             coalesce(t.canonical_id, m.target_id) AS two
      FROM relationship_mentions m
      LEFT JOIN entity_aliases s ON s.entity_id = m.source_id
      LEFT JOIN entity_aliases t ON t.entity_id = m.target_id)
WHERE one <> two;
COMMENT ON VIEW resolved_relationship_mentions IS 'Mentions between the entities their ends are folded into; those of an entity with itself left out.';

CREATE VIEW resolved_claims AS
SELECT c.* REPLACE (coalesce(a.canonical_id, c.subject_id) AS subject_id)
FROM claims c LEFT JOIN entity_aliases a ON a.entity_id = c.subject_id;
COMMENT ON VIEW resolved_claims IS 'Claims about the entity their subject is folded into.';
