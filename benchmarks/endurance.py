"""One process of the server that answers long: many streams at once, many releases in turn.

    python -m benchmarks.endurance [--home HOME] [--streams 1000] [--releases 50]

Each client asks a question of its own, over a connection of its own. A played model says the first
words of each answer, and says no more before all are open; then it says the rest. ``--home`` names
an index; without it one is made. After that, small releases are published under a server, each with
a text of its own. CPU and memory are those of the server alone, from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model_server import Fault, Messages, ModelServer
from query_fixture import DOCUMENTS, published

from benchmarks.serve import METHODS, Client, ServerProcess, shown_by, until
from graphrag_pipeline.core.hardening.open_files import allow_open_files
from graphrag_pipeline.releases.kept_releases import (
    changing_releases,
    forget_files,
    keep_published,
    release_ids,
)

STREAMS, RELEASES = 1000, 50
OPEN_SECONDS = 20.0
_WORDS = 12
_PATIENCE = 600.0
_SETTLING = 5
_KEPT = 5
_ASKED = re.compile(r"Number (\d+)")
_QUESTION = "Who worked as a clerk for Scrooge? Number {number}"


Event = tuple[str, Any]


@dataclass
class Stream:
    """The events of one answer, by name, in the order in which they came.

    ``begun`` is set by its first words, or by its end where there are none.
    """

    events: list[Event] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, port: int, number: int) -> None:
        """Ask the question of a number, and take what comes of it."""
        try:
            async for event in _events(port, _QUESTION.format(number=number)):
                self.events.append(event)
                if event[0] == "text":
                    self.begun.set()
        finally:
            self.begun.set()

    @property
    def names(self) -> list[str]:
        """The names of the events but for steps, each once for those of a name in a row."""
        names = [name for name, _ in self.events if name != "step"]
        return [name for place, name in enumerate(names) if names[place - 1 : place] != [name]]

    @property
    def text(self) -> str:
        """The pieces of the answer, put together."""
        return "".join(value["text"] for name, value in self.events if name == "text")


@dataclass(frozen=True)
class Streamed:
    """What some streams took of the server: seconds of CPU, megabytes, and what each was given.

    ``opening`` is the CPU until all had their first words, ``waiting`` that while
    nothing was said, ``rest`` that of the rest of all. Memory is before, with all open, and
    after.
    """

    streams: Sequence[Stream]
    most_open: int
    opening: float
    waiting: float
    rest: float
    seconds: float
    memory: tuple[float, float, float]

    @property
    def n_whole(self) -> int:
        """How many had all of their own answer, and nothing else."""
        return sum(map(is_whole, range(len(self.streams)), self.streams))


class WaitingModel(ModelServer):
    """A model that says the first words of each answer, and the rest when it may go on."""

    def __init__(self) -> None:
        super().__init__(_answer)
        self._may_go_on = asyncio.Event()

    async def pause(self, fault: Fault) -> None:
        """Wait until it may go on."""
        await self._may_go_on.wait()

    def go_on(self) -> None:
        """Say the rest of every answer."""
        self._loop.call_soon_threadsafe(self._may_go_on.set)


def is_whole(number: int, stream: Stream) -> bool:
    """Return whether a stream has the answer of its number from its first word to its last."""
    if stream.names != ["text", "citations", "done"]:
        return False
    done = dict(stream.events)["done"]
    return stream.text == done["text"] == _words(number) and bool(done["citations"])


def streamed(home: Path, n: int = STREAMS, open_seconds: float = OPEN_SECONDS) -> Streamed:
    """Open so many streams, let them be for some seconds, read them to their ends."""
    allow_open_files()
    with WaitingModel() as model, _serving(home, model, n) as server:
        Client(server.port).post("/v1/retrieve", {"question": _QUESTION, "method": "bm25"})
        return asyncio.run(_streamed(server, model, n, open_seconds))


@contextmanager
def _serving(home: Path, model: ModelServer, n: int) -> Iterator[ServerProcess]:
    values = {
        "GRAPHRAG_QUERY__ANSWERS": "llm",
        "GRAPHRAG_LLM__BASE_URL": model.base_url,
        "GRAPHRAG_LLM__CONCURRENCY": n,
        "GRAPHRAG_LLM__TIMEOUT_SECONDS": _PATIENCE,
        "GRAPHRAG_SERVER__WAITING": n,
        "GRAPHRAG_SERVER__TIMEOUT_SECONDS": _PATIENCE,
        "OPENAI_API_KEY": "played",
    }
    with ServerProcess(home, **{name: str(value) for name, value in values.items()}) as server:
        until(lambda: Client(server.port).get("/ready")[0] == 200)
        yield server


async def _streamed(
    server: ServerProcess, model: WaitingModel, n: int, open_seconds: float
) -> Streamed:
    streams = [Stream() for _ in range(n)]
    before, cpu, began = server.memory(), [server.cpu()], time.perf_counter()
    readers = [
        asyncio.ensure_future(stream.read(server.port, number))
        for number, stream in enumerate(streams)
    ]
    async with asyncio.timeout(_PATIENCE):
        await asyncio.gather(*(stream.begun.wait() for stream in streams))
        cpu.append(server.cpu())
        await asyncio.sleep(open_seconds)
        cpu.append(server.cpu())
        memory, most_open = server.memory(), model.in_flight
        model.go_on()
        await asyncio.gather(*readers)
    cpu.append(server.cpu())
    opening, waiting, rest = (after - start for start, after in itertools.pairwise(cpu))
    return Streamed(
        streams=streams,
        most_open=most_open,
        opening=opening,
        waiting=waiting,
        rest=rest,
        seconds=time.perf_counter() - began,
        memory=(before, memory, server.memory()),
    )


async def _events(port: int, question: str) -> AsyncIterator[Event]:
    """Yield the events of a question by name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    body = json.dumps({"question": question, "method": "bm25"}).encode()
    writer.write(
        b"POST /v1/query/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)
    )
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        yield "error", (await reader.read()).decode()
        return
    # In chunks, of which each is an event, or a line that says that it goes on.
    while size := int(await reader.readline(), 16):
        name, _, data = (await reader.readexactly(size + 2)).strip().partition(b"\ndata: ")
        if data:
            yield name.decode().removeprefix("event: "), json.loads(data)
    writer.close()


