"""Calls in flight, so that no two callers ask the same thing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from graphrag_pipeline.llm.budget import Budget, BudgetAmount


class FlightHolder(Protocol):
    """One client among those of the machines that share an index, and what it holds.

    Everything raises StorageError.
    """

    async def claim(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of the keys that no other holder asks for; they are this one's now."""
        ...

    def let_go(self, keys: Sequence[bytes]) -> None:
        """Let others ask for keys."""
        ...

    async def landed(self, keys: Sequence[bytes]) -> None:
        """Wait until nobody asks for these keys any more."""
        ...

    def budget(
        self, since: int, max_tokens: int | None, max_cost: float | None, elsewhere: BudgetAmount
    ) -> Budget:
        """Return the budget of all machines, for the calls after a position of the ledger.

        ``elsewhere`` is what the run has spent in other homes.
        """
        ...

    async def close(self) -> None:
        """Let go of all that is still held."""
        ...


class Flights:
    """Keys that somebody is asking for. Who comes later waits and then looks in the cache.

    ``holder`` is who asks among the machines of one index, which then wait for each other, too.
    """

    def __init__(self, holder: FlightHolder | None = None) -> None:
        self._flying: dict[bytes, asyncio.Future[None]] = {}
        self._holder = holder

    @contextlib.asynccontextmanager
    async def leading(self, keys: Sequence[bytes]) -> AsyncIterator[list[bytes]]:
        """Take the keys that nobody asks for, yield them, then wait for those somebody does.

        A worker may have been answered since the cache was looked at, so look there once more.
        An error of the body is the error of all who wait for its keys; if it was cancelled, they
        find their keys neither in the cache nor in flight, and ask themselves.
        """
        others = [self._flying[key] for key in keys if key in self._flying]
        mine = [key for key in keys if key not in self._flying]
        landed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flying.update(dict.fromkeys(mine, landed))
        free = mine
        try:
            if self._holder is not None and mine:
                free = await self._holder.claim(mine)
            yield free
        except Exception as error:
            landed.set_exception(error)
            landed.exception()
            raise
        finally:
            if not landed.done():
                landed.set_result(None)
            for key in mine:
                del self._flying[key]
            if self._holder is not None and free:
                self._holder.let_go(free)
        if self._holder is not None and len(free) < len(mine):
            await self._holder.landed([key for key in mine if key not in free])
        for other in others:
            await asyncio.shield(other)
