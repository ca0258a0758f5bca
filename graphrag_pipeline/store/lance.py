"""LanceDB, imported without what only its REST client needs, and nothing here uses.

Otherwise importing it takes longer than all the rest of a question:

- The client is 30 generated modules whose functions Pydantic wraps one by one. Its package is put
  in place with its body put off until something of it is asked for.
- The 147 models beside it are needed as names only, by annotations. Each name stands for its model,
  which is looked up when something is done with it. Of the few that are imported one by one,
  Pydantic builds what checks their fields when one is first made.
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
from collections.abc import Collection, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Union

from graphrag_pipeline.core.hardening.memory import require_memory
from graphrag_pipeline.core.patterns import pattern_of

if TYPE_CHECKING:
    from lancedb.db import DBConnection

REST_CLIENT = "lance_namespace_urllib3_client"
_MODELS = f"{REST_CLIENT}.models"
_OURS = ("lancedb", "lance_namespace")
_NATIVE = "lancedb._lancedb"
_OVERRIDES = "overrides"

_BEFORE_CAPITAL = pattern_of("(?<!^)(?=[A-Z])")

_importing = threading.Lock()


def connect(uri: str) -> DBConnection:
    """Open a LanceDB location. Raises OutOfMemoryError where memory is short."""
    with _importing:
        lancedb = _lancedb()
    require_memory()
    return lancedb.connect(uri)


@functools.cache
def _lancedb() -> ModuleType:
    before = set(sys.modules)
    try:
        with lightly():
            import lancedb
    except Exception:
        # Another version, which does more with what is put off than it can bear.
        _forget(set(sys.modules) - before)
        import lancedb

    return lancedb


def _forget(names: Collection[str]) -> None:
    """Let packages of LanceDB be imported anew, but for the library that is loaded once only."""
    for name in names:
        if name.startswith(_OURS) and name != _NATIVE:
            del sys.modules[name]


@contextlib.contextmanager
def lightly() -> Iterator[None]:
    """Import LanceDB, or a package of its own, without what nothing here uses."""
    # It warns of what nobody can do anything about, on standard error.
    os.environ.setdefault("LANCEDB_LOG", "error")
    for name in (REST_CLIENT, _MODELS):
        if name not in sys.modules and (spec := importlib.util.find_spec(name)):
            sys.modules[name] = _PutOff(spec)
    with _models_by_name(), _models_put_off(), _overrides_taken_on_trust():
        yield


@contextlib.contextmanager
def _models_by_name() -> Iterator[None]:
    models = sys.modules.get(_MODELS)
    if not isinstance(models, _PutOff):
        yield
        return
    models.by_name = True
    try:
        yield
    finally:
        models.by_name = False


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


class _PutOff(ModuleType):
    """A package that runs its body, once, when it is asked for a name that it does not have.

    Threads that ask meanwhile wait. What the body itself asks for is not there yet, as in any
    import. While it is asked ``by_name``, names that look like those of classes stand for them.
    """

    by_name = False
    _body = threading.RLock()
    _runs = False

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        for name, value in vars(importlib.util.module_from_spec(spec)).items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Later(name) if self.by_name and name[0].isupper() else self.whole(name)

    def whole(self, name: str) -> Any:
        """Return a name of the package, whose body has run then."""
        with _PutOff._body:
            if isinstance(self, _PutOff) and not self._runs:
                self._runs = True
                try:
                    spec = self.__spec__
                    assert spec is not None
                    assert spec.loader is not None
                    spec.loader.exec_module(self)
                    self.__class__ = ModuleType  # type: ignore[assignment]
                finally:
                    del self._runs
            if name not in self.__dict__:
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
            return self.__dict__[name]


class _Later:
    """A name that stands for a model, until something is done with it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _model(self) -> Any:
        """Return the model from the module of its own, or else as the whole package has it."""
        module = f"{_MODELS}.{_BEFORE_CAPITAL.sub('_', self._name).lower()}"
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(module), self._name)
        models = sys.modules[_MODELS]
        return models.whole(self._name) if isinstance(models, _PutOff) else vars(models)[self._name]

    def __call__(self, *values: Any, **named: Any) -> Any:
        return self._model()(*values, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._model(), name)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[Any, ...]:
        return (self._model(),)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._model())

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007

    __ror__ = __or__
