"""Readers of the published index never wait and never see half of a release, whatever dies."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from index_process import (
    SMALL,
    STAGES,
    STOP,
    faults,
    read_and_tell,
    read_once,
    update,
    update_and_tell,
)
from llm_helpers import processes

from conftest import Engine
from graphrag_pipeline.query import open_release
from graphrag_pipeline.structures.registry import ask_for_clustering

CORPUS = Path(__file__).parents[1] / "examples" / "corpus"
SEED = int(os.environ.get("KILL_SEED", "20261121"))
COMPARED = {
    "documents": "EXCLUDE (human_readable_id, batch)",
    "chunks": "EXCLUDE (human_readable_id, batch)",
    "extractions": "EXCLUDE (batch)",
    "entity_mentions": "EXCLUDE (batch)",
    "relationship_mentions": "EXCLUDE (batch)",
    "entities": "EXCLUDE (human_readable_id)",
    "relationships": "EXCLUDE (human_readable_id)",
    "entity_chunks": "",
    "relationship_chunks": "",
    "communities": "EXCLUDE (human_readable_id)",
    "community_members": "",
    "community_reports": "EXCLUDE (id, context_hash)",
}

pytestmark = pytest.mark.waits


@pytest.fixture(scope="module")
def texts() -> list[Path]:
    """Documents of the sample corpus that tell of the same people and places."""
    return sorted(CORPUS.rglob("*.md"))[:6]


def put(engine: Engine, files: list[Path]) -> None:
    """Put the beginnings of files into an inbox."""
    engine.write({file.name: file.read_text()[:1500] for file in files})


def start(work: Callable[..., None], folder: Path) -> tuple[BaseProcess, Connection]:
    """Start a process that works in a folder; return it, and where it tells what it did."""
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=work, args=(folder, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def told(by: Connection) -> Iterator[Any]:
    """Yield what a process tells until it has ended."""
    with contextlib.suppress(EOFError, ConnectionResetError):
        while True:
            assert by.poll(300), "nothing was told for five minutes"
            yield by.recv()


def content(engine: Engine) -> dict[str, list[tuple]]:
    """The rows of the tables, a community being named by its members: ids tell of its past."""
    names = dict(
        engine.rows(
            """SELECT community_id, string_agg(DISTINCT entity_id, ' ' ORDER BY entity_id)
               || min(level) FROM community_members GROUP BY community_id"""
        )
    )
    return {
        table: sorted(
            (
                tuple(names.get(value, value) if isinstance(value, str) else value for value in row)
                for row in engine.rows(f"SELECT * {columns} FROM {table}")
            ),
            key=str,
        )
        for table, columns in COMPARED.items()
    }


def test_readers_see_whole_releases_while_runs_publish_and_an_open_one_outlives_them(
    tmp_path: Path, texts: list[Path]
) -> None:
    engine = Engine(tmp_path, SMALL)
    put(engine, texts[:4])
    published = [update(engine)]
    reader, by = start(read_and_tell, tmp_path)
    seen = [next(told(by))]
    with open_release(engine.log.home, settings=SMALL) as release:
        for file in texts[4:6]:
            put(engine, [file])
            published.append(update(engine))
        assert len(set(published)) == 3
        assert release.facts.id == published[0]
        assert faults(release) == []
    (tmp_path / STOP).touch()
    seen += told(by)
    reader.join(60)
    assert reader.exitcode == 0
    assert [look["faults"] for look in seen] == [[]] * len(seen)
    assert {look["release"] for look in seen} <= set(published)
    assert len({look["release"] for look in seen}) >= 2
    assert published[-1] in {look["release"] for look in seen}


@pytest.mark.slow
@pytest.mark.parametrize(
    "killed", [STAGES[1::6], pytest.param(STAGES * 2, marks=pytest.mark.nightly)], ids=len
)
def test_a_run_killed_anywhere_leaves_the_release_and_is_taken_up_by_the_next(
    tmp_path: Path, texts: list[Path], killed: tuple[str, ...]
) -> None:
    print(f"KILL_SEED={SEED}")
    dice = random.Random(SEED)
    engine = Engine(tmp_path / "killed", SMALL)
    put(engine, texts[:3])
    update(engine)
    stages = [*killed]
    dice.shuffle(stages)
    for number, stage in enumerate(stages):
        (engine.inbox / "notes.txt").write_text(f"Nadia Fenwright saw Lin Ruolan on day {number}.")
        if number < 3:
            put(engine, [texts[3 + number]])
        allowed = {release_of(engine)}
        allowed |= kill_in(stage, tmp_path / "killed", dice.uniform(0, 0.15))
        look = read_once(engine.log.home, SMALL)
        assert look["faults"] == [], f"after a kill in {stage}"
        assert look["release"] in allowed or stage == "publish", f"after a kill in {stage}"
    ask_for_clustering(engine.store)
    update(engine)
    undisturbed = Engine(tmp_path / "undisturbed", SMALL)
    shutil.copytree(engine.inbox, undisturbed.inbox, dirs_exist_ok=True)
    update(undisturbed)
    left, right = content(engine), content(undisturbed)
    assert {name for name in COMPARED if left[name] != right[name]} == set()
    assert read_once(engine.log.home, SMALL)["faults"] == []
    staged = engine.rows("SELECT (SELECT count(*) FROM staging.documents) FROM meta LIMIT 1")
    assert staged == [(0,)]


def release_of(engine: Engine) -> str:
    with open_release(engine.log.home, settings=SMALL) as release:
        return release.facts.id


def kill_in(stage: str, folder: Path, seconds: float) -> set[str]:
    """Kill a run some time after it has begun a stage; return the release it made, if any."""
    run, by = start(update_and_tell, folder)
    for what in told(by):
        if what == ("stage", stage):
            break
    time.sleep(seconds)
    run.kill()
    made = {name for what, name in told(by) if what == "release"}
    run.join(60)
    assert run.exitcode in (-signal.SIGKILL, 0)
    print(f"killed {seconds:.3f} s into {stage}" + (" (it had ended)" if made else ""))
    return made
