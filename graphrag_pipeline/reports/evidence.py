"""Evidence of a report without a model, and a hash of it: the sentences behind relationships.

What is read of a community or relationship depends on nothing else that is read with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy

# Materialized, or DuckDB would join all pairs of members of a community first.
_COMMUNITIES = """
WITH members AS (
    SELECT m.community_id, m.entity_id FROM {members} m
    JOIN {communities} c ON c.id = m.community_id AND c.level = m.level
    SEMI JOIN reported ON reported.community_id = m.community_id),
of_source AS MATERIALIZED (
    SELECT s.community_id, r.target_id, r.weight FROM {relationships} r
    JOIN members s ON s.entity_id = r.source_id),
weights AS (
    SELECT s.community_id, fsum(s.weight) AS weight FROM of_source s
    JOIN members t ON t.entity_id = s.target_id AND t.community_id = s.community_id GROUP BY ALL)
SELECT c.id, c.title, c.size, c.n_relationships, coalesce(weight, 0) FROM {communities} c
SEMI JOIN reported ON reported.community_id = c.id LEFT JOIN weights w ON w.community_id = c.id
"""
_SENTENCES = """
WITH pairs AS MATERIALIZED (
    SELECT id, source_id, target_id FROM {relationships} r
    SEMI JOIN told ON told.relationship_id = r.id),
sentences AS MATERIALIZED (
    SELECT r.id AS relationship_id, m.description AS text, m.chunk_id, c.document_id,
           c.start_char + m.start_char AS start_char, c.start_char + m.end_char AS end_char,
           coalesce((m.start_char < 2 AND c.start_char > 0)
                    OR (m.end_char > c.end_char - c.start_char - 2 AND c.end_char < d.n_chars),
                    false) AS cut_off
    FROM resolved_relationship_mentions m
    JOIN pairs r ON r.source_id = m.source_id AND r.target_id = m.target_id
    JOIN chunks c ON c.id = m.chunk_id
    JOIN documents d ON d.id = c.document_id
    WHERE m.description <> ''),
repeated AS (
    SELECT relationship_id, text, count(DISTINCT document_id) AS n_documents FROM sentences
    GROUP BY ALL),
near AS (SELECT b.* FROM blocks b SEMI JOIN sentences USING (document_id))
SELECT s.* EXCLUDE document_id, n_documents,
       CASE WHEN b.end_char > s.start_char THEN b.kind ELSE '' END AS block
FROM sentences s JOIN repeated USING (relationship_id, text)
ASOF LEFT JOIN near b ON b.document_id = s.document_id AND b.start_char <= s.start_char
"""
# A hash of the weight of each relationship and of its sentences.
_PLACES = """
SELECT r.id AS relationship_id, left(md5(concat_ws(':', r.weight, places)), 16) AS places
FROM {relationships} r SEMI JOIN told ON told.relationship_id = r.id LEFT JOIN (
    SELECT relationship_id, concat_ws(':', count(*), sum(md5_number_lower(concat_ws(
               chr(10), chunk_id, start_char, end_char, cut_off, n_documents, block, text))))
               AS places
    FROM cited GROUP BY relationship_id) e ON e.relationship_id = r.id
"""


@dataclass(frozen=True)
class Evidence:
    """The texts that the contexts of some communities rest on.

    ``communities`` are these and the sub-communities whose reports they hold: (id, title, size,
    n_relationships, weight). ``sentences`` are the instances behind the relationships that are
    told (relationship_id, text, chunk_id, start_char, end_char, cut_off, n_documents, block): with
    their place in the document, in how many documents each stands word for word, and the kind of
    block that it begins in, as blocks of a document never overlap. ``places`` is a hash of each
    relationship's weight and sentences.
    """

    communities: pl.DataFrame
    sentences: pl.DataFrame
    places: Mapping[str, str]


def read_evidence(
    con: duckdb.DuckDBPyConnection,
    contexts: Sequence[Context],
    hierarchy: Hierarchy = GRAPH,
    sentences: pl.DataFrame | None = None,
) -> Evidence:
    """Read what some contexts rest on.

    ``sentences`` are those of :func:`read_sentences` of these relationships and of others, where
    they were read before.
    """
    communities = [c.community_id for c in contexts]
    communities += [child for context in contexts for child in context.sub_reports]
    relationships = (told for context in contexts for told in context.relationships)
    told = _distinct("relationship_id", relationships)
    if sentences is None:
        cited = read_sentences(con, told, hierarchy)
    else:
        cited = sentences.join(told, "relationship_id", "semi")
    put_rows(con, "reported", _distinct("community_id", communities))
    put_rows(con, "told", told)
    put_rows(con, "cited", cited)
    evidence = Evidence(
        con.sql(hierarchy.sql(_COMMUNITIES)).pl(),
        cited,
        dict(con.execute(hierarchy.sql(_PLACES)).fetchall()),
    )
    drop_rows(con, "reported", "told", "cited")
    return evidence


def read_sentences(
    con: duckdb.DuckDBPyConnection, relationships: pl.DataFrame, hierarchy: Hierarchy = GRAPH
) -> pl.DataFrame:
    """Return the instances behind some relationships (relationship_id): ``Evidence.sentences``."""
    put_rows(con, "told", relationships)
    sentences = con.sql(hierarchy.sql(_SENTENCES)).pl()
    drop_rows(con, "told")
    return sentences


def _distinct(name: str, values: Iterable[str]) -> pl.DataFrame:
    return pl.DataFrame({name: [*dict.fromkeys(values)]}, schema={name: pl.String})
