"""Answers made again by chance: what of an answer a model says again, and what that costs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import Experiment, read_experiment
from graphrag_evaluation.purging import drop_experiments
from graphrag_evaluation.store import EvaluationStore
from model_server import Fault, Request
from query_fixture import publish
from strict_server import StrictServer

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases.kept_releases import release_ids
from graphrag_pipeline.store.workspace import Workspace

KNOWN = "Bob Cratchit was the clerk of Scrooge."
MADE_UP = ["He had a wooden leg.", "He owned a parrot."]
ANSWER = " ".join([KNOWN, *MADE_UP])
FENCED = re.compile(r"<(\w+) id=\w+>\n(.*?)\n</\1 id=", re.DOTALL)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("self_checked"))


@pytest.fixture
def home(published: Path) -> Path:
    for file in [*published.glob("evaluation.*"), *published.glob("llm*")]:
        file.unlink()
    return published


def by_chance(request: Request) -> Fault | None:
    """Answer: what is known always, what is made up otherwise with each seed."""
    if "The other answer:" in request.text:
        shown = dict(FENCED.findall(request.messages[-1]["content"]))
        sentences = re.findall(r"(\d+)\. (.+)", shown["facts"])
        said = [int(number) for number, sentence in sentences if sentence in shown["text"]]
        return Fault(text=json.dumps({"supported": said}))
    if (seed := request.body.get("seed")) is None:
        return Fault(text=ANSWER)
    return Fault(text=" ".join([KNOWN, *MADE_UP[: seed % 2]]))


def spec(folder: Path, table: str) -> Experiment:
    (folder / "asked.jsonl").write_text(json.dumps({"question": "Who was the clerk of Scrooge?"}))
    file = folder / "spec.toml"
    file.write_text(f'questions = "asked.jsonl"\nmethods = ["basic", "bm25"]\n{table}')
    return read_experiment(file)


def settings_for(home: Path, server: StrictServer, **more: Any) -> Settings:
    llm = {"base_url": server.base_url, "max_retries": 0, "temperature": 0.0}
    given = {"home": str(home), "llm": llm, "query": {"answers": "llm"}, **more}
    return Settings.model_validate(given)


def rows(home: Path, sql: str) -> list[tuple]:
    with EvaluationStore(home).read() as con:
        return con.execute(sql).fetchall()


def test_what_is_made_up_is_not_said_again_and_no_sample_is_paid_twice(
    home: Path, tmp_path: Path
) -> None:
    experiment = spec(tmp_path, "[self_check]\nsamples = 3")
    with StrictServer(lambda _: "", faults=by_chance) as server:
        settings = settings_for(home, server)
        planned = {s.stage: s.calls for s in plan_experiment(settings, experiment).stages}
        assert planned == {
            "basic": 1, "bm25": 1, "basic, samples": 3, "bm25, samples": 3, "self-check": 6,
        }  # fmt: skip
        outcome = run_experiment(settings, experiment)
        # Both say the same, and so do their samples: each is looked at once.
        assert (outcome.gradings, outcome.failures) == (3, ())
        drawn = [r.body for r in server.requests if "seed" in r.body]
        assert sorted(body["seed"] for body in drawn) == [1, 1, 2, 2, 3, 3]
        assert {body["temperature"] for body in drawn} == {1.0}
        # What is judged, and the answers themselves, are not drawn by chance.
        assert {r.body["temperature"] for r in server.requests if "seed" not in r.body} == {0.0}
        asked = len(server.requests)
        assert run_experiment(settings, experiment).gradings == 0
        assert sum(stage.calls for stage in plan_experiment(settings, experiment).stages) == 0
        # More samples are the same ones, and those that are missing.
        more = spec(tmp_path, "[self_check]\nsamples = 4")
        run_experiment(settings, more)
        assert len(server.requests) == asked + 2
    # Of three sentences two, one and two are said again by seeds 1, 2 and 3, one by seed 4.
    scores = "SELECT DISTINCT metric, round(value, 6) FROM scores WHERE metric = 'self_consistency'"
    assert rows(home, scores) == [("self_consistency", round((2 + 1 + 2 + 1) / 12, 6))]
    fewer = spec(tmp_path, "[self_check]\nsamples = 1")
    with StrictServer(lambda _: "", faults=by_chance) as server:
        run_experiment(settings_for(home, server), fewer)
        assert server.requests == []
    assert rows(home, scores) == [("self_consistency", round(2 / 3, 6))]
    texts = """SELECT DISTINCT replicate, b.text FROM answer_samples
               JOIN answers a USING (answer_id) JOIN answers b ON b.answer_id = sample_id
               WHERE a.text = ? ORDER BY ALL"""
    with EvaluationStore(home).read() as con:
        found = con.execute(texts, [ANSWER]).fetchall()
    assert [text for _, text in found] == [
        f"{KNOWN} {MADE_UP[0]}", KNOWN, f"{KNOWN} {MADE_UP[0]}", KNOWN,
    ]  # fmt: skip


def test_samples_are_drawn_by_the_model_that_answers(home: Path, tmp_path: Path) -> None:
    experiment = spec(tmp_path, '[self_check]\nsamples = 1\nmodel = "gpt-judge"')
    with StrictServer(lambda _: "", faults=by_chance) as server:
        strong = {"model": "gpt-strong", "temperature": 0.2, "extra": {"top_p": 0.9}}
        settings = settings_for(
            home, server, models={"strong": strong}, roles={"answers": "strong"}
        )
        run_experiment(settings, experiment)
    drawn = [r.body for r in server.requests if "seed" in r.body]
    assert {(b["model"], b["temperature"], b["top_p"]) for b in drawn} == {("gpt-strong", 1.0, 0.9)}
    judged = [r.body for r in server.requests if "The other answer:" in r.text]
    assert {body["model"] for body in judged} == {"gpt-judge"}


def test_answers_by_rule_are_not_sampled(home: Path, tmp_path: Path) -> None:
    experiment = spec(tmp_path, "[self_check]")
    with StrictServer(lambda _: "", faults=by_chance) as server:
        settings = settings_for(home, server, query={"answers": "extractive"})
        outcome = run_experiment(settings, experiment)
    assert (outcome.gradings, outcome.failures, len(server.requests)) == (0, (), 0)


def test_a_sample_that_cannot_be_made_is_told_and_made_by_the_next_run(
    home: Path, tmp_path: Path
) -> None:
    experiment = spec(tmp_path, "[self_check]\nsamples = 2")

    def refusing(request: Request) -> Fault | None:
        if request.body.get("seed") == 2:
            return Fault(status=500)
        return by_chance(request)

    with StrictServer(lambda _: "", faults=refusing) as server:
        outcome = run_experiment(settings_for(home, server), experiment)
        assert len(outcome.failures) == 2
        assert outcome.gradings == 1
    with StrictServer(lambda _: "", faults=by_chance) as server:
        outcome = run_experiment(settings_for(home, server), experiment)
        assert (outcome.failures, outcome.gradings) == ((), 1)


def test_a_purge_takes_samples_with_the_answer_they_are_of(
    plain_stores: None, home: Path, tmp_path: Path
) -> None:
    with StrictServer(lambda _: "", faults=by_chance) as server:
        settings = settings_for(home, server)
        run_experiment(settings, spec(tmp_path, "[self_check]\nsamples = 2"))
    kept = "SELECT count(*), (SELECT count(*) FROM answer_samples) FROM answers"
    (release,) = release_ids(home)
    drop_experiments(Workspace(settings), [release], release)
    assert rows(home, kept) == [(6, 4)]
    with EvaluationStore(home).transaction() as con:
        con.execute("DELETE FROM experiment_answers WHERE condition = 'basic'")
    drop_experiments(Workspace(settings), [release], release)
    assert rows(home, kept) == [(3, 2)]
