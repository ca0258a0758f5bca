"""`/health`, `/ready`, `/metrics` and `/v1/releases`: for those who run the server."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_server.callers import NOBODY, caller_of, needs
from graphrag_server.collections import VisibleCollection, counts_in
from graphrag_server.inquiry import asks_model
from graphrag_server.keeping import keeps
from graphrag_server.metrics import MEDIA_TYPE
from graphrag_server.problems import HttpProblem, problem_of
from graphrag_server.routes.reading import CollectionName
from graphrag_server.state import holder_of, json_response, server_of
from graphrag_server.uploads import kinds

if TYPE_CHECKING:
    from graphrag_pipeline.query.engine import QueryEngine
    from graphrag_pipeline.query.open_engine import Holder

_NUMBERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}}
}
router = APIRouter(tags=["operations"])


@router.get("/health")
async def health() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(request: Request, collection: CollectionName = None) -> Response:
    """Say whether questions can be answered: a release is open, and its vectors can be read.

    503 with the reason where one collection, or the one that is named, has none. Which it is, and
    which releases answer, is told to those alone who may ask it.
    """
    caller, holders = caller_of(request), server_of(request).collections.holders
    named = collection is not None
    asked = [holder_of(request, collection).holder] if named else [*holders.values()]
    # Apart from the questions: a server whose threads are all busy is ready.
    limits = server_of(request).limits
    releases: dict[str, str] = {}
    for holder in asked:
        try:
            release = await limits.look(holder.name, functools.partial(_release_of, holder))
        except HttpProblem as problem:
            if caller.may_see(holder.name):
                raise
            raise HttpProblem(503, "a collection is not ready", headers=problem.headers) from None
        if caller.may_see(holder.name):
            releases[holder.name] = release
    return json_response(
        {"status": "ready", **({} if caller is NOBODY else {"releases": releases})}
    )


@router.get("/v1/collections")
async def collections(request: Request) -> Response:
    """List the collections that the caller may ask, and what he may do there.

    Each has the release that answers and how much is in it, or the problem why none does; and
    whether a question there asks a model, which may cost something, and whether the page keeps
    its answers. ``has_key``: a key is shown.
    """
    caller, holders = caller_of(request), server_of(request).collections.holders.values()
    seen = [
        VisibleCollection(holder, caller.labels)
        for holder in holders
        if caller.may_see(holder.name)
    ]
    described = [await asyncio.to_thread(_described, holder) for holder in seen]
    for holder, facts in zip(seen, described, strict=True):
        facts["keeps"] = "query" in caller.scopes and keeps(caller, holder)
    return json_response(
        {
            "collections": described,
            "scopes": sorted(caller.scopes),
            "has_key": bool(caller.key_id),
        }
    )


@router.get("/v1/releases", dependencies=[needs("read")])
async def releases(request: Request, collection: CollectionName = None) -> Response:
    """List the releases that are kept, the newest first.

    A caller with labels is told of the published one alone, with counts of what he may see.
    """
    holder = holder_of(request, collection)
    return json_response({"releases": await asyncio.to_thread(holder.releases)})


@router.get(
    "/metrics", response_class=Response, responses=_NUMBERS, dependencies=[needs("metrics")]
)
async def metrics(request: Request) -> Response:
    """Return the numbers that Prometheus reads."""
    return Response(server_of(request).metrics.text(), media_type=MEDIA_TYPE)


def _release_of(holder: Holder) -> str:
    """Return the id of the release that answers. Raises a 503 Problem where none can."""
    try:
        return holder.use(_checked)
    except GraphRAGError as error:
        problem = problem_of(error)
        detail = f"{holder.name}: {problem.detail}"
        raise HttpProblem(503, detail, headers=problem.headers) from error


def _described(holder: VisibleCollection) -> dict[str, Any]:
    limits = holder.settings.server
    taken = {"kinds": kinds(), "most_mb": limits.upload_mb} if limits.uploads else None
    described = {
        "name": holder.name,
        "uploads": taken,
        "asks_model": asks_model(holder.settings),
    }
    try:
        facts = holder.use(lambda engine: engine.index.facts)
    except GraphRAGError as error:
        return {**described, "release": None, "problem": problem_of(error).detail}
    return {
        **described,
        "release": facts.id,
        "created_at": facts.created_at,
        "counts": counts_in(facts),
    }


def _checked(engine: QueryEngine) -> str:
    engine.index.check_readable()
    return engine.index.facts.id
