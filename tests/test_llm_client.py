from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llm_helpers import ask, ask_many, complete_many, options_for, paid, said, with_client
from model_server import ModelServer, quota_exhausted, unauthorized, unknown_model, unsupported

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.llm import (
    ChatRequest,
    Completion,
    LlmOptions,
    ModelClient,
    ModelError,
    TerminalModelError,
    calls_since,
    last_position,
    run_calls,
)
from graphrag_pipeline.llm.requests import (
    Dialect,
    RefusedParameterError,
    chat_body,
    parameters_named,
)

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}, "rating": {}}}


def test_an_answer_has_its_text_tokens_cost_and_time(tmp_path: Path) -> None:
    with ModelServer(lambda messages: "four words of answer") as server:
        answer = ask(server, tmp_path, "a question of some length", model="gpt-4.1")
    assert (answer.text, answer.finish_reason, answer.cached) == (
        "four words of answer",
        "stop",
        False,
    )
    assert (answer.prompt_tokens, answer.completion_tokens) == (7, 5)
    assert answer.cost == pytest.approx((7 * 2 + 5 * 8) / 1e6)
    assert answer.seconds > 0


def test_the_request_carries_the_key_and_every_parameter(tmp_path: Path) -> None:
    with ModelServer() as server:
        with_client(
            server,
            tmp_path,
            lambda client: client.complete(
                said("hello"), stage="test", logit_bias={5: 100}, json_schema=SCHEMA
            ),
            temperature=0.5,
            max_output_tokens=99,
            extra={"seed": 7, "top_p": 0.5},
        )
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer sk-very-secret-key"
    body = request.body
    assert (body["temperature"], body["max_tokens"]) == (0.5, 99)
    assert (body["seed"], body["top_p"]) == (7, 0.5)
    assert body["logit_bias"] == {"5": 100}
    assert list(body["response_format"]["json_schema"]["schema"]["properties"]) == [
        "title",
        "rating",
    ]


def test_no_more_calls_than_allowed_are_in_flight(tmp_path: Path) -> None:
    with ModelServer(latency=0.1) as server:
        ask_many(server, tmp_path, [f"q{n}" for n in range(60)], concurrency=5)
    assert server.max_in_flight == 5
    # One more than calls may open while one is on its way back to those that wait.
    assert server.connections <= 10


def test_identical_questions_at_one_time_are_asked_once(tmp_path: Path) -> None:
    with ModelServer(latency=0.05) as server:
        results = ask_many(server, tmp_path, ["same"] * 40)
    assert len(server.requests) == 1
    assert sum(r.cached for r in results if isinstance(r, Completion)) == 39


