"""FastGraphRAG: PageRank over entities, from them to relationships, from these to chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number, share
from graphrag_pipeline.query.operators.facts import has_synonyms
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.lists import ask_lists
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.query.operators import Ranking
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

_NAMED = 20


@dataclass(frozen=True)
class FastGraphragParameters:
    """fast-graphrag (circlemind), as in its source; there is no paper.

    Each entity that the question names is matched with the one of the graph that has it as title,
    or else with the most similar, if that scores at least ``named_similarity``; the question and
    what it asks for in general with the ``generic_k`` most similar that score at least
    ``generic_similarity``. A score is (1 + cosine) / 2, so 0.7 and 0.5 are cosines of 0.4 and 0.
    What each is matched with shares a weight of 1 by score: all of it for a named entity. An entity
    has the highest weight that any gives it, and from these weights PageRank goes on with
    ``damping``, all relationships alike. Entities that score at least ``least_score`` are kept;
    relationships score the sum of their ends, chunks that of the relationships found in them. Where
    the budgets of the three are more than ``max_context_tokens``, each is cut in proportion.

    A model names the entities, in one call. Without one the named are found by rule, and the
    question alone is generic. Where the release has synonyms, those at a cosine of 0.9 or more are
    one step apart as if related; by their titles, which the code compares with types and
    descriptions. Where the walk leads to no text, where the code finds nothing, the chunks are
    those of the best words, unless ``by_words`` is false.

    Beyond the code, and off: ``titles`` in the question, of documents and sections, name entities.
    """

    named_similarity: float = share(0.7)
    generic_similarity: float = share(0.5)
    generic_k: int = number(20)
    titles: bool = flag(False)
    damping: float = share(0.85)
    least_score: float = share(0.005)
    entities: int = number(128)
    relationships: int = number(64)
    chunks: int = number(8)
    by_words: bool = flag(True)
    reranked: int = number(40, least=0)
    max_entity_tokens: int = number(4000)
    max_relation_tokens: int = number(3000)
    max_chunk_tokens: int = number(9000)
    max_context_tokens: int = number(16_000)


def fast_graphrag(index: Release, question: str, p: FastGraphragParameters) -> list[Record]:
    """Return entities, relationships and chunks, from the entities that a rule finds named."""
    names = op.entities_named_in(index, question, _NAMED, apart=True)
    titles = [record.title for record in op.entity_records(index, names)]
    index.trace.step(f"named: {', '.join(titles) or 'none'} (by rule)")
    return from_entities(index, question, titles, [question], p)


def from_entities(
    index: Release,
    question: str,
    names: Sequence[str],
    generic: Sequence[str],
    p: FastGraphragParameters,
) -> list[Record]:
    """Return what fast-graphrag retrieves for named entities and other words of a question."""
    start = seeds(index, names, generic, p)
    if p.titles:
        start = op.highest(start, *(_titled(index, text) for text in generic))
    entities = walked(index, start, p)
    edges = op.relationships_by_score(index, entities, p.relationships)
    n = op.n_candidates(index, p.chunks, p.reranked)
    ranking = op.chunks_of(index, {}, edges, limit=n)
    chunks = op.best(op.rerank(index, question, ranking, p.reranked), p.chunks)
    if not chunks and p.by_words:
        index.trace.step("no relationship found: chunks by words")
        chunks = op.chunks_by_words(index, question, p.chunks, p.reranked)
    shares = [p.max_entity_tokens, p.max_relation_tokens, p.max_chunk_tokens]
    of_entities, of_edges, of_chunks = op.in_proportion(p.max_context_tokens, shares)
    return [
        *op.fill(index, op.entity_records(index, entities), of_entities),
        *op.fill(index, op.relationship_records(index, edges), of_edges),
        *op.fill(index, op.chunk_records(index, chunks), of_chunks),
    ]


def seeds(
    index: Release, names: Sequence[str], generic: Sequence[str], p: FastGraphragParameters
) -> Ranking:
    """Return the entities to set out from, each with the most that any name or text gives it."""
    named = [
        op.best(op.entities_titled(index, [name]), 1)
        or _similar(index, name, 1, p.named_similarity)
        for name in names
    ]
    similar = [_similar(index, text, p.generic_k, p.generic_similarity) for text in generic]
    return op.highest(*map(_shared, [*named, *similar]))


def _similar(index: Release, text: str, k: int, least: float) -> Ranking:
    """Rank the ``k`` entities most like a text by (1 + cosine) / 2, of ``least`` or more."""
    cosines = op.vector_search(index, "entities", text, k)
    return op.at_least({key: (1 + cosine) / 2 for key, cosine in cosines.items()}, least)


def _shared(ranking: Ranking) -> Ranking:
    """Return the same with scores that sum to 1."""
    total = sum(ranking.values())
    return {key: score / total for key, score in ranking.items()} if total else {}


def _titled(index: Release, text: str) -> Ranking:
    """Return the entities that are called as titles that stand in a text."""
    nodes = op.titles_in(index, text).values()
    named = index.graph.weigh_nodes(node for found in nodes for node in found)
    return index.graph.best_entities(named, _NAMED)


def walked(index: Release, start: Ranking, p: FastGraphragParameters) -> Ranking:
    """Rank the entities that PageRank from some of them gives a score worth keeping."""
    graph = index.graph
    edges = graph.adjacency("links", *(["identities"] if has_synonyms(index) else []))
    starts = graph.weigh_entities(start)
    scores = index.trace.timed(op.personalized_pagerank, edges, starts, damping=p.damping)
    return op.at_least(graph.best_entities(scores, p.entities), p.least_score)


async def fast_graphrag_answer(asking: Asking, p: FastGraphragParameters) -> Final | None:
    """Ask for the question's entities, named and generic, retrieve from them, and answer."""
    names = ("named", "generic")
    lists = await ask_lists(asking, "entities", "named_and_generic", names)
    if lists is None:
        records = await asking.retrieve(lambda: fast_graphrag(asking.index, asking.search_text, p))
        return from_records(records, "local_answer")
    name_list, generic = lists
    asking.trace.step(
        f"named: {', '.join(name_list) or 'none'}; "
        f"generic: {', '.join(generic) or 'none'} (by model)"
    )
    text = asking.search_text
    records = await asking.retrieve(
        lambda: from_entities(asking.index, text, name_list, [*generic, text], p)
    )
    return from_records(records, "local_answer")


FAST_GRAPHRAG = Method(
    name="fast_graphrag",
    summary="PageRank from the question's entities to relationships and text",
    parameters=FastGraphragParameters,
    retrieve=fast_graphrag,
    answer=fast_graphrag_answer,
    short_calls=1,
)
