"""Batches taken in one after the other, as plainly as it can be written: what sets must equal."""

from __future__ import annotations

import duckdb

from graphrag_pipeline.ingest.staging import DERIVED


def take_in_one_by_one(con: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Move finished batches into the index's tables, oldest first; return their keys."""
    rows = con.execute(
        """SELECT batch FROM batch_stages WHERE stage = 'extractions' AND staged ORDER BY batch"""
    ).fetchall()
    for (batch,) in rows:
        _take_in(con, batch)
    if rows:
        for table in DERIVED:
            con.execute(f"DELETE FROM {table} WHERE chunk_id NOT IN (SELECT id FROM chunks)")
            con.execute(
                f"UPDATE {table} x SET batch = c.batch FROM chunks c WHERE c.id = x.chunk_id"
            )
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

    A chunk that is as it was keeps what was extracted from it. Documents that another batch has
    brought meanwhile have its chunks.
    """
    con.execute(
        """DELETE FROM staging.chunks WHERE batch = $key AND document_id NOT IN (
               SELECT id FROM documents WHERE batch = $key)""",
        key,
    )
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
            f"""INSERT INTO {table} BY NAME FROM staging.{table}
                WHERE batch = $key""",
            key,
        )
