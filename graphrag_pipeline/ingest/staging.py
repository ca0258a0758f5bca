"""Staging: what ingestion made of a batch waits until the graph takes it in.

Ingestion only adds to the schema ``staging``. ``take_in_staged`` moves finished batches into the
index's own tables, and takes away what they replace, in the transaction that rebuilds the graph.
Documents, chunks, mentions and graph therefore always belong together, whatever runs meanwhile.

All finished batches are taken in at once, by sets of rows: what it costs follows the rows, not the
batches. The index is as if they had been taken in one after the other, oldest first:

- a source's documents are those of the last batch that brings it, or takes it away;
- a document's chunks are those of the batch that brought it;
- what was extracted from a chunk is the last extraction that did not fail, and it is called
  outdated where a later one failed; of a chunk whose extractions all failed it is the last.
"""

from __future__ import annotations

import duckdb

from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.index_store import assign_identifiers

DERIVED = ("extractions", "entity_mentions", "relationship_mentions", "claims", "chunk_names")
_STAGE_OF = {"documents": "documents", "blocks": "documents", "chunks": "chunks"}

# The finished batches, and which of their stages wait.
_FINISHED = """
CREATE OR REPLACE TEMP TABLE finished AS
SELECT batch, bool_or(stage = 'documents') AS has_documents, bool_or(stage = 'chunks') AS has_chunks
FROM batch_stages WHERE staged GROUP BY batch HAVING bool_or(stage = 'extractions');
"""
# Sources that a later batch has brought to the graph already are left as they are. A document that
# is there under another name is the same one. Every batch that brings a document or its source
# takes away what was there of them.
_DOCUMENTS = """
CREATE OR REPLACE TEMP TABLE own_sources AS
SELECT s.batch, s.uri FROM batch_sources s
SEMI JOIN (FROM finished WHERE has_documents) USING (batch)
WHERE status <> 'superseded' AND NOT EXISTS (
    SELECT 1 FROM batch_sources later SEMI JOIN graph_batches USING (batch)
    WHERE later.uri = s.uri AND later.batch > s.batch AND later.status <> 'superseded');

CREATE OR REPLACE TEMP TABLE last_of_sources AS
SELECT uri, max(batch) AS batch FROM own_sources GROUP BY uri;

CREATE OR REPLACE TEMP TABLE last_of_documents AS
SELECT d.id, max(d.batch) AS batch, arg_max(d.source, d.batch) AS source
FROM staging.documents d SEMI JOIN own_sources o ON o.batch = d.batch AND o.uri = d.source
GROUP BY d.id;

CREATE OR REPLACE TEMP TABLE outdated_documents AS
SELECT id FROM last_of_documents UNION
SELECT d.id FROM documents d SEMI JOIN last_of_sources s ON s.uri = d.source;

CREATE OR REPLACE TEMP TABLE new_documents AS
SELECT d.batch, d.id FROM last_of_documents d
SEMI JOIN last_of_sources s ON s.uri = d.source AND s.batch = d.batch;
"""
_CHUNKS = """
CREATE OR REPLACE TEMP TABLE documents_cut AS
SELECT batch, id FROM new_documents UNION ALL
SELECT d.batch, d.id FROM documents d SEMI JOIN (FROM finished WHERE has_chunks) USING (batch)
ANTI JOIN outdated_documents o ON o.id = d.id;

CREATE OR REPLACE TEMP TABLE new_chunks AS
SELECT c.batch, c.id FROM staging.chunks c
SEMI JOIN documents_cut d ON d.batch = c.batch AND d.id = c.document_id;

CREATE OR REPLACE TEMP TABLE outdated_chunks AS
SELECT id FROM chunks WHERE document_id IN (
    SELECT id FROM outdated_documents UNION ALL SELECT id FROM documents_cut);

CREATE OR REPLACE TEMP TABLE gone_chunks AS
FROM outdated_chunks ANTI JOIN new_chunks USING (id);
"""
_EXTRACTIONS = """
CREATE OR REPLACE TEMP TABLE extracted AS
SELECT x.chunk_id, max(x.batch) FILTER (x.status <> 'failed') AS good,
       arg_max(x.status, x.batch) = 'failed' AS fails, max(x.batch) AS last
FROM staging.extractions x SEMI JOIN finished USING (batch)
SEMI JOIN (SELECT id AS chunk_id FROM new_chunks UNION ALL
           SELECT id FROM chunks ANTI JOIN outdated_chunks USING (id)) USING (chunk_id)
GROUP BY x.chunk_id;

CREATE OR REPLACE TEMP TABLE kept_extractions AS
SELECT chunk_id FROM extracted SEMI JOIN (
    SELECT chunk_id FROM extractions WHERE status <> 'failed') USING (chunk_id)
WHERE good IS NULL;

CREATE OR REPLACE TEMP TABLE new_extractions AS
SELECT chunk_id, coalesce(good, last) AS batch
FROM extracted ANTI JOIN kept_extractions USING (chunk_id);

CREATE OR REPLACE TEMP TABLE failed_again AS
SELECT x.chunk_id, x.error, x.tried_version, x.attempts FROM staging.extractions x
JOIN extracted e ON e.chunk_id = x.chunk_id AND e.last = x.batch
WHERE e.fails AND (e.good IS NOT NULL OR x.chunk_id IN (SELECT chunk_id FROM kept_extractions));
"""
_TAKEN_IN = (_DOCUMENTS, _CHUNKS, _EXTRACTIONS)
_OUTDATE = """
UPDATE extractions x SET status = 'outdated', error = f.error,
    tried_version = f.tried_version, attempts = f.attempts
FROM failed_again f WHERE f.chunk_id = x.chunk_id
"""
# What stood in chunks that are no more, and the reports that tell of it.
_LOST_EVIDENCE = """
INSERT INTO staging.lost_evidence
WITH RECURSIVE supported AS (
    SELECT entity_id AS element_id, chunk_id FROM entity_chunks UNION ALL
    SELECT relationship_id, chunk_id FROM relationship_chunks UNION ALL
    SELECT subject_id, chunk_id FROM claims UNION ALL
    SELECT id, chunk_id FROM claims
), lost AS (
    SELECT element_id FROM supported WHERE chunk_id IN (SELECT id FROM gone_chunks) UNION
    SELECT r.community_id FROM report_elements r JOIN lost USING (element_id)
)
FROM lost EXCEPT FROM staging.lost_evidence
"""
_LEDGER = """
UPDATE batch_stages SET staged = false WHERE batch IN (SELECT batch FROM finished);
DELETE FROM graph_batches WHERE batch IN (SELECT batch FROM finished);
INSERT INTO graph_batches SELECT batch, version FROM batch_stages SEMI JOIN finished USING (batch)
WHERE stage = 'extractions' ORDER BY batch;
"""
_NUMBERED = (("documents", "document"), ("chunks", "chunk"), ("claims", "claim"))
_PLANNED = """
CREATE OR REPLACE TEMP VIEW next_documents AS
FROM main.documents ANTI JOIN outdated_documents USING (id) UNION ALL BY NAME
FROM staging.documents SEMI JOIN new_documents USING (batch, id);

CREATE OR REPLACE TEMP VIEW next_chunks AS
FROM main.chunks ANTI JOIN outdated_chunks USING (id) UNION ALL BY NAME
FROM staging.chunks SEMI JOIN new_chunks USING (batch, id)
"""


