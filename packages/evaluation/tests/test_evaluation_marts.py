"""The marts of experiments say what the commands say, and are built again after each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import dagster as dg
import duckdb
import polars as pl
import pytest
from graphrag_evaluation import results
from graphrag_evaluation.evaluate import finish
from graphrag_evaluation.evaluating import run_experiment
from graphrag_evaluation.experiment import experiment_of
from graphrag_evaluation.judging.judge import write_comparisons
from graphrag_evaluation.judging.verdicts import Verdict, compare_verdicts
from graphrag_evaluation.store import EvaluationStore
from marts_fixture import build_some, home_with_release, put_release, release_wanted

from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.marts import build as marts
from graphrag_pipeline.marts.inputs import copy_inputs
from graphrag_pipeline.marts.sql import query_published

pytestmark = pytest.mark.slow
GOLD = {"Who was dead, to begin with?": "Marley", "Where was Marie Curie born?": "Krakow"}
MARTS = ("results", "win_rates", "contexts", "history")
METHODS = ("bm25", "basic:top_k=3")
GONE = "a condition that the experiment no longer has"


def evaluate(home: Path) -> None:
    """Run an experiment twice, as every night; a judge then says that its first method wins."""
    questions = home / "gold.jsonl"
    lines = [json.dumps({"question": q, "answers": [a]}) for q, a in GOLD.items()]
    questions.write_text("\n".join(lines))
    nightly = experiment_of("nightly", str(questions), METHODS)
    for _ in range(2):
        run_experiment(load_settings(), nightly)
    verdicts = [
        Verdict(str(n), "overall", first, second, "first" if first == METHODS[0] else "second")
        for n in range(12)
        for loser in (METHODS[1], GONE)
        for first, second in permutations((METHODS[0], loser))
    ]
    compared = compare_verdicts(verdicts)
    assert {one.condition_b for one in compared} == {METHODS[1], GONE}
    with EvaluationStore(home).transaction() as con:
        write_comparisons(con, nightly.name, compared)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a release and an experiment on it, and its marts built."""
    with home_with_release(tmp_path_factory.mktemp("marts")) as place:
        evaluate(place)
        build_some(place, *(f"experiment_{name}" for name in MARTS))
        yield place


@pytest.fixture(scope="module")
def ask(home: Path):
    def rows(statement: str) -> list[tuple]:
        return query_published(home, statement)[1]

    return rows


def test_results_of_experiments_are_those_that_the_commands_show(ask, home: Path) -> None:
    with EvaluationStore(home).read() as con:
        took = results.costs(con, "nightly")
        scores = results.means(results.question_scores(con, "nightly"))
    names = "condition, method, n_answers, context_tokens, cost, total_ms, parameters, release_id"
    rows = ask(f"SELECT {names} FROM marts.experiment_results ORDER BY position")
    shown = ["condition", "method", "answers", "context_tokens", "cost", "total_ms", "parameters"]
    assert rows == took.select(*shown, "release").rows()
    for (condition,) in ask("SELECT condition FROM marts.experiment_results"):
        (found,) = ask(
            f"""SELECT scores, f1, answer_in_context, n_claims FROM marts.experiment_results
                WHERE condition = '{condition}' AND finished_at > started_at"""
        )
        of_it = scores.filter(pl.col("condition") == condition)
        means = dict(of_it.select("metric", "mean").rows())
        assert found == (means, means["f1"], means["answer_in_context"], None)
    assert ask("SELECT answer_in_context, is_written FROM marts.experiment_results LIMIT 1") == [
        (0.5, False)
    ]


def test_contexts_are_told_by_kinds_of_records(ask, home: Path) -> None:
    rows = ask(
        """SELECT condition, kind, n_answers, n_answers_with, mean_tokens, token_share
           FROM marts.experiment_contexts WHERE experiment = 'nightly' ORDER BY condition, kind"""
    )
    assert {kind for _, kind, *_ in rows} >= {"chunk"}
    with EvaluationStore(home).read() as con:
        wanted = con.execute(
            """SELECT condition, avg(coalesce(list_sum([p.tokens for p in parts]), 0))
               FROM experiment_answers JOIN answers USING (answer_id)
               WHERE experiment = 'nightly' GROUP BY condition"""
        ).fetchall()
    for condition, tokens in wanted:
        of_it = [row for row in rows if row[0] == condition]
        assert sum(mean for *_, mean, _ in of_it) == pytest.approx(tokens)
        assert sum(share for *_, share in of_it) == pytest.approx(1)
        assert all(0 < n_with <= n_answers for _, _, n_answers, n_with, *_ in of_it)


def test_win_rates_and_history_lead_to_methods_and_the_run_before(ask) -> None:
    assert ask(
        """SELECT criterion, condition_a, condition_b, method_b, n_questions, win_rate, winner
           FROM marts.experiment_win_rates"""
    ) == [("overall", "bm25", "basic:top_k=3", "basic", 12, 1.0, "bm25")]
    assert ask(
        """SELECT is_latest, count(*) > 3, count(previous_mean) > 3, sum(change)
           FROM marts.experiment_history GROUP BY 1 ORDER BY 1"""
    ) == [(False, True, False, None), (True, True, True, 0.0)]


def test_marts_are_outdated_when_another_experiment_is_done_and_not_before(
    home: Path, tmp_path: Path
) -> None:
    for name in ("published.duckdb", "marts.duckdb", "evaluation.duckdb"):
        shutil.copy(home / name, tmp_path / name)
    assert marts.marts_outdated(tmp_path) is None
    store = EvaluationStore(tmp_path)
    nightly = experiment_of("nightly", "gold", METHODS)
    with store.transaction() as con:
        con.execute("UPDATE experiments SET finished_at = NULL")
    assert marts.marts_outdated(tmp_path) is None
    finish(store, nightly)
    assert release_wanted(tmp_path) == "r1"


def test_the_file_of_experiments_stands_before_the_marts_that_read_it(home: Path) -> None:
    graph = build_definitions(load_settings(), marts=True).resolve_asset_graph()
    assert graph.get(dg.AssetKey("evaluations")).group_name == "evaluation"
    read = {key for key in graph.get_all_asset_keys() if key.path[:2] == ["marts", "staging"]}
    parents = [graph.get(key).parent_keys for key in read]
    assert parents.count({dg.AssetKey("evaluations")}) == 5


def test_what_the_marts_read_of_evaluations_is_there_in_the_same_types(tmp_path: Path) -> None:
    columns = """
    SELECT table_name, column_name, data_type FROM duckdb_columns()
    WHERE NOT internal AND schema_name = 'main'
    """
    put_release(tmp_path, "r1")
    with duckdb.connect(str(copy_inputs(tmp_path, tmp_path))) as con:
        read = con.execute(columns).fetchall()
    (tmp_path / "evaluation.duckdb").unlink()
    with EvaluationStore(tmp_path).read() as con:
        kept = con.execute(columns).fetchall()
    assert set(read) <= set(kept)
    assert len(read) > 50


def test_tables_of_an_evaluation_under_way_are_copied_and_the_others_are_empty(
    tmp_path: Path,
) -> None:
    with EvaluationStore(tmp_path).transaction() as con:
        con.execute("DROP TABLE metric_history")
        con.execute("INSERT INTO scores VALUES ('a', 's', 'f1', 0.5, '')")
    (tmp_path / "copy").mkdir()
    with duckdb.connect(str(copy_inputs(tmp_path, tmp_path / "copy"))) as con:
        assert con.execute("SELECT value FROM scores").fetchall() == [(0.5,)]
        assert con.execute("FROM metric_history").fetchall() == []
