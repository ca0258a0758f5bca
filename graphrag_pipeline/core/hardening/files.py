"""Files that are there whole or not at all, also after a power cut.

A rename is one step for every reader, but not for a disk that loses its power: without syncing, the
new name may lead to an empty file, or the old one come back. So the file is synced before it gets
its name, and its folder after.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.hardening.temporary import sweep, temporary_folder

try:
    import fcntl
except ModuleNotFoundError:  # on Windows
    fcntl = None

PRIVATE = 0o700
# What file systems answer that know no syncing of folders, and folders that may not be read.
_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM}
_NOWHERE = Path(os.devnull, "temporary")
_NOBODY_WRITES = ~0o222
_IS_WINDOWS = os.name == "nt"
_LEAST_FREE = 1 << 20
_PRIMARY_CODE = 0xFF
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


def make_folder(folder: Path, mode: int = PRIVATE) -> None:
    """Make a folder with just these rights, whatever the umask; one that is there stays as it is.

    Folders above it that are missing are made as everybody makes them. A power cut takes none of
    them back. Raises OSError.
    """
    if folder.is_dir():
        return
    _make_plain_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode & PRIVATE)
        folder.chmod(mode)
        sync_folder(folder.parent)


def _make_plain_folder(folder: Path) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def temporary_place() -> Path:
    """Return the system's folder for temporary files. Raises StorageError where there is none."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise StorageError(
            "there is no folder for temporary files: name one that can be written in as TMPDIR"
        ) from error


def private_temporary() -> Path:
    """Return a folder for temporary files that nobody else may enter: one of ours for all.

    It is not there where the system's own folder cannot be written in, or is not there.
    """
    try:
        system = temporary_place()
    except StorageError:
        return _NOWHERE
    if os.name == "nt":
        return system
    place = system / f"graphrag-{os.geteuid()}"
    with contextlib.suppress(OSError):
        place.mkdir(PRIVATE)
    try:
        about = place.lstat()
    except OSError:
        return place
    ours = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    return place if ours and not about.st_mode & 0o077 else _another_temporary(system)


@functools.cache
def _another_temporary(system: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix="graphrag-", dir=system))


def make_private(file: Path) -> None:
    """Make a file, if it is not there, that its owner alone may read; close one that is open.

    A file of somebody else stays as it is. Raises OSError where it cannot be made.
    """
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        with contextlib.suppress(OSError):
            if file.stat().st_mode & 0o077:
                file.chmod(0o600)


@contextlib.contextmanager
def told_of_disk(what: str) -> Iterator[None]:
    """Raise StorageError, which begins with ``what``, where the system refuses a file."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}") from error


def is_disk_full(folder: Path, error: Exception) -> bool:
    """Whether an error in a folder is for want of room: SQLite has several words for that.

    To be asked before :func:`as_out_of_memory`, which guesses where memory is short as well.
    """
    if isinstance(error, sqlite3.Error):
        # What Python's module says by itself, as of a closed file, has no code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
        if code == sqlite3.SQLITE_FULL:
            return True
        if code & _PRIMARY_CODE != sqlite3.SQLITE_IOERR:
            return False
    elif not isinstance(error, OSError):
        return False
    try:
        return shutil.disk_usage(folder).free < _LEAST_FREE
    except OSError:
        return False


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield where to write a file that takes the place of another, for good, at the end.

    After an error what is at the place stays, and nothing is left beside it. Raises OSError.
    """
    with temporary_folder(path.parent, path.name) as folder:
        beside = folder / "file"
        yield beside
        replace_durably(beside, path)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name; where the disk knows no links, a copy. Raises OSError."""
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def write_beside(path: Path, data: bytes, *, is_private: bool = False) -> None:
    """Write a file so that it is there whole or not at all; a private one is its owner's alone.

    Raises StorageError when the disk is full or read-only.
    """
    with told_of_disk(f"cannot write {path}"):
        _make_plain_folder(path.parent)
        with replacing(path) as beside:
            if is_private:
                make_private(beside)
            beside.write_bytes(data)


def write_output(path: Path, data: bytes) -> None:
    """Write a file that a user has named, as :func:`write_beside` does.

    What a killed process has left of the same file is removed. Raises StorageError.
    """
    sweep(path.parent, path.name)
    write_beside(path, data)


def forbid_writing(path: Path) -> None:
    """Let nobody write to a file; who may read it stays as it was. Raises OSError."""
    path.chmod(path.stat().st_mode & _NOBODY_WRITES)


def replace_durably(beside: Path, path: Path) -> None:
    """Give a file or folder that was written beside its place this place, for good.

    Returns once neither a kill nor a power cut can take it back. Raises OSError.
    """
    if beside.is_dir():
        sync_tree(beside)
    else:
        sync_file(beside)
    beside.replace(path)
    sync_folder(path.parent)


def sync_tree(folder: Path) -> None:
    """Wait until a folder with all that is in it is on disk. Raises OSError."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            # Who else works in the folder may take a file away.
            with contextlib.suppress(FileNotFoundError):
                sync_file(Path(place, name))
        sync_folder(Path(place))


def sync_file(path: Path) -> None:
    """Wait until a file's content is on disk. Raises OSError."""
    handle = os.open(path, os.O_RDWR if _IS_WINDOWS else os.O_RDONLY)
    try:
        _flush(handle)
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    """Sync an open file. On macOS that reaches the disk's own cache only, unless asked for more."""
    if fcntl is not None and _FULL_SYNC is not None:
        # File systems of other machines may not know it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(handle, _FULL_SYNC)
            return
    os.fsync(handle)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk, where a system can. Raises OSError."""
    if _IS_WINDOWS:
        return
    try:
        sync_file(path)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS:
            raise
