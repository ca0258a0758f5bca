"""A corpus that changes, followed by a model: what each change costs, and what it leaves."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from index_process import by_model, faults, update
from llm_helpers import document_in, stage_of
from model_server import Messages, ModelServer

from conftest import Engine
from graphrag_pipeline.query import open_release

NAME = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b")
PLACES = ("Harbour", "Market", "Castle", "Orchard", "Quarry", "Mill")


def mind(messages: Messages) -> str:
    """People are entities, those named together are related; a report repeats what it is told."""
    stage = stage_of(messages)
    if stage == "check":
        return "NO"
    if stage in ("extract", "glean"):
        text = document_in(messages)
        names = list(dict.fromkeys(NAME.findall(text)))
        records = [f'("entity"<|>{name}<|>PERSON<|>{name}: {text[:60]}' + ")" for name in names]
        records += [
            f'("relationship"<|>{a}<|>{b}<|>{a} and {b}: {text[:60]}<|>5)'
            for i, a in enumerate(names)
            for b in names[i + 1 :]
        ]
        return "\n##\n".join([*records, "<|COMPLETE|>"])
    if stage == "report":
        told = " ".join(messages[1]["content"].split())
        finding = {"summary": "All of it.", "explanation": told}
        report = {"title": "T", "summary": "S", "rating": 5, "rating_explanation": "R"}
        return json.dumps({**report, "findings": [finding]})
    return "All of it, merged."


def circle(place: str, day: int = 0) -> str:
    a, b, c = (f"{first} {place}man" for first in ("Alice", "Bob", "Carol"))
    return f"On day {day} {a} met {b} at the gate. {c} paid {a} and {b} later. "


FILES = {f"{place.lower()}-{day}.txt": circle(place, day) for place in PLACES for day in range(3)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModelServer, Path]]:
    """A server, and the folder of an index of FILES that was published with it."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch, ModelServer(mind) as one:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        engine = by_model(folder, one.base_url)
        engine.write(FILES)
        update(engine)
        yield one, folder


@pytest.fixture
def server(built: tuple[ModelServer, Path], monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """The server, which has forgotten what the index has asked."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    built[0].forget()
    return built[0]


@pytest.fixture
def engine(server: ModelServer, built: tuple[ModelServer, Path], tmp_path: Path) -> Engine:
    """A copy of the index, to change."""
    shutil.copytree(built[1], tmp_path, dirs_exist_ok=True)
    return by_model(tmp_path, server.base_url)


def asked(server: ModelServer) -> Counter[str]:
    return Counter(
        "embeddings" if request.endpoint == "embeddings" else stage_of(request.messages)
        for request in server.requests
    )


def published(engine: Engine) -> dict[str, list[tuple]]:
    """Everything a reader of the release can see that comes from documents."""
    queries = {
        "documents": "SELECT uri, title, text FROM documents ORDER BY uri",
        "entities": "SELECT id, title, description, frequency FROM entities ORDER BY id",
        "edges": "SELECT id, description, weight FROM relationships ORDER BY id",
        "reports": """SELECT kind, element_id, text_hash FROM report_elements
                      WHERE kind <> 'report' ORDER BY ALL""",
        "members": "SELECT entity_id, level FROM community_members ORDER BY ALL",
    }
    with open_release(engine.log.home, settings=engine.settings) as release:
        assert faults(release) == []
        return {
            name: [tuple(row.values()) for row in release.rows(query)]
            for name, query in queries.items()
        }


@pytest.mark.parametrize(
    ("name", "cost"), [("moved/mill-0.txt", {}), ("moved/elsewhere.txt", {"embeddings": 1})]
)
def test_a_renamed_document_leaves_the_graph_as_it_was(
    server: ModelServer, engine: Engine, name: str, cost: dict[str, int]
) -> None:
    """A move costs nothing; another file name is another title, which is embedded."""
    before = published(engine)
    reports = engine.rows("SELECT id, full_content FROM community_reports ORDER BY id")
    engine.write({"mill-0.txt": None, name: FILES["mill-0.txt"]})
    update(engine)
    assert asked(server) == cost
    after = published(engine)
    assert {uri for uri, _, _ in after["documents"]} != {uri for uri, _, _ in before["documents"]}
    for table in ("entities", "edges", "reports", "members"):
        assert after[table] == before[table]
    assert engine.rows("SELECT id, full_content FROM community_reports ORDER BY id") == reports


def test_a_new_circle_costs_its_own_calls_only(server: ModelServer, engine: Engine) -> None:
    before = dict(engine.rows("SELECT community_id, full_content FROM community_reports"))
    engine.write({"tower.txt": circle("Tower")})
    update(engine)
    calls = asked(server)
    assert (calls["extract"], calls["report"]) == (1, 1)
    after = dict(engine.rows("SELECT community_id, full_content FROM community_reports"))
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_what_is_removed_leaves_no_trace_and_costs_no_more_than_it_touches(
    server: ModelServer, engine: Engine
) -> None:
    removed = {name: None for name in FILES if name.startswith(("castle", "quarry"))}
    removed["mill-2.txt"] = None
    engine.write(removed)
    update(engine)
    calls = asked(server)
    assert calls["extract"] == 0
    assert calls["report"] == 1
    told = str(engine.rows("SELECT full_content FROM community_reports"))
    everything = told + str(published(engine))
    assert "Castleman" not in everything
    assert "Quarryman" not in everything
    assert "On day 2 Alice Millman" not in everything
    assert "On day 1 Alice Millman" in everything


def test_many_removals_are_one_rebuild(server: ModelServer, engine: Engine) -> None:
    builds = "SELECT count(*) FROM community_updates"
    ((before,),) = engine.rows(builds)
    engine.write({name: None for name in list(FILES)[:14]})
    update(engine)
    assert engine.rows(builds) == [(before + 1,)]
    assert engine.rows("SELECT count(*) FROM documents") == [(4,)]


def test_after_a_history_the_index_is_that_of_a_fresh_build(
    server: ModelServer, engine: Engine, tmp_path: Path
) -> None:
    exact = {"reports": {"max_outdated": 0.0}}
    engine = by_model(tmp_path, server.base_url, **exact)
    changed = {"mill-0.txt": circle("Mill", 8), "castle-1.txt": circle("Harbour", 9)}
    engine.write({"market-0.txt": None, "tower.txt": circle("Tower"), **changed})
    update(engine)
    engine.write({"market-0.txt": FILES["market-0.txt"], "tower.txt": None})
    update(engine)
    fresh = by_model(tmp_path / "fresh", server.base_url, **exact)
    fresh.write({**FILES, **changed})
    server.forget()
    update(fresh)
    assert published(engine) == published(fresh)
