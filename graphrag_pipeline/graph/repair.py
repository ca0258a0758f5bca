"""Communities repaired after the graph has changed, instead of clustered anew.

Leiden is not stable: after one per cent of new documents a fresh run changes a fifth of all
communities, and each changed community is a report to pay for. So the communities there are stay;
at each level, from the root down, new entities join the community of largest modularity gain,
what was cut into pieces is split, and what has outgrown the limit is clustered within itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import CommunitySettings
from graphrag_pipeline.graph.clustering import Cluster, Edge, leiden

_MOST_SWEEPS = 20
_SAME = 0.5

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def repair_hierarchy(
    old: Sequence[Cluster],
    entity_ids: Sequence[str],
    edges: Iterable[Edge],
    settings: CommunitySettings,
    *,
    regain: bool = False,
) -> list[Cluster]:
    """Return the hierarchy ``old`` brought up to date with a graph that has changed.

    With ``regain``, Leiden then goes over the whole graph from there, which regains the modularity
    that was lost over many repairs and changes less than clustering from nothing.

    A community keeps its id as long as most of what is left of it stays together. Communities
    whose members and inner edges did not change come back as they were. The result depends on
    ``old`` and the graph only, not on the order of rows.
    """
    graph = _Graph.of(entity_ids, edges)
    prior = _Prior(old, graph.nodes)
    ids_in_use = {cluster.id for cluster in old}
    clusters: list[Cluster] = []
    parents = [_Parent(None, np.arange(len(graph.nodes)))] if graph.nodes else []
    level = 0
    while parents:
        label = _divide(graph, prior.at(level), parents, settings)
        if regain and level == 0:
            label = _regained(graph, label, settings)
        parts = _named(graph, prior, parents, label, level, ids_in_use)
        clusters += [part.cluster for part in parts]
        most = settings.max_cluster_size
        parents = [
            _Parent(part.cluster, part.nodes)
            for part in parts
            if prior.is_to_divide(part.cluster, most)
        ]
        level += 1
    return _standing(clusters)


def keep_ids(old: Sequence[Cluster], new: Sequence[Cluster]) -> list[Cluster]:
    """Return the clusters ``new`` with the ids of those of ``old`` they are mostly made of.

    A cluster is taken for an old one of its level when they share more than half of all members
    of the two, so each has at most one counterpart.
    """
    owner = {(cluster.level, node): cluster for cluster in old for node in cluster.members}
    old_ids = {cluster.id for cluster in old}
    renamed: dict[str, str] = {}
    for cluster in new:
        shared: dict[str, int] = defaultdict(int)
        sizes: dict[str, int] = {}
        for node in cluster.members:
            before = owner.get((cluster.level, node))
            if before is not None:
                shared[before.id] += 1
                sizes[before.id] = len(before.members)
        for before_id, n in shared.items():
            if n / (len(cluster.members) + sizes[before_id] - n) > _SAME:
                renamed[cluster.id] = before_id
    heirs = set(renamed.values())
    for cluster in new:
        if cluster.id not in renamed:
            ids_in_use = old_ids | heirs if cluster.id in heirs else heirs
            renamed[cluster.id] = _free_id(cluster.id, ids_in_use)
    return [
        replace(
            cluster,
            id=renamed[cluster.id],
            parent_id=renamed[cluster.parent_id] if cluster.parent_id else None,
        )
        for cluster in new
    ]


@dataclass(frozen=True)
class _Graph:
    """Nodes sorted by id, edges as numbers of nodes with their weights."""

    nodes: list[str]
    source: Ints
    target: Ints
    weight: Floats

    @classmethod
    def of(cls, entity_ids: Sequence[str], edges: Iterable[Edge]) -> _Graph:
        nodes = sorted(set(entity_ids))
        number = {node: i for i, node in enumerate(nodes)}
        rows = sorted(edges)
        return cls(
            nodes,
            np.array([number[source] for source, _, _ in rows], dtype=np.int64),
            np.array([number[target] for _, target, _ in rows], dtype=np.int64),
            np.array([weight for _, _, weight in rows], dtype=np.float64),
        )

    def within(self, label: Ints) -> _Graph:
        """Return the edges whose ends have the same label, none of them negative."""
        inside = (label[self.source] == label[self.target]) & (label[self.source] >= 0)
        return _Graph(self.nodes, self.source[inside], self.target[inside], self.weight[inside])

    def ends(self) -> Ints:
        """Return the nodes that have edges."""
        return np.unique(np.concatenate([self.source, self.target]))

    def part(self, nodes: Ints, edges: Ints) -> _Graph:
        """Return the graph of these nodes, in order, and edges."""
        return _Graph(
            [self.nodes[node] for node in nodes.tolist()],
            np.searchsorted(nodes, self.source[edges]),
            np.searchsorted(nodes, self.target[edges]),
            self.weight[edges],
        )

    def named_edges(self, is_chosen: npt.NDArray[np.bool_]) -> list[Edge]:
        return [
            (self.nodes[source], self.nodes[target], weight)
            for source, target, weight in zip(
                self.source[is_chosen].tolist(),
                self.target[is_chosen].tolist(),
                self.weight[is_chosen].tolist(),
                strict=True,
            )
        ]


class _Prior:
    """The old hierarchy: the cluster of each node at each level, and who was its member."""

    def __init__(self, old: Sequence[Cluster], nodes: Sequence[str]) -> None:
        number = {node: i for i, node in enumerate(nodes)}
        self.clusters = sorted(old, key=lambda cluster: cluster.id)
        self._members = {cluster.id: cluster.members for cluster in old}
        self._divided = {cluster.parent_id for cluster in old}
        self._n = len(nodes)
        self._labels: dict[int, Ints] = {}
        for place, cluster in enumerate(self.clusters):
            labels = self._labels.setdefault(cluster.level, np.full(self._n, -1, dtype=np.int64))
            labels[[number[node] for node in cluster.members if node in number]] = place

    def at(self, level: int) -> Ints:
        """Return the place in ``clusters`` of each node's cluster of this level, -1 if none."""
        labels = self._labels.get(level)
        return np.full(self._n, -1, dtype=np.int64) if labels is None else labels

    def is_to_divide(self, cluster: Cluster, most: int) -> bool:
        """Whether a cluster has parts: as before, or by its size where its members changed."""
        if self._members.get(cluster.id) == cluster.members:
            return cluster.id in self._divided
        return len(cluster.members) > most


