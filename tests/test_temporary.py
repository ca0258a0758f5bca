"""Temporary folders: whose they are, and that only what nobody owns is removed."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from llm_helpers import processes

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening import temporary
from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.core.hardening.temporary import sweep, sweep_home, temporary_folder


def own_and_wait(place: Path, told: Connection) -> None:
    with temporary_folder(place, "part") as folder:
        (folder / "half").write_text("half of it")
        told.send(str(folder))
        signal.pause()


def make_and_sweep(place: Path, times: int) -> None:
    """Work in folders, as another process does, and remove what looks left over in between."""
    for number in range(times):
        with temporary_folder(place, "part") as folder:
            (folder / "file").write_text(str(number))
            sweep(place)
            assert (folder / "file").read_text() == str(number)
        sweep(place)


def test_a_folder_is_there_until_its_end_and_leaves_nothing(tmp_path: Path) -> None:
    with temporary_folder(tmp_path, "part") as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        sweep_home(tmp_path.parent)
        assert (folder / "deep" / "er").is_dir()
        with temporary_folder(tmp_path, "part") as beside:
            assert beside != folder
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_owns_stays_and_what_a_killed_one_left_goes(tmp_path: Path) -> None:
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=own_and_wait, args=(tmp_path, theirs), daemon=True)
    process.start()
    assert ours.poll(60)
    folder = Path(ours.recv())
    try:
        sweep(tmp_path)
        assert (folder / "half").read_text() == "half of it"
    finally:
        process.kill()
        process.join(60)
    assert (folder / "half").exists()
    sweep(tmp_path, "another")
    assert folder.exists()
    sweep(tmp_path, "part")
    assert list(tmp_path.iterdir()) == []


def test_a_process_of_the_same_number_elsewhere_is_not_taken_for_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two containers that share a home both call themselves process 7."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    with temporary_folder(tmp_path, "part") as one, temporary_folder(tmp_path, "part") as other:
        assert one != other
        sweep(tmp_path)
        assert one.is_dir()
        assert other.is_dir()


def test_whose_making_was_killed_or_whose_removal_was_is_removed(tmp_path: Path) -> None:
    with temporary_folder(tmp_path, "part") as folder:
        made = folder.parent
    made.mkdir()
    sweep(tmp_path)
    assert not made.exists()
    made.mkdir()
    (made / temporary._OWNER).write_bytes(b"\0")
    (made / temporary._CONTENT).mkdir()
    (made / temporary._CONTENT / "rest").touch()
    sweep(tmp_path)
    assert not made.exists()


def test_what_is_written_in_one_that_was_removed_is_removed(tmp_path: Path) -> None:
    with temporary_folder(tmp_path, "part") as folder:
        pass
    folder.mkdir(parents=True)
    (folder / "late").touch()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_only_looks_like_one_stays(tmp_path: Path) -> None:
    mine = tmp_path / ".notes.0123abcd.tmp"
    mine.mkdir()
    (mine / "text").touch()
    (tmp_path / ".list.0123abcd.tmp").write_text("a file")
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        ".list.0123abcd.tmp",
        ".notes.0123abcd.tmp",
        "text",
    ]


def test_processes_that_make_and_sweep_at_once_never_take_a_folder_from_each_other(
    tmp_path: Path,
) -> None:
    workers = [
        processes.Process(target=make_and_sweep, args=(tmp_path, 300), daemon=True)
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_swept_before_it_is_owned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moments between making a folder, its lock, and taking that."""
    own, made = temporary._own, []

    def swept_first(owner: int) -> bool:
        if len(made) < 3:
            made.append(owner)
            sweep(tmp_path)
        return own(owner)

    monkeypatch.setattr(temporary, "_own", swept_first)
    with temporary_folder(tmp_path, "part") as folder:
        assert folder.is_dir()
        assert len(made) == 3
        assert len(list(tmp_path.iterdir())) == 1


def test_a_file_with_the_longest_name_there_can_be_is_written(tmp_path: Path) -> None:
    write_beside(tmp_path / ("é" * 127), b"whole")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"whole"]


def test_where_nothing_can_be_written_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write"):
        write_beside(tmp_path / "file" / "below", b"")
