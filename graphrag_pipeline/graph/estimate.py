"""Estimate of merging the graph: summaries of descriptions, and texts to embed."""

from __future__ import annotations

from collections.abc import Iterator

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.estimates import (
    ENTITY_TOKENS,
    RELATIONSHIP_TOKENS,
    RELATIONSHIPS_PER_ENTITY,
    Embedded,
    Estimate,
    Growth,
    ModelCalls,
)

STAGE = "summaries"
_MERGES = 0.05


def estimate(settings: Settings, growth: Growth) -> Estimate:
    """Return the summaries to write, and the texts of elements that are new or change."""
    texts = list(_elements(growth))
    if settings.graph.summaries != "llm":
        return Estimate(texts=texts)
    budget = settings.graph.max_description_tokens
    new = growth.effect.merges if growth.effect else growth.grown.full * _MERGES
    read = growth.merge_tokens or 2.5 * budget
    return Estimate([ModelCalls(STAGE, growth.merges + new, read, 0.7 * budget)], texts=texts)


def _elements(growth: Growth) -> Iterator[Embedded]:
    if growth.effect:
        entities, relationships = growth.effect.entities, growth.effect.relationships
        yield Embedded(entities.number, entities.tokens, "entities")
        yield Embedded(relationships.number, relationships.tokens, "relationships")
        return
    n = growth.entities * RELATIONSHIPS_PER_ENTITY
    yield Embedded(growth.entities, growth.entities * ENTITY_TOKENS, "entities")
    yield Embedded(n, n * RELATIONSHIP_TOKENS, "relationships")
