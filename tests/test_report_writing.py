"""Reports by a model: what it is asked, and what becomes of the level when one report fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_helpers import Pipeline, failed_checks
from model_server import Messages, ModelServer, Request, unsupported

from conftest import Engine
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.reports.levels import LevelReports, update_reports
from graphrag_pipeline.reports.model_writer import ModelWriter, report_writer
from graphrag_pipeline.reports.parsing import report_schema
from graphrag_pipeline.reports.rendered import Row, fitted

REPORT = {
    "title": "A circle of people",
    "summary": "They meet.",
    "rating": 5,
    "rating_explanation": "They are few.",
    "findings": [{"summary": "They meet.", "explanation": "They meet often."}],
}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def crowd() -> str:
    """Three circles of six people each, joined in a few places: communities on two levels."""
    sentences = []
    for group in ("Smith", "Jones", "Brown"):
        names = [f"{first} {group}" for first in ("Alice", "Bob", "Carol", "Dora", "Emil", "Frank")]
        for i, name in enumerate(names):
            sentences.append(f"{name} met {names[(i + 1) % 6]} and {names[(i + 2) % 6]} in Paris.")
    return " ".join(sentences)


class Mind:
    """Writes the same report on everything, but none on the first community it is asked about."""

    def __init__(self) -> None:
        self.behaves = False
        self.told = ""

    def __call__(self, messages: Messages) -> str:
        context = messages[1]["content"]
        self.told = self.told or context
        fails = context.startswith(self.told) and not self.behaves
        return "PRIVATE no report today" if fails else json.dumps(REPORT)


def test_a_report_that_failed_is_warned_of_its_parent_is_written_and_the_next_run_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mind = Mind()
    with ModelServer(mind) as server, dg.DagsterInstance.ephemeral() as instance:
        given = {
            "REPORTS__WRITER": "llm",
            "LLM__BASE_URL": server.base_url,
            "COMMUNITIES__MAX_CLUSTER_SIZE": "4",
            "COMMUNITIES__LEVELS": "2",
        }
        for name, value in given.items():
            monkeypatch.setenv(f"GRAPHRAG_{name}", value)
        pipeline = Pipeline(tmp_path, monkeypatch)
        pipeline.write({"a.txt": crowd()})
        assert pipeline.ingest(instance, pipeline.cut()).success
        refreshed = pipeline.refresh(instance)

        assert refreshed.success
        assert failed_checks(refreshed) == {"reports/reports_level_1:no_report_failed"}
        (warned,) = [c for c in refreshed.get_asset_check_evaluations() if not c.passed]
        assert warned.severity == dg.AssetCheckSeverity.WARN
        assert warned.description == "1 reports failed; see report_failures"
        ((error, attempts, parent),) = pipeline.rows(
            """SELECT f.error, f.attempts, r.title FROM report_failures f
               JOIN communities c ON c.id = f.community_id
               JOIN community_reports r ON r.community_id = c.parent_id"""
        )
        assert (attempts, parent) == (1, REPORT["title"])
        assert "PRIVATE" not in error
        assert pipeline.release is not None

        mind.behaves = True
        server.forget()
        assert failed_checks(pipeline.refresh(instance)) == set()
        assert server.asked()[0].messages[1]["content"] == mind.told
        assert pipeline.rows("SELECT count(*) FROM report_failures") == [(0,)]


def engine_for(server: ModelServer, folder: Path, **llm: Any) -> Engine:
    given: dict[str, Any] = {
        "home": str(folder / ".graphrag"),
        "reports": {"writer": "llm"},
        "llm": {"base_url": server.base_url, **llm},
    }
    engine = Engine(folder, Settings(**given))
    engine.write({"a.txt": "Alice Smith met Bob Jones in Paris. Alice Smith paid Bob Jones."})
    engine.index()
    engine.cluster()
    return engine


def report(engine: Engine) -> LevelReports:
    given = engine.settings
    return update_reports(
        engine.store, given.reports, 0, and_deeper=True, writer=report_writer(given)
    )


def formats(requests: Sequence[Request]) -> list[str | None]:
    return [request.body.get("response_format", {}).get("type") for request in requests]


def test_reports_are_asked_for_by_schema_as_far_as_the_server_takes_it(tmp_path: Path) -> None:
    def faults(request: Request) -> Any:
        return unsupported("response_format") if "response_format" in request.body else None

    with ModelServer(lambda messages: json.dumps(REPORT), faults=faults) as server:
        engine = engine_for(server, tmp_path)
        assert report(engine).written == 1
        assert formats(server.requests) == ["json_schema", "json_schema", "json_object", None]
        asked = server.requests[0].body["response_format"]["json_schema"]
        assert (asked["schema"], asked["strict"]) == (report_schema(10), True)

        server.forget()
        engine.write({"b.txt": "Alice Smith left Bob Jones in Paris for London."})
        engine.index()
        engine.cluster()
        assert report(engine).written == 1
        assert formats(server.requests) == [None]


def test_another_parameter_that_shapes_answers_writes_reports_again_a_limit_does_not(
    tmp_path: Path,
) -> None:
    with ModelServer(lambda messages: json.dumps(REPORT)) as server:
        assert report(engine_for(server, tmp_path)).written == 1
        limited = {"max_output_tokens": 3000, "retry_seconds": 1.0, "embedding_max_tokens": 99}
        assert report(engine_for(server, tmp_path, **limited)).written == 0
        thinking = {"extra": {"reasoning_effort": "low"}}
        assert report(engine_for(server, tmp_path, **thinking)).written == 1
    assert server.requests[-1].body["reasoning_effort"] == "low"


def test_how_long_a_report_may_be_is_said_before_and_after_the_data(tmp_path: Path) -> None:
    given = {"writer": "llm", "max_words": 321, "written_findings": 4}
    with ModelServer(lambda messages: json.dumps(REPORT)) as server:
        engine = engine_for(server, tmp_path)
        llm = engine.settings.llm
        engine.settings = Settings(home=engine.settings.home, reports=given, llm=llm)
        assert report(engine).written == 1
        system, user = (message["content"] for message in server.requests[0].messages)
    assert "at most 4, the most important first" in system
    assert "at most 321 words" in system
    assert "at most 321 words" in user.rpartition("</context id=")[2]


def test_what_is_written_out_never_exceeds_the_budget() -> None:
    long = 'a long description, with commas and "quotes" ' * 80
    rows: dict[str, list[Row]] = {
        "Reports": [],
        "Entities": [(1, "Alice", "PERSON", long), (2, "Bob", "PERSON", "a baker")],
        "Claims": [(n, "Alice", None, "A", "TRUE", None, None, f"claim {n}") for n in range(30)],
        "Relationships": [(1, "Alice", "Bob", long)],
    }
    for budget in (2000, 1000, 400, 150):
        copy = {name: list(some) for name, some in rows.items()}
        text = fitted(copy, budget, "o200k_base")
        assert count_tokens([text], "o200k_base")[0] <= budget
        assert "-----Relationships-----" in text
        assert copy["Entities"][0][:2] == (1, "Alice")


def test_nothing_is_asked_on_an_empty_context(tmp_path: Path) -> None:
    with ModelServer(lambda messages: json.dumps(REPORT)) as server:
        engine = engine_for(server, tmp_path)
        empty = Context(
            community_id="nobody",
            entities=(),
            relationships=(),
            claims=(),
            sub_reports=(),
            n_tokens=0,
            coverage=1.0,
            hash="v:",
        )
        written = ModelWriter(engine.settings).write(engine.store, [empty])
        assert not written.failures
        assert not server.requests
