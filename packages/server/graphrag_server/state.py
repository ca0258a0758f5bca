"""State that the addresses of one process share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json
from starlette.responses import Response

from graphrag_server.callers import caller_of
from graphrag_server.collections import VisibleCollection
from graphrag_server.examples import Examples
from graphrag_server.explorer import ExplorerData

if TYPE_CHECKING:
    from fastapi import Request

    from graphrag_server.accounts import Accounts
    from graphrag_server.audit import Audit
    from graphrag_server.collections import Collections
    from graphrag_server.limits import Limits
    from graphrag_server.metrics import Metrics


@dataclass(frozen=True)
class Server:
    """The collections, the limits and the metrics of one process; ``audit`` None: none is kept.

    ``keys_home`` is the folder of the keys, if there ever are any. ``address`` is that by which
    clients reach it, where the settings say so.
    """

    collections: Collections
    limits: Limits
    metrics: Metrics
    accounts: Accounts
    keys_home: Path | None
    audit: Audit | None
    address: str = ""
    explorer: ExplorerData = field(default_factory=ExplorerData)
    examples: Examples = field(default_factory=Examples)


def server_of(request: Request) -> Server:
    """Return what the addresses share."""
    return cast("Server", request.app.state.server)


def holder_of(request: Request, collection: str | None) -> VisibleCollection:
    """Return the collection that a caller means, as he may see it.

    Raises a Problem where it is not his, UnknownCollectionError where there is none of that name.
    """
    collections, caller = server_of(request).collections, caller_of(request)
    name = caller.collection(collection, collections.default)
    return VisibleCollection(collections.named(name), caller.labels)


def json_response(value: Any) -> Response:
    """Return plain values or results of the engine as JSON, as the command line prints them."""
    return Response(json_bytes(value), media_type="application/json")


def json_bytes(value: Any) -> bytes:
    """Return plain values or results of the engine as JSON; a number of NumPy is a number."""
    return to_json(value, fallback=lambda number: number.item())
