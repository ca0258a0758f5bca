"""Packed files: an archive is a folder whose files are documents of their own; .gz, .bz2 and .xz
are one file.

Nothing is written to disk. What an archive unpacks to is bounded, those within it included.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.archives import SUSPECT_BYTES, SUSPECT_RATIO, unzipped
from graphrag_pipeline.ingest.reading.cleaning import one_line
from graphrag_pipeline.ingest.reading.files import read_file, refused
from graphrag_pipeline.ingest.reading.model import (
    FileFormat,
    ReadingOptions,
    ReadResult,
    SlackDay,
    Unreadable,
    joined,
)
from graphrag_pipeline.ingest.reading.records import unique_keys
from graphrag_pipeline.ingest.reading.slack import SlackLists
from graphrag_pipeline.store.ignoring import Selection
from graphrag_pipeline.store.scanning import printable

_MOST_FILES = 10_000
_MOST_DEPTH = 3
_MOST_TIMES = 4
_BLOCK = 1 << 16
_UTF8_NAME, _ENCRYPTED = 0x800, 1
_GZIP_HEAD, _GZIP_EXTRA, _GZIP_NAME = 10, 4, 8
_INSTEAD = "unpack it into the folder"
_FAULTS = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
)
_BY_DEFAULT = Selection()


@dataclass(frozen=True)
class _Member:
    """A file in an archive: its path, how many bytes it says it has, and what gives these."""

    path: str
    n_bytes: int
    unpack: Callable[[], bytes]
    is_encrypted: bool = False


def read_packed(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read the files of an archive, each as it would be read in a folder; a key is its path.

    Of gzip and its like that is the one file in it: ``notes.txt.gz`` is read as ``notes.txt``.
    """
    return _Unpacking(options).read(path, data, 0)


class _Unpacking:
    """Reads an archive with those that lie in it, within bounds that hold for all together."""

    def __init__(self, options: ReadingOptions) -> None:
        self._options = options
        self._bytes_left = _MOST_TIMES * options.max_file_bytes
        self._files_left = _MOST_FILES

    def read(self, path: Path, data: bytes, depth: int) -> ReadResult:
        """Return what a file gives. Raises Unreadable for an archive of which nothing is read."""
        suffix = path.suffix.lower()
        if depth > _MOST_DEPTH:
            raise Unreadable(f"it lies in more than {_MOST_DEPTH} archives: {_INSTEAD}")
        if suffix in _UNPACKING:
            inner = path.with_suffix(".tar" if suffix.startswith(".t") else "")
            if not inner.suffix and suffix == ".gz" and (name := _gzip_name(data)):
                inner = Path(name)
            unpacked = self._unpacked(data, _UNPACKING[suffix])
            is_archive = inner.suffix.lower() in _ARCHIVES
            # An archive in it, as in .tar.gz, is no deeper for that.
            return self.read(inner, unpacked, depth) if is_archive else self._read(inner, unpacked)
        members = _zip_members if suffix == ".zip" else _tar_members
        try:
            return self._read_members([*members(data)], len(data), depth)
        except _FAULTS as error:
            raise Unreadable(f"the archive is damaged ({one_line(str(error))[:200]})") from None

    def _read(self, path: Path, data: bytes, day: SlackDay | None = None) -> ReadResult:
        return read_file(path, replace(self._options, slack_day=day), data=data)

    def _read_members(self, members: list[_Member], n_packed: int, depth: int) -> ReadResult:
        if not members:
            raise Unreadable("the archive holds no files")
        if all(member.is_encrypted for member in members):
            raise Unreadable(f"encrypted: {_INSTEAD} with its password")
        self._require_bounded(members, n_packed)
        by_path, slack = {PurePosixPath(each.path): each for each in members}, SlackLists()

        def beside(path: PurePath) -> ReadResult:
            member = by_path.get(PurePosixPath(path))
            return self._read_member(member, depth) if member else ReadResult([], [])

        def read_whole(member: _Member) -> ReadResult:
            day = slack.day(PurePosixPath(member.path), beside)
            return self._read_member(member, depth, day).under(f"{member.path}/")

        read = joined([*map(read_whole, members)])
        keys = unique_keys(document.key for document in read.documents)
        unique = [replace(d, key=key) for d, key in zip(read.documents, keys, strict=True)]
        return ReadResult(unique, read.quarantined)

    def _read_member(self, member: _Member, depth: int, day: SlackDay | None = None) -> ReadResult:
        path = PurePosixPath(member.path)
        if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
            return refused("its name leads out of the archive")
        if member.is_encrypted:
            return refused(f"encrypted: {_INSTEAD} with its password")
        try:
            data = member.unpack()
            if path.suffix.lower() in _ARCHIVES:
                return self.read(Path(path.name), data, depth + 1)
        except Unreadable as error:
            return refused(str(error))
        except _FAULTS as error:
            return refused(f"it is damaged in the archive ({one_line(str(error))[:200]})")
        return self._read(Path(path.name), data, day)

    def _require_bounded(self, members: list[_Member], n_packed: int) -> None:
        n_bytes = sum(member.n_bytes for member in members)
        self._files_left -= len(members)
        self._bytes_left -= n_bytes
        if self._files_left < 0:
            raise Unreadable(f"the archive has more than {_MOST_FILES:,} files: {_INSTEAD}")
        _require_likely(n_bytes, n_packed)
        if self._bytes_left < 0:
            raise Unreadable(
                f"the archive unpacks to more than {_MOST_TIMES} times what "
                f"{self._options.allowed}: {_INSTEAD}"
            )

    def _unpacked(self, data: bytes, opened: Callable[[io.BytesIO], Any]) -> bytes:
        most = min(self._bytes_left, self._options.max_file_bytes)
        blocks: list[bytes] = []
        n_bytes = 0
        try:
            with opened(io.BytesIO(data)) as packed:
                while block := packed.read(_BLOCK):
                    blocks.append(block)
                    n_bytes += len(block)
                    _require_likely(n_bytes, len(data))
                    if n_bytes > most:
                        raise Unreadable(f"the file unpacks to more than {self._options.allowed}")
        except _FAULTS as error:
            raise Unreadable(f"the file is damaged ({one_line(str(error))[:200]})") from None
        self._bytes_left -= n_bytes
        return b"".join(blocks)


