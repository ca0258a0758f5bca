"""Hybrid search: vector and full-text search over chunks, their scores together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number, share
from graphrag_pipeline.query.operators.seeds import WORDS
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


@dataclass(frozen=True)
class HybridParameters:
    """This project's own: the scores of both searches, standardised, are added.

    ``words``: what full text weighs; the rest is for vectors. ``covering``: those of the best 40
    that together answer the question come first.
    """

    top_k: int = number(10)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)
    words: float = share(WORDS)
    max_context_tokens: int = number(12_000)


def hybrid_search(index: Release, question: str, p: HybridParameters) -> list[Record]:
    """Return the ``top_k`` chunks most like the question in words and meaning.

    With vectors that know words only, what BM25 gives: the other search ranks the same, but worse.
    """

    def both(k: int) -> op.Ranking:
        return op.likely(index, "chunks", question, k, words=p.words)

    hits = op.first_chunks(index, question, both, p.top_k, cover=p.covering, reranked=p.reranked)
    return op.fill(index, op.chunk_records(index, hits), p.max_context_tokens)


HYBRID = Method(
    name="hybrid",
    summary="chunks by vector similarity and BM25 together",
    recommended=True,
    parameters=HybridParameters,
    retrieve=hybrid_search,
    prompt="basic_answer",
)
