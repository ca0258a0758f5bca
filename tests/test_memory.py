"""Memory that runs out: one clear line, nothing lost, and the next run with enough ends right."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from functools import partial
from pathlib import Path

import dagster as dg
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from commands import command, run_python
from dagster_helpers import PEOPLE, PLACES, Pipeline
from index_process import SMALL, update
from test_guarded import PATIENCE, end_of
from test_readers import COMPARED, content

from conftest import Engine
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.hardening import memory
from graphrag_pipeline.core.hardening.memory import (
    OutOfMemoryError,
    as_out_of_memory,
    told_out_of_memory,
)
from graphrag_pipeline.graph import descriptions
from graphrag_pipeline.index import Index
from graphrag_pipeline.ingest.reading import FileFormat, ReadingOptions, read_file
from graphrag_pipeline.store.vector_store import VectorStore

LIMITED = """
import resource, sys
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(float(sys.argv[1]) * 2**20),) * 2)
from graphrag_pipeline.cli.app import main
sys.argv = ["graphrag-pipeline", *sys.argv[2:]]
main()
"""
HANDED_OVER = """
import resource
import duckdb, polars as pl
import pyarrow.dataset
from graphrag_pipeline.store.frames import put_rows, streamed
rows = pl.DataFrame({"n": range(2000)}).with_columns(text=pl.col("n").cast(pl.String))
with duckdb.connect(config={"threads": 1}) as con:
    con.execute("CREATE TABLE all_rows (n BIGINT, text VARCHAR)")
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 500 * 2**20,) * 2)
    put_rows(con, "copied", rows)
    with streamed(con, "once", rows):
        con.execute("INSERT INTO all_rows SELECT * FROM copied UNION ALL SELECT * FROM once")
    print(con.execute("SELECT count(*) FROM all_rows JOIN copied USING (n, text)").fetchall())
"""
IN_SQLITE = """
import resource, sys
from pathlib import Path
from sqlalchemy import create_engine, text
from graphrag_pipeline.llm.database import open_database
from graphrag_pipeline.orchestration.runs import told_of_history
place = Path(sys.argv[1])
engine = create_engine(f"sqlite:///{place / 'history.db'}")
with engine.connect() as con:
    con.execute(text("PRAGMA journal_mode = WAL"))
engine.dispose()
open_database(place / "calls.db").close()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used, used))
try:
    if sys.argv[2] == "history":
        with told_of_history(place), engine.connect() as con:
            con.execute(text("CREATE TABLE runs (id TEXT)"))
    else:
        open_database(place / "calls.db")
except Exception as error:
    print(repr(error))
"""
FREED = """
from graphrag_pipeline.core.hardening.memory import _bytes_in_memory, return_freed_memory
return_freed_memory()
for number in (8_000, 100_000):
    many, after = [bytes(1_000) for _ in range(number)], bytes(1_000)
    del many
    before = _bytes_in_memory()
    return_freed_memory()
    print(before - _bytes_in_memory() > number * 500)
"""
UNDER_LIMIT = """
import os, resource, signal, sys, time
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30,) * 2)
from graphrag_pipeline.cli.memory_limit import run_in_child_if_limited
starter = os.getpid()
run_in_child_if_limited()
assert os.getpid() != starter
"""
COUNTS_INTERRUPTS = """
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print(sys.stdin.isatty(), sys.stderr.isatty(), flush=True)
while not seen:
    time.sleep(.01)
