"""Connections over which no request comes, or one without end: ended, so that they keep nobody
out."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
"""The head of a request is here within twice this time."""
HEAD_BYTES = 64 * 1024
"""The head of a request is refused where more than this came, and it is not whole."""
_AT_WORK = object()


class Punctual(cast("type[Any]", AutoHTTPProtocol)):
    """uvicorn's protocol, which itself waits for a request that has begun for as long as it takes,
    and with httptools takes a head of any size.

    A connection that was found waiting for the same request twice is closed.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to look at the connection now and then."""
        super().connection_made(transport)
        self._in_head, self._n_bytes = False, 0
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what comes, unless it makes the head of a request too large."""
        super().data_received(data)
        if not self._in_head:
            return
        self._n_bytes += len(data)
        if self._n_bytes > HEAD_BYTES:
            self.send_400_response(f"The head of a request has at most {HEAD_BYTES // 1024} KB.")

    def on_message_begin(self) -> None:
        """Count what comes of the head (httptools calls this; h11 has a limit of its own)."""
        self._in_head, self._n_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Count no more."""
        self._in_head = False
        super().on_headers_complete()

    def _look(self, last: object) -> None:
        """Close the connection where nothing was asked since the request that was the last then."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        if is_waiting and self.cycle is last:
            self.timeout_keep_alive_handler()
            return
        seen = self.cycle if is_waiting else _AT_WORK
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look, seen)
