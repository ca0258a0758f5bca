"""RAPTOR: chunks and summaries of chunks, whichever are most like the question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, choice, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.systems.raptor import operators as own

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

COLLAPSED, TREE = "collapsed", "tree"


@dataclass(frozen=True)
class RaptorParameters:
    """RAPTOR: Sarthi et al., 2024, section 3, with the defaults of the authors' code.

    ``mode`` ``collapsed``: the ``top_k`` chunks and summaries, of all layers together, nearest to
    the question by cosine. ``tree``: the ``layer_k`` nearest of what no summary stands above, then
    of the parts of those, and so on down to chunks; all that was chosen on the way counts.
    Both as far as they fit in ``max_context_tokens``, nearest first.

    Where paper and code differ from this. Their tree has every node in a single top layer; here
    what was not summarised further is a beginning too. Their tree search has no limit of tokens.
    The paper's collapsed tree has 2,000 tokens, the code's 3,500. Chunks are those of the index
    (``chunks.size``), theirs have 100 tokens.
    """

    mode: str = choice(COLLAPSED, (COLLAPSED, TREE))
    top_k: int = number(10)
    layer_k: int = number(5)
    reranked: int = number(40, least=0)
    max_context_tokens: int = number(3500)


def raptor_search(index: Release, question: str, p: RaptorParameters) -> list[Record]:
    """Return chunks and summaries near the question, best first."""
    index.tell_left_out("summaries")
    records = partial(_records, question=question)
    if p.mode == TREE:
        nodes = own.down_the_tree(index, question, p.layer_k)
        most = len(nodes)
    else:
        n = op.n_candidates(index, p.top_k, p.reranked)
        nodes, most = own.best_of_tree(index, question, n), p.top_k
    nodes = op.best(op.rerank(index, question, nodes, p.reranked, records=records), most)
    return op.fill(index, records(index, nodes), p.max_context_tokens)


def _records(index: Release, nodes: op.Ranking, question: str) -> list[Record]:
    return own.tree_records(index, question, nodes)


RAPTOR = Method(
    name="raptor",
    summary="chunks and summaries of the RAPTOR tree",
    parameters=RaptorParameters,
    retrieve=raptor_search,
    prompt="raptor_answer",
    table="raptor_nodes",
)
