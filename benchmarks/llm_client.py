"""What a model call costs in CPU without the model: the client beside OpenAI's own SDK, bare.

A server on loopback answers at once, in another process than the client that is measured. Run as
``python -m benchmarks.llm_client``.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_CALLS = 2000
_CONCURRENCY = 16
_REPEATS = 3
_WORDS = "The committee met in Vienna and discussed the report of the second working group. "


def llm_client_cost(calls: int = _CALLS) -> dict[str, Any]:
    """Return CPU milliseconds of a call: bare SDK, whole client, and client from its cache.

    Every prompt is distinct and has about 600 tokens, every answer about 200; the least of three
    runs counts, each in a process of its own.
    """
    from model_server import ModelServer

    found: dict[str, list[float]] = {}
    with ModelServer(lambda messages: _WORDS * 12) as server:
        for _ in range(_REPEATS):
            with tempfile.TemporaryDirectory() as home:
                for way in ("sdk", "client", "cached"):
                    found.setdefault(way, []).append(_measured(way, server.base_url, home, calls))
    return {f"{way}_ms": round(min(times), 2) for way, times in found.items()} | {"calls": calls}


def _measured(way: str, base_url: str, home: str, calls: int) -> float:
    command = [sys.executable, "-m", "benchmarks.llm_client", way, base_url, home, str(calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def _prompt(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{number}: {_WORDS * 40}"}]


async def _sdk(base_url: str, home: str, calls: int) -> float:
    import openai

    slots = asyncio.Semaphore(_CONCURRENCY)
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:

        async def ask(number: int) -> None:
            async with slots:
                answer = await client.chat.completions.create(
                    model="m", messages=_prompt(number), temperature=0.0
                )
                assert answer.choices[0].message.content

        await asyncio.gather(*(ask(-number) for number in range(1, 50)))
        began = time.process_time()
        await asyncio.gather(*(ask(number) for number in range(calls)))
        return (time.process_time() - began) / calls * 1000


async def _client(base_url: str, home: str, calls: int) -> float:
    from graphrag_pipeline.llm import ChatRequest, Completion, LlmOptions, ModelClient

    options = LlmOptions(base_url, model="m", concurrency=_CONCURRENCY)
    async with ModelClient(options, Path(home)) as client:
        warming = [ChatRequest(_prompt(-number), "warm") for number in range(1, 50)]
        await client.complete_many(warming)
        began = time.process_time()
        asked = (ChatRequest(_prompt(number), "bench") for number in range(calls))
        results = await client.complete_many(asked)
    spent = time.process_time() - began
    assert all(isinstance(result, Completion) for result in results)
    return spent / calls * 1000


def main() -> None:
    """Print the measurements; with arguments, be the process that is measured."""
    if len(sys.argv) > 1:
        way, base_url, home, calls = sys.argv[1:]
        measure = _sdk if way == "sdk" else _client
        print(json.dumps(asyncio.run(measure(base_url, home, int(calls)))))
        return
    print(describe(llm_client_cost()))


def describe(found: dict[str, Any]) -> str:
    """Return the measurements as a line of text."""
    return (
        f"CPU per call: {found['client_ms']} ms with cache and ledger, {found['cached_ms']} ms "
        f"from the cache, {found['sdk_ms']} ms for the bare SDK ({found['calls']:,} calls)"
    )


if __name__ == "__main__":
    main()
