"""Connections over which no request comes, or one without end: ended, so that they keep nobody
out."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
from pydantic_core import to_json
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from graphrag_server.limits import HEAD_BYTES, HEAD_TOO_LARGE
from graphrag_server.problems import MEDIA_TYPE, HttpProblem

HEAD_SECONDS = 10.0
"""The head of a request is here within twice this time."""
H11_BYTES = HEAD_BYTES + 512 * 1024
"""h11 refuses more than this by 400; what comes at once fits in, so that we refuse it before."""
_BODY = to_json(HttpProblem(431, HEAD_TOO_LARGE).to_dict())
_REFUSED = (
    f"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
    f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(_BODY)}\r\n\r\n"
).encode() + _BODY
_AT_WORK = object()


class Watched(cast("type[Any]", asyncio.Protocol)):
    """Limits that a protocol of uvicorn's lacks: by itself it waits for a request that has begun
    for as long as it takes, and with httptools takes a head of any size.

    A connection that was found waiting for the same request twice is closed. A head that is whole,
    and too large all the same, is the guard's to refuse.
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
        self._n_bytes += len(data)
        if self._n_waiting() > HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; to httptools that is also one whose address is too large."""
        if len(getattr(self, "url", b"")) < HEAD_BYTES - 1:
            super().send_400_response(msg)
        else:
            self._refuse_head()

    def _refuse_head(self) -> None:
        self.transport.write(_REFUSED)
        self.transport.close()

    def _n_waiting(self) -> int:
        """Return how many bytes are here of a head that is not whole."""
        conn = getattr(self, "conn", None)
        if conn is not None:
            return len(conn.trailing_data[0]) if conn.their_state is h11.IDLE else 0
        return self._n_bytes if self._in_head else 0

    def on_message_begin(self) -> None:
        """Count what comes of the head: httptools calls this, and what follows."""
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


class Punctual(Watched, cast("type[Any]", AutoHTTPProtocol)):
    """The protocol that uvicorn takes here, watched."""
