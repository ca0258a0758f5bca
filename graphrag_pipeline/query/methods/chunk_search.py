"""Chunks alone, with no graph: by vectors (basic), by words (BM25), or by both (hybrid)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number, share
from graphrag_pipeline.query.operators.seeds import WORDS
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

_PROMPT, _THOROUGH = "basic_answer", "thorough_answer"


@dataclass(frozen=True)
class Bm25Parameters:
    """BM25 over chunks: Robertson and Zaragoza, 2009.

    ``covering``: those of the best 40 that together answer the question come first.
    """

    top_k: int = number(10)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)
    max_context_tokens: int = number(12_000)


@dataclass(frozen=True)
class BasicParameters(Bm25Parameters):
    """Vector search over chunks: the baseline of the GraphRAG paper, section 4.1 (SS).

    ``covering``: those of the best 40 that together answer the question come first. ``thorough``
    tells the model to cover all main points, and how long at most, as ``global`` and
    ``text_summary`` do: the paper gives all its conditions the same instructions (4.1.2).
    """

    thorough: bool = flag(False)


@dataclass(frozen=True)
class HybridParameters(Bm25Parameters):
    """This project's own: the scores of both searches, standardised, are added.

    ``words``: what full text weighs; the rest is for vectors. ``covering``: those of the best 40
    that together answer the question come first.
    """

    words: float = share(WORDS)


def basic_search(index: Release, question: str, p: BasicParameters) -> list[Record]:
    """Return the ``top_k`` chunks nearest to the question, best first."""
    return _best(index, question, partial(op.vector_search, index, "chunks", question), p)


def bm25_search(index: Release, question: str, p: Bm25Parameters) -> list[Record]:
    """Return the ``top_k`` chunks with the highest BM25 score."""
    return _best(index, question, partial(op.fulltext_search, index, "chunks", question), p)


def hybrid_search(index: Release, question: str, p: HybridParameters) -> list[Record]:
    """Return the ``top_k`` chunks most like the question in words and meaning.

    With vectors that know words only, what BM25 gives: the other search ranks the same, but worse.
    """
    search = partial(op.likely, index, "chunks", question, words=p.words)
    return _best(index, question, search, p)


def _best(
    index: Release, question: str, search: Callable[[int], op.Ranking], p: Bm25Parameters
) -> list[Record]:
    hits = op.first_chunks(index, question, search, p.top_k, cover=p.covering, reranked=p.reranked)
    return op.fill(index, op.chunk_records(index, hits), p.max_context_tokens)


async def basic_answer(asking: Asking, p: BasicParameters) -> Final | None:
    """Answer from the chunks."""
    search = partial(basic_search, asking.index, asking.search_text, p)
    final = from_records(await asking.retrieve(search), _THOROUGH if p.thorough else _PROMPT)
    if final is None or not p.thorough:
        return final
    words = str(asking.index.settings.query.reduce_words)
    return replace(final, values={**final.values, "max_words": words})


BASIC = Method(
    name="basic",
    summary="chunks by vector similarity",
    parameters=BasicParameters,
    retrieve=basic_search,
    prompt=_PROMPT,
    answer=basic_answer,
)
BM25 = Method(
    name="bm25",
    summary="chunks by words (BM25)",
    parameters=Bm25Parameters,
    retrieve=bm25_search,
    prompt=_PROMPT,
)
HYBRID = Method(
    name="hybrid",
    summary="chunks by vector similarity and BM25 together",
    recommended=True,
    parameters=HybridParameters,
    retrieve=hybrid_search,
    prompt=_PROMPT,
)
