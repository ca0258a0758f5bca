"""Titles that are the same but for spelling, number or abbreviation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from graphrag_pipeline.graph.resolution.names import conflict, take_apart
from graphrag_pipeline.graph.resolution.pairs import Entity, Found, Pair, shared_documents

_MOST_ALIKE = 50
_MOST_WORDS = 8

Keys = Callable[[Entity], Iterable[str]]
Stated = Sequence[tuple[str, str]]
"""Acronyms that the text explains: the acronym, and what stands before its bracket or in it."""


def resolve_spellings(entities: Sequence[Entity]) -> Found:
    """Return titles equal but for accents, hyphens, articles, legal forms or the plural."""
    pairs = Found()
    keyed: list[tuple[str, float, Keys]] = [
        ("spelling", 0.97, lambda entity: entity.name.spellings),
        ("plural", 0.9, lambda entity: [entity.name.singular]),
    ]
    for rule, confidence, keys in keyed:
        for key, alike in _grouped(entities, keys).items():
            first, *variants = sorted(alike, key=lambda entity: entity.rank)[:_MOST_ALIKE]
            for variant in variants:
                why = conflict(first.name, variant.name)
                evidence = {"key": key, "shared_documents": shared_documents(first, variant)}
                if why:
                    pairs.apart.append(Pair(variant, first, why, evidence=evidence))
                else:
                    pairs.merge.append(Pair(variant, first, rule, confidence, evidence=evidence))
    return pairs


def resolve_acronyms(entities: Sequence[Entity], stated: Stated) -> Found:
    """Return acronyms with the one longer title that the text says they stand for.

    Where the text does not say it, the initials must fit one title only, and that title must be
    mentioned where the acronym is.
    """
    pairs = Found()
    longer = _grouped(entities, lambda entity: entity.name.initials, alone=True)
    by_spelling = _grouped(entities, lambda entity: entity.name.spellings, alone=True)
    explained = _explained(stated, by_spelling)
    for short in entities:
        acronym = short.name.acronym
        fits = [e for e in longer.get(acronym, ()) if not conflict(short.name, e.name)]
        full_names = [e for e in explained.get(acronym, ()) if not conflict(short.name, e.name)]
        near = [e for e in fits if short.chunks & e.chunks]
        if len(full_names) == 1:
            pairs.merge.append(_acronym(short, full_names[0], "acronym the text explains", 0.95))
        elif len(fits) == 1 and near and not full_names and len(acronym) > 2:
            pairs.merge.append(_acronym(short, near[0], "acronym by its initials", 0.8))
        else:
            options = full_names or near
            pairs.apart.extend(_acronym(short, e, "acronym of several", 0.0) for e in options[:3])
    return pairs


def _grouped(
    entities: Iterable[Entity], keys: Keys, *, alone: bool = False
) -> Mapping[str, Sequence[Entity]]:
    groups: dict[str, list[Entity]] = defaultdict(list)
    for entity in entities:
        for key in sorted(keys(entity)):
            if key:
                groups[key].append(entity)
    return groups if alone else {key: alike for key, alike in groups.items() if len(alike) > 1}


def _explained(
    stated: Stated, by_spelling: Mapping[str, Sequence[Entity]]
) -> Mapping[str, Sequence[Entity]]:
    """Return the entities each acronym is said to stand for: the longest title that fits."""
    explained: dict[str, dict[str, Entity]] = defaultdict(dict)
    for acronym, text in set(stated):
        short = take_apart(acronym, "").acronym
        for entity in _ending(text, short, by_spelling):
            explained[short][entity.id] = entity
    return {
        short: [entity_of[id] for id in sorted(entity_of)] for short, entity_of in explained.items()
    }


def _ending(
    text: str, acronym: str, by_spelling: Mapping[str, Sequence[Entity]]
) -> Sequence[Entity]:
    words = text.split()
    for start in range(max(0, len(words) - _MOST_WORDS), len(words) - 1):
        if words[start][:1].casefold() != acronym[:1]:
            continue
        for key in sorted(take_apart(" ".join(words[start:]), "").spellings):
            if key in by_spelling:
                return by_spelling[key]
    return ()


def _acronym(short: Entity, long: Entity, rule: str, confidence: float) -> Pair:
    evidence = {"shared_documents": shared_documents(short, long)}
    return Pair(short, long, rule, confidence, evidence=evidence)
