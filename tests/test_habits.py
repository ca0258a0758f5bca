"""What helps those who change the project: hooks, templates, a report of coverage."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import dear_list
import pytest
import yaml
from checkouts import ROOT
from commands import run_python
from coverage import CoverageData

from conftest import LISTED, TESTS

HOOKS = ROOT / ".pre-commit-config.yaml"
BIN = Path(sys.executable).parent


def test_hooks_before_a_commit_are_the_checks_of_make_lint() -> None:
    validated = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", HOOKS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert validated.returncode == 0, validated.stdout
    (local,) = yaml.safe_load(HOOKS.read_text())["repos"]
    assert local["repo"] == "local"
    lint = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    for hook in local["hooks"]:
        words = [word for word in shlex.split(hook["entry"]) if word != "--force-exclude"]
        assert " ".join(words) in lint, hook["id"]


def test_hooks_find_what_is_badly_written(tmp_path: Path) -> None:
    (local,) = yaml.safe_load(HOOKS.read_text())["repos"]
    commands = [hook["entry"] for hook in local["hooks"] if hook.get("pass_filenames", True)]
    file = tmp_path / "bad.py"
    file.write_text("import os\nx=1\n")
    outcomes = []
    for command in commands:
        program, *options = shlex.split(command.replace(".venv/bin", str(BIN)))
        check = ["--check"] if "format" in options else ["--no-cache"]
        arguments = [program, *options, *check, str(file)]
        outcomes.append(subprocess.run(arguments, capture_output=True, check=False).returncode)
    assert outcomes == [1, 1]


def test_templates_of_issues_are_forms_that_can_be_filled_in() -> None:
    forms = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")]
    assert {path.name for path in forms} == {"bug.yml", "config.yml", "feature.yml"}
    for path in forms:
        form = yaml.safe_load(path.read_text())
        if path.name == "config.yml":
            continue
        assert {"name", "description", "body"} <= set(form)
        ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
        assert len(ids) == len(set(ids)) > 1
        assert all(part["attributes"] for part in form["body"])
    assert "CHANGELOG" in (ROOT / ".github" / "pull_request_template.md").read_text()


def test_coverage_counts_what_a_process_of_a_test_reaches(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\n\n"
        "def test_it():\n"
        "    subprocess.run([sys.executable, '-c', 'import graphrag_pipeline.core.levels'])\n"
    )
    config = f"--cov-config={ROOT / 'pyproject.toml'}"
    measured = ["--cov", config, "--cov-report="]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *measured]
    bare = {n: v for n, v in os.environ.items() if not n.startswith(("PYTEST_", "COV"))}
    ended = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stdout
    (data,) = (tmp_path / "build" / "coverage").iterdir()
    reached = CoverageData(str(data))
    reached.read()
    (levels,) = (file for file in reached.measured_files() if file.endswith("core/levels.py"))
    assert reached.arcs(levels)


@pytest.mark.parametrize("mark", LISTED)
def test_cases_that_are_marked_by_a_list_are_there(mark: str) -> None:
    places = (ROOT / "tests", ROOT / "packages")
    files = {path.name: path.read_text() for p in places for path in p.rglob("test_*.py")}
    for case in (TESTS / f"{mark}_cases.txt").read_text().splitlines():
        file, _, name = case.partition("::")
        assert (f"def {name.partition('[')[0]}(" if name else "def test_") in files[file], case


def test_a_file_that_is_dear_as_a_whole_stays_so_whatever_its_cases_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = tmp_path / "cases.txt"
    cases.write_text("test_a.py\ntest_b.py::test_old\ntest_c.py::test_not_run\n")
    costs = {"test_a.py::test_it": 9.0, "test_b.py::test_new": 9.0, "test_b.py::test_old": 0.1}
    (tmp_path / "main.json").write_text(json.dumps(costs))
    monkeypatch.setattr(dear_list, "LIST", cases)
    dear_list.main(tmp_path)
    assert cases.read_text() == "test_a.py\ntest_b.py::test_new\ntest_c.py::test_not_run\n"


_CASES = """
import multiprocessing, time
import dear_list
import pytest

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def shared():
    burn(0.4)

def test_first(shared):
    pass

def test_second(shared):
    pass

def test_forks():
    process = multiprocessing.get_context("forkserver").Process(target=burn, args=(0.4,))
    process.start()
    process.join()
    time.sleep(0.2)
"""


def test_a_case_costs_its_part_of_what_it_shares_and_what_its_processes_take(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text(_CASES)
    code = f"""
from pathlib import Path
import dear_list
import pytest
from case_costs import CaseCosts
plugin = CaseCosts(Path({str(tmp_path)!r}), lambda item: item.name)
pytest.main(["-p", "no:cacheprovider", {str(tmp_path)!r}], plugins=[plugin])
"""
    ended = run_python("-c", code, cwd=tmp_path)
    (written,) = tmp_path.glob("*.json")
    costs = json.loads(written.read_text())
    # CPU is counted in hundredths of a second: a little less or more than what was burnt.
    assert 0.15 < costs["test_first"] < 0.35, ended.stdout
    assert 0.15 < costs["test_second"] < 0.35
    assert costs["test_forks"] > 0.35
