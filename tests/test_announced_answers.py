"""Answers without a model from FAQ pages, lists, terms and introductions."""

import json
from pathlib import Path

import pytest
from query_fixture import publish, settings_for

from benchmarks.answers import Answered, describe, is_unrelated, passages_of
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence.announcements import announcements
from graphrag_pipeline.query.evidence.sentences import _short_spans
from graphrag_pipeline.query.evidence.widening import CHARS_EACH

FAQ = """Contents
1. How do I wind the ferry clock?
2. Can the ferry clock run under water?

1. How do I wind the ferry clock?

Turn the brass key seven times. Never force it.

2. Can the ferry clock run under water?

No, that is not foreseen.

3. How is the harbour bell rung?

The bellman pulls the rope.
"""
TABLE = """# Keys of the harbour office

The warden keeps the brass keys of the pier. They hang beside the door as follows:

| key | door | until |
|---|---|---|
| long | pier gate | midnight |
"""
LISTS = """Release 4.2 of Tidegauge adds these stations:

- Brandvik
- Svarthorn
- Port Rowan

Release 4.1 of Tidegauge was never published. Nobody in the office missed it.

The gauge is read again by the command

```
# tidegauge --read-again
```

CAP_SLUICE
       Open and close sluices in the harbour wall.

CAP_BUOY
       Move buoys and their anchors.
"""
TALK = """WELCOME: I'm your host, Ida Brandvik, Keeper of the Svarthorn light.

GUEST: Ida Brandvik asked me to come, and Ida Brandvik was right. Ida Brandvik knows the harbour.

A buoyline (also: trotline) is a rope between two buoys. The buoyline was cut in spring. Every
buoyline that the harbour has was bought by Ida Brandvik.
"""


@pytest.fixture(scope="module")
def harbour(tmp_path_factory):
    home = tmp_path_factory.mktemp("harbour")
    publish(home, documents={"FAQ": FAQ, "Keys": TABLE, "Notes": LISTS, "Talk": TALK})
    with QueryEngine(home, settings=settings_for(home)) as engine:
        yield engine


def points(engine, question, **options):
    return passages_of(engine.answer(question, "bm25", **options).text)


@pytest.mark.parametrize(
    ("question", "gold"),
    [
        ("Can the ferry clock run under water?", "No, that is not foreseen."),
        ("How do I wind the ferry clock?", "Turn the brass key seven times."),
        ("Which stations does release 4.2 of Tidegauge add?", "Port Rowan"),
        ("How is the gauge read again?", "tidegauge --read-again"),
        ("What does CAP_SLUICE allow?", "Open and close sluices"),
    ],
)
def test_what_a_question_a_list_a_command_or_a_term_announces_is_in_the_answer(
    harbour, question, gold
):
    (point,) = [point for point in points(harbour, question) if gold in point]
    assert point == points(harbour, question)[0]


def test_a_table_of_contents_is_no_answer(harbour):
    for point in points(harbour, "How do I wind the ferry clock?"):
        assert "ferry clock? 2." not in point


def test_a_heading_is_told_from_what_it_announces_and_no_head_of_a_table_without_its_rows(harbour):
    shown = points(harbour, "Who keeps the brass keys of the pier beside the door?")
    assert "Keys of the harbour office: The warden keeps the brass keys of the pier." in shown[0]
    assert not any("| key" in point and "midnight" not in point for point in shown)


@pytest.mark.parametrize(
    ("question", "gold"),
    [
        ("Who is Ida Brandvik?", "Keeper of the Svarthorn light"),
        ("What is a buoyline?", "a rope between two buoys"),
    ],
)
def test_who_or_what_something_is_comes_before_what_it_did(harbour, question, gold):
    assert gold in points(harbour, question)[0]


def test_few_passages_bring_what_follows_them_and_many_do_not(harbour):
    question = "Was release 4.1 of Tidegauge published?"
    (few,) = [point for point in points(harbour, question) if "never published" in point]
    assert "Nobody in the office missed it." in few
    (only,) = points(harbour, question, sentences=1)
    assert "Nobody" not in only


def test_what_lies_far_below_the_best_is_left_out(harbour):
    assert not any("bell" in point for point in points(harbour, "How do I wind the ferry clock?"))


def test_a_long_enough_answer_grows_only_by_new_words_of_the_question(tmp_path):
    same = "The lamp of the old pier was lit again by the wardens in the year of the long frost {}."
    text = " ".join(same.format(f"number {n} {'and ever ' * n}after") for n in range(1, 6))
    other = "The wardens wore blue coats on the old pier."
    publish(tmp_path, documents={"Pier": text, "Coats": other})
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        shown = points(engine, "Who lit the lamp of the old pier in blue coats?")
        assert other in shown
        longest = max(map(len, shown))
        assert sum(map(len, shown)) < 5 * CHARS_EACH + 2 * longest
        assert len(points(engine, "Who lit the lamp of the old pier?", context=1)) >= 1


def test_a_place_cited_is_what_is_announced_too(harbour):
    answer = harbour.answer("Can the ferry clock run under water?", "bm25", sentences=1)
    (cited,) = answer.citations
    assert FAQ[cited.start_char : cited.end_char] == cited.text
    assert cited.text.endswith("foreseen.")


