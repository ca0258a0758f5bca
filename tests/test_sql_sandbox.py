"""Statements that try to leave the published index: by name, by function, by file, by address."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from query_fixture import publish

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.marts.sql import PublishedSql, query_published

REFUSED = """
SELECT * FROM read_text('{file}')
SELECT * FROM read_blob('{file}')
SELECT * FROM read_csv('{file}')
SELECT * FROM sniff_csv('{file}')
SELECT * FROM read_json('{file}')
SELECT * FROM read_ndjson_objects('{file}')
SELECT * FROM read_parquet('{file}')
SELECT * FROM parquet_metadata('{file}')
SELECT * FROM read_duckdb('{other}')
SELECT * FROM sqlite_scan('{other}', 'calls')
SELECT * FROM glob('{folder}/*')
SELECT * FROM '{file}'
SELECT * FROM "{file}"
SELECT COLUMNS(*) FROM read_text(['{file}'])
SELECT * FROM read_text((SELECT '{file}'))
SELECT * FROM query('SELECT * FROM read_text(''{file}'')')
SELECT * FROM query_table('{file}')
SELECT * FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{file}'')'))
SELECT (SELECT content FROM read_text('{file}'))
WITH x AS MATERIALIZED (SELECT * FROM read_text('{file}')) SELECT * FROM x
EXPLAIN ANALYZE SELECT * FROM read_text('{file}')
SUMMARIZE SELECT * FROM read_text('{file}')
DESCRIBE SELECT * FROM read_text('{file}')
PIVOT read_csv('{file}') ON a
SELECT 1; SELECT 2
SELECT 1; SELECT * FROM read_text('{file}')
{log}
SELECT * FROM enable_profiling(format='json', save_location='{other}')
FROM 'https://example.org/x.csv'
FROM 's3://bucket/x.parquet'
SELECT getenv('PATH')
SELECT * FROM pandas_scan(0)
SELECT * FROM arrow_scan(1, 2, 3)
SELECT * FROM python_map_function()
SELECT * FROM os
SELECT * FROM home
SELECT * FROM shell('ls')
SELECT * FROM pg_read_file('{file}')
SELECT lo_import('{file}')
SELECT nextval('x')
SELECT * FROM force_checkpoint('published')
ATTACH '{other}' (READ_ONLY)
ATTACH ':memory:' AS mine
DETACH published
USE memory
COPY (SELECT 1) TO '{folder}/out.csv'
COPY entities FROM '{file}'
EXPORT DATABASE '{folder}/out'
IMPORT DATABASE '{folder}'
INSTALL httpfs
INSTALL spatial FROM community
LOAD '{folder}/x.duckdb_extension'
UPDATE EXTENSIONS
CREATE SECRET s (TYPE s3)
CREATE MACRO f() AS 1
CREATE TEMP TABLE t AS SELECT 1
CREATE TABLE t AS SELECT 1
INSERT INTO entities SELECT * FROM entities
UPDATE entities SET title = 'x'
DELETE FROM entities
TRUNCATE entities
MERGE INTO entities USING entities e ON true WHEN MATCHED THEN DELETE
DROP TABLE entities
ALTER TABLE entities ADD COLUMN x INT
COMMENT ON TABLE entities IS 'x'
SET enable_external_access = true
SET lock_configuration = false
SET allowed_directories = ['/']
RESET ALL
PRAGMA memory_limit = '1GB'
PRAGMA enable_profiling = 'json'
CALL enable_logging(storage = 'file', storage_path = '{folder}/log')
CALL pragma_version()
PREPARE p AS SELECT 1
EXECUTE p
BEGIN
CHECKPOINT
VACUUM
""".strip().splitlines()

TO_A_LOG_FILE = """
SELECT write_log('x', level:='ERROR', scope:='database')
FROM enable_logging(storage='file', storage_path='{folder}/log') e
FULL JOIN range(100000) r(i) ON true
"""


def _refusal(home: Path, statement: str) -> str:
    try:
        _, rows = query_published(home, statement)
    except InputError as error:
        return str(error)
    pytest.fail(f"it ran: {statement}, and gave {rows[:3]}")


def test_no_statement_leaves_the_published_index(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    publish(home)
    outside.mkdir()
    other = next(home.glob("index*.duckdb"), home / "index.duckdb")
    secret = outside / "secret.csv"
    secret.write_text("a,b\nCANARY,2\n")
    before = (home / "published.duckdb").read_bytes()
    places = {"file": secret, "folder": outside, "other": other}
    places["log"] = TO_A_LOG_FILE.format(**places)
    for statement in REFUSED:
        assert "CANARY" not in _refusal(home, statement.format(**places)), statement
    assert [*outside.iterdir()] == [secret]
    assert (home / "published.duckdb").read_bytes() == before


def test_nothing_that_a_statement_got_past_the_check_could_be_set(tmp_path: Path) -> None:
    publish(tmp_path)
    with (
        PublishedSql(tmp_path) as published,
        pytest.raises(duckdb.InvalidInputException, match="configuration has been locked"),
    ):
        published._con.execute("SET memory_limit = '1GB'")


@pytest.mark.parametrize(
    "statement",
    [
        "FROM enable_profiling()",
        "FROM enable_profiling(format = 'query_tree', save_location = '/dev/null')",
        "SELECT 1, (FROM system.main.\"Enable_Profiling\" /* so */ (format = 'json')) AS é",
        "WITH a AS (FROM ENABLE_LOGGING ()) FROM a",
        "FROM query('FROM enable_' || 'profiling()')",
        "FROM json_execute_serialized_sql(json_serialize_sql('FROM checkpoint()'))",
        "EXPLAIN ANALYZE FROM truncate_duckdb_logs()",
    ],
)
def test_no_call_within_a_query_changes_what_the_next_ones_say(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], statement: str
) -> None:
    publish(tmp_path)
    with PublishedSql(tmp_path) as published:
        with pytest.raises(InputError, match="is no query: leave it out"):
            published.query(statement)
        assert published.query("SELECT count(*) AS query FROM documents")[1] != []
        assert published.query("SELECT 'enable_profiling()' AS \"checkpoint\"")[1] == [
            ("enable_profiling()",)
        ]
    assert capfd.readouterr().out == ""
