"""GraphRAG as a data pipeline: documents in, a knowledge-graph index out, and questions answered.

>>> from graphrag_pipeline import Index
>>> index = Index("home")
>>> index.update("documents")  # doctest: +SKIP
>>> print(index.answer("What are the main themes?", "global").text)  # doctest: +SKIP

Names are imported with their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.core.lazy import lazy_names
from graphrag_pipeline.core.moved import import_by_old_names

if TYPE_CHECKING:
    from graphrag_pipeline.core.errors import (
        BusyError,
        CheckFailedError,
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
    "CheckFailedError",
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
import_by_old_names()
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "core.errors": (
            "BusyError",
            "CheckFailedError",
            "ConfigError",
            "GraphRAGError",
            "InputError",
            "NothingPublishedError",
            "RemovalError",
            "StorageError",
        ),
        "core.settings": (
            "Settings",
            "load_settings",
        ),
        "index": (
            "Index",
            "Update",
        ),
        "query": (
            "Answer",
            "Ask",
            "Method",
            "QueryEngine",
            "Retrieval",
        ),
    },
)
