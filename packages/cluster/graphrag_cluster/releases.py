"""Releases of a shared index: published under ``storage.url``, and kept by readers in their homes.

Under the url lie, as in a home, ``releases/ID.duckdb``, ``releases/ID.arrays`` and the files of
LanceDB's tables in ``vectors/``, which releases share. ``releases/ID.json`` names the files of a
release with their SHA-256, and ``published.json`` the release that readers see; Postgres has that
one, too, and decides it (:mod:`graphrag_cluster.lease`).

A reader's home holds no index of its own. What it has of a release already it does not download
again, and a release is there whole before it is seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from graphrag_cluster.lease import holding_lease
from graphrag_cluster.objects import MissingObjectError, ObjectStore
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.files import make_folder, replace_durably, write_beside
from graphrag_pipeline.core.hardening.temporary import temporary_folder
from graphrag_pipeline.core.home import Home, make_home
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases.kept_releases import (
    arrays_file,
    changing_releases,
    kept_file,
    published_release,
    put_back,
    release_ids,
)

log = logging.getLogger("graphrag_pipeline")

LOOK_SECONDS = 5.0
"""How often a process asks at most whether another release is published."""
_PUBLISHED = "published.json"
_AT_ONCE = 8
_KEPT_BY_READERS = 2
_FORMAT = 1
_NAME = re.compile(r"[\w.=+-]+(/[\w.=+-]+)*")
_READER_PATIENCE = 15.0
_looked: dict[Path, float] = {}


class SharedFile(NamedTuple):
    """A file of a release: its SHA-256 and its size in bytes."""

    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class SharedRelease:
    """Files under the url of a release: its files, by their names there and in a home."""

    id: str
    files: Mapping[str, SharedFile]


def share_release(settings: Settings) -> None:
    """Publish under ``storage.url`` what is published in this home, unless it is so already.

    It is the current one once Postgres says so, and only where this process still coordinates.
    Releases that the home let go are removed there, too. Raises StorageError; readers then stay on
    the one before.
    """
    home = settings.home_path
    release = published_release(home)
    if release is None:
        return
    objects = ObjectStore(settings.storage.url)
    with holding_lease(settings) as lease:
        if _published(objects) == release:
            return
        before = _newest_shared(objects)
        shared = SharedRelease(release, dict(_uploaded(objects, home, release, before)))
        lease.check()
        objects.write(_manifest_name(release), _written(shared))
        lease.publish(release)
        objects.write(_PUBLISHED, json.dumps({"release": release, "fence": lease.fence}).encode())
        _drop_others(objects, {release, *release_ids(home)})


def forget_shared(settings: Settings) -> None:
    """Remove all under ``storage.url`` but what is published there: older releases, parts, orders.

    Parts are made again where settings ask for it. Raises StorageError.
    """
    objects = ObjectStore(settings.storage.url)
    with holding_lease(settings):
        share_release(settings)
        _drop_others(objects, {published_release(settings.home_path) or ""})
        for folder in ("parts", "orders", "files", "slices"):
            for name in objects.sizes(folder):
                objects.drop(name)


def follow_published(settings: Settings, *, at_once: bool = False) -> None:
    """Bring what is published under ``storage.url`` into the home of a reader, if it is news.

    Does nothing in the home that holds the index itself, and, unless ``at_once``, where it has
    looked a moment ago. Raises StorageError where there is no release yet in the home
    and none can be had; otherwise that is logged, and the one before stays.
    """
    home = settings.home_path
    now = time.monotonic()
    is_late = at_once or now - _looked.get(home, float("-inf")) >= LOOK_SECONDS
    if Home(home).index.exists() or not is_late:
        return
    _looked[home] = now
    try:
        _follow(ObjectStore(settings.storage.url, patience=_READER_PATIENCE), settings)
    except StorageError as error:
        if not Home(home).published.exists():
            raise
        log.warning("cannot follow what is published: %s", error)


def _follow(objects: ObjectStore, settings: Settings) -> None:
    home = settings.home_path
    release = _published(objects)
    if release is None or (release in release_ids(home)[:1] and Home(home).published.exists()):
        return
    make_home(settings)
    with changing_releases(home):
        shared = _read(objects, release)
        make_folder(Home(home).releases)
        missing = [name for name in shared.files if not _is_there(home, shared, name)]
        with temporary_folder(Home(home).releases, "shared") as folder:
            _download(objects, shared, missing, folder)
            # The release itself comes last: until then nobody knows of the others.
            for number, name in sorted(enumerate(missing), key=lambda each: _is_release(each[1])):
                (home / name).parent.mkdir(parents=True, exist_ok=True)
                replace_durably(folder / str(number), home / name)
        write_beside(_local_manifest(home, release), _written(shared))
        put_back(home, release)
        _forget_old(home)


def _download(
    objects: ObjectStore, shared: SharedRelease, missing: Sequence[str], folder: Path
) -> None:
    def fetch(number: int) -> None:
        name = missing[number]
        objects.download(name, folder / str(number), shared.files[name].sha256)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(fetch, range(len(missing))):
            pass


def _uploaded(
    objects: ObjectStore, home: Path, release: str, before: SharedRelease | None
) -> Iterator[tuple[str, SharedFile]]:
    """Upload what is not there yet of a release; yield its files, those there were, too."""
    there = objects.sizes("vectors")
    known = before.files if before else {}
    for path in _files_of(home, release):
        name, size = path.relative_to(home).as_posix(), path.stat().st_size
        is_same = name in known and there.get(name) == size == known[name].n_bytes
        if is_same and (_has_own_name(name) or _sha256(path) == known[name].sha256):
            yield name, known[name]
        else:
            yield name, SharedFile(objects.upload(path, name), size)


def _files_of(home: Path, release: str) -> Iterator[Path]:
    """Yield the files of a release; versions of tables of vectors come after what they name."""
    paths = [path for path in Home(home).vectors.rglob("*") if path.is_file()]
    tables = [path for path in paths if ".lance" in path.relative_to(home).parts[1]]
    yield from sorted(tables, key=lambda path: path.suffix in (".manifest", ".json"))
    if (arrays := arrays_file(home, release)).is_file():
        yield arrays
    yield kept_file(home, release)


def _is_there(home: Path, shared: SharedRelease, name: str) -> bool:
    """Whether a file has been downloaded before; those of a release's own never change."""
    path = home / name
    if not path.is_file() or path.stat().st_size != shared.files[name].n_bytes:
        return False
    return _has_own_name(name) or _sha256(path) == shared.files[name].sha256


