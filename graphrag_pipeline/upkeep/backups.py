"""Backup and restore: one archive of all that an index keeps, made while runs go on.

Of ``index.duckdb`` a copy is made in the moment in which nobody else uses it. In the same moment
every file that is never changed once it is there (releases, vectors, manifests) gets a second name
in a folder of its own, so that whatever a run removes meanwhile is still there. What a run was
about to write then (versions of vectors that the copy does not know, tags of a release that was not
put in place) is left out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import duckdb

from graphrag_pipeline.core.errors import InputError, StorageError, first_line
from graphrag_pipeline.core.hardening.files import (
    PRIVATE,
    forbid_writing,
    make_private,
    replace_durably,
    replacing,
)
from graphrag_pipeline.core.hardening.temporary import sweep, temporary_folder
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.releases.kept_releases import changes_files, published_release
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.vector_tables import noted_versions
from graphrag_pipeline.upkeep.archives import (
    Contents,
    Member,
    link_or_copy,
    opened,
    sha256_of,
    write_archive,
)
from graphrag_pipeline.upkeep.home_files import HOME_FILES, HomeFile, copy_sqlite, files
from graphrag_pipeline.upkeep.purging import between_purges
from graphrag_pipeline.upkeep.release_files import release_paths, versions_named
from graphrag_pipeline.upkeep.vector_tables import reading_vectors
from graphrag_pipeline.upkeep.whole_files import check_whole

_PASSED_OVER = pattern_of(r"\.(tmp|lock|queue|pid|packed|wal|new)$|-(wal|shm|journal)$|\.damaged-")
_MANIFEST = pattern_of(r"(\d+)\.manifest")
_LARGEST = 2**64 - 1
_HINT = "latest_version_hint.json"
_SECRET = pattern_of(
    r"(?im)^\s*[\w.\-\"']*(api_?key|secret|token|password)[\w.\-\"']*\s*=\s*[\"'][^\"']|://[^/\s:]+:[^@\s]+@"
)
_TEMPORARY = "backup"
_NEEDED_SPARE = 64 * 2**20


@dataclass(frozen=True)
class Backup:
    """A backup that was made: ``release`` is what is published in it, ``size`` the archive's.

    ``left_out`` are files that hold what looks like a key, ``document_indexes`` how many indexes of
    single documents are not in it, since experiments make them again.
    """

    archive: Path
    release: str | None
    n_files: int
    n_bytes: int
    size: int
    left_out: tuple[str, ...] = ()
    document_indexes: int = 0


@dataclass(frozen=True)
class Restored:
    """The result of a restore: what came back, and where."""

    home: Path
    release: str | None
    n_files: int
    n_bytes: int
    made_at: str


def back_up(workspace: Workspace, archive: Path, *, with_history: bool = False) -> Backup:
    """Write all that an index keeps to one archive, consistent, while runs go on.

    ``with_history`` takes in Dagster's runs. Keys are in none of it: settings with what looks like
    one are left out, and said so.

    Raises InputError where there is no index, or a file where the archive is to be, or that is in
    the index itself, and StorageError where the disk is full: nothing is left behind.
    """
    home = workspace.home
    if not workspace.exists:
        raise InputError(f"there is no index in {home} to back up")
    if archive.exists() or archive.is_symlink():
        raise InputError(f"{archive} is there already: name another file, or remove it")
    if archive.resolve().is_relative_to(home.resolve()):
        raise InputError(
            f"{archive} would lie in the index itself, where forget and purge do not look: name a "
            "file outside of it"
        )
    if not archive.parent.is_dir():
        raise InputError(f"{archive.parent} is not a folder: make it, or name another")
    sweep(home, _TEMPORARY)
    with _told_of(archive, home), temporary_folder(home, _TEMPORARY) as folder:
        left_out = _gather(workspace, folder, with_history=with_history)
        contents = _contents(folder)
        check_whole(folder, {member.name: member.sha256 for member in contents.members})
        sweep(archive.parent, archive.name)
        with replacing(archive) as beside:
            make_private(beside)
            with beside.open("wb") as file:
                write_archive(file, folder, contents)
        return Backup(
            archive,
            contents.release,
            len(contents.members),
            contents.n_bytes,
            archive.stat().st_size,
            tuple(left_out),
            len(Home(home).indexes_of_documents()),
        )


def restore(archive: Path, home: Path, mode: int = PRIVATE) -> Restored:
    """Restore an archive to a home folder that is empty, or not there; ``mode`` are its rights.

    All is written beside it, compared with its hashes and renamed: the home is there whole or not
    at all. Raises InputError where the folder is not empty or the file is no backup, and
    StorageError for one that is damaged, or where there is no room.
    """
    if home.is_symlink() or (home.exists() and not home.is_dir()):
        raise InputError(f"{home} is not a folder: name one that is empty, or not there")
    if home.is_dir() and any(home.iterdir()):
        raise _not_empty(home)
    with opened(archive) as source, _told_of(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        _check_room(home.parent, source.contents)
        sweep(home.parent, home.name)
        with temporary_folder(home.parent, home.name) as place:
            folder = place / "home"
            folder.mkdir(PRIVATE)
            source.unpack(folder)
            _protect(folder)
            folder.chmod(mode)
            try:
                replace_durably(folder, home)
            except OSError as error:
                # Another was restored there meanwhile.
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise _not_empty(home) from error
                raise
        contents = source.contents
    return Restored(
        home, contents.release, len(contents.members), contents.n_bytes, contents.made_at
    )


def _not_empty(home: Path) -> InputError:
    return InputError(
        f"{home} is not empty: a backup is restored to an empty folder only; name another by "
        "--home, or move this one away"
    )


def _gather(workspace: Workspace, folder: Path, *, with_history: bool) -> list[str]:
    """Put all files of a backup below a folder; return the names of those that were left out."""
    home = workspace.home
    # Else the archive would hold what is being removed.
    with between_purges(workspace):
        workspace.store.copy_to(
            folder / "index.duckdb", meanwhile=lambda: _link_files(home, folder)
        )
    if lacking := _make_fit(folder):
        raise StorageError(
            f"nothing was backed up: version {lacking[1]} of vector table {lacking[0]} is not "
            "there: run graphrag-pipeline check"
        )
    _copy_files(home, folder)
    if with_history:
        _copy_history(Home(home).dagster, folder / "dagster")
    settings = folder / "graphrag.toml"
    if settings.is_file() and _SECRET.search(settings.read_text("utf-8", "replace")):
        settings.unlink()
        return [settings.name]
    return []


def _link_files(home: Path, folder: Path) -> None:
    """Give all files that are never changed a second name below a folder."""
    for name, _ in _backed_up(is_linked=True):
        for path in _files_of(home / name):
            # LanceDB may have cleaned up meanwhile; what is needed is looked for in the end.
            with contextlib.suppress(FileNotFoundError):
                _put(path, folder / path.relative_to(home), link_or_copy)


def _copy_files(home: Path, folder: Path) -> None:
    """Copy the files of other parts that these change where they stand."""
    for name, file in _backed_up(is_linked=False):
        if file.copy is not None:
            if (home / name).exists():
                file.copy(home / name, folder / name)
        elif name not in HOME_FILES.own:
            for path in _files_of(home / name):
                _put(path, folder / path.relative_to(home), shutil.copyfile)


def _backed_up(*, is_linked: bool) -> list[tuple[str, HomeFile]]:
    return [
        (name, file)
        for name, file in files().items()
        if file.in_backup and file.is_linked is is_linked
    ]


def _put(path: Path, target: Path, by: Callable[[Path, Path], object]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    by(path, target)


def _files_of(place: Path) -> Iterator[Path]:
    """Yield a file, or those of a folder, if it is there."""
    yield from [place] if place.is_file() else _files_below(place)


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _PASSED_OVER.search(name)]
        for name in names:
            path = Path(place, name)
            if not _PASSED_OVER.search(name) and path.is_file() and not path.is_symlink():
                yield path


def _make_fit(folder: Path) -> tuple[str, int] | None:
    """Leave out what the copy of the index does not know; return what it knows and is not there."""
    kept = release_paths(folder)
    with duckdb.connect(str(folder / "index.duckdb"), read_only=True) as con:
        versions = noted_versions(con)
    for name, last in versions.items():
        _drop_versions_after(folder / "vectors" / f"{name}.lance", last)
    for tag in (folder / "vectors").glob("*.lance/_refs/tags/*.json"):
        if tag.stem not in {*kept, *changes_files(folder)}:
            tag.unlink()
    return _lacking_vectors(folder, versions)


def _drop_versions_after(table: Path, last: int) -> None:
    """Make a version of a LanceDB table the last, in a copy of its folder."""
    for manifest in (table / "_versions").glob("*.manifest"):
        named = _MANIFEST.fullmatch(manifest.name)
        if named is None:
            continue
        number = int(named[1])
        if last < min(number, _LARGEST - number):
            manifest.unlink()
            (table / "_versions" / _HINT).unlink(missing_ok=True)


def _lacking_vectors(folder: Path, versions: Mapping[str, int]) -> tuple[str, int] | None:
    """Return a version of vectors that the index or a release names and that cannot be opened."""
    named = set(versions.items()).union(*(each.items() for each in versions_named(folder).values()))
    vectors = VectorStore(folder / "vectors")
    for table, number in sorted(named):
        try:
            with reading_vectors():
                vectors.at({table: number}).count(table)
        except StorageError:
            return table, number
    return None


def _copy_history(source: Path, target: Path) -> None:
    for path in _files_below(source):
        relative = path.relative_to(source)
        if path.suffix in (".db", ".sqlite"):
            _put(path, target / relative, copy_sqlite)
        elif relative.parts[0] not in ("alive", "compute_logs"):
            _put(path, target / relative, shutil.copyfile)


def _contents(folder: Path) -> Contents:
    """List the files below a folder; of one with two names the bytes are stored once."""
    first: dict[int, Member] = {}
    members = []
    for path in sorted(_files_below(folder)):
        name, stat = path.relative_to(folder).as_posix(), path.stat()
        before = first.get(stat.st_ino)
        member = Member(
            name=name,
            size=stat.st_size,
            sha256=before.sha256 if before else sha256_of(path),
            same_as=before.name if before else None,
        )
        first.setdefault(stat.st_ino, member)
        members.append(member)
    return Contents(
        made_by=version("graphrag-pipeline"),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        release=published_release(folder),
        members=members,
    )


def _check_room(folder: Path, contents: Contents) -> None:
    free = shutil.disk_usage(folder).free
    needed = contents.n_bytes + _NEEDED_SPARE
    if needed > free:
        raise StorageError(
            f"there is no room in {folder}: the backup needs {needed / 1e6:,.0f} MB, and "
            f"{free / 1e6:,.0f} MB are free"
        )


def _protect(folder: Path) -> None:
    """Let nobody write to releases, and nobody else read what was paid for, as it was."""
    for path in (*release_paths(folder).values(), *changes_files(folder).values()):
        forbid_writing(path)
    if Home(folder).calls.is_file():
        make_private(Home(folder).calls)


@contextlib.contextmanager
def _told_of(target: Path, *others: Path) -> Iterator[None]:
    """Raise StorageError where a disk is full, or may not be written to: which of the places."""
    try:
        yield
    except OSError as error:
        is_full = error.errno == errno.ENOSPC or "No space left" in str(error)
        reason = "the disk is full" if is_full else error.strerror or first_line(error)
        refused = Path(str(error.filename or ""))
        place = next((other for other in others if refused.is_relative_to(other)), target)
        raise StorageError(f"cannot write {place}: {reason}") from error