@dataclass(frozen=True)
class _Parent:
    """A cluster whose parts are to be found, None for the whole graph, and its nodes."""

    cluster: Cluster | None
    nodes: Ints


@dataclass(frozen=True)
class _Part:
    cluster: Cluster
    nodes: Ints


def _divide(
    graph: _Graph, prior: Ints, parents: Sequence[_Parent], settings: CommunitySettings
) -> Ints:
    """Return the part of each node, named by the smallest node in it; -1 outside the parents."""
    owner = np.full(len(graph.nodes), -1, dtype=np.int64)
    for place, parent in enumerate(parents):
        owner[parent.nodes] = place
    inside = graph.within(owner)
    prior = np.where(owner >= 0, prior, -1)
    prior[_is_elsewhere(prior, owner)] = -1
    label = _connected_parts(inside, prior)
    edges_of = _by_label(owner[inside.source], len(parents))
    for parent, own in zip(parents, edges_of, strict=True):
        if len(own) and (prior[parent.nodes] < 0).any():
            local = inside.part(parent.nodes, own)
            start = np.searchsorted(parent.nodes, label[parent.nodes])
            placed = _place_new(local, prior[parent.nodes] < 0, start, settings)
            label[parent.nodes] = parent.nodes[placed]
    return np.where(owner >= 0, _connected_parts(inside, label), -1)


def _is_elsewhere(prior: Ints, owner: Ints) -> npt.NDArray[np.bool_]:
    """Whether a node has another parent than most of its old community: there it is new."""
    places, parents = _heirs(owner, prior)
    home = np.full(int(prior.max(initial=-1)) + 1, -1, dtype=np.int64)
    home[places] = parents
    is_elsewhere = prior >= 0
    is_elsewhere[is_elsewhere] = home[prior[is_elsewhere]] != owner[is_elsewhere]
    return is_elsewhere


