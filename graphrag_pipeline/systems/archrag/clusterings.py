"""Clusterings of a level by Leiden, over links and likeness or over links alone; and a door.

``hierarchies.attributed_clustering`` names one. The package of evaluation brings those that the
paper compares its own with (table 3, figures 8 and 9), some with parameters
(``hierarchies.attributed_parameters``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from graphrag_pipeline.core.doors import Door
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import HierarchySettings
from graphrag_pipeline.graph.clustering import Cluster
from graphrag_pipeline.structures.cosines import similarities
from graphrag_pipeline.systems.archrag.chnsw import Vectors
from graphrag_pipeline.systems.archrag.similarity import (
    WIDER,
    Places,
    least_similarity,
    mean_degree,
    nearest,
    similar_pairs,
)

LEAST_WEIGHT = 1e-6

Clusterer = Callable[[Sequence[str], pl.DataFrame, int, int], list[Cluster]]
"""What clusters ids by edges, given about how large clusters are to be, and a seed."""


@dataclass(frozen=True)
class AttributedNodes:
    """The nodes of a level's graph: ids in order, a vector each, and the pairs that are linked.

    ``entities`` has (node_id, entity_id): what is in each node.
    """

    ids: pl.Series
    vectors: Vectors
    links: tuple[Places, Places]
    entities: pl.DataFrame


@dataclass(frozen=True)
class Clustering:
    """A way to cluster a level: which edges, and what clusters them, Leiden where it is None.

    ``edges`` takes the nodes and, where they are known, the pairs that are alike. Keywords of
    ``clusters`` are its parameters: numbers, each with what is usual.
    """

    edges: Callable[[AttributedNodes, pl.DataFrame | None], pl.DataFrame]
    clusters: Clusterer | None = None


def clustering_of(settings: HierarchySettings) -> Clustering:
    """Return the clustering that the settings name, with their parameters.

    Raises ConfigError where there is none of that name, or it does not have a parameter.
    """
    name, given = settings.attributed_clustering, settings.attributed_parameters
    clustering = CLUSTERINGS.find(name)
    if clustering is None:
        raise ConfigError(
            f"hierarchies.attributed_clustering: there is no clustering {name!r} (there are "
            f"{', '.join(CLUSTERINGS.names())}): those that ArchRAG is compared with are in the "
            "package graphrag-pipeline[evaluation], install it or choose another"
        )
    clusters = clustering.clusters
    own = getattr(clusters, "__kwdefaults__", None) or {}
    if unknown := sorted(given.keys() - own.keys()):
        has = f"only {', '.join(own)}" if own else "none"
        raise ConfigError(
            f"hierarchies.attributed_parameters: {name} has no {unknown[0]}, it has {has}"
        )
    if clusters is None or not given:
        return clustering
    return replace(clustering, clusters=partial(clusters, **given))


def links_of(nodes: AttributedNodes, similar: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the edges (source, target, similarity) of a graph as it is, each of weight one."""
    one, two = nodes.links
    ends = pl.DataFrame({"source": np.minimum(one, two), "target": np.maximum(one, two)})
    return ends.unique().with_columns(similarity=pl.lit(1.0)).sort("source", "target")


def augmented(nodes: AttributedNodes, similar: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the edges (source, target, similarity) of a graph with those between like nodes.

    ``similar`` are these, if they are known; source and target are places, each pair once.
    """
    if similar is None:
        everything = np.arange(len(nodes.ids))
        k = mean_degree(nodes.links)
        near = nearest(nodes.vectors, everything, everything, int(k * WIDER) + 1)
        threshold = least_similarity(nodes.vectors, nodes.links)
        similar = similar_pairs(nodes.links, near, k, threshold)
    one, two = nodes.links
    linked = pl.DataFrame(
        [np.minimum(one, two), np.maximum(one, two), similarities(nodes.vectors, one, two)],
        schema=similar.schema,
    )
    weight = pl.col("similarity").clip(lower_bound=LEAST_WEIGHT)
    return pl.concat([linked, similar]).with_columns(weight).sort("source", "target")


ATTRIBUTED = Clustering(augmented)
LINKS = Clustering(links_of)
CLUSTERINGS: Door[Clustering] = Door(
    "clusterings",
    Clustering,
    "clustering",
    own={"attributed": "clusterings:ATTRIBUTED", "links": "clusterings:LINKS"},
    beside=__name__,
)
"""The clusterings by their names in the settings."""
