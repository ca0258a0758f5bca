"""Pairs made into groups: the strongest evidence first, and never what must stay apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphrag_pipeline.graph.resolution.names import conflict
from graphrag_pipeline.graph.resolution.pairs import Entity, Pair


@dataclass(frozen=True)
class Alias:
    """An entity that is folded into another, and the pair that says so.

    ``through`` is the title by which it came there, where that is not the canonical one.
    """

    entity: Entity
    canonical: Entity
    pair: Pair
    confidence: float
    through: str = ""


@dataclass(frozen=True)
class Refusal:
    """A pair that would have joined what must stay apart, and why."""

    pair: Pair
    why: str


class Groups:
    """Disjoint sets of entities (union-find) that remember what must stay apart.

    One of ``named`` names its group, the last of them before the others.
    """

    def __init__(self, never: Iterable[tuple[str, str]] = (), named: Iterable[str] = ()) -> None:
        self._named = {id: place for place, id in enumerate(named)}
        self._of: dict[str, str] = {}
        self._members: dict[str, list[Entity]] = {}
        self._never: dict[str, set[str]] = {}
        self._edges: list[Pair] = []
        for first, second in never:
            self._never.setdefault(first, set()).add(second)
            self._never.setdefault(second, set()).add(first)

    def join(self, pair: Pair) -> str:
        """Join the groups of a pair; return why not, or an empty text if they are one now.

        What a user or a link says is not asked for conflicts.
        """
        first, second = self._group(pair.one), self._group(pair.two)
        if first == second:
            return ""
        why = self._against(self._members[first], self._members[second], pair.is_told)
        if why:
            return why
        if len(self._members[first]) < len(self._members[second]):
            first, second = second, first
        for entity in self._members[second]:
            self._of[entity.id] = first
        self._members[first] += self._members.pop(second)
        self._edges.append(pair)
        return ""

    def aliases(self) -> Iterator[Alias]:
        """Yield every entity of a group but the one that names it."""
        edges: dict[str, list[Pair]] = {}
        for pair in self._edges:
            edges.setdefault(pair.one.id, []).append(pair)
            edges.setdefault(pair.two.id, []).append(pair)
        for members in self._members.values():
            if len(members) > 1:
                yield from _told_from(min(members, key=self._rank), edges)

    def _rank(self, entity: Entity) -> tuple[int, object]:
        return -self._named.get(entity.id, -1), entity.rank

    def _group(self, entity: Entity) -> str:
        if entity.id not in self._of:
            self._of[entity.id] = entity.id
            self._members[entity.id] = [entity]
        return self._of[entity.id]

    def _against(self, firsts: Sequence[Entity], seconds: Sequence[Entity], is_told: bool) -> str:
        ids = {second.id for second in seconds}
        if any(self._never.get(first.id, set()) & ids for first in firsts):
            return "kept apart by the user"
        if is_told:
            return ""
        whys = (conflict(first.name, second.name) for first in firsts for second in seconds)
        return next(filter(None, whys), "")


def _told_from(canonical: Entity, edges: Mapping[str, Sequence[Pair]]) -> Iterator[Alias]:
    """Follow the pairs that made a group from the entity that names it."""
    confidence_of = {canonical.id: 1.0}
    waiting = deque([canonical])
    while waiting:
        entity = waiting.popleft()
        for pair in edges[entity.id]:
            neighbour = pair.two if pair.one.id == entity.id else pair.one
            if neighbour.id in confidence_of:
                continue
            confidence_of[neighbour.id] = min(confidence_of[entity.id], pair.confidence)
            through = "" if entity is canonical else entity.title
            yield Alias(neighbour, canonical, pair, confidence_of[neighbour.id], through)
            waiting.append(neighbour)


def merge_pairs(
    user: Sequence[Pair],
    never: Iterable[tuple[str, str]],
    pairs: Sequence[Pair],
    named: Iterable[str] = (),
) -> tuple[list[Alias], list[Refusal]]:
    """Return the aliases that follow from the user's pairs and the others, and what did not.

    ``named`` are the ids of those that the user has named others by.
    """
    groups = Groups(never, named)
    for pair in user:
        groups.join(pair)
    refusals = []
    for pair in sorted(pairs, key=lambda pair: pair.strength):
        if why := groups.join(pair):
            refusals.append(Refusal(pair, why))
    return sorted(groups.aliases(), key=lambda alias: alias.entity.id), refusals
