"""Runs from the command line: several processes, killed ones, and errors in one line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from commands import ForkedPython, command, run_python
from dagster._core.events import EngineEventData
from dagster._core.instance import InstanceRef
from dagster._core.utils import make_new_run_id
from dagster_helpers import PEOPLE, PLACES, Pipeline

from graphrag_pipeline.core.errors import BusyError
from graphrag_pipeline.core.settings import ChunkSettings, ReportSettings, Settings
from graphrag_pipeline.marts.build import manifest
from graphrag_pipeline.orchestration.runs import RunFailedError, index_folder, opened_instance
from graphrag_pipeline.releases.kept_releases import published_release
from graphrag_pipeline.releases.publishing import config_hash
from graphrag_pipeline.resources.liveness import end_dead_runs, show_life
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.workspace import Workspace

PATIENCE = 300
pytestmark = pytest.mark.waits
# A stage of this process stands still until a file appears: long enough to be killed in it.
SLOW_INDEX = """
import pathlib, sys, time
from graphrag_pipeline.graph import fold as graph
from graphrag_pipeline.cli import app as cli
held, go_on = map(pathlib.Path, sys.argv[1:3])
fold = graph._fold
def slowly(*given, **options):
    held.touch()
    while not go_on.exists():
        time.sleep(0.05)
    return fold(*given, **options)
