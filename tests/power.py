"""What a power cut leaves of a folder: what was synced, and of the rest nothing, or names alone."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

_BY_THEMSELVES = ("index.duckdb", "evaluation.duckdb", "llm_cache.sqlite")
"""Files that their databases sync: a trace of system calls shows that, this module cannot."""


class Rename(NamedTuple):
    """A rename: whether the file was synced, the folder it went to, and how many syncs were."""

    target: Path
    was_synced: bool
    n_syncs: int


class Disk:
    """Writes down what is synced below a folder, and tells what a power cut would leave.

    Content is what it was when the file was last synced, names are those of a folder when it was.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.renames: list[Rename] = []
        self.synced_folders: list[Path] = []
        self.before_step: Callable[[], None] = lambda: None
        self._contents: dict[int, bytes] = {}
        self._states: dict[int, tuple[int, int]] = {}
        self._names: dict[Path, dict[str, int]] = {}
        self._held: list[int] = []
        self._fsync, self._replace = os.fsync, os.replace
        monkeypatch.setattr(os, "fsync", self._on_fsync)
        monkeypatch.setattr(os, "replace", self._on_replace)

    def is_synced(self, path: Path) -> bool:
        """Whether a file's content, or a folder's names, are on disk as they are now."""
        now = path.stat()
        return self._states.get(now.st_ino) == (now.st_size, now.st_mtime_ns)

    def has_name(self, path: Path) -> bool:
        """Whether a power cut leaves a file or folder its name."""
        return path.name in self._names.get(path.parent, {})

    def unsynced(self, folder: Path) -> list[str]:
        """Return the files and folders in a folder that a power cut would harm."""
        return sorted(
            str(path.relative_to(folder))
            for path in (folder, *folder.rglob("*"))
            if not self.is_synced(path)
        )

    def leave_synced(self, target: Path) -> None:
        """Write what is left where neither content nor names outlive that were not synced."""
        for folder, names in self._folders(self.folder):
            place = target / folder.relative_to(self.folder)
            place.mkdir(parents=True, exist_ok=True)
            for name, inode in names.items():
                if not (folder / name).is_dir():
                    self._leave(folder / name, inode, place / name)

    def leave_names(self, target: Path) -> None:
        """Write what is left where all names outlive, and of content what was synced."""
        for folder, _, files in os.walk(self.folder):
            place = target / Path(folder).relative_to(self.folder)
            place.mkdir(parents=True, exist_ok=True)
            for name in files:
                with contextlib.suppress(FileNotFoundError):
                    inode = Path(folder, name).stat().st_ino
                    self._leave(Path(folder, name), inode, place / name)

    def _folders(self, folder: Path) -> Iterator[tuple[Path, dict[str, int]]]:
        names = dict(self._names.get(folder, {}))
        for entry in os.scandir(folder):
            if entry.name.startswith(_BY_THEMSELVES):
                names[entry.name] = entry.inode()
        yield folder, names
        for name in names:
            if (folder / name).is_dir():
                yield from self._folders(folder / name)

    def _leave(self, path: Path, inode: int, target: Path) -> None:
        content = self._contents.get(inode, b"")
        if path.name.startswith(_BY_THEMSELVES):
            try:
                content = path.read_bytes()
            except FileNotFoundError:  # a log that its database has just taken in
                return
        target.write_bytes(content)

    def _on_fsync(self, handle: int) -> None:
        self._fsync(handle)
        state = os.fstat(handle)
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if not path.is_relative_to(self.folder):
            return
        # While it is held no other file can get its inode.
        self._held.append(os.dup(handle))
        self._states[state.st_ino] = (state.st_size, state.st_mtime_ns)
        if stat.S_ISDIR(state.st_mode):
            self.before_step()
            self._names[path] = {entry.name: entry.inode() for entry in os.scandir(path)}
            self.synced_folders.append(path)
        else:
            self._contents[state.st_ino] = path.read_bytes()

    def _on_replace(self, source: Path, target: Path) -> None:
        was_synced = self.is_synced(Path(source)) or Path(source).is_dir()
        self.before_step()
        self._replace(source, target)
        if Path(target).is_relative_to(self.folder):
            self.renames.append(Rename(Path(target), was_synced, len(self.synced_folders)))

    def close(self) -> None:
        """Let go of the files that were held."""
        for handle in self._held:
            os.close(handle)
