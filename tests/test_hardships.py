"""What a machine may deny a command: each ends well, or in one line with its exit code."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import command, run_python
from test_check import PLAIN, ready, story

from conftest import Engine
from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.hardening.open_files import LEAST, TooManyFilesError
from graphrag_pipeline.ingest.reading import ReadingOptions
from graphrag_pipeline.ingest.reading.separate import Readers, ReadingLimits
from graphrag_pipeline.orchestration.runs import index_folder
from graphrag_pipeline.query import retrieve
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.checking import check, repair

resource = pytest.importorskip("resource", reason="the system knows no such limits")
pytestmark = pytest.mark.usefixtures("plain_stores")
QUESTION = "Who met Mira Sorrel?"
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
JUMPS = ["+0d", "+3650d", "-3650d", "+0d,+400d", "+0d,-400d", "+30d"]
"""How far off the clock of each run is, and what it jumps to while the run goes on."""
PLACES = ['it\'s "two  spaces" é #41', "é" * 20 + "/" + "a b" * 60]
COMMANDS = (
    ("index", "documents ü"),
    ("query", QUESTION, "--method", "local"),
    ("check",),
    ("backup", "b c.tar.zst"),
    ("restore", "b c.tar.zst", "--home", "restored é"),
    ("export", "graphrag", "-o", "exported é"),
    ("explore",),
    ("purge", "-y"),
    ("check", "--repair"),
)
TOO_FEW = "error: too few files may be open at once: raise the limit (ulimit -n 1024)"
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from graphrag_pipeline.cli.app import main
sys.argv = ["graphrag-pipeline", *sys.argv[1:]]
try:
    main()
finally:
    print("may open", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def run_with(soft: int, hard: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may open so many files, and raise the limit to the second number."""
    return run_python("-c", LIMITED.format(soft=soft, hard=hard), *command)


@pytest.mark.parametrize("command", ["index documents", "check --repair", "query Who?"])
def test_where_too_few_files_may_be_open_a_command_says_so_and_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_with(64, 64, *command.split())
    assert (done.returncode, done.stderr) == (5, f"{TOO_FEW} and run it again\n")
    assert not any(tmp_path.iterdir())


def test_a_command_opens_as_many_files_as_the_system_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_with(64, LEAST + 100, "methods", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"may open {LEAST + 100}\n")


def test_for_want_of_open_files_nothing_is_called_damaged(tmp_path: Path) -> None:
    index = ready(tmp_path / "index")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST // 2, before[1]))
    try:
        for look in (check, repair):
            with pytest.raises(TooManyFilesError):
                look(index)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert check(index).problems == ()


@pytest.mark.parametrize("name", ["what?", "50%"])
def test_a_home_that_dagster_cannot_be_in_is_refused_and_nothing_is_made_beside_it(
    tmp_path: Path, name: str
) -> None:
    engine = Engine(tmp_path)
    engine.write({"a.txt": "Ada Lovelace met Charles Babbage in London."})
    home = tmp_path / name / "home"
    settings = PLAIN.model_copy(update={"home": str(home)})
    with pytest.raises(ConfigError, match=r"holds [?%], which .* cannot read: name another"):
        index_folder(Workspace(settings), engine.inbox)
    assert {path.name for path in tmp_path.iterdir()} == {name, "documents"}


@pytest.fixture
def nowhere_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files cannot be anywhere: no folder for them is there, or can be written in."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])


def test_without_a_folder_for_temporary_files_an_index_is_read_and_checked(
    tmp_path: Path, nowhere_temporary: None
) -> None:
    index = ready(tmp_path / "index")
    assert check(index).problems == ()
    assert retrieve(QUESTION, "local", home=index.home, settings=PLAIN).records


def test_what_needs_a_folder_for_temporary_files_asks_for_one(
    tmp_path: Path, nowhere_temporary: None
) -> None:
    with (
        Readers(ReadingOptions(), ReadingLimits(1_000, 10), tmp_path / "deaths.json") as readers,
        pytest.raises(StorageError, match=r"no folder for temporary files: name .* TMPDIR"),
    ):
        readers.read(Path("a.docx"), b"PK", "0")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(not FAKETIME, reason="libfaketime is not installed")
def test_a_clock_that_jumps_changes_nothing_but_what_time_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run has another clock: years ahead, years back, and one that jumps while it runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "home"))
    documents, clock = tmp_path / "documents", tmp_path / "clock"
    documents.mkdir()
    for number, offset in enumerate(JUMPS):
        (documents / f"{number}.md").write_text(story(number))
        clock.write_text(offset.partition(",")[0])
        with under_clock(clock, "index", "documents") as process:
            if later := offset.partition(",")[2]:
                time.sleep(2)
                clock.write_text(later)
            _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        listed = json.loads(command("releases", "--json").stdout)
        assert [each["is_current"] for each in listed] == [True] + [False] * (len(listed) - 1)
        assert listed[0]["counts"]["documents"] == number + 1
        checked = command("check")
        assert checked.returncode == 0, checked.stdout
    calm = Workspace(PLAIN.model_copy(update={"home": str(tmp_path / "calm")}))
    Index(calm.settings).update(documents)
    titles = "SELECT count(*), sum(degree) FROM entities"
    assert Index(Settings(home=str(tmp_path / "home"))).sql(titles) == Index(calm.settings).sql(
        titles
    )


@contextlib.contextmanager
def under_clock(clock: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command whose clock is as far off as a file says at each moment."""
    environment = {
        **os.environ,
        "LD_PRELOAD": FAKETIME[0],
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DISABLE_SHM": "1",
        "NO_FAKE_STAT": "1",
    }
    program = [sys.executable, "-m", "graphrag_pipeline.cli", *arguments]
    with subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.nightly
@pytest.mark.parametrize("name", PLACES)
def test_commands_work_in_a_folder_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / name
    (folder / "documents ü").mkdir(parents=True)
    for number in range(3):
        (folder / "documents ü" / f"{number}.md").write_text(story(number))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GRAPHRAG_HOME", str(folder / "home of it"))
    for line in COMMANDS:
        done = command(*line)
        assert done.returncode == 0, f"{line}: {done.stderr}"
