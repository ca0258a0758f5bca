"""Evaluation in Dagster: each release measured, an experiment as assets, a check that warns."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest
from dagster_helpers import metadata_of
from graphrag_evaluation.definitions import EVALUATION_JOB
from graphrag_evaluation.evaluating import run_experiment
from graphrag_evaluation.experiment import read_experiment
from graphrag_evaluation.history import drops
from graphrag_evaluation.store import EvaluationStore
from model_server import ModelServer
from query_fixture import publish

from conftest import Engine
from graphrag_pipeline.core.settings import EvaluationSettings, Settings, load_settings
from graphrag_pipeline.definitions import build_definitions, defs
from graphrag_pipeline.orchestration.runs import dagster_home, index_folder
from graphrag_pipeline.planning.pending import nothing_pending
from graphrag_pipeline.resources import IndexResource

RIGHT = {"Who was dead, to begin with?": "Marley", "Where was Marie Curie born?": "Warsaw"}
WRONG = {**RIGHT, "Where was Marie Curie born?": "Krakow"}
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
SPEC = 'questions = "questions.jsonl"\nmethods = ["bm25", "basic:top_k=3"]\n'
JUDGED = SPEC.replace("top_k=3", "top_k=1") + '[judge]\nreplicates = 1\ncriteria = ["overall"]\n'


class Nightly:
    """A home with a release, and the experiment "nightly" that its settings name."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, spec: str = SPEC) -> None:
        self.folder = folder
        self.home = publish(folder)
        self.file = folder / "nightly.toml"
        self.file.write_text(spec)
        patch.setenv("GRAPHRAG_HOME", str(folder))
        patch.setenv("GRAPHRAG_EVALUATION__EXPERIMENT", str(self.file))
        patch.setenv("GRAPHRAG_EVALUATION__WATCH", "answer_in_context")

    def ask_for(self, gold: dict[str, str]) -> None:
        lines = [json.dumps({"question": q, "answers": [a]}) for q, a in gold.items()]
        (self.folder / "questions.jsonl").write_text("\n".join(lines))

    def run(self) -> dg.ExecuteInProcessResult:
        job = build_definitions(load_settings()).resolve_job_def(EVALUATION_JOB)
        with dg.DagsterInstance.ephemeral() as instance:
            return job.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False)


@pytest.fixture
def nightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nightly:
    return Nightly(tmp_path, monkeypatch)


