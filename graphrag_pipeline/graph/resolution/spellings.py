"""Titles that are the same but for spelling, number or abbreviation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from graphrag_pipeline.graph.resolution.names import conflict
from graphrag_pipeline.graph.resolution.pairs import SHARED, Entity, Pair
from graphrag_pipeline.graph.resolution.state import PLURAL, SPELLING

_MOST_ALIKE = 50
_CONFIDENCE: Mapping[str, float] = {SPELLING: 0.97, PLURAL: 0.9}


def resolve_alike(kind: str, key: str, alike: Sequence[Entity]) -> list[Pair]:
    """Return the pairs of a block of titles equal but for accents, hyphens, articles, the plural.

    ``kind`` is that of the block, ``key`` what its titles share.
    """
    pairs = []
    first, *variants = sorted(alike, key=lambda entity: entity.rank)[:_MOST_ALIKE]
    evidence = {"key": key, **SHARED}
    for variant in variants:
        why = conflict(first.name, variant.name)
        confidence = 0.0 if why else _CONFIDENCE[kind]
        pairs.append(Pair(variant, first, why or kind, confidence, evidence=evidence))
    return pairs


def may_stand_for(short: Entity, longer: Collection[Entity]) -> list[Entity]:
    """Return those that nothing speaks against, by id."""
    fits = [entity for entity in longer if not conflict(short.name, entity.name)]
    return sorted(fits, key=lambda entity: entity.id)


def resolve_acronym(
    short: Entity, explained: Sequence[Entity], fits: Sequence[Entity], near: Sequence[Entity]
) -> list[Pair]:
    """Return an acronym with the one longer title that the text says it stands for.

    Where the text does not say it, the initials must fit one title only, and that title must be
    mentioned where the acronym is: ``near`` are those of ``fits`` that are.
    """
    if len(explained) == 1:
        return [_acronym(short, explained[0], "acronym the text explains", 0.95)]
    if len(fits) == 1 and near and not explained and len(short.name.acronym) > 2:
        return [_acronym(short, near[0], "acronym by its initials", 0.8)]
    options = explained or near
    return [_acronym(short, each, "acronym of several", 0.0) for each in options[:3]]


def _acronym(short: Entity, long: Entity, rule: str, confidence: float) -> Pair:
    return Pair(short, long, rule, confidence, evidence=SHARED)
