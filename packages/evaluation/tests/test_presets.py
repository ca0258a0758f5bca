"""Presets by paper: tables by number, in the paper's layout, from answers and verdicts by hand."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import pytest
from evaluation_fixture import Filled, fill
from graphrag_evaluation.evaluating import plan_experiment
from graphrag_evaluation.experiment import experiment_of, read_experiment
from graphrag_evaluation.judging.judge import AnswerPair, ShownAnswer, judge_of, open_verdicts
from graphrag_evaluation.paper import TableKind, paper_of, preset_names
from graphrag_evaluation.presets.experiment_results import overlap
from graphrag_evaluation.presets.facts import note_facts
from graphrag_evaluation.presets.kinds import KINDS
from graphrag_evaluation.presets.storage import REST, needed_by, parts_of
from graphrag_evaluation.presets.tables import tables_of
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.store import EvaluationStore
from graphrag_evaluation.variants import variant_of
from query_fixture import publish, settings_for
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import open_release

PAPERS = ("graphrag", "archrag", "hirag", "rag_vs_graphrag")


def filled(home: Path, **more) -> None:
    fill(home, Filled("e", **more))


def tables(home: Path, preset: str) -> dict[str, Any]:
    with EvaluationStore(home).read() as con:
        return {table.number: table for table in tables_of(con, "e", paper_of(preset), {})}


@pytest.mark.parametrize("preset", preset_names())
def test_every_table_names_its_own_conditions_and_as_many_figures_as_columns(preset) -> None:
    paper = paper_of(preset)
    names = paper.names
    assert len({row.name for row in paper.condition}) == len(paper.condition)
    experiment = experiment_of("e", "q", [], preset=preset)
    assert names == {each.name for each in experiment.conditions} | dict(experiment.lacking).keys()
    assert set(paper.judge.among if paper.judge else ()) <= names
    numbers = [*(t.number for t in paper.table), *(m.number for m in paper.missing)]
    assert len(set(numbers)) == len(numbers)
    for table in paper.table:
        if table.kind in ("scores", "types", "win_rates", "costs", "duels", "orders", "storage"):
            assert set(table.rows) <= names, table.number
        for data_set, rows in table.printed.items():
            for row, cells in rows.items():
                assert len(cells) <= len(table.columns), (table.number, data_set, row)


def test_each_kind_of_table_is_filled() -> None:
    assert set(KINDS) == set(get_args(TableKind))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('number = "Table 1"', 'nmber = "Table 1"', r"line 7: table 1.number: it is missing"),
        ('kind = "scores"', 'kind = "score"', r"line 9: table 1.kind: input should be 'scores'"),
        ("replicates = 1", "replicates = 0", r"line 3: judge.replicates: .* greater than"),
        ("[[condition]]", "[[condition", "is not valid TOML: .*line 4"),
    ],
)
def test_a_broken_preset_is_told_with_its_line(
    tmp_path, monkeypatch, before: str, after: str, said: str
) -> None:
    text = """title = "Mine"
