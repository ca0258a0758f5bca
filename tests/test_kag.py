"""The method `kag`: logical forms, what solves their steps, and what a model's answers can do."""

from __future__ import annotations

import json

import pytest
from model_server import ModelServer
from query_fixture import publish, settings_for
from query_player import play, step_of

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm import ModelOutputError
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.systems.kag.arithmetic import (
    ArithmeticStepError,
    number_in,
    reckon,
)
from graphrag_pipeline.systems.kag.method import (
    KAG,
    KagParameters,
    _number_by_rule,
    step_records,
)
from graphrag_pipeline.systems.kag.plan import LogicalStep, plan_by_rule, read_plan

QUESTION = "Who was the son of the clerk of Scrooge?"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    home = tmp_path_factory.mktemp("release")
    with QueryEngine(publish(home), settings=settings_for(home)) as opened:
        yield opened


@pytest.fixture
def ask(tmp_path):
    publish(tmp_path)

    def answer(mind, *, stream=False, **given):
        with ModelServer(mind) as server:
            llm = {"base_url": server.base_url, "max_retries": 0}
            settings = Settings.model_validate(
                {"home": str(tmp_path), "query": {"answers": "llm"}, "llm": llm}
            )
            with QueryEngine(tmp_path, settings=settings) as opened:
                if not stream:
                    return opened.answer(QUESTION, "kag", **given)
                pieces = opened.stream_answer(QUESTION, "kag", **given)
                return "".join(pieces), pieces.answer

    return answer


# Arithmetic


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("#1 - #2", "-36"),
        ("abs(#1 - #2) / 8", "4.5"),
        ("1 / 3", "0.333333"),
        ("max(#1, #2) > #1", "yes"),
        ("#3 * 2", "5000000"),
        ("mean(1, 2) ** 2", "2.25"),
        ("1.01 ** 365", "37.783434"),
        ("count(#1, #2, #3)", "3"),
    ],
)
def test_an_expression_is_reckoned_from_the_numbers_in_results(expression, value):
    results = ["born on 7 November 1867", "in 1,903 or so", "2.5 million people"]
    assert reckon(expression, results) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "().__class__",
        "9 ** 9 ** 9",
        "10 ** 20",
        "(-8) ** 0.5",
        "1 / 0",
        "#2",
        "#1 + 1",
        "[1][0]",
        "lambda: 1",
        "x",
        "True",
        "'a' * 9",
        "1 < 2 < 3",
        "min()",
        "print(1)",
        "",
        "1 +",
        "(" * 200 + "1" + ")" * 200,
        "+".join(["1"] * 140),
        "1" * 400,
    ],
)
def test_what_is_no_arithmetic_is_refused_and_runs_nothing(expression):
    with pytest.raises(ArithmeticStepError):
        reckon(expression, ["no number here"])


def test_results_are_counted_from_one():
    assert reckon("#1", ["7"]) == "7"
    with pytest.raises(ArithmeticStepError, match="there is no result #0"):
        reckon("#0", ["7"])


def test_a_text_states_its_only_number_or_its_year():
    assert number_in("12 May 1867") == 1867
    assert number_in("from 1914-1918, twice") == 1914
    assert number_in("1,234,567.5 metres") == 1234567.5
    assert number_in("-3 degrees") == -3
    assert number_in("none") is None


# Plans


def plan(*steps):
    rows = [dict(zip(("kind", "task", "subject"), step, strict=True)) for step in steps]
    return json.dumps({"steps": rows})


def test_a_plan_is_read_without_what_is_no_step_or_names_what_is_to_come():
    text = plan(
        ("retrieval", "Who?", "X"),
        ("prayer", "Hope.", ""),
        ("retrieval", "What of #3?", ""),
        ("arithmetic", "#1 * 2", None),
        ("summary", "  \n ", ""),
        ("deduction", "Is #1\n\0 old?", "#1"),
    )
    assert read_plan(text, 6) == [
        LogicalStep("retrieval", "Who?", "X"),
        LogicalStep("arithmetic", "#1 * 2", ""),
        LogicalStep("deduction", "Is #1 old?", "#1"),
    ]
    assert len(read_plan(text, 1)) == 1
    for odd in ("{}", '{"steps": 7}', '{"steps": [7]}', plan(("deduction", "So?", ""))):
        with pytest.raises(ModelOutputError, match="at least one of them"):
            read_plan(odd, 5)


