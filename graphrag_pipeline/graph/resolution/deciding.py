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
from graphrag_pipeline.graph.resolution.user_aliases import MERGE, UserRow
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
    found = Found() if method == "off" else _by_rule(entities, mentioned.stated, settings)
    aliases, refused = merge_pairs(merges, never, found.merge)
    apart = _left_apart([*nevers, *refused, *found.apart], aliases)
    if method == "llm":
        told = _by_model(apart, settings)
        same = [pair for pair in told if pair.confidence]
        aliases, refused = merge_pairs(merges, never, [*found.merge, *same])
        apart = _left_apart([*nevers, *refused, *told, *apart], aliases)
    known = {entity.id for entity in entities}
    return [alias for alias in aliases if alias.entity.id in known], apart[:_MOST_APART]


def _user_pairs(
    entities: Sequence[Entity], user: Sequence[UserRow]
) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs the user merges and keeps apart; a title nobody mentions still links."""
    known = {entity.id: entity for entity in entities} if user else {}
    merges: list[Pair] = []
    nevers: list[Pair] = []
    for row in user:
        one, two = (
            known.get(id) or Entity(id, take_apart(title, ""))
            for id, title in ((row.a_id, row.a), (row.b_id, row.b))
        )
        evidence = {"line": row.line, **({"note": row.note} if row.note else {})}
        pair = Pair(one, two, _BY_USER, float(row.action == MERGE), "user", evidence)
        (merges if row.action == MERGE else nevers).append(pair)
    return merges, nevers


def _by_rule(entities: Sequence[Entity], stated: Stated, settings: Settings) -> Found:
    found = resolve_spellings(entities)
    found.add(resolve_people(entities))
    found.add(resolve_acronyms(entities, stated))
    similar = similar_pairs(
        [entity for entity in entities if entity.is_open],
        resolution_embedder(settings),
        _MOST_APART,
    )
    return Found(
        [pair for pair in found.merge if pair.one.is_open and pair.two.is_open],
        [*found.apart, *map(_with_reason, similar)],
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
    seen: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        one, two = (canonical.get(id, id) for id in pair.ids)
        if one != two and pair.one.chunks and pair.two.chunks:
            seen.setdefault(pair.ids, pair)
    return list(seen.values())
