"""The plan: what the next run would do and cost, told before anything is spent."""

from __future__ import annotations

import importlib
import json
import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from commands import ForkedPython
from index_process import by_model, update, update_tables
from llm_helpers import document_in, stage_of
from model_server import Fault, Messages, ModelServer, Request, unauthorized
from test_llm_pipeline import FILES, mind
from typer.testing import CliRunner

from conftest import Engine
from graphrag_pipeline import Index
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.cli.plan import show_plan
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.prompting import PROMPTS
from graphrag_pipeline.core.settings import EmbeddingSettings, Settings
from graphrag_pipeline.llm import ModelError
from graphrag_pipeline.llm.estimates import Chunks, Growth, Texts
from graphrag_pipeline.pipeline.updating import check_key
from graphrag_pipeline.planning.estimates import estimate
from graphrag_pipeline.planning.learned import learn_effect
from graphrag_pipeline.planning.outdated import look_at_index
from graphrag_pipeline.planning.plan import Plan, plan_run

EXAMPLES = Path(__file__).parents[1] / "examples" / "corpus"
LONG = {f"{n}.txt": f"Alice Smith met Bob Jones on day {n}. " * 200 for n in range(6)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModelServer, Path]]:
    """A server, and the folder of an index that was built with it."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch, ModelServer(mind) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        build(server, folder)
        yield server, folder


@pytest.fixture
def known(built: tuple[ModelServer, Path], tmp_path: Path) -> ModelServer:
    """The server that the index in this test's folder was built with."""
    server, folder = built
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    server.forget()
    return server


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def build(server: ModelServer, folder: Path, **given: Any) -> Engine:
    """An index of FILES, built and published."""
    engine = by_model(folder, server.base_url, **given)
    engine.write(FILES)
    update(engine)
    return engine


def calls(plan: Plan) -> dict[str, tuple[int, int]]:
    """The calls of each stage that are to be paid for, and those in the cache."""
    return {stage.stage: (stage.calls, stage.cached) for stage in plan.stages}


