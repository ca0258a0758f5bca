"""An answer as it is written, for loops of either kind."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query.results import Answer

Pieces = Callable[[], AsyncGenerator[str | Answer, None]]


class AnswerStream:
    """The pieces of an answer's text, in order; together they are ``answer.text``.

    Works with ``for`` and with ``async for``, once. Errors are raised by the piece they prevent,
    most by the first. A loop that is left early ends the work.
    """

    def __init__(self, make: Pieces) -> None:
        self._make = make
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The complete answer; raises InputError until all pieces have come."""
        if self._answer is None:
            raise InputError("the answer is not there yet: iterate over the stream first")
        return self._answer

    def __iter__(self) -> Iterator[str]:
        with contextlib.closing(_Elsewhere(self._make)) as pieces:
            for piece in pieces:
                if isinstance(piece, Answer):
                    self._answer = piece
                else:
                    yield piece

    async def __aiter__(self) -> AsyncIterator[str]:
        async with aclosing(self._make()) as pieces:
            async for piece in pieces:
                if isinstance(piece, Answer):
                    self._answer = piece
                else:
                    yield piece


class _Elsewhere:
    """Pieces made on an event loop in a thread of its own, whether or not this one runs a loop."""

    def __init__(self, make: Pieces) -> None:
        self._make = make
        self._made: queue.SimpleQueue[str | Answer | BaseException | None] = queue.SimpleQueue()
        self._left = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._work,), name="answer-stream", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> Iterator[str | Answer]:
        while (piece := self._made.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    def close(self) -> None:
        self._left.set()
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._made.put(error)
        finally:
            self._made.put(None)

    async def _run(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._left.is_set():
            return
        async with aclosing(self._make()) as pieces:
            async for piece in pieces:
                self._made.put(piece)
