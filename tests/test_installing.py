"""Every line that tells to install something can be followed; the ranges of libraries hold."""

from __future__ import annotations

import re
import shlex
import tomllib

from checkouts import ROOT, pip_arguments, tracked
from packaging.requirements import Requirement

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
WHEEL = f"./dist/graphrag_pipeline-{PROJECT['version']}-py3-none-any.whl"
PLACE = re.compile(r"(?P<place>[^\[]+)(?:\[(?P<extras>[\w,]+)\])?")


def test_no_page_tells_to_install_what_no_index_has() -> None:
    lines = [*pip_arguments()]
    assert len(lines) > 4
    wrong = [line for line in lines if not _can_be_followed(line[1])]
    assert wrong == []


def _can_be_followed(arguments: str) -> bool:
    words = shlex.split(arguments)
    if "-c" in words:
        constraints = words.pop(words.index("-c") + 1)
        words.remove("-c")
        if not (ROOT / constraints).is_file():
            return False
    if "--find-links" in words:
        # A wheel may need those beside it.
        words.remove("--find-links")
        words.remove("dist")
    return all(_is_place(word) for word in words if word != "-e")


def _is_place(word: str) -> bool:
    match = PLACE.fullmatch(word)
    extras = set((match["extras"] or "").split(",")) - {""} if match else {"?"}
    return match is not None and match["place"] in (".", WHEEL) and extras <= EXTRAS


def test_no_message_names_the_project_to_pip() -> None:
    modules = [ROOT / name for name in tracked() if name.endswith(".py")]
    ours = [path for path in modules if "tests" not in path.relative_to(ROOT).parts]
    named = re.compile(r"pip install .{0,3}graphrag")
    assert len(ours) > 500
    assert [path.name for path in ours if named.search(path.read_text())] == []


def test_libraries_are_ranges_that_what_is_tested_lies_in() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    tested = {_name(line.partition("==")[0]): line.partition("==")[2] for line in lines}
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    texts = [each for some in lists for each in some if not each.startswith("graphrag")]
    required = [Requirement(each) for each in texts]
    pinned = [each.name for each in required if "==" in str(each) and "*" not in str(each)]
    outside = [
        f"{each} ({tested[_name(each.name)]})"
        for each in required
        if _name(each.name) in tested and not each.specifier.contains(tested[_name(each.name)])
    ]
    assert (pinned, outside) == ([], [])


def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
