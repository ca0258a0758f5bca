"""`/mcp`: the protocol over HTTP, without sessions: each request stands alone.

It lies behind the guard as every address does. The protocol's package takes half a second of CPU to
import, so the first request to come loads it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from graphrag_server.limits import BODY_BYTES
from graphrag_server.mcp import ADDRESS

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import Message, Receive, Scope, Send


class Endpoint:
    """An ASGI application that answers messages of the protocol until it is closed."""

    def __init__(self) -> None:
        self._ready: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one message; whoever hangs up ends the work for it."""
        request = Request(scope, receive)
        body = await request.body()
        manager = await self._started()
        hearing = asyncio.ensure_future(_hang_up(receive))
        try:
            scope["route"] = _Address
            await manager.handle_request(scope, _repeated(body, hearing), send)
        finally:
            hearing.cancel()

    async def close(self) -> None:
        """End what runs."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _started(self) -> StreamableHTTPSessionManager:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.ensure_future(self._run(self._ready))
        return await asyncio.shield(self._ready)

    async def _run(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Hold the manager open; it has to be closed by the task that opened it."""
        try:
            manager = await asyncio.to_thread(_manager)
            async with manager.run():
                ready.set_result(manager)
                await self._closing.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
                self._ready = None
            raise


class _Address:
    """The address as metrics have it."""

    path = ADDRESS


def _manager() -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from graphrag_server.mcp.protocol import protocol_server

    # Who may ask, and from which page, is the guard's to say.
    return StreamableHTTPSessionManager(
        protocol_server(), stateless=True, max_request_body_size=BODY_BYTES
    )


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _repeated(body: bytes, hung_up: asyncio.Future[None]) -> Receive:
    """Return what receives a body once, then waits for its caller to hang up, for any number."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if first:
            return first.pop()
        await asyncio.shield(hung_up)
        return {"type": "http.disconnect"}

    return receive
