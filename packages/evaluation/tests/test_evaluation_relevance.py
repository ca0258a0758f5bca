"""Retrieved chunks labelled by a model: precision, and recall over clusters of relevant ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import read_experiment
from graphrag_evaluation.judging.relevance import (
    clusters_of,
    parse_label,
    relevance_scores,
)
from graphrag_evaluation.store import EvaluationStore
from model_server import Messages
from query_fixture import publish
from strict_server import StrictServer

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm import ModelOutputError


def test_precision_and_recall_over_clusters_are_those_counted_by_hand() -> None:
    # a and b are one cluster, c another; x is not relevant, z has no label.
    clusters = {"a": 0, "b": 0, "c": 1, "x": None}
    first = {"twice": ["a", "b", "x"], "all": ["x", "a", "c"], "unknown": ["a", "z"], "none": []}
    scores = {
        (answer, metric): value
        for answer, metric, value in relevance_scores(first, clusters, (1, 2, 3))
    }
    assert scores["twice", "precision@2"] == 1
    assert scores["twice", "precision@3"] == pytest.approx(2 / 3)
    assert scores["twice", "cluster_recall@3"] == 0.5
    assert scores["all", "precision@1"] == scores["all", "cluster_recall@1"] == 0
    assert scores["all", "cluster_recall@3"] == 1
    assert scores["unknown", "precision@1"] == 1
    assert ("unknown", "precision@2") not in scores
    assert not any(answer == "none" for answer, _ in scores)


def test_without_a_relevant_chunk_there_is_precision_and_no_recall() -> None:
    assert relevance_scores({"one": ["x"]}, {"x": None}, (5,)) == [("one", "precision@5", 0.0)]


def test_chunks_that_say_nearly_the_same_are_one_cluster() -> None:
    same = "The dam at Orlen was designed by Oskar Kovarna in the spring of that year"
    texts = [same, f"{same}, it is said", "Marie Curie was born in Warsaw", same]
    first, again, other, last = clusters_of(texts)
    assert first == again == last != other
    assert clusters_of([]) == []
    assert clusters_of(["one"]) == [0]


def test_a_label_is_true_or_false_in_words_or_not() -> None:
    assert parse_label('{"relevant": true}')["value"] == 1
    assert parse_label('{"relevant": "no"}')["value"] == 0
    with pytest.raises(ModelOutputError, match="true or false"):
        parse_label('{"relevant": "perhaps"}')


def test_each_chunk_is_labelled_once_for_a_question_whoever_retrieved_it(tmp_path: Path) -> None:
    home = publish(tmp_path / "home")
    (tmp_path / "asked.txt").write_text("Who was the clerk of Scrooge?")
    file = tmp_path / "labelled.toml"
    file.write_text(
        'questions = "asked.txt"\nmethods = ["bm25", "basic", "bm25:top_k=1"]\n'
        "retrieval_only = true\n[relevance]\nat = [1, 3]\n"
    )

    def says(messages: Messages) -> str:
        relevant = "Cratchit" in messages[-1]["content"]
        return json.dumps({"reasoning": "It names him.", "relevant": relevant})

    with StrictServer(says) as server:
        llm = {"base_url": server.base_url, "max_retries": 0}
        settings = Settings.model_validate({"home": str(home), "llm": llm})
        spec = read_experiment(file)
        assert plan_experiment(settings, spec).stages[0].calls == 9
        outcome = run_experiment(settings, spec)
        with EvaluationStore(home).read() as con:
            row = con.execute(
                "SELECT count(DISTINCT chunk) FROM (SELECT unnest(chunk_ids[:3]) AS chunk "
                "FROM answers)"
            ).fetchone()
        assert (outcome.gradings,) == row
        assert outcome.failures == ()
        assert run_experiment(settings, spec).gradings == 0
        assert [stage.calls for stage in plan_experiment(settings, spec).stages] == [0]
        assert len(server.requests) == outcome.gradings
    with EvaluationStore(home).read() as con:
        scores = con.execute(
            """SELECT condition, value FROM experiment_answers JOIN scores USING (answer_id)
               WHERE metric = 'precision@1' ORDER BY ALL"""
        ).fetchall()
    assert ("bm25", 1.0) in scores
    assert len(scores) == 3
