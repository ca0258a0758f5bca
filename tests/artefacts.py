"""What takes long to make, and is made once for all workers of a run."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

MAKING = "artefacts.making"
"""The event before something is made, which is followed by the other unless it fails."""
MADE = "artefacts.made"
"""The event by which stores are told to close their files: the folder is about to move."""


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that the first who asks for it has filled; nobody changes it afterwards."""
    folder = Path(os.environ["TESTS_HOME"], "artefacts", name)
    folder.parent.mkdir(exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as place:
                made = Path(place, "made")
                sys.audit(MAKING)
                make(made)
                sys.audit(MADE)
                made.rename(folder)
    return folder


def copy_of(name: str, make: Callable[[Path], object], to: Path) -> Path:
    """Return a copy of such a folder at a place that is one's own; one file twice is so there."""
    copies: dict[int, str] = {}

    def copy(source: str, target: str) -> str:
        first = copies.setdefault(Path(source).stat().st_ino, target)
        if first == target:
            return shutil.copy2(source, target)
        os.link(first, target)
        return target

    return shutil.copytree(made_once(name, make), to, dirs_exist_ok=True, copy_function=copy)
