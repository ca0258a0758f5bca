"""Files that several machines share: under a folder, or in a bucket of an S3-compatible store."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.core.hardening.files import make_folder

if TYPE_CHECKING:
    from pyarrow import fs

T = TypeVar("T")
log = logging.getLogger("graphrag_pipeline")

PATIENCE_SECONDS = 120.0
"""How long a store that does not answer is asked again."""
_CONNECT_SECONDS = 5.0
_REQUEST_SECONDS = 30.0
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_BLOCK = 1 << 22
_SCHEMES = ("s3", "file")
_NEW = ".new-"


class MissingObjectError(StorageError):
    """There is no file of this name, or it is not what it is said to be."""


class ObjectStore:
    """The files under a url, ``s3://bucket/prefix`` or ``file:///folder``, by relative names.

    A file is there whole or not at all; two writers of one name leave one of the two. A store that
    does not answer is asked again for ``patience`` seconds, then StorageError is raised. Keys and
    the endpoint of S3 come from the environment, as for other tools (``AWS_ACCESS_KEY_ID``,
    ``AWS_SECRET_ACCESS_KEY``, ``AWS_ENDPOINT_URL``, ``AWS_REGION``).
    """

    def __init__(self, url: str, patience: float = PATIENCE_SECONDS) -> None:
        self.url = url.rstrip("/")
        self._patience = patience
        parts = urlsplit(self.url)
        if parts.scheme not in _SCHEMES or (parts.scheme == "s3") != bool(parts.netloc):
            raise ConfigError(
                f"storage.url = {_without_keys(url)!r}: write s3://bucket/prefix or file:///folder"
            )
        if "@" in parts.netloc:
            raise ConfigError("storage.url holds a key: put it in AWS_ACCESS_KEY_ID and the like")
        self._is_s3 = parts.scheme == "s3"
        self._root = f"{parts.netloc}{parts.path}" if self._is_s3 else unquote(parts.path)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file. Raises MissingObjectError where there is none."""

        def read() -> bytes:
            with self._files.open_input_stream(self._path(name)) as stream:
                return stream.read()

        return self._patiently("read", name, read)

    def write(self, name: str, data: bytes) -> None:
        """Write a file, in place of one of its name."""

        def write(path: str) -> None:
            with self._files.open_output_stream(path) as stream:
                stream.write(data)

        self._put(name, write)

    def upload(self, source: Path, name: str) -> str:
        """Copy a file of this machine; return the SHA-256 of what was sent."""
        digest = ""

        def send(path: str) -> None:
            nonlocal digest
            hashed = hashlib.sha256()
            with source.open("rb") as file, self._files.open_output_stream(path) as stream:
                while block := file.read(_BLOCK):
                    hashed.update(block)
                    stream.write(block)
            digest = hashed.hexdigest()

        self._put(name, send)
        return digest

    def download(self, name: str, target: Path, sha256: str | None = None) -> None:
        """Copy a file to this machine.

        Raises MissingObjectError where there is none, or another than that of ``sha256``: then
        nothing is left at ``target``.
        """

        def fetch() -> str:
            hashed = hashlib.sha256()
            with self._files.open_input_stream(self._path(name)) as stream, beside.open("wb") as f:
                while block := stream.read(_BLOCK):
                    hashed.update(block)
                    f.write(block)
            return hashed.hexdigest()

        beside = target.with_name(f"{target.name}{_NEW}{uuid.uuid4().hex}")
        try:
            found = self._patiently("read", name, fetch)
            if sha256 is not None and found != sha256:
                raise MissingObjectError(
                    f"{self._shown(name)} is not the file that was written there: its SHA-256 "
                    "is another"
                )
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of all files under a folder, by name; none where it is not."""
        from pyarrow import fs

        def look() -> dict[str, int]:
            selector = fs.FileSelector(self._path(folder), allow_not_found=True, recursive=True)
            return {
                info.path.removeprefix(f"{self._root}/"): info.size
                for info in self._files.get_file_info(selector)
                if info.is_file and _NEW not in info.base_name
            }

        return self._patiently("list", folder, look)

    def ages(self, folder: str) -> dict[str, float]:
        """Return how many seconds ago each file under a folder was written, by name."""
        from pyarrow import fs

        def look() -> dict[str, float]:
            selector = fs.FileSelector(self._path(folder), allow_not_found=True, recursive=True)
            now = time.time()
            return {
                info.path.removeprefix(f"{self._root}/"): now - info.mtime.timestamp()
                for info in self._files.get_file_info(selector)
                if info.is_file
            }

        return self._patiently("list", folder, look)

    def drop(self, name: str) -> None:
        """Remove a file, if it is there."""

        def drop() -> None:
            path = self._path(name)
            if self._files.get_file_info(path).is_file:
                self._files.delete_file(path)

        self._patiently("remove", name, drop)

    def check(self) -> None:
        """Raise StorageError, at once, where the store cannot be reached or has no such bucket."""

        def look() -> None:
            from pyarrow import fs

            if not self._is_s3:
                make_folder(Path(self._root))
            bucket = self._root.split("/", 1)[0] if self._is_s3 else self._root
            if self._files.get_file_info(bucket).type == fs.FileType.NotFound:
                raise FileNotFoundError("there is no such bucket")

        try:
            look()
        except OSError as error:
            raise self._failure("use", "", error) from None

    @functools.cached_property
    def _files(self) -> fs.FileSystem:
        from pyarrow import fs

        if not self._is_s3:
            return fs.LocalFileSystem()
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        return fs.S3FileSystem(
            endpoint_override=endpoint or None,
            region=region or ("us-east-1" if endpoint else None),
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=_REQUEST_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=2),
        )

    def _put(self, name: str, write: Callable[[str], None]) -> None:
        """Call ``write`` with where to; a folder's file is renamed into place when it is whole."""
        path = self._path(name)

        def put() -> None:
            if self._is_s3:
                write(path)
                return
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            beside = f"{path}{_NEW}{uuid.uuid4().hex}"
            try:
                write(beside)
                Path(beside).replace(path)
            finally:
                Path(beside).unlink(missing_ok=True)

        self._patiently("write", name, put)

    def _patiently(self, what: str, name: str, work: Callable[[], T]) -> T:
        last = time.monotonic() + self._patience
        for pause in _pauses():
            try:
                return work()
            except FileNotFoundError:
                raise MissingObjectError(f"there is no {self._shown(name)}") from None
            except OSError as error:
                if not self._is_s3 or _is_refusal(error) or time.monotonic() + pause > last:
                    raise self._failure(what, name, error) from None
                log.info("cannot %s %s, asking again: %s", what, self._shown(name), _line(error))
                time.sleep(pause)
        raise AssertionError

    def _failure(self, what: str, name: str, error: OSError) -> StorageError:
        advice = (
            "is it there, and do AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL fit?"
            if self._is_s3
            else "is its disk there, and not full?"
        )
        return StorageError(f"cannot {what} {self._shown(name)}: {_line(error)}; {advice}")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _shown(self, name: str) -> str:
        return f"{self.url}/{name}" if name else self.url


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _is_refusal(error: OSError) -> bool:
    """Whether asking again is in vain."""
    text = str(error)
    return isinstance(error, PermissionError) or "ACCESS_DENIED" in text or "NO_SUCH_BUCKET" in text


def _line(error: OSError) -> str:
    said = (error.strerror or str(error)).splitlines()[0]
    return said.partition("; Details: ")[0][:200]


def _without_keys(url: str) -> str:
    scheme, found, rest = url.partition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}"
