"""The server under load on loopback: questions a second and core, waiting, switches, memory.

    python -m benchmarks.serve [data_dir] [--home HOME]

A server process is asked the questions of the podcast corpus by a few clients. CPU is that of the
server alone, from /proc, so other work on the machine hardly disturbs it; seconds on the clock are
told beside it. ``--home`` names an index with two releases that are kept; without it one is built.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.index_speed import index_speed, podcast_files
from benchmarks.latency import DATA, podcast_questions
from graphrag_pipeline.releases.kept_releases import changing_releases, list_releases, put_back

METHODS = ("basic", "ppr", "local")
CLIENTS = 4
SWITCHES_UNDER_LOAD, SWITCHES = 6, 50
_SETTLING = 5
_TICKS = os.sysconf("SC_CLK_TCK")
_SHOWN_SECONDS = 30.0


@dataclass(frozen=True)
class Load:
    """What some questions took: milliseconds of the server's CPU for each, and of waiting."""

    n: int
    errors: int
    cpu: float
    seconds: float
    median: float
    p95: float

    @property
    def per_core(self) -> float:
        """Questions that one core answers in a second."""
        return 1000 / self.cpu


class ServerProcess:
    """`graphrag-pipeline serve` in a process of its own, from ``with`` to the end of its block.

    ``environment`` is added to that of this process.
    """

    def __init__(self, home: Path, *options: str, **environment: str) -> None:
        self._command = [
            *(sys.executable, "-W", "ignore", "-m", "graphrag_pipeline.cli"),
            *("serve", "--port", "0", *options),
        ]
        self._environment = {**os.environ, "GRAPHRAG_HOME": str(home), **environment}

    def __enter__(self) -> ServerProcess:
        self.process = subprocess.Popen(
            self._command, env=self._environment, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        lines = iter(self.process.stderr.readline, "")
        ports = (int(port) for line in lines for port in re.findall(r"127\.0\.0\.1:(\d+)", line))
        self.port = next(ports, 0)
        if not self.port:
            raise SystemExit("the server did not start: run graphrag-pipeline serve to see why")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate(timeout=60)

    def cpu(self) -> float:
        """Return the seconds of CPU that the process has taken since it began."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self) -> float:
        """Return the megabytes of memory of the process, without the files that it maps."""
        return int(re.findall(r"RssAnon:\s+(\d+) kB", self._proc("status"))[0]) / 1024

    def n_files(self) -> int:
        """Return how many files and connections the process has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def _proc(self, name: str) -> str:
        return Path(f"/proc/{self.process.pid}/{name}").read_text(encoding="utf-8")


class Client:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)

    def get(self, path: str) -> tuple[int, Any]:
        """Return status and body of an address."""
        return self._asked("GET", path)

    def post(self, path: str, body: object) -> tuple[int, Any]:
        """Send JSON to an address; return status and body."""
        sent = json.dumps(body).encode()
        return self._asked("POST", path, sent, {"Content-Type": "application/json"})

    def _asked(self, *given: Any) -> tuple[int, Any]:
        self._connection.request(*given)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())


def ready_cpu(home: Path) -> float:
    """Return the seconds of CPU from the start of a server until it says that it is ready."""
    with ServerProcess(home) as server:
        until(lambda: Client(server.port).get("/ready")[0] == 200)
        return server.cpu()


def load(
    server: ServerProcess, address: str, method: str, questions: Sequence[str], clients: int
) -> Load:
    """Ask each question once, by so many clients at a time."""

    def ask(part: Sequence[str]) -> list[tuple[bool, float]]:
        client, answers = Client(server.port), []
        for question in part:
            began = time.perf_counter()
            status, _ = client.post(address, {"question": question, "method": method})
            answers.append((status == 200, 1000 * (time.perf_counter() - began)))
        return answers

    parts = [questions[start::clients] for start in range(clients)]
    cpu, began = server.cpu(), time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        answers = list(itertools.chain(*pool.map(ask, parts)))
    seconds, cpu = time.perf_counter() - began, server.cpu() - cpu
    waits = sorted(wait for _, wait in answers)
    return Load(
        n=len(answers),
        errors=sum(not answered for answered, _ in answers),
        cpu=1000 * cpu / len(answers),
        seconds=seconds,
        median=statistics.median(waits),
        p95=waits[min(len(waits) - 1, int(0.95 * len(waits)))],
    )


