"""Libraries that not everybody installs: what works without them, and what is said."""

from __future__ import annotations

import importlib.util
import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster_duckdb import DuckDBResource
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.cli.commands import OF_EXTRAS
from graphrag_pipeline.core import doors, extras
from graphrag_pipeline.core.extras import MODULES, how_to_install
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.marts import build
from graphrag_pipeline.resources import IndexResource

ROOT = Path(__file__).parents[1]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Hide the modules of extras, as where they are not installed."""

    def hide(*names: str) -> None:
        hidden = {module for name in names for module in MODULES[name]}
        monkeypatch.setattr(extras, "find_spec", lambda name: None if name in hidden else object())

    return hide


def installed_from(monkeypatch: pytest.MonkeyPatch, record: dict[str, Any] | None) -> None:
    text = json.dumps(record) if record else None
    distribution = SimpleNamespace(read_text=lambda name: text)
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: distribution)


def test_every_extra_is_known_by_its_modules() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(MODULES) == set(project["optional-dependencies"]) - {"dev", "nightly"}


def test_an_extra_is_added_to_what_the_project_was_installed_from(tmp_path, monkeypatch) -> None:
    wheel = tmp_path / "a folder" / "graphrag_pipeline-0.3.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    editable = {"dir_info": {"editable": True}}
    installed_from(monkeypatch, {"url": tmp_path.as_uri(), **editable})
    assert how_to_install("ui") == f"pip install -e '{tmp_path}[ui]'"
    installed_from(monkeypatch, {"url": tmp_path.as_uri(), "dir_info": {}})
    assert how_to_install("ui") == f"pip install '{tmp_path}[ui]'"
    installed_from(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    assert how_to_install("ui") == f"pip install --find-links '{wheel.parent}' '{wheel}[ui]'"


@pytest.mark.parametrize(
    "record", [None, {"url": "file:///gone/graphrag"}, {"url": "https://example.org/a.whl"}]
)
def test_where_it_came_from_is_not_guessed(monkeypatch, record) -> None:
    installed_from(monkeypatch, record)
    words = "install graphrag-pipeline again, from where you have it, with the extra [ui]"
    assert how_to_install("ui") == words


@pytest.mark.parametrize(
    ("command", "extra", "module"),
    [
        (["ui"], "ui", "dagster_webserver"),
        (["marts"], "marts", "dagster_dbt"),
        (["serve"], "server", "graphrag_server"),
        (["mcp"], "server", "graphrag_server"),
    ],
)
def test_a_command_says_which_extra_it_needs(tmp_path, without, command, extra, module) -> None:
    without(extra)
    result = CliRunner().invoke(app, command, env={"GRAPHRAG_HOME": str(tmp_path)})
    assert result.exit_code == 2
    assert result.stderr == f"error: {command[0]} needs {module}: {how_to_install(extra)}\n"


@pytest.mark.parametrize(("command", "extra"), OF_EXTRAS.items())
def test_a_command_of_a_package_that_is_not_installed_is_known(
    monkeypatch, without, command, extra
) -> None:
    monkeypatch.setattr(doors, "_installed", lambda path, here: {})
    without(extra)
    usual, _, more = CliRunner().invoke(app, ["--help"]).output.partition("More commands: ")
    assert command not in usual.split()
    assert command in more
    assert f"(extra {extra})" in " ".join(more.split())
    result = CliRunner().invoke(app, [command, "x", "--y"])
    assert result.exit_code == 2
    said = f"error: {command} needs {MODULES[extra][0]}: {how_to_install(extra)}"
    assert result.stderr == f"{said}\n"


def test_an_experiment_in_the_settings_is_told_of_where_nothing_can_run_it(
    tmp_path, without, caplog
) -> None:
    settings = Settings(home=str(tmp_path), evaluation={"experiment": "nightly.toml"})
    without("evaluation")
    build_definitions(settings)
    assert f"evaluation.experiment is left out: {how_to_install('evaluation')}" in caplog.text


def test_without_dbt_the_marts_are_left_out_of_definitions(tmp_path, without) -> None:
    settings = Settings(home=str(tmp_path))
    without("marts")
    jobs = {job.name for job in build_definitions(settings, marts=True).jobs or ()}
    assert jobs == {job.name for job in build_definitions(settings).jobs or ()}
    assert build.MARTS_JOB not in jobs


def test_without_dbt_no_query_is_told_to_build_the_marts_again(
    tmp_path, monkeypatch, without
) -> None:
    monkeypatch.setattr(build, "marts_outdated", lambda home: "a later release")
    assert build.marts_behind(tmp_path, "FROM marts.entity_profile") is not None
    without("marts")
    assert build.marts_behind(tmp_path, "FROM marts.entity_profile") is None


def test_dbt_is_named_with_its_extra_where_there_is_none(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(build.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.ConfigError) as failure:
        build.dbt_command()
    assert str(failure.value) == f"dbt is not installed: {how_to_install('marts')}"


def test_an_asset_that_asks_for_a_duckdb_resource_takes_the_index(tmp_path: Path) -> None:
    @dg.asset
    def counted(index: DuckDBResource) -> int:
        with index.get_connection() as con:
            return con.sql("SELECT count(*) FROM documents").fetchall()[0][0]

    resource = IndexResource.of(Settings(home=str(tmp_path / "home")))
    result = dg.materialize([counted], resources={"index": resource})
    assert result.output_for_node("counted") == 0


def test_the_resource_of_an_index_needs_no_dagster_duckdb(monkeypatch) -> None:
    spec = importlib.util.find_spec("graphrag_pipeline.resources.index")
    assert spec is not None
    assert spec.loader is not None
    again = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, again)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    spec.loader.exec_module(again)
    resource = again.IndexResource.of(Settings(home="nowhere"))
    assert not isinstance(resource, DuckDBResource)
    assert resource.settings.home == "nowhere"
