"""The inbox sensor, the refresh schedule and the word of failed runs."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from commands import run_python
from dagster_helpers import PEOPLE, PLACES, Pipeline

from graphrag_pipeline import Index
from graphrag_pipeline.core.notices import Notifier
from graphrag_pipeline.definitions import INGEST_JOB, REFRESH_JOB
from graphrag_pipeline.ingest.stages import stage_versions
from graphrag_pipeline.orchestration import runs
from graphrag_pipeline.resources.index import OUTAGE
from graphrag_pipeline.resources.liveness import show_life
from graphrag_pipeline.sensors.runs import COMMAND, files_of
from graphrag_pipeline.store.batches import Batch, SourceChange

UNDER_WAY = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    return Pipeline(tmp_path, monkeypatch)


def named(things: Iterable[Any] | None, name: str) -> Any:
    return next(thing for thing in things or () if thing.name == name)


def look(pipeline: Pipeline, instance: dg.DagsterInstance) -> dg.SensorResult | dg.SkipReason:
    """Return what the inbox sensor says at a tick; partitions it asks for are added."""
    sensor = named(pipeline.defs.sensors, "inbox_sensor")
    with dg.build_sensor_context(instance=instance) as context:
        result = sensor(context)
    assert isinstance(result, dg.SensorResult | dg.SkipReason)
    if isinstance(result, dg.SensorResult):
        for request in result.dynamic_partitions_requests or ():
            instance.add_dynamic_partitions("document_batch", list(request.partition_keys))
    return result


def requested(result: dg.SensorResult | dg.SkipReason) -> list[str]:
    assert isinstance(result, dg.SensorResult)
    return [str(request.partition_key) for request in result.run_requests or ()]


def skipped(result: object) -> str:
    assert isinstance(result, dg.SkipReason)
    return str(result.skip_message)


def settle(pipeline: Pipeline) -> None:
    """Let the files in the inbox be a minute old."""
    for path in pipeline.inbox.rglob("*"):
        os.utime(path, (time.time() - 60, time.time() - 60))


def add_run(
    pipeline: Pipeline,
    instance: dg.DagsterInstance,
    status: dg.DagsterRunStatus,
    tags: dict[str, str],
    job: str = INGEST_JOB,
) -> dg.DagsterRun:
    """Write down a run as Dagster would."""
    version = {"graphrag/version": stage_versions(pipeline.settings)["extractions"]}
    definition = pipeline.defs.resolve_job_def(job)
    run = instance.create_run_for_job(definition, tags={**version, **tags}, status=status)
    return run


def test_a_folder_that_is_not_there_is_said_to_be_missing(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.inbox.rmdir()
    assert "does not exist" in skipped(look(pipeline, instance))


def test_an_empty_folder_asks_for_nothing(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    assert "no document was added" in skipped(look(pipeline, instance))


def test_a_file_is_left_alone_until_it_has_settled(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    skipped(look(pipeline, instance))
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    assert instance.get_dynamic_partitions("document_batch") == [key]
    assert [change.uri.split("/")[-1] for change in pipeline.log.get(key).changes] == ["people.txt"]


def test_a_batch_is_asked_for_until_it_is_done(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    assert requested(look(pipeline, instance)) == [key]
    assert pipeline.ingest(instance, [key]).success
    skipped(look(pipeline, instance))


def test_a_batch_with_a_run_waiting_or_under_way_is_not_asked_for_again(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    add_run(pipeline, instance, dg.DagsterRunStatus.STARTING, {"dagster/partition": key})
    result = look(pipeline, instance)
    assert isinstance(result, dg.SensorResult)
    assert not result.run_requests
    assert "1 batch has a run under way" in str(result.skip_reason)
    pipeline.write({"places.md": PLACES})
    settle(pipeline)
    (other,) = requested(look(pipeline, instance))
    assert other != key


def test_a_batch_that_the_command_line_is_running_is_not_asked_for(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    tags = {
        "dagster/asset_partition_range_start": key,
        "dagster/asset_partition_range_end": key,
    }
    run = add_run(pipeline, instance, dg.DagsterRunStatus.STARTED, tags)
    show_life(instance, run.run_id)
    assert requested(look(pipeline, instance)) == []


def test_a_batch_that_fails_is_tried_three_times_and_each_request_is_new(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    run_keys = set()
    for _ in range(3):
        result = look(pipeline, instance)
        (key,) = requested(result)
        assert isinstance(result, dg.SensorResult)
        run_keys |= {request.run_key for request in result.run_requests or ()}
        add_run(pipeline, instance, dg.DagsterRunStatus.FAILURE, {"dagster/partition": key})
    assert len(run_keys) == 3
    assert requested(look(pipeline, instance)) == []


def test_an_outage_is_waited_out_with_growing_waits_and_nothing_is_given_up(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    began = time.time()
    failures, now = [0.0], began
    ended = {"dagster/partition": key, OUTAGE: "true"}
    while now < began + 8 * 3600:
        monkeypatch.setattr("graphrag_pipeline.sensors.inbox.time.time", lambda now=now: now)
        result = look(pipeline, instance)
        assert isinstance(result, dg.SensorResult)
        if result.run_requests:
            failures.append(now - began)
            run = add_run(pipeline, instance, dg.DagsterRunStatus.STARTED, ended)
            instance.handle_run_event(
                run.run_id,
                dg.DagsterEvent("PIPELINE_FAILURE", run.job_name, message="outage"),
                datetime.fromtimestamp(now, UTC),
            )
        else:
            assert "for the model to answer again" in str(result.skip_reason)
        now += 480
    waits = [later - earlier for earlier, later in pairwise(failures)]
    assert waits[:4] == sorted(waits[:4])
    assert 3600 <= max(waits) <= 3600 + 480
    assert len(failures) > 8


def test_a_batch_that_is_given_up_is_told_once_and_said_at_every_tick(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    for _ in range(3):
        add_run(pipeline, instance, dg.DagsterRunStatus.FAILURE, {"dagster/partition": key})
    sensor, told = named(pipeline.defs.sensors, "inbox_sensor"), []
    cursor: str | None = None
    for _ in range(3):
        with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
            context.log.warning = told.append  # pyright: ignore[reportAttributeAccessIssue]
            result = sensor(context)
        assert isinstance(result, dg.SensorResult)
        assert f"given up after 3 failures, see their runs: {key}" in str(result.skip_reason)
        cursor = result.cursor
    assert len(told) == 1


def test_a_batch_that_was_given_up_is_mended_when_it_is_done(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    word: list[tuple[str, str]] = []
    monkeypatch.setattr(Notifier, "failed", lambda _, what, why: word.append(("failed", what)))
    monkeypatch.setattr(Notifier, "mended", lambda _, what: word.append(("mended", what)))
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    for _ in range(3):
        add_run(pipeline, instance, dg.DagsterRunStatus.FAILURE, {"dagster/partition": key})
    sensor = named(pipeline.defs.sensors, "inbox_sensor")
    with dg.build_sensor_context(instance=instance) as context:
        cursor = sensor(context).cursor
    assert word == [("failed", f"batch {key}, given up")]
    Index(pipeline.settings).update(pipeline.settings.input_path)
    for _ in range(2):
        with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
            cursor = getattr(sensor(context), "cursor", None)
    assert word[1:] == [("mended", f"batch {key}, given up")]


def test_a_run_of_the_command_line_that_fails_is_told_by_the_command_alone(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    word: list[str] = []
    monkeypatch.setattr(Notifier, "failed", lambda _, what, why: word.append(what))
    sensor = named(pipeline.defs.sensors, "run_failure_sensor")
    for tags in ({}, {COMMAND: "index"}):
        run = add_run(pipeline, instance, dg.DagsterRunStatus.FAILURE, tags)
        event = dg.DagsterEvent(
            event_type_value="PIPELINE_FAILURE", job_name=run.job_name, message="no disk"
        )
        with dg.build_run_status_sensor_context(
            sensor_name="run_failure_sensor",
            dagster_instance=instance,
            dagster_run=run,
            dagster_event=event,
        ) as context:
            sensor(context.for_run_failure())
    assert word == [f"job {run.job_name}"]


def test_another_configuration_gives_a_failed_batch_new_attempts(
    pipeline: Pipeline,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    for _ in range(3):
        add_run(pipeline, instance, dg.DagsterRunStatus.FAILURE, {"dagster/partition": key})
    assert requested(look(pipeline, instance)) == []
    monkeypatch.setenv("GRAPHRAG_CHUNKS__SIZE", "300")
    assert requested(look(Pipeline(tmp_path, monkeypatch), instance)) == [key]


def test_a_run_whose_process_died_is_reported_and_its_batch_asked_for_again(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    (key,) = requested(look(pipeline, instance))
    run = add_run(pipeline, instance, dg.DagsterRunStatus.STARTED, {"dagster/partition": key})
    sign = Path(instance.root_directory) / "alive" / f"{run.run_id}.lock"
    sign.parent.mkdir(parents=True, exist_ok=True)
    sign.touch()
    assert requested(look(pipeline, instance)) == [key]
    ended = instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status == dg.DagsterRunStatus.FAILURE


def test_batches_survive_a_new_dagster_home(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    first = requested(look(pipeline, instance))
    with dg.DagsterInstance.ephemeral() as fresh:
        assert requested(look(pipeline, fresh)) == first
        assert fresh.get_dynamic_partitions("document_batch") == first


@pytest.mark.parametrize("leftover", [None, ".nfs-placeholder"])
def test_an_emptied_folder_is_taken_for_an_unmounted_disk(
    pipeline: Pipeline, instance: dg.DagsterInstance, leftover: str | None
) -> None:
    pipeline.write({"people.txt": PEOPLE})
    settle(pipeline)
    keys = requested(look(pipeline, instance))
    assert pipeline.ingest(instance, keys).success
    (pipeline.inbox / "people.txt").unlink()
    if leftover:
        pipeline.write({leftover: ""})
    assert "is its disk mounted?" in skipped(look(pipeline, instance))
    assert list(pipeline.log.sources()) != []


def test_one_document_of_several_may_be_taken_away(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE, "places.md": PLACES})
    settle(pipeline)
    assert pipeline.ingest(instance, requested(look(pipeline, instance))).success
    (pipeline.inbox / "people.txt").unlink()
    (key,) = requested(look(pipeline, instance))
    assert [change.action for change in pipeline.log.get(key).changes] == ["remove"]


@pytest.fixture
def kept_instance(pipeline: Pipeline) -> Iterator[dg.DagsterInstance]:
    """An instance in the home folder: schedules, unlike sensors, cannot use one in memory."""
    with runs.opened_instance(pipeline.settings) as kept:
        yield kept


def refresh_tick(pipeline: Pipeline, instance: dg.DagsterInstance) -> object:
    schedule = named(pipeline.defs.schedules, "refresh_schedule")
    with dg.build_schedule_context(
        instance=instance, scheduled_execution_time=datetime.now(UTC)
    ) as context:
        return schedule(context)


def batch_done(
    pipeline: Pipeline, instance: dg.DagsterInstance, run: dg.ExecuteInProcessResult
) -> object:
    """Return what the sensor says of a run that has come to a good end."""
    sensor = named(pipeline.defs.sensors, "batch_done_sensor")
    with dg.build_run_status_sensor_context(
        sensor_name=sensor.name,
        dagster_event=run.get_run_success_event(),
        dagster_instance=instance,
        dagster_run=run.dagster_run,
    ) as context:
        return sensor(context)


def test_what_is_new_asks_for_one_refresh_by_the_schedule_and_at_once_when_a_batch_is_done(
    pipeline: Pipeline, kept_instance: dg.DagsterInstance
) -> None:
    assert "up to date" in skipped(refresh_tick(pipeline, kept_instance))
    pipeline.write({"people.txt": PEOPLE})
    keys = pipeline.cut()
    assert "up to date" in skipped(refresh_tick(pipeline, kept_instance))
    run = pipeline.ingest(kept_instance, keys)
    assert isinstance(refresh_tick(pipeline, kept_instance), dg.RunRequest)
    asked = batch_done(pipeline, kept_instance, run)
    assert isinstance(asked, dg.RunRequest)
    assert asked.run_key == run.run_id
    for status in UNDER_WAY:
        waiting = add_run(pipeline, kept_instance, status, {}, job=REFRESH_JOB)
        assert waiting.run_id in skipped(refresh_tick(pipeline, kept_instance))
        assert waiting.run_id in skipped(batch_done(pipeline, kept_instance, run))
        kept_instance.delete_run(waiting.run_id)
    refreshed = pipeline.refresh(kept_instance)
    assert "did not belong to a batch" in skipped(batch_done(pipeline, kept_instance, refreshed))
    assert "up to date" in skipped(batch_done(pipeline, kept_instance, run))
    assert "up to date" in skipped(refresh_tick(pipeline, kept_instance))


def change(name: str, action: str = "add") -> SourceChange:
    return SourceChange(f"documents/{name}", action, None, 1, 1)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([change("a.pdf")], "1 file: a.pdf"),
        ([change("a.pdf"), change("b.md", "remove")], "2 files (1 removed): a.pdf, b.md"),
        (
            [change(f"{n}.txt") for n in range(7)],
            "7 files: 0.txt, 1.txt, 2.txt, 3.txt, 4.txt, …",
        ),
        ([change("a\x1b[31m\n\u202eb.txt")], "1 file: a [31m b.txt"),
        ([change("x" * 200)], f"1 file: {'x' * 39}…"),
    ],
)
def test_a_run_says_in_a_line_which_files_its_batches_hold(
    changes: list[SourceChange], told: str
) -> None:
    batch = Batch("key", datetime.now(UTC), "documents", tuple(changes))
    assert files_of([batch]) == {"graphrag/files": told}


def test_runs_asked_for_by_the_sensor_say_which_files_they_hold(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.write({"people.txt": PEOPLE, "places.md": PLACES})
    settle(pipeline)
    result = look(pipeline, instance)
    assert isinstance(result, dg.SensorResult)
    (request,) = result.run_requests or ()
    assert request.tags["graphrag/files"] == "2 files: people.txt, places.md"


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        (
            {"dagster/partition": "20260101T000000-abc"},
            "batch 20260101T000000-abc failed: resolution: ",
        ),
        ({}, f"job {REFRESH_JOB} failed: resolution: "),
    ],
)
def test_a_failed_run_is_told_with_its_reason_and_what_to_do(
    pipeline: Pipeline,
    instance: dg.DagsterInstance,
    tags: dict[str, str],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (pipeline.home / "index.duckdb").mkdir()
    result = pipeline.run(REFRESH_JOB, instance, tags)
    assert not result.success
    with dg.build_run_status_sensor_context(
        sensor_name="run_failure_sensor",
        dagster_event=result.get_run_failure_event(),
        dagster_instance=instance,
        dagster_run=result.dagster_run,
    ) as context:
        named(pipeline.defs.sensors, "run_failure_sensor")(context.for_run_failure())
    text = capsys.readouterr().err
    assert f"{told}cannot open" in text
    assert "release stays as it is" in text


def test_a_run_that_was_ended_from_outside_is_told_in_whole_sentences(
    pipeline: Pipeline, instance: dg.DagsterInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    run = add_run(pipeline, instance, dg.DagsterRunStatus.FAILURE, {}, REFRESH_JOB)
    ended = dg.DagsterEvent("PIPELINE_FAILURE", run.job_name, message="It was ended from outside.")
    with dg.build_run_status_sensor_context(
        sensor_name="run_failure_sensor",
        dagster_event=ended,
        dagster_instance=instance,
        dagster_run=run,
    ) as context:
        named(pipeline.defs.sensors, "run_failure_sensor")(context.for_run_failure())
    assert "It was ended from outside. The refresh schedule tries" in capsys.readouterr().err


def tell(
    pipeline: Pipeline, instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult
) -> None:
    """Let the sensors hear how a run ended."""
    kind = "PIPELINE_SUCCESS" if result.success else "PIPELINE_FAILURE"
    event = next(event for event in result.all_events if event.event_type_value == kind)
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    tell_of(pipeline, instance, run, event)


def tell_of(
    pipeline: Pipeline, instance: dg.DagsterInstance, run: dg.DagsterRun, event: dg.DagsterEvent
) -> None:
    is_good = event.event_type_value == "PIPELINE_SUCCESS"
    name = "run_success_sensor" if is_good else "run_failure_sensor"
    with dg.build_run_status_sensor_context(
        sensor_name=name, dagster_event=event, dagster_instance=instance, dagster_run=run
    ) as context:
        named(pipeline.defs.sensors, name)(context if is_good else context.for_run_failure())


def test_the_hooks_are_told_once_of_a_failure_and_once_that_it_is_mended(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = tmp_path / "noted"
    command = ["sh", "-c", f'echo "$GRAPHRAG_EVENT" >> {noted}; cat >> {noted}']
    monkeypatch.setenv("GRAPHRAG_NOTIFY__COMMAND", json.dumps(command))
    pipeline = Pipeline(tmp_path, monkeypatch)
    pipeline.write({"people.txt": PEOPLE})
    pipeline.ingest(instance, pipeline.cut())
    (pipeline.home / "index.duckdb").rename(tmp_path / "aside")
    (pipeline.home / "index.duckdb").mkdir()
    for tags in ({}, {OUTAGE: "true"}):
        tell(pipeline, instance, pipeline.run(REFRESH_JOB, instance, tags))
    for tags in ({}, {OUTAGE: "true", "dagster/partition": "b1"}):
        run = add_run(pipeline, instance, dg.DagsterRunStatus.FAILURE, tags, REFRESH_JOB)
        tell_of(pipeline, instance, run, dg.DagsterEvent("PIPELINE_FAILURE", run.job_name))
    lines = noted.read_text().splitlines()
    assert [line for line in lines if line.startswith("graphrag: ")] == [
        f"graphrag: job {REFRESH_JOB} failed",
        "graphrag: the model failed",
    ]
    (pipeline.home / "index.duckdb").rmdir()
    (tmp_path / "aside").rename(pipeline.home / "index.duckdb")
    tell(pipeline, instance, pipeline.run(REFRESH_JOB, instance, {}))
    run = add_run(pipeline, instance, dg.DagsterRunStatus.SUCCESS, {}, REFRESH_JOB)
    tell_of(pipeline, instance, run, dg.DagsterEvent("PIPELINE_SUCCESS", run.job_name))
    lines = noted.read_text().splitlines()
    assert [line for line in lines if line.endswith(" mended")] == [
        "graphrag: the model mended",
        f"graphrag: job {REFRESH_JOB} mended",
    ]


# A process that evaluates the sensor, as the daemon's does, killed before one change of the disk.
KILLED_TICK = """
import os, signal, sys
import dagster as dg
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.definitions import build_definitions
fatal, home = int(sys.argv[1]), sys.argv[2]
sensors = build_definitions(load_settings()).sensors
sensor = next(sensor for sensor in sensors if sensor.name == "inbox_sensor")
changes = 0
def hear(event, arguments):
    global changes
    if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate"):
        if str(arguments[0]).startswith(home):
            if changes == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            changes += 1
with dg.DagsterInstance.get() as instance, dg.build_sensor_context(instance=instance) as context:
    sys.addaudithook(hear)
    sensor(context)
"""


@pytest.mark.waits
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_tick_killed_at_any_step_loses_no_file_and_lists_none_twice(
    pipeline: Pipeline,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    stride: int,
) -> None:
    monkeypatch.setenv("GRAPHRAG_BATCHES__MAX_FILES", "1")
    killed, fatal = 0, 0
    while True:
        for name in ("a", "b"):
            pipeline.write({f"{fatal} {name}.txt": f"{PEOPLE} It was day {fatal}, said {name}."})
        settle(pipeline)
        ended = run_python("-c", KILLED_TICK, str(fatal), str(pipeline.home))
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        asked = requested(look(pipeline, instance))
        batches = pipeline.log.batches()
        assert sorted(asked) == [batch.key for batch in batches]
        listed = [change.uri.split("/")[-1] for batch in batches for change in batch.changes]
        assert sorted(listed) == sorted(path.name for path in pipeline.inbox.iterdir())
        if ended.returncode == 0:
            break
        killed += 1
        fatal += stride
    assert killed >= 2
    with pipeline.workspace.turn():
        assert not list(pipeline.home.rglob("*.tmp"))
