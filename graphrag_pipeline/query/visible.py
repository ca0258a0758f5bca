"""What labels open of a release, made into an index of its own.

Whatever is made of many documents at once would tell of those that a caller may not see: by its
words, or by being another than it would be without them. So what single chunks say is copied, and
names, graph, communities and reports are made of that by the rules of indexing without a model. A
view is what an index of the visible documents would be, whatever else there is.

Source: Goguen and Meseguer, Security Policies and Security Models, 1982 (non-interference).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.graph.communities import cluster_within
from graphrag_pipeline.graph.fold import merge_within
from graphrag_pipeline.graph.resolution.resolving import resolve_by_rule
from graphrag_pipeline.graph.resolution.user_aliases import (
    MERGE,
    RENAME,
    UserRow,
    read_user_aliases,
)
from graphrag_pipeline.query.stand_ins import write_reports
from graphrag_pipeline.store.migrations import schema_sql

if TYPE_CHECKING:
    import duckdb

    from graphrag_pipeline.core.settings import Settings

# Numbers have no gaps where a document is hidden. A batch is as large as all that came with it.
_DOCUMENTS = """
INSERT INTO documents BY NAME
SELECT d.* REPLACE (
    row_number() OVER (ORDER BY d.human_readable_id, id) - 1 AS human_readable_id, '' AS batch)
FROM {documents} d SEMI JOIN kept_documents USING (id);
INSERT INTO chunks BY NAME
SELECT c.* REPLACE (
    row_number() OVER (ORDER BY d.human_readable_id, c.ordinal, c.id) - 1 AS human_readable_id,
    '' AS batch)
FROM published.chunks c JOIN documents d ON d.id = c.document_id;
INSERT INTO blocks BY NAME
SELECT b.* REPLACE ('' AS batch) FROM published.blocks b SEMI JOIN documents d
ON d.id = b.document_id;
INSERT INTO claims BY NAME
SELECT t.* REPLACE (
    row_number() OVER (ORDER BY c.human_readable_id, t.id) - 1 AS human_readable_id, '' AS batch)
FROM published.claims t JOIN chunks c ON c.id = t.chunk_id;
CREATE OR REPLACE VIEW document_names AS
SELECT id AS document_id, uri, source, true AS is_first FROM documents;
"""
_OF_CHUNKS = ("extractions", "entity_mentions", "relationship_mentions", "chunk_names")
_OF_CHUNK = """
INSERT INTO {table} BY NAME
SELECT t.* REPLACE ('' AS batch) FROM published.{table} t JOIN chunks c ON c.id = t.chunk_id
ORDER BY c.human_readable_id, t
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


def make_index(con: duckdb.DuckDBPyConnection, settings: Settings, documents: str) -> None:
    """Make the tables of an index of the documents in ``kept_documents``, in the open database.

    ``documents`` is the table that has them; all else is in ``published``. Raises ConfigError for a
    file of aliases that cannot be used.
    """
    con.execute(schema_sql())
    con.execute(_DOCUMENTS.format(documents=documents))
    for table in _OF_CHUNKS:
        con.execute(_OF_CHUNK.format(table=table))
    con.execute("BEGIN")
    resolve_by_rule(con, settings, _followed(con, read_user_aliases(settings.aliases_path)))
    merge_within(con, settings)
    cluster_within(con, settings.communities)
    con.execute("COMMIT")
    write_reports(con, settings.reports)


def _followed(con: duckdb.DuckDBPyConnection, rows: Sequence[UserRow]) -> list[UserRow]:
    """Return the lines of the user's file that say nothing of names which no document here has."""
    joining = [row for row in rows if row.action in (MERGE, RENAME)]
    names = {"one": [row.a_id for row in joining], "two": [row.b_id for row in joining]}
    together = set(con.execute(_TOGETHER, names).fetchall()) if joining else set()
    return [row for row in rows if row not in joining or (row.a_id, row.b_id) in together]
