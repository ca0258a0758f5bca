from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from full_disk import no_file_above
from llm_helpers import ask, ask_many, calls_since, options_for, processes, with_client
from model_server import ModelServer
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import LlmSettings, Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.llm import ModelClient, last_position
from graphrag_pipeline.llm.answer_purposes import making
from graphrag_pipeline.llm.cache import today
from graphrag_pipeline.llm.cache_size import measure_cache, trim_cache, vacuum_cache
from graphrag_pipeline.llm.database import CallTables, open_database
from graphrag_pipeline.llm.offline import vectors_known
from graphrag_pipeline.orchestration.runs import index_folder
from graphrag_pipeline.upkeep.salvaging import salvage

LONG = "what is asked here " * 400
OLD_SCHEMA = """
CREATE TABLE responses (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, text TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, finish_reason TEXT NOT NULL, created_at REAL NOT NULL
);
CREATE TABLE embeddings (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL, created_at REAL NOT NULL
);
CREATE TABLE llm_calls (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, called_at REAL NOT NULL,
    stage TEXT NOT NULL, batch TEXT, model TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cost REAL, seconds REAL NOT NULL, cached INTEGER NOT NULL,
    error TEXT
);
"""
WIDTHS = "CREATE TABLE embedding_widths (source BLOB PRIMARY KEY, dimensions INTEGER NOT NULL);"


@contextlib.contextmanager
def opened(home: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(Home(home).calls, isolation_level=None)) as con:
        yield con


def size_of(home: Path) -> int:
    return Home(home).calls.stat().st_size


def used_of(home: Path) -> int:
    size = measure_cache(home)
    return size.file_bytes - size.free_bytes


def fill(home: Path, number: int, first: int = 0, n_bytes: int = 2000) -> None:
    """Put answers made long ago, the first of them longest ago."""
    rows = [
        (b"%08d" % n, "m", "x" * n_bytes, 1, 1, "stop", 86_400.0 * (n + 1))
        for n in range(first, first + number)
    ]
    with contextlib.closing(open_database(Home(home).calls)) as con:
        con.execute("BEGIN")
        con.executemany(
            "INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL)", rows
        )
        con.execute("COMMIT")
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def keys_of(home: Path) -> list[bytes]:
    with opened(home) as con:
        return [key for (key,) in con.execute("SELECT key FROM responses ORDER BY key")]


def age(home: Path, days: int) -> None:
    """Let all entries have been made and used so many days earlier."""
    with opened(home) as con:
        for table in ("responses", "embeddings"):
            con.execute(f"UPDATE {table} SET used_on = used_on - {days}")
            con.execute(
                f"UPDATE {table} SET created_at = created_at - {days * 86_400}, digest = NULL"
            )


def make_old(home: Path, version: int, entries: int = 3, n_bytes: int = 10) -> None:
    """Make a file as an older program has made it."""
    with opened(home) as con:
        con.execute("PRAGMA journal_mode = WAL")
        con.executescript(OLD_SCHEMA + (WIDTHS if version > 1 else ""))
        con.execute(f"PRAGMA user_version = {version}")
        con.execute("BEGIN")
        con.executemany(
            "INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (b"%08d" % n, "m", "x" * n_bytes, 1, 1, "stop", 86_400.0 * (n + 1))
                for n in range(entries)
            ],
        )
        con.execute("COMMIT")


def test_what_was_not_used_for_longest_goes_first_down_to_nine_tenths(tmp_path: Path) -> None:
    fill(tmp_path, 2000)
    most = used_of(tmp_path) // 2
    dropped = trim_cache(tmp_path, most)
    kept = keys_of(tmp_path)
    assert kept == [b"%08d" % n for n in range(2000 - len(kept), 2000)]
    assert dropped == {"chat": 2000 - len(kept)}
    assert 0.75 * most < used_of(tmp_path) <= 0.9 * most


def test_below_the_limit_nothing_goes_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    texts = [f"q{n}" for n in range(30)]
    with ModelServer() as server:
        ask_many(server, tmp_path, texts)
        with_client(server, tmp_path, lambda client: client.embed(texts, stage="test"))
        age(tmp_path, 300)
        assert trim_cache(tmp_path, used_of(tmp_path)) == {}
        server.forget()
        ask_many(server, tmp_path, texts)
        with_client(server, tmp_path, lambda client: client.embed(texts, stage="test"))
        assert not server.requests


