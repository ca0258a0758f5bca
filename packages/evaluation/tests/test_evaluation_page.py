"""The page of an experiment: what it says is what was measured, and it is safe to open."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import pytest
from browser import browser as browser
from browser import complaints_of
from evaluation_fixture import WHEN, Filled, fill, put_row
from graphrag_evaluation.judging.agreement import keep_agreements
from graphrag_evaluation.judging.verdicts import Verdict, Won
from graphrag_evaluation.pages import write_evaluation
from graphrag_evaluation.pages.charts import (
    ChartPoint,
    draw,
    front,
    label_box,
    overlap,
)
from graphrag_evaluation.pages.gathering import gather
from graphrag_evaluation.pages.leading_condition import lead
from graphrag_evaluation.pages.model import EvaluationPage, ShownMeasure
from graphrag_evaluation.pages.page import render
from graphrag_evaluation.questions.question import Passage, Question
from graphrag_evaluation.store import EvaluationStore
from test_overview import Page

from graphrag_pipeline.cli import app as cli
from graphrag_pipeline.core.errors import InputError

HOSTILE = "<script>alert('1')</script><img src=http://evil.example/x onerror=alert(2)>"
TOKENS = ShownMeasure("model_tokens", "tokens", "count", True)
TWELVE = [
    Question(
        f"Question {n}?", (f"Gold {n}",), (Passage("a.md", f"It is {n}."),), ("fact", "why")[n % 2]
    )
    for n in range(12)
]
GOLD = Filled(
    "gold",
    ["good", "bad", "worse"],
    TWELVE,
    scores={
        # good is right on all, bad on those that are even, worse on none.
        "accuracy": lambda name, n: float(name == "good" or (name == "bad" and n % 2 == 0)),
        "f1": lambda name, n: 0.2 + 0.05 * (name == "bad"),
        "recall@2": lambda name, n: 0.5,
        "claims": lambda name, n: 7.0 + n % 2,
        "claim_clusters@0.5": lambda name, n: 4.0,
    },
)
JUDGED = Filled(
    "judged",
    ["C0", "C1", "SS"],
    [Question(f"What of {n}?") for n in range(12)],
    strength={"C0": 1000, "C1": 1000, "SS": 0.001},
    bias={("C0", "C1"): 1.0, ("C1", "C0"): 1.0},
    criteria=("directness", "overall"),
)


@dataclass(frozen=True)
class Made:
    """A page: what is on it, its text, and its parts."""

    page: EvaluationPage
    text: str
    parsed: Page


def made(home: Path, name: str | None = None) -> Made:
    page = gather(EvaluationStore(home), name)
    text = render(page)
    return Made(page, text, Page(text))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("evaluated")
    fill(place, JUDGED)
    fill(place, GOLD)
    with EvaluationStore(place).transaction() as con:
        put_row(con, "index_metrics", release="r1", metric="modularity", level=0, value=0.4321,
                measured_at=WHEN)  # fmt: skip
    return place


@pytest.fixture(scope="module")
def gold(home):
    return made(home, "gold")


@pytest.fixture(scope="module")
def judged(home):
    return made(home, "judged")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Many conditions with long names, and texts that mean no good."""
    place = tmp_path_factory.mktemp("crowd")
    names = [f"method {n} with a long name: top_k = {n}" for n in range(18)]
    hostile = Question(HOSTILE * 4, (HOSTILE,), (Passage(HOSTILE, "t" * 900),), "</script>")
    questions = [hostile, *(replace(one, type="multi-hop " * 8) for one in TWELVE)]
    scores = {"accuracy": lambda name, n: float(len(name) % 3 > n % 3), "f1": lambda name, n: 0.1}
    many = Filled(HOSTILE, [*names, HOSTILE, "Ü" * 90], questions, HOSTILE * 90, scores=scores)
    fill(place, many)
    return place


def test_the_finding_names_the_best_and_whether_it_is_so_beyond_chance(gold):
    page = gold.page
    assert page.finding == [
        "good is best by accuracy: 100.0 %, more than chance above every other condition."
    ]
    cells = {name: row[0] for name, row in page.table.rows.items()}
    assert [(cell.value, cell.is_sure) for cell in cells.values()] == [
        (1, True), (0.5, False), (0, False),
    ]  # fmt: skip


