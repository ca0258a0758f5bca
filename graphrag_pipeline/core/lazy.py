"""Packages and modules that are imported with their first use, so naming them costs nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.patterns import pattern_of

_FROM = pattern_of(r"^    from (\S+) import", re.MULTILINE)
_NAME = pattern_of(r"\b(\w+) as \1\b")


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose ``__init__.py`` is ``file``.

    Its names, which are its ``__all__``, are those that type checkers are told of there, by imports
    ``as`` themselves in the block ``if TYPE_CHECKING``.
    """
    told = Path(file).read_text(encoding="utf-8").partition("if TYPE_CHECKING:")[2]
    _, *parts = _FROM.split(told)
    modules = zip(parts[::2], parts[1::2], strict=True)
    module_of = {name: module for module, names in modules for name in _NAME.findall(names)}
    sys.modules[package].__dict__["__all__"] = sorted(module_of)

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return get, list_names


class LazyModule:
    """A module of another package, imported when something in it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value
