"""The benchmarks of the server and the explorer, made small: what they measure is there."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from pathlib import Path

import duckdb
import pytest
import requests
from query_fixture import ENTITIES, published

from benchmarks.many_entities import enlarged
from benchmarks.serve import (
    METHODS,
    ServerProcess,
    load,
    memory_of_switches,
    switched_under_load,
    until,
)
from graphrag_pipeline.pages.explorer import write_page
from graphrag_pipeline.releases.kept_releases import changing_releases, keep_published

QUESTIONS = ["Who worked as a clerk for Scrooge?", "Who saw the ghost of Marley?"] * 4


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An index of which two releases are kept."""
    for release in ("r1", "r2"):
        published(tmp_path / "home", release)
        with changing_releases(tmp_path / "home"):
            keep_published(tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.live
def test_a_small_load_is_answered_whole_while_releases_are_switched(home: Path) -> None:
    with ServerProcess(home) as server:
        for method in METHODS:
            took = load(server, "/v1/query", method, QUESTIONS, clients=2)
            assert (took.n, took.errors) == (len(QUESTIONS), 0)
            assert 0 < took.median <= took.p95
        assert load(server, "/v1/query", "nonsense", QUESTIONS[:2], clients=2).errors == 2
        answers = switched_under_load(home, server, QUESTIONS, 2)
        assert {status for status, _ in answers} == {200}
        assert {release for _, release in answers} == {"r1", "r2"}
        assert len(memory_of_switches(home, server, QUESTIONS, 2)) == 2
        assert server.cpu() > 0
    assert server.process.returncode == 0


@pytest.mark.live
def test_a_worker_that_dies_is_replaced_and_numbers_are_those_of_all(home: Path) -> None:
    with ServerProcess(home, "--workers", "2") as server:
        until(lambda: len(workers(server)) == 2)
        took = load(server, "/v1/retrieve", "bm25", QUESTIONS, clients=4)
        assert took.errors == 0
        assert {questions_counted(server) for _ in range(4)} == {float(len(QUESTIONS))}
        died, stayed = workers(server)
        os.kill(died, signal.SIGKILL)
        until(lambda: len(workers(server)) == 2 and died not in workers(server))
        assert stayed in workers(server)
        until(lambda: load(server, "/v1/retrieve", "bm25", QUESTIONS, clients=1).errors == 0)
    assert server.process.returncode == 0


def workers(server: ServerProcess) -> list[int]:
    """Return the processes that answer: those that were spawned, and live."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return [int(pid) for pid in children.split() if b"spawn_main" in command_of(pid)]


def command_of(pid: str) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def questions_counted(server: ServerProcess) -> float:
    text = requests.get(f"http://127.0.0.1:{server.port}/metrics", timeout=60).text
    return sum(map(float, re.findall(r"^graphrag_question_seconds_count\{.*\} (.*)$", text, re.M)))


def test_a_graph_several_times_over_has_words_of_its_own(tmp_path: Path) -> None:
    once = published(tmp_path / "once")
    large = enlarged(once, tmp_path / "large", 2 * len(ENTITIES) + 1)
    with duckdb.connect(str(large / "published.duckdb"), read_only=True) as con:
        counts = con.sql("SELECT n_entities, n_relationships FROM releases").fetchall()[0]
        ((same,),) = con.sql(
            "SELECT count(*) - count(DISTINCT title) FROM entities WHERE title SIMILAR TO '[ -~]+'"
        ).fetchall()
        ((loose,),) = con.sql(
            "SELECT count(*) FROM relationships ANTI JOIN entities e ON source_id = e.id"
        ).fetchall()
    assert counts[0] == 3 * len(ENTITIES)
    assert counts[1] > 2 * len(ENTITIES)
    assert same == loose == 0
    assert write_page(large, tmp_path / "graph.html").n_entities == counts[0]
