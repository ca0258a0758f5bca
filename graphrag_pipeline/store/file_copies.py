"""Copies of a DuckDB file that nobody has open: of its rows, or of its blocks as they are.

To copy rows compresses them again, which takes ten times as long as to copy blocks, and leaves none
that is free.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb

from graphrag_pipeline.store.limits import DatabaseLimits
from graphrag_pipeline.store.memory_database import memory_database, spare_threads

_BLOCK_SIZE = "SELECT block_size FROM pragma_database_size() WHERE database_name = 'whole'"
_HEADERS = 3 * 4096
"""Bytes of a DuckDB file before its first block."""
_MOST_HELD = 20_000
"""A transaction keeps its rows in memory, as large as they are: about so many at a time."""
_COPIED = """
SELECT p.schema_name, p.table_name, w.estimated_size
FROM duckdb_tables() p JOIN duckdb_tables() w USING (schema_name, table_name)
WHERE p.database_name = 'packed' AND w.database_name = 'whole' ORDER BY p.table_oid
"""
_TABLES = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'whole'"
_BLOCKS = """
SELECT block_size, total_blocks, used_blocks FROM pragma_database_size()
WHERE database_name = 'whole'
"""
_BLOCKS_OF_TABLES = """
SELECT DISTINCT is_copied, block FROM (
    SELECT is_copied, unnest(list_append(additional_block_ids, block_id)) AS block
    FROM ({segments})) WHERE block >= 0
"""
_SEGMENTS = """
SELECT {is_copied} AS is_copied, block_id, additional_block_ids
FROM pragma_storage_info('whole."{schema}"."{table}"')
"""
_BLOCKS_OF_METADATA = "SELECT DISTINCT true, block_id FROM pragma_metadata_info('whole')"
_MOST_FREE = 16 * 2**20
_MOST_DELETED = 2048
_MOST_IS_FREE = """
SELECT free_blocks * block_size > $most AND free_blocks > used_blocks
FROM pragma_database_size() WHERE database_name = current_database()
"""
_SIZES = """
SELECT schema_name, table_name, estimated_size FROM duckdb_tables()
WHERE database_name = current_database() AND estimated_size > 0
"""


def copy_rows(source: Path, target: Path, limits: DatabaseLimits | None = None) -> None:
    """Copy all tables and views of a DuckDB file into a new one, without its free blocks."""
    con = memory_database(limits)
    try:
        spare_threads(con, limits or DatabaseLimits(), source)
        con.execute(f"ATTACH '{quoted(source)}' AS whole (READ_ONLY)")
        (block_size,) = con.execute(_BLOCK_SIZE).fetchall()[0]
        con.execute(f"ATTACH '{quoted(target)}' AS packed (BLOCK_SIZE {int(block_size)})")
        con.execute("COPY FROM DATABASE whole TO packed (SCHEMA)")
        con.execute("BEGIN")
        n_held = 0
        for schema, table, n_rows in con.execute(_COPIED).fetchall():
            name = f'"{schema}"."{table}"'
            con.execute(f"INSERT INTO packed.{name} FROM whole.{name}")
            n_held += n_rows
            if n_held > _MOST_HELD:
                con.execute("COMMIT; CHECKPOINT packed; BEGIN")
                n_held = 0
        con.execute("COMMIT")
    finally:
        con.close()


def copy_blocks(source: Path, target: Path, *, without: str) -> None:
    """Copy a DuckDB file as it is, with holes for free blocks and rows of the schema ``without``.

    The tables of that schema can be dropped from the copy, and must be. Where it cannot be told
    what each block is for, all are copied.
    """
    block_size, blocks = _wanted_blocks(source, without)
    if not blocks:
        shutil.copyfile(source, target)
        return
    with source.open("rb") as incoming, target.open("wb") as outgoing:
        outgoing.write(incoming.read(_HEADERS))
        for block in blocks:
            place = _HEADERS + block * block_size
            incoming.seek(place)
            outgoing.seek(place)
            outgoing.write(incoming.read(block_size))
        outgoing.truncate(source.stat().st_size)


def is_half_empty(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether most blocks of a connection's file are free, or most rows of a table are deleted.

    A few are no matter. DuckDB writes into free blocks, and lets go of deleted rows by a hundred
    thousand at a time.
    """
    is_worst = (
        n_deleted > max(n_rows, _MOST_DELETED) for n_deleted, n_rows in deleted_rows(con).values()
    )
    return any(is_worst) or con.execute(_MOST_IS_FREE, {"most": _MOST_FREE}).fetchone() == (True,)


def deleted_rows(con: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, int]]:
    """Return how many rows of a table are deleted, and still in the file, and how many are not.

    Its key is its schema and its name: ``main.documents``. Tables without any are left out.
    """
    counts = [
        f"""SELECT '{schema}.{table}' AS name, {size} - count(*) AS n_deleted, count(*) AS n_rows
            FROM "{schema}"."{table}" HAVING n_deleted > 0"""
        for schema, table, size in con.execute(_SIZES).fetchall()
    ]
    rows = con.execute(" UNION ALL ".join(counts)).fetchall() if counts else []
    return {name: (n_deleted, n_rows) for name, n_deleted, n_rows in rows}


def _wanted_blocks(source: Path, without: str) -> tuple[int, list[int]]:
    """Return the size of a file's blocks, and which are in use but for a schema's rows.

    None where those that are told are not as many as are in use, or the file has another size.
    """
    with memory_database() as con:
        con.execute(f"ATTACH '{quoted(source)}' AS whole (READ_ONLY)")
        block_size, n_blocks, n_used = con.execute(_BLOCKS).fetchall()[0]
        segments = " UNION ALL ".join(
            _SEGMENTS.format(is_copied=schema != without, schema=schema, table=table)
            for schema, table in con.execute(_TABLES).fetchall()
        )
        rows = con.execute(_BLOCKS_OF_TABLES.format(segments=segments)).fetchall()
        rows += con.execute(_BLOCKS_OF_METADATA).fetchall()
    is_known = len({block for _, block in rows}) == n_used
    is_known &= source.stat().st_size == _HEADERS + n_blocks * block_size
    return block_size, sorted({block for is_copied, block in rows if is_copied and is_known})


def quoted(path: Path) -> str:
    """Return a path as it is written between the quotes of a literal in SQL."""
    return os.fspath(path).replace("'", "''")
