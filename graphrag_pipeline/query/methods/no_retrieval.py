"""No retrieval: what a model knows by itself, the baselines of the papers without an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query.methods.method import Method
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


@dataclass(frozen=True)
class ZeroShotParameters:
    """The question alone, put to the model ("ZeroShot" in the ArchRAG paper's tables)."""


@dataclass(frozen=True)
class CotParameters:
    """The question alone, answered step by step: zero-shot chain of thought, Kojima et al., 2022.

    The reasoning is part of the answer; its last line begins with ``Answer:``.
    """


def nothing(index: Release, question: str, p: ZeroShotParameters | CotParameters) -> list[Record]:
    """Return no records: the index is not read."""
    return []


ZERO_SHOT = Method(
    "zero_shot", "nothing: the model's own knowledge", ZeroShotParameters, nothing, needs_model=True
)
COT = Method(
    "cot", "nothing: the model reasons step by step", CotParameters, nothing, needs_model=True
)
