"""The archive of a backup: what is in it, and what may be in one that somebody else has made.

It is a tar file, compressed with zstd, whose first member says what the others are: their names,
sizes and SHA-256. Nothing is unpacked that is not listed there, or that would lie anywhere else
than the files of an index do.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.hardening.files import link_or_copy
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.upkeep.home_files import HomeFile, files

FORMAT = 1
CONTENTS = "backup.json"
_MOST_CONTENTS = 64 * 2**20
_BLOCK = 1 << 20
_BUFFER = 1 << 16
_HEADERS = 1 << 18
_SHA256 = pattern_of(r"[0-9a-f]{64}")
_READABLE = 0o644


@dataclass(frozen=True, kw_only=True)
class Member:
    """A file of a backup. ``same_as`` names the member whose bytes it has, if it is not stored."""

    name: str
    size: int
    sha256: str
    same_as: str | None = None


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Contents of a backup, and what made it."""

    made_by: str
    made_at: str
    release: str | None
    members: Sequence[Member]
    format: int = FORMAT

    @property
    def n_bytes(self) -> int:
        """Bytes of all files, unpacked; those with two names count once."""
        return sum(member.size for member in self.members if member.same_as is None)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_archive(file: IO[bytes], folder: Path, contents: Contents) -> None:
    """Write an archive of files below a folder. Raises OSError when the disk is full."""
    import pyarrow as pa

    with (
        pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd") as stream,
        tarfile.open(
            fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_BUFFER
        ) as archive,
    ):
        listed = json.dumps(asdict(contents), indent=1).encode()
        archive.addfile(_header(CONTENTS, len(listed)), io.BytesIO(listed))
        for member in contents.members:
            if member.same_as is None:
                with (folder / member.name).open("rb") as content:
                    archive.addfile(_header(member.name, member.size), content)


class Archive:
    """A backup that is read from its beginning to its end, once.

    Raises InputError for what is no backup, and StorageError for one that is damaged, with the name
    of the member at which that shows.
    """

    def __init__(self, path: Path, archive: tarfile.TarFile, meter: _Metered) -> None:
        self._path = path
        self._archive = archive
        self._meter = meter
        self._at = CONTENTS
        self.contents = self._read_contents()

    def unpack(self, folder: Path) -> None:
        """Write all files below a folder, each compared with its hash."""
        expected = {m.name: m for m in self.contents.members if m.same_as is None}
        for header in self._headers():
            member = expected.pop(header.name, None)
            if member is None:
                raise self._damaged(f"{header.name!r} is not in its list, or is there twice")
            self._at = member.name
            if not header.isreg() or header.issparse() or header.size != member.size:
                raise self._damaged(f"{member.name} is not the file that its list says")
            self._unpack_member(header, folder / member.name, member)
        if expected:
            raise self._damaged(f"{min(expected)} is missing")
        for member in self.contents.members:
            if member.same_as is not None:
                (folder / member.name).parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(folder / member.same_as, folder / member.name)

    def _unpack_member(self, header: tarfile.TarInfo, target: Path, member: Member) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        source = self._archive.extractfile(header)
        assert source is not None
        self._meter.allow(member.size)
        with target.open("xb") as file:
            while block := self._read(source):
                digest.update(block)
                file.write(block)
            if file.tell() != member.size:
                raise self._damaged(f"{member.name} is cut off")
        if digest.hexdigest() != member.sha256:
            raise self._damaged(f"{member.name} is not what was written")

    def _headers(self) -> Iterator[tarfile.TarInfo]:
        while True:
            self._meter.allow(0)
            try:
                header = self._archive.next()
            except _UNREADABLE as error:
                raise self._damaged(f"it ends, or is broken, after {self._at}") from error
            if header is None:
                return
            yield header

    def _read(self, source: IO[bytes]) -> bytes:
        try:
            return source.read(_BLOCK)
        except _UNREADABLE as error:
            raise self._damaged(f"{self._at} cannot be read to its end") from error

    def _read_contents(self) -> Contents:
        header = next(self._headers(), None)
        if header is None or header.name != CONTENTS or not header.isreg():
            raise InputError(f"{self._path} is no backup of this program")
        if header.size > _MOST_CONTENTS:
            raise self._damaged(f"{CONTENTS} is {header.size:,} bytes long")
        source = self._archive.extractfile(header)
        assert source is not None
        self._meter.allow(header.size)
        try:
            raw = json.loads(b"".join(iter(lambda: self._read(source), b"")))
            version = raw["format"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._damaged(f"{CONTENTS} cannot be read") from error
        if version != FORMAT:
            raise InputError(
                f"{self._path} is of format {str(version)[:20]}, and this program knows "
                f"{FORMAT}: use the program that made it, or a newer one"
            )
        try:
            return _checked(raw)
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(f"{CONTENTS}: {error}") from error

    def _damaged(self, what: str) -> StorageError:
        return StorageError(f"the backup {self._path} is damaged: {what}; nothing was restored")


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive. Raises what :class:`Archive` raises."""
    import pyarrow as pa

    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error.strerror or error}") from error
    with file:
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
            meter = _Metered(stream)
            limited = cast("IO[bytes]", meter)
            archive = tarfile.open(fileobj=limited, mode="r|", bufsize=_BUFFER)  # noqa: SIM115
        except _UNREADABLE as error:
            raise InputError(f"{path} is no backup of this program") from error
        with archive:
            yield Archive(path, archive, meter)


class _Metered:
    """A stream that gives no more than was allowed: a header may claim to be of any length."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.allow(0)

    def allow(self, n_bytes: int) -> None:
        """Let so many bytes be read from here on, and some for headers."""
        self._left = n_bytes + _HEADERS

    def read(self, n_bytes: int) -> bytes:
        """Return up to so many bytes. Raises OSError where no more are allowed."""
        data = self._stream.read(n_bytes)
        self._left -= len(data)
        if self._left < 0:
            raise OSError("longer than it may be")
        return data


_UNREADABLE = (tarfile.TarError, OSError, EOFError, ValueError)


def _checked(raw: Mapping[str, Any]) -> Contents:
    """Return the list of a backup. Raises ValueError where something in it cannot be."""
    members = [
        Member(
            name=str(each["name"]),
            size=int(each["size"]),
            sha256=str(each["sha256"]),
            same_as=each["same_as"],
        )
        for each in raw["members"]
    ]
    stored = {member.name for member in members if member.same_as is None}
    if len({member.name for member in members}) != len(members):
        raise ValueError("a name stands there twice")
    known_files = files()
    for member in members:
        if not _is_allowed(member.name, known_files):
            raise ValueError(f"{member.name[:100]!r} is no file of an index, nor of a package")
        if member.size < 0 or not _SHA256.fullmatch(member.sha256):
            raise ValueError(f"size or hash of {member.name} is none")
        if member.same_as is not None and member.same_as not in stored:
            raise ValueError(f"{member.name} is the same as a file that is not there")
    return Contents(
        made_by=str(raw["made_by"]),
        made_at=str(raw["made_at"]),
        release=raw["release"],
        members=members,
    )


def _is_allowed(name: str, files: Mapping[str, HomeFile]) -> bool:
    """Whether a name is a path of a file of an index, and leads nowhere else."""
    parts = name.split("/")
    is_plain = all(part not in ("", ".", "..") for part in parts)
    if not is_plain or not name.isprintable() or "\\" in name or ":" in parts[0]:
        return False
    file = files.get(parts[0])
    if file is None or not file.in_backup or file.is_folder is not (len(parts) > 1):
        return False
    return PurePosixPath(name).as_posix() == name


def _header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mode = size, _READABLE
    return header
