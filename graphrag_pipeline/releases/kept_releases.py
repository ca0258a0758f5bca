"""The releases that are kept, and which of them is published.

``releases/<id>.duckdb`` is one complete release: its rows, and the LanceDB versions that belong
to them. ``published.duckdb``, which readers open, is a second name (a hard link) of one of these
files. Publishing and rolling back each put that name in place by one rename, so rows and vectors
change together. ``releases/<id>.withdrawn`` marks a release that was rolled back.

A release is published first and kept under its own name next. So where the newest release is kept
and is not the published one, somebody rolled it back.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.errors import InputError, NothingPublishedError, StorageError
from graphrag_pipeline.core.hardening.files import replace_durably, sync_folder
from graphrag_pipeline.core.hardening.locks import FairLock
from graphrag_pipeline.core.hardening.temporary import sweep, temporary_folder
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.store.index_store import connect_published

log = logging.getLogger("graphrag_pipeline")

RELEASES = "releases"
ACCESS = "access"
"""The key in ``meta`` of a release under which its mode of access and its labels are."""

_KEPT = ".duckdb"
_ARRAYS = ".arrays"
_WITHDRAWN = ".withdrawn"
_MOST_NAMED = 10
_LOCKED = "Could not set lock"
_NEWEST = "SELECT id FROM releases ORDER BY created_at DESC, id DESC LIMIT 1"
_FACTS = """
SELECT id, created_at, embedder, COLUMNS('n_(.*)') AS '\\1' FROM releases
"""


class UnknownReleaseError(InputError):
    """A release was named that is not kept, any more or at all; or more than one begins so."""


@dataclass(frozen=True)
class KeptRelease:
    """A release that can be read, in the words of its row in ``releases``."""

    id: str
    created_at: datetime
    embedder: str
    counts: Mapping[str, int]
    n_bytes: int
    """Size of its DuckDB file. Vectors are shared between releases."""
    is_current: bool
    """Whether it is what readers see now."""
    is_withdrawn: bool
    """Whether it was published and then rolled back."""

    __repr__ = showing.brief


def published_release(home: Path) -> str | None:
    """Return the id of the release that readers see; None if there is none, or it is damaged."""
    path = Home(home).published
    if not path.is_file():
        return None
    try:
        return _newest_in(path)
    except StorageError as error:
        if _LOCKED not in str(error):
            return None
        # Whoever has it open for writing keeps its rows from us, not which file it is.
        return next((name for name, file in _kept(home).items() if path.samefile(file)), None)


def release_ids(home: Path) -> list[str]:
    """Return the ids of the releases that are kept, newest first."""
    ids = set(_kept(home))
    if not any(_is_same(Home(home).published, path) for path in _kept(home).values()):
        ids |= {published_release(home) or ""} - {""}
    return sorted(ids, reverse=True)


def list_releases(home: Path) -> list[KeptRelease]:
    """Return the releases that are kept, newest first; files that are damaged are left out.

    Raises NothingPublishedError when there is none.
    """
    ids = release_ids(home)
    if not ids:
        raise NothingPublishedError(nothing_published(home))
    current = published_release(home)
    facts: dict[str, tuple[datetime, str, dict[str, int]]] = {}
    listed = []
    for id in ids:
        # One that another process drops meanwhile is left out, as one that is damaged.
        with contextlib.suppress(StorageError, OSError):
            # A release holds the rows of all that were made before it.
            if id not in facts:
                facts = _facts_in(_path(home, id)) | facts
            if id in facts:
                listed.append(_listed(home, id, current, *facts[id]))
    return listed


def _listed(
    home: Path,
    id: str,
    current: str | None,
    created_at: datetime,
    embedder: str,
    counts: Mapping[str, int],
) -> KeptRelease:
    return KeptRelease(
        id=id,
        created_at=created_at,
        embedder=embedder,
        counts=counts,
        n_bytes=_path(home, id).stat().st_size,
        is_current=id == current,
        is_withdrawn=id != current and _mark(home, id).exists(),
    )


def find_release(home: Path, prefix: str) -> str:
    """Return the one release whose id is ``prefix`` or begins with it.

    Raises UnknownReleaseError, naming those that are kept, when there is none or more than one;
    NothingPublishedError when nothing was published yet.
    """
    ids = release_ids(home)
    if not ids:
        raise NothingPublishedError(nothing_published(home))
    fitting = [id for id in ids if id == prefix] or [
        id for id in ids if prefix and id.startswith(prefix)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UnknownReleaseError(
            f"release {prefix} could be {_named(fitting)}: write more of the id"
        )
    are = "is" if len(ids) == 1 else "are"
    raise UnknownReleaseError(f"no release {prefix} is kept; there {are} {_named(ids)}")


def release_file(home: Path, prefix: str | None = None) -> Path:
    """Return the DuckDB file of a release, by the beginning of its id; None: what readers see.

    Raises what :func:`find_release` raises.
    """
    if prefix is not None:
        release = find_release(home, prefix)
        path = _path(home, release)
        if path == Home(home).published and published_release(home) != release:
            raise UnknownReleaseError(f"release {release} was deleted a moment ago: name another")
        return path
    path = Home(home).published
    if not path.is_file():
        raise NothingPublishedError(nothing_published(home))
    return path


def release_before(home: Path, release: str) -> str | None:
    """Return the newest release that is older than ``release`` and was not withdrawn."""
    older = [id for id in release_ids(home) if id < release]
    return next((id for id in older if not _mark(home, id).exists()), None)


def is_rolled_back(home: Path, newest: str) -> bool:
    """Whether readers see another release than the newest because somebody went back to it."""
    return published_release(home) not in (None, newest) and newest in _kept(home)


def rolled_back_from(home: Path) -> str | None:
    """Return the newest release if readers see an older one, else None.

    One that was killed as it was published is what readers see, and is not kept yet.
    """
    newest, published = max(_kept(home), default=""), published_release(home)
    return newest if published and published < newest else None


@contextlib.contextmanager
def changing_releases(home: Path) -> Iterator[None]:
    """Wait until nobody else publishes, goes back or drops releases; keep others waiting meanwhile.

    A long wait is logged. What killed processes have left is cleared away. Ask for nothing else
    that others may hold before this: those who have it may ask for the index. Raises StorageError
    where the home folder cannot be written in.
    """
    with contextlib.ExitStack() as changing:
        with _writing(home):
            lock = FairLock(Home(home).release_lock)
            lock.take(when_long=lambda: _log_wait(home))
            changing.callback(lock.release)
        sweep(home)
        sweep(_folder(home))
        yield


def _log_wait(home: Path) -> None:
    log.warning("waiting for another process to publish or go back to a release in %s", home)


def is_withdrawn(home: Path, release: str) -> bool:
    """Whether a release was rolled back, so that an older one is published."""
    return _mark(home, release).exists()


def put_back(home: Path, release: str) -> None:
    """Make a kept release the one that readers see, in one step, and withdraw those after it.

    Call it while :func:`changing_releases`.
    """
    before = published_release(home) or ""
    with _writing(home):
        _mark(home, release).unlink(missing_ok=True)
        for skipped in _kept(home):
            if release < skipped <= before:
                _mark(home, skipped).touch()
        _sync_names(home)
        _put_in_place(_path(home, release), Home(home).published)


def keep_published(home: Path) -> None:
    """Keep what is published under its own name too. Call it while :func:`changing_releases`."""
    folder = _folder(home)
    with _writing(home):
        release = published_release(home)
        if release is None:
            return
        _mark(home, release).unlink(missing_ok=True)
        kept_file = folder / f"{release}{_KEPT}"
        if not _is_same(kept_file, Home(home).published):
            folder.mkdir(exist_ok=True)
            sync_folder(home)
            _put_in_place(Home(home).published, kept_file)


def drop_old(home: Path, spared: Iterable[str | None], keep: int, keep_days: float) -> list[str]:
    """Remove the files of releases beyond ``keep`` or older than ``keep_days`` (0: any age).

    The newest two, the published one and those ``spared`` always stay. Returns the ids of all
    that are kept. Call it while :func:`changing_releases`.
    """
    listed = list_releases(home)
    oldest = datetime.now(UTC) - timedelta(days=keep_days) if keep_days else None
    stay = {release.id for release in listed[:2]} | {published_release(home), *spared}
    stay |= {
        release.id for release in listed[:keep] if oldest is None or release.created_at >= oldest
    }
    with _writing(home):
        for id, path in _kept(home).items():
            if id not in stay:
                path.unlink(missing_ok=True)
                arrays_file(home, id).unlink(missing_ok=True)
                _mark(home, id).unlink(missing_ok=True)
        _sync_names(home)
    return release_ids(home)


def keep_only(home: Path, release: str) -> list[str]:
    """Remove the files of all releases but one, which is published; return the ids of the others.

    Raises StorageError where the folder cannot be written.
    """
    others = [id for id in _kept(home) if id != release]
    with _writing(home):
        for id in others:
            _kept(home)[id].unlink(missing_ok=True)
        drop_arrays(home, [release])
        for mark in _folder(home).glob(f"*{_WITHDRAWN}"):
            mark.unlink(missing_ok=True)
    return others


def kept_file(home: Path, release: str) -> Path:
    """Return where a release is kept under its own name, or would be."""
    return _folder(home) / f"{release}{_KEPT}"


def arrays_file(home: Path, release: str) -> Path:
    """Return where the arrays are that a release carries for questions, or would be."""
    return _folder(home) / f"{release}{_ARRAYS}"


def drop_arrays(home: Path, spared: Iterable[str]) -> None:
    """Remove the arrays of all releases but some: who opens one of the others makes them anew."""
    stay = {arrays_file(home, release) for release in spared}
    with _writing(home):
        for path in set(_folder(home).glob(f"*{_ARRAYS}")) - stay:
            path.unlink(missing_ok=True)


def nothing_published(home: Path) -> str:
    """Return what to say when there is no release yet."""
    return f"nothing published in {home} yet: run graphrag-pipeline index FOLDER, or Index.update"


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise StorageError where a release's file cannot be read."""
    try:
        yield
    except duckdb.Error as error:
        raise StorageError(f"cannot read {path}: {str(error).splitlines()[0]}") from error


