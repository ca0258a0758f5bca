"""Basic search: the chunks most similar to the question ("SS" in the paper, 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

_PROMPT, _THOROUGH = "basic_answer", "thorough_answer"


@dataclass(frozen=True)
class BasicParameters:
    """Vector search over chunks: the baseline of the GraphRAG paper, section 4.1 (SS).

    ``covering``: those of the best 40 that together answer the question come first. ``thorough``
    tells the model to cover all main points, and how long at most, as ``global`` and
    ``text_summary`` do: the paper gives all its conditions the same instructions (4.1.2).
    """

    top_k: int = number(10)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)
    thorough: bool = flag(False)
    max_context_tokens: int = number(12_000)


def basic_search(index: Release, question: str, p: BasicParameters) -> list[Record]:
    """Return the ``top_k`` chunks nearest to the question, best first."""
    search = partial(op.vector_search, index, "chunks", question)
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
