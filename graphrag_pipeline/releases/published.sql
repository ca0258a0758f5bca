-- What the published file has beside the index's tables: views for the joins everyone needs, and
-- macros that take a name. Views work wherever the file is attached; DuckDB looks for the tables of
-- a macro in the current database alone, so those need USE. The macros join from the name outwards
-- instead of choosing from a view: DuckDB would cut out every quote of the corpus before it chose.
-- No column may be called what a macro's parameter is: the parameter would hide it.

CREATE MACRO span_of(body, first, last) AS
CASE WHEN first IS NULL THEN body ELSE substr(body, first + 1, last - first) END;
COMMENT ON MACRO span_of IS 'Characters first to last of a text, counted from 0, last exclusive; all of it without first. Example: SELECT span_of(''the Orlen Dam'', 4, 13)';

CREATE VIEW entity_names AS
SELECT id AS entity_id, title AS entity, title AS known_as, false AS is_alias FROM entities
UNION ALL
SELECT e.id, e.title, a.title, true
FROM entity_aliases a JOIN entities e ON e.id = a.canonical_id WHERE a.title <> e.title;
COMMENT ON VIEW entity_names IS 'Every name an entity goes by: its title and the titles that were folded into it.';
COMMENT ON COLUMN entity_names.entity_id IS 'The entity; joins entities.id.';
COMMENT ON COLUMN entity_names.entity IS 'Its title.';
COMMENT ON COLUMN entity_names.known_as IS 'A name it goes by.';
COMMENT ON COLUMN entity_names.is_alias IS 'Whether that name is from entity_aliases, not the title.';

CREATE VIEW homonyms AS
WITH RECURSIVE found AS (
    SELECT DISTINCT c.document_id, unnest([r.source_id, r.target_id]) AS entity_id,
           unnest([r.target_id, r.source_id]) AS neighbor_id
    FROM relationship_chunks m JOIN relationships r ON r.id = m.relationship_id
    JOIN chunks c ON c.id = m.chunk_id),
met AS MATERIALIZED (
    SELECT entity_id, document_id, neighbor_id FROM found
    SEMI JOIN (FROM entities WHERE type NOT IN ('CONCEPT', 'DATE', 'GEO')) e ON e.id = entity_id
    QUALIFY count(*) OVER (PARTITION BY entity_id, document_id) > 1),
few AS MATERIALIZED (
    FROM met SEMI JOIN (SELECT entity_id FROM met GROUP BY entity_id
                        HAVING count(DISTINCT document_id) BETWEEN 2 AND 20) USING (entity_id)),
near AS (
    SELECT id, id AS other FROM entities UNION ALL
    SELECT source_id, target_id FROM relationships UNION ALL
    SELECT target_id, source_id FROM relationships),
meeting AS MATERIALIZED (
    SELECT DISTINCT a.entity_id, a.document_id, b.document_id AS other_id
    FROM few a JOIN near n ON n.id = a.neighbor_id
    JOIN few b ON b.entity_id = a.entity_id AND b.neighbor_id = n.other
    WHERE a.document_id <> b.document_id),
reached AS (
    SELECT entity_id, min(document_id) AS document_id FROM few GROUP BY entity_id
    UNION
    SELECT m.entity_id, m.other_id
    FROM reached r JOIN meeting m ON m.entity_id = r.entity_id AND m.document_id = r.document_id),
grouped AS (
    SELECT DISTINCT entity_id, document_id,
           (entity_id, document_id) IN (SELECT (entity_id, document_id) FROM reached) AS is_one
    FROM few),
persons AS MATERIALIZED (
    SELECT DISTINCT e.id, e.title, c.document_id
    FROM entity_chunks l JOIN entities e ON e.id = l.entity_id JOIN chunks c ON c.id = l.chunk_id
    WHERE e.type = 'PERSON'),
meant AS MATERIALIZED (
    SELECT s.id AS entity_id, s.document_id, min(w.title) AS whole
    FROM persons s JOIN (
        SELECT document_id, title, unnest(string_split(title, ' ')) AS word FROM persons
        WHERE contains(title, ' ')) w ON w.document_id = s.document_id AND w.word = s.title
    GROUP BY s.id, s.document_id HAVING count(DISTINCT w.title) = 1),
