"""Small local models: their size, by name or as a server tells it; a trial; who extracts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from model_server import Messages, ModelServer

from graphrag_pipeline.core.model_sizes import size_in
from graphrag_pipeline.core.prompting import load_examples
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.definitions import SettingsOnce
from graphrag_pipeline.extraction.model.by_schema import Example
from graphrag_pipeline.extraction.model.trial import learn_of_model
from graphrag_pipeline.index import Index
from graphrag_pipeline.planning.windows import said_of_extractor

LLAMA_CPP = {
    "/v1/models": {
        "object": "list",
        "data": [{"id": "model.gguf", "owned_by": "llamacpp", "meta": {"n_params": 630_167_424}}],
    }
}
OLLAMA = {
    "/v1/models": {"object": "list", "data": [{"id": "m"}, {"id": "n"}]},
    "/api/show": {"details": {"family": "llama", "parameter_size": "8.0B"}},
}


@contextmanager
def telling(answers: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Serve what a server says of itself; give its address, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.dumps(answers.get(self.path, {})).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_request(self, code: object = "-", size: object = "-") -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def local(home: Path, base_url: str = "http://localhost:9/v1", **llm: Any) -> Settings:
    return Settings(home=str(home), profile="local", llm={"base_url": base_url, **llm})


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("qwen2.5:1.5b-instruct-q4_K_M", 1.5),
        ("SmolLM2-135M-Instruct", 0.135),
        ("mixtral:8x7b", 56.0),
        ("/models/qwen2.5-coder-0.5b.gguf", 0.5),
        ("llama3.2", None),
        ("gemma3n:e2b", None),
        ("phi-3.5-mini", None),
        ("8.0B", 8.0),
    ],
)
def test_a_name_tells_the_size_of_a_model_or_nothing(name: str, size: float | None) -> None:
    assert size_in(name) == size


@pytest.mark.parametrize(
    ("model", "extractor"),
    [("qwen2.5:1.5b", "nlp"), ("llama3.1:8b", "llm"), ("llama3.1", "llm")],
)
def test_rules_extract_in_place_of_a_small_local_model(
    tmp_path: Path, model: str, extractor: str
) -> None:
    settings = local(tmp_path, model=model)
    assert settings.extraction.extractor == extractor
    assert settings.reports.writer == settings.query.answers == "llm"
    assert bool(list(said_of_extractor(settings))) == (extractor == "nlp")
    again = Settings(**settings.model_dump(mode="json"))
    assert again == settings


def test_who_asks_for_the_model_has_it_and_other_profiles_are_not_touched(tmp_path: Path) -> None:
    wanted = Settings(
        home=str(tmp_path),
        profile="local",
        extraction={"extractor": "llm"},
        llm={"model": "qwen2.5:1.5b"},
    )
    assert wanted.extraction.extractor == "llm"
    cloud = Settings(home=str(tmp_path), profile="llm", llm={"model": "tiny-1b"})
    assert cloud.extraction.extractor == "llm"


def test_the_model_that_extracts_counts_and_not_the_one_that_answers(tmp_path: Path) -> None:
    settings = Settings(
        home=str(tmp_path),
        profile="local",
        llm={"model": "qwen2.5:1.5b"},
        models={"large": {"model": "llama3.1:8b"}},
        roles={"extraction": "large"},
    )
    assert settings.extraction.extractor == "llm"


@pytest.mark.parametrize(("answers", "extractor"), [(LLAMA_CPP, "nlp"), (OLLAMA, "llm")])
def test_a_server_tells_the_size_and_the_home_remembers(
    tmp_path: Path, answers: dict[str, Any], extractor: str
) -> None:
    with telling(answers) as (address, _):
        assert learn_of_model(local(tmp_path, address, model="mine"))
        settings = local(tmp_path, address, model="mine")
        assert not learn_of_model(settings)
    assert settings.extraction.extractor == extractor
    small = "mine has 630 million parameters"
    assert settings.why_by_rule == (small if extractor == "nlp" else "")


def test_another_model_behind_the_same_name_is_seen(tmp_path: Path) -> None:
    answers = json.loads(json.dumps(LLAMA_CPP))
    with telling(answers) as (address, _):
        learn_of_model(local(tmp_path, address, model="mine"))
        assert local(tmp_path, address, model="mine").extraction.extractor == "nlp"
        answers["/v1/models"]["data"][0]["meta"]["n_params"] = 8_030_000_000
        assert learn_of_model(local(tmp_path, address, model="mine"))
        assert local(tmp_path, address, model="mine").extraction.extractor == "llm"


def good(messages: Messages) -> str:
    """A model that knows the graphs of the texts of the trial."""
    graph = next(
        example.records
        for example in (Example.first_of(load_examples(d)) for d in ("law", "medicine", "science"))
        if example.text in messages[1]["content"]
    )
    if "were found in it" in messages[0]["content"]:
        rows = [
            {"source": r.source, "target": r.target, "description": r.description}
            for r in graph.relationships
        ]
        return json.dumps({"relationships": rows})
    return json.dumps({"entities": [{"name": e.title, "type": e.type} for e in graph.entities]})


@pytest.mark.parametrize(
    ("mind", "reason"),
    [
        (good, ""),
        (lambda _: '{"entities": [], "relationships": []}', "mine found 0 of "),
        (lambda _: "I cannot.", "mine gave answers that could not be read"),
    ],
)
def test_a_model_of_unknown_size_is_tried_on_three_texts_once(
    tmp_path: Path, mind: Any, reason: str
) -> None:
    with ModelServer(mind) as server:
        assert learn_of_model(local(tmp_path, server.base_url, model="mine"))
        n_asked = len(server.asked())
        settings = local(tmp_path, server.base_url, model="mine")
        assert not learn_of_model(settings)
        assert len(server.asked()) == n_asked >= 3
    assert settings.why_by_rule.startswith(reason)
    assert bool(settings.why_by_rule) == bool(reason)
    assert settings.extraction.extractor == ("nlp" if reason else "llm")


def test_a_program_learns_of_its_model_before_it_extracts_and_so_does_the_next(
    tmp_path: Path,
) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "a.txt").write_text("Anna Berg works with Boris Claude at Orion Labs in Lyon.")

    def settings(server: ModelServer) -> Settings:
        return Settings(
            home=str(tmp_path / "home"),
            profile="local",
            llm={"base_url": server.base_url, "model": "mine"},
            reports={"writer": "extractive"},
            embeddings={"embedder": "hashing"},
        )

    with ModelServer(lambda _: "I cannot.") as server:
        index = Index(settings(server))
        # As a code location of Dagster holds them, from before anything was known.
        before = settings(server).as_set()
        assert index.settings.extraction.extractor == "llm"
        update = index.update(documents)
        assert index.settings.extraction.extractor == "nlp"
        assert Settings.exactly(before).extraction.extractor == "nlp"
    assert update.counts["entities"] >= 4
    stages = index.sql("SELECT DISTINCT stage FROM llm_calls")[1]
    assert ("extractions",) not in {tuple(row) for row in stages}


def test_a_code_location_of_dagster_asks_for_the_size_and_hands_on_what_it_decided(
    tmp_path: Path,
) -> None:
    def state(address: str) -> dict[str, Any]:
        def build(settings: Settings) -> dg.Definitions:
            raise AssertionError("no definitions are wanted")

        return SettingsOnce(lambda: local(tmp_path, address, model="m"), build, "t").fetch_state()

    with ModelServer(lambda _: "I cannot.") as server:
        unknown = state(server.base_url)
        assert server.asked() == []
    with telling(LLAMA_CPP) as (address, _):
        small = state(address)
    (tmp_path / "model_sizes.json").unlink()
    extractors = [Settings.exactly(each).extraction.extractor for each in (unknown, small)]
    assert extractors == ["llm", "nlp"]


def test_a_server_that_does_not_answer_decides_nothing(tmp_path: Path) -> None:
    with telling({}) as (address, _):
        pass
    settings = local(tmp_path, address, model="mine", max_retries=0)
    assert not learn_of_model(settings)
    assert not (tmp_path / "model_sizes.json").exists()
