"""Local search: from entities of the question out to the graph, its reports and its text."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, hierarchy_level, number, share
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.operators import Ranking
    from graphrag_pipeline.query.release import Release

_CHUNK_CANDIDATES = 200
_CLAIM_CANDIDATES = 200


@dataclass(frozen=True)
class LocalParameters:
    """GraphRAG's local search (Edge et al., 2024, as in its reference implementation).

    ``report_share`` and what ``report_share`` and ``text_share`` leave, for the graph, are upper
    limits; the text takes everything they do not use. Of the graph's, entities have at most half,
    claims about them at most half of the rest, and relationships what is left. ``covering``: of the
    best 40 chunks, those that together answer the question come first.
    """

    top_k: int = number(10)
    relationships_per_entity: int = number(10)
    level: int = hierarchy_level(2)
    max_context_tokens: int = number(12_000)
    text_share: float = share(0.5)
    report_share: float = share(0.15)
    covering: bool = flag(False)
    reranked: int = number(40, least=0)

    def __post_init__(self) -> None:
        if self.text_share + self.report_share > 1:
            raise InputError(
                f"text_share ({self.text_share}) plus report_share ({self.report_share}) "
                "must not exceed 1"
            )


def local_search(index: Release, question: str, p: LocalParameters) -> list[Record]:
    """Return reports, entities, relationships, claims and chunks around the question's entities."""
    entities = op.entities_for(index, question, p.top_k)
    edges = op.relationships_of(index, entities, p.relationships_per_entity * p.top_k)
    budget = p.max_context_tokens
    reports = _reports(index, question, entities, p)
    budget -= op.tokens_of(index, reports)
    graph = _graph(index, entities, edges, p)
    budget -= sum(op.tokens_of(index, part) for part in graph)
    ranked = _chunks(index, question, entities, edges)
    ranked = op.covering(index, question, ranked) if p.covering else ranked
    ranked = op.rerank(index, question, ranked, p.reranked)
    chunks = op.chunks_within(index, ranked, budget)
    text = op.fill(index, op.chunk_records(index, chunks), budget)
    return [*reports, *chain.from_iterable(graph), *text]


def _reports(index: Release, question: str, entities: Ranking, p: LocalParameters) -> list[Record]:
    """Return reports of the entities' communities, or else of those most like the question."""
    candidates = op.reports_of(index, op.communities_of(index, entities, p.level))
    if not candidates:
        candidates = op.nearest(index, "community_reports", question, 1)
    budget = int(p.max_context_tokens * p.report_share)
    return op.fill(index, op.report_records(index, candidates), budget, shorter=op.summarised)


def _graph(
    index: Release, entities: Ranking, edges: Ranking, p: LocalParameters
) -> tuple[list[Record], list[Record], list[Record]]:
    """Return entities, relationships and claims within the graph's share of the tokens."""
    budget = int(p.max_context_tokens * (1 - p.text_share - p.report_share))
    nodes = op.fill(index, op.entity_records(index, entities), budget // 2)
    rest = budget - op.tokens_of(index, nodes)
    claim_records = op.claims_of(index, entities, _CLAIM_CANDIDATES)
    claims = op.fill(index, op.claim_records(index, claim_records), rest // 2)
    rest -= op.tokens_of(index, claims)
    return nodes, op.fill(index, op.relationship_records(index, edges), rest), claims


def _chunks(index: Release, question: str, entities: Ranking, edges: Ranking) -> Ranking:
    """Rank the chunks of entities and relationships by occurrence and by similarity, fused.

    Occurrence alone cannot tell apart the many chunks that mention one frequent entity. Where
    vectors know words only, all chunks that match the question's words come first, in the order of
    full text: entities are then found by their words, and what they support matches it worse.
    """
    supporting = op.chunks_of(
        index, op.by_place(entities), op.by_place(edges), limit=_CHUNK_CANDIDATES
    )
    similar = op.nearest(index, "chunks", question, _CHUNK_CANDIDATES)
    if index.lexical:
        return op.by_place(similar | supporting)
    return op.fuse([supporting, [key for key in similar if key in supporting]])


LOCAL = Method(
    name="local",
    summary="entities of the question, their graph, reports and text",
    recommended=True,
    parameters=LocalParameters,
    retrieve=local_search,
    prompt="local_answer",
)
