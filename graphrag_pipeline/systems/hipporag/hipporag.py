"""HippoRAG: passages by PageRank over entities alone, from those the question names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from graphrag_pipeline.extraction.rules.nlp import names_in
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number, share
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.lists import ask_lists
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final


@dataclass(frozen=True)
class HippoRagParameters:
    """HippoRAG: Gutiérrez et al., 2024, section 2.3, with the numbers of the authors' experiments.

    Up to ``entities`` of the question, by a model where one is configured and by rule without, are
    each linked to the one entity whose title is most like it. These weigh 1 / the number of chunks
    that mention them ("node specificity"), and PageRank over relationships and synonyms sets out
    from them with ``damping``. A passage has the sum of the PageRank of the entities it mentions;
    the best ``top_k`` are the answer's. Passages are no nodes, as they are in HippoRAG 2.

    Where no entity is found, passages are ranked by similarity, as in the code. The code can mix
    in similarity where an entity is linked with less than 0.9, too; that is left out. The paper
    counts how often a passage names an entity, here it counts once. ``damping`` is that of the
    paper and of the authors' scripts; the default of their class is 0.1.

    Beyond the paper, and off: ``titles`` in the question are set out from too, and a passage has
    three times the PageRank of what it is about; ``covering``: those of the best 40 passages that
    together answer the question come first.
    """

    entities: int = number(10)
    damping: float = share(0.5)
    titles: bool = flag(False)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)
    top_k: int = number(5)
    max_context_tokens: int = number(12_000)


def hipporag_search(index: Release, question: str, p: HippoRagParameters) -> list[Record]:
    """Return the passages around the entities that a rule finds in the question."""
    return passages_around(
        index, question, AnalysedQuestion.of(question).read(names_in)[: p.entities], p
    )


def passages_around(
    index: Release, question: str, names: Sequence[str], p: HippoRagParameters
) -> list[Record]:
    """Return the passages that PageRank leads to from names, or the nearest where none links."""
    index.trace.looked_for(names)
    ranking = _ranked(index, question, op.link_entities(index, names), p)
    if not ranking:
        index.trace.step("no entity linked: passages by similarity")
        similar = op.scaled_search(index, "chunks", question)
        ranking = op.best(op.rerank(index, question, similar, p.reranked), p.top_k)
    return op.fill(index, op.chunk_records(index, ranking), p.max_context_tokens)


def _ranked(
    index: Release, question: str, entities: op.Ranking, p: HippoRagParameters
) -> op.Ranking:
    import numpy as np

    graph = index.graph
    seeds = np.zeros(graph.n_nodes)
    nodes = graph.entity_nodes(entities)
    seeds[nodes] = 1 / np.maximum(1, graph.chunk_counts[nodes])
    if p.titles:
        titled = chain.from_iterable(op.titles_in(index, question).values())
        seeds += graph.weigh_nodes(titled) * graph.specificity("mentions", "titles")
    edges = graph.adjacency("facts", "synonyms")
    reached = index.trace.timed(op.personalized_pagerank, edges, seeds, damping=p.damping)
    scores = np.zeros(graph.n_nodes)
    for edges in map(graph.edges, ("mentions", "titles") if p.titles else ("mentions",)):
        scores += np.bincount(edges.two, edges.weight * reached[edges.one], graph.n_nodes)
    return op.first_chunks(
        index,
        question,
        partial(graph.best_chunks, scores),
        p.top_k,
        cover=p.covering,
        reranked=p.reranked,
    )


async def hipporag_answer(asking: Asking, p: HippoRagParameters) -> Final | None:
    """Have a model name the question's entities, and answer from the passages around them."""
    limits = {"max_entities": str(p.entities), "max_synonyms": "0"}
    lists = await ask_lists(asking, "entities", "question_entities", ("entities",), **limits)

    def passages() -> list[Record]:
        index, text = asking.index, asking.search_text
        if lists is None:
            return hipporag_search(index, text, p)
        return passages_around(index, text, lists[0][: p.entities], p)

    return from_records(await asking.retrieve(passages), "basic_answer")


HIPPORAG = Method(
    name="hipporag",
    summary="passages by PageRank over entities, from those the question names",
    parameters=HippoRagParameters,
    retrieve=hipporag_search,
    answer=hipporag_answer,
    short_calls=1,
)
