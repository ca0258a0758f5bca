"""What a run will find in the cache, looked up without asking the model or writing anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm.cache import VectorSource, look_up_response
from graphrag_pipeline.llm.client import ModelClient, check_usable
from graphrag_pipeline.llm.completion import Completion
from graphrag_pipeline.llm.database import CallDatabase, open_database
from graphrag_pipeline.llm.embeddings import pieces
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.requests import ChatRequest

_VARIABLES = 500


class NotInCacheError(ModelError):
    """A question that was never answered: a run will have to buy the answer."""


class CachedAnswers(ModelClient):
    """A model client that knows the cache alone; the cache file must be there.

    ``found`` counts the answers it gave. Any other question raises NotInCacheError.
    """

    found = 0

    async def __aenter__(self) -> CachedAnswers:
        self._database = CallDatabase(Home(self._home).calls)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._database.close()

    async def ask(self, request: ChatRequest) -> Completion:
        """Return the answer that is kept, and leave no trace in the ledger."""
        _, key = self._prepared(request)
        response = look_up_response(self._database, key)
        if response is None:
            raise NotInCacheError("not in the cache")
        text, prompt, completion, reason, _ = response
        try:
            check_usable(request, text, reason)
        except ModelOutputError:
            raise NotInCacheError("what is in the cache cannot be used") from None
        self.found += 1
        return Completion(text, prompt, completion, True, 0.0, reason, 0.0)


def vectors_known(home: Path, options: LlmOptions, texts: Sequence[str]) -> list[bool]:
    """Return for each text whether its vector is in the cache, all pieces of it."""
    if not texts or not Home(home).calls.is_file():
        return [False] * len(texts)
    source = VectorSource(options.endpoint, options.embedding_model, options.embedding_dimensions)
    most = options.embedding_max_tokens
    keys = [source.keys(piece.text for piece in pieces(text, most)) for text in texts]
    known = _known(home, dict.fromkeys(key for of_text in keys for key in of_text))
    return [known.issuperset(of_text) for of_text in keys]


def _known(home: Path, wanted: Iterable[bytes]) -> set[bytes]:
    keys, known = list(wanted), set[bytes]()
    with contextlib.closing(open_database(Home(home).calls)) as con:
        for start in range(0, len(keys), _VARIABLES):
            some = keys[start : start + _VARIABLES]
            places = ",".join("?" * len(some))
            rows = con.execute(f"SELECT key FROM embeddings WHERE key IN ({places})", some)
            known.update(key for (key,) in rows)
    return known
