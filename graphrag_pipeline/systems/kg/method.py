"""KG-GraphRAG: triplets around the question's entities, alone or with the text they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.method import Method, flag, number
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.writing.lists import ask_lists
from graphrag_pipeline.query.writing.single import from_records

if TYPE_CHECKING:
    from graphrag_pipeline.query.operators import Ranking
    from graphrag_pipeline.query.release import Release
    from graphrag_pipeline.query.writing.asking import Asking, Final

_CHUNKS_BY_WORDS = 10


@dataclass(frozen=True)
class KgTripletsParameters:
    """KG-GraphRAG (Triplets): Han et al., 2025, 3.2, after LlamaIndex's KnowledgeGraphRAGRetriever.

    Up to ``entities`` of the question, and ``synonyms`` for them, are matched with the graph's
    entities by name; from these it is walked ``hops`` relationships far, and the ``triplets``
    nearest are taken. A model finds the names, in one call for LlamaIndex's two; without one they
    are the entities that the question names. Nothing is matched by similarity, as in LlamaIndex.
    Within one step, triplets of the entity matched first come first, then the heaviest, where
    LlamaIndex takes them as they are stored. A model sees descriptions for relation names.
    """

    entities: int = number(5)
    synonyms: int = number(5, least=0)
    hops: int = number(2)
    triplets: int = number(30)
    max_context_tokens: int = number(12_000)


@dataclass(frozen=True)
class KgTripletsTextParameters(KgTripletsParameters):
    """KG-GraphRAG (Triplets+Text): the same, and the source text of the triplets.

    Chunks that hold most of the triplets come first. The triplets are filled in first; the chunks
    have what they leave of ``max_context_tokens``. Where there are no triplets, LlamaIndex finds
    nothing; here the chunks are then the ten of the best words, unless ``by_words`` is false.
    """

    by_words: bool = flag(True)
    reranked: int = number(40, least=0)


def kg_triplets(index: Release, question: str, p: KgTripletsParameters) -> list[Record]:
    """Return the triplets around the entities that the question names, nearest first."""
    return triplets_around(index, named_entities(index, question, p), p)


def kg_triplets_text(index: Release, question: str, p: KgTripletsTextParameters) -> list[Record]:
    """Return the triplets around the entities that the question names, and their chunks."""
    return triplets_and_text(index, question, named_entities(index, question, p), p)


def named_entities(index: Release, question: str, p: KgTripletsParameters) -> Ranking:
    """Return the entities that a question names, as far as a rule can tell."""
    return op.entities_named_in(index, question, p.entities, apart=True)


def triplets_around(index: Release, entities: Ranking, p: KgTripletsParameters) -> list[Record]:
    """Return the triplets up to ``hops`` relationships away from entities, nearest first."""
    relationships = op.relationships_within(index, entities, p.hops, p.triplets)
    if not relationships:
        why = "the entities named have none" if entities else "no entity of the graph is named"
        index.trace.step(f"no triplets: {why}")
    return op.fill(index, op.relationship_records(index, relationships), p.max_context_tokens)


def triplets_and_text(
    index: Release, question: str, entities: Ranking, p: KgTripletsTextParameters
) -> list[Record]:
    """Return triplets as :func:`triplets_around` does, and the chunks they come from."""
    triplets = triplets_around(index, entities, p)
    budget = p.max_context_tokens - op.tokens_of(index, triplets)
    ranking = _chunks(index, question, triplets, p)
    chunks = op.chunks_within(index, ranking, budget)
    return [*triplets, *op.fill(index, op.chunk_records(index, chunks), budget)]


def _chunks(
    index: Release, question: str, triplets: Sequence[Record], p: KgTripletsTextParameters
) -> Ranking:
    """Rank the chunks of triplets, or where there are none those of the best words."""
    if not triplets and not p.by_words:
        return {}
    if not triplets:
        index.trace.step("chunks by words instead")
        return op.chunks_by_words(index, question, _CHUNKS_BY_WORDS, p.reranked)
    edges = {record.id: 1.0 for record in triplets}
    n = op.n_candidates(index, p.triplets, p.reranked)
    ranking = op.rerank(index, question, op.chunks_of(index, {}, edges, limit=n), p.reranked)
    return op.best(ranking, p.triplets)


async def kg_triplets_answer(asking: Asking, p: KgTripletsParameters) -> Final | None:
    """Have a model name the question's entities, and answer from the triplets around them."""
    entities = await _matched(asking, p)
    records = await asking.retrieve(lambda: triplets_around(asking.index, entities, p))
    return from_records(records, "local_answer")


async def kg_triplets_text_answer(asking: Asking, p: KgTripletsTextParameters) -> Final | None:
    """Answer in the same way, from triplets and their text."""
    entities = await _matched(asking, p)
    index, text = asking.index, asking.search_text
    records = await asking.retrieve(lambda: triplets_and_text(index, text, entities, p))
    return from_records(records, "local_answer")


async def _matched(asking: Asking, p: KgTripletsParameters) -> Ranking:
    """Return the entities that a model names in the question; by rule if it gives no names."""
    names = await _names(asking, p)
    if names is None:
        return await asking.retrieve(lambda: named_entities(asking.index, asking.search_text, p))
    return await asking.retrieve(lambda: op.entities_titled(asking.index, names))


async def _names(asking: Asking, p: KgTripletsParameters) -> list[str] | None:
    """Return the names to look for, of entities before synonyms, or None if none can be read."""
    lists = await ask_lists(
        asking,
        "entities",
        "question_entities",
        ("entities", "synonyms"),
        max_entities=str(p.entities),
        max_synonyms=str(p.synonyms),
    )
    if lists is None:
        return None
    names = [*lists[0][: p.entities], *lists[1][: p.synonyms]]
    asking.trace.step(f"entities: {', '.join(names) or 'none'}")
    return names


KG_TRIPLETS = Method(
    name="kg_triplets",
    summary="relationships up to two steps from the entities named",
    parameters=KgTripletsParameters,
    retrieve=kg_triplets,
    answer=kg_triplets_answer,
    short_calls=2,
)
KG_TRIPLETS_TEXT = Method(
    name="kg_triplets_text",
    summary="those relationships, and their source text",
    parameters=KgTripletsTextParameters,
    retrieve=kg_triplets_text,
    answer=kg_triplets_text_answer,
    short_calls=2,
)
