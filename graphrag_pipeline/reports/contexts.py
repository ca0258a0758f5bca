"""Contexts of community reports (paper, 3.1.5).

Leaf communities: relationships by decreasing combined degree; for each, its source, its target,
itself and the claims about the two are added until the token limit. Higher communities: the same
where everything fits; otherwise sub-communities, those with most tokens first, are replaced by
their reports until it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from graphrag_pipeline.core.identity import content_hash, make_id

LINE_TOKENS = 8
ELEMENTS = pl.Schema(
    {
        "community_id": pl.String,
        "place": pl.Int32,
        "kind": pl.String,
        "element_id": pl.String,
        "n_tokens": pl.Int64,
        "text_hash": pl.String,
        "support": pl.Int64,
    }
)

_ELEMENT = {"id": pl.String, "n_tokens": pl.Int64, "text_hash": pl.String, "support": pl.Int64}
_OWN_ELEMENT = pl.Schema({"community_id": pl.String, **_ELEMENT})
_COST = pl.col("n_tokens") + LINE_TOKENS


class Element(NamedTuple):
    """One part of a context: the id of the thing, its tokens, and a hash of its text.

    ``support`` is how many chunks it rests on, for a report the sum of its elements.
    """

    id: str
    n_tokens: int
    text_hash: str
    support: int = 1


@dataclass(frozen=True, kw_only=True)
class Context:
    """The context of one community's report.

    ``coverage`` is the share of the community's relationships that the context holds, directly or
    through a sub-report (which counts for as much as it covers itself). ``hash`` begins with the
    writer's version and a colon; it changes exactly when something that a writer would read does.
    """

    community_id: str
    entities: tuple[str, ...]
    relationships: tuple[str, ...]
    claims: tuple[str, ...]
    sub_reports: tuple[str, ...]
    n_tokens: int
    coverage: float
    hash: str

    @property
    def elements(self) -> tuple[str, ...]:
        """The ids of its entities, relationships, claims and sub-reports in turn."""
        return (*self.entities, *self.relationships, *self.claims, *self.sub_reports)


@dataclass(frozen=True)
class Parts:
    """Stand-ins for the elements of communities: reports on sub-communities (child).

    ``members`` has (community_id, child, id of an entity); ``reports`` of the children (child,
    n_tokens, coverage, support, full_content, findings).
    """

    members: pl.DataFrame
    reports: pl.DataFrame


_MEMBER = {"community_id": pl.String, "child": pl.String, "id": pl.String}
_PART = {"child": pl.String, "n_tokens": pl.Int64, "coverage": pl.Float64, "support": pl.Int64}
_TOLD = {"full_content": pl.String, "findings": pl.List(pl.Null)}
NO_PARTS = Parts(pl.DataFrame(schema=_MEMBER), pl.DataFrame(schema=_PART | _TOLD))


def intra_edges(members: pl.DataFrame, relationships: pl.DataFrame) -> pl.DataFrame:
    """Return each community's own relationships, by combined degree, largest first.

    ``members`` has (community_id, entity_id); ``relationships`` (id, source_id, target_id,
    combined_degree, n_tokens, text_hash, support), which the rows have, too. Communities come in
    order of id.
    """
    return (
        relationships.join(members, left_on="source_id", right_on="entity_id")
        .join(
            members,
            left_on=["target_id", "community_id"],
            right_on=["entity_id", "community_id"],
        )
        .sort(["community_id", "combined_degree", "id"], descending=[False, True, False])
    )


def build_contexts(
    communities: Sequence[str],
    edges: pl.DataFrame,
    entities: pl.DataFrame,
    budget: int,
    version: str,
    parts: Parts = NO_PARTS,
    claims: Mapping[str, Sequence[Element]] = MappingProxyType({}),
) -> tuple[list[Context], pl.DataFrame]:
    """Fill the contexts of some communities; return them, and all their elements (``ELEMENTS``).

    ``edges`` are these communities' rows of :func:`intra_edges`; ``entities`` has (id, n_tokens,
    text_hash, support); ``budget`` is in tokens; ``claims`` are those about each entity. Claims
    take no more than half of the budget from the graph, and what it leaves.
    """
    edges = edges.with_row_index("at")
    replaced = _replace(edges, entities, parts, budget)
    direct = edges.join(replaced.edges, "at", "anti", maintain_order="left")
    nodes = _first_ends(direct, entities)
    nodes = nodes.join(replaced.entities, ["community_id", "id"], "anti", maintain_order="left")
    told = _fitting(direct, nodes, replaced.reports, budget)
    claimed = pl.DataFrame(schema=_OWN_ELEMENT)
    if claims:
        told, claimed = _with_claims(told, nodes, claims)
    nodes = nodes.join(told, "at", "semi", maintain_order="left")
    elements = _elements(
        entity=nodes.unique(["community_id", "id"], keep="first", maintain_order=True),
        relationship=told,
        claim=claimed,
        report=replaced.reports,
    )
    coverage = _coverage(communities, edges, told, replaced.edges)
    return list(_contexts(elements, coverage, budget, version)), elements


def _first_ends(edges: pl.DataFrame, entities: pl.DataFrame) -> pl.DataFrame:
    """Return the ends of edges where their community is first told of them, the source first."""
    ends = _ends(edges)
    first = ends.filter(pl.col("at") == pl.col("at").min().over("community_id", "id"))
    told = first.join(entities, "id", maintain_order="left")
    return told.sort("at", maintain_order=True)


def _ends(edges: pl.DataFrame) -> pl.DataFrame:
    return pl.concat(
        [edges.select("community_id", "at", id=f"{end}_id") for end in ("source", "target")]
    )


@dataclass(frozen=True)
class _Replaced:
    """Parts replaced by reports: entities (community_id, id), edges (community_id, at, coverage).

    ``reports`` are these, as elements of a community and with their coverage, in order.
    """

    entities: pl.DataFrame
    edges: pl.DataFrame
    reports: pl.DataFrame


def _replace(edges: pl.DataFrame, entities: pl.DataFrame, parts: Parts, budget: int) -> _Replaced:
    """Find the sub-communities to replace by their reports, where a community does not fit."""
    nodes = _ends(edges).unique(["community_id", "id"]).join(entities, "id")
    tokens = pl.concat([each.select("community_id", "n_tokens") for each in (edges, nodes)])
    large = tokens.group_by("community_id").agg(total=_COST.sum()).filter(pl.col("total") > budget)
    members = parts.members.join(large, "community_id", "semi")
    inside = (
        edges.join(members, left_on=["community_id", "source_id"], right_on=["community_id", "id"])
        .join(
            members,
            left_on=["community_id", "target_id", "child"],
            right_on=["community_id", "id", "child"],
        )
        .sort("at")
    )
    owned = nodes.join(members, ["community_id", "id"])
    shorter = (
        pl.concat([each.select("community_id", "child", "n_tokens") for each in (inside, owned)])
        .group_by("community_id", "child")
        .agg(own=_COST.sum())
        .join(parts.reports.select("child", "n_tokens"), "child")
        .filter(pl.col("n_tokens") < pl.col("own"))
        .sort("own", "child", descending=[True, False])
        .group_by("community_id")
        .agg("child", "own", "n_tokens")
        .join(large, "community_id")
    )
    chosen = pl.DataFrame(
        [
            (community, child)
            for community, children, own_tokens, report_tokens, total in shorter.iter_rows()
            for child in _chosen(children, own_tokens, report_tokens, total, budget)
        ],
        schema={"community_id": pl.String, "child": pl.String},
        orient="row",
    )
    reports = chosen.join(parts.reports, "child", maintain_order="left")
    return _Replaced(
        members.join(chosen, ["community_id", "child"], "semi").select("community_id", "id"),
        inside.join(
            reports.select("community_id", "child", "coverage"),
            ["community_id", "child"],
            maintain_order="left",
        ).select("community_id", "at", "coverage"),
        reports.select(
            "community_id",
            pl.col("child").alias("id"),
            "n_tokens",
            pl.Series("text_hash", list(_report_hashes(reports)), pl.String),
            "support",
            "coverage",
        ),
    )


def _chosen(
    children: Iterable[str], own: Iterable[int], reports: Iterable[int], total: int, budget: int
) -> Iterator[str]:
    """Replace children, those with most tokens first, until it fits; yield those that do."""
    n_used = 0
    for child, n_own, n_tokens in zip(children, own, reports, strict=True):
        if total <= budget:
            break
        total += n_tokens - n_own
        if n_used + n_tokens <= budget:
            n_used += n_tokens
            yield child


def _report_hashes(reports: pl.DataFrame) -> Iterator[str]:
    for text, findings in reports.select("full_content", "findings").iter_rows():
        places = [(f["chunk_id"], f["start_char"], f["end_char"]) for f in findings]
        yield content_hash(f"{text}\n{places}")[:16]


def _fitting(
    direct: pl.DataFrame, nodes: pl.DataFrame, reports: pl.DataFrame, budget: int
) -> pl.DataFrame:
    """Return edges with their ``cost`` until one does not fit into the ``room`` beside reports.

    Without any the first edge is always taken: elements larger than the budget are cut where they
    are written out.
    """
    room = reports.group_by("community_id").agg(room=budget - pl.col("n_tokens").sum())
    ends = nodes.group_by("at").agg(ends=_COST.sum())
    return (
        direct.join(ends, "at", "left")
        .join(room, "community_id", "left")
        .sort("at")
        .with_columns(
            cost=_COST + pl.col("ends").fill_null(0),
            has_reports=pl.col("room").is_not_null(),
            room=pl.col("room").fill_null(budget),
        )
        .with_columns(used=pl.col("cost").cum_sum().over("community_id"))
        .filter(
            (pl.col("used") <= pl.col("room"))
            | (~pl.col("has_reports") & (pl.col("used") == pl.col("cost")))
        )
    )


def _with_claims(
    told: pl.DataFrame, nodes: pl.DataFrame, claims: Mapping[str, Sequence[Element]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what of these edges fits where claims about their ends are told, too, and these."""
    new = nodes.group_by("at", maintain_order=True).agg(new="id")
    edges = (
        told.join(new, "at", "left", maintain_order="left")
        .group_by("community_id")
        .agg("at", "cost", pl.col("new").fill_null([]), pl.col("room", "has_reports").first())
    )
    columns = ("community_id", "at", "cost", "new", "room", "has_reports")
    kept: list[int] = []
    rows: list[tuple[object, ...]] = []
    for community, at, costs, ids_of, room, has_reports in edges.select(columns).iter_rows():
        claims_of = [[claim for id in ids for claim in claims.get(id, ())] for ids in ids_of]
        n_kept, claimed = _fill(costs, claims_of, room, has_reports)
        kept += at[:n_kept]
        rows += [(community, *claim) for claim in claimed]
    return (
        told.filter(pl.col("at").is_in(kept)),
        pl.DataFrame(rows, schema=_OWN_ELEMENT, orient="row"),
    )


