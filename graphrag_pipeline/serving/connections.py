"""Connections over which no request comes: ended, so that they keep nobody out."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
"""The head of a request is here within twice this time."""
_AT_WORK = object()


class Punctual(cast("type[Any]", AutoHTTPProtocol)):
    """uvicorn's protocol, which itself waits for a request that has begun for as long as it takes.

    A connection that was found waiting for the same request twice is closed.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to look at the connection now and then."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._timer.cancel()
        super().connection_lost(exc)

    def _look(self, last: object) -> None:
        """Close the connection where nothing was asked since the request that was the last then."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        if is_waiting and self.cycle is last:
            self.timeout_keep_alive_handler()
            return
        seen = self.cycle if is_waiting else _AT_WORK
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look, seen)
