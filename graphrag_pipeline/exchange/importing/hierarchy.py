"""Communities made elsewhere, as a hierarchy that covers every entity once at every level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import CommunitySettings
from graphrag_pipeline.graph.clustering import Cluster, Edge, build_hierarchy


@dataclass(frozen=True)
class _Node:
    number: int
    level: int
    parent: int | None
    members: frozenset[str]

    @property
    def id(self) -> str:
        return make_id("community", self.level, *sorted(self.members))


@dataclass(frozen=True)
class ImportedHierarchy:
    """Clusters, and which of them each community of the other index has become."""

    clusters: Sequence[Cluster]
    ids: Mapping[int, str]


def complete_hierarchy(
    communities: pl.DataFrame,
    entity_ids: Mapping[str, str],
    everyone: Sequence[str],
    edges: Sequence[Edge],
    settings: CommunitySettings,
) -> ImportedHierarchy:
    """Take over communities, and add what they lack so that every level covers every entity.

    ``communities`` has (community, level, parent, children, entity_ids); ``entity_ids`` maps the
    other index's entity ids to this one's; ``everyone`` and ``edges`` are the graph. An entity that
    a community does not pass on to its children goes on alone; entities in no community are
    clustered among themselves. Members that a parent lacks or a sister has already are left out,
    and with them communities that are empty then.
    """
    nodes = _nodes(communities, entity_ids)
    taken_over = list(_clusters(nodes))
    covered = {entity for node in nodes.values() if node.level == 0 for entity in node.members}
    outside = sorted(set(everyone) - covered)
    apart = set(outside)
    own_edges = [edge for edge in edges if edge[0] in apart and edge[1] in apart]
    clusters = taken_over + build_hierarchy(outside, own_edges, settings)
    return ImportedHierarchy(_to_the_deepest(clusters), {n: node.id for n, node in nodes.items()})


def _nodes(communities: pl.DataFrame, entity_ids: Mapping[str, str]) -> dict[int, _Node]:
    parents = _parents(communities)
    nodes: dict[int, _Node] = {}
    in_use: dict[int, set[str]] = defaultdict(set)
    rows = communities.select("community", "level", "entity_ids").drop_nulls(("community", "level"))
    for number, level, foreign in rows.sort("level", "community").iter_rows():
        parent = nodes.get(parents.get(number, -1)) if level > 0 else None
        if number in nodes or (level > 0 and (parent is None or parent.level != level - 1)):
            continue
        members = {entity_ids[e] for e in foreign or [] if e in entity_ids} - in_use[level]
        if parent is not None:
            members &= parent.members
        if members:
            in_use[level] |= members
            above = None if parent is None else parent.number
            nodes[number] = _Node(number, level, above, frozenset(members))
    return nodes


def _parents(communities: pl.DataFrame) -> dict[int, int]:
    listed = communities.select("community", "children").explode("children").drop_nulls()
    parents = {child: parent for parent, child in listed.iter_rows()}
    own = communities.select("community", "parent").drop_nulls().filter(pl.col("parent") >= 0)
    return parents | dict(own.iter_rows())


def _clusters(nodes: Mapping[int, _Node]) -> Iterator[Cluster]:
    passed_on: dict[int, set[str]] = defaultdict(set)
    for node in nodes.values():
        if node.parent is not None:
            passed_on[node.parent] |= node.members
    for number, node in nodes.items():
        above = None if node.parent is None else nodes[node.parent].id
        yield Cluster(node.id, node.level, node.level, above, tuple(sorted(node.members)))
        for entity in sorted(node.members - passed_on[number]) if number in passed_on else ():
            alone = make_id("community", node.level + 1, entity)
            yield Cluster(alone, node.level + 1, node.level + 1, node.id, (entity,))


def _to_the_deepest(clusters: Sequence[Cluster]) -> list[Cluster]:
    """Let every community that is not split stand down to the deepest level."""
    deepest = max((cluster.level for cluster in clusters), default=0)
    split = {cluster.parent_id for cluster in clusters}
    return [
        replace(cluster, last_level=cluster.level if cluster.id in split else deepest)
        for cluster in clusters
    ]
