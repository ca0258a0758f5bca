"""The application: its addresses, behind its guard, over the collections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from graphrag_server.accounts import Accounts
from graphrag_server.audit import Audit
from graphrag_server.description import describe_by
from graphrag_server.guard import Guard
from graphrag_server.keys import Keyring
from graphrag_server.limits import Limits
from graphrag_server.mcp import ADDRESS
from graphrag_server.mcp.endpoint import Endpoint
from graphrag_server.metrics import Metrics
from graphrag_server.paths import ServerFiles
from graphrag_server.problems import add_problem_handlers
from graphrag_server.routes import (
    chat,
    conversations,
    corrections,
    documents,
    explorer,
    graph,
    operations,
    originals,
    page,
    questions,
    state,
    uploads,
)
from graphrag_server.routes.chat_requests import IGNORED
from graphrag_server.state import Server

if TYPE_CHECKING:
    from graphrag_pipeline.core.settings import ServerSettings
    from graphrag_server.collections import Collections


_ROUTES = (
    questions,
    conversations,
    chat,
    documents,
    originals,
    graph,
    explorer,
    uploads,
    operations,
    state,
    page,
    corrections,
)

_TIDYING_SECONDS = 2


def create_app(
    collections: Collections, settings: ServerSettings, keyring: Keyring | None = None
) -> FastAPI:
    """Return the application over some collections, which it closes in the end.

    ``keyring`` knows who may ask; without it, whoever asks from this machine may. The page is at
    ``/``; no page fetches scripts from the network: ``/openapi.json`` describes the rest.
    """
    keyring = keyring or Keyring()
    limits = Limits(settings)
    server = Server(
        collections,
        limits,
        Metrics(lambda: limits.inside),
        Accounts(keyring.home and ServerFiles(keyring.home).accounts),
        keyring.home,
        _audit_of(keyring, settings),
        settings.address,
    )

    assistants = Endpoint()

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(limits.executor)
        tidying = asyncio.create_task(_tidy(collections))
        try:
            yield
        finally:
            tidying.cancel()
            await assistants.close()
            limits.close()
            collections.close()
            server.accounts.close()
            if server.audit is not None:
                server.audit.close()

    app = FastAPI(
        title="GraphRAG pipeline",
        description="Questions on the published index, with citations.",
        version=version("graphrag-pipeline"),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.server = server
    add_problem_handlers(app)
    for routes in _ROUTES:
        app.include_router(routes.router)
    app.include_router(documents.fields_router)
    app.mount("/page", page.files)
    app.router.routes.append(Route(ADDRESS, assistants, methods=["POST"]))
    _add_guards(app, server, settings, keyring)
    describe_by(app, lambda: keyring.is_required)
    return app


async def _tidy(collections: Collections) -> None:
    """Give memory back, again and again: the first questions load what all others need."""
    while True:
        await asyncio.sleep(_TIDYING_SECONDS)
        for holder in collections.holders.values():
            await asyncio.to_thread(holder.give_back_memory)


def _add_guards(app: FastAPI, server: Server, settings: ServerSettings, keyring: Keyring) -> None:
    """Put the guard before every address."""
    app.add_middleware(
        Guard,
        keyring=keyring,
        accounts=server.accounts,
        hosts=settings.hosts,
        origins=settings.origins,
        metrics=server.metrics,
        seconds=settings.timeout_seconds,
    )
    if settings.origins:
        # Before the guard: a browser asks without a key whether it may ask with one, and may read
        # what the guard refuses.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[origin.rstrip("/") for origin in settings.origins],
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After", IGNORED, "X-Conversation", "X-Answer"],
        )


def _audit_of(keyring: Keyring, settings: ServerSettings) -> Audit | None:
    """Return the audit, which is kept beside the keys; None where there are never any."""
    if keyring.home is None or not settings.audit:
        return None
    return Audit(
        ServerFiles(keyring.home).audit,
        with_text=settings.audit_text,
        most_mb=settings.audit_mb,
        keep=settings.audit_files,
        days=settings.audit_days,
    )
