"""Lookup of a run's calls in the cache, without asking the model or writing anything."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_pipeline.llm.cache import VectorSource, held_keys, look_up_response
from graphrag_pipeline.llm.client import ModelClient
from graphrag_pipeline.llm.completion import Completion
from graphrag_pipeline.llm.database import CallDatabase, Place, reading, tables_at
from graphrag_pipeline.llm.embeddings import pieces
from graphrag_pipeline.llm.errors import ModelError, ModelOutputError
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.paid_answers import answer_places
from graphrag_pipeline.llm.requests import ChatRequest, check_usable


class NotInCacheError(ModelError):
    """A question that was never answered: a run will have to buy the answer."""


class CachedAnswers(ModelClient):
    """A model client that knows the cache alone, its own and the shared one.

    ``found`` counts the answers it gave. Any other question raises NotInCacheError.
    """

    found = 0

    async def __aenter__(self) -> CachedAnswers:
        places = answer_places(self._home, self.options.shared_cache)
        self._known = [CallDatabase(tables_at(place)) for place in places]
        return self

    async def __aexit__(self, *_: object) -> None:
        for database in self._known:
            database.close()

    async def ask(self, request: ChatRequest) -> Completion:
        """Return the answer that is kept, and leave no trace in the ledger."""
        _, key = self._prepared(request)
        responses = (look_up_response(database, key) for database in self._known)
        response = next(filter(None, responses), None)
        if response is None:
            raise NotInCacheError("not in the cache")
        text, prompt, completion, reason, _ = response
        try:
            check_usable(request, text, reason)
        except ModelOutputError:
            raise NotInCacheError("what is in the cache cannot be used") from None
        self.found += 1
        return Completion(text, prompt, completion, True, 0.0, reason, 0.0)


def vectors_known(home: Place, options: LlmOptions, texts: Sequence[str]) -> list[bool]:
    """Return for each text whether its vector is in the cache, all pieces of it."""
    places = answer_places(home, options.shared_cache)
    if not texts or not places:
        return [False] * len(texts)
    source = VectorSource(options.endpoint, options.embedding_model, options.embedding_dimensions)
    most = options.embedding_max_tokens
    keys = [source.keys(piece.text for piece in pieces(text, most)) for text in texts]
    wanted = list(dict.fromkeys(key for of_text in keys for key in of_text))
    known = set[bytes]()
    for place in places:
        with reading(place) as tables:
            known |= held_keys(tables, "embeddings", wanted) if tables else set()
    return [known.issuperset(of_text) for of_text in keys]
