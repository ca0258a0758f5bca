"""An index that one machine has alone, and what is said where many are asked for."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core import doors
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.extras import how_to_install
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.sharing import SHARING, sharing_of
from graphrag_pipeline.core.spreading import spread, spreading
from graphrag_pipeline.orchestration.runs import dagster_home
from graphrag_pipeline.resources.launching import ALONE, launcher_of
from graphrag_pipeline.store.workspace import Workspace

SHARED = {"url": "s3://bucket/index", "postgres": "postgresql://me@host/db"}
WORKERS = {"launcher": "celery", "broker": "redis://host:6379/0"}


@pytest.fixture
def _no_package_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no package brings anything."""
    monkeypatch.setattr(doors, "_installed", lambda path, here: {})


def test_an_index_in_its_home_asks_no_other_machine(tmp_path: Path) -> None:
    workspace = Workspace(Settings(home=str(tmp_path)))
    with workspace.coordinating(), workspace.coordinating():
        assert sharing_of(workspace.settings).calls() is None
    assert launcher_of(workspace.settings) is ALONE
    assert [*tmp_path.iterdir()] == []


def test_nothing_of_many_workers_is_imported_for_an_index_in_its_home(tmp_path: Path) -> None:
    code = (
        "import sys; from graphrag_pipeline.core.settings import Settings;"
        "from graphrag_pipeline.core.sharing import sharing_of;"
        "from graphrag_pipeline.resources.launching import launcher_of;"
        f"settings = Settings(home={str(tmp_path)!r});"
        "sharing_of(settings).follow(), launcher_of(settings).configuration();"
        "names = ('psycopg', 'celery', 'redis', 'kubernetes', 'graphrag_cluster');"
        "print(sorted(m for m in sys.modules if m.startswith(names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_work_is_done_here_unless_somebody_stands_in_for_it() -> None:
    assert spread("report", "writer") == "writer"
    with spreading({"report": lambda worker: f"others for the {worker}"}):
        assert spread("report", "writer") == "others for the writer"
        assert spread("embedding", "embedder") == "embedder"
    assert spread("report", "writer") == "writer"


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        (
            {"url": "s3://b"},
            "storage.url = 's3://b' needs Postgres: set storage.postgres, or G",
        ),
        ({"url": "gs://b"}, "storage.url = 'gs://b': must be s3://bucket/prefix or file:///fol"),
        ({"url": "file://host/b"}, "storage.url = 'file://host/b': must be s3://bucket/prefix"),
        ({"url": "s3://"}, "storage.url = 's3://': must be s3://bucket/prefix"),
        ({"url": "s3://key:hunter2@b"}, "storage.url = (not shown): must hold no key"),
        ({"postgres": "postgresql://me:hunter2@h/d"}, "storage.postgres = (not shown): must hold"),
        ({"postgres": "host=h password=hunter2"}, "storage.postgres = (not shown): must hold no p"),
    ],
)
def test_where_an_index_is_kept_is_refused_in_one_line(tmp_path, monkeypatch, storage, said):
    with pytest.raises(ConfigError) as caught:
        Settings(home=str(tmp_path), storage=storage)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_workers_lack_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r'"celery" needs storage\.url: .*; .*"celery" needs Redis'
    ):
        Settings(home=str(tmp_path), workers={"launcher": "celery"})


@pytest.mark.parametrize("command", [["index", "documents"], ["status"], ["query", "Who?"]])
def test_settings_that_ask_for_many_workers_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "graphrag_cluster" else find(name, *more),
    )
    environment = {"GRAPHRAG_HOME": str(tmp_path), "GRAPHRAG_STORAGE__URL": SHARED["url"]}
    environment["GRAPHRAG_STORAGE__POSTGRES"] = SHARED["postgres"]
    result = CliRunner().invoke(app, command, env=environment)
    needs = f"error: storage.url needs graphrag_cluster: {how_to_install('cluster')}\n"
    assert (result.exit_code, result.stderr) == (2, needs)


@pytest.mark.usefixtures("_no_package_beside")
@pytest.mark.parametrize(
    ("text", "stays"),
    [("postgres_url:\n  env: DAGSTER_GRAPHRAG_POSTGRES\n", False), ("# mine\n", True)],
)
def test_dagster_is_told_of_workers_no_more_where_one_machine_goes_on(
    tmp_path: Path, text: str, stays: bool
) -> None:
    given = Settings(home=str(tmp_path))
    file = dagster_home(given) / "dagster.yaml"
    assert file.read_bytes() == ALONE.configuration()
    file.write_text(text)
    dagster_home(given)
    assert file.read_bytes() == (text.encode() if stays else ALONE.configuration())


@pytest.mark.usefixtures("_no_package_beside")
def test_what_no_package_brings_is_not_done_by_one_machine_in_silence(tmp_path: Path) -> None:
    asked = {"home": str(tmp_path), "storage": SHARED, "workers": WORKERS}
    given = Settings.exactly(asked)
    with pytest.raises(ConfigError) as shared:
        sharing_of(given)
    with pytest.raises(ConfigError) as launched:
        launcher_of(given)
    assert str(shared.value) == f"storage.url is for many workers: {how_to_install('cluster')}"
    assert str(launched.value).startswith('workers.launcher = "celery" is for many workers: ')


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("builtins:dict", "dict does not derive from Sharing"),
        ("builtins:print", "it is builtin_function_or_method, not type"),
    ],
)
def test_what_comes_in_to_share_an_index_must_know_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, why: str
) -> None:
    places = {"s3": [doors._Place("s3", value, "other", "1.0")]}
    monkeypatch.setattr(doors, "_installed", lambda path, here: {SHARING.group: places})
    monkeypatch.setattr(SHARING, "_loaded", {})
    with pytest.raises(ConfigError) as refused:
        sharing_of(Settings.exactly({"home": str(tmp_path), "storage": SHARED}))
    assert f"way to share an index s3 ({value}) of the package other 1.0" in str(refused.value)
    assert why in str(refused.value)
