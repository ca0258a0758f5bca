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
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import InputError, RemovalError, StorageError
from graphrag_pipeline.core.hardening.files import make_folder, told_of_disk, write_beside
from graphrag_pipeline.core.hardening.locks import locked
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.identity import json_hash
from graphrag_pipeline.core.settings import BatchSettings
from graphrag_pipeline.store.file_stats import FileStats, SeenFiles, load_seen, save_seen
from graphrag_pipeline.store.ignoring import Selection
from graphrag_pipeline.store.scanning import LeftOut, Scan, printable, scan_folder
from graphrag_pipeline.store.snapshots import (
    SITES,
    address_of,
    file_of,
    is_address,
    snapshot_folder,
)
from graphrag_pipeline.store.source_files import open_source
from graphrag_pipeline.store.sources import (
    ACTIONS,
    Source,
    SourceChange,
    apply_changes,
    ending_of,
    first_names,
    is_import,
    with_days,
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

    @property
    def endings(self) -> frozenset[str] | None:
        """Endings of the names of its files; None where only the addresses of some are known."""
        names = [change.uri for change in self.changes if change.action != "remove"]
        if any(map(is_address, names)):
            return None
        return frozenset(map(ending_of, names))


@dataclass(frozen=True)
class Look:
    """The result of a look into a folder: the changes, and what is left out of it by which rule."""

    changes: tuple[SourceChange, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class _Looked:
    """A look into a folder, and what it rests on: the files, the limits and the manifests.

    ``entries`` say how the files looked, ``written`` what was written down of that before.
    """

    look: Look
    entries: Mapping[str, FileStats]
    written: Mapping[str, FileStats]
    given: tuple[Path, int, float]
    manifests: tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class _Fold:
    """Sum of manifests, which are told apart by name, time, size and inode."""

    manifests: tuple[tuple[str, int, int, int], ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)
    endings: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    named: Set[str] = frozenset()
    """The uris of all files that they tell of, those that are gone included."""

    @cached_property
    def firsts(self) -> Mapping[str, str]:
        """For the uri of each source, the first name of its document."""
        return first_names(self.sources)


_folds: MutableMapping[str, _Fold] = weakref.WeakValueDictionary()
"""What the logs in use have folded, by folder: two of one folder need not both read it."""


class BatchLog:
    """The manifests of one home folder.

    Files that look as they did are not read again, unless they were read more than ``verify_days``
    ago (0: however long ago).
    """

    def __init__(
        self, home: Path, selection: Selection | None = None, verify_days: float = 0
    ) -> None:
        self.home = home
        self.folder = home / "batches"
        self.selection = selection or Selection()
        self.verify_days = verify_days
        self._trusts_written = True
        self._read: dict[str, FileStats] = {}
        self._folded = _Fold()
        self._looked: _Looked | None = None

    def verify(self) -> None:
        """Read every file once more, at the next look, also those that look as they did."""
        self._trusts_written = False
        self._read.clear()

    def batches(self) -> list[Batch]:
        """Return every batch, oldest first."""
        return [read_manifest(path) for path in sorted(self.folder.glob("*.json"))]

    def is_empty(self) -> bool:
        """Whether there is no batch."""
        return next(self.folder.glob("*.json"), None) is None

    def get(self, key: str) -> Batch:
        """Return one batch. Raises InputError if there is no such batch."""
        path = self.folder / f"{key}.json"
        if "/" in key or not path.is_file():
            raise InputError(f"there is no batch {key!r} in {self.folder}")
        return read_manifest(path)

    def endings(self) -> dict[str, frozenset[str] | None]:
        """Return :attr:`Batch.endings` of every batch by key, oldest first."""
        return dict(self._fold().endings)

    def sources(self) -> dict[str, Source]:
        """Return the present sources by uri: the fold of all manifests."""
        return dict(self._fold().sources)

    def first_names(self) -> Mapping[str, str]:
        """Return, for the uri of each present source, the first name of its document."""
        return self._fold().firsts

    def _fold(self) -> _Fold:
        """Return the fold, in which only manifests that are new since the last are read."""
        folder, manifests = str(self.folder.absolute()), tuple(self._manifests())
        folded = _folds.get(folder, self._folded)
        if folded.manifests == manifests:
            self._folded = folded
            return folded
        n_known = len(folded.manifests)
        if folded.manifests != manifests[:n_known]:
            folded, n_known = _Fold(), 0
        sources, endings = dict(folded.sources), dict(folded.endings)
        named = set(folded.named)
        for name, *_ in manifests[n_known:]:
            batch = read_manifest(self.folder / name)
            apply_changes(sources, batch.changes, batch=batch.key, root=batch.root)
            endings[name.removesuffix(".json")] = batch.endings
            named |= {u for each in batch.changes for u in (each.uri, each.origin) if u}
        self._folded = _folds[folder] = _Fold(manifests, sources, endings, named)
        return self._folded

    def _manifests(self) -> Iterator[tuple[str, int, int, int]]:
        for path in sorted(self.folder.glob("*.json")):
            status = path.stat()
            yield path.name, status.st_mtime_ns, status.st_size, status.st_ino

    def root_name(self, folder: Path) -> str:
        """Return how a folder is named in uris: relative to the home's parent, or absolute.

        The snapshot of web pages is named ``SITES``, and the uris of its files are addresses.
        """
        resolved = folder.expanduser().resolve()
        if resolved == snapshot_folder(self.home.resolve()):
            return SITES
        project = self.home.resolve().parent
        inside = resolved.is_relative_to(project)
        return printable((resolved.relative_to(project) if inside else resolved).as_posix())

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
        as_looked: bool = False,
    ) -> list[Batch]:
        """Compare a folder with the corpus and write a manifest for what differs.

        Files changed in the last ``settle_seconds`` are left for the next look; files over
        ``max_bytes`` are listed but not read. Two processes at once never list a change twice.
        With ``as_looked`` what the last look has shown is listed, and the folder not scanned again,
        unless it was another folder or another process has written a manifest meanwhile.
        Raises InputError if the folder cannot be read, StorageError if a manifest cannot be
        written. Unless ``remove_all``, raises RemovalError, and writes nothing, where all documents
        of the folder are gone, or more of many than ``limits.max_removed_share``.
        """
        root = self.root_name(folder)
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: name one that holds your documents")
        with self._lock():
            given, folded = (folder, max_bytes, settle_seconds), self._fold()
            looked, self._looked = self._looked if as_looked else None, None
            if looked is None or (looked.given, looked.manifests) != (given, folded.manifests):
                looked = self._look(*given)
            sources, changes = dict(folded.sources), looked.look.changes
            self.note_left_out(folder, looked.look.left_out)
            question = _ask_about_removals(folder, root, sources, changes, limits)
            if question and not remove_all:
                raise RemovalError(question)
            batches = [self._write(root, part) for part in _parts(changes, limits)]
            apply_changes(sources, changes, batch="", root=root)
            self._remember(looked, sources, root)
            return batches

    def look(
        self, folder: Path, *, max_bytes: int, settle_seconds: float = 0, remember: bool = False
    ) -> Look:
        """Return what `cut` would list, and what is left out, without writing anything.

        With ``remember``, which files were read is written down, so that the next look need not
        read them again, and what was found changed is kept for :meth:`cut`. Raises InputError if
        the folder cannot be read.
        """
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: name one that holds your documents")
        looked = self._look(folder, max_bytes, settle_seconds)
        if remember:
            self._looked = looked if looked.look.changes else None
            self._remember(looked, self.sources(), self.root_name(folder))
            self.note_left_out(folder, looked.look.left_out)
        return looked.look

    def _look(self, folder: Path, max_bytes: int, settle_seconds: float) -> _Looked:
        """Compare what is in a folder with the corpus; files that look as they did are not read."""
        root, folded = self.root_name(folder), self._fold()
        scan = scan_folder(folder, self.home, self._selection(root))
        written = load_seen(Home(self.home).seen)
        before = {**(written if self._trusts_written else {}), **self._read}
        files = SeenFiles(
            before,
            scan.files.values(),
            self.home,
            self.verify_days,
            lambda path: _sha256(folder / path, self._bounds(folder)),
        )
        known = _known(folded.sources, root)
        found = _changes(scan, root, known, max_bytes, settle_seconds, sha256_of=files.sha256)
        changes = with_names(with_days(list(found), known), folded.sources, root)
        self._read |= {
            uri: seen for uri, seen in files.entries.items() if seen is not written.get(uri)
        }
        look = Look(tuple(changes), tuple(scan.left_out))
        given = (folder, max_bytes, settle_seconds)
        return _Looked(look, files.entries, written, given, folded.manifests)

    def _remember(self, seen: _Looked, sources: Mapping[str, Source], root: str) -> None:
        """Write down how the files of the corpus looked, where that is news."""
        others = seen.written.keys() & (sources.keys() - _known(sources, root).keys())
        entries = {uri: seen.written[uri] for uri in others}
        entries |= {uri: entry for uri, entry in seen.entries.items() if uri in sources}
        if entries != seen.written:
            save_seen(Home(self.home).seen, entries)

    def question(
        self, folder: Path, changes: Sequence[SourceChange], limits: BatchSettings
    ) -> str | None:
        """Return what `cut` would ask before it lists these changes: whether files are to go."""
        root = self.root_name(folder)
        return _ask_about_removals(folder, root, self.sources(), changes, limits)

    def note_left_out(self, folder: Path, left_out: Sequence[LeftOut]) -> None:
        """Write down what is left out of a folder, for :meth:`left_out`.

        Raises StorageError when it cannot be written.
        """
        by_root = self._left_out()
        rules = [{**asdict(rule), "names": list(rule.names)} for rule in left_out]
        root = self.root_name(folder)
        if by_root.get(root, []) != rules:
            text = json.dumps({**by_root, root: rules}, indent=1)
            write_beside(Home(self.home).left_out, text.encode())

    def left_out(self) -> dict[str, list[LeftOut]]:
        """Return what the last scans left out of each folder, by its name in uris."""
        return {
            root: [LeftOut(**{**rule, "names": tuple(rule["names"])}) for rule in rules]
            for root, rules in self._left_out().items()
        }

    def _left_out(self) -> dict[str, list[dict[str, Any]]]:
        try:
            return json.loads(Home(self.home).left_out.read_bytes())
        except (OSError, ValueError):
            return {}

    def folder_of(self, root: str) -> Path:
        """Return the folder of a root, as :meth:`root_name` names it."""
        return snapshot_folder(self.home) if root == SITES else self.path_of(root)

    def bounds_of(self, root: str) -> Path | None:
        """Return the folder that no file of a root may lie outside of; None: anywhere is right."""
        return self._bounds(self.folder_of(root))

    def _bounds(self, folder: Path) -> Path | None:
        return None if self.selection.follow_links else folder

    def remove(self, uris: Collection[str]) -> list[Batch]:
        """Write a manifest, for each folder, that removes these sources, whatever the disk holds.

        Raises StorageError if a manifest cannot be written.
        """
        with self._lock():
            sources = self.sources()
            roots = sorted({sources[uri].root for uri in uris if uri in sources})
            return [self._write(root, _removals(uris, root, sources)) for root in roots]

    def without_gone(self, done: Collection[str]) -> dict[str, Batch | None]:
        """Return the manifests that tell of files that are gone, without these; None: of no other.

        Of the files that are there, what they were before is left out too. Only the manifests of
        the batches that are ``done`` are looked at: the others are still to be taken in.
        """
        present = self.sources()
        smaller: dict[str, Batch | None] = {}
        for batch in self.batches():
            changes = tuple(
                _as_it_is(change, is_last=present[change.uri].batch == batch.key)
                for change in batch.changes
                if change.uri in present
            )
            if batch.key in done and changes != batch.changes:
                smaller[batch.key] = replace(batch, changes=changes) if changes else None
        return smaller

    def gone(self) -> list[str]:
        """Return the uris of files that were removed, and of which manifests still tell."""
        folded = self._fold()
        return sorted(folded.named - folded.sources.keys())

    def forget_gone(self, done: Collection[str]) -> int:
        """Put in place what :meth:`without_gone` returns; return the number of manifests.

        The sources are the same afterwards. Raises StorageError if one cannot be written.
        """
        with self._lock():
            self._leave_out_without(self.gone())
            smaller = self.without_gone(done)
            for key, batch in smaller.items():
                if batch is None:
                    (self.folder / f"{key}.json").unlink()
                else:
                    self.save(batch)
            self._see_only(self.sources())
            return len(smaller)

    def _leave_out_without(self, gone: Collection[str]) -> None:
        """Write down what is left out of folders without the names of files that are gone."""
        path = Home(self.home).left_out
        if not path.exists():
            return
        try:
            by_root = {
                root: [asdict(rule) for rule in self._rules_without(gone, root, rules)]
                for root, rules in self.left_out().items()
            }
        except (AttributeError, KeyError, TypeError):
            # The next scan makes it again.
            path.unlink(missing_ok=True)
            return
        write_beside(path, json.dumps(by_root, indent=1).encode())

    def _rules_without(
        self, gone: Collection[str], root: str, rules: Sequence[LeftOut]
    ) -> Iterator[LeftOut]:
        """Yield the rules that name no file that is gone, and of the others what they name else."""
        folder, prefix = self.folder_of(root), _prefix(root)
        last_names = {uri.rpartition("/")[2] for uri in gone} - {""}
        for rule in rules:
            names = tuple(
                name
                for name in rule.names
                if os.path.lexists(folder / _unprintable(name))
                and f"{prefix}{name}" not in gone
                and not any(uri.startswith(f"{prefix}{name.rstrip('/')}/") for uri in gone)
            )
            number = rule.number - len(rule.names) + len(names)
            if number and rule.pattern.rstrip("/").rpartition("/")[2] not in last_names:
                yield replace(rule, number=number, names=names)

    def _see_only(self, sources: Collection[str]) -> None:
        """Forget how files looked that are not among these."""
        path = Home(self.home).seen
        seen = load_seen(path)
        if seen.keys() - set(sources):
            save_seen(path, {uri: entry for uri, entry in seen.items() if uri in sources})

    def _selection(self, root: str) -> Selection:
        """Return which files of a folder are documents; of the snapshot of web pages all are."""
        return Selection(default_excludes=False) if root == SITES else self.selection

    def save(self, batch: Batch) -> None:
        """Write a batch's manifest. Raises StorageError when it cannot be written."""
        raw = {**asdict(batch), "created_at": batch.created_at.isoformat()}
        text = json.dumps({**raw, "digest": json_hash(raw)}, indent=1)
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
            with told_of_disk(f"cannot write in {self.folder}"):
                make_folder(self.home)
                make_folder(self.folder)
                stack.enter_context(locked(self.folder / ".lock"))
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
        if not is_import(source.root) and not (uri.startswith("/") and not prefix)
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
    known = _known(sources, root)
    lost = {change.uri for change in changes if change.action == "remove"}
    brought = {change.sha256 for change in changes if change.action != "remove"}
    present = brought | {source.sha256 for uri, source in sources.items() if uri not in lost}
    n_gone = sum(known[uri].sha256 is None or known[uri].sha256 not in present for uri in lost)
    is_empty = len(lost) == len(known) and not brought - {None}
    if not (n_gone and is_empty) and may_go(n_gone, len(known), limits):
        return None
    return (
        f"{n_gone} of the {len(known)} files indexed from {folder} are gone: is its disk "
        "mounted? To remove them from the index, use --remove-all, in Python remove_all=True"
    )


def may_go(number: int, of: int, limits: BatchSettings) -> bool:
    """Whether so many of the indexed files may go at once without anybody being asked."""
    most = limits.max_removed_share
    return number <= (max(most * of, _FEW) if most else 0)


def _removals(
    uris: Collection[str], root: str, sources: Mapping[str, Source]
) -> list[SourceChange]:
    own = sorted(uri for uri in uris if uri in sources and sources[uri].root == root)
    return with_names((SourceChange(uri, "remove", None, 0, 0) for uri in own), sources, root)


def _as_it_is(change: SourceChange, *, is_last: bool) -> SourceChange:
    """Return a change without what was before it; one that others have followed, but its name."""
    action = "add" if change.action == "rename" else change.action
    if is_last:
        return replace(change, action=action, origin=None)
    return SourceChange(change.uri, action, None, 0, 0)


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
    root: str,
    sources: Mapping[str, Source],
    max_bytes: int,
    settle_seconds: float,
    sha256_of: Callable[[str, os.stat_result, str], str | None],
) -> Iterator[SourceChange]:
    now = time.time()
    prefix = _prefix(root)
    uris = set()
    for relative in sorted(scan.files, key=lambda path: path.split("/")):
        stat = scan.files[relative]
        uri = address_of(relative) if root == SITES else f"{prefix}{printable(relative)}"
        if root == SITES and not is_address(uri):
            continue
        uris.add(uri)
        before = sources.get(uri)
        if 0 <= now - stat.st_mtime < settle_seconds:
            continue
        sha256 = None
        if stat.st_size <= max_bytes:
            sha256 = sha256_of(uri, stat, relative)
        is_link = relative in scan.links
        looks = (stat.st_size, stat.st_mtime_ns)
        if before is None:
            action = "add"
        elif before.sha256 != sha256 or not (sha256 or (before.n_bytes, before.mtime_ns) == looks):
            action = "change"
        elif before.is_link != is_link:
            action = "name"
        else:
            continue
        yield SourceChange(uri, action, sha256, *looks, is_link=is_link)
    unknown, left_out = (set(map(printable, paths)) for paths in (scan.unreadable, scan.excluded))
    for uri in sorted(sources.keys() - uris):
        # What another scan found in a place that this one leaves out is that other scan's.
        is_others = sources[uri].root != root and _is_in(uri[len(prefix) :], left_out)
        if not is_others and not _is_in(uri[len(prefix) :], unknown):
            yield SourceChange(uri, "remove", None, 0, 0)


def _is_in(path: str, places: Set[str]) -> bool:
    """Whether a path, or a folder it lies in, is one of these."""
    ends = (n for n, character in enumerate(path) if character == "/")
    return bool(places) and (path in places or any(path[:end] in places for end in ends))


def _unprintable(uri: str) -> str:
    """Return the path behind a uri in which bytes that are no UTF-8 are written out."""
    data = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), uri.encode())
    return os.fsdecode(data)


def _sha256(path: Path, within: Path | None) -> str | None:
    try:
        with open_source(path, within) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def read_manifest(path: Path) -> Batch:
    """Return the batch of a manifest. Raises StorageError where the file cannot be read."""
    try:
        raw = json.loads(path.read_bytes())
        if raw.pop("digest", None) not in (None, json_hash(raw)):
            raise ValueError("it is not what was written")
        return Batch(
            raw["key"],
            datetime.fromisoformat(raw["created_at"]),
            raw["root"],
            tuple(SourceChange(**change) for change in raw["changes"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"batch manifest {path} cannot be read: {error}") from error
