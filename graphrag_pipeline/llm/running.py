"""Model calls from code that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from operator import length_hint
from typing import Any, TypeVar

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


def run_calls(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end and return its result.

    Where this thread already runs an event loop (a notebook), the coroutine gets one of its own
    in another thread, and this thread waits.
    """
    watch = _watch.get()
    work = make if watch is None else functools.partial(_cancellable, make, watch)
    return _run_elsewhere(work) if _a_loop_runs() else asyncio.run(work())


@contextlib.contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Let the calls that :func:`run_calls` makes within be cancelled by who watches."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


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
