"""Communities repaired after the graph has changed, instead of clustered anew.

Leiden is not stable: after one per cent of new documents a fresh run changes a fifth of all
communities, and each changed community is a report to pay for. So the communities there are stay;
at each level, from the root down, new entities join the community of largest modularity gain,
what was cut into pieces is split, and what has outgrown the limit is clustered within itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import CommunitySettings
from graphrag_pipeline.graph.clustering import Cluster, Clusters, Graph, Ints, leiden

_MOST_SWEEPS = 20
_SAME = 0.5


def repair(
    graph: Graph, old: Clusters, settings: CommunitySettings, *, regain: bool = False
) -> Clusters:
    """Return the hierarchy ``old`` brought up to date with a graph that has changed.

    With ``regain``, Leiden then goes over the whole graph from there, which regains the modularity
    that was lost over many repairs and changes less than clustering from nothing.

    A community keeps its id as long as most of what is left of it stays together. Communities
    whose members and inner edges did not change come back as they were. The result depends on
    ``old`` and the graph only, not on the order of rows.
    """
    prior = _Prior(old, len(graph))
    ids_in_use = set(old.ids)
    found = _Found()
    parents = [_Parent(-1, np.arange(len(graph)))] if len(graph) else []
    level = 0
    while parents:
        label = _divide(graph, prior.at(level), parents, settings)
        if regain and level == 0:
            label = _regained(graph, label, settings)
        parts = _add_parts(found, graph, prior, parents, label, level, ids_in_use)
        most = settings.max_cluster_size
        parents = [part for part in parts if prior.is_to_divide(found.ids[part.place], part, most)]
        level += 1
    return Clusters.joined(found.ids, found.levels, found.parents, found.parts)


def with_old_ids(old: Clusters, new: Clusters, n_nodes: int) -> Clusters:
    """Return the clusters ``new`` with the ids of those of ``old`` they are mostly made of.

    A cluster is taken for an old one of its level when they share more than half of all members
    of the two, so each has at most one counterpart.
    """
    renamed: dict[int, str] = {}
    for level in range(int(new.level.max(initial=-1)) + 1):
        now, before = new.at(level, n_nodes), old.at(level, n_nodes)
        is_in_both = (now >= 0) & (before >= 0)
        pairs, shared = _pairs(now[is_in_both], before[is_in_both])
        union = new.sizes[pairs[0]] + old.sizes[pairs[1]] - shared
        is_same = shared / union > _SAME
        for place, before_place in pairs[:, is_same].T.tolist():
            renamed[place] = old.ids[before_place]
    old_ids, heirs = set(old.ids), set(renamed.values())
    ids = []
    for place, id in enumerate(new.ids):
        taken = old_ids | heirs if place not in renamed and id in heirs else heirs
        ids.append(renamed.get(place) or _free_id(id, taken))
    return replace(new, ids=ids)


def keep_ids(old: Sequence[Cluster], new: Sequence[Cluster]) -> list[Cluster]:
    """Return clusters as :func:`with_old_ids` names them, one by one."""
    nodes = Graph.of((node for cluster in new for node in cluster.members), []).nodes
    now = Clusters.of(new, nodes)
    return with_old_ids(Clusters.of(old, nodes), now, len(nodes)).listed(nodes)


class _Prior:
    """The old hierarchy: the cluster of each node at each level, and who was its member."""

    def __init__(self, old: Clusters, n_nodes: int) -> None:
        self.old = old
        self._place = {id: place for place, id in enumerate(old.ids)}
        self._n = n_nodes

    def at(self, level: int) -> Ints:
        """Return a number for each node's cluster of this level, in order of ids, -1 if none."""
        return self._in_order[self.old.at(level, self._n)]

    def id_of(self, number: int) -> str:
        """Return the id of a cluster of this number."""
        return self.old.ids[int(self._by_id[number])]

    @cached_property
    def _by_id(self) -> Ints:
        return np.array(sorted(range(len(self.old)), key=self.old.ids.__getitem__), dtype=np.int64)

    @cached_property
    def _in_order(self) -> Ints:
        in_order = np.full(len(self.old) + 1, -1, dtype=np.int64)
        in_order[self._by_id] = np.arange(len(self.old))
        return in_order

    def is_to_divide(self, id: str, part: _Parent, most: int) -> bool:
        """Whether a cluster has parts: as before, or by its size where its members changed."""
        place = self._place.get(id)
        if place is not None and np.array_equal(self.old.of_cluster(place), part.nodes):
            return bool(self.old.is_divided[place])
        return len(part.nodes) > most


@dataclass(frozen=True)
class _Parent:
    """A cluster whose parts are to be found, by its place, -1 for the graph, and its nodes."""

    place: int
    nodes: Ints


