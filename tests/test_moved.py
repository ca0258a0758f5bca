"""Modules that have moved are imported by their old names, with a warning."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pytest

from graphrag_pipeline.core import home, moved
from graphrag_pipeline.core.extras import how_to_install

OLD = {"graphrag_pipeline.once", "graphrag_pipeline.once.home", "graphrag_pipeline.gone"}


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(moved.MOVED, "graphrag_pipeline.once", ("graphrag_pipeline.core", "ui"))
    monkeypatch.setitem(moved.MOVED, "graphrag_pipeline.gone", ("no_such_package", "evaluation"))
    yield
    for name in OLD & sys.modules.keys():
        del sys.modules[name]


def test_a_module_is_the_same_by_its_old_name_and_keeps_its_new_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"once\.home is graphrag_pipeline\.core\.home now"):
        old = importlib.import_module("graphrag_pipeline.once.home")
    assert old is home
    assert old.__name__ == "graphrag_pipeline.core.home"
    assert old.__spec__ is not None
    assert old.__spec__.name == "graphrag_pipeline.core.home"


def test_where_a_package_is_not_installed_its_old_name_says_how_to_get_it() -> None:
    with (
        pytest.warns(DeprecationWarning, match="gone is no_such_package now"),
        pytest.raises(ModuleNotFoundError) as raised,
    ):
        importlib.import_module("graphrag_pipeline.gone.part")
    assert str(raised.value) == (
        f"graphrag_pipeline.gone is no_such_package now: {how_to_install('evaluation')}"
    )


def test_another_name_is_as_unknown_as_before() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'graphrag_pipeline\.never'"):
        importlib.import_module("graphrag_pipeline.never")
