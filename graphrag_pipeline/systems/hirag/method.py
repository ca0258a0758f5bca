"""HiRAG: entities of all layers, reports on their communities, and the paths that bridge both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, choice, flag, hierarchy_level, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.systems.hirag import operators as own

if TYPE_CHECKING:
    from graphrag_pipeline.query.operators import Ranking
    from graphrag_pipeline.query.release import Release

MODES = ("full", "local", "global", "bridge", "nobridge")
_CANDIDATES = 10


@dataclass(frozen=True)
class HiragParameters:
    """HiRAG: Huang et al., 2025, section 4.2 and algorithm 2, with the defaults of its code.

    Local knowledge are the ``entities`` of all layers most similar to the question (equation 12).
    Global knowledge are the reports on their communities at ``level`` or above, those that hold
    most of them first, then by rating (equation 13), in ``report_tokens``. From each of these, the
    ``key_entities`` most similar to the question, of ten times ``entities`` candidates, are joined
    one after the other by shortest paths over all layers; where there is none, the next is jumped
    to. The relationships between all entities on the paths are the bridge (equations 14 to 16), in
    ``bridge_tokens``, by degrees summed, then weight. Entities, and chunks of those of layer 0 by
    rank and by how many related entities each mentions, take ``text_tokens``. Where the three are
    more than ``max_context_tokens``, each is cut in proportion.

    ``mode`` says which of these are given to the answer: ``full`` is the code's hi, ``local``
    hi_local, ``global`` hi_global, ``bridge`` hi_bridge, and ``nobridge`` hi_nobridge, the paper's
    "w/o Bridge"; each with text. No call of a model is made before the answer. Without
    ``hi_index`` the same is done on the graph without layers and its communities ("w/o HiIndex").

    Where paper and code differ. The code takes the key entities in the order of a set, so that
    paths change from run to run; here, as in the paper, in the order they are collected. The paper
    selects them from all of a community; here, as in the code, from the candidates.
    """

    mode: str = choice("full", MODES)
    hi_index: bool = flag(True)
    entities: int = number(20)
    key_entities: int = number(10)
    level: int = hierarchy_level(2)
    reranked: int = number(40, least=0)
    report_tokens: int = number(12_500)
    bridge_tokens: int = number(12_500)
    text_tokens: int = number(20_000)
    max_context_tokens: int = number(45_000)


def hirag_search(index: Release, question: str, p: HiragParameters) -> list[Record]:
    """Return reports, entities, the bridge between them and chunks, as ``mode`` asks."""
    index.tell_left_out("summary entities")
    candidates = _candidates(index, question, p)
    local = op.best(candidates, p.entities)
    reports: list[Record] = []
    if p.mode != "local":
        found = own.communities_of_layers(index, local, p.level, flat=not p.hi_index)
        candidate_reports = own.layered_report_records(index, found, flat=not p.hi_index)
        reports = op.fill(index, candidate_reports, _budgets(p)[0])
    edges = _bridge(index, reports, candidates, p) if p.mode in ("full", "bridge") else []
    nodes = _nodes(index, local, p) if p.mode in ("full", "local", "nobridge") else []
    budget = _budgets(p)[2] - op.tokens_of(index, nodes)
    ranking = op.rerank(index, question, own.chunks_by_links(index, local), p.reranked)
    chunks = op.chunks_within(index, ranking, budget)
    text = op.fill(index, op.chunk_records(index, chunks), budget)
    shown_reports = reports if p.mode in ("full", "global", "nobridge") else []
    return [*shown_reports, *nodes, *edges, *text]


def _candidates(index: Release, question: str, p: HiragParameters) -> Ranking:
    """Return the entities most similar to the question; say what the layers lack that they need."""
    if not p.hi_index:
        return op.nearest(index, "entities", question, _CANDIDATES * p.entities)
    candidates = own.entities_of_layers(index, question, _CANDIDATES * p.entities)
    for lack in own.lacks_of_layers(index):
        index.trace.step(lack)
    return candidates


def _budgets(p: HiragParameters) -> list[int]:
    """Return how many tokens reports, bridge and text have."""
    return op.in_proportion(p.max_context_tokens, [p.report_tokens, p.bridge_tokens, p.text_tokens])


def _bridge(
    index: Release, reports: list[Record], candidates: Ranking, p: HiragParameters
) -> list[Record]:
    """Return the relationships on paths through the key entities of the reported communities.

    Where no community is found, as in the code, the first candidates are the key entities.
    """
    communities = [record.attributes["community_id"] for record in reports]
    flat = not p.hi_index
    keys = own.key_entities(index, communities, candidates, p.key_entities, flat=flat)
    if not keys:
        index.trace.step("no community found: the best entities are the key entities")
        keys = list(op.best(candidates, p.key_entities))
    budget = _budgets(p)[1]
    edges = own.bridge_relationships(index, keys, budget, flat=flat)
    return op.fill(index, own.layered_relationship_records(index, edges), budget)


def _nodes(index: Release, local: Ranking, p: HiragParameters) -> list[Record]:
    """Return the entities, in half of what they and their text may take."""
    return op.fill(index, own.layered_entity_records(index, local), _budgets(p)[2] // 2)


HIRAG = Method(
    name="hirag",
    summary="entities of all layers, reports, and the paths between them",
    parameters=HiragParameters,
    retrieve=hirag_search,
    prompt="local_answer",
    table="hirag_entities",
)
