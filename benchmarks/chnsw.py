"""C-HNSW against one HNSW for each layer: the same graphs, vectors and M, at equal recall.

ArchRAG (Wang et al., 2025, appendix) reports C-HNSW 3.5 times as fast on average, 5.4 times at
best, at recall .55 against .61: 11 layers, 10,000,000 nodes in the lowest, each size 3 to 4 times
that of the layer above, random vectors of 3,072 numbers, 200 queries for 5 nodes, M 32, ef 100.
What the paper prints compares equal ef, and what its authors' script does ef 100 with ef 16; both
are shown. What counts is time at equal recall, read off each curve: several entries into a layer,
small layers compared whole, and quantised distances that are made exact at the end are measured
one by one, and whatever one HNSW for each layer can have as well, it has in a row of its own.

Here the sizes shrink alike. ``clustered`` vectors lie around that of the node's parent, as those of
communities and their members do, and questions around nodes; ``random`` are the paper's. All rows
search one and the same graph in each layer: the base from the top of its HNSW, C-HNSW from where
the layer above leads. One thread searches; all of them build. From 1,000,000 nodes on vectors have
32 numbers, M is 16 and efConstruction 20, so that building takes minutes.

Run as ``python -m benchmarks chnsw``, or ``python -m benchmarks.chnsw --sizes 20000 --random``.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.systems.archrag.chnsw import (
    EF_CONSTRUCTION,
    LINKS,
    SCANNED,
    CommunityHnsw,
    Places,
    Vectors,
    follow_links,
    layer_graph,
)

SIZES = (100_000, 1_000_000)
_SHRINKS_BY = 3.5
_SMALLEST = 74
_K = 5
_QUERIES = 200
_EFS = {
    "clustered": (5, 6, 8, 10, 12, 16, 20, 25, 100),
    "random": (16, 100, 400, 800, 1600),
}
_PAPER_EF, _SCRIPT_EF = 100, 16
_ENTRIES = 3
_RECALLS = (0.95, 0.99)
_REPEATS = 7
_SPREAD = 0.5
_LARGE = 1_000_000
_SEED = 17


@dataclass(frozen=True)
class Point:
    """A search of all layers: mean recall@5, the lowest layer's; CPU ms and distances a query."""

    ef: int
    recall: float
    lowest: float
    milliseconds: float
    distances: float


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
    efs = sorted({*_EFS[kind], _SCRIPT_EF, _PAPER_EF})
    one_each = {
        "one HNSW for each layer": _separately(graphs, layers, queries, 0),
        f"  and layers of {SCANNED} compared whole": _separately(graphs, layers, queries, SCANNED),
    }
    curves = {name: _curve(search, efs, layers, truth) for name, search in one_each.items()}
    index = CommunityHnsw.joined([[str(n) for n in range(len(rows))] for rows in layers], graphs)
    together = {
        "C-HNSW as in the paper": _together(index, queries, 0),
        f"  layers of {SCANNED} compared whole (ours)": _together(index, queries, SCANNED),
        f"  ours, {_ENTRIES} entries": _descending(index, layers, queries, _ENTRIES),
        "  ours, 16 bits a number": _descending(index, layers, queries, 1, "QT_fp16"),
        "  ours, 8 bits a number": _descending(index, layers, queries, 1, "QT_8bit"),
    }
    curves |= {name: _curve(search, efs, layers, truth) for name, search in together.items()}
    faiss.omp_set_num_threads(threads)
    head = (
        f"{size:,} {kind} vectors of {dimensions}, {len(layers)} layers, M {links}, efConstruction "
        f"{ef_construction}; built in {seconds:.0f} s"
    )
    return "\n".join([head, *_papers(curves), *_equal_recall(curves)])


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


Search = Callable[[int], Iterable[npt.NDArray[np.integer[Any]]]]
"""Of ef: yields the places found in each layer, the top one first."""


def _separately(
    graphs: Sequence[Any], layers: Sequence[Vectors], queries: Vectors, scanned: int
) -> Search:
    faiss: Any = importlib.import_module("faiss")

    def search(ef: int) -> Iterable[npt.NDArray[np.integer[Any]]]:
        wide = faiss.SearchParametersHNSW(efSearch=ef)
        for graph, rows in zip(reversed(graphs), reversed(layers), strict=True):
            if len(rows) <= scanned:
                yield faiss.knn(queries, rows, _K, faiss.METRIC_INNER_PRODUCT)[1]
            else:
                yield graph.search(queries, _K, params=wide)[1]

    return search


def _together(index: CommunityHnsw, queries: Vectors, scanned: int) -> Search:
    return lambda ef: (found.places for found in index.downwards(queries, _K, ef, scanned=scanned))


