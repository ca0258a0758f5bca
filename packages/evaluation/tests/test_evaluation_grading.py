"""Scores against a reference, judging by what answers do not share, agreement with claims."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from evaluation_fixture import Filled, fill
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import Experiment, read_experiment
from graphrag_evaluation.judging.agreement import (
    agreements,
    keep_agreements,
    majorities,
)
from graphrag_evaluation.judging.differential import NOTHING, SUFFIX, parse_shared
from graphrag_evaluation.judging.reference import parse_score
from graphrag_evaluation.judging.verdicts import Verdict
from graphrag_evaluation.questions.question import Question
from graphrag_evaluation.store import EvaluationStore
from model_server import Messages
from query_fixture import publish
from strict_server import StrictServer
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm import ModelOutputError

QUESTIONS = [
    {"question": "Who was the clerk of Scrooge?", "answers": ["Bob Cratchit"]},
    {"question": "Where was Marie Curie born?", "answers": ["Warsaw"]},
    {"question": "What is known of Mars?"},
]
FENCED = re.compile(r"<(\w+) id=\w+>\n(.*?)\n</\1 id=", re.DOTALL)


def shown(messages: Messages) -> dict[str, str]:
    return dict(FENCED.findall(messages[-1]["content"]))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("graded"))


@pytest.fixture
def home(published: Path) -> Path:
    for file in [*published.glob("evaluation.*"), *published.glob("llm*")]:
        file.unlink()
    return published


def settings_for(home: Path, server: StrictServer) -> Settings:
    llm = {"base_url": server.base_url, "max_retries": 0}
    return Settings.model_validate({"home": str(home), "llm": llm})


def experiment(folder: Path, text: str) -> Experiment:
    (folder / "asked.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    file = folder / "spec.toml"
    file.write_text(f'questions = "asked.jsonl"\nmethods = ["basic", "global"]\n{text}')
    return read_experiment(file)


def values(home: Path, sql: str) -> list[tuple]:
    with EvaluationStore(home).read() as con:
        return con.execute(sql).fetchall()


def marked(replicates: list[int]) -> Callable[[Messages], str]:
    """A model that gives 9 for correctness, and for completeness each mark in turn."""
    left = list(replicates)

    def grade(messages: Messages) -> str:
        if "Completeness:" in messages[0]["content"]:
            return json.dumps({"reasoning": "in part", "score": left.pop(0)})
        return json.dumps({"reasoning": "right", "score": 9})

    return grade


def test_answers_are_scored_against_gold_over_replicates_and_paid_once(
    home: Path, tmp_path: Path
) -> None:
    spec = experiment(tmp_path, "[reference]\nreplicates = 2\ntemperature = 0.5")
    with StrictServer(marked([2, 6] * 4)) as server:
        settings = settings_for(home, server)
        # Two conditions, two questions with gold, two criteria, two replicates.
        assert [(s.stage, s.calls) for s in plan_experiment(settings, spec).stages] == [
            ("reference", 16)
        ]
        outcome = run_experiment(settings, spec)
        assert (outcome.gradings, outcome.failures) == (16, ())
        prompts = [request.text for request in server.requests]
        assert sum("- Bob Cratchit" in text for text in prompts) == 8
        assert run_experiment(settings, spec).gradings == 0
        assert [stage.calls for stage in plan_experiment(settings, spec).stages] == [0]
        assert len(server.requests) == 16
    by_metric = "SELECT metric, avg(value), count(*) FROM scores WHERE metric LIKE 'reference%'"
    assert values(home, f"{by_metric} GROUP BY ALL ORDER BY ALL") == [
        ("reference_completeness", 4.0, 4),
        ("reference_correctness", 9.0, 4),
    ]


def test_marks_of_two_models_are_both_kept_and_compared(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = '[reference]\ncriteria = ["correctness"]\nmodel = "{}"'
    kind, strict = (
        replace(experiment(tmp_path, table.format(model)), name=model)
        for model in ("gpt-kind", "gpt-strict")
    )

    def grade(messages: Messages) -> str:
        return json.dumps({"reasoning": "", "score": grade.score})

    with StrictServer(grade) as server:
        for spec, grade.score in ((kind, 9), (strict, 3), (kind, 5)):
            run_experiment(settings_for(home, server), spec)
        assert {r.body["model"] for r in server.requests} == {"gpt-kind", "gpt-strict"}
        assert len(server.requests) == 8
    assert values(home, "SELECT model, avg(value), count(*) FROM scores WHERE metric "
                        "LIKE 'reference%' GROUP BY ALL ORDER BY ALL") == [
        ("gpt-kind", 9.0, 4), ("gpt-strict", 3.0, 4),
    ]  # fmt: skip
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))

    def said(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["eval", *arguments])
        assert result.exit_code == 0, result.output
        return " ".join(result.stdout.split())

    assert "marked by gpt-kind: reference_correctness" in said("results", "gpt-kind")
    assert "marked by gpt-strict: reference_correctness" in said("results", "gpt-strict")
    assert "reference_correctness 9.000 3.000 -6.000" in said("compare", "gpt-kind", "gpt-strict")


def test_scores_of_before_they_were_kept_by_model_are_read_on(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "evaluation.duckdb")) as con:
        con.execute(
            """CREATE TABLE scores (answer_id VARCHAR NOT NULL, question_set VARCHAR NOT NULL,
               metric VARCHAR NOT NULL, value DOUBLE NOT NULL,
               PRIMARY KEY (answer_id, question_set, metric));
               INSERT INTO scores VALUES
               ('a', 's', 'reference_correctness', 7), ('a', 's', 'f1', 1)"""
        )
    fill(tmp_path, Filled("s", ["basic"], [Question("Who?")]))
    assert values(tmp_path, "SELECT * FROM scores ORDER BY ALL") == [
        ("a", "s", "f1", 1.0, ""), ("a", "s", "reference_correctness", 7.0, ""),
    ]  # fmt: skip
    with EvaluationStore(tmp_path).transaction() as con:
        con.execute("UPDATE experiment_answers SET answer_id = 'a'")
    assert values(tmp_path, "SELECT metric, value FROM experiment_scores ORDER BY ALL") == [
        ("f1", 1.0), ("reference_correctness", 7.0),
    ]  # fmt: skip


def test_the_answers_of_a_condition_can_be_the_reference(home: Path, tmp_path: Path) -> None:
    spec = experiment(tmp_path, '[reference]\ncondition = "global"\ncriteria = ["correctness"]')
    with StrictServer(marked([])) as server:
        assert run_experiment(settings_for(home, server), spec).gradings == len(QUESTIONS)
    graded = "SELECT DISTINCT condition FROM gradings JOIN experiment_answers USING (answer_id)"
    assert values(home, graded) == [("basic",)]
    with pytest.raises(InputError, match="= 'best' is no condition"):
        experiment(tmp_path, '[reference]\ncondition = "best"')


@pytest.mark.parametrize(
    ("text", "score"),
    [('{"score": 7}', 7), ('{"score": "8/10"}', 8), ('{"score": 0}', None), ("{}", None)],
)
def test_a_score_is_a_number_from_1_to_10(text: str, score: float | None) -> None:
    if score is None:
        with pytest.raises(ModelOutputError, match="from 1 to 10"):
            parse_score(text)
    else:
        assert parse_score(text)["value"] == score


def first_is_shared(messages: Messages) -> str:
    """A model for which the first sentence of each answer is shared, and the longer rest wins."""
    if "Find what the answers share" in messages[0]["content"]:
        return json.dumps({"first": [1, 99], "second": [1]})
    texts = shown(messages)
    longer = len(texts["first_answer"]) > len(texts["second_answer"])
    return json.dumps({"reasoning": "longer", "winner": 1 if longer else 2})


def test_the_judge_is_shown_what_the_answers_do_not_share_and_its_verdicts_stay_apart(
    home: Path, tmp_path: Path
) -> None:
    text = '[judge]\nreplicates = 1\ncriteria = ["overall"]\n'
    differential = experiment(tmp_path, f"{text}differential = true")
    with StrictServer(first_is_shared) as server:
        settings = settings_for(home, server)
        stages = plan_experiment(settings, differential).stages
        assert [(stage.stage, stage.calls) for stage in stages] == [
            ("differences", 3),
            ("verdicts", 6),
        ]
        assert run_experiment(settings, differential).verdicts == 6
        extracted, judged = server.requests[:3], server.requests[3:]
        numbered = {shown(r.messages)["first_answer"].partition("\n")[0] for r in extracted}
        assert all(line.startswith("1. ") for line in numbered)
        whole = [line[3:] for line in numbered]
        assert not any(line in r.text for r in judged for line in whole)
        assert all("without the sentences that they share" in r.text for r in judged)
        assert run_experiment(settings, differential).verdicts == 0
        assert not any(stage.calls for stage in plan_experiment(settings, differential).stages)
        assert run_experiment(settings, experiment(tmp_path, text)).verdicts == 6
    kinds = "SELECT criterion, count(*) FROM judgments GROUP BY ALL ORDER BY ALL"
    assert values(home, kinds) == [("overall", 6), (f"overall{SUFFIX}", 6)]


def test_a_judge_of_one_condition_is_told_of_before_it_is_run(home: Path, tmp_path: Path) -> None:
    both = experiment(tmp_path, "[judge]\nreplicates = 1")
    one = replace(both, conditions=both.conditions[:1])
    settings = Settings(home=str(home))
    assert plan_experiment(settings, both).notes == ()
    (note,) = plan_experiment(settings, one).notes
    assert note.startswith("judge: it compares conditions, and there is one")


def test_answers_that_share_all_they_say_tie_without_a_verdict(home: Path, tmp_path: Path) -> None:
    def all_shared(messages: Messages) -> str:
        assert "Find what the answers share" in messages[0]["content"]
        numbers = list(range(1, 200))
        return json.dumps({"first": numbers, "second": numbers})

    spec = experiment(tmp_path, "[judge]\nreplicates = 1\ndifferential = true")
    with StrictServer(all_shared) as server:
        outcome = run_experiment(settings_for(home, server), spec)
    assert (outcome.verdicts, outcome.failures) == (0, ())
    assert values(home, "SELECT DISTINCT win_rate, ties FROM comparisons") == [(0.5, 1.0)]


def test_shared_sentences_are_whole_numbers() -> None:
    assert parse_shared('{"first": [1], "second": []}') == {
        "first_shared": [1],
        "second_shared": [],
    }
    for wrong in ('{"first": [1]}', '{"first": ["1"], "second": []}', '{"first": 1, "second": []}'):
        with pytest.raises(ModelOutputError, match="whole numbers"):
            parse_shared(wrong)
    assert NOTHING


def verdict(question: str, criterion: str, winner: str) -> Verdict:
    return Verdict(question, criterion, "a", "b", winner)  # type: ignore[arg-type]


def test_a_majority_is_more_than_half_of_all_verdicts() -> None:
    """GraphRAG's own examples: three of five are a majority, two, one and two ties are none."""
    labels = majorities(
        [verdict("won", "overall", w) for w in ("first", "first", "first", "second", "tie")]
        + [verdict("even", "overall", w) for w in ("first", "first", "second", "tie", "tie")]
        + [verdict("half", "overall", w) for w in ("first", "first", "second", "second")]
        + [verdict("tied", "overall", w) for w in ("tie", "tie", "tie", "first", "second")]
    )
    assert dict(zip(labels["question_id"], labels["majority"], strict=True)) == {
        "won": "a",
        "even": "",
        "half": "",
        "tied": "",
    }


