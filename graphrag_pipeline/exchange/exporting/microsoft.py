"""The index in the parquet files of microsoft/graphrag, version 3."""

from __future__ import annotations

from graphrag_pipeline.exchange.exporting.writing import Exporter, Writer

LOST = (
    "character spans of text units, mentions and findings (on import, units are found again in "
    "their documents' text)",
    "mentions before merging, and aliases: an entity is what they were merged into",
    "who wrote a report, and how much of its community it covers",
    "vectors: GraphRAG embeds with a model of its own",
    "model calls, releases and the history of batches",
)
_NO_TEXTS = "[]::VARCHAR[]"
_MEMBERS = """
members AS MATERIALIZED (
    SELECT m.community_id, m.entity_id FROM community_members m
    JOIN communities c ON c.id = m.community_id AND c.level = m.level)
"""
# GraphRAG dates communities and reports by the run that made them.
_PERIOD = "(SELECT strftime(max(created_at), '%Y-%m-%d') FROM releases)"
_CHILDREN = """
children AS (
    SELECT parent_id, list(human_readable_id ORDER BY human_readable_id) AS children
    FROM communities WHERE parent_id IS NOT NULL GROUP BY parent_id)
"""
_DOCUMENTS = f"""
WITH units AS (
    SELECT document_id, list(id ORDER BY ordinal) AS ids FROM chunks GROUP BY document_id)
SELECT d.id, d.human_readable_id, d.title, d.text, coalesce(u.ids, {_NO_TEXTS}) AS text_unit_ids,
       coalesce(d.metadata->>'creation_date',
                strftime(b.created_at, '%Y-%m-%d %H:%M:%S +0000')) AS creation_date,
       NULL::INTEGER AS raw_data
FROM documents d LEFT JOIN units u ON u.document_id = d.id LEFT JOIN batches b USING (batch)
ORDER BY d.human_readable_id
"""
# Numbered in reading order, as GraphRAG does: import-graphrag finds units one behind another.
_TEXT_UNITS = f"""
WITH named AS (
    SELECT chunk_id, list(e.id ORDER BY e.human_readable_id) AS ids
    FROM entity_chunks JOIN entities e ON e.id = entity_id GROUP BY chunk_id),
related AS (
    SELECT chunk_id, list(r.id ORDER BY r.human_readable_id) AS ids
    FROM relationship_chunks JOIN relationships r ON r.id = relationship_id GROUP BY chunk_id),
claimed AS (
    SELECT chunk_id, list(id ORDER BY human_readable_id) AS ids FROM claims GROUP BY chunk_id)
SELECT c.id, row_number() OVER (ORDER BY d.human_readable_id, c.ordinal) - 1 AS human_readable_id,
       c.text, c.n_tokens, c.document_id,
       coalesce(n.ids, {_NO_TEXTS}) AS entity_ids,
       coalesce(r.ids, {_NO_TEXTS}) AS relationship_ids,
       coalesce(a.ids, {_NO_TEXTS}) AS covariate_ids
FROM chunks c JOIN documents d ON d.id = c.document_id
LEFT JOIN named n ON n.chunk_id = c.id LEFT JOIN related r ON r.chunk_id = c.id
LEFT JOIN claimed a ON a.chunk_id = c.id ORDER BY d.human_readable_id, c.ordinal
"""
_ENTITIES = f"""
WITH units AS (
    SELECT entity_id, list(c.id ORDER BY c.human_readable_id) AS ids
    FROM entity_chunks JOIN chunks c ON c.id = chunk_id GROUP BY entity_id)
SELECT e.id, e.human_readable_id, e.title, e.type, e.description,
       coalesce(u.ids, {_NO_TEXTS}) AS text_unit_ids, e.frequency, e.degree
FROM entities e LEFT JOIN units u ON u.entity_id = e.id ORDER BY e.human_readable_id
"""
_RELATIONSHIPS = f"""
WITH units AS (
    SELECT relationship_id, list(c.id ORDER BY c.human_readable_id) AS ids
    FROM relationship_chunks JOIN chunks c ON c.id = chunk_id GROUP BY relationship_id)
SELECT r.id, r.human_readable_id, r.source, r.target, r.description, r.weight, r.combined_degree,
       coalesce(u.ids, {_NO_TEXTS}) AS text_unit_ids
FROM relationships r LEFT JOIN units u ON u.relationship_id = r.id ORDER BY r.human_readable_id
"""
# As in GraphRAG, a community's text units are those that support the relationships within it.
_COMMUNITIES = f"""
WITH {_MEMBERS}, {_CHILDREN},
inside AS MATERIALIZED (
    SELECT s.community_id, r.id, r.human_readable_id FROM relationships r
    JOIN members s ON s.entity_id = r.source_id
    JOIN members t ON t.entity_id = r.target_id AND t.community_id = s.community_id),
related AS (
    SELECT community_id, list(id ORDER BY human_readable_id) AS ids FROM inside
    GROUP BY community_id),
supported AS (
    SELECT community_id, list(DISTINCT chunk_id) AS ids
    FROM inside JOIN relationship_chunks ON relationship_id = inside.id GROUP BY community_id),
held AS (
    SELECT community_id, list(entity_id ORDER BY human_readable_id) AS ids
    FROM members JOIN entities ON id = entity_id GROUP BY community_id)
SELECT c.id, c.human_readable_id, c.human_readable_id AS community, c.level::BIGINT AS level,
       coalesce(p.human_readable_id, -1) AS parent,
       coalesce(k.children, []::BIGINT[]) AS children, c.title, h.ids AS entity_ids,
       coalesce(r.ids, {_NO_TEXTS}) AS relationship_ids,
       list_sort(coalesce(s.ids, {_NO_TEXTS})) AS text_unit_ids, {_PERIOD} AS period, c.size
FROM communities c LEFT JOIN communities p ON p.id = c.parent_id
LEFT JOIN children k ON k.parent_id = c.id LEFT JOIN held h ON h.community_id = c.id
LEFT JOIN related r ON r.community_id = c.id LEFT JOIN supported s ON s.community_id = c.id
ORDER BY c.human_readable_id
"""
_REPORTS = f"""
WITH {_CHILDREN},
told AS (
    SELECT *, list_transform(findings, lambda f:
        struct_pack(explanation := f.explanation, summary := f.summary)) AS said
    FROM community_reports)
SELECT t.id, c.human_readable_id, c.human_readable_id AS community, c.level::BIGINT AS level,
       coalesce(p.human_readable_id, -1) AS parent,
       coalesce(k.children, []::BIGINT[]) AS children, t.title, t.summary, t.full_content,
       t.rating AS rank, t.rating_explanation, t.said AS findings,
       to_json(struct_pack(title := t.title, summary := t.summary, findings := t.said,
           rating := t.rating, rating_explanation := t.rating_explanation))::VARCHAR
           AS full_content_json,
       {_PERIOD} AS period, c.size
FROM told t JOIN communities c ON c.id = t.community_id
LEFT JOIN communities p ON p.id = c.parent_id LEFT JOIN children k ON k.parent_id = c.id
ORDER BY c.human_readable_id
"""
# GraphRAG joins claims to entities by title, and writes NONE for what is not known.
_COVARIATES = """
SELECT c.id, c.human_readable_id, 'claim' AS covariate_type, coalesce(c.type, 'NONE') AS type,
       c.description, coalesce(e.title, c.subject) AS subject_id,
       coalesce(c.object, 'NONE') AS object_id, coalesce(c.status, 'NONE') AS status,
       coalesce(c.start_date, 'NONE') AS start_date, coalesce(c.end_date, 'NONE') AS end_date,
       coalesce(c.source_text, 'NONE') AS source_text, c.chunk_id AS text_unit_id
FROM resolved_claims c LEFT JOIN entities e ON e.id = c.subject_id ORDER BY c.human_readable_id
"""
_FILES = {
    "documents": _DOCUMENTS,
    "text_units": _TEXT_UNITS,
    "entities": _ENTITIES,
    "relationships": _RELATIONSHIPS,
    "communities": _COMMUNITIES,
    "community_reports": _REPORTS,
    "covariates": _COVARIATES,
}


def write_microsoft(writer: Writer) -> None:
    """Write the seven tables of GraphRAG's output, each with all its columns.

    Ids and human-readable ids are ours, so what reports cite still resolves; text units, which
    none cites, are numbered in reading order. A community is written once, at the level where it
    arises; ``import-graphrag`` lets it stand on below.
    """
    for name, query in _FILES.items():
        writer.copy(f"{name}.parquet", query, "FORMAT parquet, COMPRESSION zstd")


GRAPHRAG = Exporter(
    "graphrag-output",
    "graphrag-pipeline import-graphrag {path}, or GraphRAG's own query",
    folder=write_microsoft,
    lost=LOST,
)
