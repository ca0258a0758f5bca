"""Whole runs by a model that keeps to what is documented: every stage, every method, judging."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from strict_server import StrictServer

from graphrag_pipeline import Index, Settings
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.evaluation.evaluate import plan_experiment, run_experiment
from graphrag_pipeline.evaluation.experiment import Claims, Judge, experiment_of
from graphrag_pipeline.evaluation.making.generating import (
    Numbers,
    describe_corpus,
    generate_questions,
)
from graphrag_pipeline.evaluation.questions.question import Question, put_questions
from graphrag_pipeline.evaluation.store import EvaluationStore
from graphrag_pipeline.llm.ledger import calls_since, last_position
from graphrag_pipeline.query import METHODS, MODEL_METHODS, QueryEngine, open_release

ROOT = Path(__file__).parents[1]
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
    assert built.server.paid_again() == 0
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


@pytest.mark.parametrize("method", sorted(METHODS | MODEL_METHODS))
def test_each_method_answers(built: Built, method: str) -> None:
    position = last_position(built.settings.home_path)
    with QueryEngine(built.settings.home_path, settings=built.settings) as engine:
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
