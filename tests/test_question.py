"""A question is its text, and what is read from it is read once, in the language of the texts."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter

import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline.core.text import asked_in, terms
from graphrag_pipeline.query import Ask, QueryEngine
from graphrag_pipeline.query import question as questions
from graphrag_pipeline.query.question import AnalysedQuestion

TEXT = "How many boats did Port Rowan and Bergen build in 1909?"


def test_it_is_its_text_wherever_a_text_is_taken() -> None:
    question = AnalysedQuestion(TEXT)
    assert question.terms
    for same in (question, copy.deepcopy(question), pickle.loads(pickle.dumps(question))):
        assert same == TEXT
        assert json.dumps({"query": same}) == json.dumps({"query": TEXT})
    assert AnalysedQuestion.of(question) is question


def test_terms_are_those_of_the_language_that_texts_are_compared_in() -> None:
    question = AnalysedQuestion("Wo liegen die Häuser?")
    with asked_in("de"):
        german = question.terms
    assert german == ("lieg", "haus")
    assert question.terms != german


def test_what_is_asked_is_read_by_rule() -> None:
    question = AnalysedQuestion(TEXT)
    assert question.asks_for == "number"
    assert "how many" not in question.without_quantity.lower()
    assert question.figures == ["1909"]
    assert AnalysedQuestion("Does x-axis beat well-known ones?").figures == ["x-axis"]
    assert AnalysedQuestion("Who is Ada King?").subject == "ada king"
    assert question.compared == []


@pytest.mark.parametrize("method", ["local", "bm25", "hipporag", "lightrag", "ppr", "auto"])
def test_no_method_analyses_a_question_twice(tmp_path, monkeypatch, method) -> None:
    publish(tmp_path)
    analysed: Counter[str] = Counter()
    analyse = questions.terms

    def counted(text: str) -> list[str]:
        analysed[text] += 1
        return analyse(text)

    monkeypatch.setattr(questions, "terms", counted)
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        answer = engine.answer(Ask(question="Where did Scrooge live?", method=method))
    assert answer.citations
    assert analysed["Where did Scrooge live?"] == 1


def test_polite_endings_of_japanese_say_nothing_of_what_is_asked_for() -> None:
    asked = AnalysedQuestion("誰がポンプを作りましたか。").terms
    assert {"ポン", "ンプ", "作り"} <= set(asked)
    assert set(asked).isdisjoint(terms("診てもらいましたか。"))
    assert AnalysedQuestion("どうですか").terms