def test_a_use_on_another_day_saves_answers_and_vectors(tmp_path: Path) -> None:
    texts = [f"{n} {LONG}" for n in range(10)]
    with ModelServer() as server:
        ask_many(server, tmp_path, texts)
        with_client(server, tmp_path, lambda client: client.embed(texts, stage="test"))
        age(tmp_path, 300)
        ask_many(server, tmp_path, texts[:3])
        with_client(server, tmp_path, lambda client: client.embed(texts[:4], stage="test"))
        assert trim_cache(tmp_path, 1) == {"chat": 7, "embeddings": 6}
        server.forget()
        ask_many(server, tmp_path, texts[:3])
        with_client(server, tmp_path, lambda client: client.embed(texts[:4], stage="test"))
        assert not server.requests
        ask(server, tmp_path, texts[5])
        assert len(server.requests) == 1


def test_nothing_that_the_run_has_used_goes_however_long_it_takes(tmp_path: Path) -> None:
    with ModelServer() as server:
        ask(server, tmp_path, "before the run")
        began = last_position(tmp_path)
        ask(server, tmp_path, "at its beginning")
    with opened(tmp_path) as con:
        con.execute("UPDATE responses SET used_on = used_on - 9 WHERE rowid = 1")
        con.execute("UPDATE responses SET used_on = used_on - 5 WHERE rowid = 2")
        con.execute("UPDATE llm_calls SET called_at = called_at - 5 * 86400 WHERE position = 2")
    assert trim_cache(tmp_path, 1, since=began) == {"chat": 1}
    assert measure_cache(tmp_path).entries[0].entries == 1
    assert trim_cache(tmp_path, 1) == {"chat": 1}


def test_what_was_used_yesterday_stays_for_a_run_may_go_past_midnight(tmp_path: Path) -> None:
    with ModelServer() as server:
        ask(server, tmp_path)
    age(tmp_path, 1)
    assert trim_cache(tmp_path, 1) == {}
    age(tmp_path, 1)
    assert trim_cache(tmp_path, 1) == {"chat": 1}


def test_a_use_is_written_once_a_day_and_entry(tmp_path: Path) -> None:
    changes: list[int] = []

    async def use(client: ModelClient) -> None:
        writer = client._database._tables._writer
        for _ in range(5):
            await client.complete([{"role": "user", "content": "hello"}], stage="test")
        await client._database.write([])
        changes.append(writer.total_changes)

    with ModelServer() as server:
        ask(server, tmp_path)
        age(tmp_path, 2)
        with_client(server, tmp_path, use)
        with_client(server, tmp_path, use)
    in_ledger = 5
    assert changes == [in_ledger + 1, in_ledger]
    assert measure_cache(tmp_path).entries[0].newest_use == datetime.now(UTC).date()


def test_to_look_what_a_run_would_find_is_no_use(tmp_path: Path) -> None:
    with ModelServer() as server:
        with_client(server, tmp_path, lambda client: client.embed(["a"], stage="test"))
        age(tmp_path, 10)
        assert vectors_known(tmp_path, options_for(server), ["a", "b"]) == [True, False]
    newest = measure_cache(tmp_path).entries[0].newest_use
    assert newest == datetime.now(UTC).date() - timedelta(days=10)


def test_the_ledger_stays(tmp_path: Path) -> None:
    with ModelServer() as server:
        ask_many(server, tmp_path, [f"q{n}" for n in range(20)])
    before = calls_since(tmp_path)
    age(tmp_path, 10)
    trim_cache(tmp_path, 1)
    vacuum_cache(tmp_path)
    assert calls_since(tmp_path).equals(before)
    assert len(before) == 20


