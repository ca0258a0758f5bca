"""A method from outside the package, as its page shows it, wherever methods are named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from model_server import ModelServer
from query_fixture import publish
from query_player import play, step_of

from docs import generate
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import (
    METHODS,
    MODEL_METHODS,
    Ask,
    Method,
    QueryEngine,
    answer,
    compare,
    register_method,
    stream_answer,
    unregister_method,
)
from graphrag_pipeline.query.methods.method import number
from graphrag_pipeline.query.release import Release
from graphrag_pipeline.query.results import Record

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "extend.md"
QUESTION = "Who was the clerk of Scrooge?"
CLERK = "Bob Cratchit worked as a clerk for Scrooge"


@dataclass(frozen=True)
class NoParameters:
    """None."""


def blocks() -> list[str]:
    """The Python of the page's section, in order."""
    section = PAGE.read_text().split("## A method of your own\n")[1].split("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.fixture(autouse=True)
def here(home, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))


@pytest.fixture
def page(monkeypatch):
    """What the page defines and registers, run as a reader would."""
    module = ModuleType("nearby")
    monkeypatch.setitem(sys.modules, "nearby", module)
    for code in blocks():
        exec(compile(code, str(PAGE), "exec"), vars(module))
    register_method(module.ASKED)
    yield module
    for name in ("nearby", "nearby_asked"):
        unregister_method(name)


def settings_for(home: Path, server: ModelServer | None = None) -> Settings:
    model = {"query": {"answers": "llm"}, "llm": {"base_url": server.base_url}} if server else {}
    return Settings.model_validate({"home": str(home), **model})


def test_the_method_of_the_page_answers_without_a_model(home, page):
    found = answer(QUESTION, "nearby", hops=2)
    assert CLERK in found.text
    assert not found.generated
    assert found.retrieval.parameters == {"hops": 2, "max_context_tokens": 4000}
    assert {record.kind for record in found.retrieval.records} == {"chunk"}
    assert "".join(stream_answer(QUESTION, "nearby", hops=2)) == found.text
    (compared,) = compare(QUESTION, ["nearby:hops=2"], settings=settings_for(home))
    assert compared.answer is not None
    assert compared.answer.text == found.text


@pytest.mark.parametrize(
    ("method", "steps"), [("nearby", ["basic"]), ("nearby_asked", ["entities", "basic"])]
)
def test_a_model_writes_its_answers(home, page, method, steps):
    with ModelServer(play) as server, QueryEngine(settings=settings_for(home, server)) as engine:
        found = engine.answer(Ask(question=QUESTION, method=method))
        assert [step_of(request.messages) for request in server.asked()] == steps
        stream = engine.stream_answer(QUESTION, method)
        assert "".join(stream) == stream.answer.text == found.text
        (compared,) = compare(QUESTION, [method], settings=settings_for(home, server))
    assert found.generated
    assert found.citations
    assert found.failures == ()
    assert compared.answer is not None
    assert compared.answer.text == found.text
    assert CLERK in found.retrieval.context


def test_where_the_model_names_nothing_it_is_found_by_rule(home, page):
    def names_nothing(messages: list[dict]) -> str:
        return "?" if step_of(messages) == "entities" else play(messages)

    with ModelServer(names_nothing) as server:
        found = answer(QUESTION, "nearby_asked", settings=settings_for(home, server))
    assert CLERK in found.retrieval.context
    assert [failure.split(":")[0] for failure in found.failures] == ["entities"]


def test_its_parameters_are_checked_like_those_of_the_others(page):
    with pytest.raises(InputError, match="hops = 0: must be a whole number, at least 1"):
        answer(QUESTION, "nearby", hops=0)
    with pytest.raises(InputError, match="nearby has no parameter top_k: it has hops, max_context"):
        answer(QUESTION, "nearby", top_k=3)


@pytest.mark.beside
def test_the_reference_tells_of_it(page):
    part = next(part for part in generate.method_parts() if part.entry.name == "nearby")
    assert part.text == "Text of the entities within ``hops`` steps of those named in the question."
    assert ("`hops`", "a whole number, at least 1; default `1`") in [e.row for e in part.entries]


def test_a_package_brings_it_to_the_command_line(home, monkeypatch, tmp_path):
    installed(tmp_path / "site", "nearby:NEARBY")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    asked = command("query", QUESTION, "--method", "nearby:hops=2", "--json")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["method"] == "nearby"


def test_a_package_that_brings_no_method_is_named(monkeypatch, tmp_path):
    installed(tmp_path / "site", "nearby:NOTHING")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    asked = command("query", QUESTION, "--method", "nearby")
    assert asked.returncode != 0
    assert "method nearby (nearby:NOTHING) of the package nearby 1.0 cannot be used" in asked.stderr
    assert "Traceback" not in asked.stderr
    assert command("query", QUESTION, "--method", "bm25").returncode == 0


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in an interpreter of its own, which finds the packages of its path."""
    line = [sys.executable, "-m", "graphrag_pipeline.cli", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)


def installed(site: Path, place: str) -> None:
    """Write the page's module, and what an installation leaves beside it."""
    about = site / "nearby-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "nearby.py").write_text(blocks()[0])
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: nearby\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[graphrag_pipeline.methods]\nnearby = {place}\n")


@dataclass(frozen=True)
class Declared:
    """A parameter that is declared."""

    top_k: int = number(3)


@dataclass(frozen=True)
class Plain:
    """A parameter that is not."""

    top_k: int = 3


@dataclass(frozen=True)
class OfAnAsk:
    """A parameter whose name is taken by every question."""

    history: int = number(3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "local"}, "method local is there already"),
        ({"name": "auto"}, "method auto is there already"),
        ({"name": "My method"}, "a name is made of small letters"),
        ({"parameters": dict}, "parameters must be a dataclass"),
        ({"parameters": Plain}, "declare its parameter top_k by number"),
        ({"parameters": OfAnAsk}, "choose another name for its parameter history"),
        ({"prompt": "my_answer"}, "no prompt 'my_answer'"),
    ],
)
def test_what_could_not_be_asked_is_not_registered(wrong, said):
    right = {"name": "mine", "parameters": Declared, "summary": "", "retrieve": lambda *_: []}
    with pytest.raises(InputError, match=said):
        register_method(Method(**{**right, **wrong}))
    assert "mine" not in METHODS | MODEL_METHODS


def test_the_same_name_registered_again_replaces_the_method(page):
    again = Method(name="nearby", summary="", parameters=Declared, retrieve=lambda *_: [])
    register_method(again)
    assert METHODS["nearby"] is again


def test_what_a_method_loads_of_a_release_is_shared_by_all_questions(home):
    loads: list[str] = []

    def load(index: Release) -> int:
        loads.append(index.facts.id)
        return len(index.rows("SELECT id FROM chunks"))

    def retrieve(index: Release, question: str, p: NoParameters) -> list[Record]:
        assert index.once("loading: chunks", load) == index.facts.counts["n_chunks"]
        return []

    mine = Method(name="loading", summary="loads", parameters=NoParameters, retrieve=retrieve)
    register_method(mine)
    try:
        with QueryEngine(settings=settings_for(home)) as engine:
            engine.retrieve("Who?", "loading")
            engine.retrieve("When?", "loading")
            assert loads == [engine.index.facts.id]
        with QueryEngine(settings=settings_for(home)) as engine:
            engine.retrieve("Who?", "loading")
        assert len(loads) == 2
    finally:
        unregister_method("loading")
