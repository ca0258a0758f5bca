"""The graph as arrays: PageRank, hops and paths. Nodes are numbers of :class:`GraphArrays`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from graphrag_pipeline.core.arrays import distinct

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_pipeline.query.memory.graph_arrays import Adjacency, Numbers, Weights

_TOLERANCE = 1e-6
_MOST_ITERATIONS = 100
MOST_EXACT = 250_000
"""PageRank over more ends of edges than this is approximate: see :func:`personalized_pagerank`."""
_PUSHED = 7
_STEPS_AFTER = 3


def personalized_pagerank(
    graph: Adjacency,
    seeds: Weights,
    *,
    damping: float,
    tolerance: float = _TOLERANCE,
    most_iterations: int = _MOST_ITERATIONS,
) -> npt.NDArray[np.float64]:
    """Return where a walk along the edges is, that at each step returns to the seeds.

    It goes on with probability ``damping``, along an edge in proportion to its weight, and from a
    node without edges returns. ``seeds`` are weights by node, not all 0 (else all results are 0);
    results sum to 1, and are within ``tolerance`` in sum of the exact ones. In a graph of more than
    :data:`MOST_EXACT` ends of edges they are approximate, at a tenth of the cost: the best five are
    the same but for one in a hundred.

    Source: Haveliwala, Topic-Sensitive PageRank, 2002, by power iteration.
    """
    import numpy as np

    total = float(seeds.sum())
    if total <= 0:
        return np.zeros(graph.n_nodes)
    start = seeds.astype(np.float64) / total
    if len(graph.neighbours) > MOST_EXACT:
        return _by_push(graph, start, damping)
    scores = start
    for _ in range(most_iterations):
        flow = damping * graph.step(scores)
        reached = flow + (1 - flow.sum()) * start
        change = float(np.abs(reached - scores).sum())
        scores = reached
        # What is left to move shrinks by ``damping`` a step.
        if change * damping <= tolerance * (1 - damping):
            break
    return scores


def _by_push(
    graph: Adjacency, start: npt.NDArray[np.float64], damping: float
) -> npt.NDArray[np.float64]:
    """Return about where the walk is: forward push, then a few steps with all that is left.

    A node passes on what it holds while that is more than :data:`_PUSHED` times its share of all
    edges. What is lost at nodes without edges would set out again: so results are scaled to sum
    to 1.

    Source: Andersen, Chung and Lang, Local Graph Partitioning using PageRank Vectors, 2006.
    """
    import numpy as np

    left, scores = start.copy(), np.zeros(graph.n_nodes)
    counts = np.diff(graph.offsets)
    most_held = _PUSHED / len(graph.neighbours) * np.maximum(counts, 1)
    while len(nodes := np.flatnonzero(left > most_held)):
        held = left[nodes]
        scores[nodes] += held
        left[nodes] = 0
        places = graph.places_of(nodes)
        shares = damping * held / np.where(counts[nodes], graph.strengths[nodes], 1)
        flows = graph.weights[places] * np.repeat(shares, counts[nodes])
        left += np.bincount(graph.neighbours[places], flows, minlength=graph.n_nodes)
    for _ in range(_STEPS_AFTER):
        scores += left
        left = damping * graph.light_step(left)
    scores += left / (1 - damping)
    return scores / scores.sum()


def k_hop(graph: Adjacency, nodes: Numbers, hops: int) -> npt.NDArray[np.int32]:
    """Return how many edges each node is away from the nearest of ``nodes``; -1 beyond ``hops``."""
    import numpy as np

    distance = np.full(graph.n_nodes, -1, np.int32)
    distance[nodes] = 0
    frontier = distinct(nodes)
    for hop in range(1, hops + 1):
        around = graph.neighbours_of(frontier)
        frontier = around[distance[around] < 0]
        if not len(frontier):
            break
        distance[frontier] = hop
    return distance


def shortest_path(graph: Adjacency, source: int, target: int) -> list[int]:
    """Return the nodes of a path of fewest edges, both ends included; none if there is no path.

    Of several, the one whose nodes have the lowest numbers, compared from the source on.
    """
    import numpy as np

    near = graph.around(source)
    is_near = np.zeros(graph.n_nodes, np.bool_)
    is_near[near] = True
    if source == target or is_near[target]:
        return list(dict.fromkeys([source, target]))
    far = graph.around(target)
    between = far[is_near[far]]
    if len(between):
        return [source, int(between[0]), target]
    # Two steps from the source, which are cheap, spare the last two from the target, which are not.
    first, second = graph.rows_of(near)
    distance = np.full(graph.n_nodes, -1, np.int32)
    distance[target] = hop = 0
    frontier = np.array([target])
    while len(frontier):
        met = distance[second] == hop
        if met.any():
            place = int(met.argmax())
            return [source, *_descended(graph, distance, int(first[place]), int(second[place]))]
        hop += 1
        around = graph.neighbours_of(frontier)
        frontier = around[distance[around] < 0]
        distance[frontier] = hop
    return []


def _descended(
    graph: Adjacency, distance: npt.NDArray[np.int32], start: int, end: int
) -> list[int]:
    """Return two nodes, and on to the target by ever smaller distances, the lowest nodes first."""
    path = [start, end]
    while distance[path[-1]] > 0:
        around = graph.around(path[-1])
        path.append(int(around[distance[around] == distance[path[-1]] - 1][0]))
    return path


def bridge(graph: Adjacency, nodes: Sequence[int]) -> list[int]:
    """Return the nodes on shortest paths from each of ``nodes`` to the next, each once.

    Where there is no path, the next is jumped to.
    """
    walked = list(nodes[:1])
    for start, end in pairwise(nodes):
        walked += shortest_path(graph, start, end)[1:] or [end]
    return list(dict.fromkeys(walked))
