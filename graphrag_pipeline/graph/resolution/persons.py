"""Names of people: an honorific, initials or a last name alone, where they can mean only one.

Names are compared within a last name. A person is a set of full names that agree; a name that
says less (an initial, a last name) is taken for a person only if nobody else bears it: in the
whole corpus, or at least in every document where the lesser name stands. So is a given name alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from graphrag_pipeline.extraction.rules.entity_types import may_be_given
from graphrag_pipeline.extraction.rules.words import usually_lower
from graphrag_pipeline.graph.resolution.names import PERSON, given_agree
from graphrag_pipeline.graph.resolution.pairs import SHARED, Entity, Pair

MOST_OF_A_NAME = 400
_SHOWN = 3
# Of the documents with a name in full, so many must be those of one person alone.
_USUAL = 0.9


@dataclass(frozen=True)
class _Person:
    """Full names of one person, the most frequent first."""

    names: tuple[Entity, ...]

    @property
    def first(self) -> Entity:
        return self.names[0]

    @property
    def documents(self) -> frozenset[int]:
        return frozenset().union(*(name.documents for name in self.names))

    @property
    def is_woman(self) -> bool:
        return any(name.name.is_woman for name in self.names)

    @property
    def sexes(self) -> set[str]:
        return {name.name.sex for name in self.names} - {""}


def resolve_bearers(key: str, bearers: Sequence[Entity]) -> list[Pair]:
    """Return which names of a word mean the same person, and which might and do not.

    It is their last name, their first, or all of it. Of more than MOST_OF_A_NAME nothing can be
    said.
    """
    pairs: list[Pair] = []
    families: dict[str, list[Entity]] = defaultdict(list)
    for bearer in sorted(bearers, key=lambda entity: entity.rank):
        families[bearer.name.last].append(bearer)
    full = [bearer for bearer in families[key] if bearer.name.given]
    people = _same_full_names(full, pairs)
    people = _shorter_full_names(people, pairs)
    lesser = [bearer for bearer in families.pop(key) if not bearer.name.given]
    called = [
        person
        for names in families.values()
        for person in _shorter_full_names(_same_full_names(names, []), [])
    ]
    alone = [name for name in lesser if called and _may_be_given(key, name)]
    _find_called(alone, [*called, *people], pairs)
    by_last = [name for name in lesser if name not in alone] if people else ()
    for name in by_last:
        _find_bearer(name, people, by_last, pairs)
    found = {pair.one.id for pair in pairs if pair.confidence}
    bare = [name for name in lesser if not name.name.has_office and name.id not in found]
    titled = [name for name in lesser if name.name.has_office]
    if not people or frozenset.intersection(*(person.documents for person in people)):
        _without_full_name(bare, titled, pairs, is_open=bool(people))
    return pairs


def _may_be_given(word: str, name: Entity) -> bool:
    """Whether a name of one word may be whom others call by it, and is no word besides."""
    if name.name.honorific or name.title.isupper():
        return False
    return not usually_lower(word) or (name.name.type == PERSON and may_be_given(word))


def _find_called(alone: Sequence[Entity], people: Sequence[_Person], pairs: list[Pair]) -> None:
    """Take a given name for the one person it can mean: José and Jose for the same one."""
    if not alone:
        return
    documents = frozenset().union(*(name.documents for name in alone))
    together = replace(alone[0], documents=documents)
    target = _only_bearer(together, people, is_rare=True) or _usual_bearer(together, people)
    if target is None:
        pairs.extend(pair for name in alone for pair in _ambiguous(name, people))
        return
    rule = "only bearer of the name" if len(people) == 1 else "only bearer in its documents"
    pairs.extend(_pair(name, target.first, rule, 0.8) for name in alone)


def _same_full_names(full: Sequence[Entity], pairs: list[Pair]) -> list[_Person]:
    """Bring together full names that differ in their honorific alone."""
    groups: dict[object, list[Entity]] = defaultdict(list)
    for entity in full:
        groups[entity.name.given, entity.name.numbers].append(entity)
    people = []
    for names in groups.values():
        if {"m", "f"} <= {name.name.sex for name in names}:
            pairs.extend(_apart(names, "honorifics differ in sex"))
            people += [_Person((name,)) for name in names]
            continue
        pairs.extend(_pair(names[0], name, "honorific", 0.95) for name in names[1:])
        people.append(_Person(tuple(names)))
    return people


def _shorter_full_names(people: Sequence[_Person], pairs: list[Pair]) -> list[_Person]:
    """Bring initials and lacking middle names to the one fuller name they can stand for."""
    distinct: list[_Person] = []
    for person in sorted(people, key=lambda person: _fullness(person.first), reverse=True):
        fuller = [
            place
            for place, earlier in enumerate(distinct)
            if any(_says_more(name, person.first) for name in earlier.names)
            and len(earlier.sexes | person.sexes) < 2
        ]
        target = _only_bearer(person.first, [distinct[place] for place in fuller])
        if target is None:
            pairs.extend(_ambiguous(person.first, [distinct[place] for place in fuller]))
            distinct.append(person)
        else:
            rule = "initial" if _has_initial(person.first) else "middle name"
            pairs.append(_pair(person.first, target.first, rule, 0.85))
            distinct[distinct.index(target)] = _Person((*target.names, *person.names))
    return distinct


def _fullness(entity: Entity) -> tuple[int, int, str]:
    first_names = entity.name.given
    return sum(map(len, first_names)), len(first_names), entity.id


def _says_more(fuller: Entity, lesser: Entity) -> bool:
    less, more = lesser.name, fuller.name
    if less.given == more.given or less.numbers != more.numbers:
        return False
    if not given_agree(less.given, more.given):
        return False
    return sum(map(len, less.given)) < sum(map(len, more.given)) and len(less.given) <= len(
        more.given
    )


def _only_bearer(
    name: Entity, people: Sequence[_Person], *, is_rare: bool = False
) -> _Person | None:
    """Return the one person of these who occurs where the name does.

    Nobody if there are others in the corpus and the name stands also without him, or if it mostly
    stands without him.
    """
    bearers = [person for person in people if person.documents & name.documents]
    if len(bearers) != 1:
        return None
    n_missing = len(name.documents - bearers[0].documents)
    allowed = len(name.documents) // 2 if len(people) == 1 and (is_rare or name.name.is_rare) else 0
    return bearers[0] if n_missing <= allowed else None


def _usual_bearer(name: Entity, people: Sequence[_Person]) -> _Person | None:
    """Return whom a name means in nearly all documents that name anybody of these in full.

    These are documents that name nobody else of them.
    """
    named = [person.documents & name.documents for person in people]
    told = frozenset().union(*named)
    alone = [
        len(documents - frozenset().union(*named[:place], *named[place + 1 :]))
        for place, documents in enumerate(named)
    ]
    most = max(alone, default=0)
    is_usual = most > 1 and most >= _USUAL * len(told) and 2 * most >= len(name.documents)
    return people[alone.index(most)] if is_usual else None


def _find_bearer(
    name: Entity, people: Sequence[_Person], lesser: Sequence[Entity], pairs: list[Pair]
) -> None:
    """Take a last name, with an honorific or without, for the one person it can mean."""
    possible = [person for person in people if _may_be_called(name, person)]
    rivals = [rival for rival in lesser if _is_another(name, rival)]
    if name.name.sex == "f":
        possible = [person for person in possible if person.sexes == {"f"}]
    bearers = [*possible, *(_Person((rival,)) for rival in rivals)]
    target = _only_bearer(name, bearers) or _usual_bearer(name, bearers)
    if target is None and len(bearers) == 1 and _is_surely_person(name) and name.name.is_rare:
        target = bearers[0]
    is_he = name.name.sex == "m"
    if target is not None and target in possible and not (is_he and target.is_woman):
        rule = "only bearer of the name" if len(bearers) == 1 else "only bearer in its documents"
        confidence = 0.85 if target.documents & name.documents else 0.75
        pairs.append(_pair(name, target.first, rule, confidence))
    else:
        pairs.extend(_ambiguous(name, people))


def _may_be_called(name: Entity, person: _Person) -> bool:
    sex = name.name.sex
    if name.name.is_mister and all(full.name.is_noble for full in person.names):
        return False
    return name.name.numbers == person.first.name.numbers and not (sex and person.sexes - {sex})


def _is_another(name: Entity, rival: Entity) -> bool:
    """Whether a last name may mean not the person but the wife or daughter who is named beside."""
    return rival is not name and rival.name.sex == "f" and name.name.sex == ""


def _is_surely_person(entity: Entity) -> bool:
    return (entity.name.type == PERSON or entity.name.has_office) and entity.name.sex != "f"


def _without_full_name(
    bare: Sequence[Entity], titled: Sequence[Entity], pairs: list[Pair], *, is_open: bool
) -> None:
    """Bring "Mr. Fezziwig" and "Fezziwig" together where nobody else is called so.

    Where others are (Mrs. Fezziwig, Dr. Fezziwig, or several in full in one document, who leave
    it ``is_open``), it is Mr. Fezziwig whom most call so, unless texts have it with her more often.
    """
    if not bare or not titled:
        return
    women = [name for name in titled if name.name.sex == "f"]
    if is_open or women or len({name.name.honorific for name in titled}) > 1:
        misters = [name for name in titled if name.name.is_mister]
        if not misters or _shared(bare, misters) < _shared(bare, women):
            pairs.extend(_ambiguous(bare[0], [_Person((name,)) for name in titled]))
            return
        titled = misters
    everyone = [*bare, *titled]
    for name in everyone[1:]:
        near = name.documents & everyone[0].documents or name.name.is_rare
        if near and name.name.numbers == everyone[0].name.numbers:
            pairs.append(_pair(name, everyone[0], "honorific", 0.85))


def _shared(names: Sequence[Entity], others: Sequence[Entity]) -> int:
    """Return how many documents have one of both."""
    ours, theirs = (
        frozenset().union(*(name.documents for name in each)) for each in (names, others)
    )
    return len(ours & theirs)


def _has_initial(entity: Entity) -> bool:
    return any(len(word) == 1 for word in entity.name.given)


def _pair(first: Entity, second: Entity, rule: str, confidence: float) -> Pair:
    evidence = {"last_name": first.name.last, **SHARED}
    return Pair(first, second, rule, confidence, evidence=evidence)


def _ambiguous(name: Entity, people: Sequence[_Person]) -> list[Pair]:
    evidence = {"bearers": len(people)}
    why = "several bear the name" if len(people) > 1 else "not said together"
    return [Pair(name, person.first, why, evidence=evidence) for person in people[:_SHOWN]]


def _apart(names: Sequence[Entity], why: str) -> list[Pair]:
    return [Pair(first, second, why) for first, second in combinations(names[: _SHOWN + 1], 2)]
