"""An experiment killed at any moment: it goes on where it ended, and nothing is paid twice."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import PATIENCE, ForkedPython, command
from graphrag_evaluation.store import EvaluationStore
from killed_command import killed_at
from model_server import Fault, Request
from query_fixture import publish
from strict_server import StrictServer

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm.cache import request_json, request_key

QUESTIONS = {"Who was the clerk of Scrooge?": "Bob Cratchit", "Where was Curie born?": "Warsaw"}
EXPERIMENT = """
questions = "{questions}"
methods = ["basic", "local"]
[claims]
[judge]
criteria = ["directness", "overall"]
replicates = 1
"""
RUN = ("eval", "run", "small.toml", "--yes", "--json")
AT_ONCE = 4
# All that an experiment comes to, but for when it was and how long it took.
RESULTS = {
    "experiments": "started_at, finished_at",
    "conditions": "",
    "answers": "answered_at, retrieve_ms, total_ms",
    "experiment_answers": "",
    "scores": "",
    "claims": "",
    "claim_extractions": "",
    "judgments": "judged_at",
    "comparisons": "",
}
pytestmark = pytest.mark.waits


@dataclass(frozen=True)
class Bench:
    """A home to evaluate in, and the server that it asks."""

    home: Path
    server: StrictServer

    def results(self) -> dict[str, list[tuple[Any, ...]]]:
        tables = {}
        with EvaluationStore(self.home).read() as con:
            for table, left_out in RESULTS.items():
                columns = f"* EXCLUDE ({left_out})" if left_out else "*"
                tables[table] = con.execute(
                    f"SELECT {columns} FROM {table} ORDER BY ALL"
                ).fetchall()
            unfinished = "SELECT count(*) FROM experiments WHERE finished_at IS NULL"
            assert con.execute(unfinished).fetchone() == (0,)
        return tables

    def keys_kept(self) -> set[bytes]:
        """The keys of all answers that are on disk."""
        if not Home(self.home).calls.exists():
            return set()
        with contextlib.closing(sqlite3.connect(Home(self.home).calls)) as con:
            # Killed before it had its tables, it keeps nothing.
            made = con.execute("SELECT 1 FROM sqlite_master WHERE name = 'responses'").fetchone()
            rows = con.execute("SELECT key FROM responses") if made else ()
            return {key for (key,) in rows}

    def key(self, request: Request) -> bytes:
        """The key under which the answer to a request is kept."""
        return request_key(self.server.base_url, request_json(request.asked))


Benches = Callable[[str], contextlib.AbstractContextManager[Bench]]


@dataclass(frozen=True)
class Undisturbed:
    """What an experiment comes to that nobody kills, and all that it asks."""

    results: dict[str, list[tuple[Any, ...]]]
    asked: set[str]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("evaluated"))


@pytest.fixture
def bench(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benches:
    """What makes a home of its own, and a server that it asks."""
    played = importlib.import_module("benchmarks.played_answers")
    lines = [json.dumps({"question": q, "answers": [a]}) for q, a in QUESTIONS.items()]
    (tmp_path / "asked.jsonl").write_text("\n".join(lines))
    (tmp_path / "small.toml").write_text(EXPERIMENT.format(questions=tmp_path / "asked.jsonl"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GRAPHRAG_QUERY__ANSWERS", "llm")
    monkeypatch.setenv("GRAPHRAG_LLM__CONCURRENCY", str(AT_ONCE))

    @contextlib.contextmanager
    def made(name: str) -> Iterator[Bench]:
        home = shutil.copytree(published, tmp_path / name)
        with StrictServer(played.played_answer) as server:
            monkeypatch.setenv("GRAPHRAG_HOME", str(home))
            monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
            yield Bench(home, server)

    return made


def run_to_the_end(bench: Bench) -> None:
    done = command(*RUN)
    assert done.returncode == 0, done.stderr


def killed_at_request(number: int, server: StrictServer) -> int | None:
    """Run the experiment, killed when so many requests have come; return its exit code."""
    process = ForkedPython(["-m", "graphrag_pipeline.cli", *RUN])

    def kill(request: Request) -> Fault | None:
        if request.number == number:
            os.kill(process.pid, signal.SIGKILL)
        return None

    server.misbehave(kill)
    try:
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        server.misbehave(())
    return process.returncode


def assert_goes_on(bench: Bench, undisturbed: Undisturbed) -> None:
    """Run a killed experiment to its end: it asks for what is not on disk, and nothing else."""
    kept, n_before = bench.keys_kept(), len(bench.server.requests)
    run_to_the_end(bench)
    assert bench.results() == undisturbed.results
    keys = [bench.key(request) for request in bench.server.requests]
    assert kept <= set(keys[:n_before])
    assert not kept & set(keys[n_before:])
    assert {request.content_hash for request in bench.server.requests} == undisturbed.asked
    assert bench.server.paid_again() <= 2 * AT_ONCE
    assert not list(bench.home.rglob("*.tmp"))


def undisturbed_in(bench: Benches) -> Undisturbed:
    with bench("calm") as calm:
        run_to_the_end(calm)
        asked = [request.content_hash for request in calm.server.requests]
        assert len(set(asked)) == len(asked)
        results = calm.results()
        assert not [table for table, rows in results.items() if not rows]
        return Undisturbed(results, set(asked))


@pytest.mark.parametrize("share", [pytest.param(None, marks=pytest.mark.nightly), 0.8])
def test_an_experiment_killed_while_it_asks_pays_again_only_what_was_under_way(
    bench: Benches, share: float | None
) -> None:
    undisturbed = undisturbed_in(bench)
    n_requests = len(undisturbed.asked)
    moments = range(1, n_requests + 1) if share is None else [round(n_requests * share)]
    for number in moments:
        with bench(f"killed {number}") as killed:
            assert killed_at_request(number, killed.server) == -signal.SIGKILL
            assert_goes_on(killed, undisturbed)


@pytest.mark.nightly
def test_an_experiment_killed_between_its_changes_of_the_disk_goes_on(
    bench: Benches,
) -> None:
    undisturbed = undisturbed_in(bench)
    step, is_killed = 0, True
    while is_killed:
        with bench(f"killed {step}") as killed:
            ended = killed_at(step, killed.home, *RUN)
            assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
            is_killed = ended.returncode != 0
            assert_goes_on(killed, undisturbed)
        step += 1
    assert step > 20
