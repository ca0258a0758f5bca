"""CODICIL: links and likeness fused, and of each node's edges the best kept.

Source: Ruan, Fuhry and Parthasarathy, 2013 (WWW), Algorithm 1; ArchRAG compares it with its own
augmentation (figures 8 and 9). Each node is joined with the :data:`NEAREST` most like it. Of all
its edges, links too, a node keeps as many as the root of their number, rounded up: those best by
the mean of how many of their neighbours its ends share (Jaccard) and of how alike they are
(cosine), each from 0 to 1 among the node's edges. An edge stays if one of its ends keeps it.

Likeness is by the vectors of entities, where the source has TF-IDF of texts. Jaccard is exact,
where the source estimates it by hashing. The edges that stay weigh how alike their ends are, as all
of ArchRAG's do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_evaluation.clusterings.flat import Places, common_neighbours
from graphrag_pipeline.core.arrays import distinct
from graphrag_pipeline.structures.cosines import similarities
from graphrag_pipeline.systems.archrag.chnsw import Vectors
from graphrag_pipeline.systems.archrag.similarity import nearest

NEAREST = 50
ALPHA = 0.5
"""How much neighbours count against likeness."""


def codicil_edges(vectors: Vectors, links: tuple[Places, Places]) -> pl.DataFrame:
    """Return (source, target, similarity), places of rows, each pair once, in order."""
    n = len(vectors)
    everything = np.arange(n)
    near = nearest(vectors, everything, everything, NEAREST)
    source = np.concatenate([links[0], near["source"].to_numpy()])
    target = np.concatenate([links[1], near["target"].to_numpy()])
    key = distinct(np.minimum(source, target) * n + np.maximum(source, target)) if n else source
    one, two = key // max(n, 1), key % max(n, 1)
    cosine = similarities(vectors, one, two)
    stays = _best(one, two, _jaccard(n, one, two), cosine, n)
    return pl.DataFrame({"source": one[stays], "target": two[stays], "similarity": cosine[stays]})


def _jaccard(n: int, one: Places, two: Places) -> npt.NDArray[np.float64]:
    degree = np.bincount(np.concatenate([one, two]), minlength=n)
    shared = common_neighbours(n, one, two)
    return shared / np.maximum(degree[one] + degree[two] - shared, 1)


def _best(
    one: Places,
    two: Places,
    jaccard: npt.NDArray[np.float64],
    cosine: npt.NDArray[np.float64],
    n: int,
) -> npt.NDArray[np.bool_]:
    """Return which edges one of their ends keeps."""
    edge = np.tile(np.arange(len(one)), 2)
    rows = pl.DataFrame(
        {
            "node": np.concatenate([one, two]),
            "edge": edge,
            "links": jaccard[edge],
            "likeness": cosine[edge],
        }
    )

    def scaled(column: str) -> pl.Expr:
        low, high = pl.col(column).min().over("node"), pl.col(column).max().over("node")
        return pl.when(high > low).then((pl.col(column) - low) / (high - low)).otherwise(1.0)

    score = (ALPHA * scaled("links") + (1 - ALPHA) * scaled("likeness")).round(9)
    kept = (
        rows.with_columns(score=score)
        .sort(["node", "score", "edge"], descending=[False, True, False])
        .filter(pl.int_range(pl.len()).over("node") < pl.len().over("node").sqrt().ceil())
    )
    stays = np.zeros(len(one), np.bool_)
    stays[kept["edge"].to_numpy()] = True
    return stays