told_apart AS (
    SELECT entity_id, document_id, whole = min(whole) OVER (PARTITION BY entity_id) AS is_one
    FROM meant),
listed AS (
    FROM told_apart SEMI JOIN (FROM told_apart WHERE NOT is_one) two USING (entity_id)
    UNION ALL
    FROM grouped ANTI JOIN (FROM told_apart WHERE NOT is_one) two USING (entity_id))
SELECT e.id AS entity_id, e.title AS entity, e.type, count(*) AS n_documents,
       list(d.uri ORDER BY d.uri) FILTER (is_one) AS in_some,
       list(d.uri ORDER BY d.uri) FILTER (NOT is_one) AS in_others
FROM listed g JOIN entities e ON e.id = g.entity_id JOIN documents d ON d.id = g.document_id
GROUP BY ALL HAVING NOT bool_and(is_one);
COMMENT ON VIEW homonyms IS 'Entities that may be two of one name: what they meet in some of their documents (two to twenty, each with two neighbours or more) is neither what they meet in the others nor related to it; or, of a person of one word, it is a part of one person''s name there and of another''s elsewhere. A line split of aliases.csv tells two apart.';
COMMENT ON COLUMN homonyms.entity_id IS 'The entity; joins entities.id.';
COMMENT ON COLUMN homonyms.entity IS 'Its title.';
COMMENT ON COLUMN homonyms.type IS 'Its type: neither CONCEPT, DATE nor GEO, of which most that is said is unrelated.';
COMMENT ON COLUMN homonyms.n_documents IS 'How many documents relate it to two others or more, or name one person whose name it is a part of.';
COMMENT ON COLUMN homonyms.in_some IS 'The documents of the one, as in documents.uri.';
COMMENT ON COLUMN homonyms.in_others IS 'The other documents, which may be of more than one.';

CREATE VIEW edges AS
SELECT source_id AS entity_id, source AS entity, target_id AS neighbor_id, target AS neighbor,
       type, weight, pmi, description, id AS relationship_id
FROM relationships
UNION ALL
SELECT target_id, target, source_id, source, type, weight, pmi, description, id FROM relationships;
COMMENT ON VIEW edges IS 'Every relationship twice, once from each end: to walk the graph without caring for direction.';
COMMENT ON COLUMN edges.entity_id IS 'The end one stands at; joins entities.id.';
COMMENT ON COLUMN edges.entity IS 'Its title.';
COMMENT ON COLUMN edges.neighbor_id IS 'The other end; joins entities.id.';
COMMENT ON COLUMN edges.neighbor IS 'Title of the other end.';
COMMENT ON COLUMN edges.type IS 'What kind of relationship it is: the field of a record, the predicate of a triple; else empty.';
COMMENT ON COLUMN edges.weight IS 'Sum over the instances that support the relationship (1 each unless the extractor grades them).';
COMMENT ON COLUMN edges.pmi IS 'Normalised pointwise mutual information of both ends over chunks, -1 to 1.';
COMMENT ON COLUMN edges.description IS 'What is known of the relationship.';
COMMENT ON COLUMN edges.relationship_id IS 'The relationship; joins relationships.id.';

CREATE VIEW entity_evidence AS
SELECT e.id AS entity_id, e.title AS entity, m.title AS written, d.uri,
       c.start_char + coalesce(m.start_char, 0) AS start_char,
       coalesce(c.start_char + m.end_char, c.end_char) AS end_char,
       span_of(c.text, m.start_char, m.end_char) AS quote,
       span_of(c.text, greatest(m.start_char - 80, 0), m.end_char + 80) AS around,
       m.description, c.id AS chunk_id, d.id AS document_id, m.batch
