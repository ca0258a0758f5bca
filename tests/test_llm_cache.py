from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
from llm_helpers import ask, ask_and_tell, ask_many, options_for, paid, processes, said, with_client
from model_server import ModelServer

from conftest import without_privileges
from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm import ChatRequest, Completion, LlmOptions, ModelClient, calls_since
from graphrag_pipeline.llm.cache import CachedResponse, look_up_response, put_response
from graphrag_pipeline.llm.database import CallDatabase, Write
from graphrag_pipeline.llm.requests import chat_key

KILLS = 20
CONCURRENCY = 8


def key_of(options: LlmOptions, request: ChatRequest) -> bytes:
    return chat_key(request, options)


def test_every_part_of_a_request_is_part_of_its_key() -> None:
    options = LlmOptions("http://127.0.0.1:1/v1", model="m", temperature=0.0)
    request = ChatRequest(said("hello"), "test")
    others = [
        (options, replace(request, messages=said("hello!"))),
        (options, replace(request, max_output_tokens=5)),
        (options, replace(request, logit_bias={1: 2})),
        (options, replace(request, json_schema={"type": "object"})),
        (options, replace(request, variant="2")),
        (replace(options, model="n"), request),
        (replace(options, temperature=None), request),
        (replace(options, temperature=0.1), request),
        (replace(options, extra={"seed": 1}), request),
        (replace(options, base_url="http://127.0.0.1:2/v1"), request),
    ]
    keys = [key_of(options, request), *(key_of(*other) for other in others)]
    assert len(set(keys)) == len(keys)


def test_what_does_not_shape_the_answer_is_not_part_of_the_key() -> None:
    options = LlmOptions("http://127.0.0.1:1/v1", extra={"a": 1, "b": 2}, temperature=0)
    request = ChatRequest([{"role": "user", "content": "hello"}], "test", "b1")
    same = [
        (replace(options, concurrency=3, timeout_seconds=5, api_key="sk-2", max_cost=1), request),
        (replace(options, extra={"b": 2, "a": 1}, base_url="http://127.0.0.1:1/v1/"), request),
        (options, replace(request, stage="other", batch=None)),
        (options, replace(request, messages=[{"content": "hello", "role": "user"}])),
    ]
    assert {key_of(*other) for other in same} == {key_of(options, request)}


def test_an_unchanged_run_asks_nothing(tmp_path: Path) -> None:
    texts = [f"q{n}" for n in range(30)]
    with ModelServer() as server:
        first = ask_many(server, tmp_path, texts)
        server.forget()
        second = ask_many(server, tmp_path, texts)
        assert not server.requests
    assert [r.text for r in first] == [r.text for r in second]
    assert [r.prompt_tokens for r in first] == [r.prompt_tokens for r in second]
    assert all(isinstance(r, Completion) and r.cached and r.cost == 0 for r in second)


