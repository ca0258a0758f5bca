import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import polars as pl
import pytest
from commands import ForkedPython
from full_disk import no_file_above

from conftest import without_privileges
from graphrag_pipeline.core.errors import BusyError, StorageError
from graphrag_pipeline.store.index_store import (
    IndexStore,
    assign_identifiers,
    connect_published,
    copy_rows,
    get_meta,
    insert,
    make_small,
    replace_changed,
    replace_links,
    set_meta,
)

pytestmark = pytest.mark.usefixtures("plain_stores")


@pytest.fixture
def store(tmp_path):
    return IndexStore(tmp_path / "home" / "index.duckdb", wait_seconds=20)


@pytest.fixture
def opens(monkeypatch):
    """What DuckDB opens from now on."""
    paths, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: paths.append(a) or connect(*a, **k))
    return paths


def run(program, *arguments):
    """Start a program of its own, with ``store`` opened at the first argument."""
    start = "import sys\nfrom pathlib import Path\n"
    start += "from graphrag_pipeline.store.index_store import IndexStore, get_meta, set_meta\n"
    start += "store = IndexStore(Path(sys.argv[1]))\n"
    return ForkedPython(
        ["-c", start + textwrap.dedent(program), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def value(store, key):
    with store.read() as con:
        return get_meta(con, key)


def test_processes_that_write_at_once_all_succeed(store):
    program = """
        for number in range(5):
            with store.transaction() as con:
                set_meta(con, "count", str(int(get_meta(con, "count") or 0) + 1))
        """
    writers = [run(program, store.path) for _ in range(3)]
    assert [writer.wait(timeout=30) for writer in writers] == [0, 0, 0]
    assert value(store, "count") == "15"


def test_an_exception_leaves_nothing_of_the_transaction(store):
    with store.transaction() as con:
        set_meta(con, "state", "before")
    with contextlib.suppress(RuntimeError), store.transaction() as con:
        set_meta(con, "state", "after")
        raise RuntimeError
    assert value(store, "state") == "before"


def test_a_failed_statement_leaves_nothing_of_the_transaction(store):
    with contextlib.suppress(duckdb.Error), store.transaction() as con:
        set_meta(con, "state", "after")
        con.execute("SELECT * FROM no_such_table")
    assert value(store, "state") is None


def test_kill_9_inside_a_transaction_leaves_the_earlier_state(store):
    with store.transaction() as con:
        set_meta(con, "state", "before")
    victim = run(
        """
        import time
        with store.transaction() as con:
            set_meta(con, "state", "after")
            con.execute("INSERT INTO meta SELECT 'x', repeat('y', 100) FROM range(300_000)")
            print("inside", flush=True)
            time.sleep(60)
        """,
        store.path,
    )
    assert victim.stdout.readline() == "inside\n"
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(timeout=10)
    assert value(store, "state") == "before"
    with store.transaction() as con:
        assert con.execute("SELECT count(*) FROM meta WHERE key = 'x'").fetchone() == (0,)
        set_meta(con, "state", "after")
    assert value(store, "state") == "after"


def test_one_who_waits_in_vain_is_told_so(store):
    holder = run(
        """
        import time
        with store.transaction() as con:
            print("inside", flush=True)
            time.sleep(60)
        """,
        store.path,
    )
    assert holder.stdout.readline() == "inside\n"
    hasty = IndexStore(store.path, wait_seconds=0.3)
    started = time.monotonic()
    try:
        with pytest.raises(BusyError, match=r"another process has held .* wait"), hasty.read():
            pass
    finally:
        holder.kill()
        holder.wait(timeout=10)
    assert 0.3 <= time.monotonic() - started < 30
    assert value(store, "state") is None


def test_threads_of_one_process_take_turns_too(store):
    def add():
        for _ in range(5):
            with store.transaction() as con:
                set_meta(con, "count", str(int(get_meta(con, "count") or 0) + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert value(store, "count") == "20"


def test_a_session_opens_the_file_once(store, opens, monkeypatch):
    monkeypatch.setattr("graphrag_pipeline.store.index_store._IDLE_SECONDS", 600)
    with store.session():
        for number in range(5):
            with store.transaction() as con:
                set_meta(con, "count", str(number))
            assert value(store, "count") == str(number)
        with store.session():
            assert value(store, "count") == "4"
        assert value(store, "count") == "4"
    assert len(opens) == 1
    assert value(store, "count") == "4"
    assert len(opens) == 2


def test_changes_are_counted_where_this_thread_or_another_could_write(store):
    with store.session():
        with store.read():
            before = store.n_changes
        with store.read():
            assert store.n_changes == before
        with store.transaction():
            pass
        assert store.n_changes == before + 1
    with store.read():
        after = store.n_changes
    assert after > before + 1
    assert store.n_changes > after


def test_an_error_in_a_session_rolls_back_its_own_transaction_only(store):
    with store.session():
        with store.transaction() as con:
            set_meta(con, "state", "first")
        with contextlib.suppress(KeyError), store.transaction() as con:
            set_meta(con, "state", "second")
            raise KeyError
        with contextlib.suppress(duckdb.Error), store.transaction() as con:
            set_meta(con, "state", "third")
            con.execute("SELECT nothing FROM nowhere")
        assert value(store, "state") == "first"
        with store.transaction() as con:
            set_meta(con, "other", "last")
    assert (value(store, "state"), value(store, "other")) == ("first", "last")


def test_connections_of_a_session_have_their_own_temporary_tables_and_utc(store):
    with store.session():
        with store.read() as con:
            con.execute("CREATE TEMP TABLE mine AS SELECT 1")
            con.register("also_mine", pl.DataFrame({"a": [1]}))
        with store.read() as con:
            for name in ("mine", "also_mine"):
                with pytest.raises(duckdb.CatalogException):
                    con.execute(f"FROM {name}")
            zone = con.execute("SELECT current_setting('TimeZone')").fetchone()
    assert zone is not None
    assert "UTC" in zone[0]


def test_the_row_before_is_looked_for_without_comparing_all_with_all(store):
    before = "EXPLAIN SELECT * FROM range(9) a(x) ASOF JOIN range(99999) b(y) ON x >= y"
    with store.transaction() as con:
        assert "ASOF_JOIN" in con.execute(before).fetchall()[0][1]


def test_who_reads_while_he_writes_is_told_at_once(store):
    with store.transaction(), pytest.raises(RuntimeError, match="already"), store.read():
        pass
    with store.session(), store.read(), pytest.raises(RuntimeError, match="already"):
        store.copy_to(store.path.with_name("copy.duckdb"))


def test_a_thread_comes_between_two_uses_of_a_session(store):
    seen = []

    def write():
        with store.transaction() as con:
            seen.append(get_meta(con, "state"))
            set_meta(con, "state", "theirs")

    thread = threading.Thread(target=write)
    with store.session():
        with store.transaction() as con:
            set_meta(con, "state", "mine")
            changes = store.n_changes
            thread.start()
            time.sleep(0.2)
            assert seen == []
        thread.join(timeout=30)
        assert seen == ["mine"]
        assert store.n_changes > changes
        assert value(store, "state") == "theirs"


@pytest.mark.parametrize("is_small", [False, True])
def test_a_file_made_anew_where_one_was_removed_in_use_is_the_new_one(store, is_small):
    def make_anew():
        shutil.rmtree(store.path.parent)
        if is_small:
            make_small(store.path)
        before = value(store, "state")
        with store.transaction() as con:
            set_meta(con, "state", "new")
        return before

    with ThreadPoolExecutor(1) as other, store.session():
        with store.transaction() as con:
            set_meta(con, "state", "old")
        assert other.submit(make_anew).result(timeout=30) is None
        assert value(store, "state") == "new"
        with store.read(), pytest.raises(StorageError, match="was removed while it was in use"):
            other.submit(make_anew).result(timeout=30)
    assert value(store, "state") is None
    with store.read() as con:
        sizes = con.execute("SELECT block_size FROM pragma_database_size()").fetchall()
    assert sizes == [(16384 if is_small else 262144,)]


def test_who_waits_is_served_although_a_session_never_pauses(store):
    program = """
        import time
        with store.session():
            print("inside", flush=True)
            while True:
                with store.transaction() as con:
                    set_meta(con, "count", str(int(get_meta(con, "count") or 0) + 1))
        """
    holder = run(program, store.path)
    try:
        assert holder.stdout.readline() == "inside\n"
        hasty = IndexStore(store.path, wait_seconds=20)
        counts = [int(value(hasty, "count") or 0) for _ in range(3)]
    finally:
        holder.kill()
        holder.wait(timeout=10)
    assert counts == sorted(counts)


def test_a_session_that_pauses_lets_the_file_go(store):
    with store.session():
        assert value(store, "state") is None
        last = time.monotonic() + 20
        while time.monotonic() < last:
            # Who does not queue, such as a program of the user's, finds the file locked till then.
            if opens_elsewhere(store.path):
                break
        else:
            pytest.fail("the file is still held")
        assert value(store, "state") is None


def opens_elsewhere(path):
    program = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('FROM meta')"
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, check=False)
    return done.returncode == 0


def test_other_processes_wait_for_a_use_and_a_killed_session_frees_the_file(store):
    holder = run(
        """
        with store.session():
            with store.transaction() as con:
                set_meta(con, "state", "kept")
            with store.read():
                print("inside", flush=True)
                sys.stdin.read()
        """,
        store.path,
    )
    assert holder.stdout.readline() == "inside\n"
    hasty = IndexStore(store.path, wait_seconds=0.2)
    try:
        with (
            pytest.raises(BusyError, match="another process has held"),
            hasty.session(),
            hasty.read(),
        ):
            pass
    finally:
        holder.kill()
        holder.wait(timeout=10)
    assert value(store, "state") == "kept"


def test_stores_of_one_file_share_a_session(store, opens):
    with store.session():
        with IndexStore(store.path).transaction() as con:
            set_meta(con, "state", "other")
            with pytest.raises(RuntimeError, match="already"), store.read():
                pass
        assert value(store, "state") == "other"
    assert len(opens) == 1


def test_a_copy_within_a_session_holds_what_the_session_wrote(store, tmp_path):
    target = tmp_path / "published.duckdb"
    with store.session():
        with store.transaction() as con:
            set_meta(con, "state", "first")
        store.copy_to(target)
        with store.transaction() as con:
            set_meta(con, "state", "second")
    with connect_published(target) as con:
        assert get_meta(con, "state") == "first"
    assert value(store, "state") == "second"


def test_what_is_remembered_ends_with_the_session(store):
    store.remember("key", "lost")
    assert store.recall("key") is None
    with store.session():
        with store.session():
            store.remember("key", "kept")
        assert store.recall("key") == "kept"
    assert store.recall("key") is None


def test_a_large_file_is_not_kept_open(store, opens, monkeypatch):
    monkeypatch.setattr("graphrag_pipeline.store.index_store._SMALL_BYTES", 1000)
    with store.session():
        assert value(store, "state") is None
        assert value(store, "state") is None
    assert len(opens) == 2


def test_a_session_forgets_blocks_of_a_large_file_when_asked_and_goes_on(store, monkeypatch):
    cached = "SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'BASE_TABLE'"
    limit = "SELECT current_setting('memory_limit')"
    with store.transaction() as con:
        con.execute("CREATE TABLE numbers AS SELECT hash(range) AS n FROM range(500000)")
    with store.session():
        store.give_back_memory()
        with store.read() as con:
            con.execute("CREATE TEMP TABLE own AS SELECT 1 AS one")
            (total,) = con.execute("SELECT sum(n) FROM numbers").fetchone()
            (before,), most = con.execute(cached).fetchone(), con.execute(limit).fetchone()
        store.give_back_memory()
        with store.read() as con:
            assert con.execute(cached).fetchone() == (before,), "of a small file they stay"
        monkeypatch.setattr("graphrag_pipeline.store.index_store._LARGE_BYTES", 0)
        store.give_back_memory()
        with store.read() as con:
            assert con.execute(cached).fetchone()[0] < before / 4
            assert con.execute(limit).fetchone() == most
            assert con.execute("SELECT sum(n) FROM numbers").fetchone() == (total,)


def test_a_file_is_opened_again_after_an_error(store, opens):
    with store.session():
        with contextlib.suppress(duckdb.Error), store.transaction() as con:
            con.execute("SELECT nothing FROM nowhere")
        assert value(store, "state") is None
    assert len(opens) == 2


def test_reading_changes_nothing_in_the_file(store):
    value(store, "state")
    before = hashlib.sha256(store.path.read_bytes()).hexdigest()
    value(store, "state")
    assert hashlib.sha256(store.path.read_bytes()).hexdigest() == before


def test_a_copy_holds_everything_and_can_be_read_while_others_write(store, tmp_path):
    with store.transaction() as con:
        set_meta(con, "state", "first")
    target = tmp_path / "published.duckdb"
    store.copy_to(target)
    reader = connect_published(target)
    with store.transaction() as con:
        set_meta(con, "state", "second")
    store.copy_to(target)
    assert get_meta(reader, "state") == "first"
    reader.close()
    with connect_published(target) as con:
        assert get_meta(con, "state") == "second"


def test_a_copy_that_fails_half_way_leaves_the_target_and_no_rubbish(store, tmp_path):
    store.copy_to(tmp_path / "published.duckdb")
    before = (tmp_path / "published.duckdb").read_bytes()

    def fail(source, copy):
        copy.write_bytes(source.read_bytes()[:100])
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match=r"cannot write .*published\.duckdb.*No space"):
        store.copy_to(tmp_path / "published.duckdb", fail)
    assert (tmp_path / "published.duckdb").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "published.duckdb"]


def test_what_is_written_beside_is_in_the_copy_and_not_in_the_original(store, tmp_path):
    def write(source, copy):
        copy_rows(source, copy)
        with duckdb.connect(str(copy)) as con:
            con.execute("CREATE TABLE extra AS SELECT 1 AS one")

    store.copy_to(tmp_path / "published.duckdb", write)
    with connect_published(tmp_path / "published.duckdb") as con:
        assert con.execute("SELECT one FROM extra").fetchone() == (1,)
    with store.read() as con, pytest.raises(duckdb.Error):
        con.execute("SELECT one FROM extra")


def test_a_target_that_cannot_be_written_is_a_storage_error(store):
    with pytest.raises(StorageError, match="cannot write"):
        store.copy_to(store.path.parent)


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(StorageError, match="cannot write in"),
        IndexStore(tmp_path / "file" / "index.duckdb").read(),
    ):
        pass


