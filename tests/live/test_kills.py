"""Dagster's servers with one of their processes killed: nothing is left, lost or paid twice."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from commands import command
from model_server import Fault, Request
from strict_server import StrictServer
from test_live import PATIENCE, free_port

from graphrag_pipeline import Index, Settings

AT_ONCE = 2
EQUAL = (
    "SELECT uri, text FROM documents",
    "SELECT text FROM chunks",
    "SELECT title, type, description, degree FROM entities",
    "SELECT source, target, weight, description FROM relationships",
    "SELECT level, title, full_content FROM community_reports",
)
UNDER_WAY = [
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.CANCELING,
]
# A process, by what its command line holds.
ENDING_ALL = {"the command": "graphrag_pipeline.cli ui", "the daemon": "dagster._daemon"}
ALONE = {
    "the code server": "dagster code-server start",
    "the code": "dagster api grpc",
    "the web server": "dagster_webserver",
}
pytestmark = [pytest.mark.live, pytest.mark.waits, pytest.mark.nightly]


def processes_in(home: Path) -> dict[int, str]:
    """Return the processes that were started for a home, and their command lines."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(place.name) != os.getpid() and str(home).encode() in (
                (place / "environ").read_bytes()
            ):
                line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if line:
                    found[int(place.name)] = line
    return found


def until(what: str, look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what}: not seen in time"
        time.sleep(0.1)
    return found


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictServer]:
    """A model that takes its time, and a home that asks it."""
    played = importlib.import_module("benchmarks.played_answers")

    def slow(request: Request) -> str | Fault:
        time.sleep(0.1)
        return played.played_answer(request)

    for name in ("DAGSTER_HOME", "GRAPHRAG_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "inbox").mkdir()
    corpus = Path(__file__).parents[2] / "examples" / "corpus" / "press"
    for file in sorted(corpus.iterdir())[:2]:
        (tmp_path / "inbox" / file.name).write_bytes(file.read_bytes())
    with StrictServer(slow) as server:
        for name, value in {
            "OPENAI_API_KEY": "sk-test",
            "GRAPHRAG_PROFILE": "llm",
            "GRAPHRAG_HOME": str(tmp_path / "home"),
            "GRAPHRAG_INPUT__FOLDER": str(tmp_path / "inbox"),
            "GRAPHRAG_INPUT__POLL_SECONDS": "1",
            "GRAPHRAG_INPUT__SETTLE_SECONDS": "1",
            "GRAPHRAG_SCHEDULE__REFRESH_CRON": "* * * * *",
            "GRAPHRAG_LLM__BASE_URL": server.base_url,
            "GRAPHRAG_LLM__CONCURRENCY": str(AT_ONCE),
        }.items():
            monkeypatch.setenv(name, value)
        yield server


@contextlib.contextmanager
def started_ui(folder: Path) -> Iterator[None]:
    """Start the servers; in the end nothing is left of them, within a minute of being told."""
    port = free_port()
    arguments = [sys.executable, "-m", "graphrag_pipeline.cli", "ui", "--port", str(port)]
    with (folder / "dagster.log").open("wb") as log:
        process = subprocess.Popen(
            arguments, stdout=log, stderr=log, cwd=folder, start_new_session=True
        )
        try:
            yield
            process.send_signal(signal.SIGINT)
            process.wait(60)
            until("the end of what was left", lambda: not processes_in(folder / "home"))
        finally:
            for pid in processes_in(folder / "home"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(60)


def content(index: Index) -> list[list[tuple[Any, ...]]]:
    return [sorted(index.sql(query)[1], key=repr) for query in EQUAL]


def paid_again(server: StrictServer) -> list[tuple[int, str, str]]:
    """Return the requests that came more than once: number, endpoint, beginning."""
    repeated = server.repeated()
    return [
        (request.number, request.endpoint, str(request.body)[:300])
        for request in server.requests
        if request.content_hash in repeated
    ]


def assert_right(tmp_path: Path, server: StrictServer, n_kills: int) -> None:
    """Bring a home up to date: it is as if nobody had disturbed it."""
    home = tmp_path / "home"
    done = command("index")
    assert done.returncode == 0, done.stderr
    # What was in flight, and how long a vector is: two may ask that at the same moment.
    assert server.paid_again() <= n_kills * AT_ONCE + 1, paid_again(server)
    assert not list(home.rglob("*.tmp"))
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        assert instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY)) == []
    calm = Index(Settings(home=str(tmp_path / "calm")))
    calm.update(tmp_path / "inbox")
    assert content(Index(Settings(home=str(home)))) == content(calm)


@pytest.mark.parametrize("who", ENDING_ALL)
def test_killed_during_a_run_nothing_is_left_and_the_next_run_is_right(
    tmp_path: Path, server: StrictServer, who: str
) -> None:
    with started_ui(tmp_path):
        kill_in_a_run(tmp_path / "home", server, ENDING_ALL[who])
        until("the end of all", lambda: not processes_in(tmp_path / "home"))
    assert_right(tmp_path, server, 1)


@pytest.mark.parametrize("who", ALONE)
def test_killed_alone_the_others_end_when_told_and_the_next_run_is_right(
    tmp_path: Path, server: StrictServer, who: str
) -> None:
    with started_ui(tmp_path):
        kill_in_a_run(tmp_path / "home", server, ALONE[who])
        time.sleep(5)
    assert_right(tmp_path, server, 2)


def kill_in_a_run(home: Path, server: StrictServer, which: str) -> None:
    """Kill the process whose command line holds this, once a run asks the model."""
    until("a question", lambda: len(server.requests) > 2)
    (pid,) = [pid for pid, line in processes_in(home).items() if which in line]
    os.kill(pid, signal.SIGKILL)
