"""Experiments: read from a file, run on a real index, gone on with where they ended."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import (
    WORDS,
    Experiment,
    Judge,
    experiment_of,
    read_experiment,
)
from graphrag_evaluation.paper import paper_of
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.results import compare_results, costs, means, question_scores
from graphrag_evaluation.store import EvaluationStore
from model_server import ModelServer, unauthorized
from query_fixture import publish
from query_player import play
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm import TerminalModelError

QUESTIONS = [
    {"question": "Who was the clerk of Scrooge?", "answers": ["Bob Cratchit"],
     "passages": [{"title": "A Christmas Carol", "text": "Bob Cratchit worked as a clerk"}]},
    {"question": "Where was Marie Curie born?", "answers": ["Warsaw"],
     "passages": [{"title": "Marie Curie"}]},
]  # fmt: skip


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    return publish(tmp_path_factory.mktemp("evaluated"))


@pytest.fixture
def home(published) -> Path:
    for file in [*published.glob("evaluation.*"), *published.glob("llm*")]:
        file.unlink()
    return published


@pytest.fixture
def questions(tmp_path) -> str:
    file = tmp_path / "asked.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in QUESTIONS))
    return str(file)


def without_model(home: Path) -> Settings:
    return Settings.model_validate({"home": str(home)})


def with_model(home: Path, server: ModelServer) -> Settings:
    llm = {"base_url": server.base_url, "max_retries": 0}
    return Settings.model_validate({"home": str(home), "query": {"answers": "llm"}, "llm": llm})


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    return file


def test_a_file_gives_its_conditions_at_every_level_and_budget(tmp_path):
    file = written(
        tmp_path,
        """
        questions = "some set"
        methods = ["local", "bm25:top_k=3"]
        levels = [0, 1]
        context_tokens = [4000]
        [[condition]]
        name = "elsewhere"
        method = "basic"
        home = "../other"
        [judge]
        against = "elsewhere"
        """,
    )
    found = read_experiment(file)
    assert [(c.name, c.method, dict(c.parameters)) for c in found.conditions] == [
        ("local level 0", "local", {"level": 0, "max_context_tokens": 4000}),
        ("local level 1", "local", {"level": 1, "max_context_tokens": 4000}),
        ("bm25:top_k=3", "bm25", {"top_k": 3, "max_context_tokens": 4000}),
        ("elsewhere", "basic", {}),
    ]
    assert found.conditions[-1].home == (tmp_path / "../other").resolve()
    assert found.name == "experiment"
    assert found.judge == Judge(against="elsewhere")


def test_presets_are_the_papers_conditions():
    six = experiment_of("e", "q", [], preset="graphrag").conditions
    assert [c.name for c in six] == list(WORDS) == ["C0", "C1", "C2", "C3", "TS", "SS"]
    assert {c.parameters["max_context_tokens"] for c in six} == {8000}
    windows = experiment_of("e", "q", [], preset="context-window").conditions
    budgets = [c.parameters["max_context_tokens"] for c in windows]
    assert budgets == list(paper_of("context-window").context_tokens)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("questions = 3", "questions"),
        ("questions = 'q'\nmethod = ['local']", "method"),
        ("questions = 'q'", "needs conditions"),
        ("questions = 'q'\nmethods = ['locale']", "unknown method 'locale'"),
        ("questions = 'q'\nmethods = ['local', 'local']", "two conditions are called 'local'"),
        ("questions = 'q'\npreset = 'paper'", "use one of archrag, archrag-clusterings, "),
        ("questions = 'q'\nmethods = ['local']\n[judge]\nagainst = 'x'", "is no condition"),
        ("questions = 'q'\nmethods = ['local']\n[judge]\ncriteria = ['wit']", "'wit' is none of"),
        ("questions = 'q'\nmethods = ['local']\nwhere = {year = []}", "1 to 1,000 values"),
        ("questions = ", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_by_name_with_what_is_wrong(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as error:
        read_experiment(written(tmp_path, text))
    assert "experiment.toml" in str(error.value)


def test_without_a_model_answers_are_made_scored_and_not_made_again(home, questions):
    settings = without_model(home)
    experiment = experiment_of("plain", questions, ["bm25", "basic:top_k=2", "text_summary"])
    first = run_experiment(settings, experiment)
    assert (first.answered.questions, first.answered.made) == (2, 4)
    assert "language model" in first.answered.errors["text_summary"]
    again = run_experiment(settings, experiment)
    assert (again.answered.made, again.answered.reused, again.scores) == (0, 4, 0)
    with EvaluationStore(home).read() as con:
        took = costs(con, "plain")
        scores = question_scores(con, "plain")
    assert took["condition"].to_list() == ["bm25", "basic:top_k=2"]
    assert took["context_tokens"].min() > 0
    recall = means(scores).filter(condition="bm25", metric="recall@5").row(0, named=True)
    assert (recall["questions"], recall["mean"]) == (2, 1.0)


def test_another_experiment_uses_the_answers_there_are(home, questions):
    settings = without_model(home)
    run_experiment(settings, experiment_of("one", questions, ["bm25"]))
    two = run_experiment(settings, experiment_of("two", questions, ["bm25", "hybrid"]))
    assert (two.answered.made, two.answered.reused) == (2, 2)
    with EvaluationStore(home).read() as con:
        found = compare_results(con, "one", "two")
    assert {one.condition for one in found} == {"bm25"}
    assert all(one.difference == 0 and not one.is_sure for one in found)


def test_an_experiment_can_be_limited_to_documents(home, questions, tmp_path):
    file = written(
        tmp_path,
        f"""
        questions = "{questions}"
        methods = ["bm25"]
        where = {{title = "Marie Curie"}}
        [[condition]]
        name = "carol"
        method = "bm25"
        where = {{title = ["A Christmas Carol"]}}
        [[condition]]
        name = "no such document"
        method = "bm25"
        where = {{title = "Nowhere"}}
        """,
    )
    settings = without_model(home)
    whole = run_experiment(settings, experiment_of("whole", questions, ["bm25"]))
    done = run_experiment(settings, read_experiment(file))
    assert (whole.answered.made, done.answered.made) == (2, 4)
    assert done.answered.errors.keys() == {"no such document"}
    assert "no document has title = 'Nowhere'" in done.answered.errors["no such document"]
    with EvaluationStore(home).read() as con:
        scores = question_scores(con, "experiment").filter(metric="recall@5")
        told = dict(con.execute("SELECT condition, parameters FROM conditions").fetchall())
    carol, curie = (Question(each["question"]).id for each in QUESTIONS)
    rows = scores.select("condition", "question_id", "value").rows()
    assert {(name, id): value for name, id, value in rows} == {
        ("bm25", carol): 0,
        ("bm25", curie): 1,
        ("carol", carol): 1,
        ("carol", curie): 0,
    }
    assert json.loads(told["carol"])["where"] == {"title": ["A Christmas Carol"]}
    assert run_experiment(settings, read_experiment(file)).answered.made == 0


def test_why_a_condition_has_no_answer_is_kept_until_it_has(home, questions):
    def reasons():
        with EvaluationStore(home).read() as con:
            return con.execute("SELECT * FROM unanswered ORDER BY condition").fetchall()

    with ModelServer(lambda messages: "No list.") as server:
        experiment = experiment_of("why", questions, ["bm25", "global:level=0"])
        done = run_experiment(with_model(home, server), experiment)
        assert done.answered.failed.keys() == {"global:level=0"}
        ((name, (number, reason)),) = done.answered.failed.items()
        assert reasons() == [("why", name, number, reason)]
    with ModelServer(play) as server:
        run_experiment(with_model(home, server), experiment)
    assert reasons() == []


def test_a_model_is_asked_once_for_each_answer_and_the_plan_knew_it(home, questions):
    with ModelServer(play) as server:
        settings = with_model(home, server)
        experiment = experiment_of("written", questions, ["bm25", "global:level=0"])
        expected = plan_experiment(settings, experiment)
        assert server.requests == []
        done = run_experiment(settings, experiment)
        asked = len(server.requests)
        run_experiment(settings, experiment)
        assert len(server.requests) == asked
    assert (done.answered.made, done.answered.failed) == (4, {})
    assert sum(stage.calls for stage in expected.stages) == asked
    with EvaluationStore(home).read() as con:
        assert costs(con, "written")["written"].to_list() == [True, True]


def test_a_run_that_ends_early_keeps_what_was_answered(home, questions):
    experiment = experiment_of("w", questions, ["bm25"])
    with ModelServer(play) as server:
        settings = with_model(home, server)
        server.misbehave(lambda request: unauthorized() if "Curie" in request.text else None)
        with pytest.raises(TerminalModelError):
            run_experiment(settings, experiment)
        server.misbehave(lambda request: None)
        asked = len(server.requests)
        done = run_experiment(settings, experiment)
        assert len(server.requests) == asked + 1
    assert (done.answered.made, done.answered.reused) == (1, 1)


def test_the_command_tells_of_every_condition(home, questions, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    asked = ["eval", "run", "-q", questions, "-m", "bm25,basic", "--name", "by command"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "recall@5" in done.stdout
    told = CliRunner().invoke(app, ["eval", "results", "by command", "--json"])
    assert [row["condition"] for row in json.loads(told.stdout)["conditions"]] == ["bm25", "basic"]
    plan = ["eval", "plan", "-q", questions, "-m", "bm25"]
    assert "0 answers to make, 2 made before" in CliRunner().invoke(app, plan).stdout
    limited = CliRunner().invoke(app, [*plan, "--where", "title=Marie Curie"])
    assert "2 answers to make, 0 made before" in limited.stdout


def test_the_command_says_what_to_name(home, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    done = CliRunner().invoke(app, ["eval", "run"])
    assert done.exit_code == 2
    assert "--questions" in done.stderr
    assert CliRunner().invoke(app, ["eval", "results"]).exit_code == 2


def test_an_experiment_without_conditions_is_none():
    with pytest.raises(InputError, match="needs conditions"):
        experiment_of("e", "q", [])
    assert isinstance(experiment_of("e", "q", ["bm25"]), Experiment)


def test_old_names_of_what_the_page_shows_are_the_same_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"graphrag_evaluation\.evaluating now"):
        evaluating = importlib.import_module("graphrag_pipeline.evaluating")
    with pytest.warns(DeprecationWarning, match=r"graphrag_evaluation\.experiment now"):
        experiment = importlib.import_module("graphrag_pipeline.evaluation.experiment")
    assert evaluating.run_experiment is run_experiment
    assert experiment.experiment_of is experiment_of
