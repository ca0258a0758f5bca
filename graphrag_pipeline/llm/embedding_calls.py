"""Vectors bought in bulk: each text, or piece of a long one, once, and many in a request."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphrag_pipeline.core.tokens import count_tokens, encoding_for
from graphrag_pipeline.llm.answers import TokenUsage, read_usage
from graphrag_pipeline.llm.cache import (
    VectorSource,
    put_embeddings,
)
from graphrag_pipeline.llm.calls import EMBEDDINGS_PATH, CallerOfModels, CallTurn, Outgoing, log
from graphrag_pipeline.llm.database import Write
from graphrag_pipeline.llm.embeddings import (
    TextPiece,
    Vectors,
    are_usable,
    batches,
    combine,
    normalised,
    pieces,
    read_vectors,
)
from graphrag_pipeline.llm.errors import TerminalModelError, TransientModelError
from graphrag_pipeline.llm.flights import Flights
from graphrag_pipeline.llm.ledger import Call, is_heard, put_calls
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.paid_answers import PaidAnswers

_LOOKUP = 500
_YIELD_EVERY = 20
_SETTLED = 3
_PROBE = "length"


class EmbeddingCalls:
    """Finds the vectors of texts in the cache and buys those that are not there.

    Only what can be used is kept: finite, not nought, and as long as the other vectors of the same
    source. What the cache holds and cannot be used is dropped and bought again. The length that a
    server gives three times in a row is the length it has: another model answers to that name now,
    and its vectors take the place of those kept.
    """

    def __init__(
        self, options: LlmOptions, caller: CallerOfModels, paid: PaidAnswers, flights: Flights
    ) -> None:
        self._options = options
        self._caller = caller
        self._paid = paid
        self._flights = flights
        self._source = VectorSource(
            options.endpoint, options.embedding_model, options.embedding_dimensions
        )
        self._width = paid.width(self._source)
        self._other_width, self._others_in_a_row = 0, 0

    async def embed(self, texts: Sequence[str], stage: str) -> Vectors:
        """Return one vector of length one for each text, in order."""
        options = self._options
        if not texts:
            return np.zeros((0, options.embedding_dimensions or 0), dtype=np.float32)
        parts = await self._cut(texts)
        keys = self._source.keys(piece.text for of_text in parts for piece in of_text)
        wanted = dict(zip(keys, itertools.chain.from_iterable(parts), strict=True))
        vectors = await self._cached(list(wanted), stage)
        if vectors:
            n_tokens = self._n_tokens(wanted[key].text for key in vectors)
            call = Call(stage, options.embedding_model, None, n_tokens, cached=True)
            self._paid.own.write_later([put_calls(call)])
        while missing := [key for key in wanted if key not in vectors]:
            async with self._flights.leading(missing) as mine:
                vectors |= await self._cached(mine, stage)
                new = {key: wanted[key] for key in mine if key not in vectors}
                vectors |= await self._buy_vectors(new, stage)
            rest = [key for key in missing if key not in vectors]
            vectors |= await self._cached(rest, stage)
            # Their length may have turned out to be another meanwhile.
            vectors = {key: v for key, v in vectors.items() if len(v) == self._width}
        return combine(np.stack([vectors[key] for key in keys]), parts)

    async def width(self, stage: str) -> int:
        """Return how long the vectors are. What is not known yet two answers in a row must say."""
        while self._width is None:
            answers = [
                await self._request_vectors([_PROBE], stage, any_width=True) for _ in range(2)
            ]
            calls = [write for _, turn in answers for write in turn.accounted()]
            bought, keys = list[Write](), list[bytes]()
            (first, _), (second, _) = answers
            if first.shape == second.shape:
                self._width = second.shape[1]
                keys = self._source.keys([_PROBE])
                vectors = {keys[0]: normalised(second)[0]}
                bought = self._bought(vectors, stage, self._width)
            await self._paid.keep(calls, bought, keys)
        return self._width

    async def probe(self, stage: str) -> None:
        """Ask for a vector, also where one is kept: the server may have been changed since."""
        if self._width is None:
            await self.width(stage)
            return
        _, turn = await self._request_vectors([_PROBE], stage)
        await self._paid.keep(turn.accounted(), [], [])

    async def _cut(self, texts: Sequence[str]) -> list[list[TextPiece]]:
        parts: list[list[TextPiece]] = []
        for number, text in enumerate(texts):
            parts.append(pieces(text, self._options.embedding_max_tokens))
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return parts

    def _n_tokens(self, texts: Iterable[str]) -> int:
        """Return the tokens of texts where somebody wants to know what their vectors took."""
        if not is_heard("taken"):
            return 0
        return sum(count_tokens(list(texts), encoding_for(self._options.embedding_model)))

    async def _cached(self, keys: Sequence[bytes], stage: str) -> dict[bytes, Vectors]:
        """Return the usable vectors that are kept; those that are not are dropped."""
        usable: dict[bytes, Vectors] = {}
        for start in range(0, len(keys), _LOOKUP):
            some = keys[start : start + _LOOKUP]
            kept = await self._paid.vectors(some, self._options.embedding_model, stage)
            if kept and self._width is None:
                self._width = _usual_length(kept.values())
            whole = {key: v for key, v in kept.items() if len(v) == self._width}
            if whole:
                right = are_usable(np.stack(list(whole.values())))
                whole = dict(itertools.compress(whole.items(), right))
            usable |= whole
            if bad := kept.keys() - whole.keys():
                log.warning("%d vectors of the cache cannot be used: asking again", len(bad))
                await self._paid.drop(embeddings=bad)
            await asyncio.sleep(0)
        return usable

    async def _buy_vectors(
        self, wanted: Mapping[bytes, TextPiece], stage: str
    ) -> dict[bytes, Vectors]:
        keys = iter(wanted)
        groups = [
            dict(zip(itertools.islice(keys, len(group)), group, strict=True))
            for group in batches(wanted.values())
        ]
        done = await asyncio.gather(
            *(self._buy_group(group, stage) for group in groups), return_exceptions=True
        )
        failed = next((result for result in done if isinstance(result, BaseException)), None)
        if failed is not None:
            raise failed
        return {key: v for part in done if isinstance(part, dict) for key, v in part.items()}

    async def _buy_group(
        self, group: Mapping[bytes, TextPiece], stage: str
    ) -> dict[bytes, Vectors]:
        texts = [piece.text for piece in group.values()]
        rows, turn = await self._request_vectors(texts, stage)
        vectors = dict(zip(group, normalised(rows), strict=True))
        bought = self._bought(vectors, stage, rows.shape[1])
        await self._paid.keep(turn.accounted(), bought, vectors)
        return vectors

    def _bought(self, vectors: Mapping[bytes, Vectors], stage: str, width: int) -> list[Write]:
        vectors_kept = put_embeddings(self._options.embedding_model, vectors, stage)
        return [vectors_kept, self._source.put_width(width)]

    async def _request_vectors(
        self, texts: Sequence[str], stage: str, *, any_width: bool = False
    ) -> tuple[Vectors, CallTurn]:
        options = self._options
        body: dict[str, Any] = {"model": options.embedding_model, "input": list(texts)}
        if options.embedding_dimensions:
            body["dimensions"] = options.embedding_dimensions
        body["encoding_format"] = "base64"

        def count() -> int:
            return sum(count_tokens(texts, encoding_for(options.embedding_model)))

        def read(raw: Mapping[str, Any]) -> tuple[Vectors, TokenUsage]:
            vectors = read_vectors(raw, len(texts))
            if not any_width:
                self._check_width(vectors.shape[1])
            return vectors, read_usage(raw) or TokenUsage(count(), 0)

        outgoing = Outgoing(EMBEDDINGS_PATH, options.embedding_model, stage, None, body, count, 0)
        return await self._caller.send(outgoing, read)

    def _check_width(self, width: int) -> None:
        """Raise the error of vectors that are not as long as the others of their source.

        Terminal where another length was asked for, transient where the server may only be ill.
        """
        model, asked = self._options.embedding_model, self._options.embedding_dimensions
        if asked and width != asked:
            if self._is_third(width):
                raise TerminalModelError(
                    f"{model} gives vectors of {width} numbers, not {asked}: set "
                    "embedding_dimensions to what the model has",
                    "dimensions",
                )
        elif self._width is None or width == self._width or self._is_third(width):
            if self._width not in (None, width):
                log.warning(
                    "%s gives vectors of %d numbers now, not %s: texts are embedded again",
                    model, width, self._width,
                )  # fmt: skip
            self._width, self._others_in_a_row = width, 0
            return
        raise TransientModelError(
            f"the embedding server sent vectors of {width} numbers, not {asked or self._width}: "
            "run again later",
            "body",
        )

    def _is_third(self, width: int) -> bool:
        """Count a length that is not the source's; say if it came three times in a row."""
        again = self._others_in_a_row and width == self._other_width
        self._other_width = width
        self._others_in_a_row = self._others_in_a_row + 1 if again else 1
        return self._others_in_a_row >= _SETTLED


def _usual_length(vectors: Iterable[Vectors]) -> int | None:
    """Return the length that most vectors have, None if they have none."""
    lengths = Counter(len(v) for v in vectors if len(v))
    return lengths.most_common(1)[0][0] if lengths else None
