"""`/v1/explorer`: what the page of the graph asks for, details by the numbers that it shows."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from graphrag_pipeline.core.addresses import PermanentLinks
from graphrag_pipeline.pages.explorer.details import community_details, entity_details
from graphrag_server.callers import caller_of, needs
from graphrag_server.inquiry import record_reading
from graphrag_server.limits import MOST_NUMBER
from graphrag_server.problems import one
from graphrag_server.routes.reading import CollectionName, read
from graphrag_server.state import holder_of, json_response, server_of

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

router = APIRouter(prefix="/v1/explorer", tags=["graph"], dependencies=[needs("read")])

Number = Annotated[int, Path(ge=0, le=MOST_NUMBER, description="Its human_readable_id.")]


@router.get("")
async def graph(request: Request, collection: CollectionName = None) -> Response:
    """Return the whole graph with its places in a picture, in columns, as the explorer shows it."""
    server, holder = server_of(request), holder_of(request, collection)
    with server.limits.place(caller_of(request).key_id):
        data = await server.explorer.of(holder)
    record_reading(request, holder.name)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(data), media_type="application/json")
    headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(data, headers=headers, media_type="application/json")


@router.get("/entities/{number}")
async def entity(request: Request, number: Number, collection: CollectionName = None) -> Response:
    """Return an entity by its number: relationships, and passages that name it."""
    return await _details(request, collection, entity_details, number, "entity")


@router.get("/communities/{number}")
async def community(
    request: Request, number: Number, collection: CollectionName = None
) -> Response:
    """Return the report on a community by its number, and where its findings stand."""
    return await _details(request, collection, community_details, number, "report")


async def _details(
    request: Request,
    collection: str | None,
    details: Callable[..., list[dict[str, Any]]],
    number: int,
    what: str,
) -> Response:
    def found(index: Release) -> dict[str, Any]:
        release = index.facts.id
        return {**one(details(index.rows, number, links_of(release)), what), "release": release}

    links_of = partial(PermanentLinks, ".", holder_of(request, collection).name)

    return json_response(await read(request, collection, found))