[judge]
replicates = 1
[[condition]]
name = "A"
method = "bm25"
[[table]]
number = "Table 1"
kind = "scores"
title = "Mine"
"""
    (tmp_path / "mine.toml").write_text(text.replace(before, after))
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    with pytest.raises(InputError, match=f"preset mine.*{said}"):
        experiment_of("e", "q", [], preset="mine")


@pytest.mark.parametrize("preset", PAPERS)
def test_each_preset_runs_what_there_is_and_names_what_is_lacking(preset) -> None:
    experiment = experiment_of("e", "q", [], preset=preset)
    paper = paper_of(preset)
    there = {condition.name for condition in experiment.conditions}
    assert there | dict(experiment.lacking).keys() == {row.name for row in paper.condition}
    assert experiment.judge is not None
    assert set(experiment.judge.among) <= there


def test_a_row_of_another_index_can_be_given_in_place_of_the_presets(tmp_path) -> None:
    file = tmp_path / "variants.toml"
    file.write_text(
        'questions = "q"\npreset = "archrag"\n'
        '[[condition]]\nname = "- Leiden"\nmethod = "archrag"\nhome = "links"\n'
    )
    experiment = read_experiment(file)
    (leiden,) = [each for each in experiment.conditions if each.name == "- Leiden"]
    assert (leiden.home, leiden.index) == (tmp_path / "links", {})
    assert experiment.variants.keys() == {"- Spec.", "- Spec. (No Aug)"}


@pytest.mark.parametrize("preset", preset_names())
def test_indexes_of_presets_differ_by_settings_that_there_are(preset) -> None:
    for name, changes in experiment_of("e", "q", [], preset=preset).variants.items():
        assert variant_of(Settings(), changes).as_set().keys() >= changes.keys(), name


def test_win_rates_stand_as_the_papers_figure_has_them(tmp_path) -> None:
    names = ["SS", "TS", "C0", "C1", "C2", "C3"]
    asked = [Question(f"Question {n}?") for n in range(12)]
    strength = {name: 0.2 + 0.12 * n for n, name in enumerate(names)}
    filled(tmp_path, conditions=names, questions=asked, strength=strength)
    by_number = tables(tmp_path, "graphrag")
    figure = by_number["Figure 2"]
    rows = {(label, name): cells for label, name, cells in figure.measured}
    for criterion in ("comprehensiveness", "directness"):
        for n, name in enumerate(names):
            cells = rows[criterion, name]
            assert cells[n] == 50
            for m, rival in enumerate(names):
                assert cells[m] + rows[criterion, rival][n] == pytest.approx(100)
    printed = {(label, name): cells for label, name, cells in figure.printed}
    # The paper's own: C0 wins over SS in 72 % of the podcast's questions, 71.92 in its table 6.
    assert printed["Podcast transcripts, comprehensiveness", "C0"][0] == 72
    table = by_number["Table 6"]
    own = {(label, name): cells for label, name, cells in table.printed}
    assert own["Podcast transcripts, comprehensiveness", "C0 - SS"][:2] == (71.92, 28.08)
    here = {(label, name): cells for label, name, cells in table.measured}
    assert here["comprehensiveness", "C0 - SS"][0] == rows["comprehensiveness", "C0"][0]


def test_a_context_window_wins_on_average_over_the_others(tmp_path) -> None:
    names = ["SS 8k", "SS 16k", "SS 32k", "SS 64k"]
    asked = [Question(f"Question {n}?") for n in range(10)]
    filled(tmp_path, conditions=names, questions=asked, criteria=("comprehensiveness",),
           strength=dict(zip(names, (0.9, 0.5, 0.3, 0.1), strict=True)))  # fmt: skip
    by_number = tables(tmp_path, "context-window")
    average, matrix = by_number["Appendix C"], by_number["Appendix C, pairs"]
    assert average.printed == (("all data sets", "SS 8k", (58.1, 52.4, 51.3)),)
    rates = {name: cells for _, name, cells in matrix.measured if _ == "comprehensiveness"}
    for n, (_, name, cells) in enumerate(average.measured):
        others = [rate for m, rate in enumerate(rates[name]) if m != n]
        assert cells[0] == pytest.approx(sum(others) / 3)
        assert cells[1:] == (None, None, None)
    # Over all pairs one's win is another's loss.
    assert sum(cells[0] for _, _, cells in average.measured) == pytest.approx(4 * 50)
    assert average.measured[0][2][0] > 60


def test_answers_that_all_tie_are_no_empty_table(tmp_path) -> None:
    names = ["SS 8k", "SS 16k"]
    asked = [Question(f"Question {n}?") for n in range(4)]
    # Whichever is shown first wins: both orders together are even.
    bias = {(names[0], names[1]): 1.0, (names[1], names[0]): 1.0}
    even = dict.fromkeys(names, 0.5)
    filled(tmp_path, conditions=names, questions=asked, strength=even, bias=bias)
    for table in tables(tmp_path, "context-window").values():
        assert not table.is_empty
        assert not any("no judge" in note for note in table.notes)
    unjudged = tmp_path / "unjudged"
    unjudged.mkdir()
    filled(unjudged, conditions=names, questions=asked)
    for table in tables(unjudged, "context-window").values():
        assert table.is_empty
        assert "nothing was measured: no judge compared the answers" in table.notes


def test_a_table_whose_name_has_a_comma_is_chosen_by_it(tmp_path, monkeypatch) -> None:
    filled(tmp_path, conditions=["HiRAG"], questions=[Question("Who?")])
    with EvaluationStore(tmp_path).transaction() as con:
        con.execute('UPDATE experiments SET spec = \'{"preset": "hirag"}\'')
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    one = CliRunner().invoke(app, ["eval", "tables", "-t", "Table 5, indexing", "--json"])
    assert [table["number"] for table in json.loads(one.stdout)] == ["Table 5, indexing"]
    two = CliRunner().invoke(app, ["eval", "tables", "-t", "Table 5, table 4", "--json"])
    assert [table["number"] for table in json.loads(two.stdout)] == ["Table 4", "Table 5"]


def test_passages_are_the_documents_and_the_table_says_so(home) -> None:
    with open_release(home, settings=settings_for(home)) as release:
        (counts,) = release.rows("SELECT (SELECT count(*) FROM documents) AS documents, "
                                 "count(*) AS chunks FROM chunks")  # fmt: skip
        assert counts["documents"] < counts["chunks"]
        note_facts(EvaluationStore(home), release)
        fill(home, Filled("e", conditions=["BM25"], questions=[Question("Who?")]))
        with EvaluationStore(home).transaction() as con:
            con.execute("UPDATE answers SET release = ?", [release.facts.id])
    for preset, number in (("archrag", "Table 1"), ("hirag", "Table 4")):
        table = tables(home, preset)[number]
        cells = dict(zip(table.columns, table.measured[0][2], strict=True))
        assert counts["documents"] in (cells.get("Passages"), cells.get("# of Passages"))
        assert any("chunks of one count as one" in note for note in table.notes)


def test_a_baseline_stands_before_the_method_it_is_compared_with(tmp_path) -> None:
    asked = [Question(f"Question {n}?") for n in range(6)]
    filled(tmp_path, conditions=["NaiveRAG", "HiRAG"], questions=asked,
           strength={"NaiveRAG": 0.1, "HiRAG": 0.9})  # fmt: skip
    table = tables(tmp_path, "hirag")["Table 1"]
    rows = {(label, name): cells for label, name, cells in table.measured}
    baseline, method = rows["NaiveRAG", "overall"]
    assert baseline < 50 < method
    assert baseline + method == pytest.approx(100)
    assert rows["KAG", "overall"] == (None, None)
    assert "KAG: gave no answer" in table.notes
    printed = {(label, name): cells for label, name, cells in table.printed}
    assert printed["NaiveRAG, Mix", "overall"] == (12.4, 87.6)


def test_the_matrix_counts_which_questions_only_one_answers_right(tmp_path) -> None:
    # Both right on 0 and 1, RAG alone on 2 and 3 and 4, GraphRAG alone on 5, none on 6 to 9.
    names = ("RAG", "Community-GraphRAG (Local)")
    right = {"RAG": range(5), names[1]: (0, 1, 5)}
    asked = [Question(f"Question {n}?", ("x",), type="inference_query") for n in range(10)]
    filled(tmp_path, conditions=names, questions=asked,
           scores={"accuracy": lambda name, n: float(n in right[name])})  # fmt: skip
    with EvaluationStore(tmp_path).read() as con:
        counts = overlap(con, "e", *names, "accuracy")
    assert (counts.both, counts.only_first, counts.only_second, counts.neither) == (2, 3, 1, 4)
    by_number = tables(tmp_path, "rag_vs_graphrag")
    figure = by_number["Figure 2"]
    assert [cells for _, _, cells in figure.measured] == [(20, 30), (10, 40)]
    kinds = {name: cells for _, name, cells in by_number["Table 2"].measured}
    assert kinds["RAG"] == (50, None, None, None, 50)


def test_questions_of_novels_are_counted_by_complexity_and_aspect(tmp_path) -> None:
    kinds = ["mh times", "mh times", "sh plot", "mh character"]
    asked = [Question(f"Question {n}?", ("x",), type=kind) for n, kind in enumerate(kinds)]
    filled(tmp_path, conditions=["RAG"], questions=asked,
           scores={"accuracy": lambda name, n: float(n != 1)})  # fmt: skip
    table = tables(tmp_path, "rag_vs_graphrag")["Table 3"]
    rows = {(label, name): dict(zip(table.columns, cells, strict=True))
            for label, name, cells in table.measured}  # fmt: skip
    assert rows["RAG", "mh"]["times"] == 50
    assert rows["RAG", "mh"]["avg"] == pytest.approx(200 / 3)
    assert rows["RAG", "avg"]["avg"] == 75
    assert rows["RAG", "sh"]["times"] is None


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return publish(tmp_path_factory.mktemp("presets"))


def test_the_parts_of_an_index_add_up_to_its_files(home) -> None:
    with open_release(home, settings=settings_for(home)) as release:
        parts = parts_of(release)
        vectors = [file for file in (home / "vectors").glob("*.lance/**/*") if file.is_file()]
        in_vectors = sum(file.stat().st_size for file in vectors)
        blocks = (home / "published.duckdb").stat().st_size
    assert sum(parts.values()) == pytest.approx(blocks + in_vectors, rel=0.02)
    text = parts["text"] + parts["vectors of chunks"]
    assert sum(parts[part] for part in needed_by("basic", list(parts))) == text
    assert "graph" not in needed_by("basic", list(parts))
    assert set(needed_by("unheard of", list(parts))) == parts.keys() - {REST}


def test_units_and_sizes_are_noted_with_the_release(home) -> None:
    store = EvaluationStore(home)
    with open_release(home, settings=settings_for(home)) as release:
        note_facts(store, release)
        note_facts(store, release)
        (counts,) = release.rows("SELECT count(*) AS n, sum(n_tokens) AS tokens FROM chunks")
        with store.read() as con:
            rows = con.execute("SELECT fact, item, value FROM release_facts").fetchall()
    facts = {(fact, item): value for fact, item, value in rows}
    assert len(facts) == len(rows)
    assert facts["units", "TS"] == facts["corpus", "chunks"] == counts["n"]
    assert facts["unit_tokens", "TS"] == counts["tokens"]
    assert facts["units", "C0"] >= 1


def test_the_command_fills_the_tables_and_says_what_is_missing(home, tmp_path, monkeypatch) -> None:
    file = tmp_path / "asked.jsonl"
    experiment = "asked-rag_vs_graphrag"
    line = {"question": "Who was the clerk of Scrooge?", "answers": ["Bob Cratchit"]}
    file.write_text(json.dumps(line))
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    run = CliRunner().invoke(
        app, ["eval", "run", "--preset", "rag_vs_graphrag", "-q", str(file), "--json"]
    )
    assert run.exit_code == 0, run.output
    shown = {table["number"]: table for table in json.loads(run.stdout)["tables"]}
    assert shown["Table 1"]["printed"][0] == [
        "NQ, Llama 3.1-8B", "RAG", [71.7, 63.93, 64.78]
    ]  # fmt: skip
    sizes = {row[1]: row[2] for row in shown["Storage by part"]["measured"]}
    assert 0 < sizes["RAG"][-1] < sizes["Community-GraphRAG (Local)"][-1]
    listed = CliRunner().invoke(app, ["eval", "tables", experiment, "-t", "Table 5, figure 4"])
    assert listed.exit_code == 0, listed.output
    assert "Community-GraphRAG (Local)" in listed.output
    assert "no judge compared the answers" in listed.output
    with EvaluationStore(home).read() as con:
        why = dict(con.execute("SELECT condition, reason FROM unanswered").fetchall())
    said = {note for table in shown.values() for note in table["notes"]}
    assert {f"{name}: {reason}" for name, reason in why.items()} <= said
    assert "needs a language model" in why["IRCoT+RAG"]
    brief = CliRunner().invoke(app, ["eval", "results", experiment])
    lines = (brief.stdout + brief.stderr).splitlines()
    (novels,) = [line for line in lines if "no question has a type of two words" in line]
    assert novels.startswith("Table 3, Table 6, ")
    assert not any(line.startswith("Table 3:") for line in lines)
    assert sum(line.startswith("IRCoT+RAG: ") for line in lines) == 1
    later = CliRunner().invoke(app, ["eval", "tables", experiment, "--json"])
    notes = {table["number"]: table["notes"] for table in json.loads(later.stdout)}
    assert notes == {number: table["notes"] for number, table in shown.items()}
    assert any("made before they were kept" in note for note in notes["Table 26"])
    wrong = CliRunner().invoke(app, ["eval", "tables", experiment, "-t", "Table 1, Table 99"])
    assert wrong.exit_code != 0
    assert "--table Table 99: there is none" in " ".join(wrong.output.split())
    assert "there are Table 1, Table 2" in " ".join(wrong.output.split())


def test_the_plan_of_a_preset_tells_what_is_lacking_and_what_it_takes(home, tmp_path) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text(json.dumps({"question": "Who?", "answers": ["Bob Cratchit"]}))
    settings = Settings.model_validate(
        {"home": str(home), "query": {"answers": "llm"}, "llm": {"model": "gpt-4o"}}
    )
    plan = plan_experiment(settings, experiment_of("p", str(file), [], preset="archrag"))
    assert any(stage.stage == "verdicts" and stage.calls for stage in plan.stages)
    assert plan.cost
    assert any("answer_style" in note for note in plan.notes)
    # Five conditions are compared in pairs, by four criteria and in both orders.
    verdicts = sum(stage.calls for stage in plan.stages if stage.stage == "verdicts")
    assert verdicts <= 10 * 4 * 2
    judged_at_all = [error for error in plan.errors if error.startswith("ArchRAG")]
    assert verdicts == (6 if judged_at_all else 10) * 4 * 2


NUMBERED = {"graphrag": (6, 4), "archrag": (8, 15), "hirag": (7, 9), "rag_vs_graphrag": (33, 9)}
"""How many tables and figures each paper has."""


def numbers_in(text: str) -> set[tuple[str, int]]:
    """Return the tables and figures that a text such as "Figures 1 to 3, 6" names."""
    kind, _, spans = text.partition(" ")
    return {
        (kind.rstrip("s"), number)
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", spans)
        for number in range(int(first), int(last or first) + 1)
    }


@pytest.mark.parametrize("preset", PAPERS)
def test_each_table_and_figure_of_a_paper_is_made_or_says_why_not(preset) -> None:
    paper = paper_of(preset)
    told = set[tuple[str, int]]().union(
        *(numbers_in(each.number) for each in (*paper.table, *paper.missing))
    )
    n_tables, n_figures = NUMBERED[preset]
    wanted = {("Table", n + 1) for n in range(n_tables)}
    assert {each for each in told if each[0] in ("Table", "Figure")} == wanted | {
        ("Figure", n + 1) for n in range(n_figures)
    }
    for missing in paper.missing:
        for other in re.findall(r"the preset (\S+) makes", missing.why):
            made = set().union(*(numbers_in(table.number) for table in paper_of(other).table))
            assert numbers_in(missing.number) <= made, missing.number


def test_verdicts_are_counted_by_pairs_orders_criteria_and_replicates() -> None:
    # 15 pairs in two orders by 4 criteria, 5 times; 2 rivals of RAG by 2 criteria.
    assert paper_of("graphrag").verdicts == 15 * 2 * 4 * 5
    assert paper_of("rag_vs_graphrag").verdicts == 2 * 2 * 2
    assert paper_of("archrag-k").verdicts == 0


@pytest.mark.parametrize(
    ("preset", "criterion", "words"),
    [
        ("hirag", "empowerment", "can act on"),
        ("rag_vs_graphrag", "global diversity", "inclusive of the whole world"),
        ("graphrag", "empowerment", "judge it for themselves"),
    ],
)
def test_the_judge_is_told_what_the_paper_means(
    tmp_path: Path, preset: str, criterion: str, words: str
) -> None:
    step = paper_of(preset).judge
    assert step is not None
    model = judge_of(Settings(home=str(tmp_path)), step.meanings)
    pair = AnswerPair("q", "Who?", "A", "B", ShownAnswer("a", "He."), ShownAnswer("b", "She."))
    with EvaluationStore(tmp_path).transaction() as con:
        asked = open_verdicts(con, [pair], step.criteria, 1, model)
    told = {inquiry.values["criterion"] for inquiry in asked if inquiry.name == criterion}
    assert len(told) == 1
    assert words in told.pop()
    # The tables of the preset ask for verdicts by these names.
    listed = {name for table in paper_of(preset).table for name in table.criteria}
    assert listed <= set(step.criteria)