def test_the_file_shrinks_as_entries_go(tmp_path: Path) -> None:
    fill(tmp_path, 3000)
    before = size_of(tmp_path)
    trim_cache(tmp_path, before // 4)
    assert size_of(tmp_path) <= before // 4
    assert measure_cache(tmp_path).free_bytes == 0


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_file_is_taken_over_and_its_entries_count_from_their_day(
    tmp_path: Path, version: int
) -> None:
    make_old(tmp_path, version)
    (entries,) = measure_cache(tmp_path).entries
    assert entries.entries == 3
    assert (str(entries.oldest_use), str(entries.newest_use)) == ("1970-01-02", "1970-01-04")
    with opened(tmp_path) as con:
        assert con.execute("PRAGMA user_version").fetchone() == (8,)
        assert con.execute("SELECT count(*) FROM embedding_widths").fetchone() == (0,)


def test_two_processes_may_take_an_older_file_over_at_once(tmp_path: Path) -> None:
    for attempt in range(5):
        home = tmp_path / str(attempt)
        home.mkdir()
        make_old(home, 1)
        both = [processes.Process(target=measure_cache, args=(home,)) for _ in range(3)]
        for process in both:
            process.start()
        for process in both:
            process.join()
        assert [process.exitcode for process in both] == [0, 0, 0]


def test_an_older_file_is_written_anew_once_and_shrinks_by_itself_then(tmp_path: Path) -> None:
    make_old(tmp_path, 2, entries=3000, n_bytes=2000)
    before = size_of(tmp_path)
    most = used_of(tmp_path) // 2
    trim_cache(tmp_path, most)
    assert size_of(tmp_path) >= before
    vacuum_cache(tmp_path)
    assert size_of(tmp_path) <= most
    trim_cache(tmp_path, most // 2)
    assert size_of(tmp_path) <= most // 2


@pytest.mark.parametrize("is_old", [False, True])
def test_a_full_disk_is_said_in_one_line_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    make_old(tmp_path, 2, entries=900, n_bytes=4000) if is_old else fill(tmp_path, 900, 0, 4000)
    with contextlib.closing(open_database(Home(tmp_path).calls)) as con:
        con.execute("DELETE FROM responses WHERE rowid % 2")
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before, kept = size_of(tmp_path), keys_of(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10**8}))
    with no_file_above(100_000), pytest.raises(StorageError) as refused:
        vacuum_cache(tmp_path)
    assert "nothing was lost" in str(refused.value) or "free the disk" in str(refused.value)
    assert keys_of(tmp_path) == kept
    vacuum_cache(tmp_path)
    assert size_of(tmp_path) < 0.6 * before
    with opened(tmp_path) as con:
        assert con.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert keys_of(tmp_path) == kept


def test_to_shrink_takes_little_room(tmp_path: Path) -> None:
    fill(tmp_path, 2500, 0, 4000)
    with contextlib.closing(CallTables(Home(tmp_path).calls)) as cache:
        cache._writer.execute("DELETE FROM responses")
        cache._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        seen = []
        cache._writer.set_trace_callback(lambda sql: seen.append(log_of(tmp_path).stat().st_size))
        cache.give_back()
    assert size_of(tmp_path) < 200_000
    assert 0 < max(seen) < 5_000_000


def log_of(home: Path) -> Path:
    return Path(f"{Home(home).calls}-wal")


def test_without_room_to_write_it_anew_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(tmp_path, 2, entries=300)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10}))
    with pytest.raises(StorageError, match="free the disk and run again; nothing was lost"):
        vacuum_cache(tmp_path)
    assert len(keys_of(tmp_path)) == 300


