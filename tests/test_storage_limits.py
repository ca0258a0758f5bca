"""What a run may take of the machine, and what is said and left where it is too little."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from conftest import Engine
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening import memory
from graphrag_pipeline.core.hardening.memory import OutOfMemoryError, told_out_of_memory
from graphrag_pipeline.core.settings import EmbeddingSettings, Settings, StorageSettings
from graphrag_pipeline.extraction import extractors
from graphrag_pipeline.index import Index
from graphrag_pipeline.ingest import mention_files
from graphrag_pipeline.store import hashing
from graphrag_pipeline.store.hashing import hash_of
from graphrag_pipeline.store.index_store import IndexStore, memory_database
from graphrag_pipeline.store.limits import DatabaseLimits, limits_of, parts_within
from graphrag_pipeline.store.workspace import Workspace

LARGE = "CREATE OR REPLACE TEMP TABLE t AS SELECT md5(i::VARCHAR) AS s FROM range(3000000) r(i)"
KILLED = f"""
import os, sys
from pathlib import Path
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.limits import DatabaseLimits
with IndexStore(sys.argv[1], DatabaseLimits(20_000_000, 1, Path(sys.argv[2]))).read() as con:
    con.execute("{LARGE}")
    os.kill(os.getpid(), 9)
"""
BARS = """
import sys, duckdb
from pathlib import Path
from graphrag_pipeline.store.index_store import IndexStore, memory_database
asked = "SELECT current_setting('enable_progress_bar')"
store = IndexStore(Path(sys.argv[1]))
with duckdb.connect() as con, memory_database() as own, store.session(), store.read() as cursor:
    print([each.execute(asked).fetchone()[0] for each in (con, own, cursor)])
