"""What the tests of the model layer share."""

from __future__ import annotations

import multiprocessing
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from model_server import Messages, ModelServer

from graphrag_pipeline.llm import (
    ChatRequest,
    Completion,
    LlmOptions,
    ModelClient,
    ModelError,
    calls_since,
    run_calls,
)
from graphrag_pipeline.llm.running import work_through

T = TypeVar("T")

KEY = "sk-very-secret-key"

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["preloaded"])


def in_environment(environment: dict[str, str], function: Callable[..., Any], *given: Any) -> None:
    """Call a function in a process of :data:`processes`, which has the environment of its first."""
    os.environ.clear()
    os.environ.update(environment)
    function(*given)


def options_for(server: ModelServer, **given: Any) -> LlmOptions:
    given.setdefault("retry_seconds", 0.02)
    return LlmOptions(server.base_url, KEY, **given)


def with_client(
    server: ModelServer,
    home: Path,
    use: Callable[[ModelClient], Awaitable[T]],
    *,
    since: int | None = None,
    **given: Any,
) -> T:
    """Open a client, use it, and close it."""

    async def run() -> T:
        async with ModelClient(options_for(server, **given), home, since=since) as client:
            return await use(client)

    return run_calls(run)


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def ask(server: ModelServer, home: Path, text: str = "hello", **given: Any) -> Completion:
    """Ask one question with a client of its own."""
    return with_client(server, home, lambda c: c.complete(said(text), stage="test"), **given)


def ask_many(
    server: ModelServer, home: Path, texts: list[str], **given: Any
) -> list[Completion | ModelError]:
    requests = [ChatRequest(said(text), "test", "b1") for text in texts]
    return with_client(server, home, lambda c: complete_many(c, requests), **given)


async def complete_many(
    client: ModelClient,
    requests: list[ChatRequest],
    on_done: Callable[[ChatRequest, Completion | ModelError], object] | None = None,
) -> list[Completion | ModelError]:
    """Ask many questions together; one that fails has its error as its result."""
    results: dict[int, Completion | ModelError] = {}

    async def work(place: int) -> None:
        try:
            results[place] = await client.ask(requests[place])
        except ModelError as error:
            results[place] = error
        if on_done is not None:
            on_done(requests[place], results[place])

    # One error that all would meet ends them together.
    with client._caller.running():
        await work_through(range(len(requests)), work, 2 * client.options.concurrency)
    return [results[place] for place in range(len(requests))]


def paid(home: Path) -> pl.DataFrame:
    """The calls that were made, cached ones left out."""
    return calls_since(home).filter(~pl.col("cached"))


def ask_and_tell(base_url: str, home: Path, texts: list[str], told: Path) -> None:
    """Ask questions (in a process of its own) and write each into a file once it is answered."""
    handle = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(request: ChatRequest, result: object) -> None:
        assert isinstance(result, Completion), result
        os.write(handle, f"{request.messages[0]['content']}\n".encode())

    async def run() -> None:
        options = LlmOptions(base_url, KEY, concurrency=8)
        async with ModelClient(options, home) as client:
            requests = [ChatRequest(said(text), "test") for text in texts]
            await complete_many(client, requests, tell)

    run_calls(run)
    os.close(handle)


def stage_of(messages: Messages) -> str:
    """What a conversation is about, as the prompts that ship tell it."""
    # Who is asked to go on is asked the same as before.
    asked = [m["content"] for m in messages if m["role"] != "assistant"]
    last = [text for text in asked if "was cut off before its end" not in text][-1]
    system = messages[0]["content"]
    if "knowledge graph that it states" in system:
        if "Answer with one word" in last:
            return "check"
        return "glean" if "MANY records were missed" in last else "extract"
    if "write down the claims" in system:
        return "check" if "Answer with one word" in last else "claims"
    if "several summaries of it" in system:
        return "reduce"
    return "report" if "community of a knowledge graph" in system else "summary"


def document_in(messages: Messages) -> str:
    """The text of a chunk, out of the markers it was shown between."""
    found = re.search(r"<document id=\w+>(.*)</document", messages[1]["content"], re.S)
    assert found is not None
    return found[1].strip()
