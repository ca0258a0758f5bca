"""PageRank over one graph of chunks, entities and facts: no model call, nor a model for vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, number, share
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release


@dataclass(frozen=True)
class PprParameters:
    """This project's own, after HippoRAG 2 (Gutiérrez et al., 2025), whose parameters it keeps.

    ``facts`` is how many of the facts most like the question it sets out from, ``passage_weight``
    what text like the question weighs against entities, ``damping`` how likely each step goes on.
    """

    top_k: int = number(10)
    facts: int = number(5)
    passage_weight: float = share(0.05)
    damping: float = share(0.5)
    max_context_tokens: int = number(12_000)


def ppr_search(index: Release, question: str, p: PprParameters) -> list[Record]:
    """Return the ``top_k`` chunks that a walk from the question's entities is most often at.

    It walks between chunks and the entities they mention, edges of 1, and between the two entities
    of a fact, edges by count. Where a model or an import gave the entities, names that rules find
    in chunks count as entities, too. It sets out from the entities that the question names, by
    rule, 1 each, and from both ends of the best facts, their scaled score / ``facts`` each; either
    is divided by the number of chunks that mention the entity. And from every chunk, by
    ``passage_weight`` times its scaled score squared, so that text hardly like the question has
    next to nothing.
    """
    graph = index.graph
    entities = op.entities_by_rule(index, question)
    facts = op.scaled_search(index, "relationships", question, p.facts)
    similar = op.scaled_search(index, "chunks", question)
    names = op.names_by_rule(index, question)
    seeds = graph.specificity_of_names * (
        graph.weigh_entities(entities)
        + graph.weigh_names(names)
        + graph.weigh_ends("facts", facts) / p.facts
    )
    seeds += p.passage_weight * graph.weigh_chunks(similar) ** 2
    walk = index.trace.timing(op.personalized_pagerank)
    walked = walk(graph.adjacency("mentions", "names", "facts"), seeds, damping=p.damping)
    chunks = graph.best_chunks(walked, p.top_k)
    return op.fill(index, op.chunk_records(index, chunks), p.max_context_tokens)


PPR = Method(
    name="ppr",
    summary="chunks by PageRank from the question's entities",
    parameters=PprParameters,
    retrieve=ppr_search,
    prompt="basic_answer",
)
