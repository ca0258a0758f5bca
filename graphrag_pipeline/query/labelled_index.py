"""The part of a release that labels open, made into an index of its own.

Whatever is made of many documents at once would tell of those that a caller may not see: by its
words, or by being another than it would be without them. So what single chunks say is taken over,
and names, graph, communities and reports are made of that by the rules of indexing without a model.
A view is what an index of the visible documents would be, whatever else there is.

Source: Goguen and Meseguer, Security Policies and Security Models, 1982 (non-interference).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.graph.communities import cluster_within
from graphrag_pipeline.graph.fold import merge_within
from graphrag_pipeline.graph.resolution.resolving import resolve_by_rule
from graphrag_pipeline.graph.resolution.splits import forget_splits
from graphrag_pipeline.graph.resolution.user_aliases import (
    MERGE,
    RENAME,
    SPLIT,
    UserRow,
    read_user_aliases,
)
from graphrag_pipeline.query.limited_reports import write_reports
from graphrag_pipeline.store.migrations import schema_sql

if TYPE_CHECKING:
    import duckdb

    from graphrag_pipeline.core.settings import Settings

# Numbers have no gaps where a document is hidden. A batch is as large as all that came with it.
_NUMBERS = """
CREATE TABLE document_numbers AS
SELECT id, row_number() OVER (ORDER BY d.human_readable_id, id) - 1 AS human_readable_id
FROM published.documents d SEMI JOIN kept_documents USING (id);
CREATE TABLE chunk_numbers AS
SELECT c.id, row_number() OVER (ORDER BY d.human_readable_id, ordinal, c.id) - 1
       AS human_readable_id
FROM published.chunks c JOIN document_numbers d ON d.id = c.document_id;
CREATE TABLE claim_numbers AS
SELECT t.id, row_number() OVER (ORDER BY c.human_readable_id, t.id) - 1 AS human_readable_id
FROM published.claims t JOIN chunk_numbers c ON c.id = t.chunk_id;
CREATE OR REPLACE VIEW document_names AS
SELECT id AS document_id, uri, source, true AS is_first FROM documents;
"""
_NUMBERED = """
DROP TABLE {kind}s;
CREATE VIEW {kind}s AS
SELECT t.* REPLACE (n.human_readable_id AS human_readable_id, '' AS batch)
FROM {rows} t JOIN {kind}_numbers n ON n.id = t.id;
"""
_OF_OTHERS = {
    "blocks": "document",
    **dict.fromkeys(
        ("extractions", "entity_mentions", "relationship_mentions", "chunk_names"), "chunk"
    ),
}
_OF_ANOTHER = """
DROP TABLE {table};
CREATE VIEW {table} AS
SELECT t.* REPLACE ('' AS batch) FROM published.{table} t
SEMI JOIN {kind}_numbers n ON n.id = t.{kind}_id;
"""
# The user's word that two names are one is what a document says that has both, and nothing before.
_TOGETHER = """
WITH named AS (
    SELECT DISTINCT entity_id, document_id FROM entity_mentions JOIN chunks ON id = chunk_id)
SELECT DISTINCT p.one, p.two
FROM (SELECT unnest($one::VARCHAR[]) AS one, unnest($two::VARCHAR[]) AS two) p
JOIN named a ON a.entity_id = p.one
JOIN named b ON b.entity_id = p.two AND b.document_id = a.document_id
"""
_SEEN = "SELECT DISTINCT entity_id FROM entity_mentions WHERE entity_id IN (SELECT unnest($ids))"


def make_index(con: duckdb.DuckDBPyConnection, settings: Settings, documents: str) -> None:
    """Make the tables of an index of the documents in ``kept_documents``, in the open database.

    ``documents`` is the table that has them; all else is in ``published``. Raises ConfigError for a
    file of aliases that cannot be used.
    """
    con.execute(schema_sql())
    con.execute(_NUMBERS)
    for kind in ("document", "chunk", "claim"):
        rows = documents if kind == "document" else f"published.{kind}s"
        con.execute(_NUMBERED.format(kind=kind, rows=rows))
    for table, kind in _OF_OTHERS.items():
        con.execute(_OF_ANOTHER.format(table=table, kind=kind))
    # What a transaction has not committed yet DuckDB knows little of, and joins slowly.
    con.execute("BEGIN")
    resolve_by_rule(con, settings, _followed(con, read_user_aliases(settings.aliases_path)))
    merge_within(con, settings.graph, settings.chunks.encoding)
    forget_splits(con)
    con.execute("COMMIT; BEGIN")
    cluster_within(con, settings.communities)
    con.execute("COMMIT")
    write_reports(con, settings.reports)
    con.execute("DROP SCHEMA staging CASCADE")


def _followed(con: duckdb.DuckDBPyConnection, rows: Sequence[UserRow]) -> list[UserRow]:
    """Return the lines of the user's file that say nothing of names which no document here has."""
    joining = [row for row in rows if row.action in (MERGE, RENAME)]
    names = {"one": [row.a_id for row in joining], "two": [row.b_id for row in joining]}
    together = set(con.execute(_TOGETHER, names).fetchall()) if joining else set()
    followed = [row for row in rows if row not in joining or (row.a_id, row.b_id) in together]
    splits = [row for row in followed if row.action == SPLIT]
    ids = [
        {row.a_id, *(each.split_id for each in splits if each.a_id == row.a_id)} for row in splits
    ]
    seen = {id for (id,) in con.execute(_SEEN, {"ids": [*set().union(*ids)]}).fetchall()}
    alone = [row for row, others in zip(splits, ids, strict=True) if len(others & seen) < 2]
    return [row for row in followed if row not in alone]
