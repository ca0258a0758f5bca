"""C-HNSW against one HNSW for each layer: the same graphs, vectors, M and ef.

ArchRAG (Wang et al., 2025, appendix) reports C-HNSW 3.5 times as fast on average, 5.4 times at
best, at recall .55 against .61: 11 layers, 10,000,000 nodes in the lowest, each size 3 to 4 times
that of the layer above, random vectors of 3,072 numbers, 200 queries for 5 nodes, M 32, ef 100.

Here the sizes shrink alike. ``clustered`` vectors lie around that of the node's parent, as those of
communities and their members do, and questions around nodes; ``random`` are the paper's. Both sides
search one and the same graph in each layer: the base from the top of its HNSW, C-HNSW from where
the layer above leads. One thread searches; all of them build. From 1,000,000 nodes on vectors have
32 numbers, M is 16 and efConstruction 20, so that building takes minutes.

Run as ``python -m benchmarks chnsw``, or ``python -m benchmarks.chnsw --sizes 20000 --random``.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.structures.archrag.chnsw import (
    EF_CONSTRUCTION,
    LINKS,
    CommunityHnsw,
    Vectors,
    layer_graph,
)

SIZES = (100_000, 1_000_000)
_SHRINKS_BY = 3.5
_SMALLEST = 74
_K = 5
_QUERIES = 200
_EFS = (10, 25, 50, 100, 200)
_REPEATS = 3
_SPREAD = 0.5
_LARGE = 1_000_000
_SEED = 17


@dataclass(frozen=True)
class Side:
    """One side's recall@5, and ms and distances a query, each a number for every layer."""

    recall: Sequence[float]
    milliseconds: Sequence[float]
    distances: Sequence[float]


def main(arguments: list[str] | None = None) -> None:
    """Print a table for each size and kind of vectors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--random", action="store_true", help="random vectors, too")
    given = parser.parse_args(arguments)
    for size in given.sizes:
        for kind in ("clustered", *(["random"] if given.random else [])):
            print(measure(size, kind), flush=True)


def measure(size: int, kind: str) -> str:
    """Build layers with ``size`` nodes in the lowest and return both sides at several ef."""
    import faiss

    large = size >= _LARGE
    dimensions, links, ef_construction = (32, 16, 20) if large else (256, LINKS, EF_CONSTRUCTION)
    layers = layered(size, dimensions, kind)
    began = time.perf_counter()
    graphs = [layer_graph(rows, links, ef_construction) for rows in layers]
    seconds = time.perf_counter() - began
    queries = _questions(layers[0], kind)
    truth = [faiss.knn(queries, rows, _K, faiss.METRIC_INNER_PRODUCT)[1] for rows in layers]
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    base = [_measured(_separately(graphs, queries, ef), truth) for ef in _EFS]
    index = CommunityHnsw.joined([[str(n) for n in range(len(rows))] for rows in layers], graphs)
    ours = [_measured(_together(index, queries, ef), truth) for ef in _EFS]
    faiss.omp_set_num_threads(threads)
    head = (
        f"{size:,} {kind} vectors of {dimensions}, {len(layers)} layers, M {links}, efConstruction "
        f"{ef_construction}; built in {seconds:.0f} s"
    )
    return "\n".join([head, *_table(base, ours)])


def layered(size: int, dimensions: int, kind: str) -> list[Vectors]:
    """Return the vectors of each layer, the lowest first; a row's parent is above it."""
    random = np.random.default_rng(_SEED)
    sizes = [size]
    while sizes[-1] / _SHRINKS_BY >= _SMALLEST:
        sizes.append(int(sizes[-1] / _SHRINKS_BY))
    layers = [_unit(random.standard_normal((sizes[-1], dimensions), np.float32))]
    for n in reversed(sizes[:-1]):
        rows = random.standard_normal((n, dimensions), np.float32)
        if kind == "clustered":
            parents = random.integers(0, len(layers[-1]), n)
            rows = layers[-1][parents] + _SPREAD * _unit(rows)
        layers.append(_unit(rows))
    return layers[::-1]


def _questions(lowest: Vectors, kind: str) -> Vectors:
    random = np.random.default_rng(_SEED + 1)
    noise = _unit(random.standard_normal((_QUERIES, lowest.shape[1]), np.float32))
    if kind == "random":
        return noise
    return _unit(lowest[random.integers(0, len(lowest), _QUERIES)] + _SPREAD * noise)


def _unit(rows: npt.NDArray[Any]) -> Vectors:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


Search = Callable[[], Iterable[npt.NDArray[np.integer[Any]]]]


def _separately(graphs: Sequence[Any], queries: Vectors, ef: int) -> Search:
    faiss: Any = importlib.import_module("faiss")
    wide = faiss.SearchParametersHNSW(efSearch=ef)
    return lambda: (graph.search(queries, _K, params=wide)[1] for graph in reversed(graphs))


def _together(index: CommunityHnsw, queries: Vectors, ef: int) -> Search:
    return lambda: (found.places for found in index.downwards(queries, _K, ef))


def _measured(search: Search, truth: Sequence[npt.NDArray[np.int64]]) -> Side:
    """Search a few times, from the top layer down, and keep the best CPU time of each layer."""
    faiss: Any = importlib.import_module("faiss")
    stats = faiss.cvar.hnsw_stats
    times = np.full((_REPEATS, len(truth)), np.inf)
    recall, distances = np.zeros(len(truth)), np.zeros(len(truth))
    for repeat in range(_REPEATS):
        layers, found = len(truth), iter(search())
        while layers:
            layers -= 1
            stats.reset()
            began = time.thread_time()
            places = next(found)
            times[repeat, layers] = time.thread_time() - began
            distances[layers] = stats.ndis / _QUERIES
            same = places[:, :, None] == truth[layers][:, None, :]
            recall[layers] = same.any(axis=1).mean()
    return Side(recall.tolist(), (times.min(axis=0) / _QUERIES * 1e3).tolist(), distances.tolist())


def _table(base: Sequence[Side], ours: Sequence[Side]) -> list[str]:
    lines = ["   ef   HNSW each: recall    ms distances   C-HNSW: recall    ms distances   faster"]
    for ef, one, two in zip(_EFS, base, ours, strict=True):
        faster = [a / b for a, b in zip(one.milliseconds, two.milliseconds, strict=True)]
        lines.append(
            f"{ef:5}{np.mean(one.recall):20.3f}{sum(one.milliseconds):6.2f}"
            f"{sum(one.distances):10.0f}{np.mean(two.recall):17.3f}{sum(two.milliseconds):6.2f}"
            f"{sum(two.distances):10.0f}   x{sum(one.milliseconds) / sum(two.milliseconds):.2f}, "
            f"mean of layers x{np.mean(faster):.2f}, best x{max(faster):.2f}; lowest layer: "
            f"recall {one.recall[0]:.3f} and {two.recall[0]:.3f}"
        )
    return lines


if __name__ == "__main__":
    main()
