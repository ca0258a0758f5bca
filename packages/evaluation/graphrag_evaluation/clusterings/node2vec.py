"""node2vec with k-means: clusters of nodes that random walks meet together.

Source: Grover and Leskovec, 2016 (KDD); ArchRAG compares it with Leiden (figures 8 and 9). From
each node :data:`WALKS` walks of :data:`LENGTH` steps begin, each step drawn by the weight of the
edge, and by where the walk came from: back with 1 / :data:`P`, on to a neighbour of the node before
with 1, else with 1 / :data:`Q`. Nodes within :data:`WINDOW` steps occur together. All numbers are
the source's; P and Q those with which it finds communities (its figure 3). ArchRAG's authors take
0.5, 2 and 768 dimensions.

The skip-gram model with negative samples, by which the source makes vectors of this, factorises
the logarithm of how much oftener than by chance two nodes occur together (Levy and Goldberg, 2014).
Here the positive values are factorised, by their largest singular vectors, where the source trains
the model. K-means then makes clusters of about ``size`` nodes.

k-means compares each node with each centre, so the time grows with the square of the nodes: this is
for comparing clusterings, not for large graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_evaluation.clusterings.flat import Places, labelled
from graphrag_pipeline.core.arrays import distinct
from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.graph.clustering import Cluster

P, Q = 1.0, 0.5
WALKS, LENGTH, WINDOW = 10, 80, 10
DIMENSIONS = 128

_NOWHERE = -1
_LEAST = 0.01


def node2vec_clusters(
    ids: Sequence[str],
    edges: pl.DataFrame,
    size: int,
    seed: int,
    *,
    p: float = P,
    q: float = Q,
    dimensions: float = DIMENSIONS,
) -> list[Cluster]:
    """Return clusters of about ``size`` nodes, each node in one of them.

    ``edges`` has source and target, places in ``ids``, each pair once, and similarity above 0. A
    node without an edge is alone. ``p`` and ``q`` are from .01 to 100: walks are drawn again until
    they are accepted. Raises ConfigError for others.
    """
    if not (_LEAST <= p <= 1 / _LEAST and _LEAST <= q <= 1 / _LEAST):
        raise ConfigError("hierarchies.attributed_parameters: p and q must be from 0.01 to 100")
    one, two = (edges[end].cast(pl.Int64).to_numpy() for end in ("source", "target"))
    linked = distinct(np.concatenate([one, two]))
    label = np.arange(len(ids))
    if len(linked):
        place = np.searchsorted(linked, one), np.searchsorted(linked, two)
        graph = WeightedGraph(len(linked), *place, edges["similarity"].to_numpy(), p, q)
        vectors = _vectors(graph, int(dimensions), seed)
        label[linked] = len(ids) + _means(vectors, -(-len(linked) // size), seed)
    return labelled(ids, label)


def _vectors(graph: WeightedGraph, dimensions: int, seed: int) -> npt.NDArray[np.float32]:
    from scipy.sparse import coo_array, csr_array
    from sklearn.utils.extmath import randomized_svd

    random, n = np.random.default_rng(seed), graph.n
    together: Any = csr_array((n, n))
    for _ in range(WALKS):
        together = together + _met(graph.walks(np.arange(n), random), n)
    matrix = coo_array(together)
    row, column = matrix.coords
    often = np.asarray(together.sum(axis=1)).ravel()
    chance = often[row] * often[column] / often.sum()
    value = np.maximum(np.log(matrix.data / chance), 0)
    surprising = csr_array(coo_array((value, (row, column)), shape=(n, n)))
    left, strength, _ = randomized_svd(surprising, min(dimensions, n), random_state=seed % 2**32)
    return np.ascontiguousarray(left * np.sqrt(strength), np.float32)


class WeightedGraph:
    """A graph to walk on: the neighbours of each node in a row, with their weights summed up."""

    def __init__(
        self,
        n: int,
        one: Places,
        two: Places,
        weight: npt.NDArray[np.float64],
        p: float = P,
        q: float = Q,
    ) -> None:
        self._back, self._away = 1 / p, 1 / q
        self._most = max(self._back, 1.0, self._away)
        source, target = np.concatenate([one, two]), np.concatenate([two, one])
        order = np.argsort(source * n + target)
        self.n, self.target = n, target[order]
        self.key = (source * n + target)[order]
        self.start = np.searchsorted(source[order], np.arange(n + 1))
        self.until = np.concatenate([[0.0], np.cumsum(np.tile(weight, 2)[order])])

    def walks(self, begin: Places, random: np.random.Generator) -> Places:
        """Return a walk from each of some nodes, a row each."""
        walk = np.empty((len(begin), LENGTH), np.int64)
        walk[:, 0] = begin
        before = np.full(len(begin), _NOWHERE)
        for step in range(1, LENGTH):
            walk[:, step] = self._next(before, walk[:, step - 1], random)
            before = walk[:, step - 1]
        return walk

    def _next(self, before: Places, at: Places, random: np.random.Generator) -> Places:
        """Draw by weight, and again until what p and q say of the way accepts it."""
        chosen = np.empty_like(at)
        waiting = np.arange(len(at))
        while len(waiting):
            here = at[waiting]
            low, high = self.until[self.start[here]], self.until[self.start[here + 1]]
            drawn = low + random.random(len(here)) * (high - low)
            edge = np.searchsorted(self.until, drawn, side="right") - 1
            edge = np.clip(edge, self.start[here], self.start[here + 1] - 1)
            there = self.target[edge]
            accepted = random.random(len(here)) * self._most < self._bias(before[waiting], there)
            chosen[waiting[accepted]] = there[accepted]
            waiting = waiting[~accepted]
        return chosen

    def _bias(self, before: Places, there: Places) -> npt.NDArray[np.float64]:
        wanted = before * self.n + there
        place = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        bias = np.where(self.key[place] == wanted, 1.0, self._away)
        bias[there == before] = self._back
        bias[before == _NOWHERE] = self._most
        return bias


def _met(walks: Places, n: int) -> Any:
    """Return how often nodes occur within a window of each other, both ways."""
    from scipy.sparse import coo_array, csr_array

    apart = range(1, WINDOW + 1)
    one = np.concatenate([walks[:, :-steps].ravel() for steps in apart]).astype(np.int32)
    two = np.concatenate([walks[:, steps:].ravel() for steps in apart]).astype(np.int32)
    met = csr_array(coo_array((np.ones(len(one), np.float32), (one, two)), shape=(n, n)))
    return met + met.T


def _means(vectors: npt.NDArray[np.float32], k: int, seed: int) -> npt.NDArray[np.integer]:
    from sklearn.cluster import KMeans

    return KMeans(k, random_state=seed % 2**32).fit_predict(vectors)
