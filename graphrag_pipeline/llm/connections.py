"""Plain HTTP/1.1 to one server by aiohttp, its connections kept open.

The pool of the SDK's own client takes four times the CPU of this for a request, which is most of
what a call takes. Proxies and redirects are left to it.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

if TYPE_CHECKING:
    import aiohttp
    import httpx2

_AS_THEY_ARE = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


def goes_through_proxy() -> bool:
    """Whether the environment names a proxy that requests may have to go through."""
    return bool({"http", "https", "all"} & getproxies().keys())


class Connections:
    """Connections to the server of an address, for one event loop.

    One that was idle for ``expiry`` seconds is not used again.
    """

    def __init__(self, certificates: ssl.SSLContext, expiry: float) -> None:
        self._certificates = certificates
        self._expiry = expiry

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer to a request; raises httpx2.HTTPError and OSError."""
        import httpx2

        async with self._asked(request) as answer:
            content = await answer.read()
        return httpx2.Response(
            answer.status, headers=answer.raw_headers, content=content, request=request
        )

    @contextlib.asynccontextmanager
    async def stream(
        self, request: httpx2.Request
    ) -> AsyncGenerator[tuple[httpx2.Response, AsyncIterator[bytes]], None]:
        """Yield the head of an answer and its body, piece by piece.

        A body that is not read to its end is not waited for: the connection is closed. Raises as
        :meth:`send`.
        """
        import httpx2

        request.headers["accept-encoding"] = "identity"
        async with self._asked(request) as answer:
            head = httpx2.Response(answer.status, headers=answer.raw_headers, request=request)
            yield head, answer.content.iter_any()

    @contextlib.asynccontextmanager
    async def _asked(self, request: httpx2.Request) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        import aiohttp
        import httpx2
        from yarl import URL

        reused: list[bool] = []

        def sent() -> aiohttp.client._RequestContextManager:
            return self._session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=request.headers.multi_items(),
                data=request.content,
                allow_redirects=False,
                trace_request_ctx=reused,
            )

        try:
            try:
                answer = await sent()
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not reused:
                    raise
                # One that is kept open may be closed by the server in the moment it is used.
                answer = await sent()
            async with answer:
                yield answer
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error)) from None
        except aiohttp.ClientError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error

    async def close(self) -> None:
        """Close all that are open."""
        if "_session" in vars(self):
            await self._session.close()
            del self._session

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        import aiohttp

        async def note(_: object, context: Any, __: object) -> None:
            context.trace_request_ctx.append(True)

        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(note)
        return aiohttp.ClientSession(
            trace_configs=[trace],
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=self._expiry, ssl=self._certificates
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_AS_THEY_ARE,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )
