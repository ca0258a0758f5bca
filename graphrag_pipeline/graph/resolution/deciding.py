"""Who is who: the user's word, then rules, then the model where it is to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.resolution.asking import ask_about
from graphrag_pipeline.graph.resolution.candidates import similar_pairs
from graphrag_pipeline.graph.resolution.mentions import Mentioned
from graphrag_pipeline.graph.resolution.merging import Alias, merge_pairs
from graphrag_pipeline.graph.resolution.names import conflict, take_apart
from graphrag_pipeline.graph.resolution.pairs import Entity, Found, Pair
from graphrag_pipeline.graph.resolution.persons import resolve_people
from graphrag_pipeline.graph.resolution.spellings import Stated, resolve_acronyms, resolve_spellings
from graphrag_pipeline.graph.resolution.user_aliases import NEVER, RENAME, TYPE, UserRow
from graphrag_pipeline.llm.configured import configured_embedder
from graphrag_pipeline.llm.embedders import Embedder, HashingEmbedder

_MOST_APART = 1000
_BY_USER = "aliases.csv"


def decide(
    mentioned: Mentioned, settings: Settings, user: Sequence[UserRow]
) -> tuple[list[Alias], list[Pair]]:
    """Return what is folded into what, and what looks alike and stays apart."""
    method = settings.resolution.method
    entities = mentioned.entities(keep_imported=method == "auto")
    merges, nevers = _user_pairs(entities, user)
    never = [pair.ids for pair in nevers]
    by_rule = Found() if method == "off" else _by_rule(entities, mentioned.stated, settings)
    named = [row.b_id for row in user if row.action == RENAME]
    aliases, refusals = merge_pairs(merges, never, by_rule.merge, named)
    apart = _left_apart([*nevers, *refusals, *by_rule.apart], aliases)
    if method == "llm":
        decided = _by_model(apart, settings)
        same_pairs = [pair for pair in decided if pair.confidence]
        aliases, refusals = merge_pairs(merges, never, [*by_rule.merge, *same_pairs], named)
        apart = _left_apart([*nevers, *refusals, *decided, *apart], aliases)
    ids = {entity.id for entity in entities}
    return [alias for alias in aliases if alias.entity.id in ids], apart[:_MOST_APART]


def user_words(user: Sequence[UserRow], aliases: Sequence[Alias]) -> dict[str, dict[str, str]]:
    """Return what the user calls entities, and of what type he says they are, by their ids."""
    canonical = {alias.entity.id: alias.canonical.id for alias in aliases}
    words: dict[str, dict[str, str]] = {}
    for row in user:
        if row.action == RENAME:
            words.setdefault(canonical.get(row.b_id, row.b_id), {})["title"] = row.b
        elif row.action == TYPE:
            words.setdefault(canonical.get(row.a_id, row.a_id), {})["type"] = row.b.upper()
    return words


def _user_pairs(
    entities: Sequence[Entity], user: Sequence[UserRow]
) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs the user merges and keeps apart; a title nobody mentions still links."""
    entity_of = {entity.id: entity for entity in entities} if user else {}
    merges: list[Pair] = []
    nevers: list[Pair] = []
    for row in user:
        if row.action == TYPE or row.a_id == row.b_id:
            continue
        first, second = (
            entity_of.get(id) or Entity(id, take_apart(title, ""))
            for id, title in ((row.a_id, row.a), (row.b_id, row.b))
        )
        evidence = {"line": row.line, **({"note": row.note} if row.note else {})}
        pair = Pair(
            one=first,
            two=second,
            rule=_BY_USER,
            confidence=float(row.action != NEVER),
            method="user",
            evidence=evidence,
        )
        (nevers if row.action == NEVER else merges).append(pair)
    return merges, nevers


def _by_rule(entities: Sequence[Entity], stated: Stated, settings: Settings) -> Found:
    pairs = resolve_spellings(entities)
    pairs.add(resolve_people(entities))
    pairs.add(resolve_acronyms(entities, stated))
    similar = similar_pairs(
        [entity for entity in entities if entity.is_open],
        resolution_embedder(settings),
        _MOST_APART,
    )
    return Found(
        [pair for pair in pairs.merge if pair.one.is_open and pair.two.is_open],
        [*pairs.apart, *map(_with_reason, similar)],
    )


def resolution_embedder(settings: Settings) -> Embedder:
    """Return the configured embedder; a paid one only where the model is to be asked anyway."""
    if settings.embeddings.embedder == "llm" and settings.resolution.method != "llm":
        return HashingEmbedder()
    return configured_embedder(settings)


def _with_reason(pair: Pair) -> Pair:
    why = conflict(pair.one.name, pair.two.name)
    return Pair(pair.one, pair.two, why, evidence=pair.evidence) if why else pair


def _by_model(apart: Sequence[Pair], settings: Settings) -> list[Pair]:
    """Ask of pairs that nothing speaks against, the most alike first, up to the limit."""
    open_pairs = [
        pair
        for pair in apart
        if pair.method == "rule" and not conflict(pair.one.name, pair.two.name)
    ]
    return ask_about(open_pairs[: settings.resolution.max_model_pairs], settings)


def _left_apart(pairs: Iterable[Pair], aliases: Sequence[Alias]) -> list[Pair]:
    """Return each pair once, without those that are one by now and those nobody mentions."""
    canonical: Mapping[str, str] = {alias.entity.id: alias.canonical.id for alias in aliases}
    pair_of: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        first, second = (canonical.get(id, id) for id in pair.ids)
        if first != second and pair.one.chunks and pair.two.chunks:
            pair_of.setdefault(pair.ids, pair)
    return list(pair_of.values())