class _Found:
    """The clusters found, in order, with the place of the parent of each."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.levels: list[int] = []
        self.parents: list[int] = []
        self.parts: list[Ints] = []

    def add(self, id: str, level: int, parent: int, nodes: Ints) -> _Parent:
        """Add a cluster; return it as one whose parts may be sought."""
        self.ids.append(id)
        self.levels.append(level)
        self.parents.append(parent)
        self.parts.append(nodes)
        return _Parent(len(self.ids) - 1, nodes)


def _divide(
    graph: Graph, prior: Ints, parents: Sequence[_Parent], settings: CommunitySettings
) -> Ints:
    """Return the part of each node, named by the smallest node in it; -1 outside the parents."""
    owner = np.full(len(graph), -1, dtype=np.int64)
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


def _regained(graph: Graph, label: Ints, settings: CommunitySettings) -> Ints:
    """Return the root communities that Leiden makes of these."""
    if not len(graph.source):
        return label
    _, best = leiden(graph, settings.resolution, settings.seed, label)
    alone = len(graph) + label
    return _connected_parts(graph, np.where(best >= 0, best, alone))


def _by_label(labels: Ints, n: int) -> list[Ints]:
    """Return the places of each label 0 to n - 1."""
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(n + 1))
    return [order[ends[i] : ends[i + 1]] for i in range(n)]


def _connected_parts(graph: Graph, label: Ints) -> Ints:
    """Return labels by which only connected nodes with one label are together.

    A node labelled -1 is alone. The new label is the smallest node of the part.
    """
    is_inside = (label[graph.source] == label[graph.target]) & (label[graph.source] >= 0)
    return _components(len(graph), graph.source[is_inside], graph.target[is_inside])


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
    graph: Graph, is_new: npt.NDArray[np.bool_], start: Ints, settings: CommunitySettings
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
        _, parts = leiden(graph.only(among), settings.resolution * share, settings.seed)
        nodes = np.flatnonzero(is_left)
        groups = np.where(parts[nodes] >= 0, parts[nodes], len(graph) + nodes)
        _, first, group = np.unique(groups, return_index=True, return_inverse=True)
        label[nodes] = nodes[first][group]
    _Mover(graph, label, rate).move(_communities_near(graph, is_new, label))
    return label


def _communities_near(
    graph: Graph, is_new: npt.NDArray[np.bool_], label: Ints
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

    def __init__(self, graph: Graph, label: Ints, rate: float) -> None:
        self._label = label
        self._rate = rate
        n = len(graph)
        self._strength = np.bincount(graph.source, graph.weight, n) + np.bincount(
            graph.target, graph.weight, n
        )
        self._total = np.bincount(label, self._strength, n)
        self._graph = graph

    def move(self, groups: Sequence[tuple[int, ...]]) -> None:
        """Move each group, as a whole, to where it gains most."""
        # One by one, the numbers of a list are read in a third of the time of an array's.
        label, total = self._label.tolist(), self._total.tolist()
        strengths = [float(self._strength[list(group)].sum()) for group in groups]
        links = self._links(groups)
        for _ in range(_MOST_SWEEPS):
            moves = [
                self._move(group, strength, links_of, label, total)
                for group, strength, links_of in zip(groups, strengths, links, strict=True)
            ]
            if not any(moves):
                break
        self._label[:] = label
        self._total[:] = total

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

    def _move(
        self,
        group: tuple[int, ...],
        strength: float,
        links: Sequence[tuple[int, float]],
        label: list[int],
        total: list[float],
    ) -> bool:
        own = label[group[0]]
        total[own] -= strength
        weights: dict[int, float] = defaultdict(float)
        for node, weight in links:
            weights[label[node]] += weight
        cost = self._rate * strength
        gains = {c: w - cost * total[c] for c, w in weights.items()}
        stay = gains.get(own, -cost * total[own])
        best = min(gains, key=lambda c: (-gains[c], c), default=own)
        if best != own and gains[best] > max(stay, 0.0) + 1e-12:
            for node in group:
                label[node] = best
            total[best] += strength
            return True
        total[own] += strength
        return False


def _add_parts(
    found: _Found,
    graph: Graph,
    prior: _Prior,
    parents: Sequence[_Parent],
    label: Ints,
    level: int,
    ids_in_use: set[str],
) -> list[_Parent]:
    """Add the parts to what was found and return them; a parent that stays whole has none.

    An old id goes to the largest remainder of its community. ``ids_in_use`` are not given again.
    """
    numbers, largest = _heirs(label, prior.at(level))
    heirs = dict(zip(largest.tolist(), numbers.tolist(), strict=True))
    added = []
    for parent in parents:
        parts = label[parent.nodes]
        if parent.place >= 0 and (parts == parts[0]).all():
            continue
        order = np.argsort(parts, kind="stable")
        starts = np.flatnonzero(np.diff(parts[order], prepend=-1))
        for nodes in np.split(parent.nodes[order], starts[1:]):
            number = heirs.get(int(label[nodes[0]]))
            if number is None:
                id = _free_id(make_id("community", level, *graph.names(nodes)), ids_in_use)
                ids_in_use.add(id)
            else:
                id = prior.id_of(number)
            added.append(found.add(id, level, parent.place, nodes))
    return added


def _heirs(label: Ints, prior: Ints) -> tuple[Ints, Ints]:
    """Return the old clusters of which something is left, and the part that holds most of each."""
    is_known = (label >= 0) & (prior >= 0)
    pairs, counts = _pairs(prior[is_known], label[is_known])
    places, parts = pairs[:, np.lexsort((pairs[1], -counts, pairs[0]))]
    first = np.flatnonzero(np.diff(places, prepend=-1))
    return places[first], parts[first]


def _pairs(one: Ints, two: Ints) -> tuple[Ints, Ints]:
    """Return the distinct pairs of numbers from 0, ascending, shape (2, n), and how many of each.

    As ``numpy.unique`` of columns, which sorts them as bytes, in ten times the time.
    """
    n = int(two.max(initial=0)) + 1
    keys, counts = np.unique(one * n + two, return_counts=True)
    return np.stack([keys // n, keys % n]), counts


def _free_id(id: str, ids_in_use: set[str]) -> str:
    while id in ids_in_use:
        id = make_id("community", id)
    return id