def _fill(
    costs: Sequence[int], claims_of: Sequence[Sequence[Element]], room: int, has_reports: bool
) -> tuple[int, list[Element]]:
    """Add edges, and the claims about the ends of each, until an edge does not fit.

    Return the number of edges, and the claims.
    """
    n_edges = n_used = n_claimed = 0
    claimed: list[Element] = []
    waiting: list[Element] = []
    for cost, claims in zip(costs, claims_of, strict=True):
        if n_used + cost > room and (n_edges or has_reports):
            break
        n_edges, n_used = n_edges + 1, n_used + cost
        for claim in claims:
            price = claim.n_tokens + LINE_TOKENS
            if n_used + price <= room and n_claimed + price <= room // 2:
                n_used, n_claimed = n_used + price, n_claimed + price
                claimed.append(claim)
            else:
                waiting.append(claim)
    for claim in waiting:
        price = claim.n_tokens + LINE_TOKENS
        if n_used + price <= room:
            n_used += price
            claimed.append(claim)
    return n_edges, claimed


def _elements(**by_kind: pl.DataFrame) -> pl.DataFrame:
    """Return the elements of contexts, by kind in this order, in one frame."""
    return (
        pl.concat(
            [
                rows.select(pl.lit(kind).alias("kind"), *_OWN_ELEMENT)
                for kind, rows in by_kind.items()
            ]
        )
        .sort("community_id", maintain_order=True)
        .with_columns(place=pl.int_range(pl.len(), dtype=pl.Int32).over("community_id"))
        .rename({"id": "element_id"})
        .select(list(ELEMENTS))
    )


