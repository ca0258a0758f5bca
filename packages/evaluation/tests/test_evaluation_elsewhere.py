"""Answers made elsewhere: judged and scored beside ours, refused with their place if broken."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import Experiment, read_experiment
from graphrag_evaluation.metrics.retrieval import IN_CONTEXT
from graphrag_evaluation.results import costs, means, question_scores
from graphrag_evaluation.store import EvaluationStore
from model_server import Messages
from query_fixture import publish
from strict_server import StrictServer
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings

CLERK, BORN = "Who was the clerk of Scrooge?", "Where was Marie Curie born?"
QUESTIONS = [
    {"question": CLERK, "answers": ["Bob Cratchit"]},
    {"question": BORN, "answers": ["Warsaw"]},
]
THEIRS = [
    {"question": CLERK, "condition": "theirs", "answer": "Bob Cratchit",
     "contexts": ["Bob Cratchit"]},
    {"question": BORN, "condition": "theirs", "answer": "Paris", "contexts": [{"text": "Paris"}]},
    {"question_text": CLERK, "condition": "one only", "answer": "Jacob Marley"},
]  # fmt: skip


def experiment(folder: Path, answers: str, *, more: str = 'methods = ["basic"]') -> Experiment:
    (folder / "asked.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    (folder / "theirs.jsonl").write_text(answers)
    file = folder / "beside.toml"
    file.write_text(f'questions = "asked.jsonl"\nanswers = ["theirs.jsonl"]\n{more}')
    return read_experiment(file)


def lines(*entries: object) -> str:
    return "\n".join(map(json.dumps, entries))


def always_first(messages: Messages) -> str:
    return json.dumps({"reasoning": "It says more.", "winner": 1})


def test_answers_made_elsewhere_are_scored_and_judged_beside_ours(tmp_path: Path) -> None:
    home = publish(tmp_path / "home")
    more = 'methods = ["basic"]\n[judge]\nreplicates = 1\ncriteria = ["overall"]'
    spec = experiment(tmp_path, lines(*THEIRS), more=more)
    with StrictServer(always_first) as server:
        llm = {"base_url": server.base_url, "max_retries": 0}
        settings = Settings.model_validate({"home": str(home), "llm": llm})
        before = plan_experiment(settings, spec)
        assert (before.conditions, before.to_make, before.reused) == (3, 5, 0)
        outcome = run_experiment(settings, spec)
        # Three pairs on the first question, one on the second, in both orders.
        assert (outcome.answered.made, outcome.verdicts) == (5, 8)
        again = run_experiment(settings, spec)
        assert (again.answered.made, again.answered.reused, again.verdicts) == (0, 5, 0)
    with EvaluationStore(home).read() as con:
        rows = means(question_scores(con, "beside")).rows(named=True)
        took = {row["condition"]: row for row in costs(con, "beside").rows(named=True)}
        spec_kept = con.execute("SELECT spec FROM experiments").fetchone()
    score = {(row["condition"], row["metric"]): row["mean"] for row in rows}
    assert score["theirs", "exact_match"] == 0.5
    assert score["theirs", "answer_in_context"] == 0.5
    assert score["one only", "exact_match"] == 0
    assert took["theirs"]["answers"] == 2
    assert took["theirs"]["cost"] is None
    assert spec_kept is not None
    assert "Jacob Marley" not in spec_kept[0]


def test_answers_made_elsewhere_need_no_index(tmp_path: Path) -> None:
    spec = experiment(tmp_path, json.dumps(THEIRS), more="")
    settings = Settings(home=str(tmp_path / "empty"))
    assert run_experiment(settings, spec).answered.made == 3
    with EvaluationStore(tmp_path / "empty").read() as con:
        assert {row["condition"] for row in costs(con, "beside").rows(named=True)} == {
            "theirs",
            "one only",
        }


def test_an_answer_without_contexts_is_not_said_to_lack_the_gold_answer(tmp_path: Path) -> None:
    answer = {"question": CLERK, "answer": "Bob Cratchit"}
    contexts = {"told": ["Bob Cratchit is the clerk."], "untold": [], "blank": [" "],
                "wrong": ["Nothing of him."]}  # fmt: skip
    entries = [{**answer, "condition": name, "contexts": c} for name, c in contexts.items()]
    spec = experiment(tmp_path, lines(*entries), more="")
    home = tmp_path / "empty"
    run_experiment(Settings(home=str(home)), spec)

    def in_context() -> dict[str, float]:
        with EvaluationStore(home).read() as con:
            rows = means(question_scores(con, "beside")).filter(pl.col("metric") == IN_CONTEXT)
        return {row["condition"]: row["mean"] for row in rows.rows(named=True)}

    assert in_context() == {"told": 1, "wrong": 0}
    # As a program has written it that took an unknown context for an empty one.
    with EvaluationStore(home).transaction() as con:
        con.execute(
            "INSERT OR REPLACE INTO scores SELECT a.answer_id, e.question_set, ?, 0, '' "
            "FROM answers a, experiments e WHERE a.context = ''",
            [IN_CONTEXT],
        )
    assert in_context()["untold"] == 0
    run_experiment(Settings(home=str(home)), spec)
    assert in_context() == {"told": 1, "wrong": 0}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (lines(THEIRS[0]) + "\n{", "theirs.jsonl, line 2: not valid JSON"),
        (lines(THEIRS[0], ["no"]), "line 2, 1: an object with a question and an answer"),
        (lines({"question": CLERK}), "line 1: no answer"),
        (lines({"answer": "Bob"}), "line 1: no question"),
        (lines({**THEIRS[0], "answer": 7}), "line 1: no answer"),
        (lines({**THEIRS[0], "contexts": [7]}), "line 1: contexts must be texts"),
        (lines({**THEIRS[0], "text": "?"}), "line 1: unknown field 'text'"),
        (lines(THEIRS[0], THEIRS[0]), "line 2: theirs has answered this question before, in"),
        ("", "holds no answer"),
    ],
)
def test_a_broken_file_is_told_with_its_row(tmp_path: Path, answers: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        experiment(tmp_path, answers)
    assert message in str(error.value)


def test_an_answer_to_no_question_of_the_set_is_told_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = {"question": "Who is the king of Mars?", "answer": "Nobody", "condition": "theirs"}
    experiment(tmp_path, lines(THEIRS[0], stranger), more="[judge]")
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "empty"))
    for command in ("plan", "run"):
        shown = CliRunner().invoke(app, ["eval", command, str(tmp_path / "beside.toml")])
        assert shown.exit_code != 0
        assert "theirs.jsonl, line 2: 'Who is the king of Mars?' is no question" in " ".join(
            shown.output.split()
        )


def test_a_condition_made_elsewhere_has_a_name_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two conditions are called 'basic'"):
        experiment(tmp_path, lines({**THEIRS[0], "condition": "basic"}))
