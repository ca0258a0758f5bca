"""What the addresses of one process share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json
from starlette.responses import Response

if TYPE_CHECKING:
    from fastapi import Request

    from graphrag_pipeline.serving.holding import Collections
    from graphrag_pipeline.serving.limits import Limits
    from graphrag_pipeline.serving.metrics import Metrics


@dataclass(frozen=True)
class Server:
    """The collections, the limits and the metrics of one process."""

    collections: Collections
    limits: Limits
    metrics: Metrics


def server_of(request: Request) -> Server:
    """Return what the addresses share."""
    return cast("Server", request.app.state.server)


def json_response(value: Any) -> Response:
    """Return plain values or results of the engine as JSON, as the command line prints them."""
    return Response(json_bytes(value), media_type="application/json")


def json_bytes(value: Any) -> bytes:
    """Return plain values or results of the engine as JSON; a number of NumPy is a number."""
    return to_json(value, fallback=lambda number: number.item())
