"""Three files indexed and asked by a real small model, where a server of one can be had."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest
from llm_helpers import paid

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.home import Home

CORPUS = Path(__file__).parents[1] / "examples" / "corpus"
FILES = ("reference/orlen-dam.md", "reference/brandvik-line.md", "press/interview-orsolya-venn.txt")
URL = os.environ.get("REAL_MODEL_URL", "")
LEAST_NAMES, MOST_CALLS_OF_A_CHUNK = 3, 4
_NAMED = "SELECT count(*) FROM entity_chunks GROUP BY chunk_id"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not URL,
        reason="REAL_MODEL_URL names no server of a model, such as http://localhost:8080/v1",
    ),
]


def test_a_real_model_indexes_three_files_to_the_end_is_asked_once_and_cites_what_it_was_shown(
    tmp_path: Path,
) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    for name in FILES:
        shutil.copy(CORPUS / name, documents)
    settings = Settings(
        home=str(tmp_path / "home"),
        profile="local",
        llm={"base_url": URL, "model": "real", "concurrency": 1, "timeout_seconds": 3600},
        extraction={"extractor": "llm"},
        embeddings={"embedder": "hashing"},
        query={"max_context_tokens": 1500, "response_type": "one or two sentences"},
    )
    index = Index(settings)
    index.update(documents)
    calls = paid(Path(settings.home))
    # Each part of a chunk is asked for once, or once more after an answer that cannot be read.
    of_chunks = calls.filter(pl.col("stage") == "extractions")
    with duckdb.connect(str(Home(Path(settings.home)).index), read_only=True) as con:
        statuses = [row[0] for row in con.execute("SELECT status FROM extractions").fetchall()]
        named = [n for (n,) in con.execute(_NAMED).fetchall()]
    assert set(statuses) == {"ok"}
    assert len(of_chunks) <= MOST_CALLS_OF_A_CHUNK * len(statuses)
    assert len(named) == len(statuses)
    assert min(named) >= LEAST_NAMES
    index.update(documents)
    assert len(paid(Path(settings.home))) == len(calls)
    with index.open() as engine:
        answer = engine.answer("Who designed the Orlen Dam?", "basic")
    assert answer.generated
    assert any(character.isalpha() for character in answer.text.partition("[Data:")[0])
    shown = {citation.chunk_id for citation in answer.retrieval.citations}
    assert {citation.chunk_id for citation in answer.places} <= shown
