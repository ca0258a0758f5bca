"""The index's own tables, without what they say of files that are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb

from graphrag_pipeline.ingest.stages import STAGES, batch_versions
from graphrag_pipeline.ingest.staging import DERIVED
from graphrag_pipeline.store.batches import Batch
from graphrag_pipeline.store.workspace import Workspace

ERROR_TAKEN_OUT = "an error; what it said was taken out"
# Of what files were before, the names alone stay, as in their manifests.
_EARLIER_FILES = """
DELETE FROM batch_sources WHERE uri NOT IN (SELECT uri FROM source_names);
UPDATE batch_sources SET sha256 = NULL, n_bytes = 0, status = 'superseded', n_documents = 0
WHERE (uri, batch) NOT IN (
    SELECT (uri, max(batch)) FROM batch_sources WHERE status <> 'superseded' GROUP BY uri);
UPDATE batch_sources SET action = 'add' WHERE action = 'rename';
DELETE FROM quarantine q WHERE NOT EXISTS (
    SELECT 1 FROM batch_sources b WHERE b.batch = q.batch AND b.status <> 'superseded'
    AND (b.uri = q.uri OR starts_with(q.uri, b.uri || '#')));
"""
_NOT_LISTED = "DELETE FROM batch_sources WHERE batch = ? AND uri NOT IN (SELECT unnest(?))"
_ERRORS = f"UPDATE llm_calls SET error = '{ERROR_TAKEN_OUT}' WHERE error IS NOT NULL"
_NUMBERED = """
SELECT DISTINCT schema_name || '."' || replace(table_name, '"', '""') || '"'
FROM duckdb_columns()
WHERE NOT internal AND database_name = current_database() AND table_name <> 'identifiers'
  AND (schema_name, table_name) IN (SELECT (schema_name, table_name) FROM duckdb_tables())
  AND column_name = 'human_readable_id'
"""
# Of each kind the highest number stays, without its id, so that none is given a second time.
_EARLIER_NUMBERS = """
CREATE OR REPLACE TEMP TABLE numbered AS {numbered};
CREATE OR REPLACE TEMP TABLE highest AS
SELECT kind, max(human_readable_id) AS human_readable_id FROM identifiers GROUP BY kind;
UPDATE identifiers SET id = '' WHERE id NOT IN (SELECT id FROM numbered);
DELETE FROM identifiers WHERE id = '' AND (kind, human_readable_id) NOT IN (FROM highest);
DROP TABLE numbered; DROP TABLE highest;
"""
_STAGED = "SELECT count(*) FROM batch_stages WHERE staged"
_OF_BATCHES = ("batches", "batch_sources", "batch_stages", "graph_batches")


def waiting_batches(workspace: Workspace) -> list[str]:
    """Return the keys of batches that the graph has not taken in yet."""
    with workspace.store.read() as con:
        done = done_batches(con)
    return [batch.key for batch in workspace.batches.batches() if batch.key not in done]


def done_batches(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the keys of batches that the graph has taken in."""
    return {key for (key,) in con.execute("SELECT batch FROM graph_batches").fetchall()}


def take_out_gone(con: duckdb.DuckDBPyConnection) -> None:
    """Delete what tells of files, versions and ids that are no more. Call it in a transaction.

    What was spent stays, without the words of errors: a server may repeat in them what it was sent.
    """
    con.execute(_EARLIER_FILES)
    con.execute(_ERRORS)
    tables = [name for (name,) in con.execute(_NUMBERED).fetchall()]
    numbered = " UNION ".join(f"SELECT id FROM {name}" for name in tables)
    con.execute(_EARLIER_NUMBERS.format(numbered=numbered))
    if con.execute(_STAGED).fetchone() == (0,):
        for table in ("documents", "blocks", "chunks", *DERIVED):
            con.execute(f"DELETE FROM staging.{table}")


def take_out_batches(
    con: duckdb.DuckDBPyConnection, workspace: Workspace, smaller: Mapping[str, Batch | None]
) -> None:
    """Bring the ledger in line with manifests that become smaller, or go (None).

    The version of a stage depends on which kinds of files a batch has: one that has fewer is not to
    be read again for that.
    """
    version_of = batch_versions(workspace.settings)
    for key, batch in smaller.items():
        if batch is None:
            for table in _OF_BATCHES:
                con.execute(f"DELETE FROM {table} WHERE batch = ?", [key])
        else:
            con.execute(_NOT_LISTED, [key, [change.uri for change in batch.changes]])
            _same_versions(con, version_of, workspace.batches.get(key), batch)


def _same_versions(
    con: duckdb.DuckDBPyConnection,
    version_of: Callable[[frozenset[str] | None], Mapping[str, str]],
    before: Batch,
    after: Batch,
) -> None:
    old, new = version_of(before.endings), version_of(after.endings)
    if old == new:
        return
    for stage in STAGES:
        values = [new[stage], before.key, stage, old[stage]]
        con.execute(
            "UPDATE batch_stages SET version = ? WHERE batch = ? AND stage = ? AND version = ?",
            values,
        )
    con.execute(
        "UPDATE graph_batches SET version = ? WHERE batch = ? AND version = ?",
        [new[STAGES[-1]], before.key, old[STAGES[-1]]],
    )
