"""Reports that may be outdated, found by column, without a context.

A digest covers all that a community's context and its report can depend on, and somewhat more. A
report whose digest is as it was when its context was last compared needs no look at its context.
Where the digest is another, the context decides. So a digest is no more than a short cut: when it
is lost, or made otherwise, contexts are compared again and no report is written for it.

Rows are hashed by DuckDB's own function, 20 times as fast as MD5. It may be another in another
version of DuckDB, which is why that is part of each digest.
"""

from __future__ import annotations

import duckdb
import polars as pl

from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.reports.inputs import MIN_SIZE
from graphrag_pipeline.reports.text import ReportWriter
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.hash_memory import digest_of
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy

CHANGED = "changed_inputs"
"""The temporary table (community_id, digest) of :func:`find_changed`."""

_DIGESTS_VERSION = "1"


def _sum(*columns: str) -> str:
    """Return an aggregate: a sum of the hashes of rows, so that their order does not matter.

    Hashed twice, for DuckDB only adds up the hashes of columns.
    """
    return f"sum(hash(hash({', '.join(columns)})))"


_ENTITY = ("id", "title", "type", "description", "n_tokens")
_RELATIONSHIP = (
    *("id", "source_id", "target_id", "source", "target", "description", "combined_degree"),
    *("n_tokens", "weight"),
)
_CLAIM = (
    *("id", "human_readable_id", "subject_id", "subject", "object", "type", "status"),
    *("start_date", "end_date", "description"),
)
# What is cited of the documents, as far as it is not in the id of a chunk.
_DOCUMENTS = f"""
SELECT d.id AS document_id, hash(d.n_chars, b.digest) AS digest FROM documents d LEFT JOIN (
    SELECT document_id AS id, {_sum("start_char", "end_char", "kind")} AS digest
    FROM blocks GROUP BY ALL) b USING (id)
"""
_MENTIONS = f"""
SELECT source_id, target_id, chunk_id, hash(hash(
           m.chunk_id, m.description, m.start_char, m.end_char, c.start_char, c.end_char, d.digest))
       AS digest
FROM resolved_relationship_mentions m JOIN chunks c ON c.id = m.chunk_id
JOIN ({_DOCUMENTS}) d USING (document_id)
"""
_NO_MENTIONS = "SELECT '' AS source_id, '' AS target_id, 0::UBIGINT AS digest WHERE false"
_CLAIMS = f"SELECT subject_id, {_sum(*_CLAIM)} AS digest FROM resolved_claims GROUP BY ALL"
_NO_CLAIMS = "SELECT '' AS subject_id, 0 AS digest WHERE false"

# Materialized, or DuckDB would join all pairs of members of a community first.
_OF_GRAPH = f"""
WITH own AS (
    SELECT m.community_id, m.entity_id, c.level FROM {{members}} m
    JOIN {{communities}} c ON c.id = m.community_id AND c.level = m.level),
mentioned AS (SELECT source_id, target_id, sum(digest) AS digest FROM ({{mentions}}) GROUP BY ALL),
entities_now AS MATERIALIZED (
    SELECT e.id, hash(hash({", ".join(f"e.{column}" for column in _ENTITY)}, claims.digest))
           AS digest
    FROM {{entities}} e LEFT JOIN ({{claims}}) claims ON claims.subject_id = e.id),
relationships_now AS MATERIALIZED (
    SELECT r.source_id, r.target_id,
           hash(hash({", ".join(f"r.{column}" for column in _RELATIONSHIP)}, m.digest)) AS digest
    FROM {{relationships}} r
    LEFT JOIN mentioned m ON m.source_id = r.source_id AND m.target_id = r.target_id),
of_source AS MATERIALIZED (
    SELECT s.community_id, r.target_id, r.digest FROM relationships_now r
    JOIN own s ON s.entity_id = r.source_id),
nodes AS (
    SELECT community_id AS id, sum(digest) AS digest, {_sum("community_id", "entity_id")} AS members
    FROM own JOIN entities_now e ON e.id = entity_id GROUP BY ALL),
edges AS (
    SELECT s.community_id AS id, sum(s.digest) AS digest FROM of_source s
    JOIN own t ON t.entity_id = s.target_id AND t.community_id = s.community_id GROUP BY ALL),
parts AS (
    SELECT parent_id AS id, {_sum("c.id", "members")} AS digest FROM {{communities}} c
    JOIN nodes ON nodes.id = c.id GROUP BY ALL)
SELECT c.id AS community_id, c.level, hash(
           c.level, c.size, c.n_relationships, c.title, nodes.digest, edges.digest, parts.digest
       ) AS digest
FROM {{communities}} c LEFT JOIN nodes USING (id) LEFT JOIN edges USING (id)
LEFT JOIN parts USING (id)
WHERE c.size >= $min_size
"""
_TOLD = f"""
SELECT c.parent_id AS community_id,
       {_sum("r.community_id", "r.n_tokens", "full_content", "findings", "coverage", "c.size")}
       AS digest
FROM {{reports}} r JOIN {{communities}} c ON c.id = r.community_id
WHERE r.level = $level + 1 GROUP BY ALL
"""
_COMPARED = """
SELECT i.community_id, i.digest FROM staging.report_inputs i
JOIN {reports} r ON r.community_id = i.community_id AND r.context_hash = i.context_hash
WHERE i.hierarchy = $hierarchy AND r.level = $level AND coalesce(r.outdated, 0) = 0
"""
# What contexts of any level depend on, but for reports.
_GRAPH = ", ".join(
    f"(SELECT concat_ws(':', count(*), {_sum(*columns)}) FROM {relation})"
    for relation, columns in {
        "{entities}": (*_ENTITY, "frequency"),
        "{relationships}": _RELATIONSHIP,
        "({mentions})": ("source_id", "target_id", "digest"),
        "({claims})": ("subject_id", "digest"),
        "{communities}": ("id", "level", "parent_id", "title", "size", "n_relationships"),
        "{members}": ("community_id", "entity_id", "level"),
    }.items()
)
_BELOW = f"""
SELECT concat_ws(':', count(*), {
    _sum("community_id", "n_tokens", "full_content", "findings", "coverage")
})
FROM {{reports}} r SEMI JOIN {{communities}} c ON c.id = r.community_id WHERE r.level = $level
"""