"""
SPILLED = LARGE.replace("3000000", "1200000")
OF_50_MB, OF_200_MB = (
    f"CREATE OR REPLACE TEMP TABLE t AS SELECT repeat('abcd', 1000) || i AS s FROM range({n}) r(i)"
    for n in (12_500, 50_000)
)


def in_memory(limits: DatabaseLimits) -> duckdb.DuckDBPyConnection:
    """Open a database with these limits that can put nothing on disk."""
    con = duckdb.connect(config={"temp_directory": ""})
    limits.bound(con)
    return con


def two_threads_meet(con: duckdb.DuckDBPyConnection, seconds: float) -> bool:
    """Return whether two threads work on one query at once, which is waited for so long."""
    meeting = threading.Barrier(2)
    met: dict[int, bool] = {}

    def meet(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
        if threading.get_ident() not in met:
            try:
                met[threading.get_ident()] = meeting.wait(seconds) >= 0
            except threading.BrokenBarrierError:
                met[threading.get_ident()] = False
        return numbers

    con.execute("CREATE OR REPLACE TEMP TABLE numbers AS SELECT i FROM range(500000) r(i)")
    con.create_function("meet", meet, ["BIGINT"], "BIGINT", type="arrow")
    con.execute("SELECT sum(meet(i)) FROM numbers").fetchall()
    con.remove_function("meet")
    return any(met.values())


def spilled(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("duckdb_temp_storage*")]


def test_half_of_the_memory_is_taken_by_default_and_what_is_set_otherwise(tmp_path):
    half = memory.memory_for_us() // 2
    assert half / 4 <= (limits_of(Settings(home=str(tmp_path))).memory_bytes or 0) < half
    storage = StorageSettings(memory_gb=2, threads=3, temp=str(tmp_path / "fast"))
    limits = limits_of(Settings(home=str(tmp_path), storage=storage))
    assert (limits.memory_bytes, limits.threads) == (1_200_000_000, 3)
    assert limits.spill is not None
    assert limits.spill.parent == tmp_path / "fast"
    other = limits_of(Settings(home=str(tmp_path / "other"), storage=storage))
    assert other.spill != limits.spill


def test_limits_hold_for_the_tables_of_a_workspace(tmp_path):
    storage = StorageSettings(memory_gb=1, threads=1, temp=str(tmp_path / "fast"))
    workspace = Workspace(Settings(home=str(tmp_path / "home"), storage=storage))
    with workspace.store.read() as con:
        row = con.execute(
            "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
        ).fetchone()
    assert row == ("238.4 MiB", str(workspace.store.limits.spill))


def test_limits_hold_for_copies_in_memory_which_spill_beside_the_index_s_own(tmp_path):
    limits = DatabaseLimits(500_000_000, 1, tmp_path / "fast")
    settings = "current_setting('memory_limit'), current_setting('threads')"
    with memory_database(limits) as con:
        row = con.execute(f"SELECT {settings}, current_setting('temp_directory')").fetchone()
        assert row is not None
        assert row[:2] == ("476.8 MiB", 1)
        bar = con.execute("SELECT current_setting('enable_progress_bar')").fetchone()
        assert bar == (False,)
        assert Path(row[2]).is_relative_to(tmp_path / "fast")
        con.execute("SET memory_limit = '20 MB'")
        con.execute(LARGE)
        assert spilled(tmp_path / "fast")
        with IndexStore(tmp_path / "index.duckdb", limits).read():
            assert spilled(tmp_path / "fast")
        assert con.execute("SELECT count(s) FROM t").fetchone() == (3_000_000,)


@pytest.mark.parametrize("limits", [DatabaseLimits(), DatabaseLimits(120_000_000)])
def test_after_less_memory_for_a_while_a_table_has_what_it_had_before_and_no_more(limits):
    with in_memory(limits) as con:
        with (
            limits.narrowed(con, memory_bytes=20_000_000, threads=1),
            pytest.raises(duckdb.OutOfMemoryException),
        ):
            con.execute(OF_50_MB)
        con.execute(OF_50_MB)
        if limits.memory_bytes:
            with pytest.raises(duckdb.OutOfMemoryException):
                con.execute(OF_200_MB)
        else:
            con.execute(OF_200_MB)


def test_after_one_thread_for_a_while_there_are_as_many_as_before():
    limits = DatabaseLimits(threads=2)
    with in_memory(limits) as con:
        with limits.narrowed(con, memory_bytes=100_000_000, threads=1):
            assert not two_threads_meet(con, 0.1)
        assert two_threads_meet(con, 30)


def test_less_memory_for_a_while_is_never_more_than_there_was():
    limits = DatabaseLimits(20_000_000, 1)
    with (
        in_memory(limits) as con,
        limits.narrowed(con, memory_bytes=500_000_000, threads=9),
        pytest.raises(duckdb.OutOfMemoryException),
    ):
        con.execute(OF_50_MB)


def test_less_memory_within_less_memory_gives_back_what_was_around_it():
    limits = DatabaseLimits()
    with in_memory(limits) as con:
        with limits.narrowed(con, memory_bytes=80_000_000, threads=1):
            with limits.narrowed(con, memory_bytes=20_000_000, threads=1):
                pass
            con.execute(OF_50_MB)
            with pytest.raises(duckdb.OutOfMemoryException):
                con.execute(OF_200_MB)
        con.execute(OF_200_MB)


def test_a_limit_that_nobody_knows_exactly_does_not_sink_with_each_time():
    reported = "SELECT current_setting('memory_limit')"
    with in_memory(DatabaseLimits(1_900_000_000)) as con:
        before = con.execute(reported).fetchone()
        for _ in range(9):
            with DatabaseLimits().narrowed(con, memory_bytes=20_000_000, threads=1):
                pass
        assert con.execute(reported).fetchone() == before


def test_memory_is_given_back_where_the_transaction_was_aborted():
    limits = DatabaseLimits()
    with in_memory(limits) as con:
        con.execute("BEGIN")
        with (
            pytest.raises(duckdb.OutOfMemoryException),
            limits.narrowed(con, memory_bytes=20_000_000, threads=1),
        ):
            con.execute(OF_50_MB)
        con.execute("ROLLBACK")
        con.execute(OF_50_MB)


def test_two_connections_that_want_less_memory_at_once_give_back_what_there_was():
    limits = DatabaseLimits()
    second_began, first_ended = threading.Event(), threading.Event()

    def narrow(con: duckdb.DuckDBPyConnection) -> None:
        with limits.narrowed(con, memory_bytes=20_000_000, threads=1):
            second_began.set()
            first_ended.wait(30)

    with in_memory(limits) as con, con.cursor() as beside:
        second = threading.Thread(target=narrow, args=[beside])
        with limits.narrowed(con, memory_bytes=20_000_000, threads=1):
            second.start()
            second_began.wait(0.1)
        first_ended.set()
        second.join()
        con.execute(OF_50_MB)


@pytest.mark.parametrize("memory_gb", [0, 0.4])
@pytest.mark.usefixtures("plain_stores")
def test_after_many_dense_documents_a_table_has_the_memory_that_the_settings_give(
    tmp_path, monkeypatch, memory_gb
):
    monkeypatch.setattr(extractors, "_SLICE_BYTES", 20_000)
    monkeypatch.setattr(mention_files, "_MEMORY_BYTES", 20_000_000)
    engine = Engine(tmp_path, Settings(storage=StorageSettings(memory_gb=memory_gb)))
    engine.write({f"{n}.txt": f"Ann Lee{n} met Bob Roe{n % 7} in Paris. " * 9 for n in range(40)})
    store = engine.workspace.store
    with store.session():
        engine.index()
        with store.read() as con:
            con.execute(OF_50_MB)
            assert not spilled(tmp_path)
            con.execute(OF_200_MB)
            assert bool(spilled(tmp_path)) == bool(memory_gb)


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_a_control_group_and_those_above_it_are_read(tmp_path, version):
    root = tmp_path if version == 2 else tmp_path / "memory"
    name = "memory.max" if version == 2 else "memory.limit_in_bytes"
    of_process = tmp_path / "cgroup"
    lines = "0::/a/b\n" if version == 2 else "3:cpu:/else\n4:memory,x:/a/b\n"
    of_process.write_text(lines)
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / name).write_text("max\n" if version == 2 else f"{2**62}\n")
    (root / "a" / name).write_text("5000\n")
    assert min(memory._group_limits(of_process, tmp_path)) == 5000
    assert not [*memory._group_limits(tmp_path / "missing", tmp_path)]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_a_killed_run_put_on_disk_for_want_of_memory_goes_with_the_next(tmp_path):
    index, spill = tmp_path / "index.duckdb", tmp_path / "fast" / "own"
    killed = subprocess.run([sys.executable, "-c", KILLED, index, spill], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert spilled(spill)
    with IndexStore(index, DatabaseLimits(spill=spill)).read():
        assert not spilled(spill)
    beside = Path(f"{index}.tmp")
    killed = subprocess.run([sys.executable, "-c", KILLED, index, beside], check=False)
    assert spilled(beside)
    with IndexStore(index).read():
        assert not spilled(tmp_path)


def test_databases_in_memory_spill_to_a_folder_that_ends_with_the_process():
    with memory_database() as con:
        row = con.execute("SELECT current_setting('temp_directory')").fetchone()
        assert row is not None
        assert Path(row[0]).parent.is_dir()
    code = (
        "from graphrag_pipeline.store.index_store import memory_database\n"
        "con = memory_database()\n"
        "print(con.execute(\"SELECT current_setting('temp_directory')\").fetchone()[0])"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not Path(ended.stdout.strip()).parent.parent.exists()


def test_no_bar_is_drawn_where_duckdb_would_draw_one(tmp_path):
    command = [sys.executable, "-c", BARS, str(tmp_path / "index.duckdb")]
    asked = subprocess.run(command, check=True, capture_output=True, text=True)
    assert asked.stdout.strip() == "[True, False, False]"


def test_a_full_folder_is_told_from_memory_alone(tmp_path):
    limits = DatabaseLimits(20_000_000, 1, tmp_path / "fast")
    told = r"in graph \(with no room .*storage\.temp"
    with IndexStore(tmp_path / "index.duckdb", limits).read() as con:
        con.execute("SET max_temp_directory_size = '1MB'")
        with pytest.raises(OutOfMemoryError, match=told), told_out_of_memory("graph"):
            con.execute(LARGE)


@pytest.mark.parametrize("place", ["file", "in/file"])
def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path, place):
    (tmp_path / "file").write_text("")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("")
    limits = limits_of(
        Settings(home=str(tmp_path), storage=StorageSettings(temp=str(tmp_path / place)))
    )
    store = IndexStore(tmp_path / "index.duckdb", limits)
    with pytest.raises(StorageError, match=r"^cannot write in .*\(storage\.temp\): [^\n]+$"):
        store.read().__enter__()


def test_a_run_with_too_little_loses_nothing_and_the_next_is_right(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(9):
        text = f"Ada Lovelace met Charles Babbage in London {number} times."
        (docs / f"{number}.txt").write_text(text)
    small = EmbeddingSettings(dimensions=32)
    tight = Settings(embeddings=small, storage=StorageSettings(memory_gb=0.003, threads=1))
    with pytest.raises(OutOfMemoryError, match=r"storage\.memory_gb"):
        Index(tmp_path / "home", tight).update(docs)
    enough = Settings(embeddings=small)
    Index(tmp_path / "home", enough).update(docs)
    Index(tmp_path / "fresh", enough).update(docs)
    columns = "title, type, description, frequency, degree"
    names, rows = Index(tmp_path / "home", enough).sql(
        f"SELECT {columns} FROM entities ORDER BY id"
    )
    assert rows
    assert (names, rows) == Index(tmp_path / "fresh", enough).sql(
        f"SELECT {columns} FROM entities ORDER BY id"
    )


def test_long_texts_are_hashed_in_parts_with_little_memory_to_the_same_hash() -> None:
    rows = "SELECT i AS id, repeat(md5(i::VARCHAR), 5000) AS text FROM range(200) r(i)"
    make = f"CREATE TABLE documents AS {rows}"
    with duckdb.connect() as con:
        con.execute(make)
        whole = hash_of(con, "documents")
    with duckdb.connect() as con:
        con.execute(f"SET threads = 1; SET memory_limit = '120MB'; SET temp_directory = ''; {make}")
        hashing._remembered.clear()
        with pytest.raises(duckdb.OutOfMemoryException):
            hash_of(con, "documents")
        assert hash_of(con, "documents", parts=parts_within(con, 8 * 200 * 160_000)) == whole
        con.execute("DELETE FROM documents")
        assert hash_of(con, "documents", parts=3) == hash_of(con, "documents") == "0"


def test_what_an_open_database_has_put_on_disk_is_left_to_it(tmp_path: Path) -> None:
    limits = DatabaseLimits(20_000_000, 1, tmp_path / "spill")
    with IndexStore(tmp_path / "index.duckdb", limits).read() as con:
        con.execute(SPILLED)
        used = {path.name for path in limits.spill_folder().iterdir()}
        (tmp_path / "spill" / "duckdb_temp_storage_of_one_killed").write_bytes(b"x")
        limits.set_on(con, tmp_path / "index.duckdb")
        assert used
        assert {path.name for path in limits.spill_folder().iterdir()} == used
