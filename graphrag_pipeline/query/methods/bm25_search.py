"""BM25: the chunks that best match the question's words, the baseline without vectors or graph."""

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
class Bm25Parameters:
    """BM25 over chunks: Robertson and Zaragoza, 2009.

    ``covering``: those of the best 40 that together answer the question come first.
    """

    top_k: int = number(10)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)
    max_context_tokens: int = number(12_000)


def bm25_search(index: Release, question: str, p: Bm25Parameters) -> list[Record]:
    """Return the ``top_k`` chunks with the highest BM25 score."""
    search = partial(op.fulltext_search, index, "chunks", question)
    hits = op.first_chunks(index, question, search, p.top_k, cover=p.covering, reranked=p.reranked)
    return op.fill(index, op.chunk_records(index, hits), p.max_context_tokens)


BM25 = Method(
    name="bm25",
    summary="chunks by words (BM25)",
    parameters=Bm25Parameters,
    retrieve=bm25_search,
    prompt="basic_answer",
)
