"""Hierarchical Leiden: a graph clustered into communities within communities (paper, 3.1.4).

graspologic-native 1.2 does the clustering. It is pinned because 1.3 partitions the same graph
differently, and 1.2 gives the communities of indexes that exist already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import CommunitySettings

_RANDOMNESS = 0.001

Edge = tuple[str, str, float]


@dataclass(frozen=True)
class Cluster:
    """A community of the hierarchy: it stands at levels ``level`` to ``last_level``."""

    id: str
    level: int
    last_level: int
    parent_id: str | None
    members: tuple[str, ...]


def hierarchical_leiden(
    edges: Iterable[Edge], settings: CommunitySettings
) -> list[tuple[int, int, int | None, list[str]]]:
    """Cluster weighted undirected edges into a hierarchy.

    Returns (cluster number, level, number of the parent cluster, members sorted) of every cluster.
    Each pair of nodes must occur once, its ends in a fixed order; the order of the edges does not
    matter. Source: Traag, Waltman and van Eck, 2019, applied again inside every cluster larger
    than ``max_cluster_size``.
    """
    import graspologic_native

    in_order = sorted(edges)
    if not in_order:
        return []
    clusters_by_level = graspologic_native.hierarchical_leiden(
        edges=in_order,
        max_cluster_size=settings.max_cluster_size,
        seed=settings.seed,
        resolution=settings.resolution,
        randomness=_RANDOMNESS,
        use_modularity=True,
        iterations=1,
        starting_communities=None,
    )
    members: dict[int, list[str]] = defaultdict(list)
    place: dict[int, tuple[int, int | None]] = {}
    for item in clusters_by_level:
        members[item.cluster].append(item.node)
        place[item.cluster] = (item.level, item.parent_cluster)
    return [(number, *place[number], sorted(nodes)) for number, nodes in sorted(members.items())]


def leiden(
    edges: Iterable[Edge], resolution: float, seed: int, start: Mapping[str, int] | None = None
) -> tuple[float, Mapping[str, int]]:
    """Cluster weighted undirected edges once; returns modularity and the cluster of each node.

    ``start`` gives the cluster that each node is in at first.
    """
    import graspologic_native

    return graspologic_native.leiden(
        edges=sorted(edges),
        resolution=resolution,
        randomness=_RANDOMNESS,
        use_modularity=True,
        iterations=1,
        starting_communities=dict(start) if start else None,
        seed=seed,
        trials=1,
    )


def modularity(
    edges: Sequence[Edge], clusters: Sequence[Cluster], resolution: float = 1.0
) -> float | None:
    """Return the modularity of the root level (Newman, 2004), None without edges.

    At another resolution than 1 it is what :func:`leiden` maximises there.
    """
    import graspologic_native

    if not edges:
        return None
    ends = {node for source, target, _ in edges for node in (source, target)}
    roots = (cluster for cluster in clusters if cluster.level == 0)
    partition = {
        node: number
        for number, cluster in enumerate(roots)
        for node in cluster.members
        if node in ends
    }
    return graspologic_native.modularity(list(edges), partition, resolution)


def build_hierarchy(
    entity_ids: Sequence[str], edges: Iterable[Edge], settings: CommunitySettings
) -> list[Cluster]:
    """Cluster a graph so that every level covers every entity exactly once.

    An entity without relationships is a community of its own. A community that is split no
    further stands at all deeper levels. Ids are hashes of level and members.
    """
    raw = hierarchical_leiden(edges, settings)
    deepest = max((level for _, level, _, _ in raw), default=0)
    parents = {parent for _, _, parent, _ in raw if parent is not None}
    ids = {number: make_id("community", level, *members) for number, level, _, members in raw}
    clusters = [
        Cluster(
            ids[number],
            level,
            level if number in parents else deepest,
            None if parent is None else ids[parent],
            tuple(members),
        )
        for number, level, parent, members in raw
    ]
    clustered = {node for cluster in clusters for node in cluster.members}
    alone = sorted(set(entity_ids) - clustered)
    return clusters + [
        Cluster(make_id("community", 0, node), 0, deepest, None, (node,)) for node in alone
    ]
