"""Hashes of the files of vectors: written once, kept for as long as the table is the same one."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.store import file_sums
from graphrag_pipeline.store.file_sums import changed_files, record_sums, sums_file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    put(tmp_path, "vectors/chunks.lance/data/one.lance", b"one")
    put(tmp_path, "vectors/chunks.lance/_versions/1.manifest", b"first")
    put(tmp_path, "vectors/chunks.lance/_versions/latest_version_hint.json", b"1")
    record_sums(tmp_path)
    return tmp_path


def put(home: Path, name: str, data: bytes) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_a_changed_file_is_named_and_a_hint_that_moves_on_is_none(home):
    put(home, "vectors/chunks.lance/_versions/latest_version_hint.json", b"2")
    assert changed_files(home) == []
    put(home, "vectors/chunks.lance/data/one.lance", b"onf")
    assert changed_files(home) == ["vectors/chunks.lance/data/one.lance"]
    record_sums(home)
    assert changed_files(home) == ["vectors/chunks.lance/data/one.lance"]


def test_a_file_that_the_disk_does_not_give_is_named(home, monkeypatch):
    opened = Path.open

    def failing(path: Path, *given: Any, **more: Any) -> Any:
        if path.name == "one.lance":
            raise OSError(errno.EIO, "Input/output error")
        return opened(path, *given, **more)

    monkeypatch.setattr(Path, "open", failing)
    assert changed_files(home) == ["vectors/chunks.lance/data/one.lance"]


def test_only_new_files_are_read_at_the_next_publish(home, monkeypatch):
    read: list[str] = []
    hashed = file_sums._sum_of
    monkeypatch.setattr(file_sums, "_sum_of", lambda path: read.append(path.name) or hashed(path))
    put(home, "vectors/chunks.lance/data/two.lance", b"two")
    record_sums(home)
    assert read == ["two.lance"]


def test_a_table_that_was_made_anew_is_not_compared_with_the_one_before(home):
    shutil.rmtree(home / "vectors" / "chunks.lance")
    put(home, "vectors/chunks.lance/data/other.lance", b"other")
    put(home, "vectors/chunks.lance/_versions/1.manifest", b"first again")
    assert changed_files(home) == []
    record_sums(home)
    assert changed_files(home) == []
    put(home, "vectors/chunks.lance/_versions/1.manifest", b"first agaim")
    assert changed_files(home) == ["vectors/chunks.lance/_versions/1.manifest"]


def test_hashes_that_were_changed_themselves_are_no_measure(home):
    path = sums_file(home)
    path.write_text(path.read_text().replace("a", "b"))
    with pytest.raises(StorageError, match="cannot be read"):
        changed_files(home)
    record_sums(home)
    assert changed_files(home) == []
