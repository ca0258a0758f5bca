"""Clusterings that ArchRAG compares its own with, by the door ``clusterings``.

Wang et al., 2025 (ArchRAG), table 3 and figures 8 and 9: spectral clustering, with the edges
between like nodes and without them, where each weighs one in the authors' code; SCAN; node2vec with
k-means; and each of them on the edges of CODICIL.
"""

from __future__ import annotations

import polars as pl

from graphrag_evaluation.clusterings.codicil import codicil_edges
from graphrag_evaluation.clusterings.node2vec import node2vec_clusters
from graphrag_evaluation.clusterings.scan import scan_clusters
from graphrag_evaluation.clusterings.spectral import spectral_clusters
from graphrag_pipeline.structures.cosines import PAIRS
from graphrag_pipeline.systems.archrag.clusterings import (
    LEAST_WEIGHT,
    AttributedNodes,
    Clustering,
    augmented,
    links_of,
)


def _weighed_links(nodes: AttributedNodes, similar: pl.DataFrame | None) -> pl.DataFrame:
    """Return links alone, weighed by how alike their ends are."""
    return augmented(nodes, pl.DataFrame(schema=PAIRS))


def _fused(nodes: AttributedNodes, similar: pl.DataFrame | None) -> pl.DataFrame:
    """Return CODICIL's edges, weighed by how alike their ends are."""
    weight = pl.col("similarity").clip(lower_bound=LEAST_WEIGHT)
    return codicil_edges(nodes.vectors, nodes.links).with_columns(weight)


SPECTRAL = Clustering(augmented, spectral_clusters)
SPECTRAL_LINKS = Clustering(_weighed_links, spectral_clusters)
SPECTRAL_UNWEIGHTED = Clustering(links_of, spectral_clusters)
SCAN = Clustering(augmented, scan_clusters)
NODE2VEC = Clustering(augmented, node2vec_clusters)
CODICIL = Clustering(_fused)
CODICIL_SPECTRAL = Clustering(_fused, spectral_clusters)
CODICIL_SCAN = Clustering(_fused, scan_clusters)
CODICIL_NODE2VEC = Clustering(_fused, node2vec_clusters)
