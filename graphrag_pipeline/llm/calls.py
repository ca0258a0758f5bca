"""One call: wait for a turn, send, account for it, and try again where that can help."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from graphrag_pipeline.llm.answers import AssembledAnswer, TokenUsage, read_usage
from graphrag_pipeline.llm.budget import Budget, BudgetAmount
from graphrag_pipeline.llm.database import CallDatabase, Write
from graphrag_pipeline.llm.errors import ModelError, TerminalModelError, TransientModelError
from graphrag_pipeline.llm.ledger import Call, put_calls
from graphrag_pipeline.llm.limits import RateLimiter
from graphrag_pipeline.llm.options import LlmOptions
from graphrag_pipeline.llm.pace import Pace, Sent
from graphrag_pipeline.llm.prices import Prices
from graphrag_pipeline.llm.requests import Dialect
from graphrag_pipeline.llm.transport import Transport
from graphrag_pipeline.llm.tries import Tries

log = logging.getLogger("graphrag_pipeline.llm")

T = TypeVar("T")

EMBEDDINGS_PATH = "/embeddings"

_LONGEST_DELAY = 30.0
_LONGEST_RETRY_AFTER = 300.0
_LONGEST_SHUT = 150.0
_RETRIES_WHEN_EMPTY = 1
_MOST_LOST_IN_A_ROW = 16
_UNBOUNDED_ANSWER = 1000
_TEMPLATE_TOKENS = 16
_SLOWEST_READING = 80
"""Bytes of a prompt that a slow server reads in a second: some 20 tokens."""
STREAMED: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""What asks for an answer in pieces, with its tokens at the end."""


@dataclass(frozen=True)
class Outgoing:
    """A request on its way. ``count_prompt`` counts its tokens; asked only if a limit needs it.

    ``key`` is what its answer is kept under, None if it is not. ``may_stream``: its answer can come
    in pieces.
    """

    path: str
    model: str
    stage: str
    batch: str | None
    body: Mapping[str, Any]
    count_prompt: Callable[[], int]
    max_completion: int | None = None
    key: bytes | None = None
    may_stream: bool = False

    @property
    def embeds(self) -> bool:
        """Whether it asks for vectors, and not for a text."""
        return self.path == EMBEDDINGS_PATH


Ahead = Callable[[Outgoing, str], Awaitable[None]]
ahead_of_calls: ContextVar[Ahead | None] = ContextVar("ahead_of_calls", default=None)
"""Is awaited before the first call of a client is sent, with the call and its endpoint."""


@dataclass
class CallTurn:
    """One attempt; who makes it sets ``usage`` once the answer is there.

    ``writes`` belong to what accounts for it: they are made in the same transaction. One that is
    not ``is_timed`` says nothing of how fast the model is.
    """

    outgoing: Outgoing
    prices: Prices
    usage: TokenUsage = field(default_factory=lambda: TokenUsage(0, 0))
    sent: Sent | None = None
    called_at: float = 0.0
    began: float = 0.0
    is_timed: bool = True
    writes: Sequence[Write] = ()

    @property
    def cost(self) -> float | None:
        """Dollars so far, None for a model without a price."""
        return self.prices.cost(self.outgoing.model, *self.usage)

    def accounted(self, error: str | None = None) -> list[Write]:
        """Return the writes that account for the attempt."""
        return [put_calls(self.call(error)), *self.writes]

    def call(self, error: str | None = None) -> Call:
        """Return the attempt as a row of the ledger."""
        return Call(
            self.outgoing.stage,
            self.outgoing.model,
            self.outgoing.batch,
            self.usage.prompt,
            self.usage.completion,
            self.cost,
            time.perf_counter() - self.began if self.is_timed else 0.0,
            error=error,
            called_at=self.called_at,
            cached_tokens=self.usage.cached,
        )


class Lane(Protocol):
    """Another way for requests than a connection for each."""

    async def buy(self, turn: CallTurn, content: bytes) -> Mapping[str, Any]:
        """Return the JSON object that answers a request. Raises a ModelError."""
        ...


