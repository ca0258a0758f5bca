"""A reader of another version: what it reads alike is neither extracted nor paid for again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from index_process import by_model, update
from llm_helpers import stage_of
from model_server import ModelServer
from test_llm_pipeline import FILES, mind

from conftest import Engine
from graphrag_pipeline.cli.plan import reread_documents
from graphrag_pipeline.ingest import documents
from graphrag_pipeline.ingest.reading import FORMATS, separate
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.planning.plan import plan_run
from graphrag_pipeline.planning.rereading import UNKNOWN
from graphrag_pipeline.planning.status import summarise

PAGE = "<main><h1>Quarry</h1><p>Alice Smith met Bob Jones at the old quarry.</p></main>"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModelServer, Path]]:
    """A server, and the folder of an index that was made with it."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch, ModelServer(mind) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        engine = by_model(folder, server.base_url)
        engine.write(FILES)
        engine.cut()
        engine.write({"page.html": PAGE, "core": "Not read."})
        update(engine)
        yield server, folder


@pytest.fixture
def server(built: tuple[ModelServer, Path], tmp_path: Path) -> ModelServer:
    """The server that the index in this test's folder was made with."""
    server, folder = built
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    server.forget()
    return server


@pytest.fixture
def engine(server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An index by a model that the reader before made, and that nobody has read again."""
    monkeypatch.setattr(documents, "READER_VERSION", "next")
    return by_model(tmp_path, server.base_url)


def test_what_is_read_alike_is_read_again_but_not_extracted(
    engine: Engine, server: ModelServer
) -> None:
    before = engine.rows("SELECT id, human_readable_id, text FROM chunks ORDER BY id")
    plan = plan_run(engine.workspace, engine.inbox)
    assert (plan.documents, plan.to_extract, plan.calls) == (len(FILES) + 1, 0, 0)
    assert plan.is_due
    assert plan.reread
    assert plan.reread.reasons == ["the reader of this program has changed"]
    assert (plan.reread.documents, plan.reread.changed) == (len(FILES) + 1, 0)
    update(engine)
    assert server.asked() == []
    assert engine.rows("SELECT id, human_readable_id, text FROM chunks ORDER BY id") == before
    assert pending_batches(engine.workspace) == []
    assert not plan_run(engine.workspace, engine.inbox).is_due


def test_of_a_page_that_is_read_otherwise_only_its_chunks_are_paid_for(
    engine: Engine, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = separate.read_file

    def read_otherwise(path: Path, options: documents.ReadingOptions, *, data: bytes | None):
        changed = data.replace(b"the old quarry", b"the new quarry") if data else data
        return reading(path, options, data=changed if path.suffix == ".html" else data)

    monkeypatch.setattr(separate, "read_file", read_otherwise)
    engine.write({"new.txt": "Hugo White came."})
    plan = plan_run(engine.workspace, engine.inbox)
    assert plan.to_extract == 2
    assert plan.reread
    again, stage = plan.reread, plan.stages[0]
    assert (again.documents, again.changed, again.kinds) == (len(FILES) + 1, 1, {".html": 1})
    assert (again.examples, again.chunks, again.to_extract) == (["documents/page.html"], 1, 1)
    assert stage.cost is not None
    assert again.cost is not None
    assert 0 < again.cost < stage.cost
    assert "1 comes out differently (.html 1): 1 of 1 chunk is" in reread_documents(again)
    engine.write({"new.txt": None})
    update(engine)
    asked = [r for r in server.asked() if stage_of(r.messages) == "extract"]
    assert asked
    assert all("new quarry" in str(request.messages) for request in asked)


def test_a_page_whose_code_is_marked_otherwise_comes_out_otherwise_and_is_not_paid_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = separate.read_file

    def mark_nothing(path: Path, options: documents.ReadingOptions, *, data: bytes | None):
        result = reading(path, options, data=data)
        plain = [replace(document, blocks=()) for document in result.documents]
        return replace(result, documents=plain)

    monkeypatch.setattr(separate, "read_file", mark_nothing)
    plan = plan_run(engine.workspace, engine.inbox)
    assert plan.reread
    assert (plan.reread.examples, plan.reread.to_extract, plan.calls) == (
        ["documents/page.html"],
        0,
        0,
    )


def test_a_changed_reader_reads_only_batches_with_files_of_its_kind_again(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = by_model(tmp_path, server.base_url)
    assert pending_batches(engine.workspace) == []
    html = FORMATS.find("html")
    changed = replace(html, versions={**html.versions, "HTML": "999"})
    monkeypatch.setitem(FORMATS._loaded, "html", changed)
    (pending,) = pending_batches(engine.workspace)
    changes = engine.workspace.batches.get(pending).changes
    assert "documents/page.html" in {change.uri for change in changes}
    assert summarise(engine.workspace)["pending_because"] == ["the reader of HTML files changed"]
    update(engine)
    assert pending_batches(engine.workspace) == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"input": {"ocr": True}}, "settings of [input] have changed"),
        ({"chunks": {"size": 300, "overlap": 0}}, "settings of [chunks] have changed"),
    ],
    ids=str,
)
def test_status_says_why_files_are_read_again_and_not_once_they_were(
    server: ModelServer, tmp_path: Path, given: dict[str, Any], reason: str
) -> None:
    engine = by_model(tmp_path, server.base_url)
    assert summarise(engine.workspace)["pending_because"] == []
    other = by_model(tmp_path, server.base_url, **given)
    assert reason in summarise(other.workspace)["pending_because"]
    update(other)
    assert summarise(other.workspace)["pending_because"] == []
    assert plan_run(other.workspace, other.inbox).reread is None


def test_of_an_index_made_before_reasons_were_kept_it_is_said_that_something_changed(
    engine: Engine,
) -> None:
    with engine.workspace.store.transaction() as con:
        con.execute("UPDATE batch_stages SET version = 'f00'")
    assert summarise(engine.workspace)["pending_because"] == [UNKNOWN]
