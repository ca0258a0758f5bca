"""GraphRAG as a data pipeline: documents in, a knowledge-graph index out, and questions answered.

>>> from graphrag_pipeline import Index
>>> index = Index("home")
>>> index.update("documents")  # doctest: +SKIP
>>> print(index.answer("What are the main themes?", "global").text)  # doctest: +SKIP

Names are imported with their first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag_pipeline.core.errors import (
        BusyError,
        ConfigError,
        GraphRAGError,
        InputError,
        NothingPublishedError,
        RemovalError,
        StorageError,
    )
    from graphrag_pipeline.core.settings import Settings, load_settings
    from graphrag_pipeline.index import Index, Update
    from graphrag_pipeline.query import Answer, Ask, Method, QueryEngine, Retrieval

__all__ = [
    "Answer",
    "Ask",
    "BusyError",
    "ConfigError",
    "GraphRAGError",
    "Index",
    "InputError",
    "Method",
    "NothingPublishedError",
    "QueryEngine",
    "RemovalError",
    "Retrieval",
    "Settings",
    "StorageError",
    "Update",
    "load_settings",
]
_MODULES = {
    "Answer": "query",
    "Ask": "query",
    "Index": "index",
    "Method": "query",
    "QueryEngine": "query",
    "Retrieval": "query",
    "Settings": "core.settings",
    "Update": "index",
    "load_settings": "core.settings",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'core.errors')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
