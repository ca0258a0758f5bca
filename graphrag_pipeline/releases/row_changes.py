"""The rows in which a release differs from a newer one, and the way back from these.

A file of changes is a DuckDB file: what the older release has and the newer has not stands in
tables of the same names; of rows with an id that both have, the older's cells that differ; and what
the newer has besides is named by a hash of each row. Nothing is told by its place in a file: a
newer file that was written anew serves as the one before it did.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.rows import sql_literal
from graphrag_pipeline.store.frames import value_of
from graphrag_pipeline.store.hashing import row_md5
from graphrag_pipeline.store.index_store import memory_database, told_of_files
from graphrag_pipeline.store.limits import DatabaseLimits

VIEWS_MADE_BY = "published_sql"
"""The key in ``meta`` of a release of a hash of the SQL of its views and macros."""
_FORM = 1
"""Raised when files of changes are written in another way; others are then told from them."""
_BLOCK_SIZE = 16384
_MOST_HELD = 20_000
"""A transaction keeps its rows in memory: about so many at a time."""
_MOST_COMPARED = 100_000
"""Small tables are compared in one query: about so many rows at a time."""
_ROW_MD5 = row_md5("whole_row")
"""DuckDB's own hash is another in another version."""
_CATALOGS = f"""
SELECT * FROM (
    SELECT database_name, 'table' AS kind, schema_name, table_name AS name, sql AS made_by, comment
    FROM duckdb_tables()
    UNION ALL
    SELECT database_name, 'view', schema_name, view_name, sql, comment
    FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT database_name, 'column', schema_name, table_name || '.' || column_name, column_default,
           comment
    FROM duckdb_columns() WHERE NOT internal
    UNION ALL
    SELECT 'older', 'macro', '', key, value, NULL FROM older.meta WHERE key = '{VIEWS_MADE_BY}'
    UNION ALL
    SELECT 'newer', 'macro', '', key, value, NULL FROM newer.meta WHERE key = '{VIEWS_MADE_BY}')
ORDER BY ALL
"""
"""To list macros, DuckDB looks through all its own functions: their SQL goes by its hash."""
_BEGIN = """
CREATE SCHEMA changes.own;
CREATE SCHEMA changes.cells;
CREATE TABLE changes.own.about (form INTEGER, base VARCHAR, differences VARCHAR);
CREATE TABLE changes.own.facts AS
SELECT * FROM older.releases ORDER BY created_at DESC, id DESC LIMIT 1;
CREATE TABLE changes.own.tables (name VARCHAR, n_rows BIGINT, n_gone BIGINT, n_came BIGINT);
CREATE TABLE changes.own.cells (name VARCHAR, of_column VARCHAR, number BIGINT);
CREATE TABLE changes.own.came (name VARCHAR, row_md5 UBIGINT, number BIGINT);
INSERT INTO changes.own.about
SELECT {form}, (SELECT id FROM newer.releases ORDER BY created_at DESC, id DESC LIMIT 1),
       $differences;
"""
_DIFFERING = """
CREATE OR REPLACE TEMP TABLE differing AS
SELECT of_table, row_hash, sum(number)::BIGINT AS number, min(place) AS place,
       count(*) = 1 AS is_single
FROM ({rows}) GROUP BY of_table, row_hash HAVING sum(number) <> 0
"""
_ROWS_OF = """
SELECT {number}::USMALLINT AS of_table, hash(whole_row) AS row_hash, 1::TINYINT AS number,
       whole_row.rowid AS place FROM older."{table}" AS whole_row
UNION ALL SELECT {number}::USMALLINT, hash(whole_row), -1::TINYINT, whole_row.rowid
FROM newer."{table}" AS whole_row
"""
_SINGLE_ROWS = """
FROM {side}."{table}" WHERE rowid IN (
    SELECT place FROM differing WHERE of_table = {number} AND {sign} * number > 0 AND is_single)
"""
_REPEATED_ROWS = """
UNION ALL SELECT whole_row.* FROM {side}."{table}" AS whole_row
JOIN differing ON of_table = {number} AND NOT is_single AND row_hash = hash(whole_row)
    AND {sign} * differing.number > 0
QUALIFY row_number() OVER (PARTITION BY row_hash) <= {sign} * differing.number
"""
_SIDES = """
SELECT of_table, coalesce(sum(number) FILTER (number > 0), 0)::BIGINT,
       coalesce(-sum(number) FILTER (number < 0), 0)::BIGINT, bool_and(is_single)
FROM differing GROUP BY of_table
"""
_OF_BOTH = """
CREATE OR REPLACE TEMP TABLE gone AS {gone};
CREATE OR REPLACE TEMP TABLE came AS {came};
"""
_NUMBERS_OF = """SELECT '{0}', (SELECT count(*) FROM older."{0}"), {1}, {2}"""
_COLUMNS = """
SELECT t.table_name, list(column_name ORDER BY column_index), any_value(estimated_size)
FROM duckdb_tables() t JOIN duckdb_columns() USING (database_name, schema_name, table_name)
WHERE database_name = 'older' GROUP BY ALL
"""
_IS_KEYED = """
SELECT (SELECT count(*) = count(DISTINCT id) FROM older."{table}")
   AND (SELECT count(*) = count(DISTINCT id) FROM newer."{table}")
"""
_CELLS = """
CREATE TABLE changes.cells."{name}" AS
SELECT id, gone."{column}" AS value FROM gone JOIN came USING (id)
WHERE gone."{column}" IS DISTINCT FROM came."{column}"
"""
_APART = """
CREATE OR REPLACE TEMP TABLE changed AS SELECT id FROM gone JOIN came USING (id);
DELETE FROM gone WHERE id IN (FROM changed);
DELETE FROM came WHERE id IN (FROM changed);
"""
_PUT_BACK = """
UPDATE restored."{table}" AS r SET "{column}" = c.value FROM changes.cells."{name}" c
WHERE r.id = c.id
"""
_CAME = """
INSERT INTO changes.own.came
SELECT '{table}', {md5} AS row_md5, count(*) FROM ({rows}) AS whole_row GROUP BY row_md5
"""
_TAKE_BACK = """
DELETE FROM restored."{table}" WHERE rowid IN (
    SELECT place FROM (
        SELECT place, row_md5, row_number() OVER (PARTITION BY row_md5) AS nth FROM (
            SELECT whole_row.rowid AS place, {md5} AS row_md5 FROM restored."{table}" AS whole_row))
    JOIN changes.own.came c USING (row_md5) WHERE c.name = '{table}' AND nth <= c.number)
"""


