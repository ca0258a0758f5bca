"""Unattended runs that may cost more than ``llm.confirm_cost`` wait for a person."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_helpers import Pipeline
from model_server import ModelServer
from test_llm_pipeline import FILES, mind
from test_sensors import batch_done, look, named, refresh_tick, requested, settle, skipped

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.definitions import REFRESH_JOB
from graphrag_pipeline.index import Index
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.orchestration import runs
from graphrag_pipeline.planning.consent import may_cost, why_ask
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.planning.plan import Plan, plan_batches
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.sensors.consent import Consent, Work
from graphrag_pipeline.watching import watch


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model with a price; whatever may cost anything is too much."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GRAPHRAG_PROFILE", "llm")
    monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", "0.000001")
    command = ["sh", "-c", f'echo "$GRAPHRAG_SUBJECT" >> {tmp_path / "heard"}']
    monkeypatch.setenv("GRAPHRAG_NOTIFY__COMMAND", json.dumps(command))
    with ModelServer(mind) as server:
        monkeypatch.setenv("GRAPHRAG_LLM__BASE_URL", server.base_url)
        yield server


@pytest.fixture
def pipeline(server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    pipeline = Pipeline(tmp_path, monkeypatch)
    pipeline.write(FILES)
    settle(pipeline)
    return pipeline


@pytest.fixture
def instance(pipeline: Pipeline) -> Iterator[dg.DagsterInstance]:
    with runs.opened_instance(pipeline.settings) as instance:
        yield instance


def waits(result: object) -> str:
    """Return why the inbox sensor asks for no run, though batches are due."""
    assert isinstance(result, dg.SensorResult)
    assert not result.run_requests
    return str(result.skip_reason)


def heard(tmp_path: Path) -> list[str]:
    """Return what the hooks of the settings were told."""
    file = tmp_path / "heard"
    return file.read_text().splitlines() if file.exists() else []


def logged(pipeline: Pipeline, instance: dg.DagsterInstance, ticks: int) -> list[str]:
    """Return the warnings that the inbox sensor writes to its log in some ticks."""
    warnings: list[str] = []
    sensor = named(pipeline.defs.sensors, "inbox_sensor")
    for _ in range(ticks):
        with dg.build_sensor_context(instance=instance) as context:
            context.log.warning = warnings.append  # pyright: ignore[reportAttributeAccessIssue]
            sensor(context)
    return warnings


def test_batches_that_may_cost_too_much_wait_and_one_is_told_once_how_to_allow_it(
    pipeline: Pipeline, instance: dg.DagsterInstance, server: ModelServer, tmp_path: Path
) -> None:
    (warning,) = logged(pipeline, instance, ticks=3)
    why = waits(look(pipeline, instance))
    for text in (warning, why):
        assert "more than llm.confirm_cost (1e-06)" in text
        assert "launch ingest_batch in Dagster's UI" in text
        assert "graphrag-pipeline index --yes" in text
        assert "raise llm.confirm_cost" in text
    assert heard(tmp_path) == ["graphrag: ingest_batch waits"]
    assert server.requests == []


def test_what_waits_can_be_launched_by_hand_and_its_refresh_is_planned_without_the_rest(
    pipeline: Pipeline, instance: dg.DagsterInstance, server: ModelServer, tmp_path: Path
) -> None:
    waits(look(pipeline, instance))
    (key,) = instance.get_dynamic_partitions("document_batch")
    ingested = pipeline.ingest(instance, [key])
    assert ingested.success
    assert "no document was added" in skipped(look(pipeline, instance))
    asked = len(server.requests)
    for reason in (
        batch_done(pipeline, instance, ingested),
        refresh_tick(pipeline, instance),
        refresh_tick(pipeline, instance),
    ):
        assert f"launch {REFRESH_JOB} in Dagster's UI" in skipped(reason)
    assert len(server.requests) == asked
    assert heard(tmp_path) == ["graphrag: ingest_batch waits", "graphrag: refresh_index waits"]
    pipeline.write({"more.txt": "Alice Smith met Bob Jones in Geneva."})
    settle(pipeline)
    waits(look(pipeline, instance))
    refresh = {stage.stage for stage in plan_batches(pipeline.workspace, ()).stages}
    assert "community_reports" in refresh
    assert "extractions" not in refresh
    (waiting,) = pending_batches(pipeline.workspace)
    both = {stage.stage for stage in plan_batches(pipeline.workspace, [waiting]).stages}
    assert both == {"extractions", *refresh}


@pytest.mark.parametrize("most", ["1000", "0"])
def test_under_a_higher_limit_or_none_batch_and_refresh_begin_unattended(
    pipeline: Pipeline,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: str,
) -> None:
    waits(look(pipeline, instance))
    monkeypatch.setenv("GRAPHRAG_LLM__CONFIRM_COST", most)
    allowed = Pipeline(tmp_path, monkeypatch)
    keys = requested(look(allowed, instance))
    assert allowed.ingest(instance, keys).success
    assert isinstance(refresh_tick(allowed, instance), dg.RunRequest)
    assert heard(tmp_path) == ["graphrag: ingest_batch waits"]


class Slow:
    """A plan that is not made until it is let go; it counts how often it was begun."""

    def __init__(self, cost: float) -> None:
        self.begun = 0
        self.go = threading.Event()
        self.cost = cost

    def __call__(self) -> Sequence[StagePlan]:
        self.begun += 1
        self.go.wait(60)
        return [stage(self.cost)]

    def work(self, content: str) -> Work:
        return Work(job="a_job", command="do it", content=content, plan=self)


def stage(cost: float | None) -> StagePlan:
    return StagePlan(
        stage="extractions",
        model="m",
        calls=1,
        cached=0,
        prompt_tokens=1,
        completion_tokens=1,
        cost=cost,
    )


@pytest.fixture
def consent(tmp_path: Path) -> Consent:
    return Consent(IndexResource.of(Settings(home=str(tmp_path / "home"))))


@pytest.mark.parametrize(("cost", "why"), [(2.0, "may cost $2.00, more"), (0.5, None)])
def test_a_plan_that_takes_longer_than_a_tick_is_made_once_and_a_later_tick_decides(
    consent: Consent, monkeypatch: pytest.MonkeyPatch, cost: float, why: str | None
) -> None:
    slow, log = Slow(cost), dg.get_dagster_logger()
    monkeypatch.setattr("graphrag_pipeline.sensors.consent._PATIENCE", 0.01)
    for _ in range(3):
        assert "still being estimated" in str(consent.why_waits(slow.work("a"), log))
    assert slow.begun == 1
    monkeypatch.setattr("graphrag_pipeline.sensors.consent._PATIENCE", 60)
    slow.go.set()
    decided = consent.why_waits(slow.work("a"), log)
    assert (why in str(decided)) if why else decided is None


def test_what_was_planned_before_more_came_allows_nothing(consent: Consent) -> None:
    little, more, log = Slow(0.5), Slow(2.0), dg.get_dagster_logger()
    little.go.set()
    more.go.set()
    assert consent.why_waits(little.work("a"), log) is None
    assert consent.why_waits(more.work("a"), log) is not None


def test_a_refusal_stands_without_planning_at_each_tick_until_the_work_is_another(
    consent: Consent,
) -> None:
    much, log = Slow(2.0), dg.get_dagster_logger()
    much.go.set()
    for _ in range(3):
        assert consent.why_waits(much.work("a"), log)
    assert much.begun == 1
    assert consent.why_waits(much.work("b"), log)
    assert much.begun == 2


def test_a_stage_without_a_price_hides_no_other_that_costs_too_much() -> None:
    settings = Settings()
    assert why_ask(settings, [stage(None)]) is None
    assert why_ask(settings, [stage(0.5), stage(0.5)]) is None
    asked = why_ask(settings, [stage(None), stage(2.0)])
    assert asked == "the run may cost at least $2.00, more than llm.confirm_cost (1)"


@pytest.mark.parametrize(
    ("given", "costs"),
    [
        ({}, False),
        ({"profile": "llm"}, True),
        ({"profile": "llm", "llm": {"confirm_cost": 0}}, False),
        ({"profile": "llm", "llm": {"model": "mine", "embedding_model": "mine"}}, False),
    ],
)
def test_only_a_model_with_a_price_is_planned_for(given: dict[str, Any], costs: bool) -> None:
    assert may_cost(Settings(**given)) is costs


def test_following_a_folder_without_dagster_waits_too_and_tells_once(
    pipeline: Pipeline, server: ModelServer
) -> None:
    problems: list[str] = []

    class Impatient(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            return self.is_set()

    stop = Impatient()

    class TwoLooks(Index):
        looks = 0

        def plan(self, folder: str | Path, **options: bool) -> Plan:
            self.looks += 1
            if self.looks == 2:
                stop.set()
            return super().plan(folder, **options)

    index = TwoLooks(pipeline.settings)
    watch(
        index,
        pipeline.inbox,
        stop=stop,
        on_update=lambda update: pytest.fail("it has begun"),
        on_problem=lambda error: problems.append(str(error)),
    )
    (problem,) = problems
    assert "graphrag-pipeline index --yes" in problem
    assert index.looks == 2
    assert server.requests == []
