"""The pipeline by a language model, over a real server that plays it: each call is paid once."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Engine
from dagster_helpers import Pipeline, failed_checks, metadata_of
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

from graphrag_pipeline.config import Settings
from graphrag_pipeline.ingest import ingest_extractions, pending_batches
from graphrag_pipeline.llm import BudgetExceededError, TerminalModelError
from graphrag_pipeline.models import report_writer
from graphrag_pipeline.publishing import publish
from graphrag_pipeline.reports import update_reports
from graphrag_pipeline.runs import RunFailedError, index_folder
from graphrag_pipeline.spending import ledger_position, spending
from graphrag_pipeline.summaries import update_graph
from graphrag_pipeline.vector_index import TABLES, update_vectors

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


def stage_of(messages: Messages) -> str:
    """What a conversation is about, as the prompts that ship tell it."""
    system, last = messages[0]["content"], messages[-1]["content"]
    if "knowledge graph that it states" in system:
        if "Answer with one word" in last:
            return "check"
        return "glean" if "MANY records were missed" in last else "extract"
    if "write down the claims" in system:
        return "check" if "Answer with one word" in last else "claims"
    if "several summaries of it" in system:
        return "reduce"
    return "report" if "community of a knowledge graph" in system else "summary"


def document_in(messages: Messages) -> str:
    return re.search(r"<document id=\w+>(.*)</document", messages[1]["content"], re.S)[1].strip()


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


def engine_for(server: ModelServer, folder: Path, **given: dict[str, Any]) -> Engine:
    llm = {"base_url": server.base_url, "concurrency": 4, **given.pop("llm", {})}
    return Engine(folder, Settings(home=str(folder / ".graphrag"), profile="llm", llm=llm, **given))


def update(engine: Engine, *, whole: bool = True) -> None:
    """Bring an index up to date, stage by stage as the assets do; if whole, publish it as well."""
    store, settings, home = engine.store, engine.settings, engine.log.home
    engine.cut()
    with spending(store, settings, ledger_position(home)):
        for key in pending_batches(store, engine.log, settings):
            engine.ingest(key)
        update_graph(store, settings)
        engine.cluster()
        update_reports(store, settings.reports, 0, and_deeper=True, writer=report_writer(settings))
        for table in TABLES if whole else ():
            update_vectors(store, home, settings, table)
    if whole:
        publish(store, home, settings)


def build(
    server: ModelServer, folder: Path, files: Any = FILES, *, whole: bool = False, **given: Any
) -> Engine:
    engine = engine_for(server, folder, **given)
    engine.write(files)
    update(engine, whole=whole)
    return engine


def tables(engine: Engine) -> dict[str, list[tuple]]:
    return {name: sorted(engine.rows(sql), key=repr) for name, sql in TABLES_COMPARED.items()}


def asked_for(server: ModelServer) -> Counter[str]:
    return Counter(stage_of(request.messages) for request in server.asked())


def when(stage: str, *faults: Fault | None, about: str = "") -> Any:
    """The faults, one by one, of the requests of a stage whose text holds some words."""
    waiting = iter(faults)

    def fault(request: Request) -> Fault | None:
        if request.endpoint == "embeddings" or stage_of(request.messages) != stage:
            return None
        return next(waiting, None) if about in request.text else None

    return fault


def always(stage: str, fault: Fault, about: str = "") -> Any:
    return lambda request: (
        fault
        if request.endpoint != "embeddings"
        and stage_of(request.messages) == stage
        and about in request.text
        else None
    )


def test_each_chunk_is_asked_once_and_the_graph_is_what_the_model_said(
    server: ModelServer, tmp_path: Path
) -> None:
    engine = build(server, tmp_path)
    assert asked_for(server)["extract"] == 3
    assert server.repeated() == {}
    people = {name for text in FILES.values() for name in NAME.findall(text)}
    assert {t for (t,) in engine.rows("SELECT title FROM entities")} == people
    assert engine.rows("SELECT DISTINCT type FROM entities") == [("PERSON",)]
    ends = {frozenset(row) for row in engine.rows("SELECT source, target FROM relationships")}
    assert frozenset(("Alice Smith", "Bob Jones")) in ends
    (told,) = engine.rows("SELECT description FROM entities WHERE title = 'Dora Green'")[0]
    assert told == 'Dora Green is in "Dora Green met Emil "'


def test_an_end_of_a_relationship_that_is_not_listed_is_an_entity(tmp_path: Path) -> None:
    def say(messages: Messages) -> str:
        if stage_of(messages) != "extract":
            return mind(messages)
        return (
            '("entity"<|>Alice Smith<|>PERSON<|>a person)\n##\n'
            '("relationship"<|>Alice Smith<|>Bob Jones<|>they met<|>3)'
        )

    with ModelServer(say) as server:
        engine = build(server, tmp_path, {"a.txt": FILES["a.txt"]})
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
        engine = engine_for(server, tmp_path)
        engine.write({"a.txt": FILES["a.txt"]})
        engine.index()
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
        engine = build(server, tmp_path, {"a.txt": FILES["a.txt"]}, extraction={"claims": True})
    assert engine.rows("SELECT subject, object, type, status FROM claims") == [
        ("Bob Jones", "Carol Brown", "PAYMENT", "TRUE")
    ]


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
        engine = build(server, tmp_path, {"a.txt": FILES["a.txt"]})
    titles = {title for (title,) in engine.rows("SELECT title FROM entities")}
    assert titles == set(NAME.findall(FILES["a.txt"]))


@pytest.mark.parametrize(
    "fault", [refusal(), Fault(text="I am sorry, there is nothing here."), Fault(text="")]
)
def test_a_chunk_that_fails_is_seen_kept_apart_and_tried_again(
    server: ModelServer, tmp_path: Path, fault: Fault
) -> None:
    server.misbehave(always("extract", fault, about="quarry"))
    engine = build(server, tmp_path)
    failed = engine.rows("SELECT error FROM extractions WHERE status = 'failed'")
    assert len(failed) == 1
    assert failed[0][0]
    assert "quarry" not in failed[0][0]
    assert engine.rows("SELECT count(*) FROM extractions WHERE status = 'ok'") == [(2,)]
    assert engine.rows("SELECT count(*) FROM entities") == [(6,)]
    assert len(pending_batches(engine.store, engine.log, engine.settings)) == 1

    server.misbehave(())
    server.forget()
    update(engine, whole=False)
    assert asked_for(server)["extract"] == 1
    assert engine.rows("SELECT DISTINCT status FROM extractions") == [("ok",)]
    assert engine.rows("SELECT count(*) FROM extractions") == [(3,)]
    assert pending_batches(engine.store, engine.log, engine.settings) == []


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
    ingest_extractions(engine.store, engine.settings, key)
    assert not answered & {request.content_hash for request in server.requests}
    assert engine.rows("SELECT count(*) FROM staging.extractions WHERE status = 'ok'") == [(30,)]


@pytest.mark.parametrize("limit", [{"max_tokens": 30_000}, {"max_cost": 0.02}])
def test_a_budget_stops_a_run_keeps_what_was_bought_and_the_rest_is_paid_later(
    server: ModelServer, tmp_path: Path, limit: dict[str, float]
) -> None:
    files = {f"{n}.txt": f"Alice Smith met Bob Jones on day {n}." for n in range(40)}
    engine = engine_for(server, tmp_path, llm=limit)
    engine.write(files)
    with pytest.raises(BudgetExceededError, match="raise the limit and run again") as caught:
        update(engine)
    assert "\n" not in str(caught.value)
    spent = server.prompt_tokens + server.completion_tokens
    assert 0 < spent <= limit.get("max_tokens", 10**9)
    bought = {request.content_hash for request in server.requests}
    (copied,) = engine.rows("SELECT count(*), sum(cost) FROM llm_calls WHERE NOT cached")
    assert copied[0] == server.answered
    assert copied[1] <= limit.get("max_cost", 10**9)

    server.forget()
    update(engine_for(server, tmp_path))
    assert not bought & {request.content_hash for request in server.requests}
    assert server.repeated() == {}


def test_an_unchanged_second_run_asks_nothing(server: ModelServer, tmp_path: Path) -> None:
    engine = build(server, tmp_path, whole=True)
    before = tables(engine)
    server.forget()
    update(engine)
    assert server.requests == []
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
    update(engine, whole=False)
    asked = [r.text for r in server.asked() if stage_of(r.messages) == "summary"]
    assert asked
    assert not any("Alice Smith" in text for text in asked)


def test_very_many_descriptions_are_merged_in_parts(tmp_path: Path) -> None:
    def say(messages: Messages) -> str:
        if stage_of(messages) != "extract":
            return mind(messages)
        words = document_in(messages)
        return f'("entity"<|>Alice Smith<|>PERSON<|>{words})\n<|COMPLETE|>'

    files = {f"{n}.txt": f"Day {n}: " + f"Alice Smith sailed on {n}. " * 50 for n in range(30)}
    with ModelServer(say) as server:
        engine = build(server, tmp_path, files)
    asked = asked_for(server)
    assert asked["summary"] > 1
    assert asked["reduce"] == 1
    assert engine.rows("SELECT description FROM entities") == [("All of it, merged.",)]


def test_a_report_is_told_its_context_and_keeps_only_true_references(
    server: ModelServer, tmp_path: Path
) -> None:
    engine = build(server, tmp_path)
    asked = [r.messages[1]["content"] for r in server.asked() if stage_of(r.messages) == "report"]
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
    assert again[0].messages[-2]["content"] == "{'title': broken"
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
        update(engine, whole=False)
        assert engine.rows("SELECT count(*) FROM report_failures") == [(0,)]
        assert asked_for(server)["report"] >= len(failed)
        server.forget()
        update(engine, whole=False)
        assert server.requests == []


def test_a_report_is_not_written_again_when_another_part_of_the_graph_changes(
    server: ModelServer, tmp_path: Path
) -> None:
    engine = build(server, tmp_path)
    server.forget()
    engine.write({"d.txt": "Hugo White met Ines Gray. Ines Gray paid Jan Reed."})
    update(engine, whole=False)
    asked = [r.messages[1]["content"] for r in server.asked() if stage_of(r.messages) == "report"]
    assert len(asked) == 1
    assert "Hugo White" in asked[0]


def test_the_ledger_is_copied_once_and_sums_to_what_the_server_counted(
    server: ModelServer, tmp_path: Path
) -> None:
    engine = build(server, tmp_path, whole=True)
    update(engine)
    (row,) = engine.rows(
        """SELECT count(*), count(DISTINCT id), sum(prompt_tokens)::BIGINT,
                  sum(completion_tokens)::BIGINT FROM llm_calls WHERE NOT cached"""
    )
    assert row == (
        server.answered,
        server.answered,
        server.prompt_tokens,
        server.completion_tokens,
    )


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
    assert found["extractions", key]["model_calls"] == 6
    assert found["extractions", key]["cost_usd"] > 0
    assert found["embeddings/chunks", None]["prompt_tokens"] > 0
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
        index_folder(pipeline.settings, pipeline.inbox)
    assert caught.value.exit_code == 6
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    server.misbehave(())
    index_folder(pipeline.settings, pipeline.inbox)
    assert pipeline.release
    server.forget()
    index_folder(pipeline.settings, pipeline.inbox)
    assert server.requests == []


RUN = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_llm_pipeline import engine_for, update
class Address:
    base_url = {url!r}
engine = engine_for(Address, Path({folder!r}), graph={{"max_description_tokens": 16}})
print("go", flush=True)
update(engine, whole=False)
"""