def status() -> dict[str, Any]:
    result = CliRunner().invoke(app, ["status", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


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


def test_a_plan_counts_what_is_new_and_writes_and_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ModelServer(mind) as server:
        engine = by_model(tmp_path, server.base_url)
        engine.write({**LONG, "broken.pdf": b"%PDF-1.4 broken", "photo.xyz": b"x"})
        plan = plan_run(engine.workspace, engine.inbox)
        assert server.requests == []
    assert list(engine.log.home.glob("**/*")) == []
    assert plan.changes == {"add": 8, "change": 0, "remove": 0, "rename": 0}
    assert (plan.documents, plan.unreadable) == (6, 2)
    show_plan(plan)
    assert capsys.readouterr().out.splitlines()[1:5] == [
        "1 file could not be read:",
        "  documents/broken.pdf: the PDF is damaged, or it is not a PDF",
        "1 file of other kinds, not read: .xyz 1",
        "documents  6 to read",
    ]
    assert plan.chunks == plan.to_extract > 6
    assert [stage.stage for stage in plan.stages] == [
        "extractions", "summaries", "community_reports", "embeddings",
    ]  # fmt: skip
    assert plan.cost is not None
    assert plan.cost > 0
    assert plan.assumptions


def test_after_a_run_only_what_changed_is_planned(known: ModelServer, tmp_path: Path) -> None:
    engine = by_model(tmp_path, known.base_url)
    plan = plan_run(engine.workspace, engine.inbox)
    assert (plan.calls, plan.chunks, sum(plan.changes.values())) == (0, 0, 0)
    engine.write({"a.txt": "Alice Smith left.", "b.txt": None, "d.txt": "Hugo White came."})
    plan = plan_run(engine.workspace, engine.inbox)
    assert plan.changes == {"add": 1, "change": 1, "remove": 1, "rename": 0}
    assert plan.to_extract == 2
    update_tables(engine)
    extraction = plan.stages[0]
    asked = sum(request.endpoint == "chat/completions" for request in known.requests)
    assert 0 < asked <= 2 * (extraction.calls + plan.stages[2].calls + 1)


def test_a_changed_prompt_plans_every_chunk_again_and_says_why(
    known: ModelServer, tmp_path: Path
) -> None:
    other = by_model(tmp_path, known.base_url, extraction={"entity_types": ("ship",)})
    plan = plan_run(other.workspace, other.inbox)
    assert plan.to_extract == len(FILES)
    assert f"{len(FILES)} chunks were extracted before, by other prompts" in plan.assumptions[0]


def test_the_wording_of_before_in_a_folder_of_ones_own_is_not_paid_again(
    known: ModelServer, tmp_path: Path
) -> None:
    shipped = (PROMPTS / "extract_graph.txt").read_text()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "extract_graph.txt").write_text(f"{shipped}\n")
    own = {"base_url": known.base_url, "prompts": str(tmp_path / "own")}
    same = by_model(tmp_path, known.base_url, llm=own)
    assert plan_run(same.workspace, same.inbox).calls == 0
    reworded = shipped.replace("You read a text", "Read the text")
    (tmp_path / "own" / "extract_graph.txt").write_text(reworded)
    plan = plan_run(same.workspace, same.inbox)
    assert plan.to_extract == len(FILES)
    assert calls(plan)["extractions"][0] >= len(FILES)
    assert calls(plan)["extractions"][1] == 0
    update(same)
    before = by_model(tmp_path, known.base_url)
    plan = plan_run(before.workspace, before.inbox)
    assert plan.to_extract == len(FILES)
    assert calls(plan)["extractions"][0] == 0


def test_a_model_without_a_price_is_planned_in_tokens_and_that_is_said(tmp_path: Path) -> None:
    engine = by_model(tmp_path, "https://models.example/v1", llm={"model": "my-own"})
    engine.write(LONG)
    plan = plan_run(engine.workspace, engine.inbox)
    assert plan.cost is None
    assert any("calls go to https://models.example/v1" in said for said in plan.assumptions)
    limited = by_model(
        tmp_path, "https://models.example/v1", llm={"model": "my-own", "max_cost": 1.0}
    )
    with pytest.raises(ConfigError, match="max_cost needs a price for my-own"):
        plan_run(limited.workspace, limited.inbox)
    assert plan.tokens > 0
    assert any("my-own is not known: tokens only" in said for said in plan.assumptions)


def test_the_extraction_estimate_is_near_what_the_run_takes(tmp_path: Path) -> None:
    with ModelServer(mind) as server:
        engine = by_model(tmp_path, server.base_url)
        engine.write(LONG)
        expected = plan_run(engine.workspace, engine.inbox).stages[0]
        engine.index()
        asked = server.prompt_tokens
    assert asked / 3 < expected.prompt_tokens < asked * 3


def test_the_embedded_profile_plans_no_call(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHRAG_PROFILE", "embedded")
    done = CliRunner().invoke(app, ["plan"])
    assert done.exit_code == 0, done.output
    assert "6 files added" in done.output
    assert "No model would be called" in done.output


def test_a_changed_file_is_planned_where_rules_extract(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nAnna Berg owns the mill at Ferrow.")
    index = Index(tmp_path / "home")
    index.update(folder)
    (folder / "a.md").write_text("# a\n\nAnna Berg sold the mill at Ferrow, see [b](b.md).")
    plan = index.plan(folder)
    assert plan.changes["change"] == 1
    assert sum(stage.calls for stage in plan.stages) == 0


def test_the_command_prints_stages_total_and_assumptions_and_json(home: Path) -> None:
    text = CliRunner().invoke(app, ["plan", "documents"])
    assert text.exit_code == 0, text.output
    shown = ("6 files added", "extractions", "community_reports", "text-embedding-3-small", "$")
    for part in (*shown, "Assumed:"):
        assert part in text.output
    assert "more than llm.max_cost" not in text.output
    values = json.loads(CliRunner().invoke(app, ["plan", "--json"]).stdout)
    assert values["calls"] == sum(stage["calls"] for stage in values["stages"])
    assert not (home / ".graphrag").exists()


def test_a_budget_that_will_not_do_is_told_before_the_run(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_LLM__MAX_TOKENS", "100")
    assert "more than llm.max_cost or llm.max_tokens" in CliRunner().invoke(app, ["plan"]).output


def test_without_a_terminal_what_costs_more_than_allowed_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", "0.0001")
    refused = CliRunner().invoke(app, ["index"])
    assert refused.exit_code == 2
    assert len([line for line in refused.stderr.splitlines() if line.startswith("error: ")]) == 1
    assert "--yes" in refused.stderr
    assert not (home / ".graphrag" / "batches").exists()


def test_what_the_cache_holds_is_counted_apart_and_costs_nothing(
    known: ModelServer, tmp_path: Path
) -> None:
    engine = by_model(tmp_path, known.base_url)
    shutil.rmtree(tmp_path / ".graphrag" / "vectors")
    (tmp_path / ".graphrag" / "index.duckdb").unlink()
    plan = plan_run(engine.workspace, engine.inbox)
    assert plan.to_extract == len(FILES)
    extraction = next(stage for stage in plan.stages if stage.stage == "extractions")
    assert (extraction.calls, extraction.cached, extraction.cost) == (0, 2 * len(FILES), 0.0)


def test_a_talk_that_broke_off_is_planned_from_where_it_broke_off(tmp_path: Path) -> None:
    def break_off(request: Request) -> Fault | None:
        is_check = request.endpoint != "embeddings" and stage_of(request.messages) == "check"
        return unauthorized() if is_check else None

    with ModelServer(mind, faults=break_off) as server:
        engine = by_model(tmp_path, server.base_url)
        engine.write(FILES)
        whole = plan_run(engine.workspace, engine.inbox).stages[0]
        with pytest.raises(ModelError):
            update_tables(engine)
        rest = plan_run(engine.workspace, engine.inbox).stages[0]
    assert 0 < rest.cached <= len(FILES)
    assert whole.calls - rest.calls == rest.cached
    assert 0 < rest.prompt_tokens < whole.prompt_tokens


@pytest.mark.parametrize(
    ("changed", "stages"),
    [
        ({}, set()),
        ({"reports": {"max_words": 900}}, {"community_reports", "embeddings"}),
        ({"reports": {"writer": "extractive"}}, {"embeddings"}),
        ({"llm": {"embedding_model": "text-embedding-3-large"}}, {"embeddings"}),
        ({"graph": {"max_description_tokens": 5}},
         {"summaries", "community_reports", "embeddings"}),
        ({"communities": {"max_cluster_size": 2}}, {"community_reports", "embeddings"}),
    ],
)  # fmt: skip
def test_changed_settings_alone_plan_what_they_change(
    known: ModelServer, tmp_path: Path, changed: dict[str, Any], stages: set[str]
) -> None:
    changed = {**changed, "llm": {"base_url": known.base_url, **changed.get("llm", {})}}
    other = by_model(tmp_path, known.base_url, **changed)
    (reports,) = other.rows("SELECT count(*) FROM communities WHERE size >= 2")[0]
    plan = plan_run(other.workspace, other.inbox)
    assert set(calls(plan)) == stages
    assert not any(plan.changes.values())
    update(other)
    asked = [stage_of(request.messages) for request in known.asked()]
    if "communities" in changed or "summaries" in stages:
        return
    assert asked.count("report") == calls(plan).get("community_reports", (0, 0))[0]
    assert asked.count("report") in (0, reports)


def test_removed_files_alone_plan_the_reports_on_what_they_named(
    known: ModelServer, tmp_path: Path
) -> None:
    engine = by_model(tmp_path, known.base_url)
    engine.write({"b.txt": None})
    plan = plan_run(engine.workspace, engine.inbox)
    (reports,) = engine.rows("SELECT count(*) FROM communities WHERE size >= 2")[0]
    assert plan.changes == {"add": 0, "change": 0, "remove": 1, "rename": 0}
    assert plan.to_extract == 0
    assert 0 < calls(plan)["community_reports"][0] <= reports
    assert "summaries" not in calls(plan)
    assert any(said.startswith("1 chunk goes or changes") for said in plan.assumptions)


def test_chunks_that_failed_are_planned_again_and_counted(tmp_path: Path) -> None:
    def unreadable(messages: Messages) -> str:
        about_a_quarry = stage_of(messages) == "extract" and "quarry" in document_in(messages)
        return "I do not know." if about_a_quarry else mind(messages)

    with ModelServer(unreadable) as server:
        engine = build(server, tmp_path)
        plan = plan_run(engine.workspace, engine.inbox)
    assert (plan.to_extract, plan.to_retry) == (1, 1)
    # The answer that could not be read was not kept.
    assert calls(plan)["extractions"][1] == 0
    assert calls(plan)["extractions"][0] >= 2


def test_the_estimate_of_a_first_build_is_within_twice_what_it_takes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.syspath_prepend(EXAMPLES.parents[1] / "benchmarks")
    played_answer = importlib.import_module("played_answers").played_answer

    with ModelServer(played_answer) as server:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
        (home / "corpus").mkdir()
        for path in sorted(path for path in EXAMPLES.rglob("*") if path.is_file())[::2]:
            shutil.copy(path, home / "corpus")
        done = CliRunner().invoke(app, ["index", "corpus", "--yes"])
        assert done.exit_code == 0, done.output
        asked, tokens = len(server.requests), server.prompt_tokens + server.completion_tokens
    told = status()["estimate"]
    expected, actual = told["total"]["estimated"], told["total"]["actual"]
    assert (actual["calls"], actual["tokens"]) == (asked, tokens)
    for name in ("calls", "tokens", "cost"):
        assert actual[name] / 2 < expected[name] < actual[name] * 2, name
    said = f"estimated  {expected['calls']} calls, {expected['tokens']:,} tokens, "
    assert said in done.output
    assert f"; took {actual['calls']} calls" in CliRunner().invoke(app, ["status"]).output


@pytest.fixture
def small(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A server, and in the documents' folder no more than FILES."""
    shutil.rmtree(home / "documents")
    (home / "documents").mkdir()
    for name, text in FILES.items():
        (home / "documents" / name).write_text(text)
    with ModelServer(mind) as server:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
        yield server


def test_what_costs_little_or_is_allowed_starts_and_status_says_what_was_spent(
    small: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", "0.0001")
    done = CliRunner().invoke(app, ["index", "--yes"])
    assert done.exit_code == 0, done.output
    tokens = small.prompt_tokens + small.completion_tokens
    small.forget()
    again = CliRunner().invoke(app, ["index"])
    assert again.exit_code == 0, again.output
    assert "No file was added, changed or removed" in again.output
    assert small.requests == []
    told = status()
    assert sum(row["tokens"] for row in told["model_calls"]) == tokens > 0
    assert (told["failed_chunks"], told["failed_reports"]) == (0, 0)
    assert "extractions" in CliRunner().invoke(app, ["status"]).output
    assert "There is nothing to do." in CliRunner().invoke(app, ["plan"]).output
    assert json.loads(CliRunner().invoke(app, ["plan", "--json"]).stdout)["is_due"] is False


def on_a_terminal(said: str) -> tuple[int, str]:
    """Run `index` where somebody types an answer; return its exit code and what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    command = ["-m", "graphrag_pipeline.cli", "index"]
    ours, theirs = pty.openpty()
    with (
        os.fdopen(ours, "w") as terminal,
        ForkedPython(
            command, env=environment, text=True, stdin=theirs, stderr=subprocess.PIPE
        ) as run,
    ):
        os.close(theirs)
        terminal.write(f"{said}\n")
        terminal.flush()
        _, printed = run.communicate(timeout=300)
    return run.returncode, printed


def test_on_a_terminal_who_says_no_spends_nothing(
    small: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", "0.0001")
    code, err = on_a_terminal("n")
    assert code == 2, err
    assert "Go on?" in err
    assert "nothing was spent" in err
    assert "error:" not in err
    assert small.requests == []


def test_who_says_yes_starts_a_run_that_goes_on_after_its_budget_against_the_same_estimate(
    small: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", "0.0001")
    monkeypatch.setenv("GRAPHRAG_LLM__MAX_TOKENS", "8000")
    code, err = on_a_terminal("y")
    assert code == 7, err
    assert "Go on?" in err
    assert "nothing was spent" not in err
    assert "budget reached" in err
    first = status()["estimate"]
    assert not first["finished"]
    assert 0 < first["total"]["actual"]["tokens"] <= 8000
    assert "took until now" in CliRunner().invoke(app, ["status"]).output

    monkeypatch.setenv("GRAPHRAG_LLM__MAX_TOKENS", "0")
    monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", "5")
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    done = CliRunner().invoke(app, ["index"])
    assert done.exit_code == 0, done.output
    last = status()["estimate"]
    assert last["finished"]
    assert last["total"]["estimated"] == first["total"]["estimated"]
    assert last["total"]["actual"]["tokens"] == small.prompt_tokens + small.completion_tokens


def test_runs_without_a_plan_have_no_estimate_and_that_is_said(
    home: Path, known: ModelServer
) -> None:
    assert status()["estimate"] is None
    assert "estimate   none" in CliRunner().invoke(app, ["status"]).output


def test_without_a_key_a_first_index_says_so_before_it_reads(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", "")
    monkeypatch.setattr("graphrag_pipeline.planning.plan.plan_run", None)
    done = CliRunner().invoke(app, ["index"])
    assert isinstance(done.exception, ConfigError) or done.exit_code == 2, done.output
    assert "no key for the model" in done.output + str(done.exception)
    assert not (home / ".graphrag").exists()


def test_without_a_key_more_documents_say_so_before_they_are_read_and_none_are_no_matter(
    known: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    engine = by_model(tmp_path, "")
    index = Index(engine.settings)
    check_key(index, engine.inbox)
    engine.write({"d.txt": "Hugo White met Alice Smith."})
    before = engine.log.batches()
    with pytest.raises(ConfigError, match="no key for the model"):
        index.update(engine.inbox)
    assert engine.log.batches() == before
    engine.cut()
    engine.write({"d.txt": None})
    with pytest.raises(ConfigError, match="no key for the model"):
        index.update(engine.inbox)


def test_what_is_staged_and_failed_does_not_count_for_what_the_graph_will_take_in(
    tmp_path: Path,
) -> None:
    def unreadable(messages: Messages) -> str:
        about_a_quarry = stage_of(messages) == "extract" and "quarry" in document_in(messages)
        return "I do not know." if about_a_quarry else mind(messages)

    with ModelServer(unreadable) as server:
        engine = by_model(tmp_path, server.base_url)
        engine.write(FILES)
        for batch in engine.cut():
            engine.ingest(batch.key)
    nothing = pl.DataFrame(schema={"id": pl.String, "n_tokens": pl.Int64, "text": pl.String})
    with engine.store.read() as con:
        index = look_at_index(con, engine.settings, (), nothing, nothing, recluster=False)
    assert index.staged.number == len(FILES) - 1


def test_a_chunk_whose_extraction_failed_is_planned_again(
    known: ModelServer, tmp_path: Path
) -> None:
    engine = by_model(tmp_path, known.base_url)
    with engine.store.transaction() as con:
        con.execute("UPDATE extractions SET status = 'failed' WHERE chunk_id = "
                    "(SELECT min(chunk_id) FROM extractions)")  # fmt: skip
    plan = plan_run(engine.workspace, engine.inbox)
    assert (plan.to_extract, plan.to_retry) == (1, 1)


def test_calls_that_the_cache_answered_and_those_that_failed_teach_a_plan_nothing(
    known: ModelServer, tmp_path: Path
) -> None:
    engine = by_model(tmp_path, known.base_url)
    engine.write({"d.txt": "Hugo White met Alice Smith. " * 50})
    before = plan_run(engine.workspace, engine.inbox)
    with engine.store.transaction() as con:
        for cached, error in ((True, None), (False, "timed out")):
            con.execute(
                "INSERT INTO llm_calls SELECT * REPLACE ($cached AS cached, $error AS error, "
                "9e6 AS prompt_tokens, 9e6 AS completion_tokens) FROM llm_calls",
                {"cached": cached, "error": error},
            )
    assert plan_run(engine.workspace, engine.inbox).tokens == before.tokens


def test_chunks_of_which_each_changes_the_same_are_foreseen_to_change_it(
    known: ModelServer, tmp_path: Path
) -> None:
    engine = by_model(tmp_path, known.base_url)
    with engine.store.transaction() as con:
        for table in ("chunks", "extractions", "entity_chunks", "report_elements"):
            con.execute(f"DELETE FROM {table}")
        con.execute(
            "INSERT INTO chunks SELECT 'c' || i, 9 + i, 'd' || i // 2, i % 2, 0, 9, 600, '', 'b' "
            "FROM range(40) t(i)"
        )
        con.execute(
            "INSERT INTO extractions BY NAME SELECT 'c' || i AS chunk_id, 'llm' AS extractor, "
            "'v' AS version, 'ok' AS status, 0 AS n_entities, 0 AS n_relationships, "
            "0 AS prompt_tokens, 0 AS completion_tokens, 'b' AS batch FROM range(40) t(i)"
        )
        con.execute(
            "INSERT INTO entity_chunks BY NAME SELECT (SELECT min(id) FROM entities) AS entity_id, "
            "'c' || i AS chunk_id, 1 AS n_mentions FROM range(40) t(i)"
        )
        con.execute(
            "INSERT INTO report_elements SELECT min(community_id), 0, 'entity', "
            "(SELECT min(id) FROM entities), 40, 'h', 4 FROM community_reports"
        )
    with engine.store.read() as con:
        effects = [
            learn_effect(con, engine.settings, Chunks(number, 600 * number)) for number in (1, 2, 4)
        ]
    assert [round(effect.reports.number, 6) for effect in effects if effect] == [1, 1, 1]
    assert all(effect and effect.few == effect.many for effect in effects)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"resolution": {"aliases_file": "nowhere.csv"}}, "nowhere.csv': there is no such file"),
        ({"llm": {"prompts": "nowhere"}}, "nowhere': there is no such folder"),
    ],
)
def test_a_plan_refuses_what_the_run_would_refuse(
    known: ModelServer, tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    engine = by_model(tmp_path, known.base_url, **given)
    with pytest.raises(ConfigError, match=message):
        plan_run(engine.workspace, engine.inbox)


def test_a_plan_says_what_the_other_lane_and_the_cache_of_the_provider_would_take(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned() -> tuple[dict[str, Any], str]:
        values = json.loads(CliRunner().invoke(app, ["plan", "--json"]).stdout)
        return values, CliRunner().invoke(app, ["plan"]).output

    direct, text = planned()
    assert "in batches" in text
    assert "by caches" in text
    chat = sum(s["cost"] for s in direct["stages"] if s["stage"] != "embeddings")
    assert direct["batch_cost"] == pytest.approx(direct["cost"] - chat / 2)
    assert direct["rounds"] >= 4
    extraction = direct["stages"][0]
    assert 0.3 * extraction["prompt_tokens"] < direct["repeated_tokens"]
    assert direct["repeated_tokens"] < extraction["prompt_tokens"]
    saved = direct["repeated_tokens"] * (0.4 - 0.1) / 1e6
    assert direct["cached_cost"] == pytest.approx(direct["cost"] - saved)

    monkeypatch.setenv("GRAPHRAG_LLM__LANE", "batch")
    batched, text = planned()
    assert "directly" in text
    assert batched["cost"] == direct["batch_cost"]
    assert batched["direct_cost"] == direct["cost"]


@pytest.mark.parametrize(
    ("texts", "requests"), [(Texts(1000, 20_000), 4), (Texts(10, 1_000_000), 3), (Texts(1, 1), 1)]
)
def test_texts_are_embedded_in_requests_bounded_by_number_and_by_size(texts, requests):
    settings = Settings(embeddings=EmbeddingSettings(embedder="llm"))
    (embeddings,) = estimate(settings, Growth(texts=[texts]))
    assert (embeddings.stage, embeddings.calls) == ("embeddings", requests)