def _descending(
    index: CommunityHnsw,
    layers: Sequence[Vectors],
    queries: Vectors,
    entries: int,
    kind: str = "",
) -> Search:
    """Return our search with several entries, or by coarser numbers made exact at the end."""
    faiss: Any = importlib.import_module("faiss")
    coarse = [_coarse(rows, kind) for rows in layers] if kind else []

    def search(ef: int) -> Iterable[npt.NDArray[np.integer[Any]]]:
        n_found = max(_K, min(2 * _K, ef)) if kind else _K
        ways = np.zeros((len(queries), 1), np.int32)
        for number in reversed(range(len(layers))):
            graph, rows = index._graphs[number], layers[number]
            if len(rows) <= SCANNED:
                best = faiss.knn(queries, rows, _K, faiss.METRIC_INNER_PRODUCT)[1]
            else:
                near = np.einsum("id,ijd->ij", queries, rows[np.maximum(ways, 0)])
                exact = graph.storage
                graph.storage = coarse[number] if kind else exact
                try:
                    found = follow_links(graph, queries, ways, near, n_found, ef).places
                finally:
                    graph.storage = exact
                best = _exactly(queries, rows, found) if kind else found
            yield best
            if number:
                ways = _ways_down(index._down[number], best[:, :entries].astype(np.int32))

    return search


def _coarse(rows: Vectors, kind: str) -> Any:
    faiss: Any = importlib.import_module("faiss")
    storage = faiss.IndexScalarQuantizer(
        rows.shape[1], getattr(faiss.ScalarQuantizer, kind), faiss.METRIC_INNER_PRODUCT
    )
    storage.train(rows)
    storage.add(rows)
    return storage


def _exactly(queries: Vectors, rows: Vectors, found: Places) -> Places:
    scores = np.einsum("id,ijd->ij", queries, rows[found])
    return np.take_along_axis(found, np.argsort(-scores, axis=1)[:, :_K], axis=1)


def _ways_down(down: Places, best: Places) -> Places:
    """Return where the best of a layer lead, each place once a row, and -1 for the rest of it."""
    ways = np.sort(down[best])[:, ::-1]
    ways[:, 1:][ways[:, 1:] == ways[:, :-1]] = -1
    return np.ascontiguousarray(np.sort(ways)[:, ::-1], np.int32)


def _curve(
    search: Search,
    efs: Sequence[int],
    layers: Sequence[Vectors],
    truth: Sequence[npt.NDArray[np.int64]],
) -> list[Point]:
    """Search at each ef a few times and keep the median of CPU times."""
    faiss: Any = importlib.import_module("faiss")
    stats = faiss.cvar.hnsw_stats
    points = []
    for ef in efs:
        times, found, distances = [], [], 0.0
        for _ in range(_REPEATS):
            stats.reset()
            began = time.thread_time()
            found = list(search(ef))[::-1]
            times.append(time.thread_time() - began)
            distances = stats.ndis / _QUERIES
        recall = [
            (places[:, :, None] == exact[:, None, :]).any(axis=1).mean()
            for places, exact in zip(found, truth, strict=True)
        ]
        milliseconds = float(np.median(times)) / _QUERIES * 1e3
        points.append(Point(ef, float(np.mean(recall)), float(recall[0]), milliseconds, distances))
    return points


def _papers(curves: Mapping[str, Sequence[Point]]) -> list[str]:
    """Return the paper's comparison, at equal ef, and that of its authors' script."""
    base, ours = (
        {point.ef: point for point in curves[name]}
        for name in ("one HNSW for each layer", "C-HNSW as in the paper")
    )
    lines = []
    for what, ef in (("as printed", _PAPER_EF), ("as its script runs", _SCRIPT_EF)):
        one, two = base[_PAPER_EF], ours[ef]
        lines.append(
            f"  the paper {what}: ef {one.ef} against {two.ef}, recall {one.recall:.3f} against "
            f"{two.recall:.3f}, x{one.milliseconds / two.milliseconds:.2f}, distances "
            f"x{one.distances / two.distances:.2f}"
        )
    return lines


def _equal_recall(curves: Mapping[str, Sequence[Point]]) -> list[str]:
    """Return each row's ms at equal recall, and how many times as fast as the first row it is."""
    heads = "".join(f"{f'ms at recall {recall}':>22}{'faster':>8}" for recall in _RECALLS)
    lines = [f"  {'':36}{heads}   recall and lowest layer's at the smallest ef"]
    base = next(iter(curves.values()))
    for name, points in curves.items():
        cells = ""
        for recall in _RECALLS:
            took, usual = _at(points, recall), _at(base, recall)
            shown = "not reached" if took is None else f"{took:.3f}"
            faster = "-" if took is None or usual is None else f"x{usual / took:.2f}"
            cells += f"{shown:>22}{faster:>8}"
        lines.append(f"  {name:36}{cells}   {points[0].recall:.3f} {points[0].lowest:.3f}")
    return lines


def _at(points: Sequence[Point], recall: float) -> float | None:
    """Return the ms at which a curve reaches a mean recall, between two points in proportion."""
    before = points[0]
    if before.recall >= recall:
        return before.milliseconds
    for point in points[1:]:
        if point.recall >= recall:
            share = (recall - before.recall) / (point.recall - before.recall)
            return before.milliseconds + share * (point.milliseconds - before.milliseconds)
        before = point
    return None


if __name__ == "__main__":
    main()
