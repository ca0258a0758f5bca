"""Recall where passages are documents: chunks of one document count as one."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from graphrag_evaluation.metrics.retrieval import BY_DOCUMENT, chunks_of, document_scores
from graphrag_evaluation.metrics.retrieval import retrieval_scores as chunk_scores

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.query import open_release
from graphrag_pipeline.store.index_store import memory_database

LONG = " ".join(f"The ferry {n} left Kelmouth at dawn." for n in range(60))
TEXTS = {
    "a.txt": f"{LONG} Mira Sorrel kept the log.",
    "b.txt": "Oskar Kovarna built the Orlen Dam.",
    "c.txt": "Lin Ruolan wrote of the Orlen Dam.",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    work = tmp_path_factory.mktemp("documents")
    folder = work / "docs"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    settings = Settings.model_validate(
        {
            "home": str(work / "home"),
            "embeddings": {"dimensions": 32},
            "chunks": {"size": 100, "overlap": 0},
        }
    )
    Index(settings).update(folder)
    return settings


def scores_of(settings: Settings, passages: list[tuple[str, str]]) -> list[dict[str, float]]:
    """Return scores by chunks and by documents: of a.txt all chunks come first, then b and c."""
    with open_release(settings.home_path, settings=settings) as release:
        rows = release.rows(
            "SELECT c.id, d.uri FROM chunks c JOIN documents d ON d.id = c.document_id "
            "ORDER BY d.uri, c.ordinal"
        )
        ids = [row["id"] for row in rows]
        assert sum(Path(row["uri"]).name == "a.txt" for row in rows) >= 5
        gold = [{"title": title, "text": text} for title, text in passages]
        asked = pl.DataFrame({"answer_id": ["x"], "chunk_ids": [ids], "passages": [gold]})
        with memory_database() as con:
            by_chunk = chunk_scores(con, asked.to_arrow(), chunks_of(release, ids))
            by_document = document_scores(con, asked, release)
    return [{name: value for _, name, value in each} for each in (by_chunk, by_document)]


def test_documents_are_counted_where_the_first_of_their_chunks_comes(settings: Settings) -> None:
    by_chunk, by_document = scores_of(settings, [("b.txt", ""), ("c.txt", "Lin Ruolan")])
    assert by_chunk["recall@2"] == by_chunk["recall@5"] == 0
    assert by_document == {
        "document_recall@2": 0.5, "document_recall@5": 1, "document_recall@10": 1,
        "document_recall@20": 1,
    }  # fmt: skip
    assert by_document.keys() == set(BY_DOCUMENT)


def test_a_document_is_a_passage_by_its_whole_text(settings: Settings) -> None:
    middle = TEXTS["a.txt"]
    across = middle[middle.index("The ferry 5 ") : middle.index("The ferry 8 ")]
    inside = "at dawn. Mira Sorrel kept the log."
    passages = [("", across), ("", inside), ("", "is in no document"), ("b.txt", "Orlen Dam")]
    _, by_document = scores_of(settings, passages)
    assert by_document["document_recall@2"] == 0.75


def test_a_title_alone_is_not_enough_where_the_text_is_anothers(settings: Settings) -> None:
    _, by_document = scores_of(settings, [("b.txt", "Lin Ruolan wrote")])
    assert set(by_document.values()) == {0}