def test_an_unwritable_folder_is_a_storage_error(open_folder):
    home = open_folder / "home"
    home.mkdir(mode=0o555)
    with (
        without_privileges(home),
        pytest.raises(StorageError, match=r"cannot write in .*: Permission denied"),
        IndexStore(home / "index.duckdb").read(),
    ):
        pass


def test_an_unwritable_file_is_a_storage_error(open_folder):
    store = IndexStore(open_folder / "index.duckdb")
    with store.transaction() as con:
        set_meta(con, "state", "before")
    store.path.chmod(0o444)
    locks = [store.path.with_suffix(suffix) for suffix in (".lock", ".queue")]
    with (
        without_privileges(open_folder, store.path, *locks),
        pytest.raises(StorageError, match="cannot open"),
        store.transaction(),
    ):
        pass


@pytest.mark.parametrize("content", [b"this is no database " * 1000, b"\x00" * 20_000, b"x"])
def test_a_file_that_is_no_database_is_a_storage_error_and_stays_as_it_was(tmp_path, content):
    path = tmp_path / "index.duckdb"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="cannot open") as caught, IndexStore(path).read():
        pass
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_a_damaged_database_is_a_storage_error(store):
    with store.transaction() as con:
        con.execute("INSERT INTO meta SELECT i::VARCHAR, repeat('y', 100) FROM range(99999) t(i)")
    data = bytearray(store.path.read_bytes())
    data[len(data) // 4 : len(data) // 2] = os.urandom(len(data) // 2 - len(data) // 4)
    store.path.write_bytes(data)
    with pytest.raises(StorageError), store.read() as con:
        con.execute("SELECT max(value), max(key) FROM meta").fetchall()


def test_identifiers_count_up_and_stay(store):
    with store.transaction() as con:
        assign_identifiers(con, "entity", "SELECT id FROM (VALUES ('b'), ('a')) t(id) ORDER BY id")
        assign_identifiers(con, "entity", "SELECT id FROM (VALUES ('c'), ('a')) t(id) ORDER BY id")
        assign_identifiers(con, "chunk", "SELECT 'z' AS id")
        rows = con.execute("FROM identifiers ORDER BY kind, human_readable_id").fetchall()
    assert rows == [("chunk", "z", 0), ("entity", "a", 0), ("entity", "b", 1), ("entity", "c", 2)]


def test_identifiers_follow_the_given_order_also_of_many_rows(store):
    with store.transaction() as con:
        con.execute("CREATE TEMP TABLE many AS SELECT i::VARCHAR AS id FROM range(300_000) t(i)")
        assign_identifiers(con, "entity", "SELECT id FROM many ORDER BY id::BIGINT DESC")
        wrong = con.execute(
            "SELECT count(*) FROM identifiers WHERE human_readable_id <> 299_999 - id::BIGINT"
        ).fetchone()
    assert wrong == (0,)


def test_replacing_writes_only_the_rows_that_differ(store):
    with store.transaction() as con:
        con.execute("CREATE TABLE t AS FROM (VALUES ('a', 1), ('b', 2), ('c', NULL)) t(id, x)")
        con.execute("CREATE TEMP TABLE w AS FROM (VALUES ('a', 1), ('b', 3), ('d', 4)) t(id, x)")
        counts = replace_changed(con, "t", "w")
        assert counts == {"added": 1, "changed": 1, "removed": 1, "reused": 1}
        assert con.execute("FROM t ORDER BY id").fetchall() == [("a", 1), ("b", 3), ("d", 4)]
        assert replace_changed(con, "t", "w") == {
            "added": 0,
            "changed": 0,
            "removed": 0,
            "reused": 3,
        }


def test_replacing_links_leaves_exactly_what_is_wanted(store):
    wanted = [("a", "1", 5), ("b", "2", None), ("c", "9", 9)]
    with store.transaction() as con:
        con.execute(
            """CREATE TABLE t AS
               FROM (VALUES ('a', '1', 4), ('b', '2', NULL), ('z', '1', 1)) t(p, q, n)"""
        )
        con.register("w", pl.DataFrame(wanted, schema=["p", "q", "n"], orient="row"))
        replace_links(con, "t", "w", ("p", "q"))
        assert con.execute("FROM t ORDER BY ALL").fetchall() == wanted


def test_rows_are_inserted_by_name_also_where_there_are_none(store):
    with store.transaction() as con:
        insert(con, "meta", pl.DataFrame({"value": ["v'\"\n"], "key": ["k"]}))
        insert(con, "meta", pl.DataFrame(schema={"value": pl.String, "key": pl.String}))
    assert value(store, "k") == "v'\"\n"


def test_a_copy_for_which_the_disk_has_no_room_is_an_error_and_the_file_stays(
    tmp_path,
):
    many = "".join(f"CREATE TABLE rows_{n} AS SELECT {n} AS n;" for n in range(40))
    source, copied = tmp_path / "many.duckdb", tmp_path / "copy.duckdb"
    with duckdb.connect(str(source)) as con:
        con.execute(many)
    copy_rows(source, copied)
    # What DuckDB logs of them is small: it is as the file is closed that there is no room.
    with no_file_above(copied.stat().st_size // 2), pytest.raises(duckdb.Error):
        copy_rows(source, tmp_path / "halved.duckdb")
    store = IndexStore(tmp_path / "index.duckdb")
    with store.transaction() as con:
        con.execute(many)
    store.write_anew()
    with no_file_above(store.path.stat().st_size // 2), pytest.raises(StorageError):
        store.write_anew()
    with store.read() as con:
        assert con.execute("SELECT n FROM rows_39").fetchall() == [(39,)]
