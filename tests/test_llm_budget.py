from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from llm_helpers import ask, ask_many, paid, with_client
from model_server import ModelServer, empty_answer

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.llm import (
    BudgetExceededError,
    Completion,
    LlmOptions,
    ModelClient,
    last_position,
)
from graphrag_pipeline.llm.budget import Budget, BudgetAmount
from graphrag_pipeline.llm.cache import today
from graphrag_pipeline.llm.database import reading
from graphrag_pipeline.llm.ledger import Call, day_since, hearing, put_calls, spent_since
from graphrag_pipeline.llm.prices import load_prices

TEXTS = [f"{n:03} " + "ab " * 32 for n in range(100)]


def bought(results: list[object]) -> int:
    return sum(isinstance(result, Completion) for result in results)


def test_each_role_hears_of_a_call_and_of_one_role_the_innermost() -> None:
    heard: list[str] = []
    with hearing(lambda call: heard.append("caller"), "caller"):
        with hearing(lambda _: heard.append("outer")), hearing(lambda _: heard.append("inner")):
            put_calls(Call("answers", "m"))
        put_calls(Call("answers", "m"))
    assert heard == ["caller", "inner", "caller"]


def test_a_call_of_a_clock_that_was_put_back_since_is_of_today() -> None:
    assert day_since(lambda *_: [(time.time() + 9e5,)], 0) == today()


def test_tokens_stop_a_run_cleanly_and_it_resumes(tmp_path: Path) -> None:
    with ModelServer(lambda messages: "y" * 100, latency=0.01) as server:
        first = ask_many(server, tmp_path, TEXTS, max_tokens=1000, max_output_tokens=25)
        assert server.prompt_tokens + server.completion_tokens <= 1000
        assert 15 <= bought(first) == len(server.requests) <= 20
        assert all(isinstance(r, Completion | BudgetExceededError) for r in first)
        again = ask_many(server, tmp_path, TEXTS, max_tokens=100_000, max_output_tokens=25)
        assert bought(again) == 100
        assert len(server.requests) == 100


def test_money_stops_a_run_near_its_limit_though_calls_reserve_much_more(tmp_path: Path) -> None:
    price = load_prices().of("gpt-4.1-mini")
    assert price is not None
    each = (25 * price.input + 25 * price.output) / 1e6
    with ModelServer(lambda messages: "y" * 100, latency=0.005) as server:
        results = ask_many(
            server,
            tmp_path,
            TEXTS,
            model="gpt-4.1-mini",
            max_cost=each * 80,
            max_output_tokens=250,
        )
    assert 65 <= bought(results) <= 80
    assert paid(tmp_path)["cost"].sum() <= each * 80
    (error, *_) = [r for r in results if isinstance(r, BudgetExceededError)]
    assert "run again" in str(error)


def test_what_a_run_spent_before_counts_when_it_is_resumed(tmp_path: Path) -> None:
    given = {"max_tokens": 800, "max_output_tokens": 25}
    with ModelServer(lambda messages: "y" * 100) as server:
        ask_many(server, tmp_path, TEXTS[:10])
        assert bought(ask_many(server, tmp_path, TEXTS[10:20], since=0, **given)) < 7
        begin = last_position(tmp_path)
        assert bought(ask_many(server, tmp_path, TEXTS[20:30], since=begin, **given)) == 10
        assert bought(ask_many(server, tmp_path, TEXTS[30:40], since=begin, **given)) < 7


def test_a_server_that_counts_more_tokens_than_expected_is_reckoned_with(tmp_path: Path) -> None:
    texts = [f"{n:03} " + "x" * 4000 for n in range(20)]
    with ModelServer() as server:
        results = ask_many(
            server, tmp_path, texts, max_tokens=10_000, max_output_tokens=25, concurrency=1
        )
    assert bought(results) == 9
    assert server.prompt_tokens + server.completion_tokens <= 10_000


def test_a_budget_can_be_used_up_to_its_last_token_and_cent() -> None:
    async def use_up(budget: Budget, amount: BudgetAmount) -> None:
        budget.settle(await budget.reserve(amount), amount)
        with pytest.raises(BudgetExceededError):
            await budget.reserve(BudgetAmount(1, 0.01))

    asyncio.run(use_up(Budget(100, None), BudgetAmount(100, 0.0)))
    asyncio.run(use_up(Budget(None, 0.3), BudgetAmount(0, 0.1 + 0.2)))


