"""Clusters of texts by the distances between them."""

from __future__ import annotations

from typing import Any

import numpy as np


def complete_linkage(distances: np.ndarray, threshold: float) -> list[int]:
    """Return the cluster of each row of distances, shape (n, n), of two rows or more.

    Two clusters are joined while all distances between their members are below the threshold.
    """
    from sklearn.cluster import AgglomerativeClustering

    parameters: dict[str, Any] = {
        "n_clusters": None, "metric": "precomputed", "linkage": "complete",
    }  # fmt: skip
    model = AgglomerativeClustering(distance_threshold=threshold, **parameters)
    return model.fit(distances).labels_.tolist()
