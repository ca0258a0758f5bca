"""Staging: what ingestion made of a batch waits until the graph takes it in.

Ingestion only adds to the schema ``staging``. ``take_in_staged`` moves finished batches into the
index's own tables, and takes away what they replace, in the transaction that rebuilds the graph.
Documents, chunks, mentions and graph therefore always belong together, whatever runs meanwhile.
"""

from __future__ import annotations

import duckdb

DERIVED = ("extractions", "entity_mentions", "relationship_mentions", "claims", "chunk_names")
_STAGE_OF = {"documents": "documents", "blocks": "documents", "chunks": "chunks"}

# What stood in chunks that are no more, and the reports that tell of it.
_LOST_EVIDENCE = """
INSERT INTO staging.lost_evidence
WITH RECURSIVE supported AS (
    SELECT entity_id AS element_id, chunk_id FROM entity_chunks UNION ALL
    SELECT relationship_id, chunk_id FROM relationship_chunks UNION ALL
    SELECT subject_id, chunk_id FROM claims UNION ALL
    SELECT id, chunk_id FROM claims
), lost AS (
    SELECT element_id FROM supported WHERE chunk_id NOT IN (SELECT id FROM chunks) UNION
    SELECT r.community_id FROM report_elements r JOIN lost USING (element_id)
)
FROM lost EXCEPT FROM staging.lost_evidence
"""


def of_batch(table: str) -> str:
    """Return a query for a batch's rows (parameter ``key``): staged, or taken in before."""
    stage = _STAGE_OF.get(table, "extractions")
    return f"""
        SELECT * FROM staging.{table} WHERE batch = $key UNION ALL
        SELECT * FROM main.{table} WHERE batch = $key AND NOT EXISTS (
            SELECT 1 FROM batch_stages s WHERE s.batch = $key AND s.stage = '{stage}'
            AND s.staged)"""


