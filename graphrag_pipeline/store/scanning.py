"""Scanning: the files of a folder that are documents, and what is left out of it and why."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.store.ignoring import (
    GIT_FILE,
    OWN_FILE,
    Patterns,
    Selection,
    read_ignore_file,
)

LINKS, INCLUDE = "links", "input.include"
BROKEN, SPECIAL = "broken links", "special files"
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_NAMED = 3


@dataclass(frozen=True)
class LeftOut:
    """Files left out by one rule: ``number`` files and folders, the latter each counted once.

    ``by`` is ``default``, ``input.exclude``, ``input.include`` (what matches none of its patterns),
    ``links`` (links that leave the folder), ``broken links`` (links to files that are not there),
    ``special files`` (pipes, sockets, devices) or the path of an ignore file. ``names`` are the
    first three in the order of their characters.
    """

    by: str
    pattern: str
    number: int
    names: tuple[str, ...]


@dataclass
class Scan:
    """The contents of a folder. Paths are relative to it, with ``/``, as the system spells them."""

    files: dict[str, os.stat_result] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    excluded: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    """Those of the files that are links to another."""
    _by_rule: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    @property
    def left_out(self) -> list[LeftOut]:
        """The files left out, by rule, most first."""
        ordered = sorted(self._by_rule.items(), key=lambda item: (-len(item[1]), item[0]))
        return [
            LeftOut(by, pattern, len(paths), tuple(map(printable, sorted(paths)[:_NAMED])))
            for (by, pattern), paths in ordered
        ]

    def leave_out(self, path: str, by: str, pattern: str) -> None:
        """Write down that an entry is left out, and by which rule."""
        self.excluded.add(path)
        self.pass_over(path, by, pattern)

    def pass_over(self, path: str, by: str, pattern: str = "") -> None:
        """Write down that an entry is nothing that could be read."""
        self._by_rule.setdefault((by, pattern), []).append(path)


@dataclass(frozen=True)
class _Folder:
    """A folder to be listed: its path in the scan, where it really is, and what is above it."""

    path: str
    real: str
    near: tuple[Patterns, ...]


def scan_folder(folder: Path, home: Path, selection: Selection) -> Scan:
    """Return the files of a folder that are documents; ``home``, the index's own, is none.

    A link to a file within the folder is a further name of it. A linked folder is gone through
    once, and only where it was not found by its own name. What leads out of the folder is followed
    only if ``selection.follow_links``. Raises InputError if the folder, or one of the ignore files
    in it, cannot be read.
    """
    return _Scanner(folder, home, selection).run()


class _Scanner:
    def __init__(self, folder: Path, home: Path, selection: Selection) -> None:
        self._top = os.fspath(folder)
        self._root = os.path.realpath(folder)
        self._home = os.path.realpath(home)
        self._selection = selection
        self._scan = Scan()
        self._visited: set[str] = set()
        self._links: list[_Folder] = []

    def run(self) -> Scan:
        """Go through the folders, and then through those that only a link leads to."""
        self._go_through(_Folder("", self._root, ()))
        while self._links:
            links, self._links = sorted(self._links, key=lambda link: link.path), []
            for link in links:
                if link.real not in self._visited:
                    self._go_through(link)
        return self._scan

    def _go_through(self, first: _Folder) -> None:
        todo = [first]
        while todo:
            folder = todo.pop()
            self._visited.add(folder.real)
            todo.extend(f for f in self._list(folder) if f.real not in self._visited)

    def _list(self, folder: _Folder) -> Iterator[_Folder]:
        """Note the files of a folder, and yield the folders in it."""
        try:
            with os.scandir(os.path.join(self._top, folder.path)) as listing:
                entries = list(listing)
        except OSError as error:
            if not folder.path:
                raise InputError(f"cannot read folder {self._top}: {error.strerror}") from error
            if error.errno not in _NOT_THERE:
                self._scan.unreadable.append(folder.path)
            return
        above = f"{folder.path}/" if folder.path else ""
        near = (*folder.near, *self._ignore_files(folder.path, above, entries))
        for entry in entries:
            path = f"{above}{entry.name}"
            if entry.is_symlink():
                self._link(entry, path, near)
                continue
            is_folder = _is_folder(entry)
            real = f"{folder.real}/{entry.name}" if is_folder else ""
            if (is_folder and real == self._home) or self._is_left_out(
                entry.name, path, near, is_folder=is_folder
            ):
                continue
            if is_folder:
                yield _Folder(path, real, near)
            else:
                self._file(entry, path)

    def _ignore_files(
        self, folder: str, above: str, entries: Sequence[os.DirEntry[str]]
    ) -> Iterator[Patterns]:
        if not self._selection.ignore_files:
            return
        present: Mapping[str, os.DirEntry[str]] = {
            e.name: e for e in entries if e.name in (GIT_FILE, OWN_FILE)
        }
        for name in (GIT_FILE, OWN_FILE):
            # Git reads no ignore file through a link, for that may lead anywhere.
            if name in present and present[name].is_file(follow_symlinks=False):
                origin = f"{above}{name}"
                yield read_ignore_file(Path(self._top, origin), folder, origin)

    def _is_left_out(
        self, name: str, path: str, near: Sequence[Patterns], *, is_folder: bool
    ) -> bool:
        reason = self._selection.why_not(name, path, near, is_folder=is_folder)
        if reason is None and not is_folder and not self._selection.wants(name, path):
            reason = (INCLUDE, "")
        if reason is not None:
            self._scan.leave_out(path, *reason)
        return reason is not None

    def _link(self, entry: os.DirEntry[str], path: str, near: tuple[Patterns, ...]) -> None:
        is_folder = _is_folder(entry)
        if self._is_left_out(entry.name, path, near, is_folder=is_folder):
            return
        real = os.path.realpath(os.path.join(self._top, path))
        if not os.path.exists(real):
            self._file(entry, path)
        elif not self._selection.follow_links and not is_within(real, self._root):
            self._scan.leave_out(path, LINKS, "")
        elif is_within(real, self._home) and not is_within(self._root, self._home):
            return
        elif is_folder:
            self._links.append(_Folder(path, real, near))
        else:
            self._file(entry, path)

    def _file(self, entry: os.DirEntry[str], path: str) -> None:
        try:
            stat = entry.stat()
        except OSError as error:
            if error.errno not in _NOT_THERE:
                self._scan.unreadable.append(path)
            elif entry.is_symlink():
                self._scan.pass_over(path, BROKEN)
            return
        if S_ISREG(stat.st_mode):
            self._scan.files[path] = stat
            if entry.is_symlink():
                self._scan.links.add(path)
        else:
            self._scan.pass_over(path, SPECIAL)


def printable(path: str) -> str:
    """Return a path with the bytes that are no UTF-8 written out."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both are as ``os.path.realpath`` writes them."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
