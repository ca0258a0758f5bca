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
        BusyError as BusyError,
        CheckFailedError as CheckFailedError,
        ConfigError as ConfigError,
        GraphRAGError as GraphRAGError,
        InputError as InputError,
        NothingPublishedError as NothingPublishedError,
        RemovalError as RemovalError,
        StorageError as StorageError,
    )
    from graphrag_pipeline.core.settings import Settings as Settings, load_settings as load_settings
    from graphrag_pipeline.index import Index as Index, Update as Update
    from graphrag_pipeline.query import (
        Answer as Answer,
        Ask as Ask,
        Method as Method,
        QueryEngine as QueryEngine,
        Retrieval as Retrieval,
    )

import_by_old_names()
__getattr__, __dir__ = lazy_names(__name__, __file__)
