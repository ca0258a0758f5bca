"""Plain HTTP/1.1 to one server: h11 over asyncio's streams, its connections kept open.

A pool for any number of hosts, as httpx has, takes five times the CPU of this for a request, which
is most of what a call takes. Proxies and redirects are left to httpx.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.request import getproxies

if TYPE_CHECKING:
    import h11
    import httpx2

_READ_AT_ONCE = 1 << 16


def goes_through_proxy() -> bool:
    """Whether the environment names a proxy that requests may have to go through."""
    return bool({"http", "https", "all"} & getproxies().keys())


@dataclass
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: h11.Connection
    idle_since: float = 0.0

    @property
    def is_open(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())

    async def exchange(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its whole answer."""
        import h11
        import httpx2

        head = h11.Request(
            method=request.method, target=request.url.raw_path, headers=request.headers.raw
        )
        for event in (head, h11.Data(data=request.content), h11.EndOfMessage()):
            self.writer.write(self.protocol.send(event) or b"")
        await self.writer.drain()
        parts: list[bytes] = []
        answer: h11.Response | None = None
        while True:
            event = self.protocol.next_event()
            if event is h11.NEED_DATA:
                self.protocol.receive_data(await self.reader.read(_READ_AT_ONCE))
            elif isinstance(event, h11.Response):
                answer = event
            elif isinstance(event, h11.Data):
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                break
            elif not isinstance(event, h11.InformationalResponse):
                raise httpx2.RemoteProtocolError("the connection was closed")
        assert answer is not None
        return httpx2.Response(
            answer.status_code,
            headers=answer.headers.raw_items(),
            content=b"".join(parts),
            request=request,
        )

    def is_reusable(self) -> bool:
        """Make ready for another request, if both sides keep the connection open."""
        import h11

        if self.protocol.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            return False
        self.protocol.start_next_cycle()
        self.idle_since = time.monotonic()
        return True


class Connections:
    """Connections to the server of an address, for one event loop.

    One that was idle for ``expiry`` seconds is not used again.
    """

    def __init__(self, certificates: ssl.SSLContext, expiry: float) -> None:
        self._certificates = certificates
        self._expiry = expiry
        self._idle: list[_Connection] = []

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer to a request; raises httpx2.HTTPError and OSError."""
        import h11
        import httpx2

        connection = self._waiting() or await self._open(request.url)
        is_reusable = False
        try:
            response = await connection.exchange(request)
            is_reusable = connection.is_reusable()
        except h11.ProtocolError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        finally:
            if is_reusable:
                self._idle.append(connection)
            else:
                connection.writer.close()
        return response

    async def close(self) -> None:
        """Close all that are open."""
        for connection in self._idle:
            connection.writer.close()
        for connection in self._idle:
            with contextlib.suppress(OSError):
                await connection.writer.wait_closed()
        self._idle.clear()

    def _waiting(self) -> _Connection | None:
        """Return the connection that was used last, if it is still good."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and time.monotonic() - connection.idle_since < self._expiry:
                return connection
            connection.writer.close()
        return None

    async def _open(self, url: httpx2.URL) -> _Connection:
        import h11
        import httpx2

        is_secure = url.scheme == "https"
        port = url.port or (443 if is_secure else 80)
        certificates = self._certificates if is_secure else None
        try:
            streams = await asyncio.open_connection(url.host, port, ssl=certificates)
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from None
        return _Connection(*streams, h11.Connection(h11.CLIENT))
