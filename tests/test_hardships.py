"""What a machine may deny a command: each ends well, or in one line with its exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import run_python
from conftest import Engine
from test_check import PLAIN, ready

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.open_files import LEAST, TooManyFilesError
from graphrag_pipeline.orchestration.runs import index_folder
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.upkeep.checking import check, repair

resource = pytest.importorskip("resource", reason="the system knows no such limits")
pytestmark = pytest.mark.usefixtures("plain_stores")
TOO_FEW = "error: too few files may be open at once: raise the limit (ulimit -n 1024)"
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from graphrag_pipeline.cli.app import main
sys.argv = ["graphrag-pipeline", *sys.argv[1:]]
try:
    main()
finally:
    print("may open", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def run_with(soft: int, hard: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that may open so many files, and raise the limit to the second number."""
    return run_python("-c", LIMITED.format(soft=soft, hard=hard), *command)


@pytest.mark.parametrize("command", ["index documents", "check --repair", "query Who?"])
def test_where_too_few_files_may_be_open_a_command_says_so_and_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_with(64, 64, *command.split())
    assert (done.returncode, done.stderr) == (5, f"{TOO_FEW} and run it again\n")
    assert not any(tmp_path.iterdir())


def test_a_command_opens_as_many_files_as_the_system_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_with(64, LEAST + 100, "methods", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"may open {LEAST + 100}\n")


def test_for_want_of_open_files_nothing_is_called_damaged(tmp_path: Path) -> None:
    index = ready(tmp_path / "index")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST // 2, before[1]))
    try:
        for look in (check, repair):
            with pytest.raises(TooManyFilesError):
                look(index)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert check(index).problems == ()


@pytest.mark.parametrize("name", ["what?", "50%"])
def test_a_home_that_dagster_cannot_be_in_is_refused_and_nothing_is_made_beside_it(
    tmp_path: Path, name: str
) -> None:
    engine = Engine(tmp_path)
    engine.write({"a.txt": "Ada Lovelace met Charles Babbage in London."})
    home = tmp_path / name / "home"
    settings = PLAIN.model_copy(update={"home": str(home)})
    with pytest.raises(ConfigError, match=r"holds [?%], which .* cannot read: name another"):
        index_folder(Workspace(settings), engine.inbox)
    assert {path.name for path in tmp_path.iterdir()} == {name, "documents"}