def test_a_run_from_the_cache_does_not_even_make_an_http_client(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> object:
        await client.complete(said("hello"), stage="test")
        return client._transport._client

    with ModelServer() as server:
        assert with_client(server, tmp_path, use) is not None
        assert with_client(server, tmp_path, use) is None


def test_a_call_may_pass_the_cache_by(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> list[bool]:
        uses = (False, True, False, True)
        return [(await client.complete(said("q"), stage="t", use_cache=u)).cached for u in uses]

    with ModelServer() as server:
        assert with_client(server, tmp_path, use) == [False, False, False, True]


def test_answers_survive_kill_at_any_moment_and_are_never_asked_again(tmp_path: Path) -> None:
    texts = [f"question {n}" for n in range(1200)]
    told = tmp_path / "told"
    told.touch()
    rng = random.Random(7)
    known: set[str] = set()
    kills = 0
    with ModelServer(latency=0.03) as server:
        for _ in range(KILLS):
            server.requests.clear()
            process = processes.Process(
                target=ask_and_tell, args=(server.base_url, tmp_path, texts, told)
            )
            process.start()
            time.sleep(rng.uniform(0.0, 0.2) if rng.random() < 0.3 else rng.uniform(0.2, 0.5))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += process.exitcode == -signal.SIGKILL
            assert not known & {request.text for request in server.requests}
            known |= set(told.read_text().splitlines())
        server.requests.clear()
        results = ask_many(server, tmp_path, texts, concurrency=64)
        assert not known & {request.text for request in server.requests}
        assert all(isinstance(result, Completion) for result in results)
        assert server.counts["chat/completions"] <= len(texts) + kills * 2 * CONCURRENCY
    assert kills >= 10


def test_processes_share_one_cache(tmp_path: Path) -> None:
    texts = [f"q{n}" for n in range(150)]
    with ModelServer(latency=0.002) as server:
        runs = [
            processes.Process(
                target=ask_and_tell, args=(server.base_url, tmp_path, order, tmp_path / name)
            )
            for name, order in (("one", texts), ("other", texts[::-1]))
        ]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        assert [run.exitcode for run in runs] == [0, 0]
        assert len(server.requests) <= len(texts) + 4 * CONCURRENCY
        assert paid(tmp_path).height == len(server.requests)
        assert calls_since(tmp_path).height == 2 * len(texts)
        server.forget()
        ask_many(server, tmp_path, texts)
        assert not server.requests


def test_an_answer_that_the_disk_has_changed_is_not_used_but_asked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ModelServer() as server:
        first = ask(server, tmp_path)
        with contextlib.closing(sqlite3.connect(Home(tmp_path).calls)) as con:
            con.execute("UPDATE responses SET text = replace(text, substr(text, 1, 1), '?')")
            con.commit()
        server.forget()
        assert ask(server, tmp_path).text == first.text
        assert len(server.requests) == 1
        assert "not what was bought" in caplog.text
        server.forget()
        assert ask(server, tmp_path).text == first.text
        assert not server.requests


def test_an_answer_that_the_disk_has_changed_is_none_that_is_known(tmp_path: Path) -> None:
    key, answer = b"k" * 32, CachedResponse("told", 1, 1, "stop")
    database = CallDatabase(Home(tmp_path).calls)
    asyncio.run(database.write([put_response(key, "m", answer, "stage")]))
    assert look_up_response(database, key) == answer
    change = Write("UPDATE responses SET text = 'tale' WHERE key = $1", [(key,)])
    asyncio.run(database.write([change]))
    assert look_up_response(database, key) is None
    database.close()


def test_an_answer_without_a_hash_of_an_older_program_is_used(tmp_path: Path) -> None:
    with ModelServer() as server:
        ask(server, tmp_path)
        with contextlib.closing(sqlite3.connect(Home(tmp_path).calls)) as con:
            con.execute("UPDATE responses SET digest = NULL")
            con.commit()
        server.forget()
        ask(server, tmp_path)
        assert not server.requests


def test_writes_that_come_together_are_committed_together(tmp_path: Path) -> None:
    async def run() -> int:
        database = CallDatabase(Home(tmp_path).calls)
        commits = []
        database._tables._writer.set_trace_callback(
            lambda sql: commits.append(sql) if sql.startswith("COMMIT") else None
        )
        insert = "INSERT INTO embeddings VALUES ($1, '', '', 0, NULL, NULL, NULL)"
        rows = [Write(insert, [(str(n).encode(),)]) for n in range(200)]
        await asyncio.gather(*(database.write([row]) for row in rows))
        assert database.read("SELECT count(*) FROM embeddings") == [(200,)]
        database.close()
        return len(commits)

    assert asyncio.run(run()) < 50


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (Home(tmp_path).calls).write_bytes(b"this is no database, whatever its name says" * 100)
    with ModelServer() as server, pytest.raises(StorageError, match="move the file away"):
        ask(server, tmp_path)


def test_an_answer_that_cannot_be_kept_is_not_used(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> None:
        with contextlib.closing(sqlite3.connect(Home(tmp_path).calls)) as con:
            con.execute("DROP TABLE responses")
            con.execute("CREATE TABLE responses (key)")
        with pytest.raises(StorageError):
            await client._database.write([Write("INSERT INTO responses VALUES (1, 2)", [()])])

    with ModelServer() as server:
        with_client(server, tmp_path, use)


def test_a_folder_that_cannot_be_written_is_named(open_folder: Path) -> None:
    home = open_folder / "closed"
    home.mkdir(mode=0o555)
    with ModelServer() as server, without_privileges(), pytest.raises(StorageError):
        ask(server, home / "inner")


def test_options_without_their_key_still_find_the_cache(tmp_path: Path) -> None:
    import pickle

    with ModelServer() as server:
        ask(server, tmp_path)
        options = pickle.loads(pickle.dumps(options_for(server)))
        request = ChatRequest(said("hello"), "test")
        assert key_of(options, request) == key_of(options_for(server), request)
