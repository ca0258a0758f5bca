"""The releases that are kept, and which of them is published.

``releases/<id>.duckdb`` is one complete release: its rows, and the LanceDB versions that belong
to them. ``published.duckdb``, which readers open, is a second name (a hard link) of one of these
files. Publishing and rolling back each put that name in place by one rename, so rows and vectors
change together. ``releases/<id>.changes`` is an older release
(:mod:`~graphrag_pipeline.releases.older_releases`), and ``releases/<id>.withdrawn`` marks one that
was rolled back.

A release is published first and kept under its own name next. So where the newest release is kept
and is not the published one, somebody rolled it back.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.errors import InputError, NothingPublishedError, StorageError
from graphrag_pipeline.core.hardening.files import (
    link_or_copy,
    replacing,
    sync_folder,
    told_of_disk,
)
from graphrag_pipeline.core.hardening.locks import FairLock
from graphrag_pipeline.core.hardening.temporary import sweep
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.store.index_store import connect_published, told_of_files

log = logging.getLogger("graphrag_pipeline")

RELEASES = "releases"
ACCESS = "access"
"""The key in ``meta`` of a release under which its mode of access and its labels are."""

_KEPT = ".duckdb"
_CHANGES = ".changes"
_ARRAYS = ".arrays"
_WITHDRAWN = ".withdrawn"
_MOST_NAMED = 10
_LOCKED = "Could not set lock"
_FACTS = """
SELECT id, created_at, embedder, COLUMNS('n_(.*)') AS '\\1' FROM releases
"""

_Facts = Mapping[str, tuple[datetime, str, Mapping[str, int]]]
"""When each release of a file was made, its embedder and its counts."""


@dataclass(frozen=True)
class _File:
    """A file, which is the same under each of its names."""

    path: Path = field(compare=False)
    stat: tuple[int, ...]


class UnknownReleaseError(InputError):
    """A release was named that is not kept, any more or at all; or more than one begins so."""


@dataclass(frozen=True)
class KeptRelease:
    """A release that can be read, in the words of its row in ``releases``."""

    id: str
    created_at: datetime
    embedder: str
    counts: Mapping[str, int]
    path: Path | None
    """Its DuckDB file; None where it is kept as the rows in which it differs from a newer one."""
    n_bytes: int
    """Size of the file it is kept in. Vectors are shared between releases."""
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
        return next(
            (name for name, file in whole_releases(home).items() if path.samefile(file)), None
        )


def release_ids(home: Path) -> list[str]:
    """Return the ids of the releases that are kept, newest first."""
    ids = _names(home)
    if not any(_is_same(Home(home).published, path) for path in whole_releases(home).values()):
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
    facts: _Facts = {}
    listed = []
    for id in ids:
        # One that another process drops meanwhile is left out, as one that is damaged.
        with contextlib.suppress(StorageError, OSError):
            # A release holds the rows of all that were made before it.
            if id not in facts:
                facts = {**_facts_in(file_of(home, id)), **facts}
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
    file = file_of(home, id)
    return KeptRelease(
        id=id,
        created_at=created_at,
        embedder=embedder,
        counts=counts,
        path=None if file == changes_file(home, id) else file,
        n_bytes=file.stat().st_size,
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


def release_before(home: Path, release: str) -> str | None:
    """Return the newest release that is older than ``release`` and was not withdrawn."""
    older = [id for id in release_ids(home) if id < release]
    return next((id for id in older if not _mark(home, id).exists()), None)


def is_rolled_back(home: Path, newest: str) -> bool:
    """Whether readers see another release than the newest because somebody went back to it."""
    return published_release(home) not in (None, newest) and newest in _names(home)


def rolled_back_from(home: Path) -> str | None:
    """Return the newest release if readers see an older one, else None.

    One that was killed as it was published is what readers see, and is not kept yet.
    """
    newest, published = max(_names(home), default=""), published_release(home)
    return newest if published and published < newest else None


_changing: ContextVar[frozenset[Path]] = ContextVar("changing_releases", default=frozenset())
"""The homes whose releases are changed here."""


@contextlib.contextmanager
def changing_releases(home: Path) -> Iterator[None]:
    """Wait until nobody else publishes, goes back or drops releases; keep others waiting meanwhile.

    Who does so already goes on. A long wait is logged. What killed processes have left is cleared
    away. Ask for nothing else that others may hold before this: those who have it may ask for the
    index. Raises StorageError where the home folder cannot be written in.
    """
    place, held = home.absolute(), _changing.get()
    if place in held:
        yield
        return
    with contextlib.ExitStack() as changing:
        with _writing(home):
            lock = FairLock(Home(home).release_lock)
            lock.take(when_long=lambda: _log_wait(home))
            changing.callback(lock.release)
        sweep(home)
        sweep(_folder(home))
        changing.callback(_changing.reset, _changing.set(held | {place}))
        yield


def _log_wait(home: Path) -> None:
    log.warning("waiting for another process to publish or go back to a release in %s", home)


def is_withdrawn(home: Path, release: str) -> bool:
    """Whether a release was rolled back, so that an older one is published."""
    return _mark(home, release).exists()


def put_back(home: Path, release: str) -> None:
    """Make a release that is kept whole what readers see, in one step; withdraw those after it.

    Call it while :func:`changing_releases`.
    """
    before = published_release(home) or ""
    with _writing(home):
        _mark(home, release).unlink(missing_ok=True)
        for skipped in _names(home):
            if release < skipped <= before:
                _mark(home, skipped).touch()
        _sync_names(home)
        if is_whole(home, release):
            _put_in_place(kept_file(home, release), Home(home).published)


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


def forget_files(home: Path, releases: Iterable[str]) -> None:
    """Remove the files of releases, all but vectors. Raises StorageError where that is forbidden.

    Call it while :func:`changing_releases`.
    """
    with _writing(home):
        # Oldest first: an older one may be kept as what differs from a newer one.
        for release in sorted(releases):
            for path in (kept_file(home, release), changes_file(home, release)):
                path.unlink(missing_ok=True)
            arrays_file(home, release).unlink(missing_ok=True)
            _mark(home, release).unlink(missing_ok=True)
        _sync_names(home)


def keep_only(home: Path, release: str) -> list[str]:
    """Remove the files of all releases but one, which is published; return the ids of the others.

    Raises StorageError where the folder cannot be written.
    """
    others = sorted(_names(home) - {release})
    forget_files(home, others)
    with _writing(home):
        drop_arrays(home, [release])
        for mark in _folder(home).glob(f"*{_WITHDRAWN}"):
            mark.unlink(missing_ok=True)
    return others


def kept_file(home: Path, release: str) -> Path:
    """Return where a release is kept under its own name, or would be."""
    return _folder(home) / f"{release}{_KEPT}"


def changes_file(home: Path, release: str) -> Path:
    """Return where a release is kept as what differs from a newer one, or would be."""
    return _folder(home) / f"{release}{_CHANGES}"


def is_whole(home: Path, release: str) -> bool:
    """Whether a release is kept as a file of its own."""
    return kept_file(home, release).is_file()


def whole_releases(home: Path) -> dict[str, Path]:
    """Return the files of the releases that are kept whole, by their ids."""
    return {path.stem: path for path in _folder(home).glob(f"*{_KEPT}")}


def changes_files(home: Path) -> dict[str, Path]:
    """Return the files of the releases that are kept as changes alone, by their ids."""
    paths = {path.stem: path for path in sorted(_folder(home).glob(f"*{_CHANGES}"))}
    return {release: path for release, path in paths.items() if not is_whole(home, release)}


def file_of(home: Path, release: str) -> Path:
    """Return the file that a release is kept in, which may hold no more than what differs."""
    paths = (kept_file(home, release), changes_file(home, release))
    return next((path for path in paths if path.is_file()), Home(home).published)


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


def _put_in_place(source: Path, target: Path) -> None:
    """Give a file a second name in one step; where the disk knows no links, a copy."""
    # Renaming one name of a file onto another of the same file does nothing.
    with replacing(target) as beside:
        link_or_copy(source, beside)


def _newest_in(path: Path) -> str | None:
    """Return the id of the release in a file."""
    facts = _facts_in(path)
    return max(facts, key=lambda release: (facts[release][0], release), default=None)


def _facts_in(path: Path) -> _Facts:
    """Return the rows of the releases in a file, which is read once: none is written twice."""
    with told_of_disk(f"cannot open {path}"):
        stat = path.stat()
    return _read_facts(_File(path, (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)))


@functools.lru_cache
def _read_facts(file: _File) -> _Facts:
    path = file.path
    with connect_published(path) as con, told_of_files(f"cannot read {path}"):
        result = con.execute(_FACTS)
        names = [column[0] for column in result.description or ()][3:]
        return {
            row[0]: (row[1].astimezone(UTC), row[2], dict(zip(names, row[3:], strict=True)))
            for row in result.fetchall()
        }


def _names(home: Path) -> set[str]:
    return {*whole_releases(home), *changes_files(home)}


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


def _writing(home: Path) -> AbstractContextManager[None]:
    return told_of_disk(f"cannot write in {home}")
