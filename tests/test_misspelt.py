"""Words of a question that no document says: misspelt ones, and names that are not there."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from asked_files import index_asked

from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.misspelt import as_spelt

FILES = {
    "gateway.md": "# Payments\n\nThe gateway is restarted by the operator on Mondays at dawn. Its "
    "certificates were renewed in May. Retention of the logs is two years.\n",
    "xerox.md": "# Copiers\n\nXerox was founded in Rochester by Chester Carlson, who sold copiers "
    "to offices. The report was written by Ida Brandvik.\n",
    "bruecke.md": "# Die Zugbrücke\n\nDie Zugbrücke wurde 1931 von der Stadt gebaut und ist seit "
    "dem Frühjahr für den Verkehr gesperrt, weil das Geländer nicht mehr sicher ist.\n",
    "most.md": "# Разводной мост\n\nРазводной мост построили в 1931 году, и с тех пор он не был "
    "закрыт, потому что его механизм работает без остановки.\n",
    "code.md": "# Codes\n\nThe code of the pump is XJ4000. Call start_pump to begin.\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "written", "read", "file"),
    [
        ("How do I restart the gatway?", "gatway", "gateway", "gateway.md"),
        ("How do I restart the gaetway?", "gaetway", "gateway", "gateway.md"),
        ("Who restarts the gattewway?", "gattewway", "gateway", "gateway.md"),
        ("When were the certifcates renewed?", "certifcates", "certificates", "gateway.md"),
        ("When were the cetrificcates renewed?", "cetrificcates", "certificates", "gateway.md"),
        ("Who founded Xerrox?", "Xerrox", "Xerox", "xerox.md"),
        ("Wann wurde die Zugbrüke gebaut?", "Zugbrüke", "Zugbrücke", "bruecke.md"),
        ("Когда построили механзим моста?", "механзим", "механизм", "most.md"),
    ],
)
def test_a_misspelt_word_is_read_as_the_one_that_documents_say_and_the_answer_says_so(
    asked: QueryEngine, question: str, written: str, read: str, file: str
) -> None:
    answer = asked.answer(question)
    assert answer.doubts == (f"no document says '{written}': read as '{read}'",)
    assert answer.query == question
    assert answer.citations[0].uri.endswith(file)
    right = asked.answer(question.replace(written, read))
    assert (answer.text, right.doubts) == (right.text, ())
    assert asked.retrieve(question).steps[0] == answer.doubts[0]


@pytest.mark.parametrize(
    "question",
    [
        "How is the gateway restarting?",
        "Which operators renew a certificate?",
        "What is the code XJ400O of the pomp-4?",
        "What does strat_pump do?",
        "Who restarts the county?",
        "When was the Hamburg report written?",
        "Wer baute die Zugbrücken?",
        "Když byl most postaven?",
        "ポンプのコードは何ですか",
    ],
)
def test_inflections_codes_and_words_that_are_spelt_right_are_not_read_otherwise(
    asked: QueryEngine, question: str
) -> None:
    assert as_spelt(asked.index, question)[0] == question


@pytest.mark.parametrize("name", ["Kelvarno", "Johnson", "Brantvik"])
def test_a_name_that_no_document_has_is_told_and_no_other_is_taken_for_it(
    asked: QueryEngine, name: str
) -> None:
    assert asked.answer(f"What did {name} write?").doubts == (f"no document says '{name}'",)
    assert asked.answer(f"Did {name} visit Rochester?").doubts == ()


def test_a_question_whose_words_are_all_known_costs_one_look(asked: QueryEngine) -> None:
    question = "How do I restart the gateway that the operator renewed on Mondays?"
    as_spelt(asked.index, question)
    began = time.process_time()
    for _ in range(50):
        as_spelt(asked.index, question)
    assert (time.process_time() - began) / 50 < 0.005
