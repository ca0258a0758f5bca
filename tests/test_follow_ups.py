"""Questions that may come next: by a model, by rule, and never what was asked already."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model_server import ModelServer
from query_fixture import publish, settings_for
from query_player import play, step_of

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.follow_ups import follow_ups_by_rule

QUESTION = "Who was the clerk of Scrooge?"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def engine(home):
    with QueryEngine(home, settings=settings_for(home)) as opened:
        yield opened


@pytest.fixture
def ask(tmp_path):
    publish(tmp_path)

    def answer(mind, **given):
        with ModelServer(mind) as server:
            llm = {"base_url": server.base_url, "max_retries": 0}
            settings = Settings.model_validate(
                {"home": str(tmp_path), "query": {"answers": "llm"}, "llm": llm}
            )
            with QueryEngine(tmp_path, settings=settings) as opened:
                return opened.answer(QUESTION, "bm25", **given)

    return answer


def test_a_rule_asks_of_names_in_the_answer_that_were_not_asked_about(engine):
    answer = engine.answer(QUESTION, "bm25", follow_ups=9)
    assert "How is Bob Cratchit connected with Scrooge?" in answer.follow_ups
    assert not any(question.startswith("What is said of Scrooge") for question in answer.follow_ups)
    places = [
        answer.text.find(question.split(" connected")[0].removeprefix("How is "))
        for question in answer.follow_ups
        if question.startswith("How is")
    ]
    assert places == sorted(places)
    assert engine.answer(QUESTION, "bm25", follow_ups=1).follow_ups == answer.follow_ups[:1]
    assert engine.answer(QUESTION, "bm25").follow_ups == ()


def test_names_come_before_other_words_and_of_two_the_longer_one(engine, monkeypatch):
    (scrooge,) = op.entity_records(engine.index, op.entities_named_in(engine.index, "Scrooge", 1))
    titles = ("museum", "Courier", "Kelmouth Courier")
    found = [replace(scrooge, id=title, title=title) for title in titles]
    monkeypatch.setattr(op, "entity_records", lambda index, ranked: found if ranked else [])
    monkeypatch.setattr(
        op, "entities_named_in", lambda _, text, *__, **___: {"x": 1.0} if "museum" in text else {}
    )
    asked = follow_ups_by_rule(engine.index, "Who is Ida?", "A museum, the Kelmouth Courier", 9)
    assert asked == ("What is said of Kelmouth Courier?", "What is said of the museum?")


def test_what_was_asked_before_is_not_suggested_again(engine):
    history = [("user", "How is Bob Cratchit connected with Scrooge?"), ("assistant", "So.")]
    answer = engine.answer(QUESTION, "bm25", follow_ups=9, history=history)
    assert history[0][1] not in answer.follow_ups


def test_nothing_found_leads_to_nothing(engine):
    assert engine.answer("xyzzy?", "bm25", follow_ups=3).follow_ups == ()


def test_a_model_is_shown_the_conversation_and_the_answer_in_one_call_more(ask):
    asked = []

    def mind(messages):
        asked.append(messages)
        return play(messages)

    answer = ask(mind, follow_ups=3, history=[("user", "Who was Scrooge?"), ("assistant", "He.")])
    assert answer.calls == {"answer": 1, "follow up": 1}
    assert answer.follow_ups == ("Who was Tiny Tim?",)
    contents = [message["content"] for message in asked[-1]]
    assert "Who was Scrooge?" in contents
    assert answer.text.strip().splitlines()[0][:30] in contents[-1]


def test_where_a_model_suggests_nothing_readable_the_rule_does(ask):
    def mind(messages):
        return "No." if step_of(messages) == "next" else play(messages)

    answer = ask(mind, follow_ups=2)
    assert answer.follow_ups[0] == "How is Bob Cratchit connected with Scrooge?"
    assert answer.failures[0].startswith("follow up: ")


@pytest.mark.parametrize("n", [-1, 1.5, True, 1000])
def test_how_many_is_a_number(engine, n):
    with pytest.raises(InputError, match="follow_ups = "):
        engine.answer(QUESTION, "bm25", follow_ups=n)