def test_a_lead_that_chance_explains_is_no_lead(tmp_path):
    scores = {"accuracy": lambda name, n: float(n > (0 if name == "good" else 1))}
    fill(tmp_path, replace(GOLD, conditions=["good", "bad"], scores=scores))
    page = made(tmp_path).page
    assert page.finding == [
        "No condition is best by accuracy beyond chance: good leads with 91.7 % (95 % interval 75 "
        "to 100), but its lead over bad (83.3 %) may be chance."
    ]
    assert [row[0].is_sure for row in page.table.rows.values()] == [False, False]


def test_conditions_are_told_by_what_they_take_and_by_type_of_question(gold):
    page = gold.page
    at = {measure.name: n for n, measure in enumerate(page.table.measures)}
    assert list(at) == ["accuracy", "f1", "model_tokens", "total_ms", "citation_validity", "cost"]
    row = [cell.value for cell in page.table.rows["bad"]]
    assert row[at["model_tokens"]] == 3600 + 200
    assert row[at["citation_validity"]] == 0.75
    assert row[at["cost"]] == pytest.approx(12 * 0.0125)
    cheapest = page.table.rows["good"][at["model_tokens"]]
    assert cheapest.is_best
    assert cheapest.is_sure
    assert page.by_type is not None
    assert page.by_type.types == [("fact", 6), ("why", 6)]
    assert page.by_type.rows["bad"] == [1, 0]
    assert [measure.name for measure in page.more.measures] == ["recall@2"]
    assert [cell.value for cell in page.claims.rows["good"]] == [7.5, 4]


def test_the_judge_is_shown_with_what_order_did_to_it(judged):
    page, words = judged.page, re.sub(r"\s+", " ", judged.parsed.words)
    assert page.quality is not None
    assert page.quality.label == "mean win rate (overall)"
    directness, overall = page.matrices
    assert (directness.criterion, overall.pairs, overall.biased, overall.won) == (
        "directness", 3, 1, 2,
    )  # fmt: skip
    void, lost = overall.rows["C0"][1], overall.rows["SS"][0]
    assert void
    assert lost
    assert (void.rate, void.is_void, void.is_won) == (0.5, True, False)
    assert (lost.rate, lost.is_lost, lost.is_void) == (0, True, False)
    assert page.finding[1].startswith("In 2 of 6 comparisons the judge was led by the order")
    assert "<s>50</s>" in judged.text
    assert "The 2 rates struck through say nothing" in words
    assert all(verdict in words for verdict in overall.verdicts)
    values = {value for one in page.asked for value in one.values}
    assert values == {0, 0.75}


def test_who_is_right_alone_is_drawn_and_said(tmp_path):
    # Both are right on 0 and 1, RAG alone on 2 to 4, GraphRAG alone on 5, neither on 6 to 9.
    names = ["RAG", "Community-GraphRAG (Local)"]
    right = {names[0]: range(5), names[1]: (0, 1, 5)}
    other = "zero <b>shot</b>"
    scores = {"accuracy": lambda name, n: float(n in right.get(name, ()))}
    fill(tmp_path, Filled("pair", names, TWELVE[:10], scores=scores))
    fill(tmp_path, Filled("paper", [*names, other], TWELVE[:10], scores=scores))
    assert made(tmp_path, "paper").page.overlaps == []
    with EvaluationStore(tmp_path).transaction() as con:
        con.execute(
            "UPDATE experiments SET spec = json_merge_patch(spec, ?) WHERE experiment = 'paper'",
            [json.dumps({"preset": "rag_vs_graphrag"})],
        )
    pair, paper = (made(tmp_path, name) for name in ("pair", "paper"))
    assert pair.page.overlaps == paper.page.overlaps
    (drawn,) = paper.page.overlaps
    assert [quarter.count for quarter in drawn.quarters] == [2, 3, 1, 4]
    assert drawn.said == (
        "Only RAG is right on 30.0 % of the questions, only Community-GraphRAG (Local) on 10.0 %. "
        "Who always chose the one that is right would be right on 60.0 %; RAG alone is on 50.0 %."
    )
    assert "RAG in rows, Community-GraphRAG (Local) in columns" in paper.parsed.words
    assert "only the row right: 30.0 %, 3 questions" in paper.parsed.words
    fill(tmp_path, Filled("hostile", [HOSTILE, other], TWELVE, scores=scores))
    assert made(tmp_path, "hostile").page.overlaps[0].questions == 12
    assert "<b>shot" not in made(tmp_path, "hostile").text


