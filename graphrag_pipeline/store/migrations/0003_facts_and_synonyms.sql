CREATE VIEW facts AS
SELECT left(sha256('fact' || source_id || target_id || lower(said)), 32) AS id, source_id, target_id,
       min(said) AS text, count(DISTINCT chunk_id) AS n_chunks, count(*) AS n_mentions
FROM (SELECT m.chunk_id, m.source_id, m.target_id,
             CASE WHEN x.extractor IS DISTINCT FROM 'nlp'
                   AND contains(lower(m.description), lower(s.title))
                   AND contains(lower(m.description), lower(t.title)) THEN m.description
                  ELSE s.title || ', ' || t.title || ': ' || m.description END AS said
      FROM resolved_relationship_mentions m
      JOIN entities s ON s.id = m.source_id JOIN entities t ON t.id = m.target_id
      LEFT JOIN extractions x ON x.chunk_id = m.chunk_id)
GROUP BY source_id, target_id, lower(said);

CREATE TABLE synonym_edges (
    source_id VARCHAR NOT NULL,
    target_id VARCHAR NOT NULL,
    similarity DOUBLE NOT NULL
);

CREATE TABLE staging.synonyms_searched (entity_id VARCHAR NOT NULL, title VARCHAR NOT NULL);