def check_of(done: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    assert done.success
    (check,) = done.get_asset_check_evaluations()
    return check


def test_the_check_fails_when_the_watched_metric_falls_from_one_run_to_the_next(
    nightly: Nightly,
) -> None:
    nightly.ask_for(RIGHT)
    # A run on the command line is one of the experiment's runs, too.
    run_experiment(load_settings(), read_experiment(nightly.file))
    same = nightly.run()
    assert (check_of(same).passed, check_of(same).description) == (True, None)
    told = metadata_of(same)
    answers, scores = told["experiment_answers", None], told["experiment_scores", None]
    assert (answers["questions"], answers["made"], answers["reused"]) == (2, 0, 4)
    assert answers["bm25: context_tokens"] > 0
    assert (scores["scores"], scores["bm25: answer_in_context"]) == (0, 1.0)
    assert scores["means"].startswith("| condition | answer_in_context | accuracy")

    nightly.ask_for(WRONG)
    fallen = check_of(nightly.run())
    assert (fallen.passed, fallen.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert fallen.description == (
        "basic:top_k=3: answer_in_context fell from 1.000 (release r1) to 0.500 (release r1); "
        "bm25: answer_in_context fell from 1.000 (release r1) to 0.500 (release r1)"
    )
    run_experiment(load_settings(), read_experiment(nightly.file))
    with EvaluationStore(nightly.home).read() as con:
        assert drops(con, "nightly", "answer_in_context", 0.05) == []
        history = con.execute(
            """SELECT condition, list(mean ORDER BY measured_at) FROM metric_history
               WHERE metric = 'answer_in_context' GROUP BY ALL ORDER BY ALL"""
        ).fetchall()
    assert history == [("basic:top_k=3", [1, 1, 0.5, 0.5]), ("bm25", [1, 1, 0.5, 0.5])]


def test_a_judged_experiment_has_its_verdicts_as_an_asset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(lambda _: '{"winner": 1, "reasoning": "first"}') as server:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
        nightly = Nightly(tmp_path, monkeypatch, JUDGED)
        nightly.ask_for({"What did Scrooge and Bob Cratchit do at Christmas?": "a turkey"})
        told = metadata_of(nightly.run())["experiment_verdicts", None]
        assert told["verdicts"] == len(server.requests) == 2
    assert told["bm25 over basic:top_k=1: win rate"] == 0.5
    with EvaluationStore(nightly.home).read() as con:
        assert con.execute("SELECT finished_at IS NOT NULL FROM experiments").fetchall() == [
            (True,)
        ]


def test_the_schedule_waits_where_the_experiment_may_cost_more_than_is_paid_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nightly = Nightly(tmp_path, monkeypatch, JUDGED)
    nightly.ask_for({"What did Scrooge and Bob Cratchit do at Christmas?": "a turkey"})
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    dagster_home(load_settings())

    def tick(most: str) -> object:
        monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", most)
        defs = build_definitions(load_settings())
        (schedule,) = (s for s in defs.schedules or () if s.name == "evaluation_schedule")
        with (
            dg.DagsterInstance.get() as instance,
            dg.build_schedule_context(instance=instance) as context,
        ):
            return schedule(context)  # type: ignore[operator]

    refused = tick("0.000001")
    assert isinstance(refused, dg.SkipReason)
    assert f"graphrag-pipeline eval run {nightly.file} --yes" in str(refused.skip_message)
    for most in ("5", "0"):
        assert isinstance(tick(most), dg.RunRequest)


def test_there_is_an_experiment_where_the_settings_name_one_and_its_schedule_is_off(
    tmp_path: Path,
) -> None:
    def keys(experiment: str) -> set[str]:
        given = Settings(evaluation=EvaluationSettings(experiment=experiment))
        defs = build_definitions(given, automation="on")
        graph = defs.resolve_asset_graph()
        assert [s.name for s in defs.schedules or () if s.default_status.value == "STOPPED"] == (
            ["evaluation_schedule"] if experiment else []
        )
        return {
            k.to_user_string()
            for k in graph.get_all_asset_keys()
            if graph.get(k).group_name == "evaluation"
        }

    (tmp_path / "judged.toml").write_text(JUDGED)
    assert keys("") == {"index_quality"}
    plain = {"index_quality", "experiment_answers", "experiment_scores"}
    assert keys(str(tmp_path / "missing.toml")) == plain
    assert keys(str(tmp_path / "judged.toml")) == plain | {"experiment_verdicts"}


def test_the_schedule_waits_for_something_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    given = Settings(home=str(tmp_path), evaluation=EvaluationSettings(experiment="e.toml"))
    dagster_home(given)
    (schedule,) = (s for s in build_definitions(given).schedules or () if "evaluation" in s.name)

    def tick(instance: dg.DagsterInstance) -> object:
        with dg.build_schedule_context(instance=instance) as context:
            return schedule(context)  # type: ignore[operator]

    with dg.DagsterInstance.get() as instance:
        assert isinstance(tick(instance), dg.SkipReason)
        publish(tmp_path)
        assert isinstance(tick(instance), dg.RunRequest)


def test_a_release_is_measured_once_and_what_goes_wrong_fails_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    publish(tmp_path)
    from graphrag_pipeline.assets import Names
    from graphrag_pipeline.assets.quality import build_measures

    def measured() -> dict[str, object]:
        done = dg.materialize(
            [stage.build(Names(), {}) for stage in build_measures()],
            resources={"index": IndexResource.of(load_settings())},
            run_config=QUIET,
            instance=dg.DagsterInstance.ephemeral(),
        )
        return metadata_of(done)["index_quality", None]

    first = measured()
    assert (first["modularity_level_0"], first["orphans"]) == (0.526, 0.0714)
    with EvaluationStore(tmp_path).transaction() as con:
        con.execute("UPDATE index_metrics SET value = 0.25 WHERE metric = 'orphans'")
    assert measured()["orphans"] == 0.25
    with EvaluationStore(tmp_path).transaction() as con:
        con.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
        con.execute("DELETE FROM meta WHERE key = 'schema'")
    assert "another version of the program" in str(measured()["measures"])


def test_in_our_own_ui_the_experiment_waits_to_be_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path))
    monkeypatch.setenv("GRAPHRAG_EVALUATION__EXPERIMENT", "e.toml")
    began = {each.name: each.default_status for each in defs().schedules or ()}
    stopped = [name for name, status in began.items() if status.value == "STOPPED"]
    assert stopped == ["evaluation_schedule"]


def test_a_release_that_was_not_measured_is_something_to_do(engine: Engine) -> None:
    engine.write({"a.txt": "Alice Smith met Bob Jones. Bob Jones paid Carol Brown."})
    index_folder(engine.workspace, engine.inbox)
    assert nothing_pending(engine.workspace)
    engine.workspace.paths.evaluation.unlink()
    assert not nothing_pending(engine.workspace)
    index_folder(engine.workspace, engine.inbox)
    assert nothing_pending(engine.workspace)