def of_batch(table: str) -> str:
    """Return a query for a batch's rows (parameter ``key``): staged, or taken in before."""
    stage = _STAGE_OF.get(table, "extractions")
    return f"""
        SELECT * FROM staging.{table} WHERE batch = $key UNION ALL
        SELECT * FROM main.{table} WHERE batch = $key AND NOT EXISTS (
            SELECT 1 FROM batch_stages s WHERE s.batch = $key AND s.stage = '{stage}'
            AND s.staged)"""


def is_staged(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the graph lacks what ingestion has finished."""
    staged = "SELECT count(*) FROM batch_stages WHERE stage = 'extractions' AND staged"
    return value_of(con, staged) > 0


def plan_take_in(con: duckdb.DuckDBPyConnection) -> None:
    """Work out what the next :func:`take_in_staged` will do; nothing of the index is changed.

    The temporary views ``next_documents``, ``next_chunks`` and ``next_`` with each name of
    ``DERIVED`` then show these tables as they will be.
    """
    for part in (_FINISHED, *_TAKEN_IN, _PLANNED):
        con.execute(part)
    for table in DERIVED:
        con.execute(
            f"""CREATE OR REPLACE TEMP VIEW next_{table} AS
                FROM main.{table} ANTI JOIN new_extractions USING (chunk_id)
                ANTI JOIN gone_chunks ON gone_chunks.id = chunk_id UNION ALL BY NAME
                FROM staging.{table} SEMI JOIN new_extractions USING (chunk_id, batch)"""
        )


def take_in_staged(con: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Move finished batches into the index's tables; return their keys, oldest first.

    Small numbers are given here, batch by batch, whichever of them was ingested first.
    """
    con.execute(_FINISHED)
    batches = con.execute("SELECT batch FROM finished ORDER BY batch").fetchall()
    if not batches:
        return ()
    for part in _TAKEN_IN:
        con.execute(part)
    for table, kind in _NUMBERED:
        assign_identifiers(
            con,
            kind,
            f"""SELECT id FROM staging.{table} SEMI JOIN finished USING (batch)
                GROUP BY id ORDER BY min((batch, human_readable_id)), id""",
        )
    con.execute("DELETE FROM documents WHERE id IN (SELECT id FROM outdated_documents)")
    con.execute("DELETE FROM blocks WHERE document_id IN (SELECT id FROM outdated_documents)")
    con.execute("DELETE FROM chunks WHERE id IN (SELECT id FROM outdated_chunks)")
    _insert(con, "documents", "SEMI JOIN new_documents n ON n.batch = s.batch AND n.id = s.id")
    _insert(
        con, "blocks", "SEMI JOIN new_documents n ON n.batch = s.batch AND n.id = s.document_id"
    )
    _insert(con, "chunks", "SEMI JOIN new_chunks n ON n.batch = s.batch AND n.id = s.id")
    _replace_derived(con)
    for table in ("documents", "blocks", "chunks", *DERIVED):
        con.execute(f"DELETE FROM staging.{table} WHERE batch IN (SELECT batch FROM finished)")
    con.execute(_LEDGER)
    return tuple(batch for (batch,) in batches)


def _replace_derived(con: duckdb.DuckDBPyConnection) -> None:
    """Put in what was extracted, in place of earlier extractions and of chunks that are no more.

    It is of the batch of its chunk.
    """
    if con.execute("SELECT 1 FROM gone_chunks LIMIT 1").fetchone():
        con.execute(_LOST_EVIDENCE)
    for table in DERIVED:
        con.execute(
            f"""DELETE FROM {table} WHERE chunk_id IN (
                    SELECT id FROM gone_chunks UNION ALL SELECT chunk_id FROM new_extractions)"""
        )
        _insert(
            con,
            table,
            "SEMI JOIN new_extractions n ON n.batch = s.batch AND n.chunk_id = s.chunk_id",
        )
        con.execute(
            f"""UPDATE {table} x SET batch = c.batch FROM (
                    SELECT id, batch FROM chunks WHERE id IN (
                        SELECT id FROM new_chunks UNION ALL SELECT chunk_id FROM new_extractions)) c
                WHERE c.id = x.chunk_id AND c.batch <> x.batch"""
        )
    con.execute(_OUTDATE)


def _insert(con: duckdb.DuckDBPyConnection, table: str, which: str) -> None:
    """Put those rows of a staged table into the index's own, with their small numbers."""
    columns, numbers = "s.*", ""
    if kind := dict(_NUMBERED).get(table):
        columns = "s.* REPLACE (i.human_readable_id AS human_readable_id)"
        numbers = f"JOIN (FROM identifiers WHERE kind = '{kind}') i ON i.id = s.id"
    con.execute(
        f"INSERT INTO {table} BY NAME SELECT {columns} FROM staging.{table} s {numbers} {which} "
        "ORDER BY s.batch, s.rowid"
    )
