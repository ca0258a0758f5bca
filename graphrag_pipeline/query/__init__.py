"""Questions on the published index: retrieval and answers with citations.

>>> from graphrag_pipeline.query import answer
>>> print(answer("Who visits Scrooge?", method="local").text)  # doctest: +SKIP

:func:`retrieve` finds evidence, :func:`answer` makes an answer of it, :func:`stream_answer` gives
it piece by piece; ``aretrieve`` and ``aanswer`` are their async forms, and a stream works with
``async for``. :class:`QueryEngine` asks many questions of one open release. :func:`compare` asks
several methods. An :class:`Ask` is a question with its method and options, where it is handed on.
``METHODS`` are the methods by name, ``MODEL_METHODS`` those that answer with a model only;
:func:`register_method` adds one of your own.

Names are imported with their first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag_pipeline.query.ask import Ask
    from graphrag_pipeline.query.comparing import Compared, compare
    from graphrag_pipeline.query.engine import (
        QueryEngine,
        aanswer,
        answer,
        aretrieve,
        retrieve,
        stream_answer,
    )
    from graphrag_pipeline.query.history import read_history
    from graphrag_pipeline.query.methods import (
        METHODS,
        MODEL_METHODS,
        Method,
        methods_taking,
        parameter_rows,
        read_method,
        register_method,
        unregister_method,
    )
    from graphrag_pipeline.query.release import Release, ReleaseFacts, open_release
    from graphrag_pipeline.query.results import Answer, Citation, Record, Retrieval, render_context
    from graphrag_pipeline.query.streaming import AnswerStream

__all__ = [
    "METHODS",
    "MODEL_METHODS",
    "Answer",
    "AnswerStream",
    "Ask",
    "Citation",
    "Compared",
    "Method",
    "QueryEngine",
    "Record",
    "Release",
    "ReleaseFacts",
    "Retrieval",
    "aanswer",
    "answer",
    "aretrieve",
    "compare",
    "methods_taking",
    "open_release",
    "parameter_rows",
    "read_history",
    "read_method",
    "register_method",
    "render_context",
    "retrieve",
    "stream_answer",
    "unregister_method",
]
_MODULES = {
    "Answer": "results",
    "AnswerStream": "streaming",
    "Ask": "ask",
    "Citation": "results",
    "Compared": "comparing",
    "METHODS": "methods",
    "MODEL_METHODS": "methods",
    "Method": "methods",
    "QueryEngine": "engine",
    "Record": "results",
    "Release": "release",
    "ReleaseFacts": "release",
    "Retrieval": "results",
    "aanswer": "engine",
    "answer": "engine",
    "aretrieve": "engine",
    "compare": "comparing",
    "methods_taking": "methods",
    "open_release": "release",
    "parameter_rows": "methods",
    "read_history": "history",
    "read_method": "methods",
    "register_method": "methods",
    "render_context": "results",
    "retrieve": "engine",
    "stream_answer": "engine",
    "unregister_method": "methods",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
