"""Model calls from code that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

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

    await asyncio.gather(*(worker() for _ in range(at_once)))
    if errors:
        raise errors[0]


def run_calls(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end and return its result.

    Where this thread already runs an event loop (a notebook), the coroutine gets one of its own
    in another thread, and this thread waits.
    """
    return _run_elsewhere(make) if _a_loop_runs() else asyncio.run(make())


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
