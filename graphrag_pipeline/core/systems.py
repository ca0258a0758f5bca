"""The published systems that the program has: a folder each, and no list of them anywhere.

A folder of ``graphrag_pipeline/systems/`` with an ``__init__.py`` is a system. That file says as
``SYSTEM`` what comes in by which door, and imports nothing of it. Without the folder the program
works as before, and has these methods and structures no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "systems"
PACKAGE: Final = "graphrag_pipeline.systems"


@dataclass(frozen=True, kw_only=True)
class System:
    """Parts of a system: ``methods`` and ``structures``, by name, as ``module:NAME`` within it.

    ``reads`` are the vector tables of every index that a method searches besides the chunks.
    """

    methods: Mapping[str, str] = field(default_factory=dict)
    structures: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)


@cache
def systems() -> Mapping[str, System]:
    """Return the systems that there are, by the names of their folders."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
    return {name: import_module(f"{PACKAGE}.{name}").SYSTEM for name in names}


def parts(door: str) -> Iterator[tuple[str, str]]:
    """Yield what comes in by a door: the name of each part, and where it is."""
    for folder, system in systems().items():
        of_door: Mapping[str, str] = getattr(system, door)
        for name, place in of_door.items():
            yield name, f"{PACKAGE}.{folder}.{place}"


@cache
def prompt_folders() -> tuple[Path, ...]:
    """Return the folders of the systems' prompts, in the order of the systems."""
    return tuple(folder for name in systems() if (folder := FOLDER / name / "prompts").is_dir())
