"""A byte that a disk has changed, in any kind of file, is noticed by `check`, never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from artefacts import copy_of
from flipped import KINDS, fill, flipped, flips, table_of, trials
from test_check import PLAIN, content, in_folder, ready

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.backups import back_up
from graphrag_pipeline.upkeep.checking import check, repair

FLIPS = int(os.environ.get("FLIPS", "30"))
"""How many bytes of each kind of file are flipped in the nightly test."""
OFTEN = ("index", "vectors", "answers", "manifests")
UNPROVEN = {"history"}
"""Kinds of which nobody keeps a hash: SQLite notices what breaks its structure."""

pytestmark = pytest.mark.usefixtures("plain_stores")


@pytest.fixture
def index(tmp_path: Path) -> Workspace:
    """An index of two releases with something of every kind of file."""

    copy_of("flipped", lambda folder: fill(ready(folder)), tmp_path / "index")
    return Workspace(in_folder(tmp_path / "index", PLAIN))


def test_an_index_with_every_kind_of_file_is_ok(index):
    checked = check(index)
    assert [problem.line for problem in checked.problems] == []


def test_a_flipped_byte_is_told_in_a_line(index):
    outcomes, strange = trials(index, OFTEN, 1)
    assert strange == []
    assert all(counts["repairable"] + counts["told"] for counts in outcomes.values())


@pytest.mark.nightly
def test_flipped_bytes_in_used_blocks_are_told_in_a_line(index):
    outcomes, strange = trials(index, KINDS, FLIPS, seed=1)
    print(table_of(outcomes))
    assert [line for line in strange if line.partition(":")[0] not in UNPROVEN] == []


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind == "published" else pytest.mark.nightly)
        for kind in ("published", "index", "vectors", "arrays", "sums", "versions of vectors")
    ],
)
def test_what_a_flipped_byte_has_damaged_is_made_again(index, kind):
    before = content(index)
    ((path, place, bits),) = flips(index.home, kind, 1, seed=2)
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= bits
    path.chmod(0o644)
    path.write_bytes(damaged)
    outcome = repair(index)
    assert outcome.repairs
    assert [problem.line for problem in outcome.problems] == []
    assert content(index) == before


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in ("published", "answers") else pytest.mark.nightly)
        for kind in sorted(KINDS.keys() - {"history", "sums"})
    ],
)
def test_a_backup_of_damaged_files_is_refused_in_a_line(index, kind, tmp_path):
    ((path, place, bits),) = flips(index.home, kind, 1, seed=3)
    archive = tmp_path / "index.tar.zst"
    with flipped(path, place, bits), pytest.raises(StorageError) as refused:
        back_up(index, archive)
    assert "\n" not in str(refused.value)
    assert not archive.exists()
    back_up(index, archive)
