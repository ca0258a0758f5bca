"""Hashes kept beside the index: they spare work, and never hide a change."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import duckdb
import pytest
from artefacts import copy_of
from index_process import SMALL, update

from conftest import Engine, workspace_of
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.releases.publishing import refresh_needed
from graphrag_pipeline.store.hash_memory import remembering_hashes
from graphrag_pipeline.store.hashing import hash_of, row_md5
from graphrag_pipeline.store.index_store import connect_published


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An index of one document that was published a while ago."""
    home = copy_of("of one document", published, tmp_path) / ".graphrag"
    settle(home)
    return home


def published(folder: Path) -> None:
    engine = Engine(folder, SMALL)
    engine.write({"dam.md": "Oskar Kovarna built the Orlen Dam near Kelmouth."})
    update(engine)


def settle(home: Path) -> None:
    """Let the file's last change lie more than a second back."""
    file = home / "index.duckdb"
    while time.time_ns() - file.stat().st_ctime_ns < 1_100_000_000:
        time.sleep(0.05)


def is_due(home: Path) -> bool:
    return refresh_needed(workspace_of(home, SMALL))


def kept_hashes(home: Path) -> dict[str, dict[str, list[str]]]:
    return json.loads((home / "hashes.json").read_bytes())


def change_hashes(home: Path, number: int) -> None:
    """Make the first (quick) or second hash of each table one that it does not have."""
    kept = kept_hashes(home)
    for pair in kept["hashes"].values():
        pair[number] = "1:1"
    (home / "hashes.json").write_text(json.dumps(kept))


def write_into(home: Path, sql: str) -> None:
    with duckdb.connect(home / "index.duckdb") as con:
        con.execute(sql)


def test_while_nobody_writes_no_table_is_hashed_again(home):
    assert not is_due(home)
    change_hashes(home, 0)
    change_hashes(home, 1)
    assert is_due(home), "the hashes that were kept are what counts"


def test_after_a_write_rows_that_stayed_are_hashed_quickly(home):
    assert not is_due(home)
    write_into(home, "CREATE TABLE staging.more AS SELECT 1 AS one")
    change_hashes(home, 1)
    assert is_due(home), "rows with the same quick hash have the hash that was kept"


@pytest.mark.parametrize("table", ["documents", "entity_mentions", "entities"])
@pytest.mark.parametrize("settled", [True, False])
def test_a_changed_row_is_seen(home, settled, table):
    assert not is_due(home)
    write_into(home, f"UPDATE {table} SET title = 'Another'")
    if settled:
        settle(home)
    assert is_due(home)


def test_a_row_that_is_not_committed_yet_counts(home):
    assert not is_due(home)
    with workspace_of(home, SMALL).store.read() as con:
        before = hash_of(con, "documents")
    remembering = remembering_hashes(Home(home), is_read_only=False)
    with remembering, workspace_of(home, SMALL).store.transaction() as con:
        con.execute("UPDATE documents SET title = 'Another'")
        assert hash_of(con, "documents") != before


def test_a_row_has_the_hash_that_older_homes_and_kept_releases_know():
    number = "md5_number_lower(to_json(r)::VARCHAR)"
    with duckdb.connect() as con:
        query = f"SELECT count(*) FROM range(5000) r WHERE {row_md5('r')} = {number}"
        assert con.execute(query).fetchone() == (5000,)


def test_a_file_put_back_with_its_old_time_is_another(home):
    assert not is_due(home)
    file = home / "index.duckdb"
    times = file.stat()
    write_into(home, "UPDATE documents SET title = 'Another'")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    settle(home)
    assert is_due(home)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hashes": 1}', '{"hashes": {"a": "b"}}', "\xff"])
def test_a_memory_that_cannot_be_read_is_written_anew(home, text):
    (home / "hashes.json").write_bytes(text.encode("latin-1"))
    assert not is_due(home)
    assert len(kept_hashes(home)["hashes"]) > 9


def test_hashes_of_another_duckdb_are_not_used(home):
    assert not is_due(home)
    kept = kept_hashes(home)
    kept["duckdb"] = "0.1"
    (home / "hashes.json").write_text(json.dumps(kept))
    change_hashes(home, 1)
    write_into(home, "CREATE TABLE staging.more AS SELECT 1 AS one")
    assert not is_due(home)


def test_the_hashes_of_a_release_are_not_taken_for_the_index(home):
    """Two files are compared within one memory: each has hashes of its own."""
    assert not is_due(home)
    write_into(home, "UPDATE documents SET title = 'Another'")
    settle(home)
    with remembering_hashes(Home(home), is_read_only=True):
        with connect_published(home / "published.duckdb") as con:
            published = hash_of(con, "documents")
        with workspace_of(home, SMALL).store.read() as con:
            assert hash_of(con, "documents") != published


def test_where_the_memory_cannot_be_written_there_is_an_answer_all_the_same(home):
    (home / "hashes.json").unlink()
    (home / "hashes.json").mkdir()
    (home / "hashes.json" / "in the way").touch()
    assert not is_due(home)
