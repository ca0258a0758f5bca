"""A model of its own for each step of an evaluation, and criteria of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from graphrag_evaluation.criteria import CRITERIA
from graphrag_evaluation.evaluating import plan_experiment, run_experiment
from graphrag_evaluation.experiment import Experiment, read_experiment
from graphrag_evaluation.store import EvaluationStore
from model_server import Fault, Messages
from query_fixture import publish
from strict_server import StrictServer

from graphrag_pipeline.core.errors import ConfigError, InputError
from graphrag_pipeline.core.settings import QuerySettings, Settings
from graphrag_pipeline.llm import ModelError

QUESTIONS = ["Who was the clerk of Scrooge?", "Where was Marie Curie born?"]
MAIN_KEY, JUDGE_KEY = "sk-of-the-answers", "sk-of-the-judge"
VERDICTS = 2 * 2
"""One pair of answers to two questions, in both orders."""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("judged"))


@pytest.fixture
def home(published: Path) -> Path:
    for file in [*published.glob("evaluation.*"), *published.glob("llm*")]:
        file.unlink()
    return published


def said(messages: Messages) -> str:
    if "the claims that these sentences make" in messages[0]["content"]:
        return json.dumps({"sentences": [{"number": 1, "claims": ["Bob was a clerk."]}]})
    if "from passages of texts" in messages[0]["content"]:
        return "Bob was a clerk."
    if "given reports on parts of a collection of texts" in messages[0]["content"]:
        return json.dumps({"points": [{"description": "Bob was a clerk [1].", "score": 50}]})
    return json.dumps({"reasoning": "It says more.", "winner": 1})


def settings_for(home: Path, server: StrictServer, **llm: Any) -> Settings:
    given = {"base_url": server.base_url, "max_retries": 0, **llm}
    return Settings.model_validate({"home": str(home), "llm": given})


def experiment(folder: Path, text: str) -> Experiment:
    (folder / "asked.txt").write_text("\n".join(QUESTIONS))
    file = folder / "spec.toml"
    file.write_text(f'questions = "asked.txt"\nmethods = ["basic", "global"]\n{text}')
    return read_experiment(file)


def keys_sent(server: StrictServer) -> set[str]:
    return {request.headers["authorization"] for request in server.requests}


def test_a_step_has_its_model_address_and_key_and_the_others_have_theirs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", MAIN_KEY)
    monkeypatch.setenv("JUDGES_KEY", JUDGE_KEY)
    with StrictServer(said) as main, StrictServer(said) as other:
        spec = experiment(
            tmp_path,
            f"""
            [judge]
            criteria = ["overall"]
            replicates = 1
            model = "gpt-4o"
            base_url = "{other.base_url}"
            api_key_env = "JUDGES_KEY"
            temperature = 0.5
            [claims]
            """,
        )
        settings = settings_for(home, main)
        plan = plan_experiment(settings, spec)
        assert [stage.model for stage in plan.stages] == ["gpt-4.1-mini", "gpt-4o"]
        outcome = run_experiment(settings, spec)
        assert (outcome.verdicts, outcome.failures) == (VERDICTS, ())
        assert keys_sent(main) == {f"Bearer {MAIN_KEY}"}
        assert keys_sent(other) == {f"Bearer {JUDGE_KEY}"}
        asked = {(r.body["model"], r.body["temperature"]) for r in other.requests}
        assert asked == {("gpt-4o", 0.5)}
        assert {request.body["model"] for request in main.requests} == {"gpt-4.1-mini"}
        assert not any(stage.calls for stage in plan_experiment(settings, spec).stages)
    written = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert JUDGE_KEY.encode() not in written
    assert MAIN_KEY.encode() not in written
    with EvaluationStore(home).read() as con:
        assert con.execute("SELECT DISTINCT judge FROM judgments").fetchall() == [("gpt-4o",)]


def test_a_judge_that_cannot_be_asked_is_found_before_the_first_answer_is_paid(
    home: Path, tmp_path: Path
) -> None:
    with StrictServer(said) as main, StrictServer(said) as other:
        spec = experiment(tmp_path, f'[judge]\nreplicates = 1\nbase_url = "{other.base_url}"')
        settings = settings_for(home, main).model_copy(
            update={"query": QuerySettings(answers="llm")}
        )
        other.misbehave(lambda request: Fault(401, {"error": {"message": "a wrong key"}}))
        # What a server says of a key may hold it, and is not told.
        refused = f"the model for judging, cannot be used: the key was refused by {other.base_url}"
        with pytest.raises(ModelError, match=re.escape(refused)):
            run_experiment(settings, spec)
        assert (len(main.requests), len(other.requests)) == (0, 1)
        other.misbehave(())
        assert run_experiment(settings, spec).verdicts == 5 * VERDICTS
        assert sum("are you there" in request.text for request in other.requests) == 2


def test_the_key_of_the_answers_is_not_sent_to_the_address_of_a_judge(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", MAIN_KEY)
    with StrictServer(said) as main, StrictServer(said) as other:
        spec = experiment(tmp_path, f'[judge]\nreplicates = 1\nbase_url = "{other.base_url}"')
        run_experiment(settings_for(home, main), spec)
        assert keys_sent(other) == {"Bearer none"}


def test_verdicts_of_another_model_temperature_or_address_stay_apart(
    home: Path, tmp_path: Path
) -> None:
    with StrictServer(said) as main, StrictServer(said) as other:
        settings = settings_for(home, main)
        judges = (
            "",
            'model = "gpt-4o"',
            "temperature = 0.7",
            f'base_url = "{other.base_url}"',
        )
        for n, judge in enumerate(judges, start=1):
            text = f'[judge]\ncriteria = ["overall"]\nreplicates = 1\n{judge}'
            spec = experiment(tmp_path, text)
            assert run_experiment(settings, spec).verdicts == VERDICTS
            assert run_experiment(settings, spec).verdicts == 0
            with EvaluationStore(home).read() as con:
                count = con.execute("SELECT count(*) FROM judgments").fetchone()
            assert count == (n * VERDICTS,)


def test_a_criterion_of_ones_own_is_what_the_judge_is_told(home: Path, tmp_path: Path) -> None:
    text = """
    [judge]
    replicates = 1
    [judge.criteria]
    overall = true
    brevity = "Brevity: which answer wastes fewer words."
    """
    with StrictServer(said) as server:
        settings = settings_for(home, server)
        assert run_experiment(settings, experiment(tmp_path, text)).verdicts == 2 * VERDICTS
        told = [request.messages[0]["content"] for request in server.requests]
        assert sum("wastes fewer words" in system for system in told) == VERDICTS
        assert sum(CRITERIA["overall"] in system for system in told) == VERDICTS
        changed = text.replace("fewer", "the fewest")
        assert run_experiment(settings, experiment(tmp_path, changed)).verdicts == VERDICTS
    with EvaluationStore(home).read() as con:
        names = con.execute("SELECT criterion FROM comparisons ORDER BY ALL").fetchall()
    assert names == [("brevity",), ("overall",)]


def test_own_criteria_alone_stand_beside_those_that_ship(tmp_path: Path) -> None:
    spec = experiment(tmp_path, '[judge.own_criteria]\nbrevity = "Fewer words."')
    assert spec.judge is not None
    assert spec.judge.criteria == (*CRITERIA, "brevity")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[judge.criteria]\noverall = "Mine."', "'overall' ships with the program"),
        ('[judge]\ncriteria = ["beauty"]', "'beauty' is none of"),
        ('[judge]\nbase_url = "http://me:word@host/v1"', "must hold no password"),
        ('[judge]\napi_key_env = "sk-secret-1"', "and not the key itself"),
        ("[claims]\ntemperature = 3", "less than or equal to 2"),
    ],
)
def test_a_wrong_step_is_told_without_what_may_be_secret(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        experiment(tmp_path, text)
    assert "spec.toml" in str(error.value)
    assert "secret" not in str(error.value)
    assert "word@" not in str(error.value)


def test_a_key_in_place_of_its_variables_name_is_not_shown() -> None:
    with pytest.raises(ConfigError, match=r"api_key_env = .not shown.: must be") as error:
        Settings(llm={"api_key_env": "sk-secret-1"})
    assert "sk-secret" not in str(error.value)


def test_replicates_at_temperature_0_are_said_to_be_the_same(home: Path, tmp_path: Path) -> None:
    with StrictServer(said) as server:
        settings = settings_for(home, server)
        notes = plan_experiment(settings, experiment(tmp_path, "[judge]")).notes
        assert [note.partition(":")[0] for note in notes] == ["judge"]
        assert "5 replicates at temperature 0 are the same call" in notes[0]
        for text in ("[judge]\ntemperature = 0.7", "[judge]\nreplicates = 1"):
            assert plan_experiment(settings, experiment(tmp_path, text)).notes == ()