FROM entities e
JOIN resolved_entity_mentions m ON m.entity_id = e.id
JOIN chunks c ON c.id = m.chunk_id
JOIN documents d ON d.id = c.document_id;
COMMENT ON VIEW entity_evidence IS 'Where the text names each entity: one row per mention, back to the characters of a document.';
COMMENT ON COLUMN entity_evidence.entity_id IS 'The entity; joins entities.id.';
COMMENT ON COLUMN entity_evidence.entity IS 'Its title.';
COMMENT ON COLUMN entity_evidence.written IS 'The name as found here; differs from the title for aliases.';
COMMENT ON COLUMN entity_evidence.uri IS 'The document, as in documents.uri.';
COMMENT ON COLUMN entity_evidence.start_char IS 'First character of the mention in documents.text, from 0; of the whole chunk where the extractor gave no place.';
COMMENT ON COLUMN entity_evidence.end_char IS 'End of that span in characters, exclusive.';
COMMENT ON COLUMN entity_evidence.quote IS 'The text of that span.';
COMMENT ON COLUMN entity_evidence.around IS 'The quote with 80 characters on either side, within its chunk.';
COMMENT ON COLUMN entity_evidence.description IS 'What was said of the entity there.';
COMMENT ON COLUMN entity_evidence.chunk_id IS 'The chunk it was found in; joins chunks.id.';
COMMENT ON COLUMN entity_evidence.document_id IS 'The document; joins documents.id.';
COMMENT ON COLUMN entity_evidence.batch IS 'The batch the mention came with; joins batches.batch.';

CREATE VIEW relationship_evidence AS
SELECT r.id AS relationship_id, r.source_id, r.source, r.target_id, r.target, d.uri,
       coalesce(s.start_char, c.start_char) AS start_char,
       coalesce(s.end_char, c.end_char) AS end_char,
       span_of(c.text, s.start_char - c.start_char, s.end_char - c.start_char) AS quote,
       s.n_mentions, c.id AS chunk_id, d.id AS document_id
FROM relationships r
JOIN relationship_chunks s ON s.relationship_id = r.id
JOIN chunks c ON c.id = s.chunk_id
JOIN documents d ON d.id = c.document_id;
COMMENT ON VIEW relationship_evidence IS 'The text each relationship rests on: one row per supporting chunk, back to the characters of a document.';
COMMENT ON COLUMN relationship_evidence.relationship_id IS 'The relationship; joins relationships.id.';
COMMENT ON COLUMN relationship_evidence.source_id IS 'One end; joins entities.id.';
COMMENT ON COLUMN relationship_evidence.source IS 'Its title.';
COMMENT ON COLUMN relationship_evidence.target_id IS 'The other end; joins entities.id.';
COMMENT ON COLUMN relationship_evidence.target IS 'Its title.';
COMMENT ON COLUMN relationship_evidence.uri IS 'The document, as in documents.uri.';
COMMENT ON COLUMN relationship_evidence.start_char IS 'First character of the evidence in documents.text, from 0; of the whole chunk where the extractor gave no place.';
COMMENT ON COLUMN relationship_evidence.end_char IS 'End of that span in characters, exclusive.';
COMMENT ON COLUMN relationship_evidence.quote IS 'The text of that span.';
COMMENT ON COLUMN relationship_evidence.n_mentions IS 'How often the chunk supports the relationship; the span is the first.';
COMMENT ON COLUMN relationship_evidence.chunk_id IS 'The supporting chunk; joins chunks.id.';
COMMENT ON COLUMN relationship_evidence.document_id IS 'The document; joins documents.id.';

CREATE VIEW community_tree AS
WITH RECURSIVE named AS (
    SELECT c.*, coalesce(r.title, c.title) AS called, r.rating, r.summary
    FROM communities c LEFT JOIN community_reports r ON r.community_id = c.id
), tree AS (
    SELECT named.*, NULL::VARCHAR AS parent, 0 AS depth, [called] AS names, [-size, human_readable_id] AS place
    FROM named WHERE parent_id IS NULL
    UNION ALL
    SELECT n.*, t.called, t.depth + 1, t.names || [n.called], t.place || [-n.size, n.human_readable_id]
    FROM tree t JOIN named n ON n.parent_id = t.id
)
SELECT depth, repeat('  ', depth) || called AS tree, called AS title, size, n_relationships, rating,
       summary, parent, names AS path, id AS community_id, parent_id, level, last_level,
       id NOT IN (SELECT parent_id FROM communities WHERE parent_id IS NOT NULL) AS is_leaf, place
