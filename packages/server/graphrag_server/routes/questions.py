"""`/v1/query`, `/v1/query/stream`, `/v1/retrieve`, `/v1/compare` and `/v1/methods`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.query.ask import Ask
from graphrag_pipeline.query.comparing import Compared, compare_on, compared_asks
from graphrag_pipeline.query.engine import QueryEngine
from graphrag_pipeline.query.methods import list_methods
from graphrag_pipeline.query.release import Release
from graphrag_pipeline.query.results import Answer, Retrieval
from graphrag_pipeline.query.several_indexes import aanswer_across, aretrieve_across
from graphrag_server.callers import needs
from graphrag_server.collections import VisibleCollection
from graphrag_server.inquiry import Inquiry
from graphrag_server.keeping import keep
from graphrag_server.limits import attended, check_parameters
from graphrag_server.problems import HttpProblem
from graphrag_server.routes.asked import Place, ToAnswer, ToCompare, ToRetrieve
from graphrag_server.routes.reading import CollectionName, read
from graphrag_server.routes.stream import EVENTS, EventStream, Streamed, events
from graphrag_server.state import holder_of, json_response, server_of

router = APIRouter(prefix="/v1", tags=["questions"], dependencies=[needs("query")])

T = TypeVar("T")


@router.post("/query", responses={200: {"model": Answer}, 502: {}})
async def query(request: Request, asked: ToAnswer) -> Response:
    """Answer a question, with citations; of several ``collections``, each says of which it is."""

    async def across(engines: Mapping[str, QueryEngine]) -> Answer:
        return await aanswer_across(engines, _first_ask(asked, engines))

    if asked.collections is not None:
        return json_response(await answered_across(request, asked, asked.collections, across))
    result, kept = await answered_and_kept(request, asked)
    response = json_response(result)
    response.headers.update({f"X-{name.title()}": id for name, id in kept.items()})
    return response


@router.post("/retrieve", responses={200: {"model": Retrieval}, 502: {}})
async def retrieve(request: Request, asked: ToRetrieve) -> Response:
    """Return the evidence for a question, with no answer made of it."""

    async def retrieved(engine: QueryEngine) -> Retrieval:
        return await engine.aretrieve(asked.ask(engine))

    async def across(engines: Mapping[str, QueryEngine]) -> Retrieval:
        return await aretrieve_across(engines, _first_ask(asked, engines))

    if asked.collections is not None:
        return json_response(await answered_across(request, asked, asked.collections, across))
    return json_response(await answered(request, asked, retrieved))


@router.post("/compare", responses={502: {}})
async def compare(request: Request, asked: ToCompare) -> Response:
    """Return what several methods give for one question: citations, tokens, cost and seconds."""
    asks = compared_asks(asked.question, asked.methods, asked.where)
    for ask in asks.values():
        check_parameters(ask.method, ask.parameters)

    async def compared(engine: QueryEngine) -> list[Compared]:
        return list(await compare_on(engine, asks, retrieval_only=asked.retrieval_only))

    results = await answered(request, asked, compared, "compare")
    return json_response([each.to_dict() for each in results])


@router.post("/query/stream", response_class=StreamingResponse, responses=EVENTS)
async def stream(request: Request, asked: ToAnswer) -> Response:
    """Answer a question by server-sent events: step, text, citations, kept, done; or error.

    ``step`` is a line that says what the method decides, ``text`` a piece of the answer,
    ``citations`` the places it rests on, ``kept`` the ids of conversation and answer where it is
    kept, and ``done`` the whole answer, as ``/v1/query`` gives it.
    """
    streamed = await begun(request, asked)
    return EventStream(streamed, events(streamed))


@router.get("/methods")
async def methods(request: Request, collection: CollectionName = None) -> Response:
    """List the methods, their parameters, and which can answer from the collection as it is."""
    holder = holder_of(request, collection)
    tables = await asyncio.to_thread(holder.tables)
    return json_response(list_methods(holder.settings, tables))


@router.get("/examples")
async def examples(request: Request, collection: CollectionName = None) -> Response:
    """Return three questions to begin with, made of what the caller may see of the collection."""
    made, seen = server_of(request).examples, holder_of(request, collection)

    def questions(index: Release) -> dict[str, Any]:
        return made.of(index, seen.name, seen.labels)

    return json_response(await read(request, collection, questions))


async def answered(
    request: Request,
    asked: Place,
    work: Callable[[QueryEngine], Coroutine[Any, Any, T]],
    name: str | None = None,
) -> T:
    """Return what some work on the engine of a collection gives, within the limits.

    Where a purge takes the files of an older release away before that is seen, the work is done
    once more, on the new one.
    """
    with inquiry_of(request, asked) as inquiry:
        return await _asked_of(request, asked, inquiry, work, name)


async def _asked_of(
    request: Request,
    asked: Place,
    inquiry: Inquiry,
    work: Callable[[QueryEngine], Coroutine[Any, Any, T]],
    name: str | None = None,
) -> T:
    async def once() -> T:
        async with leased(inquiry.holder, asked.release) as engine:
            return await work(engine.controlled(inquiry.control))

    return await _finished(request, inquiry, once, name)


async def answered_and_kept(request: Request, asked: ToAnswer) -> tuple[Answer, dict[str, str]]:
    """Return an answer, and the ids of its conversation and itself where it is kept."""

    async def answer(engine: QueryEngine) -> Answer:
        return await engine.aanswer(asked.ask(engine))

    with inquiry_of(request, asked) as inquiry:
        result = await _asked_of(request, asked, inquiry, answer)
        return result, await keep(inquiry, asked.conversation, result, asked.where) or {}


async def answered_across(
    request: Request,
    asked: ToRetrieve,
    collections: Sequence[str],
    work: Callable[[Mapping[str, QueryEngine]], Coroutine[Any, Any, T]],
) -> T:
    """Return what some work on the engines of several collections gives; see :func:`answered`."""
    address = request.scope["route"].path
    with Inquiry(request, asked.question, *collections, address=address) as inquiry:

        async def once() -> T:
            async with contextlib.AsyncExitStack() as stack:
                engines = {
                    holder.name: await stack.enter_async_context(leased(holder, None))
                    for holder in inquiry.holders
                }
                return await work({n: e.controlled(inquiry.control) for n, e in engines.items()})

        return await _finished(request, inquiry, once)


async def _finished(
    request: Request,
    inquiry: Inquiry,
    once: Callable[[], Coroutine[Any, Any, T]],
    name: str | None = None,
) -> T:
    async def done() -> T:
        with inquiry.spending():
            try:
                return await once()
            except StorageError:
                looks = [asyncio.to_thread(holder.look) for holder in inquiry.holders]
                if not any(await asyncio.gather(*looks)):
                    raise
            return await once()

    result = await attended(request, inquiry.control, done(), inquiry.server.limits.seconds)
    inquiry.finish(result, name)
    return result


def _first_ask(asked: ToRetrieve, engines: Mapping[str, QueryEngine]) -> Ask:
    """Return what is asked of all, as the settings of the first have it."""
    return asked.ask(next(iter(engines.values())))


async def begun(request: Request, asked: ToAnswer) -> Streamed:
    """Return a question that may be asked, to be answered piece by piece."""
    if asked.collections is not None:
        raise HttpProblem(422, "several collections are asked by /v1/query and /v1/retrieve alone")
    stack = contextlib.AsyncExitStack()
    try:
        inquiry = stack.enter_context(inquiry_of(request, asked))
        engine = await stack.enter_async_context(leased(inquiry.holder, asked.release))
        ask = asked.ask(engine)
        inquiry.begin()
    except BaseException as error:
        await stack.__aexit__(type(error), error, error.__traceback__)
        raise
    return Streamed(inquiry, engine, ask, stack, asked.conversation)


def inquiry_of(request: Request, asked: Place) -> Inquiry:
    """Return the inquiry of a question at the address that is called."""
    return Inquiry(request, asked.question, asked.collection, address=request.scope["route"].path)


@contextlib.asynccontextmanager
async def leased(holder: VisibleCollection, release: str | None) -> AsyncIterator[QueryEngine]:
    """Yield the engine of a collection; a release is opened in a thread."""
    lease = holder.lease(release)
    engine = await asyncio.to_thread(lease.__enter__)
    try:
        yield engine
    finally:
        # It may be the last of a release that was replaced: to close that may wait for SQL to end.
        await asyncio.shield(asyncio.to_thread(lease.__exit__, None, None, None))