def _answer(messages: Messages) -> str:
    """Return what the model says to a question: words that have its number."""
    asked = _ASKED.findall("\n".join(str(message["content"]) for message in messages))
    return _words(int(asked[-1]))


def _words(number: int) -> str:
    words = " ".join(f"{word}-of-{number}" for word in range(_WORDS))
    return f"{words} [Data: Sources (1)]."


@dataclass(frozen=True)
class Held:
    """What a server holds after a release: megabytes, open files, and the answer's release."""

    memory: float
    n_files: int
    release: str


def released(home: Path, n: int = RELEASES) -> list[Held]:
    """Publish so many small releases under a server, after a few; return what it holds after each.

    Each has a text of its own; the last five are kept.
    """
    home.mkdir(parents=True, exist_ok=True)
    _publish(home, 0)
    held: list[Held] = []
    with ServerProcess(home) as server:
        for number in range(1, _SETTLING + n + 1):
            release = _publish(home, number)
            until(lambda wanted=release: shown_by(server) == wanted)
            held.append(_asked(server, number, release))
    return held[_SETTLING:]


def _publish(home: Path, number: int) -> str:
    release = f"r{number:04}"
    note = f"Note {number}. Bob Cratchit met Orsolya Venn in London."
    with changing_releases(home):
        published(home, release, documents={**DOCUMENTS, f"Note {number}": note})
        keep_published(home)
        forget_files(home, release_ids(home)[_KEPT:])
    (home / f"index-{release}.duckdb").unlink()
    return release


def _asked(server: ServerProcess, number: int, release: str) -> Held:
    """Ask by each method; return what the server holds then."""
    client = Client(server.port)
    for method in METHODS:
        question = {"question": f"Who met Orsolya Venn? Note {number}", "method": method}
        status, answer = client.post("/v1/query", question)
        if (status, answer.get("release")) != (200, release):
            raise SystemExit(f"{method} was answered by {status}, not from {release}: {answer}")
    return Held(server.memory(), server.n_files(), release)


def measure(home: Path, n: int = STREAMS) -> None:
    """Print what many streams take of an index."""
    took = streamed(home, n)
    before, during, after = took.memory
    print(
        f"{n:,} streams: {took.most_open:,} open at once, {took.n_whole:,} had all their events, "
        f"in {took.seconds:.0f} s"
    )
    print(
        f"CPU {1000 * took.opening / n:.1f} ms a stream until its first words, "
        f"{took.waiting:.2f} s while all were open for {OPEN_SECONDS:.0f} s, "
        f"{1000 * took.rest / n:.1f} ms a stream for the rest"
    )
    print(
        f"memory {before:,.0f} MB before, {during:,.0f} MB while all were open "
        f"({1024 * (during - before) / n:.0f} KB a stream), {after:,.0f} MB after"
    )


def measure_releases(home: Path, n: int = RELEASES) -> None:
    """Print what a server holds after many releases."""
    held = released(home, n)
    first, last = (statistics.median(each.memory for each in part) for part in ends(held))
    print(
        f"{len({each.release for each in held})} releases: memory {first:,.0f} MB, then "
        f"{last:,.0f} MB ({last / first - 1:+.1%}; medians of nine), open files "
        f"{held[0].n_files}, then {held[-1].n_files}"
    )


def ends(held: Sequence[Held]) -> tuple[Sequence[Held], Sequence[Held]]:
    """Return the first and the last of what was held, nine of each."""
    return held[:9], held[-9:]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of one home, or of a small one that is made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, help="measure this index, and make none")
    parser.add_argument("--streams", type=int, default=STREAMS, help="so many at once")
    parser.add_argument("--releases", type=int, default=RELEASES, help="so many in turn")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        os.environ.setdefault("TESTS_HOME", place)
        measure(options.home or published(Path(place, "streams")), options.streams)
        measure_releases(Path(place, "releases"), options.releases)


if __name__ == "__main__":
    main()