FROM tree ORDER BY place;
COMMENT ON VIEW community_tree IS 'The hierarchy of communities from the root down, each followed by what it is split into, the largest first.';
COMMENT ON COLUMN community_tree.depth IS 'Steps below the root level, from 0.';
COMMENT ON COLUMN community_tree.tree IS 'The title, indented by depth: to print.';
COMMENT ON COLUMN community_tree.title IS 'Title of its report; of the community where there is no report.';
COMMENT ON COLUMN community_tree.size IS 'Number of entities in it.';
COMMENT ON COLUMN community_tree.n_relationships IS 'Number of relationships with both ends in it.';
COMMENT ON COLUMN community_tree.rating IS 'How much its report matters, 0 to 10; NULL without a report.';
COMMENT ON COLUMN community_tree.summary IS 'Summary of its report; NULL without a report.';
COMMENT ON COLUMN community_tree.parent IS 'Title of the community it is a part of; NULL at the root level.';
COMMENT ON COLUMN community_tree.path IS 'The titles from the root down to this one.';
COMMENT ON COLUMN community_tree.community_id IS 'The community; joins communities.id.';
COMMENT ON COLUMN community_tree.parent_id IS 'The community it is a part of; joins communities.id; NULL at the root level.';
COMMENT ON COLUMN community_tree.level IS 'The level it first stands at, 0 = root.';
COMMENT ON COLUMN community_tree.last_level IS 'The deepest level it still stands at.';
COMMENT ON COLUMN community_tree.is_leaf IS 'Whether it is split no further.';
COMMENT ON COLUMN community_tree.place IS 'Its place in the tree: what the view is sorted by.';

CREATE VIEW report_basis AS
WITH RECURSIVE told AS (
    SELECT community_id, community_id AS part_id FROM community_reports
    UNION
    SELECT t.community_id, e.element_id
    FROM told t JOIN report_elements e ON e.community_id = t.part_id AND e.kind = 'report'
)
SELECT t.community_id, e.kind, e.element_id
FROM told t JOIN report_elements e ON e.community_id = t.part_id AND e.kind <> 'report'
UNION
SELECT m.community_id, 'entity', m.entity_id
FROM community_members m
SEMI JOIN (FROM community_reports ANTI JOIN report_elements USING (community_id)) untold
    ON untold.community_id = m.community_id;
COMMENT ON VIEW report_basis IS 'The entities, relationships and claims each report rests on, those of the reports it was built on among them. An imported report that does not say so rests on the entities of its community.';
COMMENT ON COLUMN report_basis.community_id IS 'The community reported on; joins communities.id and community_reports.community_id.';
COMMENT ON COLUMN report_basis.kind IS 'entity, relationship or claim.';
COMMENT ON COLUMN report_basis.element_id IS 'What it rests on; joins entities.id, relationships.id or claims.id.';

CREATE VIEW element_spans AS
SELECT 'entity' AS kind, entity_id AS element_id, chunk_id, start_char, end_char FROM entity_chunks
UNION ALL
SELECT 'relationship', relationship_id, chunk_id, start_char, end_char FROM relationship_chunks
UNION ALL
SELECT 'claim', id, chunk_id, NULL, NULL FROM claims;
COMMENT ON VIEW element_spans IS 'The chunks of entities, relationships and claims in one: where what a report rests on is found.';
COMMENT ON COLUMN element_spans.kind IS 'entity, relationship or claim.';
COMMENT ON COLUMN element_spans.element_id IS 'Joins entities.id, relationships.id or claims.id.';
COMMENT ON COLUMN element_spans.chunk_id IS 'A chunk that tells of it; joins chunks.id.';
COMMENT ON COLUMN element_spans.start_char IS 'First character of the first such place in documents.text, from 0; NULL where the extractor gave none.';
COMMENT ON COLUMN element_spans.end_char IS 'End of that span in characters, exclusive.';

CREATE VIEW report_evidence AS
SELECT r.id AS report_id, r.title AS report, r.level, b.kind,
       coalesce(e.title, l.source || ' - ' || l.target, a.subject) AS element, d.uri,
       coalesce(s.start_char, c.start_char) AS start_char,
       coalesce(s.end_char, c.end_char) AS end_char,
       span_of(c.text, s.start_char - c.start_char, s.end_char - c.start_char) AS quote,
       r.community_id, b.element_id, c.id AS chunk_id, d.id AS document_id