@pytest.mark.parametrize(
    ("text", "announced"),
    [
        ("Why is it late? The tide is out.", {0: (1, True)}),
        ("Why is it late? Is it the tide? It is. So they say.", {0: (3, True), 1: (3, True)}),
        ("Why?\nWhen?\nWhere?", {}),
        ("It needs two things:\n- a rope\n- an anchor\n\nThe rest is easy.", {0: (2, True)}),
        ("It needs\n- a rope\n- an anchor", {0: (2, True)}),
        ("Anchors\n\nAn anchor holds a ship.", {0: (1, False)}),
        ("Anchors\n\nHeavy anchors\n\nAn anchor holds a ship.", {1: (2, False)}),
        ("ANCHOR\n    Holds a ship.\nROPE\n    Holds an anchor.", {0: (1, False), 2: (3, False)}),
        ("- a rope\n\n- an anchor\n\n- a buoy", {}),
        ("Anchors hold ships. Ropes hold anchors.", {}),
        ("What is an anchor?\n1.2.\nWhat is a rope?", {}),
        ("Tides\n\nThey rise.\n```python\nrise(1)\n```", {0: (1, False)}),
        ("Querida Lucía:\nCompré un ancla. La mudanza es hoy.", {}),
        ("Sehr geehrte Frau Kral:\nDer Anker ist da.", {}),
        ("My dear ship needs these two things and no more:\n- a rope", {0: (1, True)}),
    ],
)
def test_what_announces_what_follows(text, announced):
    assert announcements(text, sentence_spans(text)) == announced


def test_a_caption_is_whole_and_announces_nothing():
    text = "Anchors\n\nFigure 4.9. The anchor of a ship\n\nIt holds.\n\nTable 2. Rope\n\nIt holds."
    spans = _short_spans(text)
    assert [text[a:b] for a, b in spans][1] == "Figure 4.9. The anchor of a ship"
    assert announcements(text, spans) == {0: (2, False)}


def test_what_is_announced_ends_with_its_paragraph_and_is_not_long():
    text = "Why is it late?\n" + "The tide is out again. " * 20 + "\n\nThe end."
    spans = sentence_spans(text)
    (last, _) = announcements(text, spans)[0]
    assert 100 < spans[last][1] - spans[1][0] <= 200


def test_the_measure_counts_gold_length_and_unrelated_passages():
    assert is_unrelated("The sea is calm today.", "Who winds the ferry clock?", ["brass key"])
    assert not is_unrelated("A brass key.", "Who winds the ferry clock?", ["brass key"])
    assert not is_unrelated("The ferry clock stands.", "Who winds the ferry clock?", ["brass key"])
    group = [
        Answered("a?", ["x" * 100, "y" * 50], is_retrieved=True, is_answered=True, n_unrelated=1),
        Answered("b?", ["z" * 50], is_retrieved=True, is_answered=False, n_unrelated=0),
    ]
    assert describe("all", [group]).split() == ["all", "2/2", "1", "100", "0.33", "1/1", "0/1"]


def test_the_measure_asks_an_index_what_a_file_asks(tmp_path):
    from benchmarks.answers import answers

    publish(tmp_path / "home", documents={"FAQ": FAQ})
    questions = tmp_path / "questions.jsonl"
    rows = [
        {"question": "Can the ferry clock run under water?", "answers": ["that is not   FORESEEN"]},
        {"question": "Who painted the ferry clock?", "answers": ["a painter"]},
    ]
    questions.write_text("\n".join(map(json.dumps, rows)))
    first, second = answers(Path(tmp_path / "home"), questions, "bm25")
    assert first.is_retrieved
    assert first.is_answered
    assert not second.is_retrieved


def test_a_passage_does_not_go_on_with_what_it_says_already(tmp_path):
    line = "The pump at Kolding failed and Ebba Stormgaard fixed it at once. "
    publish(tmp_path, documents={"Log": 40 * line, "Note": "The pump at Rowan ran. It is old."})
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        (shown,) = points(engine, "Who fixed the pump at Kolding?")
        ran = points(engine, "Which pump at Rowan ran?")
    assert shown == line.strip()
    assert ran[0] == "The pump at Rowan ran. It is old."


@pytest.mark.parametrize(
    ("text", "n_announced"),
    [
        ("The pump has the following limits. First, it is slow. Second, it is loud.", 2),
        ("Die Pumpe hat folgende Grenzen. Sie ist langsam. Sie ist laut.", 2),
        ("They are as follows. It is slow.", 1),
        ("He came back the following year. It was slow. It was loud.", 0),
        ("Im folgenden Jahr kam er. Es war langsam.", 0),
        ("It was the following that he lacked in the north. It was slow.", 0),
        ("See the following section. It is slow.", 0),
    ],
)
def test_a_sentence_says_that_something_follows(text: str, n_announced: int) -> None:
    spans = sentence_spans(text)
    last, _ = announcements(text, spans).get(0, (0, False))
    assert last == n_announced
