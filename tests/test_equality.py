"""The comparison of two builds: what counts as a difference, and what does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from index_differences import differing_tables

from benchmarks.equality import SIDES, Comparison, _answer_parts, _compare_table
from conftest import Engine
from graphrag_pipeline.core.settings import BatchSettings, Settings

TESTS = Path(__file__).parent
CORPUS = TESTS.parent / "examples" / "corpus"
ROWS = {
    "before": "(1, 'a', 1e-1, '2031-b'), (2, 'b', 2e-1, '2030-a'), (2, 'b', 2e-1, '2030-a')",
    "after": "(2, 'b', 2e-1, '2032-c'), (1, 'a', 1e-1, '2033-d'), (2, 'b', 2e-1, '2032-c')",
}
BATCHES = {"before": "('2030-a'), ('2031-b')", "after": "('2033-d'), ('2032-c')"}


@pytest.fixture
def con():
    """Two builds of one table, in another order and with other names of batches."""
    with duckdb.connect() as con:
        for side in SIDES:
            con.execute(f"CREATE SCHEMA {side}")
            con.execute(f"CREATE TABLE {side}.batches AS FROM (VALUES {BATCHES[side]}) b(batch)")
            columns = "t(id, name, share, batch)"
            con.execute(f"CREATE TABLE {side}.things AS FROM (VALUES {ROWS[side]}) {columns}")
        yield con


def compare(con) -> Comparison:
    return _compare_table(con, "case", "things", "before.things", "after.things")


def test_rows_are_equal_in_any_order_whatever_their_batches_are_called(con):
    found = compare(con)
    assert (found.rows, found.only, found.differs) == ((3, 3), (0, 0), False)


def test_a_view_stands_for_a_table(con):
    con.execute("ALTER TABLE after.things RENAME TO all_things")
    con.execute("CREATE VIEW after.things AS FROM after.all_things")
    assert not compare(con).differs


@pytest.mark.parametrize(
    ("change", "only", "note"),
    [
        ("UPDATE after.things SET share = 0.10000001 WHERE id = 1", (1, 1), "share: "),
        ("DELETE FROM after.things WHERE id = 1", (1, 0), "only before: id='1'"),
        ("INSERT INTO after.things FROM after.things LIMIT 1", (0, 1), "only after: id='2'"),
        ("UPDATE after.things SET batch = '2033-d'", (2, 2), "batch: "),
        ("ALTER TABLE after.things DROP name", (3, 3), "without name"),
    ],
)
def test_what_differs_is_counted_and_shown(con, change, only, note):
    con.execute(change)
    found = compare(con)
    assert (found.only, found.differs) == (only, True)
    assert any(line.startswith(note) for line in found.notes)


def test_clocks_hashes_and_versions_are_left_out_and_new_columns_are_no_difference(con):
    for side in SIDES:
        for column in ("made TIMESTAMPTZ DEFAULT now()", "text_hash UUID DEFAULT uuid()"):
            con.execute(f"ALTER TABLE {side}.things ADD COLUMN {column}")
    con.execute("ALTER TABLE after.things ADD COLUMN more INTEGER DEFAULT 1")
    found = compare(con)
    assert not found.differs
    assert list(found.notes) == ["new column more"]


def test_a_table_that_is_gone_is_a_difference_and_a_new_one_is_not(con):
    assert _compare_table(con, "case", "things", "before.things", None).differs
    assert not _compare_table(con, "case", "things", None, "after.things").differs


def test_records_of_an_answer_keep_their_places_and_what_it_took_is_left_out():
    reply = {
        "text": "So.",
        "cost": 1.0,
        "timings": {"total": 2.0},
        "retrieval": {"records": [{"id": "b"}, {"id": "a"}], "release": "r"},
    }
    assert list(_answer_parts("answer local", reply)) == [
        ("text", 0, '"So."'),
        ("records", 0, '{"id": "b"}'),
        ("records", 1, '{"id": "a"}'),
    ]


def test_two_machines_make_all_tables_equal_whatever_order_batches_are_ingested_in(tmp_path):
    engine = Engine(tmp_path / "one", Settings(batches=BatchSettings(max_files=3)))
    files = sorted(path for path in CORPUS.rglob("*") if path.suffix in (".md", ".txt"))[:9]
    engine.write({f"{n}-{path.name}": path.read_bytes() for n, path in enumerate(files)})
    assert len(engine.cut()) == 3
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    for name, seed, threads, order in (("one", "1", "1", "0,1,2"), ("other", "2", "4", "2,0,1")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "POLARS_MAX_THREADS": threads,
            "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent))),
        }
        command = [sys.executable, str(TESTS / "equal_build.py"), tmp_path / name, threads, order]
        subprocess.run(command, env=environment, check=True)
    one, other = (tmp_path / name / ".graphrag" / "index.duckdb" for name in ("one", "other"))
    assert differing_tables(one, other) == {}
    with duckdb.connect(str(other)) as con:
        con.execute("UPDATE entities SET title = 'x' WHERE human_readable_id = 0")
        con.execute("DROP TABLE entity_aliases")
    assert differing_tables(one, other)["main.entities"] == (1, 1)
    assert "main.entity_aliases" in differing_tables(one, other)