def test_agreement_of_judge_and_claims_is_shown_in_numbers_and_words(tmp_path):
    claims = {"a": [9, 2, 5, 3, 8], "b": [4, 7, 5, 8, 1]}
    scores = {"claims": lambda name, n: float(claims[name][n])}
    fill(tmp_path, Filled("agreed & so", ["a", "b"], TWELVE[:5], scores=scores))
    winners: list[Won] = ["first", "first", "first", "tie", "first"]
    verdicts = [
        Verdict(question.id, "comprehensiveness", "a", "b", winner)
        for question, winner in zip(TWELVE, winners, strict=False)
    ]
    with EvaluationStore(tmp_path).transaction() as con:
        keep_agreements(con, "agreed & so", verdicts)
    shown = made(tmp_path)
    (agreement,) = shown.page.agreement
    assert (agreement.agreeing, agreement.even, agreement.opposing) == (2, 1, 1)
    row = re.search(r"<tr><th scope=\"row\">Comprehensiveness.*?</tr>", shown.text, re.S)
    assert row
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row[0])
    assert cells == ["claims", "5", "4", "2", "1", "1", "50.0"]
    assert "agreement" in shown.parsed.ids
    assert "#agreement" in shown.parsed.links
    assert "eval results 'agreed & so' --agreement FILE.csv" in shown.parsed.words


def test_questions_on_which_conditions_differ_come_first_with_answers_beside_each_other(gold):
    page, parsed = gold.page, gold.parsed
    first = page.in_full[0]
    assert (first.spread, first.values) == (1, [1, 0, 0])
    assert [given.condition for given in first.given] == ["good", "bad", "worse"]
    assert first.given[0].text == f"What good says to {first.text}"
    assert first.answers == [f"Gold {first.position - 1}"]
    assert [one.position for one in page.asked] == list(range(1, 13))
    assert f"question-{first.position}" in parsed.ids
    assert "0.4321" in parsed.words
    assert "What the judge preferred" not in parsed.words
    assert "agreement" not in parsed.ids


def test_passages_that_were_retrieved_are_named_while_their_release_is_kept(tmp_path):
    from query_fixture import publish

    from graphrag_pipeline.query import open_release

    place = publish(tmp_path)
    with open_release(place) as index:
        release = index.facts.id
        chunk = index.rows("SELECT id, text FROM chunks ORDER BY id LIMIT 1")[0]
    question = Question("Which?", passages=(Passage(text=chunk["text"]),))
    fill(place, Filled("kept", ["basic"], [question], scores={"recall@5": lambda name, n: 1.0}))
    with EvaluationStore(place).transaction() as con:
        con.execute(
            "UPDATE answers SET chunk_ids = [?, 'gone'], release = ?", [chunk["id"], release]
        )
    (given,) = made(place).page.in_full[0].given
    (shown,) = given.chunks
    assert shown.is_gold
    assert chunk["text"][:40] in shown.beginning
    assert given.n_more_chunks == 1


@pytest.mark.parametrize(("model", "steps"), [("gpt-x", 2), ("", 1)])
def test_an_experiment_that_says_nothing_of_quality_says_what_to_do(tmp_path, model, steps):
    fill(tmp_path, Filled("empty", ["basic", "local"], [Question("Who?")], model=model, cost=None))
    shown = made(tmp_path)
    page, parsed = shown.page, shown.parsed
    assert (page.finding, len(page.advice), page.charts, page.quality) == ([], steps, [], None)
    assert "Give the questions gold answers" in parsed.words
    assert ("eval run --judge" in parsed.words) == (steps == 2)


def test_conditions_without_an_answer_say_why(tmp_path):
    fill(tmp_path, replace(GOLD, conditions=["good"]))
    with EvaluationStore(tmp_path).transaction() as con:
        spec = {"conditions": [{"name": "good"}, {"name": "mute"}, {"name": "poor"}],
                "lacking": [["absent", "it is another index"]]}  # fmt: skip
        con.execute("UPDATE experiments SET spec = ?", [json.dumps(spec)])
        put_row(con, "unanswered", experiment="gold", condition="poor", questions=12,
                reason="no <i>money</i>")  # fmt: skip
    shown = made(tmp_path)
    assert dict(shown.page.left_out) == {
        "mute": "gave no answer", "absent": "it is another index", "poor": "no <i>money</i>"
    }  # fmt: skip
    assert "<i>money" not in shown.text


