"""LightRAG: entities by the question's details, relationships by its themes, and their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, choice, number, share
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.lists import ask_lists
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.query.operators import Ranking
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

MODES = ("local", "global", "hybrid", "mix")
_CHUNKS_EACH = 5
_CHUNK_CANDIDATES = 1000
_NAMED = 20


@dataclass(frozen=True)
class LightragParameters:
    """LightRAG: Guo et al., 2024, 3.2 and 3.3, with the defaults of its code (1.5.7).

    Low-level keywords find the ``top_k`` entities nearest to them, and of these the relationships,
    by the degrees of their ends summed, then weight: mode ``local``. High-level keywords find the
    ``top_k`` nearest relationships, and of these the ends: ``global``. ``hybrid`` takes both in
    turn, ``mix`` also the chunks nearest to the question. Nothing less similar than
    ``least_similarity`` is found. Entities and relationships are cut to their own budgets, these to
    half of ``max_context_tokens``, which leaves room for text where it is set low; then
    half of five chunks for each of them, those most similar to the question, are taken in turn, at
    most ``chunk_top_k``, in what is left of ``max_context_tokens``.

    A model finds the keywords in one call. Without one, by rule: entities that the question names
    are its details, the whole question its themes, and its details too where it names none.
    """

    mode: str = choice("mix", MODES)
    top_k: int = number(40)
    chunk_top_k: int = number(20)
    least_similarity: float = share(0.2)
    reranked: int = number(40, least=0)
    max_entity_tokens: int = number(6000)
    max_relation_tokens: int = number(8000)
    max_context_tokens: int = number(30_000)


@dataclass(frozen=True)
class Keywords:
    """Keywords of a question: its details (low level) and its themes (high level)."""

    low: str
    high: str

    def __str__(self) -> str:
        return f"low-level keywords: {self.low}; high-level: {self.high}"


def lightrag(index: Release, question: str, p: LightragParameters) -> list[Record]:
    """Return entities, relationships and chunks, for keywords found by rule."""
    keywords = keywords_by_rule(index, question)
    index.trace.step(f"{keywords} (by rule)")
    return by_keywords(index, question, keywords, p)


def keywords_by_rule(index: Release, question: str) -> Keywords:
    """Return the names that stand in a question; its themes are all of it."""
    entities = op.entity_records(index, op.entities_named_in(index, question, _NAMED, apart=True))
    return keywords_of(question, [record.title for record in entities], [])


def keywords_of(question: str, low: Sequence[str], high: Sequence[str]) -> Keywords:
    """Return keywords as they are searched for, the question where there are none of a kind."""
    return Keywords(", ".join(low) or question, ", ".join(high) or question)


def by_keywords(
    index: Release, question: str, keywords: Keywords, p: LightragParameters
) -> list[Record]:
    """Return what LightRAG retrieves for keywords: entities, relationships, then chunks."""
    near, of_near = _local(index, keywords.low, p) if p.mode != "global" else ({}, {})
    ends, far = _global(index, keywords.high, p) if p.mode != "local" else ({}, {})
    budget = p.max_context_tokens
    shares = [p.max_entity_tokens, p.max_relation_tokens]
    of_entities, of_edges = op.in_proportion(budget // 2, shares)
    candidates = op.entity_records(index, op.in_turn(near, ends))
    entities = op.fill(index, candidates, of_entities)
    budget -= op.tokens_of(index, entities)
    candidates = op.relationship_records(index, op.in_turn(of_near, far))
    edges = op.fill(index, candidates, of_edges)
    budget -= op.tokens_of(index, edges)
    chunks = op.chunks_within(index, _chunks(index, question, entities, edges, p), budget)
    return [*entities, *edges, *op.fill(index, op.chunk_records(index, chunks), budget)]


def _local(index: Release, text: str, p: LightragParameters) -> tuple[Ranking, Ranking]:
    """Return the entities nearest to a text, and their relationships by degree."""
    entities = op.nearest(index, "entities", text, p.top_k, least=p.least_similarity)
    return entities, op.relationships_by_degree(index, entities, p.max_relation_tokens)


def _global(index: Release, text: str, p: LightragParameters) -> tuple[Ranking, Ranking]:
    """Return the ends of the relationships nearest to a text, and these relationships."""
    edges = op.nearest(index, "relationships", text, p.top_k, least=p.least_similarity)
    records = op.relationship_records(index, edges)
    pairs = ((r.attributes["source_id"], r.attributes["target_id"]) for r in records)
    return dict.fromkeys(chain.from_iterable(pairs), 1.0), edges


def _chunks(
    index: Release,
    question: str,
    entities: Sequence[Record],
    edges: Sequence[Record],
    p: LightragParameters,
) -> Ranking:
    """Rank chunks in turn: nearest to the question, of the entities, of the relationships."""
    nearest: Ranking = {}
    if p.mode == "mix":
        k = op.n_candidates(index, p.chunk_top_k, p.reranked)
        nearest = op.nearest(index, "chunks", question, k, least=p.least_similarity)
    nodes = {} if p.mode == "global" else {record.id: 1.0 for record in entities}
    links = {} if p.mode == "local" else {record.id: 1.0 for record in edges}
    of_nodes = op.chunks_of(index, nodes, limit=_CHUNK_CANDIDATES)
    of_links = op.chunks_of(index, {}, links, limit=_CHUNK_CANDIDATES)
    picked = [
        op.most_similar(index, "chunks", question, of, _CHUNKS_EACH * len(records) // 2)
        for of, records in ((of_nodes, nodes), (of_links, links))
    ]
    ranking = op.rerank(index, question, op.in_turn(nearest, *picked), p.reranked)
    return op.best(ranking, p.chunk_top_k)


async def lightrag_answer(asking: Asking, p: LightragParameters) -> Final | None:
    """Ask for the question's keywords, retrieve by them, and answer."""
    names = ("high_level_keywords", "low_level_keywords")
    lists = await ask_lists(asking, "keywords", "question_keywords", names)
    if lists is None:
        keywords = await asking.retrieve(lambda: keywords_by_rule(asking.index, asking.search_text))
    else:
        keywords = keywords_of(asking.search_text, lists[1], lists[0])
    asking.trace.step(f"{keywords} ({'by rule' if lists is None else 'by model'})")
    records = await asking.retrieve(
        lambda: by_keywords(asking.index, asking.search_text, keywords, p)
    )
    return from_records(records, "local_answer")


LIGHTRAG = Method(
    name="lightrag",
    summary="entities by details, relationships by themes, and their text",
    parameters=LightragParameters,
    retrieve=lightrag,
    answer=lightrag_answer,
    short_calls=1,
)
