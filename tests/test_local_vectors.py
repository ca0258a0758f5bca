"""What a plan says of vectors that a model on this machine makes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from index_process import update
from test_embedding import ReadsLittle
from typer.testing import CliRunner

from conftest import Engine
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.settings import EmbeddingSettings, Settings
from graphrag_pipeline.planning import local_vectors
from graphrag_pipeline.planning.local_vectors import LocalVectors
from graphrag_pipeline.planning.plan import plan_run


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("sentence_transformers")
    monkeypatch.setattr(
        library, "SentenceTransformer", lambda *_, **__: ReadsLittle(), raising=False
    )
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)


def engine_of(folder: Path, n: int) -> Engine:
    given = EmbeddingSettings(embedder="local", model="some/model", methods=("basic",))
    engine = Engine(folder, Settings(home=str(folder / ".graphrag"), embeddings=given))
    engine.write({f"{n}.txt": f"Alice Smith met Bob Jones on day {n}." for n in range(n)})
    return engine


def planned(engine: Engine) -> LocalVectors | None:
    return plan_run(engine.workspace, engine.inbox).local_vectors


def test_a_plan_says_how_many_texts_a_local_model_embeds_and_none_once_it_has(
    tmp_path: Path,
) -> None:
    engine = engine_of(tmp_path, 5)
    vectors = planned(engine)
    assert vectors is not None
    assert (vectors.texts, vectors.model) == (5, "some/model")
    update(engine)
    assert planned(engine) is None
    engine.write({"more.txt": "Carol Jones paid Alice Smith."})
    vectors = planned(engine)
    assert vectors is not None
    assert vectors.texts == 1


def test_the_time_planned_grows_with_the_texts_and_with_what_one_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(tmp_path, 40)
    for a_text in (0.5, 2.0):
        monkeypatch.setattr(local_vectors, "seconds_of", lambda _, texts, a=a_text: a * len(texts))
        vectors = planned(engine)
        assert vectors is not None
        assert vectors.seconds == pytest.approx(40 * a_text, rel=0.15)


def test_the_command_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(tmp_path, 3)
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "HOME": str(tmp_path / ".graphrag"),
        "EMBEDDINGS__EMBEDDER": "local",
    }.items():
        monkeypatch.setenv(f"GRAPHRAG_{name}", value)
    monkeypatch.setenv("GRAPHRAG_EMBEDDINGS__MODEL", "some/model")
    result = CliRunner().invoke(app, ["plan", str(engine.inbox)])
    assert result.exit_code == 0, result.output
    assert re.search(
        r"vectors +of about \d+ texts, made on this machine in about \d+ s", result.output
    )
