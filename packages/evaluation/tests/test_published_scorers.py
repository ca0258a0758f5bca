"""Scores as the papers' own scripts compute them: their numbers, worked out by hand, and shown."""

from __future__ import annotations

import pytest
from evaluation_fixture import Filled, fill
from graphrag_evaluation.metrics.answers import usual_scores
from graphrag_evaluation.metrics.computed import COMPUTED, names_of, script_of, values_of
from graphrag_evaluation.metrics.published_scorers import (
    PUBLISHED,
    SCRIPTS,
    accuracy_archrag,
    accuracy_multihop,
    bleu_1_archrag,
    recall_archrag,
    rouge_2_best,
    rouge_l_archrag,
)
from graphrag_evaluation.paper import paper_of, preset_names
from graphrag_evaluation.presets.tables import PaperTable, Scorer, tables_of
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.store import EvaluationStore


@pytest.mark.parametrize(
    ("said", "gold", "right"),
    [
        ("They know of it.", ["no"], 1),
        ("It was Samuel Altman.", ["Sam"], 1),
        ("It was Altman.", ["Sam Altman"], 0),
        ("Not in the documents.", ["Insufficient information."], 1),
    ],
)
def test_archrag_looks_for_the_letters_of_a_gold_answer(said, gold, right) -> None:
    assert accuracy_archrag(said, gold) == right


@pytest.mark.parametrize(
    ("said", "gold", "recall"),
    [
        ("Sam Altman, of OpenAI", ["Sam Altman", "Samuel Altman"], 2 / 4),
        ("Yes, it was", ["yes"], 0),
        ("Yes.", ["yes"], 1),
        ("no", ["no one"], 0),
    ],
)
def test_archrag_joins_the_aliases(said, gold, recall) -> None:
    assert recall_archrag(said, gold) == pytest.approx(recall)
    assert usual_scores("Sam Altman", ["Sam Altman", "Samuel Altman"])["recall"] == 1


@pytest.mark.parametrize(
    ("said", "gold", "right"),
    [
        ("It was the mayor", ["the pilot"], 1),
        ("It was Altman, they say", ["Altman"], 0),
        ('So: The answer to the question is "Altman". The end.', ["Altman"], 1),
        ('The answer to the question is "Yes".', ["the end"], 0),
        ("There is insufficient data", ["Insufficient information."], 1),
    ],
)
def test_multihop_counts_any_shared_word(said, gold, right) -> None:
    assert accuracy_multihop(said, gold) == right


def test_rouge_counts_stems_and_the_best_reference() -> None:
    # Stems: "the boat sail"; of the references "a boat sail home" and "the boat sail".
    assert rouge_2_best("the boats sailing", ["a boat sails home", "the boat sails"]) == (1, 1, 1)
    precision, recall, f1 = rouge_2_best("the boats sailing", ["a boat sails home"])
    assert (precision, recall, f1) == (1 / 2, 1 / 3, pytest.approx(0.4))
    assert rouge_l_archrag("boats sailing", ["a boat sails home", "none"]) == pytest.approx(4 / 6)


def test_archrags_bleu_is_of_one_reference_at_a_time_to_two_digits() -> None:
    # Two of three words are in the second reference; the first has one of them.
    assert bleu_1_archrag("a red boat", ["red wine here", "one red boat"]) == 0.67
    assert bleu_1_archrag("", ["a"]) == 0


def test_each_that_a_preset_names_is_computed_and_names_its_script() -> None:
    named = set()
    for preset in preset_names():
        paper = paper_of(preset)
        for scorers in (paper.scorers, *(table.scorers for table in paper.table)):
            named |= set(scorers.values())
    assert named == {name for metric in SCRIPTS for name in names_of(metric)}
    assert set(SCRIPTS) <= set(COMPUTED)
    for metric in PUBLISHED.keys() - {"meteor_archrag"}:
        assert 0 <= values_of(metric, "a red boat", ["the red boat"])[0] <= 1
        assert script_of(metric)


def test_tables_show_the_authors_score_or_ours(tmp_path) -> None:
    asked = [Question(f"Question {n}?", ("the pilot",), type="inference_query") for n in range(4)]
    values = {"accuracy": 0.25, "accuracy_multihop": 0.75}
    scores = {name: lambda _condition, _n, value=value: value for name, value in values.items()}
    fill(tmp_path, Filled("e", ["RAG"], asked, scores=scores))

    def shown(scorer: Scorer) -> tuple[float | str | None, PaperTable]:
        with EvaluationStore(tmp_path).read() as con:
            paper = paper_of("rag_vs_graphrag")
            every = {t.number: t for t in tables_of(con, "e", paper, {}, scorer)}
        table = every["Table 2"]
        (cells,) = [cells for _, row, cells in table.measured if row == "RAG"]
        return cells[-1], table

    cell, table = shown("official")
    assert cell == pytest.approx(75)
    assert "accuracy: as MultiHop-RAG's qa_evaluate.py, any shared word computes it" in table.notes
    cell, table = shown("ours")
    assert cell == pytest.approx(25)
    (note,) = [note for note in table.notes if note.startswith("accuracy: ")]
    assert note.startswith("accuracy: ours, not that of MultiHop-RAG's")
