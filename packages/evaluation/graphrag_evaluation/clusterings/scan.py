"""SCAN: clusters of nodes that share their neighbours, with hubs and outliers left alone.

Source: Xu, Yuruk, Feng and Schweiger, 2007 (KDD), definitions 1 to 11; ArchRAG compares it with
Leiden (figures 8 and 9). Two linked nodes are as similar as their closed neighbourhoods overlap,
|A and B| over the root of |A| |B|. A node with at least :data:`MU` neighbours, itself among them,
that are similar by :data:`EPSILON` is a core; cores that are similar belong together, and so does
what is similar to one of them: to the most similar, where the source takes the first that it meets.
All else is a hub or an outlier, and a cluster of its own.

``EPSILON`` is the least of the source's 0.5 to 0.8, since most entities of a graph have few links
(ArchRAG's authors take 0.7); ``MU`` is the source's. Edges count as links only, and clusters may
be of any size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from graphrag_evaluation.clusterings.flat import common_neighbours, labelled
from graphrag_pipeline.graph.clustering import Cluster

EPSILON = 0.5
MU = 2


def scan_clusters(
    ids: Sequence[str],
    edges: pl.DataFrame,
    size: int,
    seed: int,
    *,
    epsilon: float = EPSILON,
    mu: float = MU,
) -> list[Cluster]:
    """Return clusters, each node in one of them; ``size`` and ``seed`` are other clusterings'.

    ``edges`` has source and target, places in ``ids``, each pair once.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(ids)
    one, two = (edges[end].cast(pl.Int64).to_numpy() for end in ("source", "target"))
    closed = np.bincount(np.concatenate([one, two]), minlength=n) + 1
    shared = common_neighbours(n, one, two) + 2
    similarity = shared / np.sqrt(closed[one] * closed[two])
    # Roots are not exact: what equals epsilon counts.
    near = similarity >= epsilon - 1e-12
    one, two, similarity = one[near], two[near], similarity[near]
    is_core = np.bincount(np.concatenate([one, two]), minlength=n) + 1 >= mu
    inner = is_core[one] & is_core[two]
    links = coo_array((np.ones(inner.sum()), (one[inner], two[inner])), shape=(n, n))
    _, label = connected_components(links, directed=False)
    source, target = np.concatenate([one, two]), np.concatenate([two, one])
    likeness = np.concatenate([similarity, similarity])
    border = ~is_core[source] & is_core[target]
    source, target, likeness = source[border], target[border], likeness[border]
    # The last assignment stands: the most similar, of equals the first.
    order = np.lexsort((-target, likeness))
    label[source[order]] = label[target[order]]
    return labelled(ids, label)