def _forget_old(home: Path) -> None:
    """Remove all but the newest releases from a reader's home, and what no kept one is made of."""
    ids = release_ids(home)
    for release in ids[_KEPT_BY_READERS:]:
        for path in (kept_file(home, release), arrays_file(home, release)):
            path.unlink(missing_ok=True)
        _local_manifest(home, release).unlink(missing_ok=True)
    kept = [_local_manifest(home, release) for release in ids[:_KEPT_BY_READERS]]
    names = {name for path in kept if path.is_file() for name in _parsed(path.read_bytes()).files}
    for path in [*Home(home).vectors.rglob("*")]:
        if path.is_file() and path.relative_to(home).as_posix() not in names:
            with contextlib.suppress(OSError):
                path.unlink()


def _drop_others(objects: ObjectStore, kept: set[str]) -> None:
    """Remove releases that are not kept any more, and what no kept one is made of."""
    names: set[str] = set()
    there = objects.sizes("releases")
    manifests = {name for name in there if name.endswith(".json")}
    for name in manifests:
        if _id_of(name) in kept:
            names |= {name, *_parsed(objects.read(name)).files}
    for name in sorted({*there, *objects.sizes("vectors")} - names):
        objects.drop(name)


def _published(objects: ObjectStore) -> str | None:
    try:
        return str(json.loads(objects.read(_PUBLISHED))["release"])
    except MissingObjectError:
        return None


def _newest_shared(objects: ObjectStore) -> SharedRelease | None:
    manifests = [name for name in objects.sizes("releases") if name.endswith(".json")]
    return _parsed(objects.read(max(manifests))) if manifests else None


def _read(objects: ObjectStore, release: str) -> SharedRelease:
    return _parsed(objects.read(_manifest_name(release)))


def _parsed(data: bytes) -> SharedRelease:
    """Read a manifest; names that lead out of a home are refused."""
    raw = json.loads(data)
    if raw["format"] != _FORMAT:
        raise StorageError(
            f"release {raw.get('id')} was published by another version of the program: use one "
            "version on all machines"
        )
    files = {name: SharedFile(*file) for name, file in raw["files"].items()}
    wrong = [name for name in files if not _NAME.fullmatch(name) or ".." in name.split("/")]
    if wrong or not _NAME.fullmatch(raw["id"]):
        raise StorageError("the manifest of the release names files outside of a home: look at it")
    return SharedRelease(raw["id"], files)


def _written(shared: SharedRelease) -> bytes:
    return json.dumps({"format": _FORMAT, **asdict(shared)}).encode()


def _manifest_name(release: str) -> str:
    return f"releases/{release}.json"


def _local_manifest(home: Path, release: str) -> Path:
    return home / _manifest_name(release)


def _id_of(manifest: str) -> str:
    return PurePosixPath(manifest).stem


def _has_own_name(name: str) -> bool:
    """Whether no other file ever has this name; those of LanceDB's rows and indexes have ids."""
    return "/data/" in name or "/_indices/" in name or name.startswith("releases/")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_release(name: str) -> bool:
    return name.endswith(".duckdb")
