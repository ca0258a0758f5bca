"""Whole runs by a model that keeps to what is documented: every stage, every method, judging."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import Claims, Judge, experiment_of
from graphrag_evaluation.paper import paper_of
from graphrag_evaluation.presets.tables import PaperTable, tables_of_experiment
from graphrag_evaluation.question_writing.generating import (
    Numbers,
    describe_corpus,
    generate_questions,
)
from graphrag_evaluation.questions.question import Question, put_questions
from graphrag_evaluation.store import EvaluationStore
from strict_server import StrictServer

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.llm.ledger import calls_since, last_position
from graphrag_pipeline.query import METHODS, MODEL_METHODS, QueryEngine, open_release

# The played model says "Bob Cratchit was his clerk" of records, "In short: so" of points of parts.
GOLD = {
    "Brandvik Line: who was clerk of the Brandvik Line?": ("Bob Cratchit", "inference_query"),
    "Brandvik Line: whom did the Brandvik Line pay?": ("Bob Cratchit", "comparison_query"),
    "Brandvik Line: what did the Brandvik Line report?": ("In short", "null_query"),
}
# The one played high-level keyword is like no relationship: nothing is found, and nothing right.
FINDS_NOTHING = "HLightRAG"
BY_PARTS = {
    "GGraphRAG C1", "GGraphRAG", "GraphRAG+AC", "ArchRAG", "- Single-Layer", "- Entity-Only",
    "- Spec.", "- Spec. (No Aug)", "- Leiden",
}  # fmt: skip
ROOT = Path(__file__).parents[3]
QUESTION = "Who tended the Brandvik Line for Aldous Corrigan, and what did the Courier report?"


@dataclass(frozen=True)
class Built:
    """An index that a model on a strict server has made in all its parts."""

    settings: Settings
    server: StrictServer
    folder: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    played = importlib.import_module("benchmarks.played_answers")
    work = tmp_path_factory.mktemp("strict")
    folder = work / "docs"
    folder.mkdir()
    for file in sorted((ROOT / "examples" / "corpus" / "press").iterdir())[:2]:
        shutil.copy(file, folder)
    with pytest.MonkeyPatch.context() as patch, StrictServer(played.played_answer) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        settings = Settings(
            profile="llm",
            home=str(work / "home"),
            llm={"base_url": server.base_url, "retry_seconds": 0.005, "max_retries": 2},
            extraction={"claims": True, "passes": 2},
            graph={"max_description_tokens": 60},
            resolution={"method": "llm"},
            embeddings={"facts": True, "synonyms": True},
            hierarchies={"raptor": True, "attributed": True, "hirag": True},
        )
        Index(settings).update(folder)
        yield Built(settings, server, folder)


def test_a_whole_run_asks_nothing_that_is_refused_and_nothing_twice(built: Built) -> None:
    calls = calls_since(built.settings.home_path)
    assert set(calls["stage"]) >= {"extractions", "summaries", "community_reports", "embeddings"}
    assert calls["error"].drop_nulls().to_list() == []
    # But for the length of the vectors, which two answers in a row must say.
    assert built.server.paid_again() == 1
    index = Index(built.settings)
    for table in ("claims", "relationships", "community_reports"):
        _, [(count,)] = index.sql(f"SELECT count(*) FROM {table}")
        assert count, f"no {table}"
    assert index.status()["failed_chunks"] == 0


def test_a_run_with_nothing_to_do_makes_no_call(built: Built) -> None:
    asked = len(built.server.requests)
    plan = Index(built.settings).plan(built.folder)
    assert (plan.calls, plan.is_due) == (0, False)
    Index(built.settings).update(built.folder)
    assert len(built.server.requests) == asked


@pytest.fixture(scope="module")
def engine(built: Built) -> Iterator[QueryEngine]:
    with QueryEngine(built.settings.home_path, settings=built.settings) as opened:
        yield opened


@pytest.mark.parametrize("method", sorted(METHODS | MODEL_METHODS))
def test_each_method_answers(built: Built, engine: QueryEngine, method: str) -> None:
    position = last_position(built.settings.home_path)
    answer = engine.answer(QUESTION, method)
    calls = calls_since(built.settings.home_path, position)
    assert answer.text.strip()
    assert answer.failures == ()
    assert calls["error"].drop_nulls().to_list() == []
    assert len(calls)


def test_questions_are_thought_of_answered_examined_and_judged(built: Built) -> None:
    settings = built.settings
    store = EvaluationStore(settings.home_path)
    with open_release(settings.home_path, settings=settings) as release:
        description = describe_corpus(release)
    numbers = Numbers(personas=1, tasks=1, questions=2)
    made = generate_questions(store, settings, numbers, "made", description)
    assert len(made.questions) == 2
    with store.transaction() as con:
        put_questions(con, "asked", [*made.questions, Question(QUESTION)])
    experiment = experiment_of(
        "e", "asked", ["basic", "local"], judge=Judge(replicates=1), claims=Claims()
    )
    assert plan_experiment(settings, experiment).to_make == 6
    done = run_experiment(settings, experiment)
    assert done.failures == ()
    assert done.verdicts > 0
    assert done.claims > 0
    assert sum(stage.calls for stage in plan_experiment(settings, experiment).stages) == 0
    assert Home(settings.home_path).evaluation.exists()


def run_preset(built: Built, preset: str) -> tuple[dict[str, PaperTable], set[str]]:
    """Return the tables of a preset that was run to its end, and who answered."""
    store = EvaluationStore(built.settings.home_path)
    asked = [Question(text, (gold,), type=kind) for text, (gold, kind) in GOLD.items()]
    with store.transaction() as con:
        put_questions(con, preset, asked)
    experiment = experiment_of(preset, preset, [], preset=preset)
    done = run_experiment(built.settings, experiment)
    assert (done.failures, done.answered.failed, done.answered.errors) == ((), {}, {})
    assert done.answered.made + done.answered.reused == len(GOLD) * len(experiment.conditions)
    with store.read() as con:
        tables = {table.number: table for table in tables_of_experiment(con, preset)}
    paper = paper_of(preset)
    assert list(tables) == [*(t.number for t in paper.table), *(m.number for m in paper.missing)]
    assert sum(stage.calls for stage in plan_experiment(built.settings, experiment).stages) == 0
    return tables, {condition.name for condition in experiment.conditions}


def rows(table: PaperTable, label: str = "") -> dict[str, dict[str, object]]:
    return {
        name: dict(zip(table.columns, cells, strict=True))
        for heading, name, cells in table.measured
        if heading == label
    }


@pytest.mark.nightly
def test_the_tables_of_archrag_come_out_as_by_hand(built: Built) -> None:
    tables, answered = run_preset(built, "archrag")
    for number in ("Table 2", "Table 3", "Table 4", "Table 5"):
        for name, cells in rows(tables[number]).items():
            n_right = 0 if name == FINDS_NOTHING else 1 if name in BY_PARTS else 2
            right = n_right / 3 * 100 if name in answered else None
            shown = cells.get("Accuracy", cells.get("Acc"))
            assert shown == (right and pytest.approx(right)), (number, name)
            if name != FINDS_NOTHING:
                shown = cells.get("Recall", cells.get("Rec"))
                assert shown == (right and pytest.approx(right)), (number, name)
    assert not rows(tables["Table 3"]).keys() - answered
    taken = rows(tables["Figure 4"])
    assert (taken["Zero-shot"]["calls"], taken["BM25"]["calls"]) == (1, 1)
    assert taken["ArchRAG"]["calls"] > taken["Vanilla RAG"]["calls"]
    for criterion in ("comprehensiveness", "overall"):
        rates = rows(tables["Figure 3"], criterion)
        for one, cells in rates.items():
            assert all(cells[b] + rates[b][one] == pytest.approx(100) for b in rates)
    assert rows(tables["Table 1"])["all"]["Questions"] == 3
    assert not tables["Table 7"].is_empty


def test_the_tables_of_rag_against_graphrag_come_out_as_by_hand(built: Built) -> None:
    tables, answered = run_preset(built, "rag_vs_graphrag")
    assert len(answered) == 11
    for name, cells in rows(tables["Table 2"]).items():
        shown = [cells[kind] for kind in ("Inference", "Comparison", "Null", "Temporal", "Overall")]
        assert shown == [100, 100, 0, None, pytest.approx(200 / 3)], name
    for number in ("Table 1", "Table 13", "Table 15"):
        for name, cells in rows(tables[number]).items():
            assert cells["R"] == pytest.approx(200 / 3), (number, name)
            assert 0 < cells["P"] < cells["F1"] < cells["R"]
    local = "Community-GraphRAG (Local)"
    assert rows(tables["Figure 2"], "3 questions") == {
        "RAG right": {f"{local} right": pytest.approx(200 / 3), f"{local} wrong": 0},
        "RAG wrong": {f"{local} right": 0, f"{local} wrong": pytest.approx(100 / 3)},
    }
    for _, name, cells in tables["Figure 4"].measured:
        assert cells[0] + cells[1] == cells[2] + cells[3] == pytest.approx(100), name
    tokens = {name: cells["tokens"] for name, cells in rows(tables["Table 29"]).items()}
    assert tokens["RAG"] < tokens[local]
