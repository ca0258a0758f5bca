"""The lowest and the newest of all libraries together; lines of the docs, followed. By night."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkouts import an_index_answers, copy_to, environment, pip_arguments, run
from test_check import ready

from graphrag_pipeline.core.home import Home
from graphrag_pipeline.releases.kept_releases import release_ids
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.upkeep.backups import back_up

pytestmark = [pytest.mark.nightly, pytest.mark.slow]
UV = Path(sys.executable).with_name("uv")
EXTRAS = ["cluster", "dg", "legacy", "marts", "office", "server", "ui"]
TOOLS = ["hypothesis", "jsonschema", "playwright", "pytest", "pytest-xdist", "reportlab"]
TOOLS += ["requests", "moto[server]"]
# Files that between them use every library: some three hundred tests.
FILES = ["chunking", "chnsw", "communities", "component", "definitions", "formats", "index"]
FILES += ["llm_client", "marts", "mixtures", "scanning", "vectors"]
# They compare with what the tested version of LanceDB or of Dagster does.
OF_ONE_VERSION = ["test_full_text_scores_as_lancedb_does"]
ENOUGH = 250


@pytest.fixture(scope="module", autouse=True)
def _needs() -> None:
    if not UV.exists():
        pytest.skip("uv is not installed")
    if not an_index_answers():
        pytest.skip("no package index answers")


def _resolved(folder: Path, *more: str, extras: list[str], **options: str) -> dict[str, str]:
    """Return the versions that uv finds for the project beside other requirements."""
    copied = copy_to(folder / "project", "tests/", "docs/", "benchmarks/", "examples/")
    beside = folder / "beside.in"
    # The packages of extras need the project in turn: it is named as something to be installed.
    project = f"graphrag-pipeline[{','.join(extras)}] @ {copied.as_uri()}"
    beside.write_text("\n".join((project, *more)))
    command = [UV, "pip", "compile", "--quiet", beside, "--no-header"]
    command += [part for name, value in options.items() for part in (f"--{name}", value)]
    pairs = re.findall(r"^([\w.-]+)(?:\[.*\])?==(\S+)", run(command, folder), re.M)
    return dict(pairs)


@pytest.mark.parametrize(
    ("dagster", "libraries"),
    [("1.12.14", "0.28.14"), ("1.13.26", "0.29.26"), ("1.13.27", "0.29.27")],
)
def test_the_extras_follow_the_dagster_that_is_there(tmp_path, dagster, libraries) -> None:
    versions = _resolved(tmp_path, f"dagster=={dagster}", extras=EXTRAS)
    found_of = {name: each for name, each in versions.items() if name.startswith("dagster")}
    own = {"dagster", "dagster-webserver", "dagster-dg-cli"}
    assert {name: found_of[name] for name in own} == dict.fromkeys(own, dagster)
    others = {"dagster-dbt", "dagster-celery", "dagster-k8s", "dagster-postgres"}
    assert {name: found_of[name] for name in others} == dict.fromkeys(others, libraries)


def test_nothing_holds_back_the_newest_dagster(tmp_path) -> None:
    alone = tmp_path / "alone.in"
    alone.write_text("dagster<2")
    text = run([UV, "pip", "compile", "--quiet", alone], tmp_path)
    newest = re.search(r"^dagster==(\S+)", text, re.M)
    assert newest is not None
    assert _resolved(tmp_path, f"dagster=={newest[1]}", extras=[])["dagster"] == newest[1]


@pytest.mark.parametrize("version", ["1.2.0", "1.3.2", "1.4.4"])
def test_an_older_duckdb_opens_every_release(tmp_path, version) -> None:
    home = ready(tmp_path / "ours").home
    code = "import sys, duckdb; con = duckdb.connect(sys.argv[1], read_only=True); "
    code += "print(con.execute('SELECT count(*) FROM entities').fetchall()[0][0] > 0, "
    code += "[con.execute(f'SELECT count(*) FROM {call}').fetchall() for call in sys.argv[2:]])"
    calls = ["neighbors('a', hops := 2)", "shortest_path('a', 'b')", "homonyms"]
    with_it = [UV, "run", "--quiet", "--no-project", "--with", f"duckdb=={version}", "python"]
    # What is published, and one that is made whole again from what it differs by.
    for file in {Home(home).published, *(release_file(home, each) for each in release_ids(home))}:
        assert run([*with_it, "-c", code, file, *calls], tmp_path).startswith("True")


def _python(version: str) -> Path:
    """Return an interpreter of a version, on the path or beside our own; skip where none is."""
    named = shutil.which(f"python{version}")
    places = [named, *Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python")]
    for place in map(Path, filter(None, places)):
        if subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return place
    pytest.skip(f"there is no Python {version}")


@pytest.mark.parametrize(
    ("resolution", "python"),
    [("lowest-direct", "3.11"), ("highest", "3.11"), ("highest", "3.12"), ("highest", "3.13")],
)
def test_the_demo_and_the_tests_run_with(tmp_path, resolution, python) -> None:
    interpreter = _python(python)
    options = {"resolution": resolution, "python-version": python}
    versions = _resolved(tmp_path, extras=EXTRAS, **options)
    pins = tmp_path / "pins.txt"
    pins.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
    project, place = copy_to(tmp_path / "checkout"), tmp_path / "venv"
    run([UV, "venv", "--quiet", "--python", interpreter, place], tmp_path)
    install = [UV, "pip", "install", "--quiet", "--python", place / "bin" / "python"]
    run([*install, "-r", pins, *TOOLS], tmp_path)
    folders = [project, *(path.parent for path in project.glob("packages/*/pyproject.toml"))]
    editable = [part for folder in folders for part in ("-e", folder)]
    run([*install, "--no-deps", *editable], tmp_path)
    binaries = {"PATH": f"{place / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
    python_there = place / "bin" / "python"
    home = str(tmp_path / "home")
    told = run([python_there, "-m", "graphrag_pipeline.cli.demo"], project, GRAPHRAG_HOME=home)
    assert "Heron" in told
    archive = tmp_path / "index.tar.zst"
    back_up(ready(tmp_path / "ours"), archive)
    restore = ["restore", archive, "--home", tmp_path / "restored"]
    assert run([python_there, "-m", "graphrag_pipeline.cli", *restore], project).endswith("ok\n")
    files = [f"tests/test_{name}.py" for name in FILES] + ["packages/server/tests/test_mcp.py"]
    pytest_here = [python_there, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider"]
    left_out = [part for name in OF_ONE_VERSION for part in ("-k", f"not {name}")]
    result = run([*pytest_here, *left_out, *files], project, **binaries)
    passed = re.search(r"(\d+) passed", result)
    assert passed is not None
    assert int(passed[1]) > ENOUGH


LINES = sorted({arguments for _, arguments in pip_arguments()})


@pytest.mark.parametrize("arguments", LINES)
def test_a_line_of_the_docs_installs(tmp_path, arguments) -> None:
    project = copy_to(tmp_path / "checkout", "tests/", "benchmarks/")
    python = environment(tmp_path / "venv")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    if "dist/" in arguments:
        wings = [path.parent for path in project.glob("packages/*/pyproject.toml")]
        run([*pip, "wheel", "--no-deps", "-w", "dist", ".", *wings], project)
    # Models of one's own bring gigabytes of torch: whether they can be had is asked, no more.
    only_asked = ["--dry-run"] if "local" in arguments else []
    run([*pip, "install", *only_asked, *shlex.split(arguments)], project)
    if only_asked:
        return
    code = "import json, sys; from graphrag_pipeline.core.extras import *; "
    code += "print(json.dumps([n for n in sys.argv[1:] for n in missing_modules(n)]))"
    extras = re.findall(r"\[([\w,]+)\]", arguments)
    names = extras[0].split(",") if extras else []
    assert json.loads(run([python, "-c", code, *names], tmp_path)) == []
    assert run([tmp_path / "venv" / "bin" / "graphrag-pipeline", "--version"], tmp_path)