def test_results_stand_in_for_their_numbers():
    step = LogicalStep("retrieval", "Who wrote #2, #1 or #9?", "#2")
    assert step.bound(["A", "B"]) == LogicalStep("retrieval", "Who wrote B, A or ?", "B")


def test_a_rule_takes_chains_from_the_inside_and_names_one_by_one(engine):
    def tasks(question, most=5):
        return [(s.kind, s.task, s.subject) for s in plan_by_rule(engine.index, question, most)]

    assert tasks("Who was the son of the clerk of Scrooge?") == [
        ("retrieval", "clerk of Scrooge", "Scrooge"),
        ("retrieval", "Who was the son of #1", "#1"),
    ]
    assert tasks("What is radium?") == [("retrieval", "What is radium?", "")]
    compared = tasks("How many years older was Marie Curie than Pierre Curie?")
    assert [kind for kind, _, _ in compared] == ["retrieval", "retrieval", "arithmetic"]
    assert {subject for _, _, subject in compared[:2]} == {"Marie Curie", "Pierre Curie"}
    assert "Pierre" not in next(task for _, task, about in compared if about == "Marie Curie")
    assert compared[2][1] == "abs(#1 - #2)"
    assert [kind for kind, _, _ in tasks("What do Scrooge and Marley have in common?")] == [
        "retrieval",
        "retrieval",
        "deduction",
    ]
    compared = tasks("What is the difference between Scrooge and Marley?")
    assert compared[0][1] == "What is the difference Scrooge?"
    assert compared[2][0] == "deduction"
    assert len(tasks("a of b of c of d of e of f of g", most=3)) <= 3


# Solving


def test_a_retrieval_goes_from_the_graph_to_the_text_and_back(engine):
    p = KagParameters(top_k=2)
    step = LogicalStep("retrieval", "Who walked with a crutch?", "Bob Cratchit")
    found = step_records(engine.index, step, p)
    assert [r.title for r in found if r.kind == "entity"] == ["Bob Cratchit"]
    assert all("Bob Cratchit" in r.title for r in found if r.kind == "relationship")
    assert "crutch" in next(r.text for r in found if r.kind == "chunk")
    # The graph has no such subject: the text comes first, and what it names after it.
    unnamed = LogicalStep("retrieval", "What is polonium?", "polonium")
    found = step_records(engine.index, unnamed, p)
    assert "Marie Curie" in [r.title for r in found if r.kind == "entity"]


def test_without_a_model_each_step_leads_to_the_next_and_is_told(engine):
    found = engine.retrieve(QUESTION, "kag")
    first, second = found.steps
    assert first.startswith("1. retrieval: clerk of Scrooge = ")
    result = first.partition(" = ")[2].removesuffix(" (by rule)")
    assert second == f"2. retrieval: Who was the son of {result} (by rule)"
    assert {r.kind for r in found.records} == {"entity", "relationship", "chunk"}
    assert engine.answer(QUESTION, "kag").citations


def test_what_is_found_fits_its_budget(engine):
    for budget in (150, 600):
        found = engine.retrieve(QUESTION, "kag", max_context_tokens=budget)
        assert 0 < sum(record.n_tokens for record in found.records) <= budget


def test_a_model_plans_solves_step_by_step_and_composes(ask):
    asked = []

    def mind(messages):
        asked.append(messages)
        return play(messages)

    answer = ask(mind)
    assert [step_of(messages) for messages in asked] == ["plan", "solve", "solve", "judge", "local"]
    assert answer.calls == {"plan": 1, "retrieval": 2, "judge": 1, "answer": 1}
    assert answer.retrieval.steps == (
        "1. retrieval: Who was the clerk? = Bob Cratchit",
        "2. retrieval: Who was the son of Bob Cratchit? = Tiny Tim",
    )
    assert "1. retrieval: Who was the clerk? = Bob Cratchit" in asked[2][-1]["content"]
    assert all(line in asked[4][-1]["content"] for line in answer.retrieval.steps)
    assert answer.citations


def judged(enough, question):
    return json.dumps({"enough": enough, "question": question})


