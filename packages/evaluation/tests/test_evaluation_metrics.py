"""Answers and retrieval against gold: reference implementations agree, and each rule holds."""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime
from typing import ClassVar

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from evaluation_fixture import put_experiment, put_row
from graphrag_evaluation.metrics import bertscore
from graphrag_evaluation.metrics.answers import (
    NO_ANSWER,
    bare,
    bleu_1,
    is_accurate,
    meteor,
    normalized,
    rouge_2,
    rouge_l,
    usual_scores,
)
from graphrag_evaluation.metrics.bertscore import bert_scores, encoder_by, encoder_of
from graphrag_evaluation.metrics.retrieval import RETRIEVAL, retrieval_scores
from graphrag_evaluation.questions.question import Passage, Question, put_questions
from graphrag_evaluation.scoring import check_metrics, mean_scores, score
from graphrag_evaluation.store import EvaluationStore
from query_fixture import publish, settings_for
from rouge_reference import rouge_scores

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query import open_release
from graphrag_pipeline.query.answering import NOT_WRITTEN
from graphrag_pipeline.store.index_store import insert

GUIDE = (
    "It is a guide to action which ensures that the military always obeys the commands of the party"
)
REFERENCES = (
    "It is a guide to action that ensures that the military will forever heed Party commands",
    "It is the guiding principle which guarantees the military forces always being under the "
    "command of the Party",
    "It is the practical guide for the army always to heed the directions of the party",
)


def random_texts(n: int) -> list[tuple[str, str]]:
    pick = random.Random(7)
    words = ["the", "cat", "Sat,", "mat", "on-a", "12", "Ünder", "U.S.", "yes", "it's", "bell"]
    return [
        tuple(" ".join(pick.choices(words, k=pick.randrange(13))) for _ in "ab") for _ in range(n)
    ]


def test_words_are_compared_as_squad_does() -> None:
    assert normalized("The  U.S.'s “An” apple, a-la carte!") == "uss “ ” apple ala carte"
    # Answers to the SQuAD question on where Super Bowl 50 took place, and its three gold answers.
    gold = ["Santa Clara, California", "Levi's Stadium", "Levi's Stadium in the San Francisco Bay"]
    assert usual_scores("the Levi's Stadium.", gold)["exact_match"] == 1
    scores = usual_scores("Levi's Stadium in Santa Clara", gold)
    assert scores["exact_match"] == 0
    assert scores["f1"] == pytest.approx(4 / 7)
    assert (scores["precision"], scores["recall"]) == (pytest.approx(2 / 5), 1.0)


def test_yes_and_no_count_as_hotpotqa_counts_them() -> None:
    assert usual_scores("No.", ["no"])["f1"] == 1
    for said, gold in [("no, it was not", "no"), ("no", "no one"), ("yes", "no")]:
        scores = usual_scores(said, [gold])
        assert (scores["precision"], scores["recall"], scores["f1"]) == (0, 0, 0), said


@pytest.mark.parametrize(
    ("said", "gold", "right"),
    [
        ("It was Sam Altman, of OpenAI.", ["Altman"], True),
        ("They know of it.", ["no"], False),
        ("No: the pier was soft before.", ["no"], True),
        ("Yes. There was no other ship.", ["no"], False),
        ("Yes. There was no other ship.", ["yes"], True),
        ("It was closed in 18670.", ["1867"], False),
        ("By “The Ice Ledger”.", ["Ice Ledger"], True),
        ("她说，海草是饿死的。", ["starved", "饿死"], True),
        ("The text gives insufficient information.", NO_ANSWER, True),
        ("", ["the"], False),
    ],
)
def test_an_answer_is_accurate_if_it_holds_a_gold_answer(said, gold, right) -> None:
    assert is_accurate(said, gold) is right


def test_references_and_the_note_on_evidence_do_not_count() -> None:
    assert bare("Oskar Kovarna [Data: Sources (1, 2); Reports (3, +more)].") == "Oskar Kovarna."
    assert bare(f"{NOT_WRITTEN}\n\n- Kovarna [1, 2]\n") == "- Kovarna\n"
    assert usual_scores(bare("Oskar Kovarna [Data: Sources (1)]"), ["Oskar Kovarna"])["f1"] == 1