def test_killed_at_any_moment_no_answered_call_is_made_again(tmp_path: Path) -> None:
    files = {f"{n}.txt": f"{text} Day {n}." for n in range(4) for text in FILES.values()}
    files |= {f"{name}{n}": f"{text} Day {n}." for n in range(3) for name, text in FILES.items()}
    with ModelServer(mind) as calm:
        undisturbed = build(
            calm, tmp_path / "calm", files, whole=True, graph={"max_description_tokens": 16}
        )
    dice = random.Random(7)
    folder = tmp_path / "killed"
    with ModelServer(mind, latency=0.03) as server:
        engine = engine_for(server, folder, graph={"max_description_tokens": 16})
        engine.write(files)
        code = RUN.format(tests=str(Path(__file__).parent), url=server.base_url, folder=str(folder))
        for _ in range(6):
            run = subprocess.Popen(
                [sys.executable, "-c", code],
                stdout=subprocess.PIPE,
                env=dict(os.environ),
                text=True,
            )
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(dice.uniform(0.1, 0.9))
            run.send_signal(signal.SIGKILL)
            run.wait(10)
            run.stdout.close()
        update(engine)
        asked_again = sum(server.repeated().values()) - len(server.repeated())
        # A call whose answer was on its way when its process died has to be made again.
        assert asked_again <= 6 * 4
    assert tables(engine) == tables(undisturbed)
