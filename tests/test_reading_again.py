"""A reader of another version: what it reads alike is neither extracted nor paid for again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Engine
from index_process import by_model, update
from llm_helpers import stage_of
from model_server import ModelServer
from test_llm_pipeline import FILES, mind

from graphrag_pipeline.ingest import documents
from graphrag_pipeline.ingest.stages import pending_batches
from graphrag_pipeline.planning.plan import plan_run

PAGE = "<main><h1>Quarry</h1><p>Alice Smith met Bob Jones at the old quarry.</p></main>"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with ModelServer(mind) as server:
        yield server


@pytest.fixture
def engine(server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An index by a model that the reader before made, and that nobody has read again."""
    engine = by_model(tmp_path, server.base_url)
    engine.write({**FILES, "page.html": PAGE})
    update(engine)
    server.forget()
    monkeypatch.setattr(documents, "READER_VERSION", "next")
    return engine


def test_what_is_read_alike_is_read_again_but_not_extracted(
    engine: Engine, server: ModelServer
) -> None:
    before = engine.rows("SELECT id, human_readable_id, text FROM chunks ORDER BY id")
    plan = plan_run(engine.workspace, engine.inbox)
    assert (plan.documents, plan.to_extract, plan.calls) == (len(FILES) + 1, 0, 0)
    assert plan.is_due
    update(engine)
    assert server.asked() == []
    assert engine.rows("SELECT id, human_readable_id, text FROM chunks ORDER BY id") == before
    assert pending_batches(engine.workspace) == []
    assert not plan_run(engine.workspace, engine.inbox).is_due


def test_of_a_page_that_is_read_otherwise_only_its_chunks_are_paid_for(
    engine: Engine, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = documents.read_file

    def read_otherwise(path: Path, options: documents.ReadingOptions, *, data: bytes | None):
        changed = data.replace(b"the old quarry", b"the new quarry") if data else data
        return reading(path, options, data=changed if path.suffix == ".html" else data)

    monkeypatch.setattr(documents, "read_file", read_otherwise)
    assert plan_run(engine.workspace, engine.inbox).to_extract == 1
    update(engine)
    asked = [r for r in server.asked() if stage_of(r.messages) == "extract"]
    assert asked
    assert all("new quarry" in str(request.messages) for request in asked)
