"""Following a folder without Dagster."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.core.errors import GraphRAGError, StorageError
from graphrag_pipeline.core.settings import InputSettings, Settings
from graphrag_pipeline.index import Index, Update
from graphrag_pipeline.pipeline.updating import cut_batches
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.watching import watch

_PATIENCE = 120.0


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


class Following:
    """A folder that is followed in a thread."""

    def __init__(self, home: Path, folder: Path, settle_seconds: float) -> None:
        files = InputSettings(settle_seconds=settle_seconds, poll_seconds=1)
        self.index = Index(Settings(home=str(home), input=files))
        self.updates: list[Update] = []
        self.problems: list[str] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(folder,))

    def _run(self, folder: Path) -> None:
        watch(
            self.index,
            folder,
            stop=self.stop,
            on_update=self.updates.append,
            on_problem=self._keep,
        )

    def _keep(self, error: GraphRAGError) -> None:
        self.problems.append(str(error))

    def __enter__(self) -> "Following":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(_PATIENCE)
        assert not self.thread.is_alive()


def test_what_changes_is_indexed_and_a_folder_that_is_gone_removes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Ida Brandt sailed the Marigold to Bergen.")
    with Following(tmp_path / "home", folder, 0) as following:
        wait_until(lambda: len(following.updates) == 1)
        (folder / "b.txt").write_text("Ole Moen mended the Marigold in Bergen.")
        wait_until(lambda: len(following.updates) == 2)
        folder.rename(tmp_path / "away")
        wait_until(lambda: bool(following.problems))
        (tmp_path / "away").rename(folder)
        (folder / "c.txt").write_text("Bergen lies by the sea.")
        wait_until(lambda: len(following.updates) == 3)
    assert [update.changes["add"] for update in following.updates] == [1, 1, 1]
    assert all(update.is_new for update in following.updates)
    assert following.index.sql("SELECT count(*) FROM documents")[1] == [(3,)]
    assert len(following.problems) == 1
    assert "is not a folder" in following.problems[0]


def test_a_file_that_is_being_written_waits_until_it_is_quiet(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    quiet = folder / "quiet.txt"
    quiet.write_text("Ida Brandt sailed the Marigold to Bergen.")
    os.utime(quiet, (1, 1))
    (folder / "fresh.txt").write_text("Ole Moen mended the")
    with Following(tmp_path / "home", folder, 1e6) as following:
        wait_until(lambda: len(following.updates) == 1)
        os.utime(folder / "fresh.txt", (1, 1))
        wait_until(lambda: len(following.updates) == 2)
    assert [update.counts["documents"] for update in following.updates] == [1, 2]


def test_an_update_that_failed_is_tried_again_though_nothing_has_changed_since(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Ida Brandt sailed the Marigold to Bergen.")
    files = InputSettings(settle_seconds=0, poll_seconds=1)
    stop, tries = threading.Event(), list[Update]()

    def run(index: Index, folder: Path) -> Update:
        if cut_batches(Workspace(index.settings), folder):
            raise StorageError("no room")
        tries.append(index.update(folder))
        stop.set()
        return tries[-1]

    never = threading.Timer(_PATIENCE, stop.set)
    never.start()
    index, told = Index(Settings(home=str(tmp_path / "home"), input=files)), list[GraphRAGError]()
    watch(index, folder, stop=stop, on_update=lambda _: None, on_problem=told.append, run=run)
    never.cancel()
    assert [str(error) for error in told] == ["no room"]
    assert [update.counts["documents"] for update in tries] == [1]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_when_it_is_told_to(tmp_path: Path, ending: signal.Signals) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Ida Brandt sailed the Marigold to Bergen.")
    command = [sys.executable, "-m", "graphrag_pipeline.cli", "index", "docs", "--watch"]
    surroundings = {**os.environ, "GRAPHRAG_INPUT__SETTLE_SECONDS": "0", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=surroundings,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.send_signal(ending)
            _, errors = process.communicate(timeout=_PATIENCE)
        finally:
            process.kill()
    assert "1 file added: published " in first
    assert process.returncode == 130
    assert "stopped" in errors
    assert "Traceback" not in errors