FROM community_reports r
JOIN report_basis b ON b.community_id = r.community_id
JOIN element_spans s ON s.element_id = b.element_id
JOIN chunks c ON c.id = s.chunk_id
JOIN documents d ON d.id = c.document_id
LEFT JOIN entities e ON e.id = b.element_id
LEFT JOIN relationships l ON l.id = b.element_id
LEFT JOIN claims a ON a.id = b.element_id;
COMMENT ON VIEW report_evidence IS 'The text each report rests on: report_basis back to the characters of documents.';
COMMENT ON COLUMN report_evidence.report_id IS 'The report; joins community_reports.id.';
COMMENT ON COLUMN report_evidence.report IS 'Its title.';
COMMENT ON COLUMN report_evidence.level IS 'Level of its community, 0 = root.';
COMMENT ON COLUMN report_evidence.kind IS 'entity, relationship or claim: what it was told of.';
COMMENT ON COLUMN report_evidence.element IS 'Title of that entity, of both ends of that relationship, or whom the claim is about.';
COMMENT ON COLUMN report_evidence.uri IS 'The document, as in documents.uri.';
COMMENT ON COLUMN report_evidence.start_char IS 'First character of the evidence in documents.text, from 0; of the whole chunk where the extractor gave no place.';
COMMENT ON COLUMN report_evidence.end_char IS 'End of that span in characters, exclusive.';
COMMENT ON COLUMN report_evidence.quote IS 'The text of that span.';
COMMENT ON COLUMN report_evidence.community_id IS 'The community reported on; joins communities.id.';
COMMENT ON COLUMN report_evidence.element_id IS 'Joins entities.id, relationships.id or claims.id.';
COMMENT ON COLUMN report_evidence.chunk_id IS 'The chunk the span stands in; joins chunks.id.';
COMMENT ON COLUMN report_evidence.document_id IS 'The document; joins documents.id.';

CREATE VIEW cost_by_stage AS
SELECT stage, model, count(*) FILTER (NOT cached) AS calls, count(*) FILTER (cached) AS cached,
       count(*) FILTER (error IS NOT NULL) AS failed,
       coalesce(sum(prompt_tokens) FILTER (NOT cached), 0)::BIGINT AS prompt_tokens,
       coalesce(sum(completion_tokens) FILTER (NOT cached), 0)::BIGINT AS completion_tokens,
       sum(cost) AS cost,
       count(*) FILTER (NOT cached AND cost IS NULL AND error IS NULL) AS without_price,
       sum(seconds) AS seconds, min(called_at) AS first_call, max(called_at) AS last_call
FROM llm_calls GROUP BY stage, model ORDER BY cost DESC NULLS LAST, stage, model;
COMMENT ON VIEW cost_by_stage IS 'What model calls took, by stage and model, the dearest first; nothing where no model was asked.';
COMMENT ON COLUMN cost_by_stage.stage IS 'What the calls were for.';
COMMENT ON COLUMN cost_by_stage.model IS 'The model that was asked.';
COMMENT ON COLUMN cost_by_stage.calls IS 'Calls that were made.';
COMMENT ON COLUMN cost_by_stage.cached IS 'Calls besides that were answered from the cache and cost nothing.';
COMMENT ON COLUMN cost_by_stage.failed IS 'Calls that ended in an error.';
COMMENT ON COLUMN cost_by_stage.prompt_tokens IS 'Tokens sent, without cached calls.';
COMMENT ON COLUMN cost_by_stage.completion_tokens IS 'Tokens received, without cached calls.';
COMMENT ON COLUMN cost_by_stage.cost IS 'US dollars; NULL where no price is known.';
COMMENT ON COLUMN cost_by_stage.without_price IS 'Calls whose price is not known; they are not in cost.';
COMMENT ON COLUMN cost_by_stage.seconds IS 'Seconds of waiting, all calls added up, also those at the same time.';
COMMENT ON COLUMN cost_by_stage.first_call IS 'When the first was made.';
COMMENT ON COLUMN cost_by_stage.last_call IS 'When the last was made.';

