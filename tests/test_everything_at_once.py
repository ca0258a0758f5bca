"""Ten minutes of everything at once on one index, and an oracle that knows what must hold.

Processes serve, index, ask, back up, roll back, purge, forget, check and build marts. An answer is
of one release, none is a server's error, every archive restores, and what is purged is nowhere.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from commands import ForkedPython, run_python
from traces import traces_of

SECONDS = int(os.environ.get("SECONDS_OF_EVERYTHING", "600"))
PAUSE = 2.0
"""Seconds between two commands of a kind, but for changes and questions."""
ATTEMPTS = 10
MAY_REFUSE = {"rollback": {2, 4}, "backup": {4}, "forget": {2, 4}, "purge": {2, 4}, "marts": {4}}
"""The codes of exit besides 0 that a command may have while others are at work."""
PAIR = "The lamp of Brannock burns in epoch{epoch}. Mara Ilvane of Orlen lit the lamp of Brannock."
SECRET = "{word} Oskar Kovarna met {word} Alice Smith in Brannock. Alice Smith paid Oskar Kovarna."


class World:
    """One index, what was done to it, and what was seen that must not be."""

    def __init__(self, folder: Path) -> None:
        self.documents, self.home = folder / "documents", folder / "home"
        self.scratch, self.url = folder / "scratch", ""
        for made in (self.documents, self.scratch):
            made.mkdir()
        self.until = time.monotonic() + SECONDS
        self.purged: list[str] = []
        self.wrong: list[str] = []
        self.outcomes: Counter[tuple[str, int]] = Counter()
        self.epoch_of: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a command on this index."""
        return {
            **{name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"},
            "GRAPHRAG_HOME": str(self.home),
            "GRAPHRAG_RELEASES__KEEP": "4",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command; note its exit code, and what it said where that must not be."""
        process = run_python(
            "-m",
            "graphrag_pipeline.cli",
            *arguments,
            env=self.environment,
            cwd=self.documents,
            patience=1200,
        )
        name, code = arguments[0], process.returncode
        with self._lock:
            self.outcomes[name, code] += 1
            # dbt tells in its own way of files that a purge takes away while it counts rows.
            is_dbt = (name, code) == ("marts", 4)
            is_raw = "Traceback" in process.stderr and not is_dbt
            if code not in {0, *MAY_REFUSE.get(name, ())} or is_raw:
                self.wrong.append(
                    f"{' '.join(arguments)}: {code} {process.stdout[-800:]} {process.stderr[-800:]}"
                )
        return process

    def releases(self) -> list[str]:
        """Return the ids of the releases that are kept, the newest first."""
        return [each["id"] for each in json.loads(self.run("releases", "--json").stdout)]

    def see(self, release: str, text: str) -> None:
        """Note an answer: its passages are of one epoch, which is that of its release."""
        epochs = set(re.findall(r"epoch\d+", text))
        with self._lock:
            self.outcomes["answers", 200] += 1
            of_release = self.epoch_of.setdefault(release, epochs)
            if len(epochs) != 1 or epochs != of_release:
                self.wrong.append(f"release {release} of {of_release} answered {epochs}")
            if words := [word for word in self.purged if word in text]:
                self.wrong.append(f"an answer shows {words}, which are purged")

    def write_pair(self, epoch: int) -> None:
        """Write two documents that are always changed together."""
        for name in ("common.txt", "mirror.txt"):
            (self.documents / name).write_text(f"{name}. {PAIR.format(epoch=epoch)}")


def change(world: World) -> Iterator[object]:
    for epoch in range(1, 10**6):
        word, secret = f"zqv{epoch}purged", world.documents / f"secret{epoch}.txt"
        secret.write_text(SECRET.format(word=word))
        world.write_pair(epoch)
        yield world.run("index", ".", "--yes")
        secret.unlink()
        if epoch % 2:
            yield world.run("index", ".", "--yes", "--remove-all")
            removal = ["purge", "--yes"]
        else:
            removal = ["forget", secret.name, "--yes"]
        for _ in range(ATTEMPTS):
            removed = world.run(*removal)
            if removed.returncode != 2:
                break
            # Readers see an older release, and may need it: they are to see the newest first.
            world.run("rollback", world.releases()[0])
        if removed.returncode == 0:
            world.purged.append(word)
            counted = world.run(
                "sql", f"SELECT count(*) FROM documents WHERE text LIKE '%{word}%'", "--format=csv"
            )
            if counted.stdout.split()[-1:] != ["0"]:
                world.wrong.append(f"{word} can be read after it was purged: {counted.stdout}")
        yield removed


def go_back(world: World) -> Iterator[object]:
    chance = random.Random(34)
    while True:
        releases = world.releases()
        yield world.run("rollback", chance.choice(releases))
        yield world.run("rollback", releases[0])


def back_up(world: World) -> Iterator[object]:
    archive, restored = world.scratch / "archive.tar.zst", world.scratch / "restored"
    while True:
        if world.run("backup", str(archive)).returncode == 0:
            world.run("restore", str(archive), "--home", str(restored))
            shutil.rmtree(restored, ignore_errors=True)
        archive.unlink(missing_ok=True)
        yield archive


def check(world: World) -> Iterator[object]:
    while True:
        yield world.run("check")


def build_marts(world: World) -> Iterator[object]:
    while True:
        yield world.run("marts")
        yield world.run("query", "Who lit the lamp of Brannock?", "--method", "bm25", "--json")


def ask(world: World) -> Iterator[object]:
    body = {"question": "Who lit the lamp of Brannock?", "method": "bm25"}
    while True:
        time.sleep(0.1)
        reply = requests.post(f"{world.url}/v1/retrieve", json=body, timeout=60)
        if reply.status_code != 200:
            world.wrong.append(f"{reply.status_code} {reply.text[:300]}")
        else:
            world.see(reply.json()["release"], reply.text)
        yield reply


ACTIVITIES = (change, go_back, back_up, check, build_marts, ask)


@contextmanager
def served(world: World) -> Iterator[str]:
    process = ForkedPython(
        ["-m", "graphrag_pipeline.cli", "serve", "--port", "0"],
        env=world.environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        yield re.findall(r"http://127\.0\.0\.1:\d+", process.stderr.readline())[0]
        assert process.poll() is None, "the server ended by itself"
    finally:
        process.kill()
        process.wait()


def go_on(world: World, activity: Callable[[World], Iterator[object]]) -> None:
    try:
        for _ in activity(world):
            if time.monotonic() > world.until:
                return
            if activity not in (change, ask):
                time.sleep(PAUSE)
    except BaseException as error:
        world.wrong.append(f"{activity.__name__} ended: {error!r}")


@pytest.mark.nightly
def test_nothing_is_wrong_while_everything_is_done_at_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write_pair(0)
    assert world.run("index", ".").returncode == 0
    with served(world) as url:
        world.url = url
        threads = [threading.Thread(target=go_on, args=(world, each)) for each in ACTIVITIES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(dict(world.outcomes), f"{len(world.epoch_of)} releases, {len(world.purged)} purged")
    assert not world.wrong, "\n".join(world.wrong)
    assert world.run("check").returncode == 0
    assert {w: p for w, p in traces_of(world.home, world.purged, world.scratch).items() if p} == {}
    assert world.purged