time.sleep(.3)
print(len(seen), flush=True)
"""
OPENBLAS = "OpenBLAS error: Memory allocation still failed after 10 retries, giving up."
FEW, MANY = (40, 400), (5, 20, 60, 120, 200, 300, 400, 500, 640, 800, 1000, 1400)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")


def too_much_for_python() -> None:
    bytearray(2**60)


def too_much_for_duckdb() -> None:
    with duckdb.connect(config={"memory_limit": "2MB", "temp_directory": ""}) as con:
        con.execute("SELECT list(range) FROM range(1000000)").fetchall()


def too_much_for_arrow() -> None:
    pa.allocate_buffer(2**60)


@pytest.mark.parametrize("work", [too_much_for_python, too_much_for_duckdb, too_much_for_arrow])
def test_what_each_library_says_without_memory_is_understood(work: Callable[[], None]) -> None:
    told = pytest.raises(OutOfMemoryError, match=r"^out of memory in graph: .* run it again$")
    with told, told_out_of_memory("graph"):
        work()


@on_linux
def test_freed_memory_is_given_back_where_it_is_much_and_else_kept_for_what_comes() -> None:
    assert run_python("-c", FREED).stdout.split() == ["False", "True"]


@on_linux
@pytest.mark.parametrize("of", ["history", "calls"])
def test_memory_that_sqlite_lacks_is_told_as_that(tmp_path: Path, of: str) -> None:
    ended = run_python("-c", IN_SQLITE, str(tmp_path), of)
    assert ended.stdout.startswith("OutOfMemoryError("), (ended.stdout, ended.stderr)


def test_an_error_on_purpose_that_comes_from_want_of_memory_is_told_as_that() -> None:
    def work() -> None:
        try:
            too_much_for_duckdb()
        except duckdb.Error as error:
            raise StorageError("cannot open index.duckdb") from error

    with pytest.raises(OutOfMemoryError), told_out_of_memory("graph"):
        work()


@pytest.mark.parametrize("is_short", [True, False])
def test_an_error_nobody_meant_is_for_want_of_memory_where_that_is_short(
    monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    monkeypatch.setattr(memory, "memory_is_short", lambda: is_short)
    for error in (NameError("name 'plr' is not defined"), pl.exceptions.PanicException("no\nmore")):
        told = as_out_of_memory(error)
        assert (told is not None) is is_short
        assert not told or "\n" not in str(told)
    assert as_out_of_memory(InputError("no such folder")) is None
    assert as_out_of_memory(KeyboardInterrupt()) is None


@on_linux
def test_rows_are_handed_to_duckdb_where_no_thread_can_be_started() -> None:
    def want_large_stacks() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (2**30, resource.RLIM_INFINITY))

    command = [sys.executable, "-c", HANDED_OVER]
    ended = subprocess.run(
        command, preexec_fn=want_large_stacks, capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.returncode) == ("[(4000,)]\n", 0), ended.stderr


def test_memory_is_short_under_a_limit_that_is_nearly_reached() -> None:
    probe = "from graphrag_pipeline.core.hardening import memory; print(memory.memory_is_short())"
    assert run_python("-c", probe).stdout == "False\n"
    limited = LIMITED.splitlines()[1:4]
    code = "\n".join(["import sys", "sys.argv = ['-c', '100']", *limited, probe])
    assert run_python("-c", code).stdout == "True\n"


@pytest.mark.parametrize("is_short", [True, False])
def test_a_file_that_asks_for_too_much_is_at_fault_only_where_others_would_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    files = sys.modules["graphrag_pipeline.ingest.reading.files"]
    monkeypatch.setattr(files, "memory_is_short", lambda: is_short)
    greedy = FileFormat(lambda *_: too_much_for_python(), {})
    monkeypatch.setattr(files, "format_of", lambda suffix: greedy)
    (tmp_path / "a.txt").write_text("text")
    if is_short:
        with pytest.raises(MemoryError):
            read_file(tmp_path / "a.txt", ReadingOptions())
    else:
        (refused,) = read_file(tmp_path / "a.txt", ReadingOptions()).quarantined
        assert "not enough memory" in refused.reason


def test_a_program_is_told_in_which_stage_and_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "people.txt").write_text(PEOPLE)
    index = Index(tmp_path / "home", SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(descriptions, "merge_graph", lambda *_: too_much_for_duckdb())
        with pytest.raises(OutOfMemoryError, match="out of memory in graph"):
            index.update(tmp_path / "documents")
    assert index.update(tmp_path / "documents").is_new


def test_the_failure_in_dagster_is_the_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(tmp_path, monkeypatch)
    monkeypatch.setattr(descriptions, "merge_graph", lambda *_: too_much_for_arrow())
    with dg.DagsterInstance.get() as instance:
        failed = pipeline.refresh(instance)
    (event,) = [event for event in failed.all_events if event.is_step_failure]
    failure = event.step_failure_data.user_failure_data
    assert failure is not None
    assert failure.description is not None
    assert failure.description.startswith("out of memory: what was finished is kept; give the")
    assert failure.metadata["exit_code"].value == 5


@on_linux
@pytest.mark.parametrize(
    "then", ["os.abort()", f"os.write(2, b'{OPENBLAS}\\n'); os._exit(1)", "ctypes.string_at(0)"]
)
def test_under_a_limit_a_library_that_ends_the_process_is_told_in_one_line(then: str) -> None:
    noise = "os.write(2, b'<jemalloc>: background thread creation failed (11)\\n')"
    ended = run_python("-c", f"{UNDER_LIMIT}\nimport ctypes\n{noise}\n{then}")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: out of memory (a library ended the process: ")
    assert ended.returncode == 5


@on_linux
@pytest.mark.parametrize(
    ("then", "code"),
    [("sys.exit(7)", 7), ("sys.exit(1)", 1), ("os.kill(os.getpid(), 9)", -9), ("pass", 0)],
)
def test_under_a_limit_a_command_ends_as_it_would_without(then: str, code: int) -> None:
    said = "print('out'); os.write(2, b'a remark\\n'); print('told', file=sys.stderr)"
    ended = run_python("-c", f"{UNDER_LIMIT}\n{said}\nsys.stdout.flush()\n{then}")
    assert (ended.returncode, ended.stdout) == (code, "out\n")
    assert sorted(ended.stderr.splitlines()) == ["a remark", "told"]


@on_linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_under_a_limit_what_ends_the_command_ends_its_child(number: signal.Signals) -> None:
    code = f"{UNDER_LIMIT}\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        child = int(run.stdout.readline())
        run.send_signal(number)
        assert run.wait(PATIENCE) == -number
        end_of([child])


@on_linux
def test_under_a_limit_the_terminal_is_the_commands_and_interrupts_it_once() -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", UNDER_LIMIT + COUNTS_INTERRUPTS]
    take_it = partial(fcntl.ioctl, theirs, termios.TIOCSCTTY, 0)
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        start_new_session=True,
        preexec_fn=take_it,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "True True\n"
        os.write(ours, b"\x03")
        assert run.stdout.readline() == "1\n"
        assert run.wait(PATIENCE) == 0
    os.close(ours)
    os.close(theirs)


def test_vectors_are_not_begun_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "memory_is_short", lambda: True)
    with pytest.raises(OutOfMemoryError):
        VectorStore(tmp_path).version("chunks")


@pytest.mark.waits
@on_linux
@pytest.mark.parametrize("limits", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=len)
def test_under_any_limit_a_run_succeeds_or_says_so_in_one_line_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, ...]
) -> None:
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    monkeypatch.setenv("GRAPHRAG_EMBEDDINGS__DIMENSIONS", str(SMALL.embeddings.dimensions))
    pipeline = Pipeline(tmp_path, monkeypatch)
    codes = []
    for number, megabytes in enumerate(limits):
        pipeline.write({f"{number}.txt": PEOPLE if number % 2 else PLACES})
        ended = run_python("-c", LIMITED, str(megabytes), "index")
        codes.append(ended.returncode)
        assert "Traceback" not in ended.stderr, (megabytes, ended.stderr)
        errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
        said = (megabytes, ended.returncode, ended.stderr)
        print(*said)
        if ended.returncode == 5:
            assert len(errors) == 1, said
            assert "out of memory" in errors[0], said
        else:
            assert ended.returncode == 0, said
    assert 5 in codes
    enough = command("index")
    assert enough.returncode == 0, enough.stderr
    undisturbed = Engine(tmp_path / "undisturbed", SMALL)
    undisturbed.write({path.name: path.read_bytes() for path in pipeline.inbox.iterdir()})
    update(undisturbed)
    disturbed = Engine(tmp_path, SMALL)
    disturbed.store = pipeline.store
    left, right = content(disturbed), content(undisturbed)
    assert {name for name in COMPARED if left[name] != right[name]} == set()
    assert not list(pipeline.home.rglob("*.tmp"))


def test_the_memory_for_us_is_the_smallest_limit_of_all_groups_and_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = tmp_path / "groups"
    for name, text in {
        "a/b/memory.max": "max",
        "a/memory.max": "30000000",
        "memory/c/memory.limit_in_bytes": "20000000",
        "memory/memory.limit_in_bytes": "90000000",
        "d/memory.max": "1",
    }.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(f"{text}\n")
    of_process = tmp_path / "cgroup"
    of_process.write_text("6:cpu,cpuacct:/d\n5:memory:/c\n0::/a/b\n")
    limits = list(memory._group_limits(of_process, groups))
    assert limits == [20_000_000, 90_000_000, 30_000_000]
    monkeypatch.setattr(memory, "_group_limits", lambda: limits)
    for of_addresses, least in (([], 20_000_000), ([10_000_000], 10_000_000), ([0], 20_000_000)):
        monkeypatch.setattr(memory, "_address_limit", lambda bytes=of_addresses: bytes)
        assert memory.memory_for_us() == least