def test_another_variant_is_another_call(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> None:
        for variant in (None, "2", "2", None):
            await client.complete(said("q"), stage="test", variant=variant)

    with ModelServer() as server:
        with_client(server, tmp_path, use)
    assert len(server.requests) == 2


def test_a_follower_asks_itself_when_who_asked_before_was_cancelled(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> Completion:
        await client.complete(said("before"), stage="test")
        first = asyncio.create_task(client.complete(said("q"), stage="test"))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(client.complete(said("q"), stage="test"))
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    with ModelServer(latency=0.2) as server:
        assert with_client(server, tmp_path, use).text
    assert len(server.requests) == 3
    assert paid(tmp_path)["error"].to_list() == [None, "interrupted", None]


@pytest.mark.parametrize("fault", [unauthorized, quota_exhausted, unknown_model])
def test_an_error_that_all_calls_would_meet_stops_them_early(tmp_path: Path, fault) -> None:
    with ModelServer(faults=lambda request: fault(), latency=0.01) as server:
        results = ask_many(server, tmp_path, [f"q{n}" for n in range(1500)], concurrency=4)
        assert len(server.requests) <= 4
    assert len(results) == 1500
    assert all(isinstance(result, TerminalModelError) for result in results)
    assert len({str(result) for result in results}) == 1


def test_waiting_calls_stop_at_once_also_behind_a_slow_rate(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> list[object]:
        calls = [client.complete(said(f"q{n}"), stage="test") for n in range(20)]
        async with asyncio.timeout(5):
            return await asyncio.gather(*calls, return_exceptions=True)

    with ModelServer(faults=lambda request: unauthorized()) as server:
        results = with_client(server, tmp_path, use, requests_per_minute=6)
    assert all(isinstance(result, TerminalModelError) for result in results)
    assert len(server.requests) == 1


def test_a_client_asks_again_once_the_stopped_calls_are_over(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> str:
        with pytest.raises(TerminalModelError, match="OPENAI_API_KEY"):
            await client.complete(said("q"), stage="test")
        return (await client.complete(said("q"), stage="test")).text

    with ModelServer(faults=[unauthorized()]) as server:
        assert with_client(server, tmp_path, use)


def test_cached_answers_are_given_even_when_everything_else_stops(tmp_path: Path) -> None:
    texts = [f"q{n}" for n in range(10)]
    with ModelServer() as server:
        ask_many(server, tmp_path, texts[5:])
        server.misbehave(lambda request: unauthorized())
        results = ask_many(server, tmp_path, texts)
    assert [isinstance(result, Completion) for result in results] == [False] * 5 + [True] * 5


def test_parameters_a_model_refuses_are_left_out_and_remembered(tmp_path: Path) -> None:
    def faults(request):
        for name in ("temperature", "max_tokens", "logit_bias", "response_format"):
            if name in request.body:
                return unsupported(name)
        return None

    async def use(client: ModelClient) -> None:
        for n in range(3):
            await client.complete(
                said(f"q{n}"), stage="test", json_schema=SCHEMA, logit_bias={1: 5}
            )

    with ModelServer(faults=faults) as server:
        with_client(server, tmp_path, use, max_output_tokens=50)
        assert server.answered == 3
        assert len(server.requests) == 3 + 6
        assert server.requests[-1].body["max_completion_tokens"] == 50
        server.forget()
        with_client(server, tmp_path, use, max_output_tokens=50)
        assert not server.requests


def test_many_first_calls_together_learn_one_refusal_once(tmp_path: Path) -> None:
    def faults(request):
        shape = request.body.get("response_format", {}).get("type")
        return unsupported("response_format") if shape == "json_schema" else None

    requests = [ChatRequest(said(f"q{n}"), "test", json_schema=SCHEMA) for n in range(16)]
    with ModelServer(faults=faults, latency=0.02) as server:
        with_client(server, tmp_path, lambda c: complete_many(c, requests))
    assert server.answered == 16
    assert server.requests[-1].body["response_format"] == {"type": "json_object"}


def test_a_parameter_of_the_users_own_is_never_left_out(tmp_path: Path) -> None:
    with (
        ModelServer(faults=lambda request: unsupported("temperature")) as server,
        pytest.raises(TerminalModelError, match="temperature"),
    ):
        ask(server, tmp_path, extra={"temperature": 0.3})
    assert len(server.requests) == 1


def test_a_limit_no_name_of_which_is_taken_is_an_error(tmp_path: Path) -> None:
    def faults(request):
        both = {"max_tokens", "max_completion_tokens"}
        return unsupported((both & request.body.keys()).pop())

    with ModelServer(faults=faults) as server, pytest.raises(TerminalModelError):
        ask(server, tmp_path, max_output_tokens=10)
    assert len(server.requests) == 2


def test_the_ledger_agrees_with_the_server(tmp_path: Path) -> None:
    async def use(client: ModelClient) -> None:
        requests = [ChatRequest(said(f"q{n}"), "extract", f"b{n % 3}") for n in range(50)]
        await complete_many(client, requests)
        await complete_many(client, requests[:20])
        await client.embed(["a", "b", "c"], stage="embed")

    with ModelServer() as server:
        with_client(server, tmp_path, use, model="gpt-4.1", embedding_model="unpriced")
    calls = calls_since(tmp_path)
    made = paid(tmp_path)
    assert made.height == len(server.requests) == 51
    assert made["prompt_tokens"].sum() == server.prompt_tokens
    assert made["completion_tokens"].sum() == server.completion_tokens
    cached = calls.filter("cached")
    assert cached.height == 20
    assert cached["cost"].to_list() == [0.0] * 20
    assert made.filter(stage="embed")["cost"].to_list() == [0.0]
    assert made.filter(stage="extract")["cost"].min() > 0
    assert set(calls.filter(stage="extract")["batch"]) == {"b0", "b1", "b2"}


def test_calls_can_be_read_on_from_where_one_was(tmp_path: Path) -> None:
    assert (last_position(tmp_path), calls_since(tmp_path).height) == (0, 0)
    with ModelServer() as server:
        ask_many(server, tmp_path, ["a", "b"])
        position = last_position(tmp_path)
        ask_many(server, tmp_path, ["c"])
    assert position == 2
    assert calls_since(tmp_path, position)["position"].to_list() == [3]


def test_rows_of_the_ledger_fit_the_table(engine) -> None:
    from graphrag_pipeline.store.index_store import insert

    home = engine.store.path.parent
    with ModelServer() as server:
        ask_many(server, home, ["a", "b"])
    with engine.store.transaction() as con:
        insert(con, "llm_calls", calls_since(home).drop("position", "cached_tokens"))
    assert engine.rows("SELECT count(*), sum(prompt_tokens) FROM llm_calls") == [(2, 2)]


def test_text_that_is_no_unicode_is_asked_and_kept_all_the_same(tmp_path: Path) -> None:
    with ModelServer(lambda messages: "half \ud83d a pair") as server:
        first = ask(server, tmp_path, "bad \udcff text")
        second = ask(server, tmp_path, "bad \udcff text")
    assert first.text == second.text == "half ? a pair"
    assert len(server.requests) == 1


def test_calls_run_from_plain_code_and_inside_a_running_loop(tmp_path: Path) -> None:
    async def notebook() -> str:
        return ask(server, tmp_path, "two").text

    with ModelServer() as server:
        assert ask(server, tmp_path, "one").text
        assert asyncio.run(notebook())


def test_errors_pass_through_from_a_loop_in_another_thread() -> None:
    async def fail() -> None:
        raise ModelError("no answer", "test")

    async def notebook() -> None:
        with pytest.raises(ModelError, match="no answer"):
            run_calls(fail)

    asyncio.run(notebook())


def test_openai_without_a_key_says_what_to_set(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    async def use() -> None:
        async with ModelClient(LlmOptions(), tmp_path) as client:
            await client.complete(said("q"), stage="test")

    with pytest.raises(ConfigError, match="set OPENAI_API_KEY"):
        run_calls(use)
    assert calls_since(tmp_path).height == 0


def test_the_environment_names_server_and_key(tmp_path: Path, monkeypatch) -> None:
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url + "/")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-other")

        async def use() -> None:
            async with ModelClient(LlmOptions(), tmp_path) as client:
                await client.complete(said("q"), stage="test")

        run_calls(use)
    assert server.requests[0].headers["authorization"] == "Bearer sk-other"


@pytest.mark.parametrize(
    "given", [{"concurrency": 0}, {"structured_output": "maybe"}, {"base_url": "localhost:1"}]
)
def test_options_out_of_range_are_refused(given) -> None:
    with pytest.raises(ConfigError, match=r"llm\.\w+"):
        LlmOptions(**given)


def test_options_of_a_server_are_the_same_with_and_without_a_slash() -> None:
    with ModelServer() as server:
        assert options_for(server).endpoint == LlmOptions(server.base_url + "/").endpoint


def test_openai_is_told_what_goes_on_from_the_same_prompt_and_others_are_not() -> None:
    def sent(options: LlmOptions, *talk: str) -> dict[str, Any]:
        messages = [
            {"role": "assistant" if number % 2 else "user", "content": text}
            for number, text in enumerate(talk)
        ]
        return Dialect(options).translate(chat_body(ChatRequest(messages, "test"), options))

    openai = LlmOptions(base_url="https://api.openai.com/v1", concurrency=1000)
    keys = {sent(openai, f"document {n}")["prompt_cache_key"] for n in range(200)}
    assert 30 < len(keys) <= 64
    first = sent(openai, "document")["prompt_cache_key"]
    assert sent(openai, "document", "records", "more?")["prompt_cache_key"] == first
    assert "prompt_cache_key" not in sent(LlmOptions(base_url="http://localhost:1"), "document")
    own = LlmOptions(base_url=openai.base_url, extra={"prompt_cache_key": "mine"})
    assert sent(own, "document")["prompt_cache_key"] == "mine"
    refusing = Dialect(openai)
    body = chat_body(ChatRequest(said("document"), "test"), openai)
    assert "prompt_cache_key" not in body
    refusal = RefusedParameterError("refused", "request")
    refusal.named = parameters_named("Unrecognized request argument supplied: prompt_cache_key")
    assert refusing.learn(refusal, refusing.write(body), body)
    assert "prompt_cache_key" not in refusing.translate(body)