def _regained(graph: _Graph, label: Ints, settings: CommunitySettings) -> Ints:
    """Return the root communities that Leiden makes of these."""
    start = {graph.nodes[node]: int(label[node]) for node in graph.ends().tolist()}
    everything = np.ones(len(graph.source), dtype=bool)
    if not start:
        return label
    _, best = leiden(graph.named_edges(everything), settings.resolution, settings.seed, start)
    alone = len(best) + label
    new_labels = [best.get(node, int(alone[i])) for i, node in enumerate(graph.nodes)]
    return _connected_parts(graph, np.array(new_labels, dtype=np.int64))


def _by_label(labels: Ints, n: int) -> list[Ints]:
    """Return the places of each label 0 to n - 1."""
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(n + 1))
    return [order[ends[i] : ends[i + 1]] for i in range(n)]


def _connected_parts(graph: _Graph, label: Ints) -> Ints:
    """Return labels by which only connected nodes with one label are together.

    A node labelled -1 is alone. The new label is the smallest node of the part.
    """
    is_inside = (label[graph.source] == label[graph.target]) & (label[graph.source] >= 0)
    return _components(len(graph.nodes), graph.source[is_inside], graph.target[is_inside])


def _components(n: int, source: Ints, target: Ints) -> Ints:
    """Return for each node the smallest number of a node it is connected with."""
    label = np.arange(n)
    while True:
        least = np.minimum(label[source], label[target])
        before = label.copy()
        np.minimum.at(label, source, least)
        np.minimum.at(label, target, least)
        while (label[label] != label).any():
            label = label[label]
        if (label == before).all():
            return label


def _place_new(
    graph: _Graph, is_new: npt.NDArray[np.bool_], start: Ints, settings: CommunitySettings
) -> Ints:
    """Return the community of each node of a graph some of whose nodes have none yet.

    New nodes join one by one what is there; those that do not are clustered among themselves.
    Then communities that met by new nodes merge where that gains modularity.
    """
    label = start.copy()
    total = float(graph.weight.sum())
    rate = settings.resolution / (2 * total)
    is_left = is_new
    if not is_new.all():
        _Mover(graph, label, rate).move([(node,) for node in np.flatnonzero(is_new).tolist()])
        is_left = is_new & ~np.isin(label, label[~is_new])
    among = is_left[graph.source] & is_left[graph.target]
    if among.any():
        share = float(graph.weight[among].sum()) / total
        # The modularity of a part, at this resolution, is that of the whole.
        _, parts = leiden(graph.named_edges(among), settings.resolution * share, settings.seed)
        groups: dict[object, list[int]] = defaultdict(list)
        for node in np.flatnonzero(is_left).tolist():
            groups[parts.get(graph.nodes[node], (node,))].append(node)
        for nodes in groups.values():
            label[nodes] = nodes[0]
    _Mover(graph, label, rate).move(_communities_near(graph, is_new, label))
    return label


def _communities_near(
    graph: _Graph, is_new: npt.NDArray[np.bool_], label: Ints
) -> list[tuple[int, ...]]:
    """Return the communities that hold new nodes or have a neighbour among them."""
    near = is_new.copy()
    near[graph.source] |= is_new[graph.target]
    near[graph.target] |= is_new[graph.source]
    nodes = np.flatnonzero(np.isin(label, label[near]))
    groups: dict[int, list[int]] = defaultdict(list)
    for node, community in zip(nodes.tolist(), label[nodes].tolist(), strict=True):
        groups[community].append(node)
    return sorted(tuple(group) for group in groups.values())


