"""Sizes of language models: below which one finds fewer entities and relationships than rules do.

Measured in ``docs/small_models.md``: a model of one and a half thousand million parameters finds
half of the names that rules find, and less than half of the true relationships.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from graphrag_pipeline.core.patterns import pattern_of

LEAST_SIZE: Final = 3.0
"""Thousand million parameters; below, rules extract better."""

_MILLIONS = 1_000
# 1.5b, 135m; not the "e2b" of a model that is larger than it works like, not a version (3.2).
_SIZE = pattern_of(r"(?<![a-z0-9.])(?:(\d+)x)?(\d{1,4}(?:\.\d{1,3})?)(b|m)(?![a-z0-9])")


@dataclass(frozen=True)
class Tried:
    """Facts known of a model at a server: its size, or how it did in a trial."""

    size: float | None = None
    """In thousand million parameters."""
    failure: str = ""
    """What was wrong in the trial; empty where it did well, or there was none."""


def size_in(name: str) -> float | None:
    """Return the size that a model's name tells, in thousand million parameters.

    >>> size_in("qwen2.5:1.5b-instruct-q4_K_M"), size_in("SmolLM2-135M"), size_in("llama3.2")
    (1.5, 0.135, None)
    """
    match = _SIZE.search(name.casefold())
    if match is None:
        return None
    size = float(match[2]) * int(match[1] or 1)
    return size if match[3] == "b" else size / _MILLIONS


def why_by_rule(base_url: str, model: str, home: Path) -> str:
    """Return why rules should extract in place of a model; empty where the model may."""
    size = size_in(model)
    tried = Tried(size) if size is not None else known_of(base_url, model, home) or Tried()
    if tried.size is not None:
        return f"{model} has {_shown(tried.size)}" if tried.size < LEAST_SIZE else ""
    return f"{model} {tried.failure}" if tried.failure else ""


def known_of(base_url: str, model: str, home: Path) -> Tried | None:
    """Return what a home knows of a model at a server."""
    return tried_in(home).get(_key(base_url, model))


def tried_in(home: Path) -> dict[str, Tried]:
    """Return what a home knows of models; a file that cannot be read knows nothing."""
    try:
        rows: Any = json.loads(file_in(home).read_text("utf-8"))
        return {
            key: Tried(float(r["size"]) if r["size"] else None, r["failure"])
            for key, r in rows.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def note(home: Path, base_url: str, model: str, tried: Tried) -> bytes:
    """Return the file of what a home knows of models, with one more in it."""
    rows = {**tried_in(home), _key(base_url, model): tried}
    return json.dumps({key: asdict(row) for key, row in rows.items()}, indent=1).encode()


def file_in(home: Path) -> Path:
    """Return the file of a home that says what is known of models."""
    return home / "model_sizes.json"


def _key(base_url: str, model: str) -> str:
    return f"{base_url.rstrip('/')} {model}"


def _shown(size: float) -> str:
    if size < 1:
        return f"{size * _MILLIONS:.0f} million parameters"
    return f"{size:.3g} thousand million parameters"