def _trim_slowly(home: Path) -> None:
    for share in range(9, 0, -1):
        trim_cache(home, 4_000_000 * share // 10)


def test_a_kill_leaves_a_whole_file_without_what_was_dropped(tmp_path: Path) -> None:
    for wait in (0.0, 0.01, 0.03, 0.06, 0.1):
        home = tmp_path / str(wait)
        home.mkdir()
        fill(home, 2000)
        process = processes.Process(target=_trim_slowly, args=(home,))
        process.start()
        started = time.monotonic()
        while len(keys_of(home)) == 2000 and time.monotonic() - started < 20:
            time.sleep(0.002)
        time.sleep(wait)
        # It may have ended by itself.
        process.kill()
        process.join()
        with opened(home) as con:
            assert con.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        kept = keys_of(home)
        assert kept == [b"%08d" % n for n in range(2000 - len(kept), 2000)]


def test_others_write_while_the_cache_is_trimmed(tmp_path: Path) -> None:
    fill(tmp_path, 2000)
    process = processes.Process(target=_trim_slowly, args=(tmp_path,))
    process.start()
    with ModelServer() as server:
        ask_many(server, tmp_path, [f"q{n}" for n in range(50)])
        process.join()
        assert process.exitcode == 0
        server.forget()
        ask_many(server, tmp_path, [f"q{n}" for n in range(50)])
        assert not server.requests


def test_an_entry_that_is_used_meanwhile_is_not_dropped(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    with opened(tmp_path) as con:
        con.execute("UPDATE responses SET used_on = ? WHERE key = '00000001'", [today()])
        con.execute("UPDATE responses SET used_on = ? WHERE rowid = 2", [today()])
    with contextlib.closing(CallTables(Home(tmp_path).calls)) as cache:
        assert cache.drop("responses", keys_of(tmp_path), today()) == 2
    assert keys_of(tmp_path) == [b"00000001"]


def test_a_damaged_file_of_an_older_program_is_salvaged_whole(tmp_path: Path) -> None:
    make_old(tmp_path, 2, entries=20)
    salvage(Home(tmp_path).calls, 0)
    assert len(keys_of(tmp_path)) == 20
    with opened(tmp_path) as con:
        assert con.execute("PRAGMA auto_vacuum").fetchone() == (2,)


def test_salvaged_entries_keep_their_last_use(tmp_path: Path) -> None:
    with ModelServer() as server:
        ask(server, tmp_path)
    with opened(tmp_path) as con:
        con.execute("UPDATE responses SET used_on = 5")
    salvage(Home(tmp_path).calls, 0)
    assert str(measure_cache(tmp_path).entries[0].newest_use) == "1970-01-06"


def test_salvaged_notes_say_where_shared_answers_are(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    notes = [("/one", b"1"), ("/one", b"2"), ("/two", b"1")]
    with opened(tmp_path) as con:
        con.executemany("INSERT INTO shared_entries VALUES (?, ?)", notes)
    salvage(Home(tmp_path).calls, 0)
    with opened(tmp_path) as con:
        assert con.execute("SELECT * FROM shared_entries ORDER BY place, key").fetchall() == notes


def test_the_command_shows_and_shrinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    fill(tmp_path, 1000)
    before = size_of(tmp_path)
    shown = json.loads(run("cache", "--json"))
    assert shown["limit_bytes"] is None
    assert shown["file_bytes"] == before
    (entries,) = shown["entries"]
    assert (entries["kind"], entries["model"], entries["entries"]) == ("chat", "m", 1000)
    assert json.loads(run("cache", "--vacuum", "--json"))["dropped"] == {}
    monkeypatch.setenv("GRAPHRAG_LLM__CACHE_GB", "0.001")
    vacuumed = json.loads(run("cache", "--vacuum", "--json"))
    assert vacuumed["bytes_before"] == before
    assert vacuumed["file_bytes"] == size_of(tmp_path) <= 1_000_000
    assert vacuumed["dropped"]["chat"] == 1000 - len(keys_of(tmp_path))
    shown = run("cache")
    assert "1.0 MB (llm.cache_gb)" in shown
    assert re.search(r"^not noted +not noted +chat +m ", shown, re.M)


def test_entries_are_told_apart_by_stage_and_purpose(tmp_path: Path) -> None:
    def entries() -> list[tuple[object, ...]]:
        size = Index(tmp_path).cache().size
        return [(e.kind, e.stage, e.of_index, e.entries) for e in size.entries]

    fill(tmp_path, 2)
    with ModelServer() as server:
        ask(server, tmp_path, "a question")
        with making("a row"):
            ask_many(server, tmp_path, ["a part", "another part"])
        with_client(server, tmp_path, lambda client: client.embed(["a text"], stage="entities"))
        bought = [("chat", "test", True, 2), ("chat", "test", False, 1)]
        vectors = [("embeddings", "entities", None, 1)]
        assert entries() == [("chat", None, None, 2), *bought, *vectors]
        with making("another row"):
            ask(server, tmp_path, "a question")
    assert entries()[1:] == [("chat", "test", True, 3), *vectors]
    before = Index(tmp_path).cache().size.entries[1].n_bytes
    used = Index(tmp_path, Settings(llm=LlmSettings(cache_gb=0.000_001))).cache(vacuum=True)
    assert used.dropped == {"chat": 2}
    assert [entries.n_bytes for entries in used.size.entries[:1]] == [before]


def test_the_command_says_that_there_is_no_cache_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    assert "no model has been asked yet" in run("cache", "--vacuum")
    assert not Home(tmp_path).calls.exists()


@pytest.mark.parametrize("by_dagster", [False, True])
def test_a_run_keeps_the_cache_within_its_limit(tmp_path: Path, by_dagster: bool) -> None:
    folder, home = tmp_path / "documents", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "a.txt").write_text("Alice met Bob in Paris.")
    fill(home, 1000)
    Index(home).update(folder)
    assert len(keys_of(home)) == 1000
    (folder / "a.txt").write_text("Alice met Bob in London.")
    index = Index(home, Settings(home=str(home), llm=LlmSettings(cache_gb=0.001)))
    index_folder(index, folder) if by_dagster else index.update(folder)
    assert 0 < len(keys_of(home)) < 500
    assert size_of(home) <= 1_000_000