def test_names_that_look_alike_when_short_are_numbered_in_a_chart():
    points = [
        ChartPoint(number=n, name=f"Community-GraphRAG (of {n})", across=n, up=0.5, low=0.5,
                   high=0.5, said="")
        for n in (1, 2)
    ]  # fmt: skip
    assert [dot.label for dot in draw(points, TOKENS).dots] == ["1", "2"]
    assert draw(points[:1], TOKENS).dots[0].label.startswith("Community-GraphRAG")


def test_an_experiment_without_any_answer_has_a_page(tmp_path):
    fill(tmp_path, Filled("bare", [], [Question("Who?")]))
    parsed = made(tmp_path).parsed
    assert "No condition has an answer" in parsed.words
    with pytest.raises(InputError, match="there is no experiment 'other': there are bare"):
        write_evaluation(tmp_path, tmp_path / "x.html", "other")
    with pytest.raises(InputError, match="is a folder"):
        write_evaluation(tmp_path, tmp_path)


def test_the_page_is_whole_and_needs_nothing_else(gold, judged):
    for shown in (gold, judged):
        parsed = shown.parsed
        assert parsed.open == []
        assert parsed.loaded == []
        assert "unsafe-inline" not in shown.text
        assert " style=" not in shown.text
        assert all(link.startswith("#") and link[1:] in parsed.ids for link in parsed.links)
        assert len(parsed.ids) == len(set(parsed.ids))
        assert "url(" not in shown.text


def test_texts_stay_texts_and_the_page_stays_small(crowd):
    shown = made(crowd)
    text, parsed = shown.text, shown.parsed
    assert parsed.tags.count("script") == 1
    assert "img" not in parsed.tags
    assert not parsed.handlers
    assert "<script>alert" not in text
    assert parsed.words.count(HOSTILE) > 20
    assert len(text) < 1_500_000


def test_labels_of_a_chart_cover_neither_each_other_nor_a_dot():
    points = [
        ChartPoint(
            number=n,
            name=f"condition {n}",
            across=1000 + 40 * (n % 4),
            up=0.8,
            low=0.7,
            high=0.9,
            said="",
        )
        for n in range(1, 13)
    ]
    dots = draw(points, TOKENS).dots
    assert all(dot.label for dot in dots)
    boxes = [label_box(dot.label, dot.label_x, dot.label_y) for dot in dots]
    assert not any(overlap(a, b) for n, a in enumerate(boxes) for b in boxes[:n])
    at = [(dot.x, dot.y, dot.x, dot.y) for dot in dots]
    assert not any(overlap(box, place) for box in boxes for place in at)
    only = draw(points[:1], TOKENS)
    assert only.dots[0].label == "condition 1"
    assert only.x_ticks


def test_the_front_holds_what_nothing_beats_at_both():
    places = [(100, 0.3), (200, 0.6), (250, 0.6), (300, 0.5), (1000, 0.7), (1000, 0.65)]
    points = [
        ChartPoint(number=n, name="", across=x, up=y, low=y, high=y, said="")
        for n, (x, y) in enumerate(places)
    ]
    assert [point.number for point in front(points)] == [0, 1, 4]
    assert draw(points, TOKENS).is_log


def test_a_lead_counts_only_questions_that_both_answered():
    rows = [("a", str(n), 1.0) for n in range(8)] + [("b", str(n), 0.0) for n in range(7, 30)]
    values = pl.DataFrame(rows, ["condition", "question_id", "value"], orient="row")
    found = lead(values, {"a": 1.0, "b": 0.0})
    assert (found.best, found.behind, found.is_sure) == ("a", frozenset(), False)


def test_the_command_writes_the_page_and_prints_the_finding(home, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    target = tmp_path / "page.html"
    for more in ([], ["--json"]):
        arguments = ["eval", "report", "gold", "-o", str(target), *more]
        monkeypatch.setattr(sys, "argv", ["graphrag-pipeline", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert not stopped.value.code
        said = capsys.readouterr().out
        assert "good is best by accuracy" in said
    assert json.loads(said)["questions"] == 12
    assert "<h1>gold</h1>" in target.read_text()


@pytest.mark.browser
def test_nothing_overflows_on_a_telephone_and_questions_can_be_filtered(crowd, browser):
    write_evaluation(crowd, crowd / "page.html")
    shown = browser.new_page(viewport={"width": 390, "height": 800})
    complaints = complaints_of(shown)
    shown.goto(f"file://{crowd}/page.html")
    shown.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    size = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scrolled, client = shown.evaluate(size)
    assert scrolled <= client
    shown.fill("input[type=search]", "QUESTION 7")
    assert shown.locator("#all tbody tr:visible").count() == 1
    assert complaints == []
