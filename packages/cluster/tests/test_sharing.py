"""Releases of a shared index, and readers elsewhere that follow them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from artefacts import copy_of
from cluster_services import postgres
from graphrag_cluster import releases as sharing
from graphrag_cluster.lease import coordinating, current_release
from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_cluster.postgres import Postgres, Session
from graphrag_cluster.releases import follow_published, forget_shared, share_release
from graphrag_cluster.sharing import SharedIndex
from graphrag_cluster.working import check_worker

from graphrag_pipeline.core.errors import ConfigError, NothingPublishedError, StorageError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index
from graphrag_pipeline.query.release import open_release
from graphrag_pipeline.releases.kept_releases import published_release, release_ids

pytestmark = pytest.mark.cluster

TEXT = "Ada Lovelace met Charles Babbage in London. Babbage showed Lovelace the engine."


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres() as service:
        yield service.address


@pytest.fixture(autouse=True)
def _(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRAG_POSTGRES_URL", address)
    monkeypatch.setattr(sharing, "LOOK_SECONDS", 0.0)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/shared"


def settings_of(folder: Path, url: str, **sections: Any) -> Settings:
    return Settings(home=str(folder / ".graphrag"), storage={"url": url}, **sections)


def make_index(folder: Path) -> None:
    """Make an index that no other machine sees."""
    documents = folder / "documents"
    documents.mkdir(parents=True)
    (documents / "a.md").write_text(TEXT)
    index_in(folder, "").update(documents)


def make_another_release(folder: Path) -> None:
    copy_of("index to share", make_index, folder)
    update(index_in(folder, ""), "b.md", "Marie Curie met Pierre Curie in Paris.")


def index_in(folder: Path, url: str) -> Index:
    settings = settings_of(folder, url, releases={"keep": 2})
    return Index(settings.home_path, settings)


@pytest.fixture
def index(tmp_path: Path, url: str) -> Index:
    index = index_in(copy_of("index to share", make_index, tmp_path / "coordinator"), url)
    share_release(index.settings)
    return index


def update(index: Index, name: str, text: str) -> str:
    documents = index.home.parent / "documents"
    (documents / name).write_text(text)
    return index.update(documents).release


def go_on(index: Index) -> str:
    """Publish and share the next release, which was made but once."""
    shutil.rmtree(index.home.parent)
    copy_of("index to share again", make_another_release, index.home.parent)
    share_release(index.settings)
    return str(published_release(index.home))


def titles(reader: Index) -> set[str]:
    return {str(title) for (title,) in reader.sql("SELECT title FROM entities")[1]}


def test_a_reader_elsewhere_sees_what_is_published_and_then_what_is_new(
    index: Index, tmp_path: Path, url: str
) -> None:
    settings = settings_of(tmp_path / "reader", url)
    reader = Index(settings.home_path, settings)
    assert titles(reader) == titles(index)
    question = "Who met Charles Babbage?"
    assert reader.answer(question, "local").text == index.answer(question, "local").text
    found = [each.retrieve(question, "ppr").records for each in (reader, index)]
    assert found[0] == found[1]
    with reader.open() as before:
        release = go_on(index)
        assert "MARIE CURIE" in {title.upper() for title in titles(reader)}
        assert before.index.facts.id != release
        assert "Lovelace" in before.answer(question, "basic").text
    assert current_release(settings) == release == published_release(reader.home)


def test_only_what_is_new_is_downloaded(
    index: Index, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path / "reader", url)
    follow_published(settings)
    go_on(index)
    downloaded = []
    download = ObjectStore.download
    monkeypatch.setattr(
        ObjectStore,
        "download",
        lambda self, name, *rest: (downloaded.append(name), download(self, name, *rest)),
    )
    follow_published(settings)
    release = published_release(settings.home_path)
    shared = json.loads(ObjectStore(url).read(f"releases/{release}.json"))
    assert 0 < len(downloaded) < len(shared["files"])
    follow_published(settings)
    assert len(downloaded) == len(set(downloaded))


def test_older_releases_go_here_and_there(index: Index, tmp_path: Path, url: str) -> None:
    settings = settings_of(tmp_path / "reader", url)
    for number in range(3):
        follow_published(settings)
        update(index, "b.md", f"Marie Curie met Pierre Curie in Paris {number} times.")
    follow_published(settings)
    objects = ObjectStore(url)
    there = {Path(name).stem for name in objects.sizes("releases")}
    assert there == set(release_ids(index.home))
    assert len(release_ids(settings.home_path)) == 2
    named = set()
    for name in objects.sizes("releases"):
        if name.endswith(".json"):
            named |= json.loads(objects.read(name))["files"].keys()
    assert set(objects.sizes("vectors")) <= named
    kept = {p.relative_to(settings.home_path).as_posix() for p in vectors_of(settings.home_path)}
    assert kept <= named


def vectors_of(home: Path) -> Iterator[Path]:
    yield from (path for path in (home / "vectors").rglob("*") if path.is_file())


def test_a_download_that_breaks_leaves_the_release_there_was(
    index: Index, tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of(tmp_path / "reader", url)
    reader = Index(settings.home_path, settings)
    before = titles(reader)
    release = go_on(index)
    file = tmp_path / "shared" / "releases" / f"{release}.duckdb"
    whole = file.read_bytes()
    file.chmod(0o600)
    file.write_bytes(whole[: len(whole) // 2])
    assert titles(reader) == before
    assert "SHA-256 is another" in caplog.text
    file.write_bytes(whole)
    assert titles(reader) != before
    shutil.rmtree(tmp_path / "shared")
    assert titles(reader) != before


def test_a_reader_without_any_release_is_told_why(tmp_path: Path, url: str) -> None:
    settings = settings_of(tmp_path / "reader", url)
    with pytest.raises(NothingPublishedError):
        Index(settings.home_path, settings).sql("SELECT 1")


def test_a_release_that_is_opened_is_the_one_published_last(
    index: Index, tmp_path: Path, url: str
) -> None:
    settings = settings_of(tmp_path / "reader", url)
    for name in ("Marie Curie", "Lise Meitner"):
        release = update(index, "b.md", f"{name} met Pierre Curie in Paris.")
        with open_release(settings.home_path, settings=settings) as opened:
            assert opened.facts.id == release


def test_nothing_is_changed_while_another_machine_coordinates(index: Index) -> None:
    release = go_on(index)
    ids = release_ids(index.home)
    changes: tuple[Callable[[Index], object], ...] = (
        lambda index: update(index, "c.md", "Lise Meitner met Otto Hahn in Berlin."),
        lambda index: index.rollback(),
        lambda index: index.purge(),
    )
    with coordinating(index.settings):
        for change in changes:
            with pytest.raises(StorageError, match="another process coordinates"):
                change(index)
            assert current_release(index.settings) == release == published_release(index.home)
            assert release_ids(index.home) == ids


def test_a_store_that_cannot_be_reached_is_told_to_a_coordinator_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asks_again() -> Iterator[float]:
        pytest.fail("it is asked again")

    monkeypatch.setattr("graphrag_cluster.objects._pauses", asks_again)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    settings = settings_of(tmp_path, "s3://bucket/index")
    with (
        pytest.raises(StorageError, match=r"s3://bucket/index.*AWS_ENDPOINT_URL"),
        SharedIndex(settings).coordinating(),
    ):
        pass


def test_a_worker_without_settings_is_told_all_that_it_needs(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r'needs "celery", and the storage.url, Postgres and Redis'
    ):
        check_worker(settings_of(tmp_path, ""))


def test_who_lost_the_lease_publishes_nothing(
    index: Index, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = current_release(index.settings)
    upload = sharing._uploaded

    def upload_slowly(*given: Any) -> Iterator[tuple[str, sharing.SharedFile]]:
        """Upload for so long that another has taken the place of this process."""
        yield from upload(*given)
        with contextlib.closing(Session(Postgres.of(index.settings))) as session:
            session.rows("UPDATE lease SET fence = fence + 1 RETURNING fence")

    with monkeypatch.context() as slow:
        slow.setattr(sharing, "_uploaded", upload_slowly)
        with pytest.raises(StorageError, match="lease of the coordinator is lost"):
            update(index, "b.md", "Marie Curie met Pierre Curie in Paris.")
    assert json.loads(ObjectStore(url).read("published.json"))["release"] == first
    assert current_release(index.settings) == first
    # What was left undone is done by the next run, which finds nothing else to do.
    with contextlib.closing(Session(Postgres.of(index.settings))) as session:
        session.rows("UPDATE lease SET expires = now() RETURNING fence")
    release = index.update(index.home.parent / "documents").release
    assert release != first
    assert json.loads(ObjectStore(url).read("published.json"))["release"] == release
    assert current_release(index.settings) == release


def test_a_rollback_is_followed(index: Index, tmp_path: Path, url: str) -> None:
    settings = settings_of(tmp_path / "reader", url)
    reader = Index(settings.home_path, settings)
    before = titles(reader)
    go_on(index)
    assert titles(reader) != before
    index.rollback()
    assert titles(reader) == before
    assert published_release(reader.home) == published_release(index.home)


@pytest.mark.usefixtures("plain_stores")
def test_what_was_forgotten_is_nowhere_under_the_url(
    index: Index, tmp_path: Path, url: str
) -> None:
    update(index, "b.md", "Zenobia Quillfeather met Pierre Curie in Paris.")
    objects = ObjectStore(url)
    for folder in ("parts/1", "orders", "files/1"):
        objects.write(f"{folder}/left", b"Zenobia Quillfeather")
    (index.home.parent / "documents" / "b.md").unlink()
    index.forget("documents/b.md")
    left = [
        path
        for path in (tmp_path / "shared").rglob("*")
        if path.is_file() and b"uillfeather" in path.read_bytes().lower()
    ]
    assert left == []
    settings = settings_of(tmp_path / "reader", url)
    assert titles(Index(settings.home_path, settings)) == titles(index)


@pytest.mark.parametrize("name", ["../outside", "vectors/../../outside", "/outside", "a//b"])
def test_a_manifest_that_leads_out_of_a_home_is_refused(
    index: Index, tmp_path: Path, url: str, name: str
) -> None:
    objects = ObjectStore(url)
    release = published_release(index.home)
    manifest = json.loads(objects.read(f"releases/{release}.json"))
    manifest["files"][name] = ["0" * 64, 1]
    objects.write(f"releases/{release}.json", json.dumps(manifest).encode())
    with pytest.raises(StorageError, match="outside of a home"):
        follow_published(settings_of(tmp_path / "reader", url))


def test_the_home_of_the_index_follows_nothing(index: Index, url: str) -> None:
    os.unlink(ObjectStore(url)._path("published.json"))
    before = published_release(index.home)
    follow_published(index.settings, at_once=True)
    assert published_release(index.home) == before
    share_release(index.settings)
    forget_shared(index.settings)
    assert json.loads(ObjectStore(url).read("published.json"))["release"] == before
    with pytest.raises(MissingObjectError):
        ObjectStore(url).read("parts")