def test_a_call_waits_for_the_one_under_way_which_may_take_less_than_reserved() -> None:
    async def wait(budget: Budget) -> None:
        first = await budget.reserve(BudgetAmount(80))
        second = asyncio.ensure_future(budget.reserve(BudgetAmount(80)))
        await asyncio.sleep(0)
        assert not second.done()
        budget.settle(first, BudgetAmount(20))
        budget.settle(await second, BudgetAmount(80))
        assert budget.spent == BudgetAmount(100)

    asyncio.run(wait(Budget(100, None)))


def test_what_was_spent_up_to_a_position_is_not_spent_after_it(tmp_path: Path) -> None:
    with ModelServer() as server:
        ask(server, tmp_path, "first")
        begin = last_position(tmp_path)
        ask(server, tmp_path, "second, and " * 10)
    calls = paid(tmp_path)
    first, second = calls["prompt_tokens"] + calls["completion_tokens"]
    with reading(tmp_path) as tables:
        assert tables is not None
        assert spent_since(tables, begin).tokens == second
        assert spent_since(tables, 0).tokens == first + second


def test_cached_answers_need_no_budget(tmp_path: Path) -> None:
    with ModelServer() as server:
        ask_many(server, tmp_path, TEXTS)
        assert bought(ask_many(server, tmp_path, TEXTS, max_tokens=0)) == 100
        with pytest.raises(BudgetExceededError, match="max_tokens 0"):
            ask(server, tmp_path, "new", max_tokens=0)


def test_answers_that_a_resumed_run_had_from_the_cache_leave_its_budget_whole(
    tmp_path: Path,
) -> None:
    with ModelServer() as server:
        ask_many(server, tmp_path, TEXTS)
        begin = last_position(tmp_path)
        ask_many(server, tmp_path, TEXTS, since=begin)
        most = {"since": begin, "max_tokens": 500, "max_output_tokens": 25}
        assert isinstance(ask(server, tmp_path, "new", **most), Completion)


def test_answers_that_failed_but_were_billed_count(tmp_path: Path) -> None:
    async def use(client) -> int:
        with pytest.raises(BudgetExceededError):
            await client.complete([{"role": "user", "content": "x" * 400}], stage="t")
        return client.spent.tokens

    with ModelServer(faults=lambda request: empty_answer()) as server:
        spent = with_client(server, tmp_path, use, max_tokens=120, max_output_tokens=10)
    assert spent == server.prompt_tokens == 100


def elsewhere(**given: Any) -> LlmOptions:
    return LlmOptions("https://models.example/v1", "sk-test", model="unknown-model", **given)


def test_a_money_limit_needs_a_price(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="price for unknown-model"):
        ModelClient(elsewhere(max_cost=1.0), tmp_path)
    assert not ModelClient(elsewhere(), tmp_path).has_price("unknown-model")


def test_a_model_on_ones_own_machine_costs_nothing_unless_it_has_a_price(tmp_path: Path) -> None:
    with ModelServer() as server:
        answer = ask(server, tmp_path, model="unknown-model", max_cost=1.0)
        priced = ask(server, tmp_path, model="gpt-4o")
    assert (answer.cost, answer.prompt_tokens) == (0.0, 2)
    assert priced.cost


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("localhost:11434", True), ("192.168.1.7", True), ("[::1]:80", True), ("ollama", True),
        ("gpu.local", True), ("api.openai.com", False), ("8.8.8.8", False),
    ],
)  # fmt: skip
def test_what_is_ones_own_machine(host: str, private: bool) -> None:
    assert LlmOptions(f"http://{host}/v1").is_private == private


def test_a_users_prices_override_the_shipped_ones(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('date = "2030-01-01"\n[models."mine"]\ninput = 1\noutput = 2.0\n')
    prices = load_prices(file)
    assert prices.date == "2030-01-01"
    assert prices.cost("mine", 1_000_000, 500_000) == 2.0
    assert prices.of("gpt-4.1") == load_prices().of("gpt-4.1-2025-04-14")


def test_tokens_from_the_providers_own_cache_cost_less() -> None:
    prices = load_prices()
    full, half = (prices.cost("gpt-4.1", 1000, 0, cached) for cached in (0, 500))
    assert full is not None
    assert half is not None
    assert half < full


@pytest.mark.parametrize("text", ["models = 3", '[models."m"]\ninput = "free"', "not toml"])
def test_a_file_without_prices_says_what_to_write(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match="dollars per million"):
        load_prices(file)


def test_the_run_ends_at_once_when_nothing_is_left(tmp_path: Path) -> None:
    began = time.process_time()
    with ModelServer() as server:
        ask_many(server, tmp_path, [f"q{n}" for n in range(1000)], max_tokens=0)
        assert not server.requests
    assert time.process_time() - began < 5