def take_in_staged(con: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Move finished batches into the index's tables, oldest first; return their keys.

    What was extracted from chunks that are no more goes last: a chunk that leaves with one batch
    and returns with a later one keeps it.
    """
    rows = con.execute(
        """SELECT batch FROM batch_stages WHERE stage = 'extractions' AND staged ORDER BY batch"""
    ).fetchall()
    for (batch,) in rows:
        _take_in(con, batch)
    if rows:
        con.execute(_LOST_EVIDENCE)
        for table in DERIVED:
            con.execute(f"DELETE FROM {table} WHERE chunk_id NOT IN (SELECT id FROM chunks)")
    return tuple(batch for (batch,) in rows)


def _take_in(con: duckdb.DuckDBPyConnection, batch: str) -> None:
    staged = {
        stage
        for (stage,) in con.execute(
            "SELECT stage FROM batch_stages WHERE batch = ? AND staged", [batch]
        ).fetchall()
    }
    key = {"key": batch}
    if "documents" in staged:
        _replace_documents(con, key)
    if "chunks" in staged:
        _replace_chunks(con, key)
    _replace_extractions(con, key)
    for table in ("documents", "blocks", "chunks", *DERIVED):
        con.execute(f"DELETE FROM staging.{table} WHERE batch = $key", key)
    con.execute("UPDATE batch_stages SET staged = false WHERE batch = $key", key)
    con.execute("DELETE FROM graph_batches WHERE batch = $key", key)
    con.execute(
        """INSERT INTO graph_batches SELECT batch, version FROM batch_stages
           WHERE batch = $key AND stage = 'extractions'""",
        key,
    )


def _replace_documents(con: duckdb.DuckDBPyConnection, key: dict[str, str]) -> None:
    """Put in the staged documents; take away old versions and removed documents.

    Sources that a later batch has brought already are left as they are. A document that is there
    under another name is the same one, and keeps its chunks.
    """
    con.execute(
        """CREATE OR REPLACE TEMP TABLE own_sources AS
           SELECT uri FROM batch_sources WHERE batch = $key AND status <> 'superseded' EXCEPT
           SELECT uri FROM batch_sources SEMI JOIN graph_batches USING (batch)
           WHERE batch > $key AND status <> 'superseded'""",
        key,
    )
    con.execute(
        """DELETE FROM staging.documents
           WHERE batch = $key AND source NOT IN (SELECT uri FROM own_sources)""",
        key,
    )
    for table in ("blocks", "chunks"):
        con.execute(
            f"""DELETE FROM staging.{table} WHERE batch = $key AND document_id NOT IN (
                   SELECT id FROM staging.documents WHERE batch = $key)""",
            key,
        )
    con.execute(
        """CREATE OR REPLACE TEMP TABLE outdated AS
           SELECT id FROM documents WHERE source IN (SELECT uri FROM own_sources)
           UNION SELECT id FROM staging.documents WHERE batch = $key""",
        key,
    )
    con.execute(
        """CREATE OR REPLACE TEMP TABLE removed AS SELECT id FROM outdated
           EXCEPT SELECT id FROM staging.documents WHERE batch = $key""",
        key,
    )
    con.execute("DELETE FROM documents WHERE id IN (SELECT id FROM outdated)")
    con.execute("DELETE FROM blocks WHERE document_id IN (SELECT id FROM outdated)")
    con.execute("DELETE FROM chunks WHERE document_id IN (SELECT id FROM removed)")
    for table in ("documents", "blocks"):
        con.execute(f"INSERT INTO {table} BY NAME FROM staging.{table} WHERE batch = $key", key)


def _replace_chunks(con: duckdb.DuckDBPyConnection, key: dict[str, str]) -> None:
    """Put in the staged chunks; take away the batch's chunks that are no more.

    A chunk that is as it was keeps what was extracted from it.
    """
    con.execute(
        """DELETE FROM chunks WHERE id IN (
               SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id
               WHERE d.batch = $key AND c.id NOT IN (
                   SELECT id FROM staging.chunks WHERE batch = $key))""",
        key,
    )
    con.execute(
        "DELETE FROM chunks WHERE id IN (SELECT id FROM staging.chunks WHERE batch = $key)", key
    )
    con.execute("INSERT INTO chunks BY NAME FROM staging.chunks WHERE batch = $key", key)
    for table in DERIVED:
        con.execute(
            f"""UPDATE {table} SET batch = $key WHERE batch <> $key AND chunk_id IN (
                    SELECT id FROM staging.chunks WHERE batch = $key)""",
            key,
        )


def _replace_extractions(con: duckdb.DuckDBPyConnection, key: dict[str, str]) -> None:
    """Put in the staged extractions in place of earlier ones; a failed one replaces none."""
    con.execute(
        """CREATE OR REPLACE TEMP TABLE failed_again AS
           SELECT s.chunk_id, s.error, s.tried_version, s.attempts FROM staging.extractions s
           JOIN extractions x USING (chunk_id)
           WHERE s.batch = $key AND s.status = 'failed' AND x.status <> 'failed'""",
        key,
    )
    con.execute(
        """UPDATE extractions x SET status = 'outdated', error = f.error,
               tried_version = f.tried_version, attempts = f.attempts
           FROM failed_again f WHERE f.chunk_id = x.chunk_id"""
    )
    for table in DERIVED:
        con.execute(
            f"""DELETE FROM staging.{table} WHERE batch = $key AND chunk_id IN (
                    SELECT chunk_id FROM failed_again)""",
            key,
        )
    for table in reversed(DERIVED):
        con.execute(
            f"""DELETE FROM {table} WHERE chunk_id IN (
                    SELECT chunk_id FROM staging.extractions WHERE batch = $key)""",
            key,
        )
        con.execute(
            f"""INSERT INTO {table} BY NAME SELECT s.* FROM staging.{table} s
                SEMI JOIN chunks c ON c.id = s.chunk_id WHERE s.batch = $key""",
            key,
        )
