"""An answer as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.query.results import Answer
from graphrag_server.keeping import keep
from graphrag_server.limits import GONE, end, too_long
from graphrag_server.problems import HttpProblem, problem_of
from graphrag_server.state import json_bytes

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from graphrag_pipeline.query.ask import Ask
    from graphrag_pipeline.query.engine import QueryEngine
    from graphrag_server.inquiry import Inquiry

log = logging.getLogger("graphrag_pipeline")

MEDIA_TYPE = "text/event-stream"


def stream_of(*fields: str) -> dict[str, Any]:
    """Return how a stream is described of which each event has some fields, which are text."""
    each = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
    return {MEDIA_TYPE: {"itemSchema": {**each, "required": [*fields]}}}


EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: step {text}, text {text}, citations [...], kept {conversation, "
        "answer}, done (the answer), "
        "error (a problem).",
        "content": stream_of("event", "data"),
    },
    502: {},
}
_PING_SECONDS = 15.0
_PING = b": working\n\n"

Event = tuple[str, Any]


@dataclass(frozen=True)
class Streamed:
    """A question that is answered piece by piece; ``stack`` holds its place and its engine.

    ``conversation`` is where the answer is kept, None: nowhere.
    """

    inquiry: Inquiry
    engine: QueryEngine
    ask: Ask
    stack: AsyncExitStack
    conversation: str | None = None


class EventStream(StreamingResponse):
    """Sends an answer as it is made; its place and its engine are given back in the end."""

    def __init__(self, streamed: Streamed, content: AsyncIterator[bytes]) -> None:
        super().__init__(content, media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})
        self._stack = streamed.stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it all, or as much as its caller waits for."""
        async with self._stack:
            await super().__call__(scope, receive, send)


async def events(streamed: Streamed) -> AsyncIterator[bytes]:
    """Yield the events of an answer.

    A caller who goes away ends the work: SQL is interrupted, calls are cancelled.
    """
    async with aclosing(pieces_of(streamed)) as made:
        async for event in made:
            if event is None:
                yield _PING
                continue
            name, value = event
            if isinstance(value, HttpProblem):
                value = value.to_dict()
            yield b"event: " + name.encode() + b"\ndata: " + json_bytes(value) + b"\n\n"


async def pieces_of(streamed: Streamed) -> AsyncGenerator[Event | None, None]:
    """Yield the parts of an answer by name, and None where nothing has come for a while."""
    loop = asyncio.get_running_loop()
    made: asyncio.Queue[Event | None] = asyncio.Queue()

    def on_step(line: str) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(made.put_nowait, ("step", {"text": line}))

    control = streamed.inquiry.control
    control.on_step = on_step
    task = asyncio.ensure_future(_make(streamed, made))
    try:
        while True:
            try:
                event = await asyncio.wait_for(made.get(), _PING_SECONDS)
            except TimeoutError:
                yield None
                continue
            if event is None:
                return
            yield event
    finally:
        if not task.done():
            await asyncio.shield(end(task, control, GONE))


async def _make(streamed: Streamed, made: asyncio.Queue[Event | None]) -> None:
    """Put the parts of an answer into a queue, an error as the last of them."""
    inquiry, seconds = streamed.inquiry, streamed.inquiry.server.limits.seconds
    engine = streamed.engine.controlled(inquiry.control)
    try:
        with inquiry.spending():
            async with asyncio.timeout(seconds), aclosing(engine.pieces(streamed.ask)) as pieces:
                await _put(pieces, streamed, made)
    except TimeoutError:
        inquiry.control.stop(GONE)
        problem = HttpProblem(503, too_long(seconds))
        made.put_nowait(("error", problem))
        inquiry.fail(problem)
    except GraphRAGError as error:
        made.put_nowait(("error", problem_of(error)))
        inquiry.fail(error)
    except Exception as error:
        log.exception("a question failed")
        made.put_nowait(("error", HttpProblem(500, "it failed: the log of the server says why")))
        inquiry.fail(error)
    finally:
        made.put_nowait(None)


async def _put(
    pieces: AsyncIterator[str | Answer], streamed: Streamed, made: asyncio.Queue[Event | None]
) -> None:
    async for piece in pieces:
        if isinstance(piece, Answer):
            streamed.inquiry.finish(piece)
            made.put_nowait(("citations", piece.citations))
            if kept := await keep(
                streamed.inquiry, streamed.conversation, piece, streamed.ask.where
            ):
                made.put_nowait(("kept", kept))
            made.put_nowait(("done", piece))
        else:
            made.put_nowait(("text", {"text": piece}))