@contextmanager
def asking(server: ServerProcess, questions: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Ask without a pause while a block runs, each method in turn; yield status and release."""
    ended = threading.Event()
    answers: list[tuple[int, str]] = []

    def ask(first: int) -> None:
        client = Client(server.port)
        for n in itertools.count(first):
            if ended.is_set():
                return
            body = {"question": questions[n % len(questions)], "method": METHODS[n % len(METHODS)]}
            status, answer = client.post("/v1/query", body)
            answers.append((status, answer.get("release", "")))

    with ThreadPoolExecutor(CLIENTS) as pool:
        running = [pool.submit(ask, 7 * n) for n in range(CLIENTS)]
        try:
            yield answers
        finally:
            ended.set()
    for each in running:
        each.result()


def switch(home: Path, server: ServerProcess, times: int) -> Iterator[str]:
    """Publish the kept releases in turn; yield each once the server answers from it."""
    releases = [release.id for release in list_releases(home)][:2]
    shown = shown_by(server)
    order = itertools.cycle(releases if releases[0] != shown else releases[::-1])
    for release in itertools.islice(order, times):
        with changing_releases(home):
            put_back(home, release)
        until(lambda wanted=release: shown_by(server) == wanted)
        yield release


def shown_by(server: ServerProcess) -> str:
    """Return the release that a server answers from."""
    # On a connection of its own: one that was idle for five seconds is closed.
    return Client(server.port).get("/ready")[1]["releases"]["default"]


def until(is_true: Callable[[], bool]) -> None:
    """Wait for something. Raises SystemExit where it does not come."""
    began = time.monotonic()
    while not is_true():
        if time.monotonic() - began > _SHOWN_SECONDS:
            raise SystemExit(f"the server did not get there in {_SHOWN_SECONDS:.0f} seconds")
        time.sleep(0.02)


def switched_under_load(
    home: Path, server: ServerProcess, questions: Sequence[str], times: int
) -> list[tuple[int, str]]:
    """Switch releases while clients ask without a pause; return status and release of each."""
    with asking(server, questions) as answers:
        for release in switch(home, server, times):
            n_before = len(answers)
            until(lambda start=n_before, shown=release: (200, shown) in answers[start:])
    return answers


def memory_of_switches(
    home: Path, server: ServerProcess, questions: Sequence[str], times: int
) -> list[float]:
    """Return the memory after each of some switches, having asked a little after it."""
    readings = []
    for _ in switch(home, server, times):
        client = Client(server.port)
        for method, question in zip(METHODS, questions, strict=False):
            client.post("/v1/query", {"question": question, "method": method})
        readings.append(server.memory())
    return readings


def built(data_dir: Path, place: Path) -> Path:
    """Index the podcast transcripts, all but one and then all; return the home."""
    files, home = podcast_files(data_dir, place / "all"), place / "home"
    last = files[-1].rename(place / files[-1].name)
    index_speed(place / "all", home)
    shutil.move(last, files[-1])
    index_speed(place / "all", home)
    return home


def measure(home: Path, questions: Sequence[str]) -> None:
    """Print every figure of a home that has two releases."""
    print(f"ready after {ready_cpu(home):.2f} s of CPU")
    with ServerProcess(home) as server:
        for method in METHODS:
            for address in ("/v1/retrieve", "/v1/query"):
                load(server, address, method, questions[:10], CLIENTS)
        print(
            f"{'':22}{'cpu ms':>8}{'a core':>8}{'a second':>10}{'median':>8}{'p95':>8}{'errors':>8}"
        )
        for method, address in itertools.product(METHODS, ("/v1/retrieve", "/v1/query")):
            took = load(server, address, method, questions, CLIENTS)
            print(
                f"{method:8}{address:14}{took.cpu:8.1f}{took.per_core:8.0f}"
                f"{took.n / took.seconds:10.0f}{took.median:8.1f}{took.p95:8.1f}{took.errors:8}"
            )
        answers = switched_under_load(home, server, questions, SWITCHES_UNDER_LOAD)
        errors = sum(status != 200 for status, _ in answers)
        seen = {release for _, release in answers if release}
        print(
            f"{SWITCHES_UNDER_LOAD} switches under load: {len(answers):,} questions, {errors} "
            f"errors, answers from {len(seen)} releases"
        )
        readings = memory_of_switches(home, server, questions, _SETTLING + SWITCHES)[_SETTLING:]
        before, after = statistics.median(readings[:9]), statistics.median(readings[-9:])
        print(
            f"memory {before:,.0f} MB, after {SWITCHES} switches {after:,.0f} MB "
            f"({after / before - 1:+.1%}; medians of nine)"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of one home, or of one that is built."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data_dir", nargs="?", type=Path, default=DATA)
    parser.add_argument("--home", type=Path, help="measure this index, and build none")
    options = parser.parse_args(arguments)
    questions = podcast_questions(options.data_dir)
    if options.home:
        measure(options.home, questions)
        return
    with tempfile.TemporaryDirectory() as place:
        measure(built(options.data_dir, Path(place)), questions)


if __name__ == "__main__":
    main()