def test_what_is_missing_is_planned_and_solved_in_its_turn(ask):
    asked = []

    def mind(messages):
        asked.append(messages)
        if step_of(messages) != "judge":
            return play(messages)
        known = messages[-1]["content"].count(" = ")
        return judged(enough=False, question=f"Who had {known} sons?")

    answer = ask(mind)
    assert answer.calls == {"plan": 3, "retrieval": 6, "judge": 2, "answer": 1}
    assert answer.retrieval.steps[2] == "missing: Who had 2 sons?"
    assert answer.retrieval.steps[4] == "4. retrieval: Who was the son of Bob Cratchit? = Tiny Tim"
    plans = [m[-1]["content"] for m in asked if step_of(m) == "plan"]
    questions = [QUESTION, "Who had 2 sons?", "Who had 4 sons?"]
    assert all(f"Question: {q}\n" in plan for q, plan in zip(questions, plans, strict=True))
    (last,) = (m[-1]["content"] for m in asked if step_of(m) == "local")
    assert f"Question: {QUESTION}\n" in last
    assert "6. retrieval" in last


@pytest.mark.parametrize("said", [judged(enough=False, question=QUESTION), "Perhaps."])
def test_a_judgement_that_leads_nowhere_ends_the_rounds(ask, said):
    def mind(messages):
        return said if step_of(messages) == "judge" else play(messages)

    answer = ask(mind)
    assert (answer.calls["plan"], answer.calls["answer"]) == (1, 1)
    assert [line.partition(":")[0] for line in answer.failures if "judge" in line] == (
        ["judge"] if said == "Perhaps." else []
    )


def test_one_round_is_judged_by_nobody(ask):
    assert "judge" not in ask(play, rounds=1).calls


def test_pieces_make_up_the_answer_with_its_steps(ask):
    text, answer = ask(play, stream=True)
    assert text == answer.text
    assert len(answer.retrieval.steps) == 2


def test_arithmetic_asks_no_model_and_what_fails_is_told(ask):
    def mind(messages):
        if step_of(messages) == "plan":
            return plan(
                ("retrieval", "In which year?", "Marie Curie"),
                ("arithmetic", "#1 + 36", ""),
                ("arithmetic", "__import__('os')", ""),
                ("deduction", "Is #2 after #3?", ""),
            )
        if step_of(messages) == "solve":
            return "Unknown." if "Is 1903 after" in messages[-1]["content"] else "1867"
        return play(messages)

    answer = ask(mind)
    assert answer.calls == {"plan": 1, "retrieval": 1, "deduction": 1, "judge": 1, "answer": 1}
    assert [line.partition(" = ")[2] for line in answer.retrieval.steps] == [
        "1867",
        "1903",
        "unknown",
        "unknown",
    ]
    assert answer.failures[0].startswith("arithmetic: __import__('os'): only numbers")


def test_a_plan_that_cannot_be_read_is_made_by_rule(ask):
    def mind(messages):
        return "No." if step_of(messages) == "plan" else play(messages)

    answer = ask(mind)
    assert answer.calls["plan"] == 2
    assert answer.failures[0].startswith("plan: ")
    assert answer.retrieval.steps[0].startswith("1. retrieval: clerk of Scrooge = ")


def test_an_estimate_is_no_less_than_what_is_asked(ask, engine):
    parameters = KagParameters()
    assert KAG.estimate is not None
    calls, read, written = KAG.estimate(engine.index, parameters)
    answer = ask(play)
    assert answer.model_calls <= calls == parameters.rounds * (parameters.steps + 2)
    assert answer.prompt_tokens <= read
    assert answer.completion_tokens <= written


def test_a_number_by_rule_is_that_of_the_sentence_about_the_subject(tmp_path):
    texts = {
        "a": "Ada Brown was born in 1815. Ada Brown had 3 dogs. Bea Green met her in 1840.",
        "b": "Bea Green was born in 1850, in a town of 12,000. She was fond of Ada Brown.",
    }
    publish(tmp_path, documents=texts)
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as opened:
        p = KagParameters()

        def found(task, subject):
            step = LogicalStep("retrieval", task, subject)
            return _number_by_rule(opened.index, step, step_records(opened.index, step, p))

        assert found("How many years older was born Ada Brown", "Ada Brown") == "1815"
        assert found("How many more dogs had Ada Brown", "Ada Brown") == "3"
        assert found("How many years older was Clara White", "Clara White") == ""


def test_what_no_later_step_needs_is_not_claimed(engine):
    (only,) = engine.retrieve("What is radium?", "kag").steps
    assert only == "1. retrieval: What is radium? (by rule)"
    steps = engine.retrieve("What do Scrooge and Marley have in common?", "kag").steps
    assert [step.count(" = ") for step in steps] == [0, 0, 0]