def test_rouge_is_that_of_rouge_score() -> None:
    pairs = [(said, [gold]) for said, gold in [(GUIDE, REFERENCES[0]), *random_texts(200)]]
    wanted = rouge_scores(["rouge2", "rougeL"], pairs)
    for (said, references), scores in zip(pairs, wanted, strict=True):
        assert rouge_2(said, references) == pytest.approx(tuple(scores["rouge2"]))
        assert rouge_l(said, references) == pytest.approx(scores["rougeL"][2])
    # Of several references ROUGE-L counts the best.
    assert rouge_l(GUIDE, REFERENCES) == max(rouge_l(GUIDE, [each]) for each in REFERENCES)


def test_rouge_2_is_the_mean_over_references() -> None:
    # Five bigrams: all two of the first reference, two of the four of the second, none of the last.
    references = ["The cat sat.", "a dog on the mat", "no"]
    means = (0.8 / 3, 1.5 / 3, (4 / 7 + 4 / 9) / 3)
    assert rouge_2("the cat sat on the mat", references) == pytest.approx(means)


class Spelled:
    """An encoder whose tokens are words, each with a vector worked out by hand."""

    name = "spelled"
    vectors: ClassVar = {
        "east": (1, 0),
        "north": (0, 1),
        "up": (0.6, 0.8),
        "west": (-1, 0),
        "far": (0, 2),
    }

    def token_vectors(self, texts):
        return [
            np.array([self.vectors[word] for word in text.split()], np.float32).reshape(-1, 2)
            for text in texts
        ]


def test_bertscore_matches_each_token_with_the_most_similar_one() -> None:
    # east: 1, .6, -1 and north: 0, .8, 0 give a precision of .9; the columns a recall of .6.
    first, second = (0.9, 0.6, 0.72), (0.5, 1.0, 2 / 3)
    encoder = encoder_by(Spelled())
    scores = bert_scores(
        encoder, ["east north", "", "west"], [["east up west", "far"], ["up"], ["east"]]
    )
    assert scores[0] == pytest.approx([(a + b) / 2 for a, b in zip(first, second, strict=True)])
    assert scores[1] == (0, 0, 0)
    assert scores[2] == (-1, -1, 0)
    assert bert_scores(encoder, ["north"] * 150, [["north"]] * 150) == [(1, 1, 1)] * 150


def test_bleu_and_meteor_give_the_values_in_print() -> None:
    # Papineni et al. 2002, examples 1 and 2: 17/18 and, by a brevity penalty of 1, 2/7.
    assert bleu_1(GUIDE, REFERENCES) == pytest.approx(17 / 18)
    assert bleu_1("the the the the the the the", ["The cat is on the mat"]) < 0.2
    assert bleu_1("the the the the the the the", ["the cat is on the mat"]) == pytest.approx(2 / 7)
    # NLTK's documentation gives 0.6944 for this pair, which has no synonyms.
    assert meteor(GUIDE, REFERENCES) == pytest.approx(0.6944, abs=5e-5)
    assert meteor("cats sat", ["cat sits"]) > meteor("dogs sat", ["cat sits"]) == 0


def test_a_metric_whose_package_is_absent_says_what_to_install(tmp_path, monkeypatch) -> None:
    settings = settings_for(tmp_path)
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with pytest.raises(InputError, match=r"embedder = \"local\", or leave it out"):
        check_metrics(["rougeL", "bertscore"], settings)
    monkeypatch.undo()
    package = (
        "def score(said, gold, lang):\n"
        "    return [1.0] * len(said), [1 / len(g) for g in gold], [0.5] * len(gold)\n"
    )
    (tmp_path / "bert_score.py").write_text(package)
    monkeypatch.syspath_prepend(tmp_path)
    encoder = encoder_of(settings)
    assert bert_scores(encoder, ["a", "b"], [["b"], ["c", "dddd"]]) == [
        (1.0, 1.0, 0.5), (1.0, 0.625, 0.5)
    ]  # fmt: skip
    monkeypatch.delitem(sys.modules, "bert_score")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    home = publish(tmp_path_factory.mktemp("evaluation"))
    with open_release(home, settings=settings_for(home)) as opened:
        yield opened


@pytest.fixture
def store(tmp_path):
    return EvaluationStore(tmp_path)


