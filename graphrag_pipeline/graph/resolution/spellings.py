"""Titles that are the same but for spelling, number or abbreviation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from graphrag_pipeline.graph.resolution.names import conflict
from graphrag_pipeline.graph.resolution.pairs import SHARED, Entity, FoundPair, Pair
from graphrag_pipeline.graph.resolution.state import PLURAL, SPELLING

_MOST_ALIKE = 50
_CONFIDENCE: Mapping[str, float] = {SPELLING: 0.97, PLURAL: 0.9}


def resolve_alike(kind: str, key: str, alike: Sequence[Entity]) -> FoundPair:
    """Return the pairs of a block of titles equal but for accents, hyphens, articles, the plural.

    ``kind`` is that of the block, ``key`` what its titles share.
    """
    pairs = FoundPair()
    first, *variants = sorted(alike, key=lambda entity: entity.rank)[:_MOST_ALIKE]
    evidence = {"key": key, **SHARED}
    for variant in variants:
        why = conflict(first.name, variant.name)
        if why:
            pairs.apart.append(Pair(variant, first, why, evidence=evidence))
        else:
            pair = Pair(variant, first, kind, _CONFIDENCE[kind], evidence=evidence)
            pairs.merge.append(pair)
    return pairs


def may_stand_for(short: Entity, longer: Collection[Entity]) -> list[Entity]:
    """Return those that nothing speaks against, by id."""
    fits = [entity for entity in longer if not conflict(short.name, entity.name)]
    return sorted(fits, key=lambda entity: entity.id)


def resolve_acronym(
    short: Entity, explained: Sequence[Entity], fits: Sequence[Entity], near: Sequence[Entity]
) -> FoundPair:
    """Return an acronym with the one longer title that the text says it stands for.

    Where the text does not say it, the initials must fit one title only, and that title must be
    mentioned where the acronym is: ``near`` are those of ``fits`` that are.
    """
    pairs = FoundPair()
    if len(explained) == 1:
        pairs.merge.append(_acronym(short, explained[0], "acronym the text explains", 0.95))
    elif len(fits) == 1 and near and not explained and len(short.name.acronym) > 2:
        pairs.merge.append(_acronym(short, near[0], "acronym by its initials", 0.8))
    else:
        options = explained or near
        pairs.apart.extend(_acronym(short, e, "acronym of several", 0.0) for e in options[:3])
    return pairs


def _acronym(short: Entity, long: Entity, rule: str, confidence: float) -> Pair:
    return Pair(short, long, rule, confidence, evidence=SHARED)
