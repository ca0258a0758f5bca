"""Text summary: map-reduce over the source text itself ("TS" in the paper, 4.1)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.map_reduce import map_reduce

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final


@dataclass(frozen=True)
class TextSummaryParameters:
    """Map-reduce over all source text: the paper's comparison without a graph (4.1, TS).

    ``max_context_tokens`` is the size of each group of chunks that a model reads at once; every
    group is a call. ``max_chunks`` reads a sample of so many; 0 reads all.
    """

    max_context_tokens: int = number(12_000)
    max_chunks: int = number(0, least=0)
    seed: int = number(86, least=0)


def text_summary(index: Release, question: str, p: TextSummaryParameters) -> list[Record]:
    """Return all chunks to read: the budget is that of each group of them."""
    return op.measured(index, chunks_to_read(index, p))


def chunks_to_read(index: Release, p: TextSummaryParameters) -> list[Record]:
    """Return the chunks in the shuffled order in which they are grouped."""
    keys = list(op.every_chunk(index))
    random.Random(p.seed).shuffle(keys)
    return op.chunk_records(index, dict.fromkeys(keys[: p.max_chunks or None], 1.0))


async def text_summary_answer(asking: Asking, p: TextSummaryParameters) -> Final | None:
    """Map over all source text, and reduce."""
    chunks = await asking.retrieve(lambda: chunks_to_read(asking.index, p))
    return await map_reduce(asking, chunks, p.max_context_tokens, "text_summary", "context")


TEXT_SUMMARY = Method(
    name="text_summary",
    summary="all source text, mapped and reduced by a model",
    parameters=TextSummaryParameters,
    retrieve=text_summary,
    needs_model=True,
    answer=text_summary_answer,
)