def _contexts(
    elements: pl.DataFrame, coverage: Mapping[str, float], budget: int, version: str
) -> Iterator[Context]:
    kind = pl.col("kind")
    kinds = ("entity", "relationship", "claim", "report")
    own = elements.group_by("community_id").agg(
        *(pl.col("element_id").filter(kind == name).alias(name) for name in kinds),
        pl.col("n_tokens").sum() + LINE_TOKENS * (kind != "report").sum(),
        parts=pl.concat_str("element_id", pl.lit(":"), "text_hash"),
    )
    chosen = pl.DataFrame({"community_id": list(coverage)}, schema={"community_id": pl.String})
    rows = chosen.join(own, "community_id", "left", maintain_order="left")
    for community, *ids, n_tokens, parts in rows.iter_rows():
        entities, relationships, claims, reports = (tuple(some or ()) for some in ids)
        yield Context(
            community_id=community,
            entities=entities,
            relationships=relationships,
            claims=claims,
            sub_reports=reports,
            n_tokens=min(n_tokens or 0, budget),
            coverage=coverage[community],
            hash=f"{version}:{make_id('context', *(parts or ()))}",
        )


def _coverage(
    communities: Iterable[str], edges: pl.DataFrame, told: pl.DataFrame, inside: pl.DataFrame
) -> Mapping[str, float]:
    """Return the share of each community's edges that are told, or are within a report."""
    n_edges, n_told = (
        dict(each["community_id"].value_counts().iter_rows()) for each in (edges, told)
    )
    through = dict(inside.group_by("community_id", maintain_order=True).agg("coverage").iter_rows())
    return {
        community: round(
            (n_told.get(community, 0) + sum(through.get(community, ()))) / n_edges[community], 6
        )
        if community in n_edges
        else 1.0
        for community in communities
    }
