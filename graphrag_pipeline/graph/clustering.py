"""Hierarchical Leiden: a graph clustered into communities within communities (paper, 3.1.4).

graspologic-native 1.2 does the clustering. It is pinned because 1.3 partitions the same graph
differently, and 1.2 gives the communities of indexes that exist already.

Nodes are numbers here, in order of their ids, and edges and members are arrays of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.core.arrays import distinct
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import CommunitySettings

_RANDOMNESS = 0.001
_AT_ONCE = 65_536

Edge = tuple[str, str, float]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cluster:
    """A community of the hierarchy: it stands at levels ``level`` to ``last_level``."""

    id: str
    level: int
    last_level: int
    parent_id: str | None
    members: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Ids of nodes in order, and weighted edges between their places, in order, each pair once."""

    nodes: pl.Series
    source: Ints
    target: Ints
    weight: Floats

    @classmethod
    def of(cls, nodes: Iterable[str], edges: Iterable[Edge]) -> Graph:
        """Make a graph of ids and edges in any order; the ends of edges are nodes, too."""
        rows = sorted(edges)
        ids = sorted({*nodes, *(node for row in rows for node in row[:2])})
        place = {node: i for i, node in enumerate(ids)}
        return cls(
            pl.Series(ids, dtype=pl.String),
            np.array([place[source] for source, _, _ in rows], dtype=np.int64),
            np.array([place[target] for _, target, _ in rows], dtype=np.int64),
            np.array([weight for _, _, weight in rows], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def within(self, label: Ints) -> Graph:
        """Return the edges whose ends have the same label, none of them negative."""
        inside = (label[self.source] == label[self.target]) & (label[self.source] >= 0)
        return self.only(inside)

    def only(self, is_chosen: npt.NDArray[np.bool_]) -> Graph:
        """Return the graph of all nodes and of these edges."""
        return Graph(
            self.nodes, self.source[is_chosen], self.target[is_chosen], self.weight[is_chosen]
        )

    def part(self, nodes: Ints, edges: Ints) -> Graph:
        """Return the graph of these nodes, in order, and edges."""
        return Graph(
            self.nodes.gather(nodes),
            np.searchsorted(nodes, self.source[edges]),
            np.searchsorted(nodes, self.target[edges]),
            self.weight[edges],
        )

    def names(self, nodes: Ints) -> list[str]:
        """Return the ids of nodes."""
        return self.nodes.gather(nodes).to_list()


@dataclass(frozen=True)
class Clusters:
    """A hierarchy of clusters by column; those that are split no further stand at deeper levels.

    The members of cluster i are ``members[starts[i]:starts[i + 1]]``, places of nodes, ascending:
    -1 is one that the graph has no more. ``parent`` is the place of a cluster, -1 at the root.
    """

    ids: list[str]
    level: Ints
    parent: Ints
    starts: Ints
    members: Ints

    @classmethod
    def of(cls, clusters: Sequence[Cluster], nodes: pl.Series) -> Clusters:
        """Return clusters by column, ``nodes`` being the ids of the graph's nodes."""
        number = {node: i for i, node in enumerate(nodes)}
        place = {cluster.id: i for i, cluster in enumerate(clusters)}
        parts = [
            np.sort(np.array([number.get(node, -1) for node in c.members], dtype=np.int64))
            for c in clusters
        ]
        return cls.joined(
            [cluster.id for cluster in clusters],
            [cluster.level for cluster in clusters],
            [place.get(cluster.parent_id or "", -1) for cluster in clusters],
            parts,
        )

    @classmethod
    def joined(
        cls,
        ids: list[str],
        level: Sequence[int] | Ints,
        parent: Sequence[int] | Ints,
        parts: Sequence[Ints],
    ) -> Clusters:
        """Return clusters of which ``parts`` has the members of each."""
        starts = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=starts[1:])
        members = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return cls(
            ids, np.array(level, dtype=np.int64), np.array(parent, dtype=np.int64), starts, members
        )

    def __len__(self) -> int:
        return len(self.ids)

    def listed(self, nodes: pl.Series) -> list[Cluster]:
        """Return the clusters one by one; all members must be among the ``nodes``."""
        names = nodes.to_list()
        rows = zip(self.ids, self.level.tolist(), self.last_level.tolist(), strict=True)
        return [
            Cluster(
                id,
                level,
                last_level,
                self.ids[above] if (above := int(self.parent[i])) >= 0 else None,
                tuple(names[node] for node in self.of_cluster(i).tolist()),
            )
            for i, (id, level, last_level) in enumerate(rows)
        ]

    def of_cluster(self, place: int) -> Ints:
        """Return the members of a cluster."""
        return self.members[self.starts[place] : self.starts[place + 1]]

    @property
    def sizes(self) -> Ints:
        """The number of members of each."""
        return np.diff(self.starts)

    @cached_property
    def is_divided(self) -> npt.NDArray[np.bool_]:
        """Whether each has parts."""
        divided = np.zeros(len(self), dtype=bool)
        divided[self.parent[self.parent >= 0]] = True
        return divided

    @property
    def last_level(self) -> Ints:
        """The last level at which each stands."""
        deepest = self.level.max(initial=0)
        return np.where(self.is_divided, self.level, deepest)

    @cached_property
    def owner(self) -> Ints:
        """The place of the cluster that each of ``members`` is in."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def at(self, level: int, n_nodes: int) -> Ints:
        """Return the place of each node's cluster that begins at a level, -1 if none does."""
        label = np.full(n_nodes, -1, dtype=np.int64)
        is_there = (self.level[self.owner] == level) & (self.members >= 0)
        label[self.members[is_there]] = self.owner[is_there]
        return label


class _NativeEdges:
    """The edges of a graph as graspologic reads any sequence, made as they are read."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __len__(self) -> int:
        return len(self._graph.source)

    def __getitem__(self, place: int) -> Edge:
        graph = self._graph
        source, target = (str(end[place]) for end in (graph.source, graph.target))
        return source, target, float(graph.weight[place])

    def __iter__(self) -> Iterator[Edge]:
        graph = self._graph
        for start in range(0, len(self), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            yield from zip(
                map(str, graph.source[rows].tolist()),
                map(str, graph.target[rows].tolist()),
                graph.weight[rows].tolist(),
                strict=True,
            )


def hierarchical_leiden(graph: Graph, settings: CommunitySettings) -> Clusters:
    """Cluster the nodes of a graph that have edges into a hierarchy; ids are numbers.

    Each pair of nodes must occur once, its ends in a fixed order. Source: Traag, Waltman and van
    Eck, 2019, applied again inside every cluster larger than ``max_cluster_size``.
    """
    import graspologic_native

    if not len(graph.source):
        return Clusters.joined([], [], [], [])
    rows = graspologic_native.hierarchical_leiden(
        edges=_NativeEdges(graph),  # pyright: ignore[reportArgumentType]
        max_cluster_size=settings.max_cluster_size,
        seed=settings.seed,
        resolution=settings.resolution,
        randomness=_RANDOMNESS,
        use_modularity=True,
        iterations=1,
        starting_communities=None,
    )
    n = len(rows)
    node = np.fromiter((int(row.node) for row in rows), np.int64, n)
    cluster = np.fromiter((row.cluster for row in rows), np.int64, n)
    level = np.fromiter((row.level for row in rows), np.int64, n)
    parent = np.fromiter(
        (-1 if row.parent_cluster is None else row.parent_cluster for row in rows), np.int64, n
    )
    order = np.lexsort((node, cluster))
    numbers, starts = np.unique(cluster[order], return_index=True)
    first = order[starts]
    above = np.searchsorted(numbers, parent[first])
    return Clusters(
        [str(number) for number in numbers.tolist()],
        level[first],
        np.where(parent[first] >= 0, above, -1),
        np.append(starts, n),
        node[order],
    )


def leiden(
    graph: Graph, resolution: float, seed: int, start: Ints | None = None
) -> tuple[float, Ints]:
    """Cluster a graph with edges once; returns modularity and the cluster of each node.

    A node without edges has the cluster -1. ``start`` gives the cluster that each node is in at
    first.
    """
    import graspologic_native

    begin = None
    if start is not None:
        ends = distinct(np.concatenate([graph.source, graph.target]))
        begin = dict(zip(map(str, ends.tolist()), start[ends].tolist(), strict=True))
    reached, clusters = graspologic_native.leiden(
        edges=_NativeEdges(graph),  # pyright: ignore[reportArgumentType]
        resolution=resolution,
        randomness=_RANDOMNESS,
        use_modularity=True,
        iterations=1,
        starting_communities=begin,
        seed=seed,
        trials=1,
    )
    label = np.full(len(graph), -1, dtype=np.int64)
    n = len(clusters)
    label[np.fromiter(map(int, clusters.keys()), np.int64, n)] = np.fromiter(
        clusters.values(), np.int64, n
    )
    return reached, label


def modularity(graph: Graph, label: Ints, resolution: float = 1.0) -> float | None:
    """Return the modularity of a partition (Newman, 2004), None without edges.

    ``label`` has the cluster of each node, from 0. At another resolution than 1 it is what
    :func:`leiden` maximises there.
    """
    if not len(graph.source):
        return None
    total = float(graph.weight.sum())
    inside = label[graph.source] == label[graph.target]
    strength = np.bincount(label[graph.source], graph.weight) + 0.0
    ends = np.bincount(label[graph.target], graph.weight, len(strength))
    strength = np.pad(strength, (0, len(ends) - len(strength))) + ends
    within = float(graph.weight[inside].sum()) / total
    return within - resolution * float(((strength / (2 * total)) ** 2).sum())


def cluster_graph(graph: Graph, settings: CommunitySettings) -> Clusters:
    """Cluster a graph so that every level covers every node exactly once.

    A node without edges is a community of its own. A community that is split no further stands at
    all deeper levels. Ids are hashes of level and members.
    """
    raw = hierarchical_leiden(graph, settings)
    is_alone = np.ones(len(graph), dtype=bool)
    is_alone[raw.members] = False
    alone = np.flatnonzero(is_alone)
    ids = [
        make_id("community", level, *graph.names(raw.of_cluster(place)))
        for place, level in enumerate(raw.level.tolist())
    ]
    ids += [make_id("community", 0, name) for name in graph.names(alone)]
    return Clusters(
        ids,
        np.append(raw.level, np.zeros_like(alone)),
        np.append(raw.parent, np.full_like(alone, -1)),
        np.append(raw.starts, raw.starts[-1] + np.arange(1, len(alone) + 1)),
        np.append(raw.members, alone),
    )


def build_hierarchy(
    entity_ids: Iterable[str], edges: Iterable[Edge], settings: CommunitySettings
) -> list[Cluster]:
    """Return what :func:`cluster_graph` makes of ids and edges in any order, one by one."""
    graph = Graph.of(entity_ids, edges)
    return cluster_graph(graph, settings).listed(graph.nodes)
