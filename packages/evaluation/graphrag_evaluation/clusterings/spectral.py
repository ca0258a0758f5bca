"""Spectral clustering of a graph: ArchRAG's ablation "Spec." (Wang et al., 2025).

As in the authors' code there are a fifteenth as many clusters as nodes; here that is so in each
connected part by itself, since between parts there is nothing to cut. Eigenvectors of the
normalised Laplacian are taken apart by pivoted QR (Damle, Minden and Ying, 2019), which draws no
lots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_evaluation.clusterings.flat import labelled
from graphrag_pipeline.graph.clustering import Cluster


def spectral_clusters(
    ids: Sequence[str], edges: pl.DataFrame, size: int, seed: int
) -> list[Cluster]:
    """Return clusters of about ``size`` nodes, each node in one of them.

    ``edges`` has source and target, places in ``ids``, each pair once, and similarity above 0. A
    connected part of at most ``size`` nodes is one cluster. The eigenvectors take memory for as
    many numbers as nodes times clusters of the largest part.
    """
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import connected_components

    one, two, weight = (edges[c].to_numpy() for c in ("source", "target", "similarity"))
    ends = (np.concatenate([one, two]), np.concatenate([two, one]))
    graph = csr_array(coo_array((np.tile(weight, 2), ends), shape=(len(ids), len(ids))))
    _, part = connected_components(graph, directed=False)
    label = np.empty(len(ids), np.int64)
    order = np.argsort(part, kind="stable")
    known = 0
    for nodes in np.split(order, np.flatnonzero(np.diff(part[order])) + 1) if len(ids) else []:
        label[nodes] = known + _cut(graph[nodes][:, nodes], -(-len(nodes) // size), seed)
        known = int(label[nodes].max()) + 1
    return labelled(ids, label)


def _cut(graph: Any, n_clusters: int, seed: int) -> npt.NDArray[np.integer]:
    if n_clusters == 1:
        return np.zeros(graph.shape[0], np.int64)
    from sklearn.cluster import SpectralClustering

    # scikit-learn takes no larger indices.
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    made = SpectralClustering(
        n_clusters, affinity="precomputed", assign_labels="cluster_qr", random_state=seed
    )
    return made.fit_predict(graph)