class _Mover:
    """Moves groups of nodes to the community of largest modularity gain, until none gains.

    The gain of a group with strength k from joining a community C, in a graph of total weight m,
    is w(group, C) - resolution * k * K(C) / 2m (Blondel et al., 2008; ``rate`` is the factor).
    """

    def __init__(self, graph: _Graph, label: Ints, rate: float) -> None:
        self._label = label
        self._rate = rate
        n = len(graph.nodes)
        self._strength = np.bincount(graph.source, graph.weight, n) + np.bincount(
            graph.target, graph.weight, n
        )
        self._total = np.bincount(label, self._strength, n)
        self._graph = graph

    def move(self, groups: Sequence[tuple[int, ...]]) -> None:
        """Move each group, as a whole, to where it gains most."""
        links = self._links(groups)
        for _ in range(_MOST_SWEEPS):
            moves = [self._move(group, links[place]) for place, group in enumerate(groups)]
            if not any(moves):
                return

    def _links(self, groups: Sequence[tuple[int, ...]]) -> list[list[tuple[int, float]]]:
        """Return each group's edges to nodes outside it, with their weights."""
        place = np.full(len(self._graph.nodes), -1, dtype=np.int64)
        for number, group in enumerate(groups):
            place[list(group)] = number
        links: list[list[tuple[int, float]]] = [[] for _ in groups]
        ends = (self._graph.source, self._graph.target)
        for near, far in (ends, ends[::-1]):
            out = (place[near] >= 0) & (place[near] != place[far])
            rows = zip(
                place[near[out]].tolist(),
                far[out].tolist(),
                self._graph.weight[out].tolist(),
                strict=True,
            )
            for number, node, weight in rows:
                links[number].append((node, weight))
        return links

    def _move(self, group: tuple[int, ...], links: Sequence[tuple[int, float]]) -> bool:
        label = self._label
        own = int(label[group[0]])
        strength = float(self._strength[list(group)].sum())
        self._total[own] -= strength
        weights: dict[int, float] = defaultdict(float)
        for node, weight in links:
            weights[int(label[node])] += weight
        cost = self._rate * strength
        gains = {c: w - cost * float(self._total[c]) for c, w in weights.items()}
        stay = gains.get(own, -cost * float(self._total[own]))
        best = min(gains, key=lambda c: (-gains[c], c), default=own)
        if best != own and gains[best] > max(stay, 0.0) + 1e-12:
            label[list(group)] = best
            self._total[best] += strength
            return True
        self._total[own] += strength
        return False


def _named(
    graph: _Graph,
    prior: _Prior,
    parents: Sequence[_Parent],
    label: Ints,
    level: int,
    ids_in_use: set[str],
) -> list[_Part]:
    """Return the parts as clusters; a parent that stays whole has none.

    An old id goes to the largest remainder of its community. ``ids_in_use`` are not given again.
    """
    places, largest = _heirs(label, prior.at(level))
    heirs = dict(zip(largest.tolist(), places.tolist(), strict=True))
    clusters = []
    for parent in parents:
        parts = label[parent.nodes]
        if parent.cluster is not None and (parts == parts[0]).all():
            continue
        order = np.argsort(parts, kind="stable")
        starts = np.flatnonzero(np.diff(parts[order], prepend=-1))
        for nodes_of_part in np.split(parent.nodes[order], starts[1:]):
            members = tuple(graph.nodes[node] for node in nodes_of_part.tolist())
            place = heirs.get(int(label[nodes_of_part[0]]))
            if place is None:
                name = _free_id(make_id("community", level, *members), ids_in_use)
                ids_in_use.add(name)
            else:
                name = prior.clusters[place].id
            above = parent.cluster.id if parent.cluster else None
            clusters.append(_Part(Cluster(name, level, level, above, members), nodes_of_part))
    return clusters


def _heirs(label: Ints, prior: Ints) -> tuple[Ints, Ints]:
    """Return the old clusters of which something is left, and the part that holds most of each."""
    is_known = (label >= 0) & (prior >= 0)
    pairs, counts = np.unique(
        np.stack([prior[is_known], label[is_known]]), axis=1, return_counts=True
    )
    places, parts = pairs[:, np.lexsort((pairs[1], -counts, pairs[0]))]
    first = np.flatnonzero(np.diff(places, prepend=-1))
    return places[first], parts[first]


def _free_id(id: str, ids_in_use: set[str]) -> str:
    while id in ids_in_use:
        id = make_id("community", id)
    return id


def _standing(clusters: Sequence[Cluster]) -> list[Cluster]:
    """Let clusters without parts stand at all deeper levels."""
    deepest = max((cluster.level for cluster in clusters), default=0)
    divided = {cluster.parent_id for cluster in clusters}
    return [replace(c, last_level=c.level if c.id in divided else deepest) for c in clusters]
