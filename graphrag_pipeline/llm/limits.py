"""Requests and tokens per minute, kept by waiting in turn: nothing polls, nothing blocks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from graphrag_pipeline.llm.pace import Pace, Sent

Sleep = Callable[[float], Awaitable[object]]


class RateLimiter:
    """Spaces calls evenly, first come first served.

    Each call moves the time of the next by ``60 / requests_per_minute`` seconds, or by its tokens
    at ``tokens_per_minute``, whichever is later; there are no bursts, as servers count those too.
    ``pace`` is what the server was found to take, which holds as well. Only the first in the queue
    sleeps, the others wait for its turn to end.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        *,
        pace: Pace | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._pace = pace or Pace()
        self._sleep = sleep
        self._clock = clock
        self._turn = asyncio.Lock()
        self._requests_free = self._tokens_free = self._paused_until = 0.0

    @property
    def counts_tokens(self) -> bool:
        """Whether :meth:`acquire` needs to know a call's tokens."""
        return self._per_token > 0

    async def acquire(self, tokens: int = 0) -> Sent:
        """Wait until a call of so many tokens may be sent; say afterwards how it went."""
        if not self._turn.locked() and self._wait() <= 0:
            return self._take(tokens)
        async with self._turn:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            return self._take(tokens)

    def correct(self, expected: int, actual: int) -> None:
        """Account for a call that took other than the expected tokens."""
        self._tokens_free += (actual - expected) * self._per_token

    def pause(self, seconds: float) -> None:
        """Let no call go for so long: the server asked for it."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def passed(self, call: Sent) -> None:
        """Take note that the server took a call, whatever came of it."""
        self._pace.passed(call)

    def refused(self, call: Sent, asked: float | None) -> None:
        """Take note that the rate was too high for the server, and what wait it asks for."""
        self._pace.refused(call, self._clock(), asked)

    @property
    def shut_for(self) -> float:
        """Seconds for which the server has refused whatever was tried."""
        return self._pace.shut_for(self._clock())

    def _wait(self) -> float:
        now = self._clock()
        free = max(self._requests_free, self._tokens_free, self._paused_until)
        return max(free - now, self._pace.wait(now))

    def _take(self, tokens: int) -> Sent:
        now = self._clock()
        self._requests_free = max(now, self._requests_free) + self._per_request
        self._tokens_free = max(now, self._tokens_free) + tokens * self._per_token
        return self._pace.send(now)
