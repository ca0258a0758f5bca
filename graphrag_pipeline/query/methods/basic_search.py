"""Basic search: the chunks most similar to the question ("SS" in the paper, 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


@dataclass(frozen=True)
class BasicParameters:
    """Vector search over chunks: the baseline of the GraphRAG paper, section 4.1 (SS).

    ``covering``: those of the best 40 that together answer the question come first.
    """

    top_k: int = number(10)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)
    max_context_tokens: int = number(12_000)


def basic_search(index: Release, question: str, p: BasicParameters) -> list[Record]:
    """Return the ``top_k`` chunks nearest to the question, best first."""
    search = partial(op.vector_search, index, "chunks", question)
    hits = op.first_chunks(index, question, search, p.top_k, cover=p.covering, reranked=p.reranked)
    return op.fill(index, op.chunk_records(index, hits), p.max_context_tokens)


BASIC = Method(
    name="basic",
    summary="chunks by vector similarity",
    parameters=BasicParameters,
    retrieve=basic_search,
    prompt="basic_answer",
)
