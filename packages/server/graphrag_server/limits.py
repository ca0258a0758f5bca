"""Limits for callers: bytes, characters, rows, hops, time, and a place among the others."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.query.methods import method_named, parameter_rows
from graphrag_server.problems import HttpProblem

if TYPE_CHECKING:
    from fastapi import Request

    from graphrag_pipeline.core.settings import ServerSettings
    from graphrag_pipeline.query.control import Control

BODY_BYTES = 256 * 1024
HEAD_BYTES = 64 * 1024
HEAD_TOO_LARGE = f"the head of a request has at most {HEAD_BYTES // 1024} KB: send less"
QUESTION_CHARACTERS = 8_000
TEXT_CHARACTERS = 100_000
MOST_ROWS = 500
MOST_HOPS = 3
MOST_NUMBER = 2**53 - 1
"""What JSON has exactly, and every column of a database holds."""
MOST_CHARACTERS = 2**31
"""No text has more, and a database finds each of so many."""
MOST_METHODS = 8
MOST_COLLECTIONS = 8
_MOST = 500
_MOST_BY_NAME = {"hops": 4, "depth": 5, "width": 20, "steps": 20}
_MOST_TOKENS = 128_000
_UNLIMITED = ("seed", "level")
_STOPPING_SECONDS = 0.1
_ENDING_SECONDS = 5.0
_RETRY_SECONDS = "2"

GONE = "nobody waits for the answer any more"

T = TypeVar("T")


class Limits:
    """Limits of work at once: questions in threads, the others waiting, and no more than that."""

    def __init__(self, settings: ServerSettings) -> None:
        self.n_threads = settings.threads or os.cpu_count() or 1
        self.most = settings.waiting
        self.seconds = settings.timeout_seconds
        self.inside = 0
        self._inside_by: Counter[str] = Counter()
        self.executor = ThreadPoolExecutor(self.n_threads, thread_name_prefix="question")
        self._apart = ThreadPoolExecutor(1, thread_name_prefix="ready")
        self._looking: dict[str, asyncio.Future[Any]] = {}

    @contextlib.contextmanager
    def place(self, key_id: str = "") -> Iterator[None]:
        """Keep a place for one question.

        Raises a 503 Problem where there is none, and 429 where one key has half of them.
        """
        if key_id and self._inside_by[key_id] >= max(1, self.most // 2):
            raise HttpProblem(
                429,
                f"the key {key_id} asks {self._inside_by[key_id]} questions already: wait for one "
                "of them",
                headers={"Retry-After": _RETRY_SECONDS},
            )
        if self.inside >= self.most:
            raise HttpProblem(
                503,
                f"{self.inside} questions are being answered: ask again in a moment",
                headers={"Retry-After": _RETRY_SECONDS},
            )
        self.inside += 1
        self._inside_by[key_id] += 1
        try:
            yield
        finally:
            self.inside -= 1
            self._inside_by[key_id] -= 1
            if not self._inside_by[key_id]:
                del self._inside_by[key_id]

    async def look(self, name: str, work: Callable[[], T]) -> T:
        """Return what some work gives, done in a thread apart from the questions.

        Who asks for the work of that name while it is done shares it, however many they are.
        """
        looking = self._looking.get(name)
        if looking is None:
            looking = asyncio.get_running_loop().run_in_executor(self._apart, work)
            self._looking[name] = looking
            looking.add_done_callback(lambda _: self._looking.pop(name))
        return await asyncio.shield(looking)

    def close(self) -> None:
        """Let the threads end."""
        for executor in (self.executor, self._apart):
            executor.shutdown(wait=False, cancel_futures=True)


async def attended(
    request: Request, control: Control, work: Coroutine[Any, Any, T], seconds: float
) -> T:
    """Return what some work gives, for as long as its caller waits, and at most so many seconds.

    After that its SQL is interrupted and its model calls are cancelled. Raises a 503 Problem where
    it took too long.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_until_gone(request))
    try:
        await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HttpProblem(503, GONE if gone.done() else too_long(seconds))
    finally:
        gone.cancel()
        if not task.done():
            await end(task, control, GONE)


async def end(task: asyncio.Future[Any], control: Control, reason: str) -> None:
    """Stop a question, cancel its calls, and wait a little while they end."""
    control.stop(reason)
    task.cancel()
    await asyncio.wait({task}, timeout=_ENDING_SECONDS)
    if task.done() and not task.cancelled():
        task.exception()
    for _ in range(round(_ENDING_SECONDS / _STOPPING_SECONDS)):
        if not control.is_running:
            return
        control.stop(reason)
        await asyncio.sleep(_STOPPING_SECONDS)


def too_long(seconds: float) -> str:
    """Return what to say of a question that was stopped for its time."""
    return (
        f"it took longer than {seconds:g} seconds: ask by a faster method, or raise "
        "timeout_seconds in [server]"
    )


def check_parameters(method: str, parameters: Mapping[str, Any]) -> None:
    """Raise a 422 Problem for a parameter that asks for more than one caller may take."""
    kinds = {name: kind for name, kind, _ in parameter_rows(method_named(method))}
    for name, value in parameters.items():
        if kinds.get(name) is not int or name in _UNLIMITED or not isinstance(value, int):
            continue
        most = _MOST_TOKENS if name.endswith("_tokens") else _MOST_BY_NAME.get(name, _MOST)
        if value > most:
            raise HttpProblem(422, f"{name} = {value}: a server gives at most {most:,}")


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
