"""Batches: what changed in a folder since the last look, written down once and never altered.

A batch is the partition of ingestion. Its manifest is a JSON file in ``<home>/batches``; the
manifests, read in order, say what the corpus is (a fold), and nothing else does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from graphrag_pipeline.core.errors import InputError, RemovalError, StorageError
from graphrag_pipeline.core.files import write_beside
from graphrag_pipeline.core.locks import locked
from graphrag_pipeline.core.settings import BatchSettings
from graphrag_pipeline.store.ignoring import Selection
from graphrag_pipeline.store.scanning import LeftOut, Scan, scan_folder
from graphrag_pipeline.store.snapshots import (
    SITES,
    address_of,
    file_of,
    is_address,
    snapshot_folder,
)
from graphrag_pipeline.store.sources import (
    ACTIONS,
    Source,
    SourceChange,
    apply_changes,
    is_import,
    with_names,
)

_BLOCK = 1 << 20
_FEW = 9
_KEY_TIME = "%Y%m%dT%H%M%S%f"


@dataclass(frozen=True)
class Batch:
    """A manifest: the changes of one folder ``root`` that are indexed together."""

    key: str
    created_at: datetime
    root: str
    changes: tuple[SourceChange, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of changes by action."""
        return {name: sum(c.action == name for c in self.changes) for name in ACTIONS}


@dataclass(frozen=True)
class Look:
    """What a look into a folder shows: the changes, and what is left out of it by which rule."""

    changes: tuple[SourceChange, ...]
    left_out: tuple[LeftOut, ...]


class BatchLog:
    """The manifests of one home folder."""

    def __init__(self, home: Path, selection: Selection | None = None) -> None:
        self.home = home
        self.folder = home / "batches"
        self.selection = selection or Selection()

    def batches(self) -> list[Batch]:
        """Return every batch, oldest first."""
        return [_read_manifest(path) for path in sorted(self.folder.glob("*.json"))]

    def get(self, key: str) -> Batch:
        """Return one batch. Raises InputError if there is no such batch."""
        path = self.folder / f"{key}.json"
        if "/" in key or not path.is_file():
            raise InputError(f"there is no batch {key!r} in {self.folder}")
        return _read_manifest(path)

    def sources(self) -> dict[str, Source]:
        """Return the present sources by uri: the fold of all manifests."""
        present: dict[str, Source] = {}
        for batch in self.batches():
            apply_changes(present, batch.changes, batch=batch.key, root=batch.root)
        return present

    def root_name(self, folder: Path) -> str:
        """Return how a folder is named in uris: relative to the home's parent, or absolute.

        The snapshot of web pages is named ``SITES``, and the uris of its files are addresses.
        """
        resolved = folder.expanduser().resolve()
        if resolved == snapshot_folder(self.home.resolve()):
            return SITES
        project = self.home.resolve().parent
        inside = resolved.is_relative_to(project)
        return _printable((resolved.relative_to(project) if inside else resolved).as_posix())

    def path_of(self, uri: str) -> Path:
        """Return where a source's file is."""
        if is_address(uri):
            return file_of(self.home, uri)
        path = self.home.parent / uri
        return path if path.exists() else self.home.parent / _unprintable(uri)

    def cut(
        self,
        folder: Path,
        limits: BatchSettings,
        *,
        max_bytes: int,
        settle_seconds: float = 0,
        remove_all: bool = False,
    ) -> list[Batch]:
        """Compare a folder with the corpus and write a manifest for what differs.

        Files changed in the last ``settle_seconds`` are left for the next look; files over
        ``max_bytes`` are listed but not read. Two processes at once never list a change twice.
        Raises InputError if the folder cannot be read, StorageError if a manifest cannot be
        written. Unless ``remove_all``, raises RemovalError, and writes nothing, where all documents
        of the folder are gone, or more of many than ``limits.max_removed_share``.
        """
        root = self.root_name(folder)
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: name one that holds your documents")
        with self._lock():
            sources = self.sources()
            scan = scan_folder(folder, self.home, self._selection(root))
            known = _known(sources, root)
            seen = _changes(scan, folder, root, known, max_bytes, settle_seconds)
            changes = with_names(seen, sources, root)
            question = _ask_about_removals(folder, root, sources, changes, limits)
            if question and not remove_all:
                raise RemovalError(question)
            return [self._write(root, part) for part in _parts(changes, limits)]

    def look(self, folder: Path, *, max_bytes: int, settle_seconds: float = 0) -> Look:
        """Return what `cut` would list, and what is left out, without writing anything.

        Raises InputError if the folder cannot be read.
        """
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: name one that holds your documents")
        root = self.root_name(folder)
        sources = self.sources()
        scan = scan_folder(folder, self.home, self._selection(root))
        changes = _changes(scan, folder, root, _known(sources, root), max_bytes, settle_seconds)
        return Look(tuple(with_names(changes, sources, root)), tuple(scan.left_out))

    def question(
        self, folder: Path, changes: Sequence[SourceChange], limits: BatchSettings
    ) -> str | None:
        """Return what `cut` would ask before it lists these changes: whether files are to go."""
        root = self.root_name(folder)
        return _ask_about_removals(folder, root, self.sources(), changes, limits)

    def _selection(self, root: str) -> Selection:
        """Return which files of a folder are documents; of the snapshot of web pages all are."""
        return Selection(default_excludes=False) if root == SITES else self.selection

    def save(self, batch: Batch) -> None:
        """Write a batch's manifest. Raises StorageError when it cannot be written."""
        text = json.dumps({**asdict(batch), "created_at": batch.created_at.isoformat()}, indent=1)
        write_beside(self.folder / f"{batch.key}.json", text.encode())

    def _write(self, root: str, changes: Sequence[SourceChange]) -> Batch:
        batch = make_batch(root, changes, self._earliest_time())
        self.save(batch)
        return batch

    def _earliest_time(self) -> datetime | None:
        """Return when the next batch may be at the earliest: after all others, by any clock."""
        last = max((path.name for path in self.folder.glob("*.json")), default="")
        if not last:
            return None
        last_time = datetime.strptime(last.split("-")[0], _KEY_TIME).replace(tzinfo=UTC)
        return last_time + timedelta(microseconds=1)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.folder / ".lock"))
            except OSError as error:
                raise StorageError(f"cannot write in {self.folder}: {error.strerror}") from error
            yield


