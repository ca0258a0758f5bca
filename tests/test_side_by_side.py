"""Commands at the same time on one home: each comes out as if one had waited for the other."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from artefacts import made_once
from commands import ForkedPython
from dagster_helpers import Pipeline
from index_process import SMALL, faults, update
from llm_helpers import processes
from test_readers import COMPARED, content
from test_releases import KEEP, STORY, assert_whole, grow, leftovers

from conftest import Engine
from graphrag_pipeline.cli.commands import COMMANDS
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query import open_release
from graphrag_pipeline.releases.kept_releases import published_release, release_ids
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.releases.rollback import rollback

PATIENCE = 120
STOP = "stop"
pytestmark = pytest.mark.waits
Work = Callable[[Path, Callable[[Any], None]], None]


def run(work: Work, folder: Path, told: Connection) -> None:
    try:
        work(folder, told.send)
    except BaseException:
        told.send(traceback.format_exc())
        (folder / STOP).touch()
        raise


class Beside:
    """Processes that work in a folder at the same time, and what each of them told."""

    def __init__(self, folder: Path, *works: Work) -> None:
        self._running = []
        for work in works:
            ours, theirs = processes.Pipe(duplex=False)
            process = processes.Process(target=run, args=(work, folder, theirs), daemon=True)
            process.start()
            theirs.close()
            self._running.append((process, ours))

    def told(self) -> list[list[Any]]:
        """Wait until all have ended well; return what each told."""
        said = [list(_until_the_end(by)) for _, by in self._running]
        for process, _ in self._running:
            process.join(60)
        assert [process.exitcode for process, _ in self._running] == [0] * len(said), said
        return said


def _until_the_end(by: Connection) -> Iterator[Any]:
    try:
        while True:
            assert by.poll(PATIENCE), "nothing was told for two minutes"
            yield by.recv()
    except EOFError:
        return


def publish_often(folder: Path, tell: Callable[[Any], None]) -> None:
    engine = Engine(folder, KEEP)
    for number in range(int((folder / "times").read_text())):
        with engine.store.transaction() as con:
            con.execute(
                "INSERT INTO quarantine VALUES ('b', ?, 'unreadable')", [f"{os.getpid()}-{number}"]
            )
        tell(publish(engine.workspace).id)
    (folder / STOP).touch()


def go_back_often(folder: Path, tell: Callable[[Any], None]) -> None:
    engine = Engine(folder, KEEP)
    while not (folder / STOP).exists():
        try:
            done = rollback(engine.workspace)
            tell((done.before, done.now))
        except InputError as error:
            if "there is no release before" not in str(error):
                raise
            time.sleep(0.1)


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """A copy of a folder with three releases."""
    three = made_once("three", lambda made: grow(made, [{n: text} for n, text in STORY.items()]))
    return shutil.copytree(three, tmp_path / "index")


@pytest.mark.parametrize("times", [3, pytest.param(60, marks=pytest.mark.nightly)])
def test_going_back_while_runs_publish_is_done_before_or_after(indexed: Path, times: int) -> None:
    (indexed / "times").write_text(str(times))
    home = indexed / ".graphrag"
    first = published_release(home)
    published, *went_back = Beside(indexed, publish_often, go_back_often, go_back_often).told()
    changes = [change for each in went_back for change in each]
    assert len(set(published)) == times
    shown = {first, *published, *(now for _, now in changes)}
    assert {before for before, _ in changes} <= shown
    assert all(now < before for before, now in changes)
    assert leftovers(home) == []
    assert_whole(home, release_ids(home))
    last = publish(Engine(indexed, SMALL).workspace)
    assert published_release(home) == last.id or last.id in {now for _, now in changes}


def begun(*arguments: str) -> ForkedPython:
    """Start a command in this environment."""
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return ForkedPython(["-m", "graphrag_pipeline.cli", *arguments], text=True, **pipes)


def ended(processes: Sequence[ForkedPython]) -> list[tuple[int, str, str]]:
    """Wait for commands; return the exit code of each, and what it printed."""
    said = []
    for process in processes:
        try:
            out, err = process.communicate(timeout=10 * PATIENCE)
        finally:
            process.kill()
        said.append((process.returncode, out, err))
    return said


def test_three_that_index_at_once_where_nothing_was_leave_what_one_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(tmp_path, monkeypatch, made=False)
    monkeypatch.setenv("GRAPHRAG_EMBEDDINGS__DIMENSIONS", str(SMALL.embeddings.dimensions))
    running = []
    for name, text in STORY.items():
        pipeline.write({name: text})
        running.append(begun("index"))
    said = ended(running)
    assert not [err for code, _, err in said if code], "one of them failed"
    assert all("Traceback" not in err for _, _, err in said)
    fresh = Engine(tmp_path / "fresh", SMALL)
    shutil.copytree(pipeline.inbox, fresh.inbox, dirs_exist_ok=True)
    update(fresh)
    together = Engine(tmp_path, SMALL)
    together.store = pipeline.store
    left, right = content(together), content(fresh)
    assert {name for name in COMPARED if left[name] != right[name]} == set()
    assert not list(pipeline.home.rglob("*.tmp"))


EVALUATE = ("eval", "run", "--questions", "questions.jsonl", "--methods", "bm25,ppr")
EVERYTHING = (
    ("index",),
    ("rollback",),
    ("export", "graphml", "--force", "--output", "graph.graphml"),
    ("explore", "--output", "explore.html"),
    ("report", "--output", "report.html"),
    *([EVALUATE] * 2 if "eval" in COMMANDS.names() else ()),
    ("marts",),
    ("releases",),
    ("status",),
    ("diff",),
    ("sql", "SELECT count(*) FROM entities"),
    ("query", "Who built the Orlen Dam?", "--method", "bm25"),
    ("plan",),
    ("marts",),
    ("rollback",),
    ("index",),
)
"""Commands that are begun together."""
NOTHING_TO_GO_BACK_TO = ("there is no release before", "is the published one already")


@pytest.mark.nightly
def test_all_commands_at_once_come_out_as_one_after_the_other(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(indexed)
    home = indexed / ".graphrag"
    for name, value in {
        "GRAPHRAG_HOME": str(home),
        "GRAPHRAG_INPUT__FOLDER": str(indexed / "documents"),
        "DAGSTER_HOME": str(home / "dagster"),
        "GRAPHRAG_EMBEDDINGS__DIMENSIONS": str(SMALL.embeddings.dimensions),
    }.items():
        monkeypatch.setenv(name, value)
    (indexed / "questions.jsonl").write_text('{"question": "Who built the Orlen Dam?"}\n')
    engine = Engine(indexed, SMALL)
    for number in range(2):
        engine.write({f"notes {number}.md": f"Nadia Fenwright saw Lin Ruolan on day {number}."})
        running = [begun(*arguments) for arguments in EVERYTHING]
        for arguments, (code, out, err) in zip(EVERYTHING, ended(running), strict=True):
            said = (arguments, code, out, err)
            # dbt's adapter may warn of a column's origin with one; the marts are right.
            assert "Traceback" not in err or arguments == ("marts",), said
            may_be_late = arguments == ("rollback",) and code == 2
            assert code == 0 or (
                may_be_late and any(each in err for each in NOTHING_TO_GO_BACK_TO)
            ), said
        assert_whole(home, release_ids(home))
        assert not list(home.rglob("*.tmp"))
        assert not list(indexed.glob(".*.tmp"))
    published = ended([begun("sql", "--format", "csv", "SELECT count(*) FROM documents")])
    assert published[0][1].split()[-1] in {"3", "4", "5"}


@pytest.mark.nightly
def test_an_open_release_is_read_whole_while_twenty_are_published_and_old_ones_let_go(
    indexed: Path,
) -> None:
    engine = Engine(indexed, KEEP)
    home = engine.log.home
    with open_release(home, settings=SMALL) as release:
        first = release.facts.id
        (indexed / "times").write_text("20")
        publish_often(indexed, lambda _: None)
        assert first not in release_ids(home)
        assert release.facts.id == first
        assert faults(release) == []
    assert published_release(home) == release_ids(home)[0]
    assert leftovers(home) == []
