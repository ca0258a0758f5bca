"""Each system can be taken out: its folder alone is gone, and all else works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.core.moved import moved_name
from graphrag_pipeline.core.systems import FOLDER, systems
from graphrag_pipeline.query import operators
from graphrag_pipeline.query.methods.method import Method
from graphrag_pipeline.query.methods.registry import ALL_METHODS
from graphrag_pipeline.query.operators import _MOVED
from graphrag_pipeline.structures.registry import all_structures

PACKAGE = FOLDER.parent
TEXTS = {
    "inn.md": "---\nplace: harbour\n---\n# The inn\n\nAnna Berg owns the Gull Inn.\n",
    "boat.md": "# The boat\n\nKarl Berg is the brother of Anna Berg. Karl Berg sails the Petrel.\n",
    "port.md": "# Port Harrow\n\nPort Harrow is a town. The Petrel sails from Port Harrow.\n",
}
HALVES = (tuple(systems())[::2], tuple(systems())[1::2])
"""Each system is gone in one of the two: none needs another, as a contract of imports says."""
SETTING_OF = {each.name: each.setting.split(".")[1] for each in all_structures()}
WORKS = """
import contextlib, io, json, sys
from pathlib import Path
from graphrag_pipeline import Index, Settings
from graphrag_pipeline.cli.app import main
from graphrag_pipeline.core import systems
from graphrag_pipeline.core.errors import GraphRAGError
from graphrag_pipeline.core.prompting import prompt_names

wanted, gone = json.loads(sys.argv[1])
assert systems.FOLDER.is_relative_to(Path.cwd()), systems.FOLDER
embedded = {"facts": True, "synonyms": True}
index = Index("home", Settings(hierarchies=wanted, embeddings=embedded))

def command(*words):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            sys.argv = ["graphrag-pipeline", *words]
            code = main()
        except SystemExit as ended:
            code = ended.code
    return [code or 0, said.getvalue()]

def refused(**settings):
    try:
        Index("other", Settings(**settings)).update("documents")
    except GraphRAGError as error:
        return str(error)

update = index.update("documents")
with index.open() as engine:
    answers = {name: engine.answer("Who owns the Gull Inn?", name).text for name in gone["ask"]}
    limited = engine.answer("Who owns the Gull Inn?", "auto", where={"place": "harbour"})
print(json.dumps({
    "documents": update.counts["documents"],
    "answers": answers | {"limited": limited.text},
    "refused": {name: refused(hierarchies={name: True}) for name in gone["hierarchies"]},
    "unread": {name: refused(embeddings={"methods": [name]}) for name in gone["methods"]},
    "methods": command("methods"),
    "query": command("query", "Who owns the Gull Inn?"),
    "unknown": {name: command("query", "Who?", "--method", name) for name in gone["methods"]},
    "prompts": prompt_names(),
}))
"""


def without(gone: Sequence[str], folder: Path) -> Path:
    """Make a package of links to this one's, but for the folders of some systems."""
    package = folder / PACKAGE.name
    (package / FOLDER.name).mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path != FOLDER:
            (package / path.name).symlink_to(path)
    for path in FOLDER.iterdir():
        if path.name not in gone:
            (package / FOLDER.name / path.name).symlink_to(path)
    (folder / "dbt_reports").symlink_to(PACKAGE.parent / "dbt_reports")
    for name, text in TEXTS.items():
        (folder / "documents").mkdir(exist_ok=True)
        (folder / "documents" / name).write_text(text)
    return folder


def run(folder: Path, wanted: dict[str, bool], gone: dict[str, Any]) -> dict[str, Any]:
    """Return what the program without the systems did."""
    bare = {n: v for n, v in os.environ.items() if not n.startswith(("GRAPHRAG_", "PYTEST_"))}
    ended = subprocess.run(
        [sys.executable, "-c", WORKS, json.dumps([wanted, gone])],
        cwd=folder,
        env={**bare, "PYTHONPATH": str(folder), "GRAPHRAG_HOME": "home"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


def can_answer(method: Method[Any], structures: list[str]) -> bool:
    """Whether a method answers without a model from an index with these structures."""
    made = [each for each in all_structures() if each.name in structures]
    tables = {"", "facts", *(table.name for each in made for table in each.vectors)}
    return not method.needs_model and method.table in tables


@pytest.mark.parametrize(
    "names",
    [
        *HALVES,
        *(pytest.param((name,), marks=pytest.mark.nightly) for name in systems()),
    ],
    ids="-".join,
)
def test_the_program_works_without_a_system(names: tuple[str, ...], tmp_path: Path) -> None:
    gone = [systems()[name] for name in names]
    others = [each for key, each in systems().items() if key not in names]
    taken = [key for system in gone for key in system.structures]
    # Other structures are kept only beside one that is not there: a system of methods has none.
    structures = [key for each in others for key in each.structures if taken]
    methods = [ALL_METHODS.find(each) for other in others for each in other.methods]
    lost = [method for system in gone for method in system.methods]
    done = run(
        without(names, tmp_path),
        {SETTING_OF[key]: True for key in structures},
        {
            "ask": ["auto", *(m.name for m in methods if m and can_answer(m, structures))],
            "methods": lost,
            "hierarchies": [SETTING_OF[key] for key in taken],
        },
    )
    assert done["documents"] == len(TEXTS)
    assert all("Anna Berg" in text for text in done["answers"].values()), done["answers"]
    code, listed = done["methods"]
    assert code == 0, listed
    listed_names = {line.split()[0] for line in listed.splitlines() if not line.startswith(" ")}
    assert listed_names == set(ALL_METHODS.own) - set(lost)
    code, answer = done["query"]
    assert code == 0, answer
    assert "Anna Berg owns the Gull Inn" in answer
    # What still asks for it is told in one line what to do.
    assert done["unknown"].keys() == done["unread"].keys() == set(lost)
    for method, (code, line) in done["unknown"].items():
        assert code == 2
        assert f"unknown method '{method}'" in line
    assert done["refused"].keys() == {SETTING_OF[key] for key in taken}
    for setting, line in done["refused"].items():
        assert line.startswith(f"hierarchies.{setting} = true: there is no system that keeps it")
        assert "\n" not in line
    for method, line in done["unread"].items():
        assert f"'{method}' is none of" in line
    own = {path.stem for name in names for path in (FOLDER / name / "prompts").glob("*.txt")}
    assert own.isdisjoint(done["prompts"])


def test_where_a_name_has_gone_to_a_system_that_is_not_there_it_is_unknown() -> None:
    with pytest.raises(AttributeError, match="module 'here' has no attribute 'search'"):
        moved_name("here", {"search": f"{PACKAGE.name}.systems.gone.operators"}, "search")


@pytest.mark.parametrize("name", sorted(_MOVED))
def test_an_operator_that_has_moved_to_its_system_has_its_old_name_too(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"operators\.{name} is {_MOVED[name]}\."):
        moved = getattr(operators, name)
    assert moved is getattr(import_module(_MOVED[name]), name)
    assert name not in vars(operators)


def test_an_operator_that_no_system_has_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        assert operators.nothing
