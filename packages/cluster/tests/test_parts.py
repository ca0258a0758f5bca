"""Parts made by workers: what comes of them is what one machine makes, whatever befalls them."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from graphrag_cluster.batch_parts import find_part
from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_cluster.orders import find_order, place_order
from graphrag_cluster.part_intake import take_part
from graphrag_cluster.part_making import make_part, making_part
from index_differences import differing_tables

from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.pipeline.updating import cut_batches, run_stages
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.store.workspace import Workspace

CORPUS = Path(__file__).parents[3] / "examples" / "corpus"
PRESS = ("interview-orsolya-venn.txt", "lin-ruolan-haicao.txt", "the-ice-ledger-review.md")
PAPER = "sediment-release-plan-2018.pdf"
SMALL_BATCHES = {"max_files": 2}


def settings_of(folder: Path, **sections: Any) -> Settings:
    return Settings(home=str(folder / ".graphrag"), batches=SMALL_BATCHES, **sections)


def write_corpus(folder: Path) -> Path:
    """Write a corpus with two names of one document, a file that nobody can read and a table."""
    documents = folder / "documents"
    documents.mkdir(parents=True)
    for path in (*(CORPUS / "press" / name for name in PRESS), CORPUS / "records" / PAPER):
        shutil.copy(path, documents)
    first = min(path for path in documents.rglob("*") if path.is_file())
    (documents / "copy").mkdir()
    shutil.copy(first, documents / "copy" / first.name)
    (documents / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    (documents / "people.csv").write_text("name,town\nAda Lovelace,London\nMarie Curie,Paris\n")
    return documents


def change_corpus(documents: Path) -> None:
    files = sorted(path for path in documents.rglob("*") if path.is_file())
    texts = [path for path in files if path.suffix in (".md", ".txt")]
    texts[0].unlink()
    texts[1].write_text(texts[1].read_text() + "\n\nAda Lovelace met Charles Babbage in London.\n")
    texts[2].rename(texts[2].with_name("renamed.md"))
    (documents / "new.md").write_text("Marie Curie worked with Pierre Curie in Paris.")


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"file://{tmp_path}/shared")


def make_all(workspace: Workspace, objects: ObjectStore, workers: list[Settings]) -> None:
    """Have the batches that wait made by workers in turn, in any order, and take them in."""
    keys = pending_batches(workspace)
    for key in keys:
        place_order(workspace, objects, key)
    shuffled = random.Random(7).sample(keys, len(keys))
    parts = {
        key: make_part(workers[number % len(workers)], objects, key)
        for number, key in enumerate(shuffled)
    }
    for key in keys:
        assert find_part(objects, key) == parts[key]
        take_part(workspace, objects, parts[key])
    run_stages(workspace, only=[])


def follow(alone: Workspace, shared: Workspace) -> None:
    """Give the second index the manifests of the first."""
    shutil.rmtree(shared.paths.batches, ignore_errors=True)
    shutil.copytree(alone.paths.batches, shared.paths.batches)


def test_an_index_of_parts_is_the_index_of_one_machine(
    tmp_path: Path, objects: ObjectStore
) -> None:
    alone, shared = (Workspace(settings_of(tmp_path / name)) for name in ("alone", "shared_home"))
    workers = [settings_of(tmp_path / f"worker{number}") for number in range(2)]
    documents = write_corpus(tmp_path / "alone")
    for step in range(2):
        if step:
            change_corpus(documents)
        shutil.rmtree(tmp_path / "shared_home" / "documents", ignore_errors=True)
        shutil.copytree(documents, tmp_path / "shared_home" / "documents")
        cut_batches(alone, documents)
        run_stages(alone)
        follow(alone, shared)
        make_all(shared, objects, workers)
        differing = differing_tables(alone.paths.index, shared.paths.index)
        # A release is named after the time.
        assert set(differing) == {"main.releases"}
    with shared.store.read() as con:
        quarantined = con.execute("SELECT uri FROM quarantine").fetchall()
    assert [uri.rpartition("/")[2] for (uri,) in quarantined] == ["broken.pdf"]
    assert not any(objects.sizes("files"))
    assert not any(objects.sizes("orders"))
    assert not any(path for path in (tmp_path / "worker0").rglob("*.duckdb"))


@pytest.fixture
def ordered(tmp_path: Path, objects: ObjectStore) -> tuple[Workspace, str]:
    """An index with one batch that is ordered."""
    folder = tmp_path / "coordinator"
    workspace = Workspace(settings_of(folder))
    documents = folder / "documents"
    documents.mkdir(parents=True)
    (documents / "a.md").write_text("Ada Lovelace met Charles Babbage in London.")
    (key,) = cut_batches(workspace, documents)
    place_order(workspace, objects, key)
    return workspace, key


def test_a_worker_that_does_not_see_the_files_fails_and_quarantines_nothing(
    ordered: tuple[Workspace, str], tmp_path: Path, objects: ObjectStore
) -> None:
    workspace, key = ordered
    for name in objects.sizes("files"):
        objects.drop(name)
    worker = settings_of(tmp_path / "worker")
    (tmp_path / "worker" / "documents").mkdir(parents=True)
    (tmp_path / "worker" / "documents" / "a.md").write_text("another text")
    with pytest.raises(StorageError, match=r"does not see documents/a\.md, or not as it was"):
        make_part(worker, objects, key)
    assert find_part(objects, key) is None
    shutil.copy(workspace.batches.path_of("documents/a.md"), tmp_path / "worker" / "documents")
    part = make_part(worker, objects, key)
    assert "quarantine" not in part.files
    assert part.files["staging.documents"].n_rows == 1


def test_a_worker_with_other_settings_makes_no_part(
    ordered: tuple[Workspace, str], tmp_path: Path, objects: ObjectStore
) -> None:
    worker = settings_of(tmp_path / "worker", chunks={"size": 300})
    with pytest.raises(ConfigError, match="would make other chunks than the coordinator"):
        make_part(worker, objects, ordered[1])


def test_what_was_made_before_a_worker_was_killed_is_not_made_again(
    ordered: tuple[Workspace, str], tmp_path: Path, objects: ObjectStore
) -> None:
    _, key = ordered
    worker = settings_of(tmp_path / "worker")
    with making_part(worker, objects, key) as begun:
        assert not ingest(begun, "documents", key).done_before
    with making_part(worker, objects, key) as again:
        assert ingest(again, "documents", key).done_before
        assert not ingest(again, "chunks", key).done_before


def test_only_what_other_settings_touch_is_made_again(
    ordered: tuple[Workspace, str], tmp_path: Path, objects: ObjectStore
) -> None:
    _, key = ordered
    first = make_part(settings_of(tmp_path / "worker"), objects, key)
    changed = Workspace(settings_of(tmp_path / "coordinator", chunks={"size": 300}))
    order = place_order(changed, objects, key)
    second = make_part(settings_of(tmp_path / "other", chunks={"size": 300}), objects, key)
    assert second.order == order.id
    assert first.lines[0] == second.lines[0]
    assert first.versions["chunks"] != second.versions["chunks"]
    take_part(changed, objects, second)
    assert not any(name.startswith(f"parts/{key}/{first.order}") for name in objects.sizes("parts"))


def test_a_part_with_a_damaged_file_changes_nothing(
    ordered: tuple[Workspace, str], tmp_path: Path, objects: ObjectStore
) -> None:
    workspace, key = ordered
    part = make_part(settings_of(tmp_path / "worker"), objects, key)
    objects.write(part.files["staging.chunks"].name, b"not what was written")
    with pytest.raises(MissingObjectError, match="SHA-256 is another"):
        take_part(workspace, objects, part)
    with workspace.store.read() as con:
        assert con.execute("SELECT count(*) FROM batch_stages").fetchone() == (0,)
        assert con.execute("SELECT count(*) FROM staging.documents").fetchone() == (0,)


def test_an_order_of_another_version_is_refused(
    ordered: tuple[Workspace, str], tmp_path: Path, objects: ObjectStore
) -> None:
    name = f"orders/{ordered[1]}.json"
    objects.write(name, json.dumps({**json.loads(objects.read(name)), "format": 0}).encode())
    with pytest.raises(StorageError, match="another version of the program"):
        find_order(objects, ordered[1])


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/a", "http://bucket", "s3:///a", "folder"])
def test_a_url_that_is_none_is_refused_without_its_keys(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ObjectStore(url)
    assert "secret" not in str(refused.value)


def test_a_store_that_is_no_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="is its disk there"):
        ObjectStore(f"file://{tmp_path}/file/below").write("a", b"")
