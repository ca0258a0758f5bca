"""LanceDB, imported without the REST client that it brings and that nothing here uses.

The client is 30 generated modules whose functions Pydantic wraps one by one: nearly half of what
importing LanceDB costs, in every command. The models beside them are needed. So the client's
package is put in place with its body put off until something of it is asked for.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lancedb.db import DBConnection

REST_CLIENT = "lance_namespace_urllib3_client"

_importing = threading.Lock()


def connect(uri: str) -> DBConnection:
    """Open a LanceDB location."""
    with _importing:
        lancedb = _lancedb()
    return lancedb.connect(uri)


@functools.cache
def _lancedb() -> ModuleType:
    if REST_CLIENT not in sys.modules:
        sys.modules[REST_CLIENT] = _put_off(REST_CLIENT)
    import lancedb

    return lancedb


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
