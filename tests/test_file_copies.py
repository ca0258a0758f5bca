"""Copies of DuckDB files by their blocks."""

from __future__ import annotations

import os

import duckdb
import pytest

from graphrag_pipeline.store import file_copies
from graphrag_pipeline.store.file_copies import copy_blocks, copy_rows, deleted_rows, is_half_empty
from graphrag_pipeline.store.index_store import IndexStore, make_small

SECRET = "sesame-5f0c1d"
TABLES = """
CREATE TABLE texts AS SELECT i AS id, repeat(md5(i::VARCHAR), 2000) AS text FROM range(300) t(i);
CREATE TABLE nested AS SELECT i AS id, [i, NULL, 2] AS numbers, {'a': i, 'b': [md5(i::VARCHAR)]} AS
    facts, CASE WHEN i % 3 = 0 THEN i / 7 END AS share, i % 2 = 0 AS is_even, md5(i::VARCHAR)::BLOB
    AS raw FROM range(5000) t(i);
CREATE TABLE none (id INTEGER);
CREATE VIEW even AS SELECT * FROM nested WHERE is_even;
COMMENT ON TABLE texts IS 'Texts.';
CREATE SCHEMA staging;
SET force_compression = 'uncompressed';
CREATE TABLE staging.secrets AS SELECT i AS id, 'sesame-5f0c1d' || md5(i::VARCHAR) AS text
FROM range(20000) t(i);
CHECKPOINT;
"""


@pytest.fixture(params=["small blocks", "usual blocks"])
def file(request, tmp_path):
    path = tmp_path / "index.duckdb"
    if request.param == "small blocks":
        make_small(path)
    with duckdb.connect(str(path)) as con:
        con.execute(TABLES)
    # Blocks come free, and rows are deleted and changed.
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE gone AS SELECT md5(i::VARCHAR) AS text FROM range(50000) t(i)")
        con.execute("CHECKPOINT; DROP TABLE gone; DELETE FROM texts WHERE id % 5 = 0")
        con.execute("UPDATE nested SET share = 1 WHERE id < 900")
    return path


def rows_of(path):
    with duckdb.connect(str(path), read_only=True) as con:
        tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'")
        return {name: con.execute(f"FROM {name}").fetchall() for (name,) in tables.fetchall()}


def test_a_copy_of_blocks_has_the_rows_and_not_those_of_a_schema_that_is_left_out(file, tmp_path):
    copy = tmp_path / "copy.duckdb"
    assert SECRET.encode() in file.read_bytes()
    copy_blocks(file, copy, without="staging")
    assert SECRET.encode() not in copy.read_bytes()
    with duckdb.connect(str(copy)) as con:
        con.execute("DROP SCHEMA staging CASCADE; CREATE VIEW texts_too AS FROM texts")
        con.execute("INSERT INTO none VALUES (1)")
        con.execute("CHECKPOINT")
    with duckdb.connect(str(copy)) as con:
        con.execute("DELETE FROM none")
        assert con.execute("SELECT count(*) FROM even").fetchone() == (2500,)
    assert rows_of(copy) == rows_of(file)


@pytest.mark.skipif(os.name == "nt", reason="st_blocks is not known there")
def test_free_blocks_and_those_left_out_take_no_room(file, tmp_path):
    copy, rows = tmp_path / "copy.duckdb", tmp_path / "rows.duckdb"
    copy_blocks(file, copy, without="staging")
    with duckdb.connect(str(file)) as con:
        con.execute("DROP SCHEMA staging CASCADE")
    copy_rows(file, rows)
    assert 512 * copy.stat().st_blocks < 512 * file.stat().st_blocks
    assert 512 * copy.stat().st_blocks < 1.5 * rows.stat().st_size


def test_where_blocks_are_not_all_known_the_whole_file_is_copied(file, tmp_path, monkeypatch):
    copy = tmp_path / "copy.duckdb"
    metadata = "SELECT true, block_id FROM pragma_metadata_info('whole') LIMIT 0"
    monkeypatch.setattr(file_copies, "_BLOCKS_OF_METADATA", metadata)
    copy_blocks(file, copy, without="staging")
    assert copy.read_bytes() == file.read_bytes()


def is_sparse(store):
    with store.read() as con:
        return is_half_empty(con)


def test_a_file_of_deleted_rows_is_half_empty_until_it_is_written_anew(tmp_path):
    store = IndexStore(tmp_path / "index.duckdb")
    with store.transaction() as con:
        con.execute("CREATE TABLE extra AS SELECT i FROM range(9000) t(i)")
    assert not is_sparse(store)
    with store.transaction() as con:
        con.execute("DELETE FROM extra WHERE i % 3 = 0")
    with store.read() as con:
        assert deleted_rows(con) == {"main.extra": (3000, 6000)}
    assert not is_sparse(store)
    with store.transaction() as con:
        con.execute("DELETE FROM extra WHERE i % 3 = 1")
    assert is_sparse(store)
    store.write_anew()
    assert not is_sparse(store)
    with store.read() as con:
        assert con.execute("SELECT count(*) FROM extra").fetchone() == (3000,)


def test_a_file_of_free_blocks_is_half_empty(tmp_path):
    with duckdb.connect(str(tmp_path / "index.duckdb")) as con:
        con.execute("CREATE TABLE large AS SELECT md5(i::VARCHAR) || i FROM range(1200000) t(i)")
        con.execute("CHECKPOINT")
        assert not is_half_empty(con)
        con.execute("CREATE TABLE small AS SELECT md5(i::VARCHAR) || i FROM range(400000) t(i)")
        con.execute("CHECKPOINT; DROP TABLE large; CHECKPOINT")
        assert is_half_empty(con)
