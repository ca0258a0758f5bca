"""ArchRAG: entities and attributed communities by one search down the layers of C-HNSW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, choice, flag, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.map_reduce import Scored, points_of, reduced
from graphrag_pipeline.query.writing.references import Shown
from graphrag_pipeline.query.writing.single import from_records
from graphrag_pipeline.systems.archrag import operators as own

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

LAYERS = {"all": None, "single": 2, "entities": 1}
"""What is searched: how many layers, from the lowest."""
ADAPTIVE, DIRECT = "adaptive", "direct"

_EDGES_CONSIDERED = 200
_CALLS = 5
"""A map call for each layer (four, in the graphs measured) and one that merges."""


@dataclass(frozen=True)
class ArchRagParameters:
    """ArchRAG: Wang et al., 2025, "Online retrieval"; ``relationships`` as in the authors' code.

    Hierarchical search (Algorithm 2) finds the ``k`` nearest nodes of each layer, keeping ``ef``
    candidates; of the relationships that the entities found have, the ``relationships`` most
    similar to the question are told of. With a model each layer is filtered in turn, at most
    ``filter_tokens`` of it in one call: points with a score of 0 to 100, those of 0 dropped; the
    best that fit in as many tokens are merged (equations 1 and 2).

    Where this differs. The authors' code searches each layer from the top, and with its defaults
    only the lowest two; here it is as in the paper. ``own_answer`` filters the model's answer
    without an index, too: the code always does, the paper does not say so. ``chunks`` that the
    entities and relationships come from are shown, so that an answer can cite text; the paper shows
    none (0). Where nothing is left, no answer is made up from what the model knows.

    The ablations of table 3 that are of a question: ``layers`` ``single`` searches entities and
    the communities of one level (Single-Layer), ``entities`` entities alone (Entity-Only);
    ``prompting`` ``direct`` answers from all that was found in one call, unfiltered (Direct
    Prompt).
    """

    k: int = number(5)
    ef: int = number(100)
    relationships: int = number(10, least=0)
    chunks: int = number(5, least=0)
    reranked: int = number(40, least=0)
    filter_tokens: int = number(4000)
    layers: str = choice("all", tuple(LAYERS))
    prompting: str = choice(ADAPTIVE, (ADAPTIVE, DIRECT))
    own_answer: bool = flag(False)
    max_context_tokens: int = number(12_000)


def archrag_search(index: Release, question: str, p: ArchRagParameters) -> list[Record]:
    """Return the records of all layers, the reports of the top layer first."""
    return list(chain.from_iterable(reversed(archrag_layers(index, question, p))))


def archrag_layers(index: Release, question: str, p: ArchRagParameters) -> list[list[Record]]:
    """Return the records of each layer: entities, relationships and text, then reports by level.

    Reports have half of the tokens, in equal shares, and come as summaries where they do not fit.
    """
    index.tell_left_out("reports on attributed communities")
    layers = own.nearest_in_layers(index, question, p.k, p.ef)[: LAYERS[p.layers]]
    entities, *communities = layers
    share = p.max_context_tokens // 2 // max(1, len(communities))
    reports = [
        op.fill(index, op.attributed_report_records(index, level), share, shorter=op.summarised)
        for level in communities
    ]
    budget = p.max_context_tokens - sum(op.tokens_of(index, level) for level in reports)
    return [_lowest(index, question, entities, budget, p), *reports]


def _lowest(
    index: Release, question: str, entities: op.Ranking, budget: int, p: ArchRagParameters
) -> list[Record]:
    """Return entities and relationships, a third of the tokens each, and text in what is left."""
    touching = op.relationships_of(index, entities, _EDGES_CONSIDERED)
    edges = op.most_similar(index, "relationships", question, touching, p.relationships)
    nodes = op.fill(index, op.entity_records(index, entities), budget // 3)
    links = op.fill(index, op.relationship_records(index, edges), budget // 3)
    budget_for_chunks = budget - op.tokens_of(index, nodes) - op.tokens_of(index, links)
    n = op.n_candidates(index, p.chunks, p.reranked) if p.chunks else 0
    ranking = op.chunks_of(index, op.by_place(entities), op.by_place(edges), limit=n)
    chunks = op.best(op.rerank(index, question, ranking, p.reranked), p.chunks)
    text = op.fill(
        index,
        op.chunk_records(index, op.chunks_within(index, chunks, budget_for_chunks)),
        budget_for_chunks,
    )
    return [*nodes, *links, *text]


async def archrag_answer(asking: Asking, p: ArchRagParameters) -> Final | None:
    """Filter what was retrieved of each layer, and merge (adaptive filtering-based generation)."""
    index = asking.index
    layers = await asking.retrieve(lambda: archrag_layers(index, asking.search_text, p))
    if p.prompting == DIRECT:
        return from_records(list(chain.from_iterable(reversed(layers))), "local_answer")
    groups = await asking.retrieve(
        lambda: [part for layer in layers for part in op.groups(index, layer, p.filter_tokens)]
    )
    parts = [lambda: _from_the_model_alone(asking)] if p.own_answer else []
    own = await asking.each("own answer", parts, one_at_least=False)
    more = [point for points in own for point in points or ()]
    return await reduced(asking, groups, p.filter_tokens, "archrag", "context", more)


async def _from_the_model_alone(asking: Asking) -> Sequence[Scored]:
    """Return the points of an answer that the model gives, step by step, without any record."""
    text = await asking.say("own answer", "cot_answer")
    context = f"\n-----Direct answer-----\n{text}\n"
    return await points_of(asking, "archrag_map", Shown(), context=context)


ARCHRAG = Method(
    name="archrag",
    summary="entities and attributed communities, layer by layer",
    parameters=ArchRagParameters,
    retrieve=archrag_search,
    answer=archrag_answer,
    readings=lambda p: _CALLS if p.prompting == ADAPTIVE else 1,
    table="attributed_communities",
)
