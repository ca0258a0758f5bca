"""What a community report is written from (paper, 3.1.5).

Leaf communities: relationships by decreasing combined degree; for each, its source, its target,
itself and the claims about the two are added until the token limit. Higher communities: the same
where everything fits; otherwise sub-communities, those with most tokens first, are replaced by
their reports until it does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from graphrag_pipeline.core.identity import make_id

LINE_TOKENS = 8


@dataclass(frozen=True)
class SubReport:
    """A finished report of a sub-community, which may stand in for its elements."""

    community_id: str
    n_tokens: int
    content_hash: str
    coverage: float
    support: int = 1


class Element(NamedTuple):
    """What a context is made of: the id of the thing, its tokens, and a hash of its text.

    ``support`` is how many chunks it rests on, for a report the sum of its elements.
    """

    id: str
    n_tokens: int
    text_hash: str
    support: int = 1


class Edge(NamedTuple):
    """A relationship within a community, with its ends."""

    relationship: Element
    source: Element
    target: Element


@dataclass(frozen=True, kw_only=True)
class Context:
    """The context of one community's report.

    ``coverage`` is the share of the community's relationships that the context holds, directly or
    through a sub-report (which counts for as much as it covers itself). ``elements`` are the
    entities, relationships, claims and sub-reports in turn. ``hash`` begins with the writer's
    version and a colon; it changes exactly when something that a writer would read does.
    """

    community_id: str
    entities: tuple[str, ...]
    relationships: tuple[str, ...]
    claims: tuple[str, ...]
    sub_reports: tuple[str, ...]
    elements: tuple[Element, ...]
    n_tokens: int
    coverage: float
    hash: str


def intra_edges(
    members: pl.DataFrame, relationships: pl.DataFrame, entities: pl.DataFrame
) -> pl.DataFrame:
    """Return each community's own relationships, by combined degree, largest first.

    ``members`` has (community_id, entity_id); ``relationships`` (id, source_id, target_id,
    combined_degree, n_tokens, text_hash, support); ``entities`` (id, n_tokens, text_hash, support).
    The rows have what :func:`edges_of` reads; communities come in order of id.
    """
    told = ("n_tokens", "text_hash", "support")
    nodes = {
        end: entities.select(pl.col("id").alias(f"{end}_id"), pl.col(told).name.prefix(f"{end}_"))
        for end in ("source", "target")
    }
    return (
        relationships.join(members, left_on="source_id", right_on="entity_id")
        .join(
            members,
            left_on=["target_id", "community_id"],
            right_on=["entity_id", "community_id"],
        )
        .sort(["community_id", "combined_degree", "id"], descending=[False, True, False])
        .join(nodes["source"], "source_id", maintain_order="left")
        .join(nodes["target"], "target_id", maintain_order="left")
        .select("community_id", *_EDGE)
    )


_ELEMENT = ("id", "n_tokens", "text_hash", "support")
_EDGE = (*_ELEMENT, *(f"{end}_{name}" for end in ("source", "target") for name in _ELEMENT))


def edges_of(rows: pl.DataFrame) -> Mapping[str, list[Edge]]:
    """Return the rows of :func:`intra_edges` as edges of each community, in order."""
    nodes: dict[str, Element] = {}
    for end in ("source", "target"):
        ends = rows.select(f"{end}_{name}" for name in _ELEMENT).unique(f"{end}_id")
        nodes |= {node[0]: Element(*node) for node in ends.iter_rows()}
    edges: dict[str, list[Edge]] = defaultdict(list)
    columns = rows.select("community_id", "source_id", "target_id", *_ELEMENT)
    for community, source, target, *relationship in columns.iter_rows():
        edge = Edge(Element(*relationship), nodes[source], nodes[target])
        edges[community].append(edge)
    return edges


def build_context(
    community_id: str,
    edges: Sequence[Edge],
    sub_communities: Mapping[str, frozenset[str]],
    sub_reports: Mapping[str, SubReport],
    budget: int,
    version: str,
    claims: Mapping[str, Sequence[Element]] = MappingProxyType({}),
) -> Context:
    """Fill the context of one community.

    ``edges`` are its relationships by decreasing combined degree; ``sub_communities`` the members
    of its children; ``budget`` is in tokens; ``claims`` are those about each entity. Claims take no
    more than half of the budget from the graph, and what it leaves.
    """
    replaced = _substitute(edges, sub_communities, sub_reports, budget)
    reports = list(_fit_reports(replaced, sub_reports, budget))
    inside = {node: c for c in reports for node in sub_communities[c]}
    direct = [edge for edge in edges if not _is_inside(edge, inside)]
    rest = budget - sum(sub_reports[c].n_tokens for c in reports)
    filled = _fill(direct, rest, frozenset(inside), claims)
    context = _context(community_id, edges, filled, reports, inside, sub_reports, version)
    return replace(context, n_tokens=min(context.n_tokens, budget))


def _substitute(
    edges: Sequence[Edge],
    sub_communities: Mapping[str, frozenset[str]],
    sub_reports: Mapping[str, SubReport],
    budget: int,
) -> list[str]:
    total = _tokens_of(edges)
    if total <= budget:
        return []
    owner = {node: c for c, nodes in sub_communities.items() for node in nodes}
    own = {c: 0 for c in sub_communities if c in sub_reports}
    for element, community in _owned_elements(edges, owner):
        if community in own:
            own[community] += element.n_tokens + LINE_TOKENS
    replaced = []
    shorter = [c for c in own if sub_reports[c].n_tokens < own[c]]
    for community in sorted(shorter, key=lambda c: (-own[c], c)):
        if total <= budget:
            break
        replaced.append(community)
        total += sub_reports[community].n_tokens - own[community]
    return replaced


def _owned_elements(
    edges: Sequence[Edge], owner: Mapping[str, str]
) -> Iterator[tuple[Element, str]]:
    owned = set()
    for edge in edges:
        for node in (edge.source, edge.target):
            if node.id not in owned and node.id in owner:
                owned.add(node.id)
                yield node, owner[node.id]
        community = owner.get(edge.source.id)
        if community is not None and owner.get(edge.target.id) == community:
            yield edge.relationship, community


def _fit_reports(
    replaced: Sequence[str], sub_reports: Mapping[str, SubReport], budget: int
) -> Iterator[str]:
    n_used = 0
    for community in replaced:
        if n_used + sub_reports[community].n_tokens <= budget:
            n_used += sub_reports[community].n_tokens
            yield community


def _is_inside(edge: Edge, inside: Mapping[str, str]) -> bool:
    community = inside.get(edge.source.id)
    return community is not None and inside.get(edge.target.id) == community


@dataclass
class _Filled:
    """What was put into a context of the graph itself, in order."""

    entities: dict[str, Element] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    claims: list[Element] = field(default_factory=list)


def _fill(
    edges: Sequence[Edge],
    budget: int,
    covered: frozenset[str],
    claims: Mapping[str, Sequence[Element]],
) -> _Filled:
    """Add edges with their ends, and claims, until an edge does not fit.

    ``covered`` are entities of sub-reports. Where there are none the first edge is always taken:
    elements larger than the budget are cut where they are written out.
    """
    filled, n_used, n_claimed = _Filled(), 0, 0
    waiting: list[Element] = []
    for edge in edges:
        new = [
            n
            for n in (edge.source, edge.target)
            if n.id not in filled.entities and n.id not in covered
        ]
        cost = _cost((*new, edge.relationship))
        if n_used + cost > budget and (filled.edges or covered):
            break
        n_used += cost
        filled.entities |= {node.id: node for node in new}
        filled.edges.append(edge)
        for claim in (claim for node in new for claim in claims.get(node.id, ())):
            price = _cost((claim,))
            if n_used + price <= budget and n_claimed + price <= budget // 2:
                n_used, n_claimed = n_used + price, n_claimed + price
                filled.claims.append(claim)
            else:
                waiting.append(claim)
    for claim in waiting:
        if n_used + _cost((claim,)) <= budget:
            n_used += _cost((claim,))
            filled.claims.append(claim)
    return filled


def _cost(elements: Sequence[Element]) -> int:
    return sum(e.n_tokens + LINE_TOKENS for e in elements)


def _tokens_of(edges: Sequence[Edge]) -> int:
    elements = {e.id: e.n_tokens for edge in edges for e in (edge.source, edge.target)}
    relationships = sum(edge.relationship.n_tokens for edge in edges)
    return sum(elements.values()) + relationships + LINE_TOKENS * (len(elements) + len(edges))


def _context(
    community_id: str,
    edges: Sequence[Edge],
    filled: _Filled,
    reports: Sequence[str],
    inside: Mapping[str, str],
    sub_reports: Mapping[str, SubReport],
    version: str,
) -> Context:
    through = sum(
        sub_reports[inside[edge.source.id]].coverage for edge in edges if _is_inside(edge, inside)
    )
    elements = [
        *filled.entities.values(),
        *(edge.relationship for edge in filled.edges),
        *filled.claims,
    ]
    tokens = _cost(elements)
    for report in (sub_reports[c] for c in reports):
        elements.append(
            Element(report.community_id, report.n_tokens, report.content_hash, report.support)
        )
    parts = [f"{e.id}:{e.text_hash}" for e in elements]
    return Context(
        community_id=community_id,
        entities=tuple(filled.entities),
        relationships=tuple(edge.relationship.id for edge in filled.edges),
        claims=tuple(claim.id for claim in filled.claims),
        sub_reports=tuple(reports),
        elements=tuple(elements),
        n_tokens=tokens + sum(sub_reports[c].n_tokens for c in reports),
        coverage=round((len(filled.edges) + through) / len(edges), 6) if edges else 1.0,
        hash=f"{version}:{make_id('context', *parts)}",
    )