@contextlib.contextmanager
def side_by_side(
    older: Path, newer: Path, limits: DatabaseLimits
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection that reads two releases, as ``older`` and ``newer``.

    Raises duckdb.Error where a file cannot be read.
    """
    with memory_database(limits) as con:
        _attach(con, limits, older=older, newer=newer)
        yield con


def are_alike(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether both releases have the same tables, views and macros: one program has made both."""
    catalogs: dict[str, list[tuple[object, ...]]] = {}
    for database, *entry in con.execute(_CATALOGS).fetchall():
        catalogs.setdefault(database, []).append(tuple(entry))
    return catalogs["older"] == catalogs["newer"]


def write_changes(con: duckdb.DuckDBPyConnection, target: Path, differences: str = "") -> None:
    """Write the rows in which ``older`` differs from ``newer`` into the new file ``target``.

    They must be alike. ``differences`` is what people are told of these, and is kept with them.
    Raises duckdb.Error where a file cannot be read or written.
    """
    con.execute(f"ATTACH {sql_literal(target)} AS changes (BLOCK_SIZE {_BLOCK_SIZE})")
    tables, n_held = con.execute(_COLUMNS).fetchall(), 0
    con.execute("BEGIN")
    con.execute(_BEGIN.format(form=_FORM), {"differences": differences})
    for columns in _together(tables):
        numbers = {table: [0, 0] for table in columns}
        for table, differing in _differing(con, [*columns]).items():
            n_cells, *rows = _write_table(con, table, columns[table], differing)
            numbers[table] = rows
            n_held += n_cells + sum(rows)
            if n_held > _MOST_HELD:
                con.execute("COMMIT; BEGIN")
                n_held = 0
        counted = (_NUMBERS_OF.format(table, *of) for table, of in numbers.items())
        con.execute(f"INSERT INTO changes.own.tables {' UNION ALL '.join(counted)}")
    con.execute("COMMIT")
    # As DuckDB closes a file it says nothing of a full disk.
    con.execute("CHECKPOINT changes; DETACH changes")


def _together(tables: Iterable[tuple[str, list[str], int]]) -> Iterator[dict[str, list[str]]]:
    """Yield the columns of tables by their names, of many small ones or a large one at a time."""
    some: dict[str, list[str]] = {}
    n_rows = 0
    for table, columns, size in tables:
        if some and n_rows + size > _MOST_COMPARED:
            yield some
            some, n_rows = {}, 0
        some[table] = columns
        n_rows += size
    if some:
        yield some


@dataclass(frozen=True)
class _Differing:
    """The table of a number in ``differing``: which rows of it there are."""

    number: int
    n_gone: int
    n_came: int
    are_single: bool


def _differing(con: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> dict[str, _Differing]:
    """Find the rows that differ; return what they are of each table that has any."""
    rows = (_ROWS_OF.format(number=number, table=table) for number, table in enumerate(tables))
    con.execute(_DIFFERING.format(rows=" UNION ALL ".join(rows)))
    differing = (_Differing(*row) for row in con.execute(_SIDES).fetchall())
    return {tables[each.number]: each for each in differing}


def _write_table(
    con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str], differing: _Differing
) -> tuple[int, int, int]:
    """Write what differs of a table; return how many cells, rows gone and rows come that are."""
    n_cells, n_gone, n_came = 0, differing.n_gone, differing.n_came
    some = _SINGLE_ROWS if differing.are_single else _SINGLE_ROWS + _REPEATED_ROWS
    gone, came = (
        some.format(side=side, table=table, number=differing.number, sign=sign)
        for side, sign in (("older", 1), ("newer", -1))
    )
    is_keyed = n_gone and n_came and "id" in columns
    if is_keyed and con.execute(_IS_KEYED.format(table=table)).fetchone() == (True,):
        con.execute(_OF_BOTH.format(gone=gone, came=came))
        gone, came = "FROM gone", "FROM came"
        n_changed, n_cells = _write_cells(con, table, columns)
        n_gone, n_came = n_gone - n_changed, n_came - n_changed
    if n_gone:
        con.execute(f'CREATE TABLE changes.main."{table}" AS {gone}')
    if n_came:
        con.execute(_CAME.format(table=table, md5=_ROW_MD5, rows=came))
    return n_cells, n_gone, n_came


def _write_cells(
    con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]
) -> tuple[int, int]:
    """Write the cells that differ of rows that both have, and leave these out of both.

    Returns how many such rows and cells there are.
    """
    numbers = ", ".join(f'count(*) FILTER (g."{c}" IS DISTINCT FROM n."{c}")' for c in columns)
    n_rows, *counts = con.execute(
        f"SELECT count(*), {numbers} FROM gone g JOIN came n USING (id)"
    ).fetchall()[0]
    if not any(counts):
        return 0, 0
    differing = {column: number for column, number in zip(columns, counts, strict=True) if number}
    for column in differing:
        con.execute(_CELLS.format(name=f"{table}/{column}", column=column))
    rows = ", ".join(f"('{table}', '{column}', {n})" for column, n in differing.items())
    con.execute(f"INSERT INTO changes.own.cells VALUES {rows}; {_APART}")
    return n_rows, sum(counts)


