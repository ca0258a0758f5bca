"""No retrieval: what a model knows by itself, the baselines of the papers without an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query.methods.method import Method, flag
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.single import from_nothing

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final


@dataclass(frozen=True)
class ZeroShotParameters:
    """The question alone, put to the model ("ZeroShot" in the ArchRAG paper's tables).

    ``guess`` lets it guess where it is not sure, as papers do, in place of saying so.
    """

    guess: bool = flag(False)


@dataclass(frozen=True)
class CotParameters:
    """The question alone, answered step by step: zero-shot chain of thought, Kojima et al., 2022.

    The reasoning is part of the answer; its last line begins with ``Answer:``. ``guess`` lets the
    model guess where it is not sure, as papers do, in place of saying so.
    """

    guess: bool = flag(False)


def nothing(index: Release, question: str, p: ZeroShotParameters | CotParameters) -> list[Record]:
    """Return no records: the index is not read."""
    return []


async def zero_shot_answer(asking: Asking, p: ZeroShotParameters) -> Final:
    """Put the question alone into a prompt."""
    return from_nothing("zero_shot_guess" if p.guess else "zero_shot_answer", may_guess=p.guess)


async def cot_answer(asking: Asking, p: CotParameters) -> Final:
    """Put the question alone into a prompt that asks for reasoning."""
    return from_nothing("cot_guess" if p.guess else "cot_answer", may_guess=p.guess)


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
