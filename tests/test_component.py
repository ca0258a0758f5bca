"""The pipeline in a user's own Dagster project: the page of that name, executed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import dagster as dg
import pytest
from commands import PATIENCE, run_python
from pydantic import ValidationError

from graphrag_pipeline.component import GraphRAGComponent
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.definitions import build_definitions

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "dagster.md"
_FILE = re.compile(r'^```\w+ title="(?P<path>[^"]+)"\n(?P<text>.*?)^```$', re.M | re.S)
RUN = """
import json
import dagster as dg
import duckdb
from library.definitions import defs

defs = defs()
graph = defs.resolve_asset_graph()
with dg.DagsterInstance.ephemeral() as instance:
    sensor = next(s for s in defs.sensors if s.name == "handbook_inbox_sensor")
    with dg.build_sensor_context(instance=instance) as context:
        tick = sensor(context)
    (asked,) = tick.run_requests
    (new,) = tick.dynamic_partitions_requests
    instance.add_dynamic_partitions(new.partitions_def_name, list(new.partition_keys))
    ingest = defs.resolve_job_def("handbook_ingest_batch")
    ingested = ingest.execute_in_process(
        instance=instance, partition_key=asked.partition_key, tags=asked.tags
    )
    refreshed = defs.resolve_job_def("handbook_refresh_index").execute_in_process(instance=instance)
    mine = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, asset_selection=[dg.AssetKey("most_named")]
    )
    (event,) = mine.get_asset_materialization_events()
    with duckdb.connect("handbook_index/published.duckdb", read_only=True) as con:
        uris = con.execute("SELECT uri FROM documents").fetchall()
    print(json.dumps({
        "uris": uris,
        "succeeded": [ingested.success, refreshed.success],
        "entities": event.materialization.metadata["entities"].value,
        "files": asked.tags["graphrag/files"],
        "partitions": new.partitions_def_name,
        "parents": [k.to_user_string() for k in graph.get(dg.AssetKey("most_named")).parent_keys],
    }))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of the page, in a folder of their own."""
    for block in _FILE.finditer(PAGE.read_text()):
        path = tmp_path / block["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block["text"])
    for package in ("library", "library/defs"):
        (tmp_path / package / "__init__.py").touch()
    os.utime(tmp_path / "documents" / "people.txt", (0, 0))
    return tmp_path


def environment() -> dict[str, str]:
    """What a command finds of this checkout, and nothing of the project."""
    bare = {n: v for n, v in os.environ.items() if not n.startswith(("GRAPHRAG_", "DAGSTER_HOME"))}
    return {**bare, "PYTHONPATH": str(ROOT)}


def run(project: Path, code: str) -> str:
    done = run_python("-c", code, cwd=project, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def command(project: Path, *words: str) -> str:
    """Return what a command that is installed says, which has nothing of the caller's path."""
    installed = Path(sys.executable).with_name(words[0])
    done = subprocess.run(
        [installed, *words[1:]],
        cwd=project,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_project_of_the_page_indexes_and_builds_on_the_release(project: Path) -> None:
    told = json.loads(run(project, RUN).splitlines()[-1])
    assert told == {
        "uris": [["documents/people.txt"]],
        "succeeded": [True, True],
        "entities": told["entities"],
        "files": "1 file: people.txt",
        "partitions": "handbook_document_batch",
        "parents": ["handbook/published_index"],
    }
    assert "Anna Berg" in told["entities"]
    assert not (project / ".graphrag").exists()


@pytest.mark.slow
@pytest.mark.parametrize("check", ["dg check defs", "dagster definitions validate"])
def test_the_project_of_the_page_passes_the_check_of_dagster(project: Path, check: str) -> None:
    told = command(project, *check.split())
    assert re.search("All definitions loaded successfully|All .* passed validation", told)


def test_what_is_wrong_in_the_yaml_of_a_component_is_told() -> None:
    with pytest.raises(ValidationError, match=r"chunks\.size"):
        GraphRAGComponent.resolve_from_yaml("settings: {chunks: {size: many}}")


def test_the_python_of_the_page_holds_two_indexes(project: Path) -> None:
    code = "import in_python; print(len(in_python.defs.resolve_asset_graph().get_all_asset_keys()))"
    assert int(run(project, code)) > 30


def test_dagster_lists_the_component() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert points["dagster_dg_cli.registry_modules"] == {
        "graphrag_pipeline": GraphRAGComponent.__module__
    }


def test_the_inbox_says_its_folder(tmp_path: Path) -> None:
    component = GraphRAGComponent.resolve_from_yaml(
        f"settings: {{home: {tmp_path}, input: {{folder: {tmp_path}/letters}}}}\nmarts: false"
    )
    graph = dg.build_defs_for_component(component).resolve_asset_graph()
    folder = graph.get(dg.AssetKey("inbox")).metadata["folder"]
    assert folder == dg.MetadataValue.path(f"{tmp_path}/letters")


LOADED_STRICTLY = """
import os
import warnings
from dagster_shared.utils.warnings import BetaWarning
warnings.simplefilter("error")
# Dagster makes other objects of a component's asset checks, and these again by a beta parameter.
warnings.filterwarnings("ignore", "Parameter `execution_type`", category=BetaWarning)
from dagster._core.code_pointer import CodePointer
from dagster._core.definitions.reconstruct import initialize_repository_def_from_pointer as load

pointer = CodePointer.from_module("library.definitions", "defs", os.getcwd())
checks = load(pointer).asset_checks_defs_by_key
print(*(key.name for key in checks))
"""


def test_the_project_of_the_page_loads_without_a_warning(project: Path) -> None:
    assert "index_is_whole" in run(project, LOADED_STRICTLY)


@pytest.mark.parametrize(
    ("line", "begins"),
    [("", "STOPPED"), ("automation: off", "STOPPED"), ("automation: on", "RUNNING")],
)
def test_the_automation_of_a_component_is_off_unless_its_yaml_says_on(
    tmp_path: Path, line: str, begins: str
) -> None:
    component = GraphRAGComponent.resolve_from_yaml(
        f"settings: {{home: {tmp_path}}}\nmarts: false\n{line}"
    )
    built = dg.build_defs_for_component(component)
    statuses = {each.default_status.value for each in built.sensors or ()}
    statuses |= {each.default_status.value for each in built.schedules or ()}
    assert statuses == {begins}


def named(defs: dg.Definitions) -> dict[str, set[str]]:
    """Return all names by which two indexes could collide."""
    graph = defs.resolve_asset_graph()
    nodes = [graph.get(key) for key in graph.get_all_asset_keys()]
    return {
        "keys": {node.key.to_user_string() for node in nodes},
        "groups": {str(node.group_name) for node in nodes},
        "pools": {pool for node in nodes for pool in node.pools or ()},
        "partitions": {node.partitions_def.name for node in nodes if node.partitions_def},
        "jobs": {job.name for job in defs.jobs or ()},
        "sensors": {sensor.name for sensor in defs.sensors or ()},
        "schedules": {schedule.name for schedule in defs.schedules or ()},
        "resources": set(defs.resources or {}),
    }


def test_two_indexes_in_one_code_location_share_no_name(tmp_path: Path) -> None:
    wanted = {
        "embeddings": {"facts": True, "synonyms": True},
        "hierarchies": {"raptor": True, "hirag": True, "attributed": True},
        "evaluation": {"experiment": "e.toml"},
    }
    one, two = (
        build_definitions(
            Settings.exactly({"home": str(tmp_path / name), **wanted}),
            key_prefix=prefix,
            marts=True,
        )
        for name, prefix in (("one", "one"), ("two", ["two", "more"]))
    )
    for kind, names in named(one).items():
        assert names, kind
        assert not names & named(two)[kind], kind
        begins = "one/" if kind == "keys" else "one_"
        assert all(name.startswith(begins) for name in names), (kind, names)
    both = dg.Definitions.merge(one, two)
    dg.Definitions.validate_loadable(both)
    assert named(both) == {kind: names | named(two)[kind] for kind, names in named(one).items()}


def test_two_prefixes_on_one_home_are_refused_and_one_is_taken_again(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    for _ in range(2):
        assert named(build_definitions(settings, key_prefix="one"))["jobs"]
    for prefix in ("two", ()):
        with pytest.raises(ConfigError, match="give each index a home of its own"):
            build_definitions(settings, key_prefix=prefix)
    other = Settings(home=str(tmp_path / "other"))
    assert named(build_definitions(other, key_prefix="two"))["jobs"]


@pytest.mark.parametrize("prefix", ["a b", ["ok", "a/b"], "a,b", "ä"])
def test_a_prefix_no_job_could_be_named_by_is_refused(prefix: str | list[str]) -> None:
    with pytest.raises(ConfigError, match="key_prefix"):
        build_definitions(Settings(), key_prefix=prefix)