CREATE MACRO entities_named(name) AS TABLE
SELECT DISTINCT entity_id FROM entity_names
WHERE lower(known_as) = lower(trim(name)) OR entity_id = name;
COMMENT ON MACRO TABLE entities_named IS 'Ids of the entities with that title, alias or id, in any case; what the other macros look a name up with. Example: FROM entities_named(''orlen dam'')';

CREATE MACRO find_name(words) AS TABLE
SELECT kind, found.title, detail, found.id FROM (
    SELECT 'entity' AS kind, entity AS title, type || if(is_alias, ', as ' || known_as, '')
               || ', degree ' || degree AS detail, entity_id AS id, degree AS importance,
           known_as AS searched
    FROM entity_names JOIN entities ON id = entity_id
    UNION ALL
    SELECT 'community', title, 'level ' || level || ', rating ' || rating, community_id, rating,
           title || ' ' || summary
    FROM community_reports
    UNION ALL
    SELECT 'document', title, uri, id, 0, title || ' ' || uri FROM documents
) found
WHERE contains(lower(searched), lower(trim(words)))
ORDER BY kind DESC, importance DESC, found.title;
COMMENT ON MACRO TABLE find_name IS 'Entities, communities and documents whose name has these words; of communities the summary counts too. Example: FROM find_name(''dam'')';

CREATE MACRO entity(name) AS TABLE
SELECT e.title, e.type, e.description, e.degree, e.frequency,
       (SELECT list(known_as ORDER BY known_as) FROM entity_names n
        WHERE n.entity_id = e.id AND is_alias) AS aliases,
       p.n_documents, p.first_seen, p.last_seen, e.id
FROM entities e
LEFT JOIN (SELECT l.entity_id, count(DISTINCT c.document_id) AS n_documents,
                  min(b.created_at) AS first_seen, max(b.created_at) AS last_seen
           FROM entity_chunks l JOIN chunks c ON c.id = l.chunk_id
           LEFT JOIN batches b ON b.batch = c.batch
           WHERE l.entity_id IN (FROM entities_named(name)) GROUP BY l.entity_id) p
    ON p.entity_id = e.id
WHERE e.id IN (FROM entities_named(name));
COMMENT ON MACRO TABLE entity IS 'All about one entity in a row: type, description, degree, aliases, documents, and the batches it was first and last seen with. Example: FROM entity(''Orlen Dam'')';

CREATE MACRO neighbors(name, hops := 1) AS TABLE
WITH RECURSIVE reached(entity_id, hop) AS (
    SELECT entity_id, 0 FROM entities_named(name)
    UNION
    SELECT e.neighbor_id, r.hop + 1 FROM reached r JOIN edges e ON e.entity_id = r.entity_id
    WHERE r.hop < hops
), first_reached AS (
    SELECT entity_id, min(hop) AS hop FROM reached GROUP BY entity_id
)
SELECT r.hop, n.title AS neighbor, n.type, l.weight, l.description, l.via, n.degree,
       n.id AS neighbor_id, l.relationship_id
FROM first_reached r JOIN entities n ON n.id = r.entity_id JOIN (
    SELECT e.neighbor_id, p.hop + 1 AS hop,
           unnest(arg_max({'relationship_id': e.relationship_id, 'via': e.entity,
                           'weight': e.weight, 'description': e.description},
                          (e.weight, e.relationship_id)))
    FROM first_reached p JOIN edges e ON e.entity_id = p.entity_id
    WHERE p.hop < hops GROUP BY e.neighbor_id, p.hop
) l ON l.neighbor_id = r.entity_id AND l.hop = r.hop
ORDER BY r.hop, l.weight DESC, n.degree DESC, n.title;
COMMENT ON MACRO TABLE neighbors IS 'What an entity is related to, the strongest first; with hops, also what those are related to, each where it is first reached, by the strongest relationship to it. Example: FROM neighbors(''Orlen Dam'', hops := 2)';

