"""Answers of a few words, whatever the method, and what they score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graphrag_evaluation.evaluating import run_experiment
from graphrag_evaluation.experiment import read_experiment
from graphrag_evaluation.metrics.answers import NO_ANSWER, usual_scores
from graphrag_evaluation.store import EvaluationStore
from model_server import Messages
from query_fixture import publish
from query_player import play
from strict_server import StrictServer
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import METHODS, MODEL_METHODS, Ask, QueryEngine
from graphrag_pipeline.query.short_answers import NOT_IN_DOCUMENTS, RULE, short_form

QUESTION = "Who was the clerk of Scrooge?"
SHORT = "Bob Cratchit"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("short"))


def said(messages: Messages) -> str:
    """A model that is brief when it is told to be, and knows only one thing."""
    last = messages[-1]["content"]
    if RULE not in last:
        return play(messages)
    return f"He says:\nAnswer: {SHORT}" if QUESTION in last else NOT_IN_DOCUMENTS


def settings_for(home: Path, server: StrictServer, style: str = "full") -> Settings:
    query = {"answers": "llm", "answer_style": style}
    return Settings.model_validate(
        {"home": str(home), "query": query, "llm": {"base_url": server.base_url, "max_retries": 0}}
    )


def test_the_last_call_of_every_method_and_no_other_is_told_to_be_short(home: Path) -> None:
    with (
        StrictServer(said) as server,
        QueryEngine(settings=settings_for(home, server, "short")) as engine,
    ):
        for name in METHODS | MODEL_METHODS:
            before = len(server.requests)
            answer = engine.answer(QUESTION, name)
            asked = [r for r in server.requests[before:] if r.endpoint == "chat/completions"]
            if answer.generated:
                assert [RULE in r.text for r in asked] == [False] * (len(asked) - 1) + [True], name
                assert answer.text == f"{SHORT}\n", name
            else:
                assert answer.text == f"{NOT_IN_DOCUMENTS}\n", name


@pytest.mark.parametrize("method", ["zero_shot", "cot"])
def test_a_model_that_may_guess_is_not_told_to_say_that_it_does_not_know(home, method) -> None:
    with (
        StrictServer(lambda _: f"Answer: {SHORT}") as server,
        QueryEngine(settings=settings_for(home, server, "short")) as engine,
    ):
        for guess in (True, False):
            engine.answer(QUESTION, method, guess=guess)
            asked = server.requests[-1].text
            assert (NOT_IN_DOCUMENTS in asked) is not guess
            assert ("most likely" in asked) is guess
            assert ("make anything up" in asked) is not guess
            assert "as few words as possible" in asked


def test_one_question_can_be_answered_shortly_and_streamed(home: Path) -> None:
    with StrictServer(said) as server, QueryEngine(settings=settings_for(home, server)) as engine:
        assert engine.answer(QUESTION, "basic", answer_style="short").text == f"{SHORT}\n"
        assert engine.answer(QUESTION, "basic").text != f"{SHORT}\n"
        stream = engine.stream_answer(QUESTION, "basic", answer_style="short")
        assert SHORT in "".join(stream)


def test_the_command_answers_shortly(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StrictServer(said) as server:
        monkeypatch.setenv("GRAPHRAG_HOME", str(home))
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
        monkeypatch.setenv("GRAPHRAG_QUERY__ANSWERS", "llm")
        shown = CliRunner().invoke(app, ["query", QUESTION, "-m", "basic", "--short", "--json"])
    assert json.loads(shown.stdout)["text"] == f"{SHORT}\n"


def test_without_a_model_a_short_answer_is_refused(home: Path) -> None:
    with QueryEngine(settings=Settings(home=str(home))) as engine:
        with pytest.raises(InputError, match="a short answer needs a language model"):
            engine.answer(QUESTION, "bm25", answer_style="short")
        with pytest.raises(InputError, match="must be full or short"):
            Ask(question=QUESTION, answer_style="terse")


def test_a_condition_answers_shortly_beside_one_that_does_not(home: Path, tmp_path: Path) -> None:
    questions = [
        {"question": QUESTION, "answers": [SHORT]},
        {"question": "Where was Marie Curie born?", "answers": ["Warsaw"]},
        {"question": "Who is the king of Mars?", "answers": list(NO_ANSWER[:1])},
    ]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, questions)))
    file = tmp_path / "styles.toml"
    file.write_text(
        'questions = "asked.jsonl"\nmethods = ["basic"]\n[[condition]]\nname = "short"\n'
        'method = "basic"\nanswer_style = "short"\n'
    )
    with StrictServer(said) as server:
        settings = settings_for(home, server)
        assert run_experiment(settings, read_experiment(file)).answered.made == 6
        assert run_experiment(settings, read_experiment(file)).answered.made == 0
    with EvaluationStore(home).read() as con:
        rows = con.execute(
            """SELECT condition, metric, round(avg(value), 3) FROM scores
               JOIN experiment_answers USING (answer_id) JOIN conditions USING (condition)
               WHERE metric IN ('exact_match', 'f1', 'abstained') GROUP BY ALL"""
        ).fetchall()
    means = {(condition, metric): value for condition, metric, value in rows}
    # Right, not answered, and rightly not answered.
    assert means["short", "exact_match"] == means["short", "f1"] == 0.667
    assert means["short", "abstained"] == 0.667
    assert means["basic", "exact_match"] == means["basic", "abstained"] == 0


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Oslo", "Oslo\n"),
        ("Ilka was born there.\n\n**Answer:** Osmark\n", "Osmark\n"),
        ("Answer: a guess\nAnswer: Osmark", "Osmark\n"),
        ("So the answer is: Osmark.", "Osmark.\n"),
        ("Answer:\nOsmark", "Osmark\n"),
        ("Answer:", "Answer:\n"),
        ("", "\n"),
    ],
)
def test_a_short_answer_is_what_follows_the_reasoning(text: str, short: str) -> None:
    assert short_form(text) == short


@pytest.mark.parametrize(
    ("answer", "gold", "right", "abstained"),
    [
        (NOT_IN_DOCUMENTS, ["Insufficient information."], 1, 1),
        ("not in the documents.", NO_ANSWER, 1, 1),
        (NOT_IN_DOCUMENTS, ["Warsaw"], 0, 1),
        ("Warsaw", ["Insufficient information."], 0, 0),
        ("Warsaw", ["Warsaw"], 1, 0),
    ],
)
def test_an_abstention_is_right_where_the_gold_says_so(answer, gold, right, abstained) -> None:
    scores = usual_scores(answer, gold)
    assert (scores["exact_match"], scores["f1"], scores["abstained"]) == (right, right, abstained)
