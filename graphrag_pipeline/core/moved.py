"""Modules, and names in them, that are elsewhere now: old names work, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

MOVED = {
    "graphrag_pipeline.core.files": ("graphrag_pipeline.core.hardening.files", ""),
    "graphrag_pipeline.sql": ("graphrag_pipeline.marts.sql", ""),
    "graphrag_pipeline.evaluating": ("graphrag_evaluation.evaluating", "evaluation"),
    "graphrag_pipeline.evaluation": ("graphrag_evaluation", "evaluation"),
}
"""The new name by the old one, of a module or a package, and the extra that brings it."""


def import_by_old_names() -> None:
    """Let modules be imported by the names that they had before."""
    # First: else the parts of a package would be imported twice, by its folder.
    sys.meta_path.insert(0, _Finder())


def moved_name(module: str, places: Mapping[str, str], name: str) -> Any:
    """Return what a module had by this name and another has now, for its ``__getattr__``.

    ``places`` says in which module each name is now. Raises AttributeError for another name, and
    where that module is not there.
    """
    place = places.get(name, "")
    try:
        moved = getattr(import_module(place), name) if place else None
    except ModuleNotFoundError:
        moved = None
    if moved is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    _warn(f"{module}.{name}", f"{place}.{name}", stacklevel=4)
    return moved


def _warn(old: str, new: str, *, stacklevel: int) -> None:
    line = f"{old} is {new} now; the old name will be gone in the next release"
    warnings.warn(line, DeprecationWarning, stacklevel=stacklevel)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for old, (new, extra) in MOVED.items():
            if fullname == old or fullname.startswith(f"{old}."):
                loader = _Loader(new + fullname.removeprefix(old), extra)
                return spec_from_loader(fullname, loader)
        return None


class _Loader(Loader):
    def __init__(self, name: str, extra: str) -> None:
        self._name, self._extra = name, extra
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        _warn(spec.name, self._name, stacklevel=3)
        try:
            module = import_module(self._name)
        except ModuleNotFoundError as error:
            if not self._extra:
                raise
            from graphrag_pipeline.core.extras import how_to_install

            reason = f"{spec.name} is {self._name} now: {how_to_install(self._extra)}"
            raise ModuleNotFoundError(reason, name=spec.name) from error
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module was executed under its new name, which stays its name.
        module.__spec__ = self._spec
