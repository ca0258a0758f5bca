"""The doors of the program: how parts come in by name, its own ones and those of other packages.

A part is an object that stands at ``module:NAME``. The program names its own parts in a
:class:`Door`; another package names its parts in its ``pyproject.toml``, as entry points::

    [project.entry-points."graphrag_pipeline.formats"]
    captions = "subtitles:VTT"

Both come in by the same way, and a part is imported when somebody asks for it by its name. To list
names imports none. The methods and structures of a published system are named in its folder
(:mod:`~graphrag_pipeline.core.systems`). ``DOORS`` says which doors there are;
docs/how-to/extend.md shows how each is used.

A part of another package that cannot be used is told of in one line that names the package. Who
asks for it by name gets that line as an error; all other parts go on working. Two packages that
bring a part of one name are both refused, as nobody can say which is meant, and none replaces a
part of the program's own.

Only installed packages are looked at. The current folder is not one, though ``python -m`` puts it
among the places of modules: it may be a folder of documents.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from graphrag_pipeline.core import systems
from graphrag_pipeline.core.errors import ConfigError, GraphRAGError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

T = TypeVar("T")
log = logging.getLogger("graphrag_pipeline")

DOORS = {
    "formats": "files with an ending of their own: a `FileFormat`, called like the ending",
    "exporters": "a format that `export` writes: an `Exporter`",
    "commands": "a command, or a group of them: a function as Typer has them, or a `typer.Typer`",
    "methods": "a way to answer questions: a `Method`",
    "structures": "a stage after the graph, with tables, vectors and an estimate: a `Structure`",
    "clusterings": "a way to cluster ArchRAG's communities: a `Clustering`",
    "settings": "a section [packages.NAME] of the settings: a pydantic model, called as it is",
    "definitions": "Dagster's assets, jobs and sensors beside an index: a function of a `Building`",
    "measures": "what is measured of each release once it is published: a `Measure`",
    "mart_tables": "a table that the marts are built from: a `MartTable`, called as it is",
    "prompts": "a folder of prompts, each a file `NAME.txt`: a `Path`",
    "home_files": "a file or folder of the home: a `HomeFile`, called as it is",
    "run_histories": "a folder of the home with a history of runs: a `RunHistory`, called as it is",
    "sharing": "an index of several machines: a class from `Sharing`, called like a scheme of urls",
    "launchers": "who executes Dagster's runs: a `Launcher`, called as settings name it",
}
"""The doors by name, and what comes in by each. The group of entry points of the door ``formats``
is ``graphrag_pipeline.formats``."""
_PROGRAM = "graphrag-pipeline"
_PREFIX = "graphrag_pipeline."


class PartError(ConfigError):
    """A part that another package brings cannot be used; the message names the package."""


@dataclass(frozen=True)
class _Place:
    """Place of a part of another package: its name, ``module:NAME``, and the package it is from."""

    name: str
    value: str
    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} ({self.value}) of the package {self.package} {self.version}"

    @property
    def module(self) -> str:
        """The first part of the module's name."""
        return re.split(r"[.:]", self.value, maxsplit=1)[0]

    def unusable(self, what: str, why: object) -> str:
        """Return the line that says that it cannot be used, and what to do."""
        from importlib.metadata import version

        reason = " ".join(str(why).split())
        return (
            f"{what} {self} cannot be used: {reason}: mend {self.package} if it is yours, install "
            f"a version of it that is made for {_PROGRAM} {version(_PROGRAM)}, or uninstall it"
        )