def _put_in_place(source: Path, target: Path) -> None:
    """Give a file a second name in one step; where the disk knows no links, a copy."""
    with temporary_folder(target.parent, target.name) as folder:
        beside = folder / "file"
        try:
            beside.hardlink_to(source)
        except OSError:
            shutil.copyfile(source, beside)
        # Renaming one name of a file onto another of the same file does nothing.
        replace_durably(beside, target)


def _newest_in(path: Path) -> str | None:
    """Return the id of the release in a file, which is read once: no release is written twice."""
    try:
        stat = path.stat()
    except OSError as error:
        raise StorageError(f"cannot open {path}: {error.strerror}") from error
    return _read_newest(path, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))


@functools.lru_cache
def _read_newest(path: Path, _file: tuple[int, ...]) -> str | None:
    with connect_published(path) as con, reading(path):
        row = con.execute(_NEWEST).fetchone()
    return row[0] if row else None


def _facts_in(path: Path) -> dict[str, tuple[datetime, str, dict[str, int]]]:
    with connect_published(path) as con, reading(path):
        result = con.execute(_FACTS)
        names = [column[0] for column in result.description or ()][3:]
        return {
            row[0]: (row[1].astimezone(UTC), row[2], dict(zip(names, row[3:], strict=True)))
            for row in result.fetchall()
        }


def _kept(home: Path) -> dict[str, Path]:
    return {path.stem: path for path in _folder(home).glob(f"*{_KEPT}")}


def _path(home: Path, release: str) -> Path:
    path = _folder(home) / f"{release}{_KEPT}"
    return path if path.is_file() else Home(home).published


def _mark(home: Path, release: str) -> Path:
    return _folder(home) / f"{release}{_WITHDRAWN}"


def _folder(home: Path) -> Path:
    return home / RELEASES


def _sync_names(home: Path) -> None:
    if _folder(home).is_dir():
        sync_folder(_folder(home))


def _is_same(path: Path, second: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.samefile(second)
    return False


def _named(ids: Sequence[str]) -> str:
    more = len(ids) - _MOST_NAMED
    return ", ".join(ids[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


@contextlib.contextmanager
def _writing(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write in {home}: {error.strerror or error}") from error
