"""An answer as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.query.control import Control
from graphrag_pipeline.query.results import Answer
from graphrag_pipeline.serving.limits import GONE, end, too_long
from graphrag_pipeline.serving.problems import Problem, problem_of
from graphrag_pipeline.serving.state import json_bytes

if TYPE_CHECKING:
    from graphrag_pipeline.query.ask import Ask
    from graphrag_pipeline.query.engine import QueryEngine

log = logging.getLogger("graphrag_pipeline")

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events: step {text}, text {text}, citations [...], done (the answer), "
        "error (a problem).",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
_PING_SECONDS = 15.0
_PING = b": working\n\n"

Event = tuple[str, Any]


async def events(
    engine: QueryEngine,
    ask: Ask,
    stack: AsyncExitStack,
    seconds: float,
    on_answer: Callable[[Answer], None],
) -> AsyncIterator[bytes]:
    """Yield the events of an answer; ``stack``, which holds its lease and place, is closed after.

    A caller who goes away ends the work: SQL is interrupted, calls are cancelled.
    """
    async with stack, aclosing(pieces_of(engine, ask, seconds)) as made:
        async for event in made:
            if event is None:
                yield _PING
                continue
            name, value = event
            if name == "done":
                on_answer(value)
            yield b"event: " + name.encode() + b"\ndata: " + json_bytes(value) + b"\n\n"


async def pieces_of(
    engine: QueryEngine, ask: Ask, seconds: float
) -> AsyncGenerator[Event | None, None]:
    """Yield the parts of an answer by name, and None where nothing has come for a while."""
    loop = asyncio.get_running_loop()
    made: asyncio.Queue[Event | None] = asyncio.Queue()

    def on_step(line: str) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(made.put_nowait, ("step", {"text": line}))

    control = Control(on_step)
    task = asyncio.ensure_future(_make(engine.controlled(control), ask, made, seconds))
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


async def _make(
    engine: QueryEngine, ask: Ask, made: asyncio.Queue[Event | None], seconds: float
) -> None:
    """Put the parts of an answer into a queue, an error as the last of them."""
    try:
        async with asyncio.timeout(seconds), aclosing(engine.pieces(ask)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Answer):
                    made.put_nowait(("citations", piece.citations))
                    made.put_nowait(("done", piece))
                else:
                    made.put_nowait(("text", {"text": piece}))
    except TimeoutError:
        engine.index.control.stop(GONE)
        made.put_nowait(("error", Problem(503, too_long(seconds)).to_dict()))
    except GraphRAGError as error:
        made.put_nowait(("error", problem_of(error).to_dict()))
    except Exception:
        log.exception("a question failed")
        failure = Problem(500, "it failed: the log of the server says why")
        made.put_nowait(("error", failure.to_dict()))
    finally:
        made.put_nowait(None)
