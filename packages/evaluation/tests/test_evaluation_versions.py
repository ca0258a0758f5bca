"""What finds the claims of an answer changes with its version, or someone says why not."""

from __future__ import annotations

import ast
from pathlib import Path

import graphrag_evaluation
import pytest
import test_versions

ROOT = Path(graphrag_evaluation.__file__).parent
CLAIMS = "judging/claims.py"
RECORDED = {CLAIMS: ("1", "ae37cab07b8b2239")}
# Versions of a format of our own, which its reader checks.
FORMATS = {"store.py"}


@pytest.fixture(autouse=True)
def _look_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_versions, "ROOT", ROOT)


def test_every_version_says_what_it_stands_for() -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for name, value in test_versions.assignments(path)
        if test_versions.is_version(name) and isinstance(value, ast.Constant)
    }
    assert files == RECORDED.keys() | FORMATS


def test_sql_and_constants_change_with_the_version() -> None:
    now = (test_versions.version(f"{CLAIMS}:_VERSION"), test_versions.shape((CLAIMS,)))
    assert now == RECORDED[CLAIMS], (
        f"what {CLAIMS} says has changed: raise its version if rows may differ by it, then record "
        "both here"
    )
