"""The plan: what the next run would do and cost, told before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model_server import ModelServer
from test_llm_pipeline import FILES, build, engine_for, mind, update
from typer.testing import CliRunner

from graphrag_pipeline.cli import app
from graphrag_pipeline.planning import plan_run

LONG = {f"{n}.txt": f"Alice Smith met Bob Jones on day {n}. " * 200 for n in range(6)}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documents and, in the environment, the settings for them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHRAG_PROFILE", "llm")
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / ".graphrag"))
    monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", "http://127.0.0.1:9/v1")
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, text in LONG.items():
        (folder / name).write_text(text)
    return tmp_path


def test_a_plan_counts_what_is_new_and_writes_and_asks_nothing(tmp_path: Path) -> None:
    with ModelServer(mind) as server:
        engine = engine_for(server, tmp_path)
        engine.write({**LONG, "broken.pdf": b"%PDF-1.4 broken"})
        plan = plan_run(engine.settings, engine.inbox)
        assert server.requests == []
    assert list(engine.log.home.glob("**/*")) == []
    assert plan.changes == {"add": 7, "change": 0, "remove": 0}
    assert (plan.documents, plan.unreadable) == (6, 1)
    assert plan.chunks == plan.to_extract > 6
    assert [stage.stage for stage in plan.stages] == [
        "extractions", "summaries", "community_reports", "embeddings",
    ]  # fmt: skip
    assert plan.cost is not None
    assert plan.cost > 0
    assert plan.assumptions


def test_after_a_run_only_what_changed_is_planned(tmp_path: Path) -> None:
    with ModelServer(mind) as server:
        engine = build(server, tmp_path, whole=False)
        plan = plan_run(engine.settings, engine.inbox)
        assert (plan.calls, plan.chunks, sum(plan.changes.values())) == (0, 0, 0)
        engine.write({"a.txt": "Alice Smith left.", "b.txt": None, "d.txt": "Hugo White came."})
        plan = plan_run(engine.settings, engine.inbox)
        assert plan.changes == {"add": 1, "change": 1, "remove": 1}
        assert plan.to_extract == 2
        server.forget()
        update(engine, whole=False)
    extraction = plan.stages[0]
    asked = sum(request.endpoint == "chat/completions" for request in server.requests)
    assert 0 < asked <= 2 * (extraction.calls + plan.stages[2].calls + 1)


def test_a_changed_prompt_plans_every_chunk_again(tmp_path: Path) -> None:
    with ModelServer(mind) as server:
        build(server, tmp_path, whole=False)
        other = engine_for(server, tmp_path, extraction={"entity_types": ("ship",)})
    assert plan_run(other.settings, other.inbox).to_extract == len(FILES)


def test_a_model_without_a_price_is_planned_in_tokens_and_that_is_said(tmp_path: Path) -> None:
    with ModelServer(mind) as server:
        engine = engine_for(server, tmp_path, llm={"model": "my-own"})
        engine.write(LONG)
        plan = plan_run(engine.settings, engine.inbox)
    assert plan.cost is None
    assert plan.tokens > 0
    assert any("my-own is not known: tokens only" in said for said in plan.assumptions)


def test_the_extraction_estimate_is_near_what_the_run_takes(tmp_path: Path) -> None:
    with ModelServer(mind) as server:
        engine = engine_for(server, tmp_path)
        engine.write(LONG)
        expected = plan_run(engine.settings, engine.inbox).stages[0]
        engine.index()
        asked = server.prompt_tokens
    assert asked / 3 < expected.prompt_tokens < asked * 3


def test_the_embedded_profile_plans_no_call(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRAG_PROFILE", "embedded")
    done = CliRunner().invoke(app, ["plan"])
    assert done.exit_code == 0, done.output
    assert "6 files added" in done.output
    assert "No model call would be made" in done.output


def test_the_command_prints_stages_total_and_assumptions_and_json(home: Path) -> None:
    text = CliRunner().invoke(app, ["plan", "documents"])
    assert text.exit_code == 0, text.output
    for part in ("6 files added", "extractions", "embeddings", "$", "Assumed:"):
        assert part in text.output
    values = json.loads(CliRunner().invoke(app, ["plan", "--json"]).stdout)
    assert values["calls"] == sum(stage["calls"] for stage in values["stages"])
    assert not (home / ".graphrag").exists()


def test_without_a_terminal_what_costs_more_than_allowed_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", "0.0001")
    refused = CliRunner().invoke(app, ["index"])
    assert refused.exit_code == 2
    assert len([line for line in refused.stderr.splitlines() if line.startswith("error: ")]) == 1
    assert "--yes" in refused.stderr
    assert not (home / ".graphrag" / "batches").exists()


def test_what_costs_little_or_is_allowed_starts_and_status_says_what_was_spent(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    with ModelServer(mind) as server:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
        monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", "0.0001")
        done = CliRunner().invoke(app, ["index", "--yes"])
        assert done.exit_code == 0, done.output
        again = CliRunner().invoke(app, ["index"])
        assert again.exit_code == 0, again.output
        tokens = server.prompt_tokens + server.completion_tokens
    told = json.loads(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert sum(row["tokens"] for row in told["model_calls"]) == tokens
    assert (told["failed_chunks"], told["failed_reports"]) == (0, 0)
    assert "extractions" in CliRunner().invoke(app, ["status"]).output
