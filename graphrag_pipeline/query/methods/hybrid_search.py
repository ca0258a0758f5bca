"""Hybrid search: vector and full-text search over chunks, fused by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


@dataclass(frozen=True)
class HybridParameters:
    """Reciprocal rank fusion: Cormack, Clarke and Buettcher, 2009, with their k = 60.

    ``covering``: those of the best 40 that together answer the question come first.
    """

    top_k: int = number(10)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)
    candidates: int = number(50)
    rrf_k: int = number(60)
    max_context_tokens: int = number(12_000)


def hybrid_search(index: Release, question: str, p: HybridParameters) -> list[Record]:
    """Return the ``top_k`` chunks of both searches' first ``candidates``, fused.

    With vectors that know words only, what BM25 gives: the other search ranks the same, but worse.
    """

    def fused(k: int) -> op.Ranking:
        depth = max(p.candidates, k)
        by_vector = op.nearest(index, "chunks", question, depth)
        by_words = op.fulltext_search(index, "chunks", question, depth)
        return op.fuse([by_vector, by_words], k=p.rrf_k)

    hits = op.first_chunks(index, question, fused, p.top_k, cover=p.covering, reranked=p.reranked)
    return op.fill(index, op.chunk_records(index, hits), p.max_context_tokens)


HYBRID = Method(
    name="hybrid",
    summary="chunks by vector similarity and BM25, fused",
    recommended=True,
    parameters=HybridParameters,
    retrieve=hybrid_search,
    prompt="basic_answer",
)
