"""What is planned beside what is then spent on a strict stand-in, in small: `benchmarks plan`."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest


@pytest.mark.shared_data
@pytest.mark.usefixtures("plain_stores")
def test_what_is_planned_is_what_is_spent(
    tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first build of 66 podcasts, a tenth more, and nothing to do."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    benchmark = importlib.import_module("benchmarks.plan")
    files = importlib.import_module("benchmarks.index_speed").podcast_files(
        shared_data, tmp_path / "all"
    )
    first, more, nothing = benchmark.planned_and_made(files[:66], tmp_path, (0.1,))
    for run in (first, more):
        for figure in ("calls", "prompt_tokens", "cost"):
            assert 0.8 <= run.ratio(figure) <= 1.2, benchmark.describe([run])
    assert nothing.planned == nothing.made == {}