class CallerOfModels:
    """Sends requests within the limits of concurrency, rate and budget.

    A terminal error of the kind every call would meet (key, quota, model name) also ends the
    calls that wait; once none is left, calls are made again. So does a server that is not there:
    a run must not go through a whole corpus to find nothing.
    """

    def __init__(
        self,
        options: LlmOptions,
        transport: Transport,
        database: CallDatabase,
        prices: Prices,
        budget: Budget,
        lane: Lane | None = None,
    ) -> None:
        self.dialect = Dialect.of(options)
        self._options = options
        self._transport = transport
        self._lane = lane
        self._database = database
        self._prices = prices
        self._budget = budget
        self._slots = asyncio.Semaphore(options.concurrency)
        self._limiter = RateLimiter(
            options.requests_per_minute,
            options.tokens_per_minute,
            pace=Pace.of(options),
            sleep=self._pause,
            clock=asyncio.get_running_loop().time,
        )
        self.tries = Tries(options.max_retries + 1)
        self._excess: dict[str, float] = {}
        self._halt: TerminalModelError | None = None
        self._halted = asyncio.Event()
        self._lost_in_a_row = 0
        self._running = 0
        self._first, self._went_ahead = asyncio.Lock(), False

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Belong to the calls that one terminal error ends together."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._halt = None
                self._halted.clear()

    async def send(
        self, outgoing: Outgoing, read: Callable[[Mapping[str, Any]], tuple[T, TokenUsage]]
    ) -> tuple[T, CallTurn]:
        """Return what ``read`` makes of the answer, and the attempt that gave it.

        The attempt is not in the ledger yet: it is written with the answer. Failed ones are.
        """
        failures = 0
        await self._go_ahead(outgoing)
        await self._transport.ready()
        if outgoing.may_stream and self._options.is_private and self._lane is None:
            outgoing = replace(outgoing, body={**outgoing.body, **STREAMED})
        while True:
            content = self.dialect.write(outgoing.body)
            try:
                async with self.turn(outgoing) as turn:
                    raw = await self._answer(turn, content)
                    turn.usage = read_usage(raw) or turn.usage
                    value, turn.usage = read(raw)
                return value, turn
            except ModelError as error:
                failures = await self.after(error, failures, outgoing, content)

    async def _answer(self, turn: CallTurn, content: bytes) -> Mapping[str, Any]:
        if self._lane is not None:
            return await self._lane.buy(turn, content)
        outgoing = turn.outgoing
        if "stream" in outgoing.body and self.dialect.streams:
            return await self._streamed(turn, content)
        return await self._transport.post(outgoing.path, content, outgoing.model)

    async def _streamed(self, turn: CallTurn, content: bytes) -> Mapping[str, Any]:
        """Return an answer of a server of one's own, put together from its stream.

        So the time allowed is for each word of a slow one, and an answer that goes round in circles
        is stopped. Hosted models are fast, and to read each word by itself costs time here.
        """
        outgoing = turn.outgoing
        whole = AssembledAnswer(self._options.max_answer_chars)
        reading = len(content) / _SLOWEST_READING
        pieces = self._transport.stream(outgoing.path, content, outgoing.model, reading=reading)
        try:
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    self._lost_in_a_row = 0
                    whole.take(piece)
                    if whole.is_enough:
                        break
        finally:
            if whole.usage is None and whole.n_pieces:
                turn.usage = TokenUsage(outgoing.count_prompt(), whole.n_pieces)
        return whole.raw

    async def stream(
        self,
        outgoing: Outgoing,
        turn_done: Callable[[CallTurn], None],
        is_enough: Callable[[], bool],
    ) -> AsyncGenerator[tuple[dict[str, Any], CallTurn], None]:
        """Yield the pieces of a streamed answer with the attempt they belong to.

        After each piece ``is_enough`` says whether the server is to be stopped. Once a piece has
        come nothing is tried again: it may have been shown already.
        """
        failures, begun = 0, False
        await self._go_ahead(outgoing)
        await self._transport.ready()
        while True:
            content = self.dialect.write(outgoing.body)
            try:
                async with self.turn(outgoing) as turn:
                    pieces = self._transport.stream(outgoing.path, content, outgoing.model)
                    async with contextlib.aclosing(pieces):
                        async for piece in pieces:
                            begun = True
                            yield piece, turn
                            if is_enough():
                                break
                    turn_done(turn)
                return
            except ModelError as error:
                if begun:
                    raise
                failures = await self.after(error, failures, outgoing, content)

    async def _go_ahead(self, outgoing: Outgoing) -> None:
        """Wait for what is to be done before the first call; an error of it ends all calls."""
        if self._went_ahead:
            return
        async with self._first:
            self._raise_if_halted()
            if self._went_ahead or (ahead := ahead_of_calls.get()) is None:
                return
            try:
                await ahead(outgoing, self._options.endpoint)
            except TerminalModelError as error:
                self._halt_all(error)
                raise
            self._went_ahead = True

    @contextlib.asynccontextmanager
    async def turn(self, outgoing: Outgoing) -> AsyncIterator[CallTurn]:
        """Hold a slot and a share of the budget for one attempt, and account for its end."""
        async with self._slots:
            self._raise_if_halted()
            expected, counted = self._expected(outgoing)
            reservation = await self._budget.reserve(expected)
            turn = CallTurn(outgoing, self._prices)
            try:
                if self._lane is None:
                    turn.sent = await self._limiter.acquire(expected.tokens)
                self._raise_if_halted()
                turn.called_at, turn.began = time.time(), time.perf_counter()
                yield turn
                if turn.sent is not None:
                    self._limiter.passed(turn.sent)
                self._lost_in_a_row = 0
            except ModelError as error:
                self._learn_rate(turn.sent, error)
                self._record_failure(turn, str(error))
                raise
            except BaseException:
                self._record_failure(turn, "interrupted")
                raise
            finally:
                tokens = turn.usage.prompt + turn.usage.completion
                self._compare(turn, counted)
                if turn.began:
                    self._limiter.correct(expected.tokens, tokens)
                self._budget.settle(reservation, BudgetAmount(tokens, turn.cost or 0.0))

    async def after(self, error: ModelError, failures: int, outgoing: Outgoing, sent: bytes) -> int:
        """Wait until the call can be tried again, or raise the error. Returns the failures."""
        if isinstance(error, TerminalModelError):
            self._lost_in_a_row = 0
            if self.dialect.learn(error, sent, outgoing.body):
                log.warning("%s: asking again without what was refused", error)
                return failures
            if error.stops_everything:
                self._halt_all(error)
        if not isinstance(error, TransientModelError):
            raise error
        failures += 1
        empty = error.kind == "empty"
        asked = error.retry_after or 0.0
        most = min(self._options.max_retries, _RETRIES_WHEN_EMPTY if empty else 10**6)
        if failures > most or asked > _LONGEST_RETRY_AFTER:
            raise error if empty else self._given_up(error)
        if self._limiter.shut_for > _LONGEST_SHUT:
            raise self._ended(error, f" (no call got through for {self._limiter.shut_for:.0f} s)")
        delay = self._delay(error, failures)
        self.tries.begin(error, failures + 1)
        log.info("%s (stage %s): trying again in %.1f s", error, outgoing.stage, delay)
        await self._pause(delay)
        return failures

    def _delay(self, error: TransientModelError, failures: int) -> float:
        """Return the seconds to wait before a call is tried again.

        One that came too soon waits for its turn alone: the limiter has learnt from it.
        """
        is_rate = error.kind == "rate_limit"
        asked = 0.0 if is_rate else error.retry_after or 0.0
        if asked:
            self._limiter.pause(asked)
        doubled = failures - (2 if is_rate else 1)
        backoff = min(_LONGEST_DELAY, self._options.retry_seconds * 2**doubled)
        return max(asked * random.uniform(1, 1.1), backoff * random.uniform(0.5, 1))

    def _given_up(self, error: TransientModelError) -> ModelError:
        """Return the error of a call that was tried often enough; of a lost server, for all."""
        self._lost_in_a_row += 1
        if error.kind == "unreachable":
            return self._ended(error)
        if self._lost_in_a_row >= _MOST_LOST_IN_A_ROW:
            return self._ended(error, f" ({self._lost_in_a_row} calls in a row had no answer)")
        return error

    def _ended(self, error: TransientModelError, why: str = "") -> TerminalModelError:
        """Return the error of a server that does not answer, for all calls."""
        ending = TerminalModelError(f"{error}{why}", "unreachable")
        self._halt_all(ending)
        return ending

    def _halt_all(self, error: TerminalModelError) -> None:
        if self._halt is None:
            self._halt = error
            self._halted.set()

    def _expected(self, outgoing: Outgoing) -> tuple[BudgetAmount, int]:
        """Return the most that the call may take, and its prompt's tokens as counted here."""
        if not (self._limiter.counts_tokens or self._budget.is_limited):
            return BudgetAmount(), 0
        counted = outgoing.count_prompt() + _TEMPLATE_TOKENS
        prompt = round(counted * self._excess.get(outgoing.model, 1.0))
        completion = outgoing.max_completion
        if completion is None:
            completion = _UNBOUNDED_ANSWER
        cost = self._prices.cost(outgoing.model, prompt, completion)
        return BudgetAmount(prompt + completion, cost or 0.0), counted

    def _compare(self, turn: CallTurn, counted: int) -> None:
        """Remember by how much a model's own count of tokens exceeds what was counted here."""
        model = turn.outgoing.model
        if counted and turn.usage.prompt > counted * self._excess.get(model, 1.0):
            self._excess[model] = turn.usage.prompt / counted

    def _learn_rate(self, sent: Sent | None, error: ModelError) -> None:
        if sent is not None and error.kind == "rate_limit":
            self._limiter.refused(sent, error.retry_after)
        elif sent is not None:
            self._limiter.passed(sent)

    def _record_failure(self, turn: CallTurn, error: str) -> None:
        if turn.began:
            self._database.write_later(turn.accounted(error))

    def _raise_if_halted(self) -> None:
        if self._halt is not None:
            raise TerminalModelError(str(self._halt), self._halt.kind)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._halted.wait()
        self._raise_if_halted()
