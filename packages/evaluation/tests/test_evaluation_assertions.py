"""Assertions written from the corpus, answers checked by them, and conditions compared."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import Experiment, read_experiment
from graphrag_evaluation.judging.permutation import permutation_p, permutation_tests
from graphrag_evaluation.store import EvaluationStore
from model_server import Messages
from query_fixture import publish
from strict_server import StrictServer
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings

QUESTIONS = ("Who was the clerk of Scrooge?", "Where was Marie Curie born?")
ANSWERS = {"theirs": ("Bob Cratchit, a clerk.", "Nobody knows."), "blank": ("No.", "No.")}
SENTENCE = re.compile(r"^(\d+)\. (.*(?:Cratchit|Curie).*)$", re.MULTILINE)


def experiment(folder: Path, methods: str = '"basic"') -> Experiment:
    (folder / "asked.txt").write_text("\n".join(QUESTIONS))
    rows = [
        {"condition": name, "question": question, "answer": answer}
        for name, answers in ANSWERS.items()
        for question, answer in zip(QUESTIONS, answers, strict=True)
    ]
    (folder / "theirs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    file = folder / "asserted.toml"
    file.write_text(
        f'questions = "asked.txt"\nmethods = [{methods}]\nanswers = ["theirs.jsonl"]\n'
        "[assertions]\nper_question = 2\npassages = 3\n"
    )
    return read_experiment(file)


def said(messages: Messages) -> str:
    """Two assertions with a source and one without; an answer meets what it has a name of."""
    last = messages[-1]["content"]
    if "Write up to" in messages[0]["content"]:
        number, sentence = SENTENCE.findall(last)[0]
        given = [
            {"statement": sentence, "sources": [int(number), 999]},
            {"statement": "It rests on nothing.", "sources": [999]},
            {"statement": "It is known.", "sources": [int(number)]},
            {"statement": "It is one too many.", "sources": [int(number)]},
        ]
        return json.dumps({"assertions": given})
    return json.dumps({"met": [1, 7] if "Bob Cratchit, a clerk." in last else []})


def test_assertions_have_sources_and_answers_are_checked_by_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = publish(tmp_path / "home")
    spec = experiment(tmp_path)
    with StrictServer(said) as server:
        llm = {"base_url": server.base_url, "max_retries": 0}
        settings = Settings.model_validate({"home": str(home), "llm": llm})
        stages = plan_experiment(settings, spec).stages
        assert [(s.stage, s.calls) for s in stages] == [("assertions", 2), ("assertion checks", 6)]
        outcome = run_experiment(settings, spec)
        assert (outcome.gradings, outcome.failures) == (8, ())
        assert run_experiment(settings, spec).gradings == 0
        assert [stage.calls for stage in plan_experiment(settings, spec).stages] == [0, 0]
        assert len(server.requests) == 8
    with EvaluationStore(home).read() as con:
        sets = con.execute("SELECT question, assertions FROM assertion_sets").fetchall()
        scores = con.execute(
            """SELECT condition, list(value ORDER BY question_id) FROM experiment_answers
               JOIN scores USING (answer_id) WHERE metric = 'assertions_met'
               GROUP BY ALL ORDER BY ALL"""
        ).fetchall()
    assert {question for question, _ in sets} == set(QUESTIONS)
    for _, listed in sets:
        # The one without a sentence is left out, and so is the one beyond the limit.
        assert [item["statement"] for item in listed][1:] == ["It is known."]
        assert listed[0]["sources"] == [listed[0]["statement"]]
    assert [(name, sorted(values)) for name, values in scores] == [
        ("basic", [0.0, 0.0]),
        ("blank", [0.0, 0.0]),
        ("theirs", [0.0, 0.5]),
    ]
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    shown = CliRunner().invoke(app, ["eval", "results"])
    assert "blank less theirs is -0.250 over 2 questions, p = 1" in " ".join(shown.stdout.split())


def test_assertions_need_an_index(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "empty"))
    with pytest.raises(InputError, match="written from an index: name a method"):
        plan_experiment(settings, experiment(tmp_path, methods=""))


def test_few_clusters_are_permuted_exactly() -> None:
    """Of 2^5 ways to give five equal differences a sign, two are as far from zero as all alike."""
    assert permutation_p([1.0] * 5) == 2 / 32
    assert permutation_p([0.5, -0.5]) == 1
    assert permutation_p([0.0, 0.0]) == 1
    differences = [0.3, -0.1, 0.25, 0.4, 0.0]
    signs = product((1, -1), repeat=5)
    as_far = [abs(np.dot(s, differences)) >= sum(differences) - 1e-12 for s in signs]
    assert permutation_p(differences) == pytest.approx(np.mean(as_far))


def test_many_clusters_are_permuted_at_random_and_the_same_each_time() -> None:
    same = [1.0] * 30
    assert permutation_p(same) == permutation_p(same) == pytest.approx(1 / 10_001)
    even = [1.0, -1.0] * 15
    assert permutation_p(even) == 1


def test_a_question_is_one_observation_whatever_was_measured_of_it() -> None:
    """Ten values of one question that all say the same are not ten questions."""
    rows = [
        (name, "q1", "m", value) for name, value in (("a", 1.0), ("b", 0.0)) for _ in range(10)
    ] + [("a", "q2", "m", 1.0), ("b", "q2", "m", 0.0), ("c", "q2", "m", 1.0)]
    frame = pl.DataFrame(rows, ["condition", "question_id", "metric", "value"], orient="row")
    tests = {(t.condition_a, t.condition_b): t for t in permutation_tests(frame, "m")}
    assert tests["a", "b"].questions == 2
    assert tests["a", "b"].p == 0.5
    assert tests["a", "b"].p_corrected == 1
    assert tests["a", "c"].difference == 0
