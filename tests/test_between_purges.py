"""While another process purges, what looks at the whole index waits for its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_check import ready

from graphrag_pipeline.core.errors import BusyError
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.marts.build import Build, building
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.backups import back_up, restore
from graphrag_pipeline.upkeep.checking import check
from graphrag_pipeline.upkeep.leftovers import drop_leftovers

pytestmark = pytest.mark.usefixtures("plain_stores")
TIME_TO_GO_WRONG = 0.5


@pytest.fixture
def index(tmp_path: Path) -> Workspace:
    return ready(tmp_path / "index")


@contextmanager
def purging(index: Workspace) -> Iterator[None]:
    """Let another process seem to be at work on a purge."""
    paths = index.paths
    with locked(paths.run_lock):
        # As a process of another container may be called.
        paths.run_process.write_text(f"{os.getpid()}\n")
        paths.purge_mark.touch()
        yield
        paths.purge_mark.unlink()
        paths.run_process.unlink()


def begun(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    outcome: list[object] = []
    thread = threading.Thread(target=lambda: outcome.append(work()), daemon=True)
    thread.start()
    thread.join(TIME_TO_GO_WRONG)
    return thread, outcome


def test_a_backup_holds_no_half_of_a_purge(index: Workspace, tmp_path: Path) -> None:
    archive = tmp_path / "index.tar.zst"
    with purging(index):
        thread, outcome = begun(lambda: back_up(index, archive))
        assert not outcome
        assert not archive.exists()
    thread.join()
    restored = restore(archive, tmp_path / "restored").home
    assert not Home(restored).purge_mark.exists()


def test_a_check_takes_no_half_of_a_purge_for_a_fault(index: Workspace, tmp_path: Path) -> None:
    manifest = min(index.batches.folder.glob("*.json"))
    with purging(index):
        manifest.rename(tmp_path / manifest.name)
        thread, outcome = begun(lambda: check(index).problems)
        assert not outcome
        (tmp_path / manifest.name).rename(manifest)
    thread.join()
    assert outcome == [()]


@pytest.mark.parametrize("go_on", [Build.put_in_place, lambda build: build.target.mkdir()])
def test_marts_whose_release_was_purged_say_so(
    index: Workspace, go_on: Callable[[Build], object]
) -> None:
    def build_beside_a_purge() -> None:
        with building(index.home) as build:
            drop_leftovers(index)
            go_on(build)

    with pytest.raises(BusyError, match="a purge has removed what the marts"):
        build_beside_a_purge()
