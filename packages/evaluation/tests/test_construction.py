"""Seconds of construction by method, from seconds of stages by hand; and of an index made here."""

from __future__ import annotations

from pathlib import Path

import pytest
from evaluation_fixture import Filled, fill
from graphrag_evaluation.paper import paper_of
from graphrag_evaluation.presets.construction import stages_needed
from graphrag_evaluation.presets.facts import note_facts
from graphrag_evaluation.presets.tables import PaperTable, tables_of
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.store import EvaluationStore

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.query import open_release

SECONDS = {
    "documents": 1.0, "chunks": 2.0, "extractions": 4.0, "resolution": 8.0, "graph": 16.0,
    "communities": 32.0, "reports_level_1": 64.0, "reports_level_0": 128.0,
    "chunks_vectors": 256.0, "entities_vectors": 512.0, "relationships_vectors": 1024.0,
    "community_reports_vectors": 2048.0, "hierarchies__raptor_tree": 4096.0,
    "raptor_nodes_vectors": 8192.0,
}  # fmt: skip
FRESH = {"indexes": 1, "releases": 1, "untimed": 0, "taken_over": 0, "cached_calls": 0}
TRIPLETS, LOCAL = "KG-GraphRAG (Triplets only)", "Community-GraphRAG (Local)"


def table_26(home: Path, seconds: dict[str, float], **origin: float) -> PaperTable:
    """Return table 26 of an experiment on an index whose stages took so long."""
    methods = {"RAG": "basic", TRIPLETS: "kg_triplets", LOCAL: "local"}
    fill(home, Filled("e", conditions=[*methods], questions=[Question("Who?")]))
    facts = [("seconds", *row) for row in seconds.items()]
    facts += [("indexing", *row) for row in (FRESH | origin).items()]
    with EvaluationStore(home).transaction() as con:
        for name, method in methods.items():
            con.execute("UPDATE conditions SET method = ? WHERE condition = ?", [method, name])
        con.executemany("INSERT INTO release_facts VALUES ('r1', ?, ?, ?)", facts)
    with EvaluationStore(home).read() as con:
        paper = paper_of("rag_vs_graphrag")
        (table,) = [t for t in tables_of(con, "e", paper, {}) if t.number == "Table 26"]
    return table


def test_a_method_takes_the_seconds_of_the_stages_that_it_needs(tmp_path: Path) -> None:
    table = table_26(tmp_path, SECONDS)
    assert {name: cells[0] for _, name, cells in table.measured} == {
        "RAG": 1 + 2 + 256,
        TRIPLETS: 1 + 2 + 4 + 8 + 16 + 512,
        LOCAL: 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256 + 512,
    }
    (line,) = [note for note in table.notes if note.startswith("seconds of construction")]
    assert line.endswith("from reading to vectors, of a fresh build")


def test_updates_are_not_said_to_be_a_fresh_build(tmp_path: Path) -> None:
    table = table_26(tmp_path, SECONDS, releases=3, untimed=1, cached_calls=1200, taken_over=2)
    (line,) = [note for note in table.notes if note.startswith("seconds of construction")]
    assert "of all 3 runs that published, not of a fresh build" in line
    assert "those of the first 1 runs were not kept" in line
    assert "1,200 calls were answered by what was paid before" in line
    assert "what was extracted elsewhere took its time there" in line


def test_an_index_from_before_seconds_were_kept_shows_none(tmp_path: Path) -> None:
    table = table_26(tmp_path, {"documents": 1.0, "chunks": 2.0, "extractions": 4.0})
    assert [cells[0] for _, _, cells in table.measured] == [None, None, None]
    assert any("made before they were kept" in note for note in table.notes)


@pytest.mark.parametrize(
    ("method", "with_it", "without"),
    [
        ("raptor", {"hierarchies__raptor_tree", "raptor_nodes_vectors"}, {"graph", "extractions"}),
        ("lightrag", {"graph", "relationships_vectors"}, {"communities", "reports_level_0"}),
        ("global", {"reports_level_1", "community_reports_vectors"}, {"chunks_vectors"}),
        ("zero_shot", set(), set(SECONDS)),
        ("of somebody else", set(SECONDS), set()),
    ],
)
def test_what_a_method_is_made_from_is_as_stages_declare_it(
    method: str, with_it: set[str], without: set[str]
) -> None:
    needed = set(stages_needed(method, SECONDS))
    assert with_it <= needed
    assert not without & needed


def test_an_index_made_here_tells_the_seconds_of_its_stages(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Mira Sorrel built the Orlen Dam with Oskar Kovarna.")
    settings = Settings.model_validate(
        {"home": str(tmp_path / "home"), "embeddings": {"dimensions": 32}}
    )
    Index(settings).update(folder)
    store = EvaluationStore(settings.home_path)
    with open_release(settings.home_path, settings=settings) as release:
        note_facts(store, release)
        rows = release.rows("SELECT stage, seconds FROM batch_stages UNION ALL "
                            "SELECT stage, seconds FROM stage_seconds")  # fmt: skip
    with store.read() as con:
        facts = con.execute("SELECT fact, item, value FROM release_facts").fetchall()
    seconds = {item: value for fact, item, value in facts if fact == "seconds"}
    origin = {item: value for fact, item, value in facts if fact == "indexing"}
    assert seconds == {row["stage"]: pytest.approx(row["seconds"]) for row in rows}
    assert {"documents", "chunks", "extractions", "graph", "communities"} <= seconds.keys()
    assert origin.items() >= FRESH.items()
