"""Questions on the published index: retrieval and answers with citations.

>>> from graphrag_pipeline.query import answer
>>> print(answer("Who visits Scrooge?", method="local").text)  # doctest: +SKIP

:func:`retrieve` finds evidence, :func:`answer` makes an answer of it, :func:`stream_answer` gives
it piece by piece; ``aretrieve`` and ``aanswer`` are their async forms, and a stream works with
``async for``. :class:`QueryEngine` asks many questions of one open release. :func:`compare` asks
several methods, :func:`answer_across` several indexes. An :class:`Ask` is a question with its
method and options, where it is handed on.
``METHODS`` are the methods by name, ``MODEL_METHODS`` those that answer with a model only;
:func:`register_method` adds one of your own.

Names are imported with their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.core.lazy import lazy_names

if TYPE_CHECKING:
    from graphrag_pipeline.query.ask import Ask as Ask
    from graphrag_pipeline.query.comparing import Compared as Compared, compare as compare
    from graphrag_pipeline.query.conversation import read_history as read_history
    from graphrag_pipeline.query.engine import (
        QueryEngine as QueryEngine,
        aanswer as aanswer,
        answer as answer,
        aretrieve as aretrieve,
        retrieve as retrieve,
        stream_answer as stream_answer,
    )
    from graphrag_pipeline.query.methods import (
        METHODS as METHODS,
        MODEL_METHODS as MODEL_METHODS,
        Method as Method,
        methods_taking as methods_taking,
        parameter_rows as parameter_rows,
        read_method as read_method,
        register_method as register_method,
        unregister_method as unregister_method,
    )
    from graphrag_pipeline.query.release import (
        Release as Release,
        ReleaseFacts as ReleaseFacts,
        open_release as open_release,
    )
    from graphrag_pipeline.query.results import (
        Answer as Answer,
        Citation as Citation,
        Record as Record,
        Retrieval as Retrieval,
        render_context as render_context,
    )
    from graphrag_pipeline.query.several_indexes import (
        answer_across as answer_across,
        retrieve_across as retrieve_across,
    )
    from graphrag_pipeline.query.streaming import AnswerStream as AnswerStream

__getattr__, __dir__ = lazy_names(__name__, __file__)