CREATE MACRO shortest_path(one, other, longest := 6) AS TABLE
WITH RECURSIVE reached(entity_id, step) AS (
    SELECT entity_id, 0 FROM entities_named(one)
    UNION
    SELECT e.neighbor_id, r.step + 1 FROM reached r JOIN edges e ON e.entity_id = r.entity_id
    WHERE r.step < longest AND NOT EXISTS (
        FROM reached WHERE entity_id IN (FROM entities_named(other)))
), first_reached AS MATERIALIZED (
    SELECT entity_id, min(step) AS step FROM reached GROUP BY entity_id
), way(entity_id, step, relationship_id, from_id) AS (
    (SELECT entity_id, step + 1, NULL::VARCHAR, entity_id FROM first_reached
     WHERE entity_id IN (FROM entities_named(other)) ORDER BY step LIMIT 1)
    UNION ALL
    SELECT w.from_id, w.step - 1, e.relationship_id, e.neighbor_id FROM way w
    JOIN edges e ON e.entity_id = w.from_id
    JOIN first_reached r ON r.entity_id = e.neighbor_id AND r.step = w.step - 2
    QUALIFY row_number() OVER (ORDER BY e.weight DESC, e.relationship_id DESC) = 1
)
SELECT w.step, e.entity AS from_entity, e.neighbor AS to_entity, e.weight, e.description,
       e.entity_id AS from_id, e.neighbor_id AS to_id, e.relationship_id
FROM way w JOIN edges e ON e.relationship_id = w.relationship_id AND e.entity_id = w.from_id
ORDER BY w.step;
COMMENT ON MACRO TABLE shortest_path IS 'How two entities are connected in the fewest steps, each by the strongest relationship that leads there; no row if there is no way of at most longest steps. Example: FROM shortest_path(''Orlen Dam'', ''Halcyon'')';

CREATE MACRO mentions(name) AS TABLE
SELECT DISTINCT ON (d.uri, start_char, end_char)
       e.title AS entity, m.title AS written, d.uri,
       c.start_char + coalesce(m.start_char, 0) AS start_char,
       coalesce(c.start_char + m.end_char, c.end_char) AS end_char,
       span_of(c.text, m.start_char, m.end_char) AS quote,
       span_of(c.text, greatest(m.start_char - 80, 0), m.end_char + 80) AS around,
       e.id AS entity_id, c.id AS chunk_id, d.id AS document_id
FROM entities_named(name) found
JOIN entities e ON e.id = found.entity_id
JOIN resolved_entity_mentions m ON m.entity_id = e.id
JOIN chunks c ON c.id = m.chunk_id
JOIN documents d ON d.id = c.document_id
ORDER BY ALL;
COMMENT ON MACRO TABLE mentions IS 'Where the documents name an entity, also by an alias: each place once. Example: SELECT uri, start_char, around FROM mentions(''Orlen Dam'')';

CREATE MACRO evidence(one, other) AS TABLE
WITH between_them AS MATERIALIZED (
    SELECT relationship_id FROM edges
    WHERE entity_id IN (FROM entities_named(one)) AND neighbor_id IN (FROM entities_named(other))
)
SELECT r.source, r.target, d.uri, coalesce(s.start_char, c.start_char) AS start_char,
       coalesce(s.end_char, c.end_char) AS end_char,
       span_of(c.text, s.start_char - c.start_char, s.end_char - c.start_char) AS quote,
       s.n_mentions, r.id AS relationship_id, c.id AS chunk_id, d.id AS document_id
FROM between_them b
JOIN relationships r ON r.id = b.relationship_id
JOIN relationship_chunks s ON s.relationship_id = r.id
JOIN chunks c ON c.id = s.chunk_id
JOIN documents d ON d.id = c.document_id
ORDER BY d.uri, start_char;
COMMENT ON MACRO TABLE evidence IS 'The text that relates two entities, whichever comes first: document, characters and quote of each supporting chunk. Example: SELECT uri, start_char, quote FROM evidence(''Orlen Dam'', ''Oskar Kovarna'')';

CREATE MACRO communities_of(name) AS TABLE
SELECT m.level, c.title AS community, c.size, r.rating, r.title AS report, r.summary, m.entity_id,
       c.id AS community_id, c.parent_id
FROM community_members m JOIN communities c ON c.id = m.community_id
LEFT JOIN community_reports r ON r.community_id = c.id
WHERE m.entity_id IN (FROM entities_named(name)) ORDER BY m.entity_id, m.level;
COMMENT ON MACRO TABLE communities_of IS 'The community an entity is in at each level from the root down, with its report. Example: FROM communities_of(''Orlen Dam'')';

