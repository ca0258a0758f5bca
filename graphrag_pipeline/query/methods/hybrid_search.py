"""Hybrid search: vector and full-text search over chunks, fused by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, number
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


@dataclass(frozen=True)
class HybridParameters:
    """Reciprocal rank fusion: Cormack, Clarke and Buettcher, 2009, with their k = 60."""

    top_k: int = number(10)
    candidates: int = number(50)
    rrf_k: int = number(60)
    max_context_tokens: int = number(12_000)


def hybrid_search(index: Release, question: str, p: HybridParameters) -> list[Record]:
    """Return the ``top_k`` chunks of both searches' first ``candidates``, fused."""
    depth = max(p.candidates, p.top_k)
    by_vector = op.vector_search(index, "chunks", question, depth)
    by_words = op.fulltext_search(index, "chunks", question, depth)
    hits = op.best(op.fuse([by_vector, by_words], k=p.rrf_k), p.top_k)
    return op.fill(index, op.chunk_records(index, hits), p.max_context_tokens)


HYBRID = Method(
    name="hybrid",
    summary="chunks by vector similarity and BM25, fused",
    parameters=HybridParameters,
    retrieve=hybrid_search,
    prompt="basic_answer",
)
