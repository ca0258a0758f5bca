"""What a run may take of the machine, and what is said and left where it is too little."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_pipeline.core import memory
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.memory import OutOfMemoryError, told_out_of_memory
from graphrag_pipeline.core.settings import EmbeddingSettings, Settings, StorageSettings
from graphrag_pipeline.index import Index
from graphrag_pipeline.store.index_store import IndexStore, memory_database
from graphrag_pipeline.store.limits import Limits, limits_of
from graphrag_pipeline.store.workspace import Workspace

LARGE = "CREATE OR REPLACE TEMP TABLE t AS SELECT md5(i::VARCHAR) AS s FROM range(3000000) r(i)"
KILLED = f"""
import os, sys
from pathlib import Path
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.limits import Limits
with IndexStore(sys.argv[1], Limits(20_000_000, 1, Path(sys.argv[2]))).read() as con:
    con.execute("{LARGE}")
    os.kill(os.getpid(), 9)
"""


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
    limits = Limits(500_000_000, 1, tmp_path / "fast")
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
    with IndexStore(index, Limits(spill=spill)).read():
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


def test_a_full_folder_is_told_from_memory_alone(tmp_path):
    limits = Limits(20_000_000, 1, tmp_path / "fast")
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