def _known(sources: Mapping[str, Source], root: str) -> dict[str, Source]:
    """Return the sources of a folder, whichever scan found them first."""
    prefix = _prefix(root)
    if root == SITES:
        return {uri: source for uri, source in sources.items() if source.root == SITES}
    return {
        uri: source
        for uri, source in sources.items()
        if uri.startswith(prefix)
        if source.root != SITES
        if not is_import(source) and not (uri.startswith("/") and not prefix)
    }


def _ask_about_removals(
    folder: Path,
    root: str,
    sources: Mapping[str, Source],
    changes: Sequence[SourceChange],
    limits: BatchSettings,
) -> str | None:
    """Return what to ask where most documents are gone: often a disk is not mounted.

    A document that is there under another name is not gone. With a share of 0, none may go.
    """
    known, most = _known(sources, root), limits.max_removed_share
    lost = {change.uri for change in changes if change.action == "remove"}
    brought = {change.sha256 for change in changes if change.action != "remove"}
    present = brought | {source.sha256 for uri, source in sources.items() if uri not in lost}
    n_gone = sum(known[uri].sha256 is None or known[uri].sha256 not in present for uri in lost)
    is_empty = len(lost) == len(known) and not brought - {None}
    if not (n_gone and is_empty) and n_gone <= (max(most * len(known), _FEW) if most else 0):
        return None
    return (
        f"{n_gone} of the {len(known)} files indexed from {folder} are gone: is its disk "
        "mounted? To remove them from the index, use --remove-all, in Python remove_all=True"
    )


def make_batch(
    root: str, changes: Sequence[SourceChange], earliest: datetime | None = None
) -> Batch:
    """Return a new batch of these changes. Its key begins with the time: keys sort by age.

    ``earliest`` keeps that true where a clock has been put back.
    """
    now = datetime.now(UTC)
    created = max(now, earliest or now)
    digest = hashlib.sha256(repr((root, changes)).encode("utf-8", "replace")).hexdigest()[:8]
    return Batch(f"{created:{_KEY_TIME}}-{digest}", created, root, tuple(changes))


def _prefix(root: str) -> str:
    return "" if root == "." else f"{root}/"


def _parts(
    changes: Sequence[SourceChange], limits: BatchSettings
) -> Iterator[Sequence[SourceChange]]:
    most_bytes = limits.max_mb * 1e6
    part: list[SourceChange] = []
    size = 0
    for change in changes:
        if part and (len(part) >= limits.max_files or size + change.n_bytes > most_bytes):
            yield part
            part, size = [], 0
        part.append(change)
        size += change.n_bytes
    if part:
        yield part


def _changes(
    scan: Scan,
    folder: Path,
    root: str,
    sources: Mapping[str, Source],
    max_bytes: int,
    settle_seconds: float,
) -> Iterator[SourceChange]:
    now = time.time()
    prefix = _prefix(root)
    uris = set()
    for relative in sorted(scan.files, key=lambda path: path.split("/")):
        stat = scan.files[relative]
        uri = address_of(relative) if root == SITES else f"{prefix}{_printable(relative)}"
        if root == SITES and not is_address(uri):
            continue
        uris.add(uri)
        before = sources.get(uri)
        untouched = _untouched(before, stat)
        readable = stat.st_size <= max_bytes
        if 0 <= now - stat.st_mtime < settle_seconds:
            continue
        if untouched and before is not None and (before.sha256 or not readable):
            continue
        sha256 = _sha256(folder / relative) if readable else None
        if before is None or before.sha256 != sha256 or not (sha256 or untouched):
            action = "add" if before is None else "change"
            yield SourceChange(uri, action, sha256, stat.st_size, stat.st_mtime_ns)
    unknown, left_out = (set(map(_printable, paths)) for paths in (scan.unreadable, scan.excluded))
    for uri in sorted(sources.keys() - uris):
        # What another scan found in a place that this one leaves out is that other scan's.
        is_others = sources[uri].root != root and _is_in(uri[len(prefix) :], left_out)
        if not is_others and not _is_in(uri[len(prefix) :], unknown):
            yield SourceChange(uri, "remove", None, 0, 0)


def _is_in(path: str, places: Set[str]) -> bool:
    """Whether a path, or a folder it lies in, is one of these."""
    ends = (n for n, character in enumerate(path) if character == "/")
    return bool(places) and (path in places or any(path[:end] in places for end in ends))


def _untouched(before: Source | None, stat: os.stat_result) -> bool:
    return (
        before is not None
        and before.n_bytes == stat.st_size
        and before.mtime_ns == stat.st_mtime_ns
    )


def _printable(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _unprintable(uri: str) -> str:
    """Return the path behind a uri in which bytes that are no UTF-8 are written out."""
    data = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), uri.encode())
    return os.fsdecode(data)


def _sha256(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


def _read_manifest(path: Path) -> Batch:
    try:
        raw = json.loads(path.read_bytes())
        return Batch(
            raw["key"],
            datetime.fromisoformat(raw["created_at"]),
            raw["root"],
            tuple(SourceChange(**change) for change in raw["changes"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"batch manifest {path} cannot be read: {error}") from error
