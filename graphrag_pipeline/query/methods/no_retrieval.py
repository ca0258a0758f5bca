"""No retrieval: what a model knows by itself, the baselines of the papers without an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query.methods.method import Method
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.single import from_nothing

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final


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


async def zero_shot_answer(asking: Asking, p: ZeroShotParameters) -> Final:
    """Put the question alone into a prompt."""
    return from_nothing("zero_shot_answer")


async def cot_answer(asking: Asking, p: CotParameters) -> Final:
    """Put the question alone into a prompt that asks for reasoning."""
    return from_nothing("cot_answer")


ZERO_SHOT = Method(
    name="zero_shot",
    summary="nothing: the model's own knowledge",
    parameters=ZeroShotParameters,
    retrieve=nothing,
    needs_model=True,
    answer=zero_shot_answer,
)
COT = Method(
    name="cot",
    summary="nothing: the model reasons step by step",
    parameters=CotParameters,
    retrieve=nothing,
    needs_model=True,
    answer=cot_answer,
)
