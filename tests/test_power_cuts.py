"""A power cut takes back no release, and leaves none by half."""

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from power import Disk

from graphrag_pipeline.core.hardening import files
from graphrag_pipeline.core.hardening.files import make_folder, write_beside
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.exchange.exporting import export_release
from graphrag_pipeline.index import Index
from graphrag_pipeline.releases.kept_releases import published_release
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.vector_store import VectorSnapshot
from graphrag_pipeline.structures.registry import known_vector_tables
from graphrag_pipeline.structures.vector_tables import count_of

FIRST = {"a.txt": "Ada Lovelace met Charles Babbage in London.", "b.txt": "Babbage built engines."}
SECOND = {"c.txt": "Mary Somerville taught Ada Lovelace in London."}

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    write(folder, FIRST)
    return folder


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(tmp_path, monkeypatch)
    yield disk
    disk.close()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def whole_release(home: Path) -> str | None:
    """Return the published release, after its rows and vectors were found to be whole."""
    release = published_release(home)
    if not Home(home).published.exists():
        return None
    with connect_published(Home(home).published) as con:
        rows = con.execute("SELECT vector_versions FROM releases ORDER BY id DESC LIMIT 1")
        [(versions,)] = rows.fetchall()
        vectors = VectorSnapshot(Home(home).vectors, json.loads(versions))
        for name, table in known_vector_tables().items():
            if name in vectors.versions:
                ids = [row[0] for row in con.execute(f"SELECT id FROM {table.name}").fetchall()]
                assert count_of(con, table) == vectors.count(name)
                assert vectors.matrix(name)[0] == sorted(ids)
                assert vectors.fulltext(name, "Ada Lovelace Babbage", 5).num_rows > 0
    return release


@on_linux
def test_what_is_renamed_is_synced_before_and_its_folder_after(documents, tmp_path, disk):
    index = Index(tmp_path / "home", Settings())
    unsynced: list[str] = []

    def look() -> None:
        if Home(index.home).vectors.is_dir() and list(index.home.glob(".published*.tmp")):
            unsynced.extend(disk.unsynced(Home(index.home).vectors))

    disk.before_step = look
    index.update(documents)
    # A release gets its name when its vectors are on disk.
    assert unsynced == []
    disk.before_step = lambda: None
    write(documents, SECOND)
    index.update(documents)
    index.rollback()
    export_release(index.home, "json", tmp_path / "exported")
    assert {rename.target.name for rename in disk.renames} >= {"published.duckdb", "seen.json"}
    for rename in disk.renames:
        if ".tmp/" in str(rename.target):  # gets its name, and is synced, later
            continue
        assert rename.was_synced, rename.target
        assert rename.target.parent in disk.synced_folders[rename.n_syncs :], rename.target


@on_linux
@pytest.mark.slow
def test_a_power_cut_leaves_the_old_release_or_the_new_one_whole(documents, tmp_path, disk):
    index = Index(tmp_path / "home", Settings())
    before = index.update(documents).release
    write(documents, SECOND)
    states: list[Path] = []
    steps: list[int] = []

    def cut() -> None:
        steps.append(len(steps))
        if len(steps) % 12:
            return
        for leave in (disk.leave_synced, disk.leave_names):
            state = tmp_path.parent / f"{tmp_path.name}-cuts" / str(len(states))
            leave(state)
            states.append(state / "home")

    disk.before_step = cut
    update = index.update(documents)
    after, counts = update.release, update.counts
    disk.before_step = lambda: None
    steps[:] = range(11)
    cut()
    left = [whole_release(state) for state in states]
    assert set(left) == {before, after}
    assert left[-2:] == [after, after]
    for some in (left[0::2], left[1::2]):
        assert some == sorted(some)
    for state in (states[1], states[-3]):
        shutil.copytree(documents, state.parent / "documents", dirs_exist_ok=True)
        index = Index(state, Settings())
        assert index.update(state.parent / "documents").counts == counts
        assert whole_release(state)


@on_linux
def test_folders_that_are_made_are_synced_in_those_above(tmp_path, disk):
    make_folder(tmp_path / "a" / "b")
    write_beside(tmp_path / "a" / "b" / "c" / "file", b"content")
    for place in ("a", "a/b", "a/b/c", "a/b/c/file"):
        assert disk.has_name(tmp_path / place)


@on_linux
@pytest.mark.parametrize("knows_it", [True, False])
def test_on_a_mac_the_disk_is_asked_to_empty_its_own_cache(tmp_path, monkeypatch, disk, knows_it):
    asked = []

    def ask(handle: int, command: int) -> None:
        asked.append((Path(os.readlink(f"/proc/self/fd/{handle}")), command))
        if not knows_it:
            raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(files.fcntl, "fcntl", ask)
    monkeypatch.setattr(files, "_FULL_SYNC", 51)
    (tmp_path / "beside").write_bytes(b"content")
    files.replace_durably(tmp_path / "beside", tmp_path / "file")
    assert asked == [(tmp_path / "beside", 51), (tmp_path, 51)]
    assert disk.is_synced(tmp_path / "file") is not knows_it
