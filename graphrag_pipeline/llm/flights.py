"""What is being asked right now, so that no two ask the same."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence


class Flights:
    """Keys that somebody is asking for. Who comes later waits and then looks in the cache."""

    def __init__(self) -> None:
        self._flying: dict[bytes, asyncio.Future[None]] = {}

    @contextlib.asynccontextmanager
    async def leading(self, keys: Sequence[bytes]) -> AsyncIterator[list[bytes]]:
        """Take the keys that nobody asks for, yield them, then wait for those somebody does.

        An error of the body is the error of all who wait for its keys; if it was cancelled, they
        find their keys neither in the cache nor in flight, and ask themselves.
        """
        others = [self._flying[key] for key in keys if key in self._flying]
        mine = [key for key in keys if key not in self._flying]
        landed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flying.update(dict.fromkeys(mine, landed))
        try:
            yield mine
        except Exception as error:
            landed.set_exception(error)
            landed.exception()
            raise
        finally:
            if not landed.done():
                landed.set_result(None)
            for key in mine:
                del self._flying[key]
        for other in others:
            await asyncio.shield(other)
