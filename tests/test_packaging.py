"""What is installed: every package, under one name, beside whatever a user's own project has."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
MAPPED = {"assets", "dbt_reports", "resources", "sensors"}
FOREIGN = """
import assets, resources, sensors, sys
import dagster as dg
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.definitions import build_definitions
from graphrag_pipeline.marts.build import PROJECT
installed = sys.argv[1]
for mine in (assets, resources, sensors):
    assert mine.MINE, mine
for module in (sys.modules["graphrag_pipeline.assets"], sys.modules["graphrag_pipeline"]):
    assert module.__file__.startswith(installed), module.__file__
assert str(PROJECT).startswith(installed), PROJECT
defs = build_definitions(Settings(home="home"), key_prefix="theirs", marts=True)
dg.Definitions.validate_loadable(defs)
"""


def test_every_package_is_installed() -> None:
    from setuptools import find_packages

    inside = find_packages(str(ROOT / "graphrag_pipeline"))
    found = {"graphrag_pipeline", *(f"graphrag_pipeline.{name}" for name in inside)}
    for room in MAPPED:
        found |= {f"graphrag_pipeline.{room}"}
        found |= {f"graphrag_pipeline.{room}.{name}" for name in find_packages(str(ROOT / room))}
    assert set(BUILD["packages"]) == found
    assert BUILD["package-dir"] == {f"graphrag_pipeline.{room}": room for room in MAPPED}


def test_every_file_that_is_read_is_installed() -> None:
    folders = {
        ROOT / BUILD["package-dir"].get(p, p.replace(".", "/")): p for p in BUILD["packages"]
    }
    installed = {
        path
        for folder, package in folders.items()
        for pattern in BUILD["package-data"].get(package, ())
        for path in folder.glob(pattern)
    }
    ours = [ROOT / name for name in _tracked() if not name.endswith(".py")]
    inside = [path for path in ours if set(folders) & set(path.parents) and path.is_file()]
    assert inside
    assert [path for path in inside if path not in installed and path.name != ".gitignore"] == []


def _tracked() -> set[str]:
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return set(done.stdout.splitlines())


@pytest.mark.slow
def test_the_wheel_works_beside_packages_of_the_same_names(tmp_path: Path) -> None:
    source, wheels, installed = (tmp_path / name for name in ("source", "wheels", "installed"))
    for name in sorted(_tracked()):
        if name.startswith(("tests/", "docs/", "benchmarks/", "examples/")):
            continue
        place = source / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            place.symlink_to(os.readlink(ROOT / name))
        elif (ROOT / name).is_file():
            place.write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "-w", str(wheels), str(source)]
    run([*pip, *build], tmp_path)
    (wheel,) = wheels.glob("*.whl")
    run([*pip, "install", "--no-deps", "--target", str(installed), str(wheel)], tmp_path)
    tops = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert tops - {"bin"} == {"graphrag_pipeline"}
    project = tmp_path / "project"
    for name in ("assets", "resources", "sensors"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("MINE = True\n")
    run([sys.executable, "-c", FOREIGN, str(installed)], project, project, installed)


def run(command: list[str], folder: Path, *path: Path) -> None:
    bare = {n: v for n, v in os.environ.items() if not n.startswith(("GRAPHRAG_", "PYTHONPATH"))}
    if path:
        bare["PYTHONPATH"] = os.pathsep.join(map(str, path))
    done = subprocess.run(
        command, cwd=folder, env=bare, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