def test_agreement_is_that_of_decided_comparisons_and_written_as_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [Question(f"Question {n}?") for n in range(4)]
    claims = {"a": [9, 2, 5, 3], "b": [4, 7, 5, 8]}
    scores = {
        metric: lambda condition, n: float(claims[condition][n])
        for metric in ("claims", "claim_clusters@0.5")
    }
    fill(tmp_path, Filled("agreed", ["a", "b"], questions, scores=scores))
    # The judge names a, a, a, and nobody; a has more claims in the first, equal ones in the third.
    winners = ["first", "first", "first", "tie"]
    verdicts = [
        verdict(question.id, criterion, winner)
        for criterion in ("comprehensiveness", "diversity", "overall")
        for question, winner in zip(questions, winners, strict=True)
    ]
    with EvaluationStore(tmp_path).transaction() as con:
        keep_agreements(con, "agreed", verdicts)
        found = agreements(con, "agreed")
    assert [(a.criterion, a.metric, a.comparisons, a.decided, a.agreeing) for a in found] == [
        ("comprehensiveness", "claims", 4, 3, 1),
        ("diversity", "claim_clusters@0.5", 4, 3, 1),
    ]
    assert found[0].share == pytest.approx(1 / 3)
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    file = tmp_path / "agreement.csv"
    shown = CliRunner().invoke(app, ["eval", "results", "--agreement", str(file)])
    assert shown.exit_code == 0, shown.output
    assert "decides 3 of 4 comparisons; claims name the same answer in 33 % of them" in shown.stdout
    assert len(file.read_text().splitlines()) == 1 + 8
