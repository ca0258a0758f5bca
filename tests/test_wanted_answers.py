"""Answers without a model hold what is asked for, also where another sentence says it."""

import duckdb
import pytest
from query_fixture import publish, settings_for

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence.answer_kinds import shares_written
from graphrag_pipeline.query.question import AnalysedQuestion

SLUICE = """The sluice of Svarthorn has a limited capacity. Every capacity of the sluice is told to
the warden, and the capacity of the sluice is written down. It was built of oak. Its
capacity is 312 barrels.

The lock failed open when the tide turned. It was shut by hand. Nobody was hurt, as it was in 1909.

The lock failed open once more, but that was a rumour of the pilots.
"""
NEWS = """The release of Tidegauge 4.3 has new buoys. The release of Tidegauge 4.3a has new lamps.

* gauge: handle leading zeroes in the tide table
* Nobody in the office handled leading zeroes of the gauge before.
"""
STEPS = {
    "Anna Marisol": "The Anna Marisol is a barquentine that was built at the Gudrun Yard.",
    "Gudrun Yard (Bergen)": "All of it was owned by Ole Moen until the flood. Its slips were long.",
    "Other Yard": "The Other Yard has two slips and a crane for each barquentine.",
}
SOURCES = {
    "Notes": "The second source called herself Heron. She sent copies of delivery notes. "
    "Only at the hearing did Marie Curie say in public that she was Heron.",
    "Prize": "In a speech the paper was thanked, and a source called Heron.",
    "Piano": "The tuner of the piano knew Marie Curie.",
    "Register": "Marie Curie, born in 1867 in Warsaw, is a chemist who worked in a cold shed.",
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    home = tmp_path_factory.mktemp("sources")
    publish(home, documents=SOURCES)
    with QueryEngine(home, settings=settings_for(home)) as engine:
        yield engine


@pytest.fixture(scope="module")
def harbour(tmp_path_factory):
    home = tmp_path_factory.mktemp("harbour")
    publish(home, documents={"Sluice": SLUICE, "News": NEWS, **STEPS})
    with QueryEngine(home, settings=settings_for(home)) as engine:
        yield engine


def points(engine, question, **options):
    return passages_of(engine.answer(question, "bm25", **options).text)


def test_who_asks_what_a_measure_is_is_told_its_number(harbour):
    (point,) = points(harbour, "What is the capacity of the sluice of Svarthorn?", sentences=1)
    assert point.endswith("312 barrels.")


def test_a_passage_goes_on_to_the_sentence_near_that_holds_what_is_asked_for(harbour):
    question = "When did the lock failed open as the tide turned?"
    (first,) = points(harbour, question, sentences=1)
    assert first.startswith("The lock failed open when")
    assert "1909" in first


def test_figures_are_those_of_the_question_as_they_are_written(harbour):
    (point,) = points(harbour, "How was the release of Tidegauge 4.3a?", sentences=1)
    assert "lamps" in point
    assert shares_written(
        AnalysedQuestion("Is it 3.3a?"), ["It is 3.3a.", "It is 3.3.", "It is 3.3a.1"]
    ) == [1, 0, 0]
    assert shares_written(
        AnalysedQuestion("Is it 3.3?"), ["It is 3.3.", "It is 3.3a.", "It is 13.3."]
    ) == [
        1,
        0,
        0,
    ]


def test_an_item_of_a_list_that_is_no_whole_sentence_can_be_the_answer(tmp_path):
    publish(tmp_path, documents={"News": NEWS})
    place = NEWS.index("* gauge")
    with duckdb.connect(str(tmp_path / "published.duckdb")) as con:
        con.execute(
            "INSERT INTO blocks SELECT id, ?, ?, 'list', 'b' FROM documents", [place, len(NEWS)]
        )
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as engine:
        shown = points(engine, "How are leading zeroes in the tide table of the gauge handled?")
    assert any("handle leading zeroes" in point for point in shown)


def test_what_the_best_sentence_leads_to_by_its_title_is_in_the_answer(harbour):
    question = "Who owned the place where the Anna Marisol was built?"
    shown = passages_of(harbour.answer(question, "bm25", sentences=3).text)
    assert "built at the Gudrun Yard" in shown[0]
    assert "owned by Ole Moen" in shown[1]


def test_who_asks_for_one_who_is_described_is_told_a_name(sources):
    (point,) = points(sources, "Who was the source called Heron?", sentences=1)
    assert "Marie Curie" in point


def test_what_is_inserted_between_a_name_and_what_it_is_stands_in_nobodys_way(sources):
    assert points(sources, "Who is Marie Curie?")[0].startswith("Marie Curie, born")
