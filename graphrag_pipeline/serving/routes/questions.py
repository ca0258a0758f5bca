"""`/v1/query`, `/v1/query/stream`, `/v1/retrieve`, `/v1/compare` and `/v1/methods`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.query.comparing import compare_on, compared_asks
from graphrag_pipeline.query.control import Control
from graphrag_pipeline.query.engine import QueryEngine
from graphrag_pipeline.query.methods import METHODS, MODEL_METHODS, parameter_rows
from graphrag_pipeline.query.results import Answer, Retrieval
from graphrag_pipeline.serving.callers import needs
from graphrag_pipeline.serving.holding import Holder
from graphrag_pipeline.serving.limits import attended, check_parameters
from graphrag_pipeline.serving.problems import ProblemDetails
from graphrag_pipeline.serving.routes.asked import Place, ToAnswer, ToCompare, ToRetrieve
from graphrag_pipeline.serving.routes.stream import EVENTS, events
from graphrag_pipeline.serving.state import holder_of, json_response, server_of

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemDetails} for status in (401, 403, 404, 413, 422, 429, 503)
}
router = APIRouter(
    prefix="/v1", tags=["questions"], responses=PROBLEMS, dependencies=[needs("query")]
)

T = TypeVar("T")


@router.post("/query", responses={200: {"model": Answer}})
async def query(request: Request, asked: ToAnswer) -> Response:
    """Answer a question, with citations."""

    async def answer(engine: QueryEngine) -> Answer:
        return await engine.aanswer(asked.ask(engine))

    server = server_of(request)
    result = await answered(request, asked, answer)
    server.metrics.answered(holder_of(request, asked.collection).name, result)
    return json_response(result)


@router.post("/retrieve", responses={200: {"model": Retrieval}})
async def retrieve(request: Request, asked: ToRetrieve) -> Response:
    """Return the evidence for a question, with no answer made of it."""

    async def retrieved(engine: QueryEngine) -> Retrieval:
        return await engine.aretrieve(asked.ask(engine))

    return json_response(await answered(request, asked, retrieved))


@router.post("/compare")
async def compare(request: Request, asked: ToCompare) -> Response:
    """Return what several methods give for one question: citations, tokens, cost and seconds."""
    asks = compared_asks(asked.question, asked.methods, asked.where)
    for ask in asks.values():
        check_parameters(ask.method, ask.parameters)

    async def compared(engine: QueryEngine) -> list[dict[str, Any]]:
        results = await compare_on(engine, asks, retrieval_only=asked.retrieval_only)
        return [each.to_dict() for each in results]

    return json_response(await answered(request, asked, compared, "compare"))


@router.post("/query/stream", response_class=StreamingResponse, responses=EVENTS)
async def stream(request: Request, asked: ToAnswer) -> Response:
    """Answer a question by server-sent events: step, text, citations, done; or error.

    ``step`` is a line that says what the method decides, ``text`` a piece of the answer,
    ``citations`` the places it rests on, and ``done`` the whole answer, as ``/v1/query`` gives it.
    """
    server = server_of(request)
    stack = contextlib.AsyncExitStack()
    holder = holder_of(request, asked.collection)
    try:
        stack.enter_context(server.limits.place())
        engine = await stack.enter_async_context(leased(holder, asked.release))
        ask = asked.ask(engine)
    except BaseException:
        await stack.aclose()
        raise

    def on_answer(answer: Answer) -> None:
        server.metrics.answered(holder.name, answer)
        method = server.metrics.seconds.labels(holder.name, answer.method)
        method.observe(answer.timings.get("total", 0.0))

    return StreamingResponse(
        events(engine, ask, stack, server.limits.seconds, on_answer),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


@router.get("/methods")
async def methods(request: Request, collection: str | None = None) -> Response:
    """List the methods, their parameters, and which can answer as the collection is set."""
    settings = holder_of(request, collection).settings
    writes = settings.query.answers == "llm"
    return json_response(
        [
            {
                "name": method.name,
                "summary": method.summary,
                "needs_model": method.needs_model,
                "can_answer": writes or not method.needs_model,
                "parameters": [
                    {"name": name, "type": kind.__name__, "default": default}
                    for name, kind, default in parameter_rows(method)
                ],
            }
            for method in (*METHODS.values(), *MODEL_METHODS.values())
        ]
    )


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
    server = server_of(request)
    holder = holder_of(request, asked.collection)
    control = Control()
    start = time.perf_counter()

    async def once() -> T:
        async with leased(holder, asked.release) as engine:
            return await work(engine.controlled(control))

    async def done() -> T:
        try:
            return await once()
        except StorageError:
            if not await asyncio.to_thread(holder.look):
                raise
        return await once()

    with server.limits.place():
        result = await attended(request, control, done(), server.limits.seconds)
    method = name or getattr(result, "method", "other")
    server.metrics.seconds.labels(holder.name, method).observe(time.perf_counter() - start)
    return result


@contextlib.asynccontextmanager
async def leased(holder: Holder, release: str | None) -> AsyncIterator[QueryEngine]:
    """Yield the engine of a collection; a release is opened in a thread."""
    lease = holder.lease(release)
    engine = await asyncio.to_thread(lease.__enter__)
    try:
        yield engine
    finally:
        # It may be the last of a release that was replaced: to close that may wait for SQL to end.
        await asyncio.shield(asyncio.to_thread(lease.__exit__, None, None, None))