def _require_likely(n_bytes: int, n_packed: int) -> None:
    if n_bytes > SUSPECT_BYTES and n_bytes > SUSPECT_RATIO * n_packed:
        raise Unreadable(f"the archive unpacks to {n_bytes:,} bytes from {n_packed:,}: a bomb")


def _gzip_name(data: bytes) -> str:
    """Return the name that a packed file had, "" where it is not said or would lead elsewhere."""
    if len(data) < _GZIP_HEAD or data[3] & (_GZIP_EXTRA | _GZIP_NAME) != _GZIP_NAME:
        return ""
    name = data[_GZIP_HEAD : _GZIP_HEAD + 255].partition(b"\0")[0]
    return one_line(name.decode("latin-1").replace("\\", "/").rpartition("/")[2])


def _zip_members(data: bytes) -> Iterator[_Member]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    # Of several parts of one name the last is what a program that unpacks leaves.
    for part in {part.filename: part for part in archive.infolist()}.values():
        if not part.is_dir() and (path := _wanted(_zip_name(part))):
            unpack = functools.partial(unzipped, archive, part)
            yield _Member(path, part.file_size, unpack, bool(part.flag_bits & _ENCRYPTED))


def _zip_name(part: zipfile.ZipInfo) -> str:
    """Return a name, which some programs write as UTF-8 without saying so."""
    name = part.filename
    if not part.flag_bits & _UTF8_NAME and not name.isascii():
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _tar_members(data: bytes) -> Iterator[_Member]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        parts = {part.name: part for part in archive.getmembers()}
    for part in parts.values():
        # What a sparse file is, its bytes in the archive do not bound.
        if part.isreg() and not part.issparse() and (path := _wanted(printable(part.name))):
            place = slice(part.offset_data, part.offset_data + part.size)
            yield _Member(path, part.size, functools.partial(data.__getitem__, place))


def _wanted(name: str) -> str:
    """Return the path of a file on one line; "" for what is left out of folders by default."""
    path = one_line(name).removeprefix("./")
    parts = path.split("/")
    for depth, part in enumerate(parts, 1):
        is_folder = depth < len(parts)
        if part != ".." and _BY_DEFAULT.why_not(
            part, "/".join(parts[:depth]), (), is_folder=is_folder
        ):
            return ""
    return path


_UNPACKING: Mapping[str, Callable[[io.BytesIO], Any]] = {
    **dict.fromkeys((".gz", ".tgz"), gzip.open),
    **dict.fromkeys((".bz2", ".tbz2"), bz2.open),
    **dict.fromkeys((".xz", ".txz"), lzma.open),
}
_ARCHIVES = frozenset((".zip", ".tar", *_UNPACKING))
PACKED = FileFormat(read_packed, versions.WITHIN)