def _counts(con: duckdb.DuckDBPyConnection, *relations: str) -> tuple[int, ...]:
    counts = ", ".join(f"(SELECT count(*) FROM {relation})" for relation in relations)
    return con.execute(f"SELECT {counts}").fetchall()[0]


def undo_changes(changes: Path, file: Path, limits: DatabaseLimits) -> None:
    """Make of ``file``, which holds the newer release, the older one.

    Raises StorageError where its rows are not those that the changes were told from, and
    duckdb.Error where a file cannot be read or written.
    """
    with memory_database(limits) as con:
        _attach(con, limits, changes=changes)
        con.execute(f"ATTACH {sql_literal(file)} AS restored")
        con.execute("BEGIN")
        fits = all(
            value_of(con, _PUT_BACK.format(name=f"{table}/{column}", table=table, column=column))
            == number
            for table, column, number in con.execute("FROM changes.own.cells").fetchall()
        )
        tables = con.execute("FROM changes.own.tables").fetchall()
        for table, _, n_gone, n_came in tables:
            if n_came:
                fits &= value_of(con, _TAKE_BACK.format(table=table, md5=_ROW_MD5)) == n_came
            if n_gone:
                con.execute(f'INSERT INTO restored."{table}" FROM changes.main."{table}"')
        counts = _counts(con, *(f'restored."{table}"' for table, *_ in tables))
        fits &= counts == tuple(n_rows for _, n_rows, *_ in tables)
        if not fits:
            raise StorageError(
                f"{changes} does not fit the newer release: run graphrag-pipeline check"
            )
        con.execute("COMMIT")


def base_of(changes: Path) -> str:
    """Return the id of the release from which changes tell. Raises StorageError."""
    return _about(changes)[0]


def differences_in(changes: Path) -> str:
    """Return what was given as differences when they were written. Raises StorageError."""
    return _about(changes)[1]


def facts_of(changes: Path) -> dict[str, object]:
    """Return the row of ``releases`` of the release that is kept as changes.

    Raises StorageError where they cannot be read.
    """
    return dict(_about(changes)[2])


def _about(changes: Path) -> tuple[str, str, tuple[tuple[str, object], ...]]:
    with told_of_files(f"cannot read {changes}"):
        stat = changes.stat()
        return _read_about(changes, (stat.st_ino, stat.st_size, stat.st_mtime_ns))


@functools.lru_cache
def _read_about(
    changes: Path, _file: tuple[int, ...]
) -> tuple[str, str, tuple[tuple[str, object], ...]]:
    with memory_database() as con:
        _attach(con, DatabaseLimits(), changes=changes)
        form, base, differences = con.execute("FROM changes.own.about").fetchall()[0]
        if form != _FORM:
            raise StorageError(f"{changes} was written by a newer version: install that")
        facts = con.execute("FROM changes.own.facts")
        names = [column[0] for column in facts.description or ()]
        return base, differences, tuple(zip(names, facts.fetchall()[0], strict=True))


def _attach(con: duckdb.DuckDBPyConnection, limits: DatabaseLimits, **files: Path) -> None:
    con.execute("SET TimeZone = 'UTC'")
    if limits.threads is None:
        con.execute("SET threads = 1")
    for name, file in files.items():
        con.execute(f"ATTACH {sql_literal(file)} AS {name} (READ_ONLY)")