def put_answers(store, release, texts, chunks, *, method="basic", model="m"):
    """Store answers, by question; all were given these chunks."""
    rows = [
        {
            "answer_id": f"{method} {question.id}", "question": question.text, "method": method,
            "parameters": "{}", "release": release.facts.id, "model": model, "text": text,
            "context": text, "chunk_ids": chunks, "citations": 0, "citations_resolved": 0,
            "context_tokens": 0, "prompt_tokens": 0, "completion_tokens": 0, "model_calls": 0,
            "cost": None, "retrieve_ms": 0.0, "total_ms": 0.0, "failures": [],
            "answered_at": datetime.now(UTC),
        }
        for question, text in texts.items()
    ]  # fmt: skip
    schema = {"chunk_ids": pl.List(pl.String), "failures": pl.List(pl.String), "cost": pl.Float64}
    with store.transaction() as con:
        insert(con, "answers", pl.DataFrame(rows, schema_overrides=schema))


def scores(store, answer_id):
    with store.read() as con:
        found = con.execute("SELECT metric, value FROM scores WHERE answer_id = ?", [answer_id])
        return dict(found.fetchall())


def held(store, release, chunks, *gold):
    """The retrieval scores of these chunks for each list of gold passages."""
    asked = [
        Question(f"Who is {n}?", passages=tuple(Passage(*each) for each in passages))
        for n, passages in enumerate(gold)
    ]
    with store.transaction() as con:
        put_questions(con, "q", asked)
    put_answers(store, release, dict.fromkeys(asked, ""), chunks)
    score(store, release, "q")
    with store.read() as con:
        found = con.execute("SELECT answer_id, metric, value FROM scores").fetchall()
    return [{m: v for i, m, v in found if i == f"basic {question.id}"} for question in asked]


@pytest.fixture(scope="module")
def chunks(release):
    """The chunks of the document with the most of them, in order: id, text, title and uri."""
    return release.rows(
        """SELECT c.id, c.text, d.title, d.uri FROM chunks c JOIN documents d
           ON d.id = c.document_id ORDER BY count(*) OVER (PARTITION BY d.id) DESC, d.id, c.ordinal
           LIMIT 2"""
    )


def test_recall_counts_the_passages_held_by_the_first_chunks(store, release, chunks) -> None:
    first, second = chunks
    others = [
        row["id"]
        for row in release.rows("SELECT id FROM chunks WHERE document_id NOT IN "
                                "(SELECT document_id FROM chunks WHERE id = $id)", id=first["id"])
    ]  # fmt: skip
    assert first["title"] == second["title"]
    assert len(others) >= 2
    passages = [(first["title"], first["text"][5:30].replace(" ", "\n\xa0")), ("", second["text"])]
    ids = [others[0], first["id"], others[1], second["id"]]
    found, document = held(store, release, ids, passages, [(first["title"], "")])
    assert (found["recall@2"], found["all_gold@2"]) == (0.5, 0.0)
    assert (found["recall@5"], found["all_gold@5"]) == (1.0, 1.0)
    # Two chunks are of the document, the second of all and the fourth: the first of them counts.
    assert (document["recall@2"], document["all_gold@2"]) == (1.0, 1.0)


def test_a_chunk_of_white_space_alone_holds_no_passage() -> None:
    gold = [{"title": "", "text": "Anna Berg owns the inn."}]
    asked = pa.table({"answer_id": ["a"], "chunk_ids": [["c"]], "passages": [gold]})
    chunks = {"chunk_id": ["c"], "title": ["Inn"], "uri": ["inn.md"], "text": [" \u00a0\n"]}
    with duckdb.connect() as con:
        found = retrieval_scores(con, asked, pa.table(chunks))
    assert {metric: value for _, metric, value in found} == dict.fromkeys(RETRIEVAL, 0.0)


def test_a_chunk_holds_a_passage_by_title_and_text(store, release, chunks) -> None:
    chunk = chunks[0]
    title, text, file = chunk["title"], chunk["text"], chunk["uri"].rpartition("/")[2]
    gold = {
        (title, ""): 1.0,
        (file, ""): 1.0,
        ("another title", text): 0.0,
        (title, "words that stand nowhere"): 0.0,
        ("", f"before it {text} and after it"): 1.0,
        ("", text): 1.0,
    }
    found = held(store, release, [chunk["id"]], *([passage] for passage in gold))
    assert [each["recall@2"] for each in found] == list(gold.values())


