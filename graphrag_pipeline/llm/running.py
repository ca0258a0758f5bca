"""Many calls of a model at a time, and calls from code that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from operator import length_hint
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.core.scopes import within
from graphrag_pipeline.llm.errors import ModelError

if TYPE_CHECKING:
    from graphrag_pipeline.llm.client import ModelClient

Watch = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Is told, for as long as calls are made, how to cancel them from any thread."""

_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)
T = TypeVar("T")
Item = TypeVar("Item")


async def work_through(
    items: Iterable[Item], work: Callable[[Item], Awaitable[object]], at_once: int
) -> None:
    """Do some work for each item, so many at a time.

    After an error nothing new is begun; what is under way is ended, for its answers are paid for,
    and the error is raised.
    """
    waiting = iter(items)
    errors: list[Exception] = []

    async def worker() -> None:
        for item in waiting:
            if errors:
                return
            try:
                await work(item)
            except Exception as error:
                errors.append(error)

    await asyncio.gather(*(worker() for _ in range(min(at_once, length_hint(items, at_once)))))
    if errors:
        raise errors[0]


async def ask_each(
    client: ModelClient,
    items: Sequence[Item],
    ask: Callable[[Item], Awaitable[T]],
    tell: Callable[[int, int], object],
) -> list[T | ModelError]:
    """Return what a model says of each item, in their order, or the error where it says nothing.

    ``tell`` is told how many of how many are done. Raises the model's error when no further call
    can succeed; what was answered until then is in the cache.
    """
    results: dict[int, T | ModelError] = {}

    async def ask_one(place: int) -> None:
        try:
            results[place] = await ask(items[place])
        except ModelError as error:
            if error.stops_everything:
                raise
            results[place] = error
        tell(len(results), len(items))

    # Twice as many as are asked at a time, so that whoever ends finds the next one ready.
    await work_through(range(len(items)), ask_one, 2 * client.options.concurrency)
    return [results[place] for place in range(len(items))]


def run_calls(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end and return its result.

    Where this thread already runs an event loop (a notebook), the coroutine gets one of its own
    in another thread, and this thread waits.
    """
    watch = _watch.get()
    work = make if watch is None else functools.partial(_cancellable, make, watch)
    return _run_elsewhere(work) if _a_loop_runs() else asyncio.run(work())


def watched(watch: Watch) -> AbstractContextManager[None]:
    """Let the calls that :func:`run_calls` makes within be cancelled by who watches."""
    return within(_watch, watch)


async def _cancellable(make: Callable[[], Coroutine[Any, Any, T]], watch: Watch) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    with watch(cancel):
        return await make()


def _a_loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_elsewhere(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(asyncio.run(make()))
        except BaseException as error:
            errors.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="model-calls", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
