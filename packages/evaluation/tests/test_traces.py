"""Traces kept with answers: the names looked for, the parts of a context, and tables of them."""

from __future__ import annotations

import json

import pytest
from evaluation_fixture import Filled, fill
from graphrag_evaluation.experiment import experiment_of, read_experiment
from graphrag_evaluation.paper import paper_of
from graphrag_evaluation.presets.tables import tables_of
from graphrag_evaluation.questions.question import Question, put_questions
from graphrag_evaluation.running import answer_questions, look
from graphrag_evaluation.store import EvaluationStore
from graphrag_evaluation.traces import trace_columns
from query_fixture import publish, settings_for

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query.results import Record, Retrieval
from graphrag_pipeline.query.trace import Trace, names_told

NAMES = ('Acme, "Ltd"', "Čapek", "x\ny")


def record(kind, number: int, text: str, n_tokens: int) -> Record:
    return Record(kind, f"{kind}{number}", number, "", text, 1.0, n_tokens)


def found(records, *steps: str) -> Retrieval:
    empty = {"citations": (), "timings": {}, "parameters": {}, "release": "r"}
    return Retrieval(method="hirag", query="?", records=records, steps=steps, **empty)


def test_names_are_read_from_the_steps_as_they_were_told() -> None:
    trace = Trace()
    assert names_told(trace.steps) is None
    trace.looked_for([])
    assert names_told(trace.steps) == []
    trace.looked_for(NAMES)
    trace.step("passages by similarity")
    assert names_told(trace.steps) == list(NAMES)


def test_a_context_is_told_in_parts_and_how_far_its_relationships_cover_it() -> None:
    records = (
        record("report", 1, "Storms broke the pier", 5),
        record("entity", 1, "Pier of wood", 3),
        record("relationship", 1, "storms and the pier", 4),
        record("relationship", 2, "wood, PIER", 2),
    )
    columns = trace_columns(found(records, "one", "two"))
    assert columns["parts"] == [
        {"kind": "report", "records": 1, "tokens": 5},
        {"kind": "entity", "records": 1, "tokens": 3},
        {"kind": "relationship", "records": 2, "tokens": 6},
    ]
    assert columns["reports_in_relationships"] == pytest.approx(3 / 4)
    assert columns["entities_in_relationships"] == pytest.approx(2 / 3)
    assert (columns["steps"], columns["names"]) == (["one", "two"], None)
    alone = trace_columns(found(records[:2]))
    assert alone["reports_in_relationships"] is None


def test_an_answer_keeps_what_its_method_did(tmp_path) -> None:
    home = publish(tmp_path)
    store = EvaluationStore(home)
    asked = [Question("Who was the clerk of Scrooge?"), Question("what is it about?")]
    with store.transaction() as con:
        put_questions(con, "q", asked)
    experiment = experiment_of("e", "q", ["hipporag", "bm25"], retrieval_only=True)
    answer_questions(store, experiment, settings_for(home))
    with store.read() as con:
        rows = con.execute(
            "SELECT method, names, [p.kind for p in parts], len(steps), context_tokens, "
            "list_sum([p.tokens for p in parts]) FROM answers ORDER BY method, question"
        ).fetchall()
    named = {(method, str(names)): kinds for method, names, kinds, *_ in rows}
    assert named[("hipporag", "['Scrooge']")] == ["chunk"]
    assert ("hipporag", "[]") in named
    assert ("bm25", "None") in named
    for method, _, kinds, n_steps, tokens, of_parts in rows:
        assert (n_steps > 0) == (method == "hipporag")
        assert not kinds or 0 < of_parts <= tokens


def test_tables_of_traces_count_questions(tmp_path) -> None:
    asked = [Question(f"Question {n}?") for n in range(4)]
    fill(tmp_path, Filled("e", ["HippoRAG", "HiRAG"], asked))
    names = [[], ["Ab", "Scrooge"], ["1,200 %"], ["Bob Cratchit"]]
    with EvaluationStore(tmp_path).transaction() as con:
        for question, found in zip(asked, names, strict=True):
            con.execute(
                "UPDATE answers SET names = ?::JSON::VARCHAR[] WHERE question = ?",
                [json.dumps(found), question.text],
            )
        con.execute("UPDATE answers SET reports_in_relationships = .25")

    def cells(preset: str, number: str):
        with EvaluationStore(tmp_path).read() as con:
            every = {table.number: table for table in tables_of(con, "e", paper_of(preset), {})}
        return [cells for _, _, cells in every[number].measured]

    assert cells("archrag", "Table 8") == [(25, 50)]
    assert cells("hirag", "Table 7") == [(25, None)]


def test_a_condition_has_as_much_context_as_another_question_by_question(tmp_path) -> None:
    home = publish(tmp_path)
    store = EvaluationStore(home)
    asked = [Question("Who was the clerk of Scrooge?"), Question("what is it about?")]
    with store.transaction() as con:
        put_questions(con, "q", asked)
    file = tmp_path / "same.toml"
    file.write_text(
        'questions = "q"\nretrieval_only = true\nmethods = ["local"]\n[[condition]]\n'
        'name = "same"\nmethod = "basic:top_k=1000"\nas_much_as = "local"\n'
    )
    experiment = read_experiment(file)
    settings = settings_for(home)
    assert sum(len(each.unanswered) for each in look(store, experiment, settings, asked)) == 4
    done = answer_questions(store, experiment, settings)
    assert (done.made, done.failed) == (4, {})
    with store.read() as con:
        tokens = con.execute(
            "SELECT l.context_tokens, s.context_tokens, s.context FROM experiment_answers x "
            "JOIN answers l USING (answer_id) JOIN experiment_answers y USING (question_id) "
            "JOIN answers s ON s.answer_id = y.answer_id "
            "WHERE x.condition = 'local' AND y.condition = 'same'"
        ).fetchall()
    assert len(tokens) == 2
    for of_local, of_same, context in tokens:
        assert 0 < of_same <= of_local
        assert context
    assert answer_questions(store, experiment, settings).made == 0


@pytest.mark.parametrize(
    ("method", "other", "said"),
    [
        ("basic", "later", "must name a condition that stands before it"),
        ("basic", "none", "must name a condition that stands before it"),
        ("zero_shot", "bm25", "zero_shot has no max_context_tokens for as_much_as"),
    ],
)
def test_what_cannot_have_as_much_is_refused(tmp_path, method, other, said) -> None:
    file = tmp_path / "same.toml"
    file.write_text(
        f'questions = "q"\nmethods = ["bm25"]\n[[condition]]\nname = "same"\n'
        f'method = "{method}"\nas_much_as = "{other}"\n'
        '[[condition]]\nname = "later"\nmethod = "local"\n'
    )
    with pytest.raises(InputError, match=said):
        read_experiment(file)