class Door(Generic[T]):
    """The parts of one kind, by name.

    Parameters
    ----------
    name
        One of ``DOORS``.
    kind
        What a part must be an instance of.
    what
        What a part is called in messages, such as ``format``.
    own
        The program's own parts: ``module:NAME`` by name, in the order in which they are listed.
    beside
        The module of the door: those of ``own`` are named from its package.
    has_systems
        Whether the systems of the program (:mod:`~graphrag_pipeline.core.systems`) bring parts,
        too. They are the program's own.
    listed
        Names of the program's own parts in the order in which they are listed. Others follow them.
    check
        Raises an error of the project's for a part that could not work; it is given the name and
        the part of another package.
    """

    def __init__(
        self,
        name: str,
        kind: type[T],
        what: str,
        *,
        own: Mapping[str, str],
        beside: str,
        has_systems: bool = False,
        listed: Sequence[str] = (),
        check: Callable[[str, T], None] | None = None,
    ) -> None:
        if name not in DOORS:
            raise ValueError(f"no door is called {name}")
        self.name, self.group = name, f"{_PREFIX}{name}"
        self._kind, self._what, self._check = kind, what, check
        package = beside.rpartition(".")[0]
        self._core = {part: f"{package}.{place}" for part, place in own.items()}
        self._has_systems, self._listed = has_systems, listed
        self._added: dict[str, T] = {}
        self._loaded: dict[object, T | PartError] = {}
        self._lock = threading.RLock()

    @functools.cached_property
    def _own(self) -> Mapping[str, str]:
        """Return where the program's own parts are."""
        own = self._core | dict(systems.parts(self.name) if self._has_systems else ())
        return {name: own[name] for name in (*self._listed, *own) if name in own}

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the program's own parts."""
        return tuple(self._own)

    def names(self) -> tuple[str, ...]:
        """Return all names: the program's own, then those of packages, then those added."""
        return tuple(dict.fromkeys((*self._own, *self._brought(), *self._added)))

    def find(self, name: str) -> T | None:
        """Return the part of this name, imported now; None where there is none.

        Raises PartError where another package brings it and it cannot be used.
        """
        # One of the core's need not wait until is known which systems there are.
        if name in self._core or name in self._own:
            return self._load_own(name)
        if name in self._added:
            return self._added[name]
        places = self._brought().get(name, ())
        return self._load(places) if places else None

    def usable(self, names: Iterable[str] | None = None) -> dict[str, T]:
        """Return parts by name, all or these.

        Those that cannot be used are left out and logged, once.
        """
        parts: dict[str, T] = {}
        for name in self.names() if names is None else names:
            try:
                part = self.find(name)
            except PartError as error:
                _warn(str(error))
            else:
                parts |= {} if part is None else {name: part}
        return parts

    def add(self, name: str, part: T) -> None:
        """Add a part of a program that has no package; the same name replaces what was added.

        Raises ValueError for the name of a part of the program's own.
        """
        if name in self._own:
            raise ValueError(f"{self._what} {name} is there already")
        self._added[name] = part

    def remove(self, name: str) -> bool:
        """Take back what :meth:`add` has added; return whether it had."""
        return self._added.pop(name, None) is not None

    def added(self) -> Mapping[str, T]:
        """Return what :meth:`add` has added, in order."""
        return dict(self._added)

    def _brought(self) -> dict[str, list[_Place]]:
        """Return where parts of other packages are; none replaces one of the program's own."""
        brought = _installed(tuple(sys.path), _here()).get(self.group, {})
        for name in self._own.keys() & brought.keys():
            for place in brought[name]:
                _warn(place.unusable(self._what, f"{name} is the program's own"))
        return {name: places for name, places in brought.items() if name not in self._own}

    def _load_own(self, name: str) -> T:
        with self._lock:
            if name not in self._loaded:
                place = self._core.get(name) or self._own[name]
                module, _, attribute = place.partition(":")
                part = getattr(import_module(module), attribute)
                self._loaded[name] = part
            return cast(T, self._loaded[name])

    def _load(self, places: list[_Place]) -> T:
        place, *others = places
        if others:
            both = " and ".join(sorted(map(str, places)))
            raise PartError(f"there are two of one name: {self._what} {both}: uninstall one")
        with self._lock:
            if place not in self._loaded:
                self._loaded[place] = self._imported(place)
            part = self._loaded[place]
        if isinstance(part, PartError):
            raise PartError(str(part))
        return part

    def _imported(self, place: _Place) -> T | PartError:
        """Return a part of another package, whose code may raise anything, or what is wrong."""
        from importlib.metadata import EntryPoint

        try:
            part = EntryPoint(place.name, place.value, self.group).load()
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}"
            return PartError(place.unusable(self._what, why))
        if not isinstance(part, self._kind):
            why = f"it is {type(part).__name__}, not {self._kind.__name__}"
            return PartError(place.unusable(self._what, why))
        try:
            if self._check is not None:
                self._check(place.name, part)
        except GraphRAGError as error:
            return PartError(place.unusable(self._what, error))
        return part


def raised_outside(error: BaseException) -> str:
    """Return in one line what was raised by the code of another package, and where in it.

    Empty where it was raised by the program or by nobody's package.
    """
    groups = _installed(tuple(sys.path), _here()).values()
    every = (place for group in groups for places in group.values() for place in places)
    brought = {place.module: place for place in every if not place.package.startswith(_PROGRAM)}
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        place = brought.get(frame.f_globals.get("__name__", "").partition(".")[0])
        if place is not None:
            file = os.path.basename(frame.f_code.co_filename)
            what = " ".join(f"{type(error).__name__}: {error}".split())
            return f"{what} ({file}, line {line}, of the package {place.package} {place.version})"
    return ""


def require_takes(function: object, *arguments: str) -> None:
    """Raise ConfigError unless a function can be called with so many arguments, by position."""
    if not callable(function):
        raise ConfigError(f"{function!r} is no function of ({', '.join(arguments)})")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise ConfigError(f"{name} does not take ({', '.join(arguments)}): {error}") from None
    except ValueError:
        return  # What is written in C does not always say what it takes.


@functools.lru_cache(maxsize=8)
def _installed(path: tuple[str, ...], here: str) -> dict[str, dict[str, list[_Place]]]:
    """Return where parts of installed packages are, by the group and the name of entry points.

    A package that is there twice counts once, where it is found first, as for an import.
    """
    groups: dict[str, dict[str, list[_Place]]] = {}
    packages: set[str] = set()
    for distribution in _with_parts([place for place in path if place not in ("", here)]):
        package = distribution.metadata["Name"]
        if package in packages or package == _PROGRAM:
            continue
        packages.add(package)
        try:
            entries = list(distribution.entry_points)
        except Exception as error:  # What a package says of itself may be damaged.
            _warn(f"the entry points of the package {package} cannot be read: {error}")
            continue
        for entry in entries:
            if not entry.group.startswith(_PREFIX):
                continue
            place = _Place(entry.name, entry.value, package, distribution.version)
            if entry.group.removeprefix(_PREFIX) not in DOORS:
                doors = ", ".join(DOORS)
                _warn(place.unusable("the part", f"{entry.group} is no door: there are {doors}"))
            groups.setdefault(entry.group, {}).setdefault(entry.name, []).append(place)
    return groups


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # It was removed meanwhile.
        return ""


def _with_parts(path: list[str]) -> Iterator[Distribution]:
    """Yield the packages that have entry points of groups called as ours."""
    from importlib.metadata import Distribution, DistributionFinder

    for distribution in Distribution.discover(context=DistributionFinder.Context(path=path)):
        # Most packages have none: their files need not be taken apart.
        if _PREFIX in (distribution.read_text("entry_points.txt") or ""):
            yield distribution


@functools.cache
def _warn(line: str) -> None:
    log.warning("%s", line)
