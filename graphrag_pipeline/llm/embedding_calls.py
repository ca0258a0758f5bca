"""Vectors bought in bulk: each text, or piece of a long one, once, and many in a request."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.answers import Usage, read_usage
from graphrag_pipeline.llm.cache import embedding_keys, find_embeddings, put_embeddings
from graphrag_pipeline.llm.calls import Caller, Outgoing, Turn
from graphrag_pipeline.llm.database import CallDatabase
from graphrag_pipeline.llm.embeddings import (
    Piece,
    Vectors,
    batches,
    combine,
    normalised,
    pieces,
    read_vectors,
)
from graphrag_pipeline.llm.errors import TerminalModelError
from graphrag_pipeline.llm.flights import Flights
from graphrag_pipeline.llm.ledger import Call, put_calls
from graphrag_pipeline.llm.options import LlmOptions

_PATH = "/embeddings"
_LOOKUP = 500
_YIELD_EVERY = 20


class EmbeddingCalls:
    """Finds the vectors of texts in the cache and buys those that are not there."""

    def __init__(self, options: LlmOptions, caller: Caller, database: CallDatabase) -> None:
        self._options = options
        self._caller = caller
        self._database = database
        self._flights = Flights()

    async def embed(self, texts: Sequence[str], stage: str, batch: str | None) -> Vectors:
        """Return one vector of length one for each text, in order."""
        options = self._options
        if not texts:
            return np.zeros((0, options.embedding_dimensions or 0), dtype=np.float32)
        parts = await self._cut(texts)
        keys = embedding_keys(
            options.endpoint,
            options.embedding_model,
            options.embedding_dimensions,
            (piece.text for of_text in parts for piece in of_text),
        )
        wanted = dict(zip(keys, itertools.chain.from_iterable(parts), strict=True))
        found = await self._known(list(wanted))
        if found:
            call = Call(stage, options.embedding_model, batch, cached=True)
            self._database.write_later([put_calls(call)])
        while missing := [key for key in wanted if key not in found]:
            async with self._flights.leading(missing) as mine:
                found |= await self._known(mine)
                new = {key: wanted[key] for key in mine if key not in found}
                found |= await self._buy_vectors(new, stage, batch)
            found |= await self._known([key for key in missing if key not in found])
        return combine(np.stack([found[key] for key in keys]), parts)

    async def _cut(self, texts: Sequence[str]) -> list[list[Piece]]:
        parts: list[list[Piece]] = []
        for number, text in enumerate(texts):
            parts.append(pieces(text, self._options.embedding_max_tokens))
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return parts

    async def _known(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        found: dict[bytes, Vectors] = {}
        for start in range(0, len(keys), _LOOKUP):
            found |= find_embeddings(self._database, keys[start : start + _LOOKUP])
            await asyncio.sleep(0)
        return found

    async def _buy_vectors(
        self, wanted: Mapping[bytes, Piece], stage: str, batch: str | None
    ) -> dict[bytes, Vectors]:
        keys = iter(wanted)
        groups = [
            dict(zip(itertools.islice(keys, len(group)), group, strict=True))
            for group in batches(wanted.values())
        ]
        done = await asyncio.gather(
            *(self._buy_group(group, stage, batch) for group in groups), return_exceptions=True
        )
        failed = next((result for result in done if isinstance(result, BaseException)), None)
        if failed is not None:
            raise failed
        return {key: v for part in done if isinstance(part, dict) for key, v in part.items()}

    async def _buy_group(
        self, group: Mapping[bytes, Piece], stage: str, batch: str | None
    ) -> dict[bytes, Vectors]:
        texts = [piece.text for piece in group.values()]
        given, turn = await self._request_vectors(texts, stage, batch)
        vectors = dict(zip(group, normalised(given), strict=True))
        model = self._options.embedding_model
        await self._database.write([put_calls(turn.call()), put_embeddings(model, vectors)])
        return vectors

    async def _request_vectors(
        self, texts: Sequence[str], stage: str, batch: str | None
    ) -> tuple[Vectors, Turn]:
        options = self._options
        body: dict[str, Any] = {"model": options.embedding_model, "input": list(texts)}
        if options.embedding_dimensions:
            body["dimensions"] = options.embedding_dimensions
        body["encoding_format"] = "base64"

        def count() -> int:
            return sum(count_tokens(texts))

        def read(raw: Mapping[str, Any]) -> tuple[Vectors, Usage]:
            vectors = read_vectors(raw, len(texts))
            width = options.embedding_dimensions or vectors.shape[1]
            if vectors.shape[1] != width:
                raise TerminalModelError(
                    f"{options.embedding_model} gives vectors of {vectors.shape[1]} numbers, not "
                    f"{width}: set embedding_dimensions to what the model has",
                    "dimensions",
                )
            return vectors, read_usage(raw) or Usage(count(), 0)

        outgoing = Outgoing(_PATH, options.embedding_model, stage, batch, body, count, 0)
        return await self._caller.send(outgoing, read)
