"""Common parts of clusterings of one level: labels as clusters, and shared neighbours of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.graph.clustering import Cluster

Places = npt.NDArray[np.int64]

_SLICE = 4_000_000
"""So many pairs of neighbours are looked up at a time."""


def labelled(ids: Sequence[str], label: npt.NDArray[np.integer]) -> list[Cluster]:
    """Return the clusters of nodes with one label each, by the places of ``ids``."""
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if len(ids) else []
    named = [tuple(sorted(str(ids[place]) for place in group.tolist())) for group in groups]
    return [Cluster(make_id("community", 0, *group), 0, 0, None, group) for group in named]


def common_neighbours(n: int, one: Places, two: Places) -> Places:
    """Return for each edge how many nodes are linked with both of its ends.

    ``n`` nodes have edges (one, two), each pair once. Triangles are listed from the end of least
    degree, so that hubs cost no more than their edges: with m edges at most m times the root of 2m
    pairs are looked at.
    """
    if not len(one):
        return np.zeros(0, np.int64)
    degree = np.bincount(np.concatenate([one, two]), minlength=n)
    rank = np.empty(n, np.int64)
    rank[np.lexsort((np.arange(n), degree))] = np.arange(n)
    low, high = np.minimum(rank[one], rank[two]), np.maximum(rank[one], rank[two])
    order = np.argsort(low * n + high)
    low, high = low[order], high[order]
    key = low * n + high
    last = np.searchsorted(low, low, side="right")
    later = last - 1 - np.arange(len(key))
    counts = np.zeros(len(key), np.int64)
    ends = np.cumsum(later)
    start = 0
    while start < len(key):
        done = ends[start] - later[start]
        stop = max(start + 1, int(np.searchsorted(ends, done + _SLICE, side="right")))
        number = later[start:stop]
        first = np.repeat(np.arange(start, stop), number)
        within = np.arange(len(first)) - np.repeat(np.cumsum(number) - number, number)
        second = first + 1 + within
        wanted = high[first] * n + high[second]
        third = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        closed = key[third] == wanted
        for edge in (first, second, third):
            counts += np.bincount(edge[closed], minlength=len(key))
        start = stop
    in_order = np.empty_like(counts)
    in_order[order] = counts
    return in_order