CREATE MACRO communities_named(name) AS TABLE
SELECT c.id AS community_id
FROM communities c LEFT JOIN community_reports r ON r.community_id = c.id
WHERE lower(c.title) = lower(trim(name)) OR lower(r.title) = lower(trim(name)) OR c.id = name;
COMMENT ON MACRO TABLE communities_named IS 'Ids of the communities with that title, title of the report or id; what the other macros look a community up with. Example: FROM communities_named(''Orlen Dam, Corrie Quarry, Vessa'')';

CREATE MACRO members_of(community) AS TABLE
SELECT e.title, e.type, e.degree, e.description, e.id AS entity_id, c.id AS community_id
FROM communities c
JOIN community_members m ON m.community_id = c.id AND m.level = c.level
JOIN entities e ON e.id = m.entity_id
WHERE c.id IN (FROM communities_named(community)) ORDER BY e.degree DESC, e.title;
COMMENT ON MACRO TABLE members_of IS 'The entities of a community, given by title or id, the best connected first. Example: FROM members_of(''Orlen Dam, Corrie Quarry, Vessa'')';

CREATE MACRO report_sources(community) AS TABLE
WITH basis AS MATERIALIZED (
    FROM report_basis WHERE community_id IN (FROM communities_named(community))
), spans AS MATERIALIZED (
    SELECT s.*, b.community_id FROM basis b JOIN element_spans s ON s.element_id = b.element_id
)
SELECT r.title AS report, s.kind, coalesce(e.title, l.source || ' - ' || l.target) AS element,
       d.uri, coalesce(s.start_char, c.start_char) AS start_char,
       coalesce(s.end_char, c.end_char) AS end_char,
       span_of(c.text, s.start_char - c.start_char, s.end_char - c.start_char) AS quote,
       r.community_id, s.element_id, c.id AS chunk_id, d.id AS document_id
FROM spans s
JOIN community_reports r ON r.community_id = s.community_id
JOIN chunks c ON c.id = s.chunk_id
JOIN documents d ON d.id = c.document_id
LEFT JOIN entities e ON e.id = s.element_id
LEFT JOIN relationships l ON l.id = s.element_id
ORDER BY d.uri, start_char, s.kind, element;
COMMENT ON MACRO TABLE report_sources IS 'The text a report rests on, by title or id of the community. Example: SELECT kind, element, uri, quote FROM report_sources(''Orlen Dam, Corrie Quarry, Vessa'')';

CREATE MACRO claims_of(name) AS TABLE
SELECT l.subject, l.object, l.type, l.status, l.start_date, l.end_date, l.description,
       l.source_text AS quote, d.uri, c.start_char, c.end_char, l.id AS claim_id, l.chunk_id
FROM resolved_claims l JOIN chunks c ON c.id = l.chunk_id JOIN documents d ON d.id = c.document_id
WHERE l.subject_id IN (FROM entities_named(name))
   OR lower(l.object) IN (SELECT lower(known_as) FROM entity_names
                          WHERE entity_id IN (FROM entities_named(name)))
ORDER BY l.start_date, d.uri, c.start_char;
COMMENT ON MACRO TABLE claims_of IS 'What is claimed of an entity, as subject or object, with the words it rests on and the span of their chunk; empty unless claims were extracted. Example: FROM claims_of(''Orlen Dam'')';

CREATE VIEW macros AS
SELECT DISTINCT function_name || '(' || array_to_string(parameters, ', ') || ')' AS macro,
       split_part(comment, ' Example: ', 1) AS about, split_part(comment, ' Example: ', 2) AS example
FROM duckdb_functions()
WHERE function_type IN ('macro', 'table_macro') AND NOT internal AND contains(comment, ' Example: ')
ORDER BY macro;
COMMENT ON VIEW macros IS 'The macros of this file, each with an example; its names are those of the sample corpus.';
COMMENT ON COLUMN macros.macro IS 'Name and arguments.';
COMMENT ON COLUMN macros.about IS 'What it gives.';
COMMENT ON COLUMN macros.example IS 'A query that uses it.';
