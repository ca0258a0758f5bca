"""The pipeline by a language model, over a real server that plays it: each call is paid once."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import random
import re
import shutil
import signal
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dagster_helpers import Pipeline, failed_checks, metadata_of
from index_process import by_model, faults, update, update_by_model, update_tables
from llm_helpers import document_in, processes, stage_of
from model_server import (
    Fault,
    Messages,
    ModelServer,
    Request,
    rate_limited,
    refusal,
    server_error,
    unauthorized,
)
from strict_server import StrictServer

from conftest import Engine
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.graph.descriptions import _parts, summarise_descriptions, update_graph
from graphrag_pipeline.index import Index
from graphrag_pipeline.llm import BudgetExceededError, TerminalModelError
from graphrag_pipeline.llm.cache import VectorSource, request_json, request_key
from graphrag_pipeline.orchestration.runs import RunFailedError, index_folder
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.query import open_release
from graphrag_pipeline.structures.vector_tables import TABLES

KEY = "sk-never-shown-123456"
NAME = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b")
FILES = {
    "a.txt": "Alice Smith met Bob Jones. Bob Jones paid Carol Brown. Carol Brown met Alice Smith.",
    "b.txt": "Dora Green met Emil Black. Emil Black paid Max Miller. Max Miller met Dora Green.",
    "c.txt": "Alice Smith wrote to Bob Jones about the quarry at the river, twice in one week.",
}
TABLES_COMPARED = {
    "documents": "SELECT id, text FROM documents",
    "chunks": "SELECT id, text FROM chunks",
    "extractions": "SELECT chunk_id, status, n_entities, n_relationships FROM extractions",
    "entities": "SELECT id, title, type, description, degree FROM entities",
    "relationships": "SELECT id, source, target, description, weight FROM relationships",
    "claims": "SELECT id, subject, object, description FROM claims",
    "communities": "SELECT id, level, size FROM communities",
    "community_reports": "SELECT id, full_content, writer FROM community_reports",
}


def mind(messages: Messages) -> str:
    """The model: people are entities, those named one after the other are related."""
    stage = stage_of(messages)
    if stage == "check":
        return "NO"
    if stage == "claims":
        return "<|COMPLETE|>"
    if stage in ("extract", "glean"):
        text = document_in(messages)
        names = list(dict.fromkeys(NAME.findall(text)))
        records = [f'("entity"<|>{n}<|>PERSON<|>{n} is in "{text[:20]}"' + ")" for n in names]
        records += [
            f'("relationship"<|>{a}<|>{b}<|>{a} and {b} in "{text[:20]}"<|>5)'
            for a, b in itertools.pairwise(names)
        ]
        return "\n##\n".join([*records, "<|COMPLETE|>"])
    if stage == "report":
        return report_on(messages[1]["content"])
    return "All of it, merged."


def report_on(context: str) -> str:
    entity = re.search(r"-----Entities-----\nid,.*\n(\d+),", context)
    cited = f"Entities ({entity[1]}, 99999)" if entity else "Reports (99999)"
    finding = {"summary": "They meet.", "explanation": f"They meet often [Data: {cited}]."}
    names = ", ".join(sorted(set(NAME.findall(context)))[:3])
    return json.dumps(
        {
            "title": f"Circle of {names}",
            "summary": "People who meet.",
            "rating": 4.5,
            "rating_explanation": "They are few.",
            "findings": [finding],
        }
    )


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(mind) as one:
        yield one


def engine_for(server: ModelServer, folder: Path, **given: Any) -> Engine:
    return by_model(folder, server.base_url, **given)


def build(server: ModelServer, folder: Path, files: Any = FILES, **given: Any) -> Engine:
    engine = engine_for(server, folder, **given)
    engine.write(files)
    update_tables(engine)
    return engine


def build_graph(server: ModelServer, folder: Path, files: Any = FILES, **given: Any) -> Engine:
    engine = engine_for(server, folder, **given)
    engine.write(files)
    engine.index()
    return engine


@dataclass(frozen=True)
class Finished:
    """An index of FILES that was built and published, and what its server was asked and billed."""

    server: ModelServer
    engine: Engine
    requests: Sequence[Request]
    tokens: tuple[int, int]

    def copy(self, folder: Path) -> Engine:
        """Return the same index elsewhere; its server has forgotten what it was asked."""
        shutil.copytree(self.engine.inbox.parent, folder, dirs_exist_ok=True)
        self.server.forget()
        return engine_for(self.server, folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    folder = tmp_path_factory.mktemp("finished")
    with ModelServer(mind) as one:
        engine = engine_for(one, folder)
        engine.write(FILES)
        update(engine)
        tokens = (one.prompt_tokens, one.completion_tokens)
        yield Finished(one, engine, list(one.requests), tokens)


def tables(engine: Engine) -> dict[str, list[tuple]]:
    return {name: sorted(engine.rows(sql), key=repr) for name, sql in TABLES_COMPARED.items()}


def asked_for(server: ModelServer) -> Counter[str]:
    return Counter(map(kind_of, server.requests))


def kind_of(request: Request) -> str:
    return "embeddings" if request.endpoint == "embeddings" else stage_of(request.messages)


def when(stage: str, *faults: Fault | None, about: str = "") -> Any:
    """The faults, one by one, of the requests of a stage whose text holds some words."""
    waiting = iter(faults)

    def fault(request: Request) -> Fault | None:
        matches = kind_of(request) == stage and about in request.text
        return next(waiting, None) if matches else None

    return fault


def always(stage: str, fault: Fault, about: str = "") -> Any:
    return lambda request: fault if kind_of(request) == stage and about in request.text else None


def test_each_chunk_is_asked_once_and_the_graph_is_what_the_model_said(finished: Finished) -> None:
    engine = finished.engine
    assert Counter(map(kind_of, finished.requests))["extract"] == 3
    # How long vectors are is asked twice; nothing else is.
    repeated = Counter(request.content_hash for request in finished.requests)
    assert [n for n in repeated.values() if n > 1] == [2]
    people = {name for text in FILES.values() for name in NAME.findall(text)}
    assert {t for (t,) in engine.rows("SELECT title FROM entities")} == people
    assert engine.rows("SELECT DISTINCT type FROM entities") == [("PERSON",)]
    ends = {frozenset(row) for row in engine.rows("SELECT source, target FROM relationships")}
    assert frozenset(("Alice Smith", "Bob Jones")) in ends
    (told,) = engine.rows("SELECT description FROM entities WHERE title = 'Dora Green'")[0]
    assert told == 'Dora Green is in "Dora Green met Emil ".'


def test_an_end_of_a_relationship_that_is_not_listed_is_an_entity(tmp_path: Path) -> None:
    def say(messages: Messages) -> str:
        if stage_of(messages) != "extract":
            return mind(messages)
        return (
            '("entity"<|>Alice Smith<|>PERSON<|>a person)\n##\n'
            '("relationship"<|>Alice Smith<|>Bob Jones<|>they met<|>3)'
        )

    with ModelServer(say) as server:
        engine = build_graph(server, tmp_path, {"a.txt": FILES["a.txt"]})
    assert engine.rows("SELECT title, type FROM entities ORDER BY title") == [
        ("Alice Smith", "PERSON"),
        ("Bob Jones", "OTHER"),
    ]


@pytest.mark.parametrize(("said", "calls"), [("YES", 3), ("NO", 2), ("Perhaps", 2)])
def test_gleaning_goes_on_only_where_the_model_says_so(
    tmp_path: Path, said: str, calls: int
) -> None:
    def say(messages: Messages) -> str:
        if stage_of(messages) == "check":
            return said
        if stage_of(messages) == "glean":
            return '("entity"<|>Late Comer<|>PERSON<|>missed at first)\n<|COMPLETE|>'
        return mind(messages)

    with ModelServer(say) as server:
        engine = build_graph(server, tmp_path, {"a.txt": FILES["a.txt"]})
    assert len(server.asked()) == calls
    titles = {title for (title,) in engine.rows("SELECT title FROM entities")}
    assert ("Late Comer" in titles) == (said == "YES")
    assert "Alice Smith" in titles


def test_claims_are_kept_with_what_was_said(tmp_path: Path) -> None:
    def say(messages: Messages) -> str:
        if stage_of(messages) != "claims":
            return mind(messages)
        return (
            "(Bob Jones<|>Carol Brown<|>PAYMENT<|>TRUE<|>NONE<|>NONE<|>Bob Jones paid Carol Brown"
            "<|>Bob Jones paid Carol Brown.)\n<|COMPLETE|>"
        )

    with ModelServer(say) as server:
        engine = build_graph(
            server, tmp_path, {"a.txt": FILES["a.txt"]}, extraction={"claims": True}
        )
    assert engine.rows("SELECT subject, object, type, status FROM claims") == [
        ("Bob Jones", "Carol Brown", "PAYMENT", "TRUE")
    ]


def test_a_chunk_whose_claims_cannot_be_read_keeps_its_graph_and_is_tried_again(
    server: ModelServer, tmp_path: Path
) -> None:
    server.misbehave(always("claims", Fault(text="There is not much to say.")))
    engine = build_graph(server, tmp_path, {"a.txt": FILES["a.txt"]}, extraction={"claims": True})
    titles = {title for (title,) in engine.rows("SELECT title FROM entities")}
    assert titles == set(NAME.findall(FILES["a.txt"]))
    assert engine.rows("SELECT status FROM extractions") == [("failed",)]

    said = "(Bob Jones<|>NONE<|>A<|>TRUE<|>NONE<|>NONE<|>He paid.<|>He paid.)\n<|COMPLETE|>"
    server.misbehave(always("claims", Fault(text=said)))
    server.forget()
    update(engine)
    assert (asked_for(server)["extract"], asked_for(server)["claims"]) == (0, 1)
    assert engine.rows("SELECT subject FROM claims") == [("Bob Jones",)]
    assert engine.rows("SELECT status FROM extractions") == [("ok",)]


def test_the_examples_of_the_prompt_do_not_get_into_the_graph(tmp_path: Path) -> None:
    def say(messages: Messages) -> str:
        if stage_of(messages) != "extract":
            return mind(messages)
        parroted = re.findall(
            r'^\("(?:entity|relationship)"<\|>.*\)$', messages[0]["content"], re.M
        )
        real = [record for record in parroted if "<|>description" not in record]
        assert len(real) > 3
        return "\n##\n".join([*real, mind(messages)])

    with ModelServer(say) as server:
        engine = build_graph(server, tmp_path, {"a.txt": FILES["a.txt"]})
    titles = {title for (title,) in engine.rows("SELECT title FROM entities")}
    assert titles == set(NAME.findall(FILES["a.txt"]))


@pytest.mark.parametrize(
    "fault", [refusal(), Fault(text="I am sorry, there is nothing here."), Fault(text="")]
)
def test_a_chunk_that_fails_is_seen_kept_apart_and_tried_again(
    server: ModelServer, tmp_path: Path, fault: Fault
) -> None:
    server.misbehave(always("extract", fault, about="quarry"))
    engine = build_graph(server, tmp_path)
    failed = engine.rows("SELECT error FROM extractions WHERE status = 'failed'")
    assert len(failed) == 1
    assert failed[0][0]
    assert "quarry" not in failed[0][0]
    assert engine.rows("SELECT count(*) FROM extractions WHERE status = 'ok'") == [(2,)]
    assert engine.rows("SELECT count(*) FROM entities") == [(6,)]
    assert len(pending_batches(engine.workspace)) == 1

    server.misbehave(())
    server.forget()
    engine.index()
    assert asked_for(server)["extract"] == 1
    assert engine.rows("SELECT DISTINCT status FROM extractions") == [("ok",)]
    assert engine.rows("SELECT count(*) FROM extractions") == [(3,)]
    assert pending_batches(engine.workspace) == []


def test_a_storm_of_errors_is_survived(server: ModelServer, tmp_path: Path) -> None:
    def storm(request: Request) -> Fault | None:
        if request.attempt > 2:
            return None
        return rate_limited("0.01") if request.number % 2 else server_error()

    server.misbehave(storm)
    engine = build(server, tmp_path / "stormy", {"a.txt": FILES["a.txt"]})
    with ModelServer(mind) as calm:
        other = build(calm, tmp_path / "calm", {"a.txt": FILES["a.txt"]})
    assert tables(engine) == tables(other)


def test_a_wrong_key_stops_at_once_and_nothing_is_paid_twice(
    server: ModelServer, tmp_path: Path
) -> None:
    files = {f"{n}.txt": f"Alice Smith met Bob Jones on day {n}." for n in range(30)}
    engine = engine_for(server, tmp_path)
    engine.write(files)
    engine.cut()
    (key,) = [batch.key for batch in engine.log.batches()]
    server.misbehave(lambda request: unauthorized() if request.number > 10 else None)
    with pytest.raises(TerminalModelError) as caught:
        engine.ingest(key)
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.requests) <= 10 + 2 * 4
    assert engine.rows("SELECT count(*) FROM staging.extractions") == [(0,)]
    answered = {request.content_hash for request in server.requests[:10]}

    server.misbehave(())
    server.forget()
    ingest(engine.workspace, "extractions", key)
    assert not answered & {request.content_hash for request in server.requests}
    assert engine.rows("SELECT count(*) FROM staging.extractions WHERE status = 'ok'") == [(30,)]


def test_a_batch_of_which_no_chunk_was_answered_ends_the_run_and_is_asked_later_alone(
    server: ModelServer, tmp_path: Path
) -> None:
    settings = engine_for(server, tmp_path, llm={"max_retries": 0}).settings
    engine, index = Engine(tmp_path, settings), Index(settings)
    engine.write({f"{n}.txt": f"Alice Smith met Bob Jones on day {n}." for n in range(6)})
    before = index.update(engine.inbox).release
    bought = {request.content_hash for request in server.requests if not request.is_probe}
    engine.write({f"new {n}.txt": f"Carol King met Bob Jones on day {n}." for n in range(5)})

    def outage(request: Request) -> Fault | None:
        return server_error(503) if stage_of(request.messages) == "extract" else None

    server.forget()
    server.misbehave(lambda request: outage(request) if request.endpoint != "embeddings" else None)
    with pytest.raises(TerminalModelError, match=r"no chunk of 5 had an answer") as caught:
        index.update(engine.inbox)
    assert caught.value.is_outage
    # Neither summaries nor reports were asked for after it, and readers keep what they had.
    assert {stage_of(request.messages) for request in server.asked()} == {"extract"}
    assert [release.id for release in index.releases()] == [before]
    assert engine.rows("SELECT count(*) FROM staging.extractions") == [(0,)]

    server.misbehave(())
    server.forget()
    assert index.update(engine.inbox).release != before
    asked = [request for request in server.requests if not request.is_probe]
    assert not bought & {request.content_hash for request in asked}
    texts = [request for request in server.asked() if stage_of(request.messages) == "extract"]
    assert len(texts) == 5


@pytest.mark.parametrize("limit", [{"max_tokens": 30_000}, {"max_cost": 0.02}])
def test_a_budget_stops_a_run_keeps_what_was_bought_and_the_rest_is_paid_later(
    server: ModelServer, tmp_path: Path, limit: dict[str, float]
) -> None:
    files = {f"{n}.txt": f"Alice Smith met Bob Jones on day {n}." for n in range(40)}
    engine = engine_for(server, tmp_path, llm=limit)
    engine.write(files)
    with pytest.raises(BudgetExceededError, match="raise the limit and run again") as caught:
        update_tables(engine)
    assert "\n" not in str(caught.value)
    spent = server.prompt_tokens + server.completion_tokens
    assert 0 < spent <= limit.get("max_tokens", 10**9)
    bought = {request.content_hash for request in server.requests if not request.is_probe}
    (copied,) = engine.rows("SELECT count(*), sum(cost) FROM llm_calls WHERE NOT cached")
    assert copied[0] == server.answered
    assert copied[1] <= limit.get("max_cost", 10**9)

    server.forget()
    update_tables(engine_for(server, tmp_path))
    assert not bought & {request.content_hash for request in server.requests}
    assert server.repeated() == {}


def test_an_unchanged_second_run_asks_nothing(finished: Finished, tmp_path: Path) -> None:
    engine = finished.copy(tmp_path)
    before = tables(engine)
    update(engine)
    assert finished.server.requests == []
    assert tables(engine) == before


def test_descriptions_are_merged_only_where_long_and_only_when_they_changed(
    server: ModelServer, tmp_path: Path
) -> None:
    given = {"graph": {"max_description_tokens": 16}}
    engine = build(server, tmp_path, **given)
    assert asked_for(server)["summary"] > 0
    merged = engine.rows("SELECT title FROM entities WHERE description = 'All of it, merged.'")
    assert merged == [("Alice Smith",), ("Bob Jones",)] or set(merged) == {
        ("Alice Smith",),
        ("Bob Jones",),
    }
    server.forget()
    engine.write({"d.txt": "Dora Green met Hugo White."})
    update_tables(engine)
    asked = [r.text for r in server.asked() if stage_of(r.messages) == "summary"]
    assert asked
    assert not any("Alice Smith" in text for text in asked)


def test_merged_descriptions_get_into_the_graph_after_a_run_that_died_before_it_did_so(
    server: ModelServer, tmp_path: Path
) -> None:
    engine = build_graph(server, tmp_path, graph={"max_description_tokens": 16})
    assert (
        summarise_descriptions(engine.workspace.store, engine.workspace.settings)["summarised"] > 0
    )
    server.forget()
    update_graph(engine.workspace.store, engine.workspace.settings)
    assert server.requests == []
    (n_merged,) = engine.rows("SELECT count(*) FROM entities WHERE description LIKE 'All of it%'")
    assert n_merged > (0,)


def test_merged_descriptions_go_with_the_documents_they_were_made_from(
    server: ModelServer, tmp_path: Path
) -> None:
    engine = build(server, tmp_path, graph={"max_description_tokens": 16})
    merged = "SELECT DISTINCT id FROM description_summaries"
    in_use = """SELECT id FROM entities WHERE description LIKE 'All of it%' UNION
                SELECT id FROM relationships WHERE description LIKE 'All of it%'"""
    assert set(engine.rows(merged)) == set(engine.rows(in_use)) != set()
    engine.write(dict.fromkeys(FILES))
    update_tables(engine)
    assert engine.rows(merged) == []


def test_very_many_descriptions_are_merged_in_parts(tmp_path: Path) -> None:
    def say(messages: Messages) -> str:
        if stage_of(messages) != "extract":
            return mind(messages)
        words = document_in(messages)
        return f'("entity"<|>Alice Smith<|>PERSON<|>{words})\n<|COMPLETE|>'

    files = {
        f"{n}.txt": f"Day {n}: " + " ".join(f"Alice Smith sailed at {n}:{m}." for m in range(50))
        for n in range(30)
    }
    with ModelServer(say) as server:
        engine = build(server, tmp_path, files)
    asked = asked_for(server)
    assert asked["summary"] > 1
    assert asked["reduce"] == 1
    assert engine.rows("SELECT description FROM entities") == [("All of it, merged.",)]


@pytest.mark.parametrize("n", [2, 14, 15, 29])
def test_no_description_is_lost_when_they_are_cut_into_parts(n: int) -> None:
    descriptions = [f"Day {day}: " + "Alice Smith sailed to Orlen. " * 60 for day in range(n)]
    parts = _parts(descriptions, 6000)
    assert list(itertools.chain(*parts)) == descriptions
    assert min(map(len, parts)) > 1


def test_a_report_is_told_its_context_and_keeps_only_true_references(finished: Finished) -> None:
    engine = finished.engine
    asked = [r.messages[1]["content"] for r in finished.requests if kind_of(r) == "report"]
    assert asked
    ids = dict(engine.rows("SELECT title, human_readable_id FROM entities"))
    for context in asked:
        assert "-----Entities-----\nid,title,type,description\n" in context or (
            "-----Entities-----\nid," in context
        )
        assert "-----Relationships-----\nid,source,target,description\n" in context
        for name in set(re.findall(r"^\d+,([A-Z]\w+ [A-Z]\w+),PERSON", context, re.M)):
            assert f"{ids[name]},{name},PERSON" in context
    for (content,) in engine.rows("SELECT full_content FROM community_reports"):
        assert "[Data: Entities (" in content
        assert "99999" not in content


def test_a_malformed_report_is_asked_for_again_with_the_error_shown(
    server: ModelServer, tmp_path: Path
) -> None:
    server.misbehave(when("report", Fault(text="{'title': broken"), about="Dora Green"))
    engine = build(server, tmp_path)
    again = [r for r in server.asked() if "could not be read:" in r.text]
    assert len(again) == 1
    assert "{'title': broken" not in again[0].text, "a bad answer shapes the next"
    assert engine.rows("SELECT count(*) FROM report_failures") == [(0,)]


def crowd() -> str:
    """Three circles of six people each, joined in a chain: communities on two levels."""
    sentences = []
    firsts = ("Alice", "Bob", "Carol", "Dora", "Emil", "Frank")
    for group in ("Smith", "Jones", "Brown"):
        names = [f"{first} {group}" for first in firsts]
        sentences += [
            f"{a} met {b}."
            for i, a in enumerate(names)
            for b in (names[(i + 1) % 6], names[(i + 2) % 6])
        ]
    return " ".join(sentences)


def pairs(messages: Messages) -> str:
    """A model that relates those who met."""
    if stage_of(messages) != "extract":
        return mind(messages)
    met = re.findall(r"(\w+ \w+) met (\w+ \w+)\.", document_in(messages))
    people = dict.fromkeys(name for pair in met for name in pair)
    records = [f'("entity"<|>{name}<|>PERSON<|>{name} is a person)' for name in people]
    records += [f'("relationship"<|>{a}<|>{b}<|>{a} met {b}<|>5)' for a, b in met]
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def test_a_report_that_fails_is_recorded_its_parent_written_and_it_is_tried_again(
    tmp_path: Path,
) -> None:
    def say(messages: Messages) -> str:
        is_deep = stage_of(messages) == "report" and len(
            re.findall(r",PERSON,", messages[1]["content"])
        ) in range(1, 5)
        return "no report today" if is_deep and not behaves else pairs(messages)

    behaves = False
    given = {"communities": {"max_cluster_size": 4}}
    with ModelServer(say) as server:
        engine = build(server, tmp_path, {"a.txt": crowd()}, **given)
        failed = engine.rows("SELECT level, error FROM report_failures")
        assert failed
        assert min(level for level, _ in failed) > 0
        assert all("today" not in error for _, error in failed)
        expected = engine.rows("SELECT count(*) FROM communities WHERE level = 0 AND size > 1")
        assert engine.rows("SELECT count(*) FROM community_reports WHERE level = 0") == expected
        behaves = True
        server.forget()
        update_tables(engine)
        assert engine.rows("SELECT count(*) FROM report_failures") == [(0,)]
        assert asked_for(server)["report"] >= len(failed)
        server.forget()
        update_tables(engine)
        assert server.requests == []


def test_a_report_is_not_written_again_when_another_part_of_the_graph_changes(
    finished: Finished, tmp_path: Path
) -> None:
    engine = finished.copy(tmp_path)
    engine.write({"d.txt": "Hugo White met Ines Gray. Ines Gray paid Jan Reed."})
    update_tables(engine)
    asked = [r.messages[1]["content"] for r in finished.server.asked() if kind_of(r) == "report"]
    assert len(asked) == 1
    assert "Hugo White" in asked[0]


def test_the_ledger_is_copied_once_and_sums_to_what_the_server_counted(
    finished: Finished, tmp_path: Path
) -> None:
    engine = finished.copy(tmp_path)
    update(engine)
    (row,) = engine.rows(
        """SELECT count(*), count(DISTINCT id), sum(prompt_tokens)::BIGINT,
                  sum(completion_tokens)::BIGINT FROM llm_calls WHERE NOT cached"""
    )
    n_calls = len(finished.requests)
    assert row == (n_calls, n_calls, *finished.tokens)


@pytest.fixture
def pipeline(server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("GRAPHRAG_PROFILE", "llm")
    monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
    return Pipeline(tmp_path, monkeypatch)


def test_assets_say_what_they_cost_and_nothing_private(
    server: ModelServer, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    import dagster as dg

    caplog.set_level(logging.DEBUG)
    server.misbehave(
        lambda r: Fault(text="prose of the model") if "quarry" in r.text and r.messages else None
    )
    pipeline.write(FILES)
    with dg.DagsterInstance.ephemeral() as instance:
        (key,) = pipeline.cut()
        ingested = pipeline.ingest(instance, [key])
        refreshed = pipeline.refresh(instance)
    assert ingested.success
    assert refreshed.success
    assert failed_checks(ingested) == {"extractions:every_chunk_extracted"}
    found = metadata_of(ingested) | metadata_of(refreshed)
    assert found["extractions", key]["model_calls"] == 5
    assert found["extractions", key]["cost_usd"] > 0
    assert found["embeddings/chunks_vectors", None]["prompt_tokens"] > 0
    cost = pipeline.rows("SELECT sum(cost) FROM llm_calls")[0][0]
    told = {
        name: m["cost_usd"]
        for (name, _), m in found.items()
        if "cost_usd" in m and name != "graph/relationships"
    }
    assert sum(told.values()) == pytest.approx(cost, abs=1e-4)
    logged = caplog.text + json.dumps(
        [{n: str(v) for n, v in m.items() if n != "preview"} for m in found.values()]
    )
    assert KEY not in logged
    assert "prose of the model" not in logged
    assert "twice in one week" not in logged


def test_one_command_indexes_and_a_wrong_key_is_one_line_with_its_exit_code(
    server: ModelServer, pipeline: Pipeline
) -> None:
    pipeline.write(FILES)
    server.misbehave(lambda request: unauthorized())
    with pytest.raises(RunFailedError) as caught:
        index_folder(pipeline.workspace, pipeline.inbox)
    assert caught.value.exit_code == 6
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    server.misbehave(())
    index_folder(pipeline.workspace, pipeline.inbox)
    assert pipeline.release


AT_ONCE = 4
KEEPS_SUMMARIES_SHORT = {"graph": {"max_description_tokens": 16}}


def circles(n: int) -> dict[str, str]:
    """Three files about each of some circles of three people who know nobody else."""
    people = [
        [f"{first} {chr(65 + i)}erston" for first in ("Alice", "Bob", "Carol")] for i in range(n)
    ]
    return {
        f"{i}-{day}.txt": f"On day {day} {a} met {b}. {b} paid {c}. {c} met {a} by the river."
        for i, (a, b, c) in enumerate(people)
        for day in range(3)
    }


def moments(calls: Counter[str], kills: int, dice: random.Random) -> list[tuple[str, int, float]]:
    """When to kill: so many calls of a kind have arrived, and so many seconds later.

    As many moments for each kind of call. All but one come while such calls are under way; the
    last waits longer, to meet what is done between these calls and the next.
    """
    found: list[tuple[str, int, float]] = []
    for kind in ("check", "summary", "report", "embeddings"):
        n = kills // 4 - 1
        places = range(1, calls[kind] + 1)
        chosen = dice.sample(places, n) if n <= len(places) else dice.choices(places, k=n)
        found += [(kind, place, dice.uniform(0, 0.04)) for place in sorted(chosen)]
        found.append((kind, calls[kind], dice.uniform(0.05, 0.4)))
    return found


class Arrivals:
    """The different calls of each kind that have arrived at a server."""

    def __init__(self, server: ModelServer) -> None:
        self.by_kind: defaultdict[str, set[str]] = defaultdict(set)
        server.misbehave(self._count)

    def _count(self, request: Request) -> None:
        self.by_kind[kind_of(request)].add(request.content_hash)


def kill_a_run(
    server: ModelServer, arrivals: Arrivals, engine: Engine, moment: tuple[str, int, float]
) -> bool:
    """Start to index in another process and kill it; False if it came to its end before.

    Where so many calls had arrived in an earlier run, the next call of any kind is waited for, or
    a second if there is none.
    """
    kind, calls, seconds = moment
    before, began = len(server.requests), time.monotonic()
    given = (engine.inbox.parent, server.base_url, KEEPS_SUMMARIES_SHORT)
    run = processes.Process(target=update_by_model, args=given)
    run.start()

    def has_come() -> bool:
        passed = time.monotonic() - began
        assert passed < 300, f"call {calls} of {kind} has not come"
        is_new = len(server.requests) > before or passed > 1
        return is_new and len(arrivals.by_kind[kind]) >= calls

    while run.is_alive() and not has_come():
        time.sleep(0.002)
    time.sleep(seconds)
    run.kill()
    run.join(10)
    return run.exitcode == -signal.SIGKILL


def keys_kept(engine: Engine) -> set[bytes]:
    """The keys of all answers and vectors that are on disk."""
    with contextlib.closing(sqlite3.connect(Home(engine.log.home).calls)) as con:
        rows = con.execute("SELECT key FROM responses UNION SELECT key FROM embeddings")
        return {key for (key,) in rows}


def keys_asked(request: Request, engine: Engine) -> set[bytes]:
    """The keys under which the client keeps what a request asked for."""
    given = engine.settings.llm
    if request.endpoint == "embeddings":
        texts = request.body["input"]
        return set(VectorSource(given.base_url, given.embedding_model, None).keys(texts))
    return {request_key(given.base_url, request_json(request.asked))}


@pytest.mark.waits
@pytest.mark.parametrize("kills", [8, pytest.param(40, marks=pytest.mark.nightly)])
def test_nothing_is_paid_twice_but_what_was_in_flight(
    tmp_path: Path, kills: int, record_property: Callable[[str, object], None]
) -> None:
    """Many runs killed (SIGKILL) one after the other on one index, then one to the end.

    An answer counts as arrived from the commit on that puts it into `llm_cache.sqlite`, which
    comes before anything uses it: what the file holds right after a kill is never asked for
    again, chat or vector. An answer that the server has sent but the client has not committed is
    lost with the process and has to be bought again: at most eight a kill, four calls under way
    and four answers on their way to the disk. The finished tables are those of a run that nobody
    disturbed, vectors and release belong to them, and the ledger has each answer once.
    """
    files = circles(5)
    with StrictServer(mind) as server:
        calm = build(server, tmp_path / "calm", files, **KEEPS_SUMMARIES_SHORT)
        undisturbed, calls = tables(calm), asked_for(server) + Counter(embeddings=len(TABLES))
    with StrictServer(mind, latency=0.02) as server:
        engine = engine_for(server, tmp_path / "killed", **KEEPS_SUMMARIES_SHORT)
        engine.write(files)
        arrivals, n_killed, kept, begins = Arrivals(server), 0, [], []
        for moment in moments(calls, kills, random.Random(7)):
            begins.append(len(server.requests))
            n_killed += kill_a_run(server, arrivals, engine, moment)
            kept.append(keys_kept(engine))
        update(engine)
        with open_release(engine.log.home, settings=engine.settings) as release:
            assert faults(release) == []
        asked = [keys_asked(request, engine) for request in server.requests]
        (probe,) = {key for r in server.requests if r.is_probe for key in keys_asked(r, engine)}
    counted = {"kills": n_killed, "requests": len(asked), "paid again": server.paid_again()}
    for name, number in counted.items():
        record_property(name, number)
    # The last moment may come when all is done, and of many some do where others are at work.
    assert n_killed >= kills - 1 - kills // 8
    assert server.paid_again() <= 2 * AT_ONCE * n_killed
    assert set().union(*asked) == keys_kept(engine)
    for begin, end, on_disk in zip(begins, [*begins[1:], len(asked)], kept, strict=True):
        assert not (on_disk - {probe}) & set().union(*asked[end:])
        assert sum(not keys <= on_disk for keys in asked[begin:end]) <= 2 * AT_ONCE
    assert tables(engine) == undisturbed
    chats = {r.content_hash for r in server.requests if r.endpoint != "embeddings"}
    entered = engine.rows(
        "SELECT count(*) FROM llm_calls WHERE NOT cached AND stage <> 'embeddings'"
    )
    assert entered == [(len(chats),)]