def community_digests(
    con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy, writer: ReportWriter
) -> pl.DataFrame:
    """Return (community_id, level, digest) of all communities to report on.

    The digest is of what there is of a community in the graph.
    """
    return con.execute(_sql(_OF_GRAPH, hierarchy, writer), {"min_size": MIN_SIZE}).pl()


def find_changed(
    con: duckdb.DuckDBPyConnection,
    hierarchy: Hierarchy,
    level: int,
    of_graph: pl.DataFrame,
    version: str,
) -> pl.DataFrame:
    """Return (community_id, digest) of those communities of a level that may need another report.

    They are also the table :data:`CHANGED` of the connection. ``of_graph`` has what
    :func:`community_digests` returns; ``version`` decides a report besides its context.
    """
    put_rows(con, "of_graph", of_graph.filter(pl.col("level") == level))
    con.execute(
        f"""CREATE OR REPLACE TEMP TABLE {CHANGED} AS WITH now AS (
                SELECT community_id, md5(concat_ws(':', $version, g.digest, coalesce(t.digest, 0)))
                       AS digest
                FROM of_graph g LEFT JOIN ({hierarchy.sql(_TOLD)}) t USING (community_id))
            SELECT * FROM now ANTI JOIN ({hierarchy.sql(_COMPARED)}) c
                ON c.community_id = now.community_id AND c.digest = now.digest
            ORDER BY community_id""",
        {
            "level": level,
            "hierarchy": hierarchy.name,
            "version": fingerprint(_DIGESTS_VERSION, duckdb.__version__, version),
        },
    )
    drop_rows(con, "of_graph")
    return con.sql(f"FROM {CHANGED}").pl()


def remember_compared(
    con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy, communities: str
) -> None:
    """Note that reports are as they should be for the digests in the table ``communities``.

    It has (community_id, digest). One that has failed, or stays although it is outdated, is looked
    at again.
    """
    con.execute(
        f"""DELETE FROM staging.report_inputs WHERE {hierarchy.is_own}
                AND community_id IN (SELECT community_id FROM {communities});
            INSERT INTO staging.report_inputs BY NAME
            SELECT '{hierarchy.name}' AS hierarchy, n.community_id, digest, context_hash
            FROM {communities} n JOIN hierarchy_reports r ON r.community_id = n.community_id
            WHERE r.{hierarchy.is_own}"""
    )


def forget_removed(con: duckdb.DuckDBPyConnection, hierarchy: Hierarchy) -> None:
    """Forget the digests of communities that have no report."""
    con.execute(
        f"""DELETE FROM staging.report_inputs WHERE {hierarchy.is_own} AND community_id NOT IN (
                SELECT community_id FROM hierarchy_reports WHERE {hierarchy.is_own})"""
    )


def graph_digest(
    con: duckdb.DuckDBPyConnection, writer: ReportWriter, hierarchy: Hierarchy = GRAPH
) -> str:
    """Return a digest of all that the reports of any level depend on, but for other reports."""
    digests = digest_of(con, f"SELECT {_sql(_GRAPH, hierarchy, writer)}")
    return fingerprint(_DIGESTS_VERSION, duckdb.__version__, *digests.split(" "))


def reports_digest(con: duckdb.DuckDBPyConnection, level: int, hierarchy: Hierarchy) -> str:
    """Return a digest of the reports of a level."""
    return digest_of(con, hierarchy.sql(_BELOW), level=level)


def _sql(query: str, hierarchy: Hierarchy, writer: ReportWriter) -> str:
    mentions = _NO_MENTIONS if writer.is_model else _MENTIONS
    claims = _CLAIMS if writer.is_model else _NO_CLAIMS
    return hierarchy.sql(query.replace("{mentions}", mentions).replace("{claims}", claims))
