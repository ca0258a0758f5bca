"""PageRank over one graph of chunks, entities and facts: no model call, nor a model for vectors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number, share
from graphrag_pipeline.query.operators.coverage import CANDIDATES
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_pipeline.query.memory.graph_arrays import Adjacency
    from graphrag_pipeline.query.operators import Ranking
    from graphrag_pipeline.query.release import Release

_LEXICAL_FACTS = 0.3
_LEAST = 1e-30


@dataclass(frozen=True)
class PprParameters:
    """This project's own, after HippoRAG 2 (Gutiérrez et al., 2025).

    It sets out from titles, names and texts: a title of the question weighs 1, ``name_weight`` each
    other name, ``passage_weight`` all text like the question, of the ``facts`` most like it each up
    to as much as a fifth of a name. ``damping``: how likely each step goes on. ``titles``: what
    documents and sections are called are names, too, in the graph and in the question. What is so
    called comes first. ``covering``: of the best 40 chunks, those that together answer the question
    come first. ``second_walk``: once it has found the best chunk, it asks again for what that
    leaves open, in 1.5 times the time.
    """

    top_k: int = number(10)
    facts: int = number(5)
    name_weight: float = share(0.02)
    passage_weight: float = share(0.08)
    damping: float = share(0.6)
    titles: bool = flag(True)
    covering: bool = flag(True)
    second_walk: bool = flag(False)
    reranked: int = number(40, least=0)
    max_context_tokens: int = number(12_000)


def ppr_search(index: Release, question: str, p: PprParameters) -> list[Record]:
    """Return the ``top_k`` chunks that a walk from what the question names is most often at.

    It walks between chunks and the entities they mention, edges of 1, between chunks and what they
    are about (the titles of their documents, the headings of their sections), edges of 3, and
    between the two entities of a fact, edges by count; by 0.3 of that where similarity is BM25, for
    then facts are related words rather than meanings. Where a model or an import gave the entities,
    names that rules find in chunks count as entities, too.

    It sets out from the titles that stand in the question, in any case, 1 each, where at most four
    documents are so called; from what else the question names, by rule, and from other titles, by
    ``name_weight`` each; from both ends of the best facts, by their scaled score * ``name_weight``
    / ``facts``; all divided by the number of chunks that mention the name. And from every chunk, in
    proportion to its scaled score squared, by ``passage_weight`` in all. For a title tells which
    text is meant, and a name only who is mentioned: text like the question outweighs what it merely
    names. Where similarity is BM25, facts count by what the names carry: twice the share of the
    question's words, by rarity, that stand in names the graph knows, at most 1. Without them the
    best facts merely repeat the question's common words.

    ``second_walk``: a chunk's score is then the higher of that and of what :func:`asked_after` the
    best chunk gives, and it walks again. ``covering``: see :func:`covering`. Then the documents
    that are called as the titles say come first (:func:`titled_first`).
    """
    names = op.names_known(index, question)
    titles = op.titles_in(index, question) if p.titles else {}
    telling = op.telling(index, titles)
    needs_carried = p.second_walk or (index.lexical and p.titles)
    carried = _carried(index, question, [*names, *titles]) if needs_carried else 1.0
    similar = op.likely(index, "chunks", question)
    facts = op.likely(index, "relationships", question, p.facts)
    others = [*names.values(), *(titles[key] for key in titles if key not in telling)]
    starts = _starts(index, telling.values(), others, facts, carried, p)
    walked = _walked(index, starts, similar, p)
    if p.second_walk and (found := index.graph.best_chunks(walked, 1)):
        again = op.asked_after(index, question, next(iter(found)))
        further = {key: score * carried for key, score in again.items()}
        walked = _walked(index, starts, op.highest(similar, further), p)

    def ranked(k: int) -> Ranking:
        ranking = index.graph.best_chunks(walked, max(k, CANDIDATES))
        ranking = op.covering(index, question, ranking) if p.covering else ranking
        return op.titled_first(index, ranking, telling.values(), walked) if telling else ranking

    chunks = op.first_chunks(index, question, ranked, p.top_k, cover=False, reranked=p.reranked)
    return op.fill(index, op.chunk_records(index, chunks), p.max_context_tokens)


def prepare(index: Release) -> None:
    """Make what this method, with its defaults, reads of the graph whatever is asked."""
    graph, p = index.graph, PprParameters()
    _walk_graph(index, p)
    graph.edges("facts")
    graph.specificity(*_joining(p))
    graph.links_among(graph.some_chunks(2))
    graph.about([])
    graph.titles()


def _carried(index: Release, question: str, names: Iterable[str]) -> float:
    """Return what facts and a second question count, by what the names of the first carry."""
    return min(1.0, 2 * op.share_of(op.rarity(index, question), names))


def _starts(
    index: Release,
    titles: Iterable[Iterable[int]],
    others: Iterable[Iterable[int]],
    facts: Ranking,
    carried: float,
    p: PprParameters,
) -> npt.NDArray[np.float64]:
    """Return what each title, name and entity weighs at the start."""
    graph = index.graph
    share_of_facts = carried if index.lexical and p.titles else 1.0
    names = graph.weigh_nodes(chain.from_iterable(others))
    names += share_of_facts * graph.weigh_ends("facts", facts) / p.facts
    weights = graph.weigh_nodes(chain.from_iterable(titles)) + p.name_weight * names
    return graph.specificity(*_joining(p)) * weights


def _walked(
    index: Release, starts: npt.NDArray[np.float64], similar: Ranking, p: PprParameters
) -> npt.NDArray[np.float64]:
    texts = index.graph.weigh_chunks(similar) ** 2
    seeds = starts + p.passage_weight * texts / max(texts.sum(), _LEAST)
    graph = _walk_graph(index, p)
    return index.trace.timed(op.personalized_pagerank, graph, seeds, damping=p.damping)


def _walk_graph(index: Release, p: PprParameters) -> Adjacency:
    facts = _LEXICAL_FACTS if index.lexical and p.titles else 1.0
    return index.graph.adjacency(*_joining(p), facts=facts)


def _joining(p: PprParameters) -> tuple[str, ...]:
    """Return the kinds of edges between chunks and names."""
    return ("mentions", "names", "titles") if p.titles else ("mentions", "names")


PPR = Method(
    name="ppr",
    summary="chunks by PageRank from the question's entities",
    recommended=True,
    parameters=PprParameters,
    retrieve=ppr_search,
    prompt="basic_answer",
)
