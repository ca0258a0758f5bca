"""What is installed: every package, under one name, beside whatever a user's own project has."""

from __future__ import annotations

import email
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from checkouts import ROOT, copy_to, run, tracked

DESCRIBED = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = DESCRIBED["tool"]["setuptools"]
VERSION = DESCRIBED["project"]["version"]
NAME = f"graphrag_pipeline-{VERSION}"
WHEEL = f"{NAME}-py3-none-any.whl"
BESIDE = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
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
    ours = [ROOT / name for name in tracked() if not name.endswith(".py")]
    inside = [path for path in ours if set(folders) & set(path.parents) and path.is_file()]
    assert inside
    assert [path for path in inside if path not in installed and path.name != ".gitignore"] == []


@pytest.mark.parametrize("folder", BESIDE, ids=lambda folder: folder.name)
def test_every_file_of_a_package_beside_is_installed(folder: Path) -> None:
    build = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["setuptools"]
    installed = {
        path.relative_to(ROOT).as_posix()
        for package in build["packages"]
        for pattern in ("*.py", *build.get("package-data", {}).get(package, ()))
        for path in (folder / package.replace(".", "/")).glob(pattern)
    }
    inside = f"{folder.relative_to(ROOT).as_posix()}/{build['packages'][0]}/"
    assert [name for name in tracked() if name.startswith(inside) and name not in installed] == []
    assert f"{inside}__init__.py" in installed


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the project's source archive, and the wheel that is built from it alone."""
    folder = tmp_path_factory.mktemp("built")
    source = copy_to(folder / "source", "docs/", "benchmarks/", "examples/")
    _build("sdist", source, folder)
    with tarfile.open(folder / f"{NAME}.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
        archive.extractall(folder)
    _build("wheel", folder / NAME, folder)
    return folder


def _build(kind: str, source: Path, folder: Path) -> None:
    code = f"from setuptools.build_meta import build_{kind}; build_{kind}({str(folder)!r})"
    run([sys.executable, "-c", code], source)


def test_the_source_archive_holds_what_a_wheel_is_built_of_and_no_tests(built: Path) -> None:
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        names = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    assert not [name for name in names if name.parts[:1] == ("tests",)]
    folders = {BUILD["package-dir"].get(each, each.replace(".", "/")) for each in BUILD["packages"]}
    modules = {
        name
        for name in map(Path, tracked())
        if name.suffix == ".py" and str(name.parent) in folders
    }
    with zipfile.ZipFile(built / WHEEL) as archive:
        inside = {name.removeprefix("graphrag_pipeline/") for name in archive.namelist()}
    assert len(modules) > 400
    assert {str(name).removeprefix("graphrag_pipeline/") for name in modules} <= inside
    assert modules <= names


def test_the_wheel_says_what_it_is_and_under_which_licence(built: Path) -> None:
    with zipfile.ZipFile(built / WHEEL) as archive:
        names = set(archive.namelist())
        text = archive.read(f"{NAME}.dist-info/METADATA").decode()
        licence = archive.read(f"{NAME}.dist-info/licenses/LICENSE").decode()
    about = email.message_from_string(text)
    assert about["License-Expression"] == "MIT"
    assert licence.startswith("MIT License\n\nCopyright (c) 2026 GraphRAG pipeline contributors\n")
    vendored = [name for name in names if "/licenses/" in name and "LICENSE-" in name]
    assert len(vendored) == len([*ROOT.glob("graphrag_pipeline/pages/explorer/vendor/LICENSE-*")])
    assert about["Author"] == "GraphRAG pipeline contributors"
    assert about["Keywords"]
    assert "Typing :: Typed" in about.get_all("Classifier")
    assert not about.get_all("Project-URL")
    assert about["Author-email"] is None
    assert "graphrag_pipeline/py.typed" in names


def test_every_place_names_the_version_of_the_project() -> None:
    places = {
        "CHANGELOG.md": f"## {VERSION} - ",
        "packages/cluster/deploy/kubernetes/coordinator.yaml": f"graphrag-pipeline:{VERSION}\n",
        "packages/cluster/deploy/helm/values.yaml": f'tag: "{VERSION}"',
        "docs/how-to/install.md": WHEEL,
    }
    assert [name for name, text in places.items() if text not in (ROOT / name).read_text()] == []


def test_a_type_checker_sees_the_types_of_the_wheel(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    (installed,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(built / WHEEL) as archive:
        archive.extractall(installed)
    (tmp_path / "right.py").write_text(
        "from graphrag_pipeline import Answer, Index\n\n"
        'answer: Answer = Index("home").answer("Who?", "local")\ntext: str = answer.text\n'
    )
    (tmp_path / "wrong.py").write_text(
        "from graphrag_pipeline import Index\n\n"
        'number: int = Index("home").answer("Who?", "local").text\n'
    )
    pyright = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", "venv/bin/python"]
    pyright += ["right.py", "wrong.py"]
    checked = subprocess.run(pyright, cwd=tmp_path, capture_output=True, text=True, check=False)
    problems = json.loads(checked.stdout)["generalDiagnostics"]
    errors = [(Path(each["file"]).name, each["rule"]) for each in problems]
    assert errors == [("wrong.py", "reportAssignmentType")]


@pytest.mark.slow
def test_the_wheel_works_beside_packages_of_the_same_names(built: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run(
        [*pip, "install", "--no-deps", "--no-compile", "--target", installed, built / WHEEL],
        tmp_path,
    )
    tops = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert tops - {"bin"} == {"graphrag_pipeline"}
    project = tmp_path / "project"
    for name in ("assets", "resources", "sensors"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("MINE = True\n")
    path = os.pathsep.join(map(str, (project, installed)))
    run([sys.executable, "-c", FOREIGN, installed], project, PYTHONPATH=path)
