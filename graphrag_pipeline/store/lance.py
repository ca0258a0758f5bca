"""LanceDB, imported without what only its REST client needs, and nothing here uses.

Otherwise importing it takes longer than all the rest of a question:

- The client is 30 generated modules whose functions Pydantic wraps one by one. Its package is put
  in place with its body put off until something of it is asked for.
- The 147 models beside it are needed as names. Pydantic builds what checks their fields when one is
  first made, which is never.
- Before Python 3.12 a library reads the bytecode around each method that overrides another, to see
  that there is one. From 3.12 on LanceDB does without it; so it does here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.hardening.memory import require_memory

if TYPE_CHECKING:
    from lancedb.db import DBConnection

REST_CLIENT = "lance_namespace_urllib3_client"
_OVERRIDES = "overrides"

_importing = threading.Lock()


def connect(uri: str) -> DBConnection:
    """Open a LanceDB location. Raises OutOfMemoryError where memory is short."""
    with _importing:
        lancedb = _lancedb()
    require_memory()
    return lancedb.connect(uri)


@functools.cache
def _lancedb() -> ModuleType:
    with lightly():
        import lancedb

    return lancedb


@contextlib.contextmanager
def lightly() -> Iterator[None]:
    """Import LanceDB, or a package of its own, without what nothing here uses."""
    # It warns of what nobody can do anything about, on standard error.
    os.environ.setdefault("LANCEDB_LOG", "error")
    if REST_CLIENT not in sys.modules:
        sys.modules[REST_CLIENT] = _put_off(REST_CLIENT)
    with _models_put_off(), _overrides_taken_on_trust():
        yield


@contextlib.contextmanager
def _models_put_off() -> Iterator[None]:
    """Let Pydantic build each model that is declared meanwhile when it is first used."""
    from pydantic import BaseModel

    before = BaseModel.model_config
    BaseModel.model_config = {**before, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = before


@contextlib.contextmanager
def _overrides_taken_on_trust() -> Iterator[None]:
    """Let methods be marked as overriding others without a search for those."""
    if _OVERRIDES in sys.modules or sys.version_info >= (3, 12):
        yield
        return
    trusting = ModuleType(_OVERRIDES)
    vars(trusting).update(override=lambda method: method, EnforceOverrides=object)
    sys.modules[_OVERRIDES] = trusting
    try:
        yield
    finally:
        del sys.modules[_OVERRIDES]


def _put_off(name: str) -> ModuleType:
    """Return a package whose modules can be imported, and whose own body has not run."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _PutOff
    return package


class _PutOff(ModuleType):
    """A package that runs its body, once, when it is asked for a name that it does not have.

    Threads that ask meanwhile wait. What the body itself asks for is not there yet, as in any
    import.
    """

    _body = threading.RLock()
    _runs = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with _PutOff._body:
            if type(self) is _PutOff and not _PutOff._runs:
                _PutOff._runs = True
                try:
                    spec = self.__spec__
                    assert spec is not None
                    assert spec.loader is not None
                    spec.loader.exec_module(self)
                    self.__class__ = ModuleType  # type: ignore[assignment]
                finally:
                    _PutOff._runs = False
            if name not in self.__dict__:
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
            return self.__dict__[name]
