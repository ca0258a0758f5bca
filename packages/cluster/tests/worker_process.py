"""A process that asks a model as a worker does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from graphrag_cluster.calls import PostgresCalls
from graphrag_cluster.postgres import Postgres
from llm_helpers import KEY, complete_many, said

from graphrag_pipeline.core.environment import Secret
from graphrag_pipeline.llm import ChatRequest, Completion, LlmOptions, ModelClient, run_calls


def ask_beside_others(
    address: str, url: str, base_url: str, since: int, texts: list[str], given: Any, told: Path
) -> None:
    """Ask as a worker of an index in Postgres does, and write what came of each into a file."""
    handle = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(request: ChatRequest, result: object) -> None:
        kind = "ok" if isinstance(result, Completion) else type(result).__name__
        os.write(handle, f"{kind} {request.messages[0]['content'][:3]}\n".encode())

    async def run() -> None:
        options = LlmOptions(base_url, KEY, retry_seconds=0.02, **given)
        place = PostgresCalls(Postgres(Secret(address), url))
        async with ModelClient(options, place, since=since) as client:
            requests = [ChatRequest(said(text), "test") for text in texts]
            await complete_many(client, requests, tell)

    run_calls(run)
