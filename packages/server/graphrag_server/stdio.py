"""The Model Context Protocol over standard streams, for the assistant that started this process.

It asks as whoever may read the files: all documents, by their paths, without a key. Standard output
holds nothing but the protocol; it ends when its input does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcp.server.stdio import stdio_server
from starlette.requests import Request

from graphrag_server.app import create_app
from graphrag_server.callers import LOCAL, set_caller
from graphrag_server.collections import open_collections
from graphrag_server.mcp.protocol import protocol_server

if TYPE_CHECKING:
    from fastapi import FastAPI
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from graphrag_pipeline.core.settings import Settings


def serve_stdio(settings: Settings, *, release: str | None = None) -> None:
    """Answer until standard input ends. Raises ConfigError where a collection is missing."""
    collections = open_collections(settings, release=release, with_paths=True)
    asyncio.run(_serve(create_app(collections, settings.server)))


async def _serve(app: FastAPI) -> None:
    server = protocol_server()
    server.middleware.append(_Local(app))
    async with app.router.lifespan_context(app), stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Local:
    """Gives every message the request that it would come by over HTTP, from this machine."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        scope: dict[str, Any] = {"type": "http", "app": self._app, "headers": []}
        set_caller(scope, LOCAL)
        ctx.request = Request(scope, _never)
        return await call_next(ctx)


async def _never() -> Any:
    await asyncio.Event().wait()