graph._fold = slowly
sys.argv = ["graphrag-pipeline", "index"]
cli.main()
"""


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    pipeline = Pipeline(tmp_path, monkeypatch)
    pipeline.write({"people.txt": PEOPLE})
    return pipeline


@contextlib.contextmanager
def started(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start Python on some code in a process group of its own; nothing of it outlives the test."""
    process = ForkedPython(
        ["-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f"{path.name} did not appear"
        time.sleep(0.05)


def statuses(job: str) -> list[str]:
    """Return the states of a job's runs, the newest first."""
    with dg.DagsterInstance.get() as instance:
        return [run.status.value for run in instance.get_runs(dg.RunsFilter(job_name=job))]


def test_a_run_killed_in_a_stage_does_not_hold_up_the_next(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    held = tmp_path / "held"
    with started(SLOW_INDEX, held, tmp_path / "never") as process:
        wait_for(held, process)
        process.kill()
        process.wait()
    assert statuses("refresh_index") == ["STARTED"]
    again = command("index")
    assert again.returncode == 0, again.stderr
    assert "waiting" not in again.stderr
    assert statuses("refresh_index") == ["SUCCESS", "FAILURE"]
    assert pipeline.release is not None
    with dg.DagsterInstance.get() as instance:
        storage = instance.event_log_storage
        assert storage.get_concurrency_info("index_db").active_run_ids == set()
        assert storage.get_concurrency_run_ids() == set()


def test_a_second_index_waits_for_the_first_says_so_and_succeeds(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    held, go_on = tmp_path / "held", tmp_path / "go_on"
    with started(SLOW_INDEX, held, go_on) as first:
        wait_for(held, first)
        pipeline.write({"places.md": PLACES})
        with started("from graphrag_pipeline.cli.app import main; main()", "index") as second:
            assert second.stderr is not None
            line = second.stderr.readline()
            assert line.startswith("waiting for run ")
            assert "(refresh_index)" in line
            assert second.poll() is None
            go_on.touch()
            _, told = first.communicate(timeout=PATIENCE)
            assert first.returncode == 0, told
            _, told = second.communicate(timeout=PATIENCE)
            assert second.returncode == 0, told
            assert "waiting" not in told
    assert statuses("refresh_index") == ["SUCCESS", "SUCCESS"]
    assert pipeline.rows("SELECT count(*) FROM documents") == [(2,)]


def test_an_error_raised_on_purpose_arrives_as_one_line(pipeline: Pipeline) -> None:
    (pipeline.home / "published.duckdb").mkdir()
    failed = command("index")
    assert failed.returncode == 5
    errors = [line for line in failed.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert errors[0].startswith("error: published_index: cannot write ")
    assert "Traceback" not in failed.stderr
    assert pipeline.release is None


def test_what_failed_is_first_in_what_the_ui_shows_and_told_once(pipeline: Pipeline) -> None:
    (pipeline.home / "index.duckdb").mkdir(parents=True)
    with dg.DagsterInstance.get() as instance:
        failed = pipeline.refresh(instance)
    (event,) = [event for event in failed.all_events if event.is_step_failure]
    shown = event.step_failure_data.error
    assert shown is not None
    assert shown.message.splitlines()[0].startswith(
        "dagster._core.definitions.events.Failure: cann"
    )
    assert shown.cause is None
    assert shown.context is None
    description = event.step_failure_data.user_failure_data.description
    assert "\n" not in description


def test_an_error_nobody_meant_is_one_line_too(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise KeyError("no such thing\nsecond line")

    monkeypatch.setattr(sys.modules["graphrag_pipeline.graph.descriptions"], "merge_graph", fails)
    with pytest.raises(RunFailedError, match=r"^graph: KeyError: .*no such thing.*\(run .*\)$"):
        index_folder(pipeline.workspace, pipeline.inbox)


def test_a_run_whose_record_is_removed_meanwhile_is_told_in_one_line_and_the_next_is_right(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = sys.modules["graphrag_pipeline.graph.descriptions"].merge_graph

    def beside_a_purge(*given: Any, **options: Any) -> Any:
        with opened_instance(pipeline.workspace.settings) as instance:
            for run in instance.get_runs():
                instance.delete_run(run.run_id)
        return merge(*given, **options)

    with monkeypatch.context() as patch:
        module = sys.modules["graphrag_pipeline.graph.descriptions"]
        patch.setattr(module, "merge_graph", beside_a_purge)
        with pytest.raises(BusyError, match=r"^a purge has removed .* run the command again$"):
            index_folder(pipeline.workspace, pipeline.inbox)
    index_folder(pipeline.workspace, pipeline.inbox)
    assert published_release(pipeline.workspace.home)


SETTLED = """
import json, sys
from pathlib import Path
from graphrag_pipeline.core.settings import load_settings
from graphrag_pipeline.graph import descriptions
from graphrag_pipeline.orchestration.runs import index_folder
from graphrag_pipeline.store.workspace import Workspace
merge = descriptions.merge_graph
def edited(*given):
    Path("graphrag.toml").write_text("[communities]\\nseed = 7\\n[reports]\\nmax_findings = 3\\n")
    return merge(*given)
descriptions.merge_graph = edited
index_folder(Workspace(load_settings()), Path("documents"))
"""
LOADED = """
import json, sys
import dagster as dg
from dagster._core.code_pointer import CodePointer
from dagster._core.definitions.reconstruct import (
    initialize_repository_def_from_pointer as load,
    reconstruct_repository_def_from_pointer as load_again,
)
from pathlib import Path
pointer = CodePointer.from_module("graphrag_pipeline.definitions", "defs", None)
def told(repository):
    resource = repository.get_top_level_resources()["index"]
    return resource.config_schema.default_value["configuration"]
first = load(pointer)
Path("graphrag.toml").write_text("[chunks]\\nsize = 222\\n")
data = dg.deserialize_value(dg.serialize_value(first.repository_load_data))
print(json.dumps([told(first), told(load_again(pointer, data)), told(load(pointer))]))
"""


def in_a_folder_of_its_own(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python there without any setting in the environment."""
    bare = {n: v for n, v in os.environ.items() if not n.startswith(("GRAPHRAG_", "DAGSTER_HOME"))}
    return run_python("-c", code, cwd=folder, env=bare)


def test_a_run_keeps_the_settings_its_command_began_with(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "people.txt").write_text(PEOPLE)
    (tmp_path / "graphrag.toml").write_text("[reports]\nmax_findings = 4\n")
    done = in_a_folder_of_its_own(SETTLED, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "seed" in (tmp_path / "graphrag.toml").read_text()
    meant = Settings(home=str(tmp_path / ".graphrag"), reports=ReportSettings(max_findings=4))
    with connect_published(tmp_path / ".graphrag" / "published.duckdb") as con:
        told = con.execute("SELECT config_hash FROM releases").fetchall()
    assert told == [(config_hash(meant),)]


def test_a_run_elsewhere_has_the_settings_its_code_location_was_loaded_with(tmp_path: Path) -> None:
    (tmp_path / "graphrag.toml").write_text("[chunks]\nsize = 111\n")
    manifest(tmp_path / ".graphrag")
    done = in_a_folder_of_its_own(LOADED, tmp_path)
    assert done.returncode == 0, done.stderr
    sizes = [told["chunks"]["size"] for told in json.loads(done.stdout)]
    assert sizes == [111, 111, 222]


def test_a_program_indexes_two_homes_and_leaves_the_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in os.environ if n.startswith(("GRAPHRAG_", "DAGSTER_HOME"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    for name, text in (("one", PEOPLE), ("two", PLACES)):
        (tmp_path / f"{name}-documents").mkdir()
        (tmp_path / f"{name}-documents" / "a.txt").write_text(text)
        before = dict(os.environ)
        given = Settings(home=str(tmp_path / name), chunks=ChunkSettings(size=len(name) * 100))
        outcome = index_folder(Workspace(given), tmp_path / f"{name}-documents")
        with dg.DagsterInstance.from_ref(
            InstanceRef.from_dir(str(tmp_path / name / "dagster"))
        ) as i:
            run = i.get_run_by_id(outcome.run_ids[0])
        assert run is not None
        assert run.tags["graphrag/files"] == "1 file: a.txt"
        assert dict(os.environ) == before
        assert published_release(tmp_path / name) is not None
        assert (tmp_path / name / "dagster" / "history").is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "one",
        "one-documents",
        "two",
        "two-documents",
    ]


def test_only_this_projects_dead_runs_are_ended(tmp_path: Path, pipeline: Pipeline) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        job = pipeline.defs.resolve_job_def("refresh_index")
        created, begun = dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED
        living, dead, unborn, foreign = (
            instance.create_run_for_job(job, status=status).run_id
            for status in (begun, begun, created, begun)
        )
        show_life(instance, living)
        signs = Path(instance.root_directory) / "alive"
        for run_id in (dead, unborn):
            (signs / f"{run_id}.lock").touch()
        assert [run.run_id for run in end_dead_runs(instance)] == [living]
        after = {run.run_id: run.status.value for run in instance.get_runs()}
        ended = {dead: "FAILURE", unborn: "FAILURE"}
        assert after == ended | {living: "STARTED", foreign: "STARTED"}


def test_a_process_may_show_its_life_before_its_run_is_there() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        to_come = make_new_run_id()
        show_life(instance, to_come)
        assert end_dead_runs(instance) == []
        assert (Path(instance.root_directory) / "alive" / f"{to_come}.lock").exists()


IN_STEPS = """
import os, signal
import dagster as dg
from graphrag_pipeline.resources.liveness import end_dead_runs, show_life
@dg.op
def first(context):
    show_life(context.instance, context.run_id)
@dg.op(ins={"before": dg.In(dg.Nothing)})
def second(context):
    end_dead_runs(context.instance)
    if "KILLED" in os.environ:
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
@dg.job
def steps():
    second(first())
"""


@pytest.mark.parametrize("ending", ["SUCCESS", "KILLED"])
def test_a_run_with_a_process_for_each_step_is_dead_when_the_one_that_waits_for_them_is(
    tmp_path: Path, ending: str
) -> None:
    (tmp_path / "steps.py").write_text(IN_STEPS)
    told = {**os.environ, "DAGSTER_HOME": str(tmp_path), ending: "1"}
    asked = [sys.executable, *["-m", "dagster", "job", "execute", "-f", "steps.py", "-j", "steps"]]
    subprocess.run(asked, cwd=tmp_path, env=told, capture_output=True, timeout=PATIENCE)
    with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(tmp_path))) as instance:
        (run,) = instance.get_runs()
        assert run.status.value == ("STARTED" if ending == "KILLED" else ending)
        failures = instance.get_records_for_run(
            run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE
        ).records
        assert not failures
        with subprocess.Popen(["sleep", "60"]) as unrelated:
            # As if it had got the number of the process that was killed.
            _tell_of_process(instance, run, unrelated.pid, ago=3600)
            end_dead_runs(instance)
            unrelated.kill()
        (run,) = instance.get_runs()
        assert run.status.value == ("FAILURE" if ending == "KILLED" else ending)


def _tell_of_process(
    instance: dg.DagsterInstance, run: dg.DagsterRun, pid: int, ago: float
) -> None:
    told = EngineEventData({"pid": dg.MetadataValue.text(str(pid))})
    event = dg.DagsterEvent("ENGINE_EVENT", "steps", message="Executing", event_specific_data=told)
    entry = dg.EventLogEntry(
        error_info=None,
        level="debug",
        user_message="",
        run_id=run.run_id,
        timestamp=time.time() - ago,
        job_name="steps",
        dagster_event=event,
    )
    instance.handle_new_event(entry)
