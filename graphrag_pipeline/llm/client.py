"""The language model: each answer bought once, kept before it is used, and accounted for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.tokens import count_tokens, encoding_for
from graphrag_pipeline.llm.answer_purposes import made_for
from graphrag_pipeline.llm.answers import ChatAnswer, StreamedAnswer, TokenUsage, read_answer
from graphrag_pipeline.llm.batching.lane import BatchLane, lane_options
from graphrag_pipeline.llm.budget import Budget, BudgetAmount, plus
from graphrag_pipeline.llm.cache import (
    CachedResponse,
    put_purpose,
    put_response,
    request_json,
)
from graphrag_pipeline.llm.calls import STREAMED, CallerOfModels, CallTurn, Outgoing, log
from graphrag_pipeline.llm.completion import Completion
from graphrag_pipeline.llm.database import Place, SharedCalls, Write
from graphrag_pipeline.llm.embedding_calls import EmbeddingCalls
from graphrag_pipeline.llm.embeddings import Vectors
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.flights import Flights
from graphrag_pipeline.llm.ledger import Call, put_calls, spent_since
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.paid_answers import PaidAnswers
from graphrag_pipeline.llm.prices import Prices, load_prices, unpriced
from graphrag_pipeline.llm.requests import (
    ChatRequest,
    Messages,
    chat_body,
    chat_key,
    check_usable,
    cut_to_fit,
    prompt_text,
    said_after,
)
from graphrag_pipeline.llm.transport import Transport
from graphrag_pipeline.llm.windows import check_fits, check_was_read

T = TypeVar("T")

_CHAT = "/chat/completions"
_LONGEST_REASON = 300


class ModelClient:
    """Chat and embedding models of one OpenAI-compatible endpoint, within one event loop.

    ``home`` is where cache and ledger are: a folder, or where machines share them. ``since`` is the
    ledger's position (:func:`~graphrag_pipeline.llm.ledger.last_position`) from which calls count
    against the budget: a run that is resumed, or has several clients, gives its own beginning; None
    counts this client's calls alone. ``elsewhere`` is what the run has spent in other homes. Every
    method raises a ModelError if there is no answer.
    """

    def __init__(
        self,
        options: LlmOptions,
        home: Place,
        *,
        since: int | None = None,
        elsewhere: BudgetAmount | None = None,
    ) -> None:
        self.options = self._given = options
        self._home = home
        self._since = since
        self._elsewhere = elsewhere or BudgetAmount()
        self._encoding = encoding_for(options.model)
        self._prices = load_prices(
            options.prices_file, options.prices, own_machine=options.is_private
        )
        self._lane: BatchLane | None = None
        if options.lane == "batch":
            if isinstance(home, SharedCalls):
                raise ConfigError('llm.lane = "batch" is for an index on one machine: set "direct"')
            self.options = lane_options(options)
        self._refuse_unpriced(options.model)

    async def __aenter__(self) -> ModelClient:
        options = self.options
        self._transport = Transport(options)
        self._paid = await asyncio.to_thread(PaidAnswers, self._home, options.shared_cache)
        self._database = self._paid.own
        shared = self._home if isinstance(self._home, SharedCalls) else None
        self._holder = shared.holder(self._database) if shared else None
        self._budget = self._counted_budget()
        self._connected = self._caller = self._made_caller(self._given, self._prices)
        if options.lane == "batch":
            prices = self._prices.of_batches()
            self._lane = BatchLane(options, self._transport, self._paid, prices)
            self._caller = self._made_caller(options, prices, self._lane)
        self._flights = Flights(self._holder)
        vector_flights = Flights(self._holder)
        self._vectors = EmbeddingCalls(self._given, self._connected, self._paid, vector_flights)
        return self

    def _made_caller(
        self, options: LlmOptions, prices: Prices, lane: BatchLane | None = None
    ) -> CallerOfModels:
        return CallerOfModels(options, self._transport, self._database, prices, self._budget, lane)

    def _counted_budget(self) -> Budget:
        """Return the budget: of all machines of a run where they share an index."""
        limits = (self.options.max_tokens, self.options.max_cost)
        if self._since is None:
            return Budget(*limits, self._elsewhere)
        if self._holder is not None and limits != (None, None):
            return self._holder.budget(self._since, *limits, self._elsewhere)
        return Budget(*limits, plus(spent_since(self._database, self._since), self._elsewhere))

    async def __aexit__(self, kind: object, *_: object) -> None:
        self._caller.tries.tell()
        try:
            if self._lane is not None:
                await self._lane.close(is_complete=kind is None)
            await self._transport.close()
            if self._holder is not None:
                await self._holder.close()
        finally:
            await asyncio.to_thread(self._paid.close)

    @property
    def spent(self) -> BudgetAmount:
        """The spending that counts against the budget so far."""
        return self._budget.spent

    @property
    def spent_here(self) -> BudgetAmount:
        """The part of it that was spent in this home."""
        elsewhere = self._elsewhere
        return plus(self.spent, BudgetAmount(-elsewhere.tokens, -elsewhere.cost))

    def has_price(self, model: str) -> bool:
        """Whether the cost of a model's calls is known."""
        return self._prices.of(model) is not None

    async def complete(
        self,
        messages: Messages,
        *,
        stage: str,
        batch: str | None = None,
        max_output_tokens: int | None = None,
        json_schema: Mapping[str, Any] | None = None,
        logit_bias: Mapping[int, int] | None = None,
        use_cache: bool = True,
        variant: str | None = None,
        check: Callable[[str], object] | None = None,
        response_format: Mapping[str, Any] | None = None,
        keeps_sound_part: bool = False,
    ) -> Completion:
        """Return the model's answer to some messages; see :class:`ChatRequest`."""
        request = ChatRequest(
            messages, stage, batch, max_output_tokens, json_schema, logit_bias, use_cache,
            variant, check, response_format, keeps_sound_part,
        )  # fmt: skip
        return await self.ask(request)

    async def read(
        self,
        messages: Messages,
        parse: Callable[[str], T],
        *,
        stage: str,
        batch: str | None = None,
        again: Callable[[str], Messages] | None = None,
        retries: int = 1,
        json_schema: Mapping[str, Any] | None = None,
        use_cache: bool = True,
        variant: str | None = None,
        on_answer: Callable[[Completion], object] = lambda completion: None,
    ) -> T:
        """Return what ``parse`` makes of the answer; it raises ModelOutputError if it cannot.

        ``again`` turns what was wrong into further messages: the model is asked so many more times
        with them, never with the bad answer itself, which a small model would only repeat. An
        answer that can be read then is kept as the answer to the question itself. ``on_answer`` is
        given every answer.
        """
        values: list[T] = []
        request = ChatRequest(
            messages, stage, batch, json_schema=json_schema, use_cache=use_cache, variant=variant,
            check=lambda text: values.append(parse(text)),
        )  # fmt: skip
        key = self._prepared(request)[1] if use_cache else None
        buy = self.ask(request)
        for left in range(retries if again else 0, -1, -1):
            try:
                on_answer(await buy)
                return values[-1]
            except ModelOutputError as error:
                if error.completion is None:
                    raise
                on_answer(error.completion)
                if again is None or not left:
                    raise
                talk = said_after(request.messages, again(str(error)[:_LONGEST_REASON]))
            request = replace(request, messages=talk)
            buy = self._buy(request, self._prepared(request)[0], key)
        raise AssertionError("unreachable")

    async def ask(self, request: ChatRequest) -> Completion:
        """Return the model's answer to a request."""
        with self._caller.running():
            body, key = self._prepared(request)
            if not request.use_cache:
                return await self._buy(request, body, None)
            while True:
                if response := await self._kept(request, key):
                    return self._from_cache(request, key, response)
                async with self._flights.leading([key]) as mine:
                    if mine and self._holder and (response := await self._kept(request, key)):
                        return self._from_cache(request, key, response)
                    if mine:
                        return await self._buy(request, body, key)

    async def forget(self, completions: Iterable[Completion]) -> None:
        """Drop answers from the cache: the questions will be asked again."""
        await self._paid.drop([each.key for each in completions if each.key is not None])

    def stream(
        self,
        messages: Messages,
        *,
        stage: str,
        use_cache: bool = False,
        check: Callable[[str], object] | None = None,
    ) -> CompletionStream:
        """Return the answer as a stream of pieces of text; its ``completion`` is there at the end.

        With ``use_cache`` an answer in the cache is one piece, and a new one is kept. One that goes
        round in circles is stopped, and its ``finish_reason`` is ``loop``. One that ``check``
        refuses is not kept, and its error is raised after the last piece.
        """
        request = ChatRequest(
            messages, stage, use_cache=use_cache, check=check, keeps_sound_part=True
        )
        return CompletionStream(self, request)

    async def embed(self, texts: Sequence[str], *, stage: str) -> Vectors:
        """Return the vectors of texts: (texts, dimensions), float32, each of length one.

        A text beyond ``embedding_max_tokens`` is embedded in pieces and their mean taken, weighed
        by length. Every vector that arrives is kept, also when another text's call fails.
        """
        self._refuse_unpriced(self.options.embedding_model)
        with self._connected.running():
            return await self._vectors.embed(texts, stage)

    async def embedding_width(self, *, stage: str) -> int:
        """Return how long the embedding model's vectors are, asked where it is not known yet."""
        self._refuse_unpriced(self.options.embedding_model)
        with self._connected.running():
            return await self._vectors.width(stage)

    async def probe_embeddings(self, *, stage: str) -> None:
        """Ask the embedding model for a vector, whatever is known of it already."""
        self._refuse_unpriced(self.options.embedding_model)
        with self._connected.running():
            await self._vectors.probe(stage)

    async def pieces_of(self, request: ChatRequest) -> AsyncGenerator[str | Completion, None]:
        """Yield the pieces of a streamed answer, then the whole of it."""
        body, key = self._prepared(request)
        if request.use_cache and (response := await self._kept(request, key)):
            yield response.text
            yield self._from_cache(request, key, response)
            return
        body |= STREAMED
        heard = StreamedAnswer()
        ended: list[CallTurn] = []
        rest: list[str] = []

        def account(turn: CallTurn) -> None:
            rest.append(heard.rest())
            turn.usage = heard.usage or self._counted(request, heard.text)
            heard.check()
            ended.append(turn)

        outgoing = self._outgoing(request, body)
        # Beside the request: to read an encoding takes as long as the first words of an answer.
        counting = asyncio.create_task(asyncio.to_thread(outgoing.count_prompt))
        with self._connected.running():
            stream = self._connected.stream(outgoing, account, lambda: heard.is_enough)
            async with aclosing(stream) as heard_of:
                async for piece, turn in heard_of:
                    if text := heard.take(piece):
                        prompt = counting.result() if counting.done() else 0
                        turn.usage = TokenUsage(prompt, len(heard.texts))
                        yield text
            if rest[0]:
                yield rest[0]
            answer = ChatAnswer(heard.text, heard.reason, ended[0].usage)
            kept_under = key if request.use_cache else None
            yield await self._keep_usable(request, kept_under, answer, ended[0])

    def _prepared(self, request: ChatRequest) -> tuple[dict[str, Any], bytes]:
        body = chat_body(request, self.options)
        if self.options.log_content:
            log.debug("asked: %s", request_json(body).decode())
        return body, chat_key(request, self.options)

    def _outgoing(self, request: ChatRequest, body: Mapping[str, Any]) -> Outgoing:
        text = prompt_text(request.messages)
        check_fits(self.options, text, body.get("max_tokens", 1))
        return Outgoing(
            _CHAT,
            self.options.model,
            request.stage,
            request.batch,
            body,
            lambda: count_tokens([text], self._encoding)[0],
            body.get("max_tokens"),
            may_stream=True,
        )

    async def _buy(
        self, request: ChatRequest, body: Mapping[str, Any], key: bytes | None
    ) -> Completion:
        """Buy an answer and keep it under a key; one that cannot be used is paid but not kept."""

        def read(raw: Mapping[str, Any]) -> tuple[ChatAnswer, TokenUsage]:
            answer = read_answer(raw, self.options.max_answer_chars)
            usage = answer.usage or self._counted(request, answer.text)
            check_was_read(self.options, prompt_text(request.messages), usage.prompt)
            return answer.without_loop(), usage

        with self._caller.running():
            outgoing = replace(self._outgoing(request, body), key=key)
            answer, turn = await self._caller.send(outgoing, read)
        answer = cut_to_fit(request, body, answer)
        return await self._keep_usable(request, key, answer, turn)

    async def _keep_usable(
        self, request: ChatRequest, key: bytes | None, answer: ChatAnswer, turn: CallTurn
    ) -> Completion:
        """Keep an answer; one that cannot be used is accounted for, and raises its error."""
        try:
            check_usable(request, answer.text, answer.finish_reason)
        except ModelOutputError as error:
            error.completion = await self._keep(request, None, answer, turn)
            raise
        return await self._keep(request, key, answer, turn)

    async def _kept(self, request: ChatRequest, key: bytes) -> CachedResponse | None:
        """Return the answer that is kept; one that cannot be used is dropped."""
        response = await self._paid.response(key, self.options.model, request.stage)
        if response is None:
            return None
        try:
            check_usable(request, response.text, response.finish_reason)
        except ModelOutputError:
            await self._paid.drop([key])
            return None
        await asyncio.sleep(0)
        return response

    async def _keep(
        self, request: ChatRequest, key: bytes | None, answer: ChatAnswer, turn: CallTurn
    ) -> Completion:
        """Make answer and ledger row durable, then return the answer."""
        call, usage = turn.call(), turn.usage
        bought: list[Write] = []
        if key is not None:
            response = CachedResponse(
                answer.text, usage.prompt, usage.completion, answer.finish_reason, made_for()
            )
            bought = [put_response(key, self.options.model, response, request.stage)]
        await self._paid.keep(turn.accounted(), bought, [] if key is None else [key])
        if self.options.log_content:
            log.debug("answered: %s", answer.text)
        return Completion(
            answer.text,
            usage.prompt,
            usage.completion,
            False,
            call.cost,
            answer.finish_reason,
            call.seconds,
            key,
        )

    def _from_cache(self, request: ChatRequest, key: bytes, response: CachedResponse) -> Completion:
        text, prompt, completion, reason, before = response
        call = Call(
            request.stage, self.options.model, request.batch, prompt, completion, cached=True
        )
        writes = [put_calls(call)]
        if (purpose := made_for()) not in (None, before):
            writes.append(put_purpose(key, purpose))
        self._database.write_later(writes)
        return Completion(text, prompt, completion, True, 0.0, reason, 0.0, key)

    def _counted(self, request: ChatRequest, text: str) -> TokenUsage:
        """Count the tokens of an exchange whose server does not say."""
        return TokenUsage(*count_tokens([prompt_text(request.messages), text], self._encoding))

    def _refuse_unpriced(self, model: str) -> None:
        if self.options.max_cost is not None and not self.has_price(model):
            raise unpriced(model)


class CompletionStream:
    """Pieces of an answer as they come: ``async for piece in stream``, then ``completion``."""

    def __init__(self, client: ModelClient, request: ChatRequest) -> None:
        self.completion: Completion | None = None
        self._client = client
        self._request = request

    async def __aiter__(self) -> AsyncGenerator[str, None]:
        async with aclosing(self._client.pieces_of(self._request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    self.completion = piece
                else:
                    yield piece