def test_scores_are_written_once_by_type_and_anew_where_the_gold_answer_changed(
    store, release, chunks
) -> None:
    fact = Question("Who wrote it?", ("Ada", "Lovelace"), (Passage("nowhere"),), "fact")
    polar = Question("Was it so?", ("no",), type="yes/no")
    unknown = Question("And why?", type="fact")
    asked = [fact, polar, unknown]
    texts = dict(zip(asked, ["Lovelace [Data: Sources (1)]", "No.", "?"], strict=True))
    with store.transaction() as con:
        put_questions(con, "q", asked)
        put_experiment(con, "e", "q")
        for place, method in enumerate(["basic", "global"]):
            put_row(con, "conditions", experiment="e", condition=method, position=place,
                    method=method, parameters="{}", release="r")  # fmt: skip
            for question in asked:
                put_row(con, "experiment_answers", experiment="e", condition=method,
                        question_id=question.id, answer_id=f"{method} {question.id}")  # fmt: skip
    put_answers(store, release, texts, [chunks[0]["id"]])
    evidence = f"{NOT_WRITTEN}\n\n- No one knows Ada. [1]"
    put_answers(store, release, dict.fromkeys(asked, evidence), [], method="global", model="")

    assert score(store, release, "q", ["rougeL"]) > 0
    assert score(store, release, "q", ["rougeL"]) == 0
    found = scores(store, f"basic {fact.id}")
    assert (found["exact_match"], found["rougeL"], found["answer_in_context"]) == (1, 1, 1)
    assert (found["recall@20"], found["all_gold@20"]) == (0, 0)
    assert scores(store, f"basic {polar.id}").keys().isdisjoint(["answer_in_context", "recall@2"])
    assert scores(store, f"basic {unknown.id}") == {}
    # A method that retrieves no chunk has no recall, and evidence says neither yes nor no.
    assert "recall@2" not in scores(store, f"global {fact.id}")
    assert scores(store, f"global {polar.id}")["accuracy"] == 0
    assert scores(store, f"global {fact.id}")["accuracy"] == 1

    with store.read() as con:
        means = mean_scores(con, "e").filter(metric="accuracy")
    assert means.select("condition", "type", "questions", "mean").rows() == [
        ("basic", "all", 2, 1.0), ("basic", "fact", 1, 1.0), ("basic", "yes/no", 1, 1.0),
        ("global", "all", 2, 0.5), ("global", "fact", 1, 1.0), ("global", "yes/no", 1, 0.0),
    ]  # fmt: skip

    with store.transaction() as con:
        put_questions(con, "q", [Question("Who wrote it?", ("Babbage",), type="fact"), polar])
    score(store, release, "q")
    assert scores(store, f"basic {fact.id}")["accuracy"] == 0
    with pytest.raises(InputError, match=r"unknown metric 'bleu': beyond the usual .* rouge2"):
        score(store, release, "q", ["bleu"])


def test_three_numbers_of_an_overlap_are_kept_and_made_anew_by_another_encoder(
    store, release, monkeypatch
) -> None:
    question = Question("Whither?", ("east up west", "far"))
    with store.transaction() as con:
        put_questions(con, "q", [question])
        # What a release before this one kept: the best F1 alone.
        put_row(con, "scores", answer_id=f"basic {question.id}", question_set="q",
                metric="rouge2", value=0.5)  # fmt: skip
    put_answers(store, release, {question: "east north"}, [])
    encoder = Spelled()
    monkeypatch.setattr(bertscore, "configured_embedder", lambda settings: encoder)
    assert score(store, release, "q", ["rouge2", "bertscore"]) > 0
    assert score(store, release, "q", ["rouge2", "bertscore"]) == 0
    found = scores(store, f"basic {question.id}")
    assert (found["rouge2"], found["rouge2_precision"], found["rouge2_recall"]) == (0, 0, 0)
    assert found["bertscore_precision"] == pytest.approx(0.7)
    assert found["bertscore_recall"] == pytest.approx(0.8)
    assert found["bertscore"] == pytest.approx((0.72 + 2 / 3) / 2)

    encoder.name, encoder.vectors = "turned", {word: (1, 1) for word in Spelled.vectors}
    assert score(store, release, "q", ["bertscore"]) == 3
    assert scores(store, f"basic {question.id}")["bertscore"] == pytest.approx(1)
