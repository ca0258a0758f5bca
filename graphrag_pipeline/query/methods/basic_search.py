"""Basic search: the chunks most similar to the question ("SS" in the paper, 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query.methods.method import Method, number
from graphrag_pipeline.query.operators import chunk_records, fill, vector_search
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


@dataclass(frozen=True)
class BasicParameters:
    """Vector search over chunks: the baseline of the GraphRAG paper, section 4.1 (SS)."""

    top_k: int = number(10)
    max_context_tokens: int = number(12_000)


def basic_search(index: Release, question: str, p: BasicParameters) -> list[Record]:
    """Return the ``top_k`` chunks nearest to the question, best first."""
    hits = vector_search(index, "chunks", question, p.top_k)
    return fill(index, chunk_records(index, hits), p.max_context_tokens)


BASIC = Method(
    name="basic",
    summary="chunks by vector similarity",
    parameters=BasicParameters,
    retrieve=basic_search,
    prompt="basic_answer",
)
