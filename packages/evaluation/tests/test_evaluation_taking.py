"""What an answer took is the same whoever bought its calls, and a query says what was paid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from graphrag_evaluation.answer_costs import counting
from graphrag_evaluation.evaluating import run_experiment
from graphrag_evaluation.experiment import experiment_of
from graphrag_evaluation.store import EvaluationStore
from query_fixture import publish
from strict_server import StrictServer

from benchmarks.played_answers import played_answer
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.configured import ModelEmbedder, all_prices
from graphrag_pipeline.llm.ledger import Call
from graphrag_pipeline.llm.prices import Price, Prices
from graphrag_pipeline.query import QueryEngine

QUESTION = "Who was the clerk of Scrooge?"


def says(messages: list[dict[str, str]]) -> str:
    if '"passages"' in str(messages):
        return json.dumps({"passages": [2, 1]})
    return played_answer(messages)


def settings_at(home: Path, server: StrictServer) -> Settings:
    return Settings.model_validate(
        {
            "home": str(home),
            "llm": {"base_url": server.base_url, "max_retries": 0},
            "query": {"answers": "llm", "reranker": "llm", "cache": True},
        }
    )


def answers_in(home: Path) -> list[dict[str, Any]]:
    with EvaluationStore(home).read() as con:
        return con.execute(
            "SELECT * EXCLUDE (retrieve_ms, total_ms, answered_at) FROM answers ORDER BY ALL"
        ).pl().to_dicts()  # fmt: skip


def test_a_run_that_ended_before_its_answers_were_kept_keeps_what_they_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    home = publish(tmp_path / "home")
    file = tmp_path / "asked.jsonl"
    file.write_text("\n".join(json.dumps({"question": q}) for q in (QUESTION, "Who is Curie?")))
    experiment = experiment_of("taken", str(file), ["basic", "global:mode=map_reduce"])
    with StrictServer(says) as server:
        settings = settings_at(home, server)
        assert run_experiment(settings, experiment).answered.failed == {}
        first, n_requests = answers_in(home), len(server.requests)
        # What is left of an answer that a model gave and nobody kept: the cache has it.
        with EvaluationStore(home).transaction() as con:
            con.execute("DELETE FROM answers")
        assert run_experiment(settings, experiment).answered.made == len(first) == 4
        assert (answers_in(home), len(server.requests)) == (first, n_requests)
        assert all(row["model_calls"] > 0 and row["cost"] > 0 for row in first)
        assert sum(row["model_calls"] for row in first) == n_requests
        with QueryEngine(home, settings=settings) as engine:
            answer = engine.answer(QUESTION, "basic")
        assert (answer.model_calls, answer.prompt_tokens, answer.cost) == (0, 0, 0.0)
        assert answer.cached_calls > 1


def test_vectors_took_what_they_took_when_they_were_bought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with StrictServer(played_answer) as server:
        settings = settings_at(tmp_path, server)
        embedder = ModelEmbedder(settings)
        took = []
        for _ in range(2):
            with counting(all_prices(settings)) as taken:
                embedder.embed([QUESTION, "Where was Curie born?"])
            took.append(taken.columns())
        assert len(server.requests) == 1
    assert took[0]["prompt_tokens"] > 8
    assert took[0]["cost"] > 0
    assert took[0] == took[1]


def test_a_call_without_a_price_leaves_no_cost_and_one_that_failed_counts_for_nothing() -> None:
    prices = Prices("", {"known": Price(1.0, 2.0)})
    with counting(prices) as taken:
        taken.count(Call("query", "known", prompt_tokens=10, completion_tokens=5, cached=True))
        taken.count(Call("query", "known", prompt_tokens=99, error="no connection"))
        taken.count(Call("reranking", "local", cached=True))
    assert taken.columns() == {
        "model_calls": 2, "prompt_tokens": 10, "completion_tokens": 5, "search_tokens": 15,
        "cost": 20e-6,
    }  # fmt: skip
    taken.count(Call("query", "unknown", prompt_tokens=1, cached=True))
    assert taken.columns()["cost"] is None


def test_the_search_takes_what_is_asked_before_the_answer_but_for_vectors() -> None:
    with counting(Prices("", {})) as taken:
        taken.count(Call("query", "chat", prompt_tokens=300, completion_tokens=50))
        taken.count(Call("query", "vectors", prompt_tokens=7))
        taken.count(Call("query", "chat", prompt_tokens=9000, completion_tokens=400, cached=True))
    assert taken.columns(is_written=True)["search_tokens"] == 350
    assert taken.columns()["search_tokens"] == 9750
