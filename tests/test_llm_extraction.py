"""Extraction by a model: which calls a chunk takes, and what is kept when one of them fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from llm_helpers import with_client
from model_server import Fault, Messages, ModelServer, Request, too_long, truncated

from graphrag_pipeline.config import ExtractionSettings
from graphrag_pipeline.extraction.llm import LlmExtraction, extract_llm

RECORD = '("entity"<|>Alice Smith<|>PERSON<|>a person)\n<|COMPLETE|>'
MISSED = '("entity"<|>Late Comer<|>PERSON<|>missed at first)\n<|COMPLETE|>'


def step_of(messages: Messages) -> str:
    last = messages[-1]["content"]
    if "Answer with one word" in last:
        return "check"
    return "glean" if "MANY records were missed" in last else "extract"


def mind(messages: Messages) -> str:
    return {"check": "YES", "glean": MISSED, "extract": RECORD}[step_of(messages)]


def when(step: str, fault: Fault) -> Any:
    return lambda request: fault if step_of(request.messages) == step else None


def extract(server: ModelServer, home: Path, texts: list[str], **given: Any) -> LlmExtraction:
    chunks = pl.DataFrame({"id": [f"c{n}" for n in range(len(texts))], "text": texts})
    chunks = chunks.with_columns(context=pl.lit(""), variant=pl.lit(None, pl.String))
    settings = ExtractionSettings(extractor="llm", **given)
    return with_client(
        server, home, lambda client: extract_llm(chunks, client, settings, batch="b"), concurrency=1
    )


def steps(server: ModelServer) -> list[str]:
    return [step_of(request.messages) for request in server.asked()]


def titles(found: LlmExtraction) -> set[str]:
    return set(found.found.entities["title"])


def test_nothing_is_asked_about_a_first_answer_that_cannot_be_read(tmp_path: Path) -> None:
    with ModelServer(mind, faults=when("extract", Fault(text="I am sorry."))) as server:
        found = extract(server, tmp_path, ["Alice Smith spoke."], claims=True)
    assert steps(server) == ["extract"]
    (outcome,) = found.outcomes.iter_rows(named=True)
    assert outcome["status"] == "failed"
    assert outcome["prompt_tokens"] == server.prompt_tokens
    assert "sorry" not in outcome["error"]


def test_what_was_read_stays_when_the_gleaning_cannot_go_on(tmp_path: Path) -> None:
    for step, asked in (("check", 2), ("glean", 3)):
        with ModelServer(mind, faults=when(step, too_long())) as server:
            found = extract(server, tmp_path / step, ["Alice Smith spoke."])
        assert len(server.requests) == asked
        assert found.outcomes["status"].to_list() == ["ok"]
        assert titles(found) == {"Alice Smith"}


def test_a_model_that_thinks_before_a_word_is_given_room_once_that_is_known(
    tmp_path: Path,
) -> None:
    def faults(request: Request) -> Fault | None:
        return truncated("") if "max_tokens" in request.body else None

    with ModelServer(mind, faults=faults) as server:
        found = extract(server, tmp_path, ["one", "two", "three", "four"])
    assert titles(found) == {"Alice Smith", "Late Comer"}
    assert found.outcomes["status"].to_list() == ["ok"] * 4
    checks = [request for request in server.asked() if step_of(request.messages) == "check"]
    assert sum("max_tokens" in request.body for request in checks) <= 2
