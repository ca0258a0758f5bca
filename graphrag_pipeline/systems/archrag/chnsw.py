"""C-HNSW: one index over entities and communities, searched layer by layer from the top.

Layer 0 holds the entities, layer i the communities of level i; a node is in one layer only. Nodes
of a layer are linked as in the lowest level of an HNSW, and each node above to its nearest in the
layer below. A search goes from the top layer down and sets out, in each layer, from where the best
node found in the one above leads, so that no layer is searched from nothing.

Source: Wang et al., 2025 (ArchRAG), "C-HNSW index", Algorithm 2, and the appendix. ``LINKS``,
``EF_CONSTRUCTION``, ``EF_SEARCH`` and the inner product are the paper's. Algorithm 3 inserts nodes
from the top layer down and keeps, as the link to the layer below, the nearest node that insertion
came upon; here FAISS builds each layer and one search for all nodes of a layer finds these links.
A random node of the top layer is the entry in the paper; here it is the first. A layer
of at most ``SCANNED`` nodes is compared whole: it costs less than following its links, and misses
nothing. ``python -m benchmarks chnsw`` has what that is worth at equal recall, and what several
entries and coarser numbers would be.

FAISS builds the same graph whatever the number of threads, so the same vectors give the same bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.core.identity import make_id

LINKS = 32
"""M: the links FAISS chooses for a new node; in its lowest level a node may have twice as many."""
EF_CONSTRUCTION = 100
"""How many candidates are kept while a node is linked."""
EF_SEARCH = 100
"""How many candidates are kept while a layer is searched."""
SCANNED = 256
"""The largest layer, in nodes, that is compared whole instead of searched by its links."""

Vectors = npt.NDArray[np.float32]
Places = npt.NDArray[np.int32]
Rows = tuple[Sequence[str], Vectors]
"""A layer: the ids of its nodes and their vectors, a row each."""


@dataclass(frozen=True)
class StoredLayer:
    """A layer as it is kept: everything but the vectors, which have a store of their own.

    ``links`` is FAISS's form of the graph; ``down``, int32 in bytes, the place of each node's
    nearest in the next layer below that holds anything; ``ids_hash`` tells whose links these are.
    """

    n_nodes: int
    ids_hash: str
    links: bytes
    down: bytes


@dataclass(frozen=True)
class Nearest:
    """Hits of a search in one layer, best first: for each query (a row) the places and scores.

    Where a layer holds fewer than were asked for, the rest of a row is place -1.
    """

    places: Places
    scores: Vectors


class CommunityHnsw:
    """The index. Layer 0 is the lowest; a layer may be empty."""

    def __init__(
        self, ids: Sequence[Sequence[str]], graphs: Sequence[Any], down: Sequence[Places]
    ) -> None:
        self.ids = ids
        self._graphs = graphs
        self._down = down

    @classmethod
    def build(cls, layers: Sequence[Rows]) -> CommunityHnsw:
        """Return the index of these layers, the lowest first; equal rows give an equal index."""
        return cls.joined([ids for ids, _ in layers], [layer_graph(rows) for _, rows in layers])

    @classmethod
    def joined(cls, ids: Sequence[Sequence[str]], graphs: Sequence[Any]) -> CommunityHnsw:
        """Return the index made of :func:`layer_graph` of each layer, which it takes over."""
        down: list[Places] = []
        for number, graph in enumerate(graphs):
            below = next((g for g in reversed(graphs[:number]) if g.ntotal), None)
            down.append(_nearest_of_each(graph, below))
        for graph in graphs:
            _flatten(graph)
        return cls(ids, graphs, down)

    @classmethod
    def restored(cls, rows: Sequence[StoredLayer], layers: Sequence[Rows]) -> CommunityHnsw:
        """Return the index that was stored, of the rows it was built from.

        Raises StorageError where it was built from other rows, or cannot be read.
        """
        if [layer.ids_hash for layer in rows] != [_ids_hash(ids) for ids, _ in layers]:
            raise StorageError("the C-HNSW is of other rows than these: index again")
        graphs = [
            _with_vectors(layer.links, vectors)
            for layer, (_, vectors) in zip(rows, layers, strict=True)
        ]
        down = [np.frombuffer(layer.down, np.int32) for layer in rows]
        return cls([ids for ids, _ in layers], graphs, down)

    def stored(self) -> list[StoredLayer]:
        """Return the layers to keep, the lowest first."""
        return [
            StoredLayer(len(ids), _ids_hash(ids), _links(graph), down.tobytes())
            for ids, graph, down in zip(self.ids, self._graphs, self._down, strict=True)
        ]

    def search(self, queries: Vectors, k: int, ef: int = EF_SEARCH) -> list[Nearest]:
        """Return the ``k`` nodes of each layer with the highest inner product (Algorithm 2).

        ``queries`` has a row each, shape (n, dimensions); the lowest layer comes first. ``ef`` is
        how many candidates are kept, never fewer than ``k``.
        """
        return list(self.downwards(queries, k, ef))[::-1]

    def downwards(
        self,
        queries: Vectors,
        k: int,
        ef: int = EF_SEARCH,
        *,
        scanned: int = SCANNED,
    ) -> Iterator[Nearest]:
        """Yield what :meth:`search` returns while it goes down: the top layer first.

        Layers of at most ``scanned`` nodes are compared whole (the paper: none).
        """
        queries = np.ascontiguousarray(queries, np.float32)
        entry = np.zeros(len(queries), np.int32)
        for graph, down in zip(reversed(self._graphs), reversed(self._down), strict=True):
            scan = graph.ntotal <= scanned
            hits = _scan(graph, queries, k) if scan else _follow(graph, queries, entry, k, ef)
            yield hits
            if graph.ntotal and len(down):
                entry = down[hits.places[:, 0]]


def layer_graph(
    vectors: Vectors, links: int = LINKS, ef_construction: int = EF_CONSTRUCTION
) -> Any:
    """Return an ordinary HNSW over the rows of a layer, by FAISS and inner product."""
    faiss = _faiss()

    vectors = np.ascontiguousarray(vectors, np.float32)
    graph = faiss.IndexHNSWFlat(vectors.shape[1], links, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = ef_construction
    if len(vectors):
        graph.add(vectors)
    return graph


def _nearest_of_each(graph: Any, below: Any | None) -> Places:
    """Return the place, in the layer below, of what is nearest to each node of a layer."""
    if below is None or not graph.ntotal:
        return np.empty(0, np.int32)
    faiss = _faiss()

    wide = faiss.SearchParametersHNSW(efSearch=EF_SEARCH)
    return below.search(_vectors_of(graph), 1, params=wide)[1][:, 0].astype(np.int32)


def _flatten(graph: Any) -> None:
    """Leave of an HNSW its lowest level only: what leads into it now is the layer above."""
    faiss = _faiss()

    hnsw, n = graph.hnsw, graph.ntotal
    if not n:
        return
    width = hnsw.nb_neighbors(0)
    starts = faiss.vector_to_array(hnsw.offsets)[:-1].astype(np.int64)
    lowest = faiss.vector_to_array(hnsw.neighbors)[starts[:, None] + np.arange(width)]
    faiss.copy_array_to_vector(lowest.ravel(), hnsw.neighbors)
    faiss.copy_array_to_vector(np.arange(n + 1, dtype=np.uint64) * width, hnsw.offsets)
    faiss.copy_array_to_vector(np.ones(n, np.int32), hnsw.levels)
    hnsw.max_level, hnsw.entry_point = 0, 0


def _scan(graph: Any, queries: Vectors, k: int) -> Nearest:
    """Compare a layer whole."""
    faiss = _faiss()

    if not len(queries) or not graph.ntotal:
        n = len(queries)
        return Nearest(np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32))
    with _one_thread():
        scores, places = faiss.knn(queries, _vectors_of(graph), k, faiss.METRIC_INNER_PRODUCT)
    scores[places < 0] = -np.inf
    return Nearest(places.astype(np.int32), scores)


def _follow(graph: Any, queries: Vectors, entry: Places, k: int, ef: int) -> Nearest:
    """Follow a layer's links from a place for each query."""
    near = np.einsum("ij,ij->i", queries, _vectors_of(graph)[entry])
    return follow_links(graph, queries, entry[:, None], near[:, None], k, ef)


def follow_links(
    graph: Any, queries: Vectors, entries: Places, near: Vectors, k: int, ef: int
) -> Nearest:
    """Search one level of links by FAISS, from a row of places for each query (-1: none).

    ``near`` has the scores of ``entries``.
    """
    faiss = _faiss()

    n, from_all = len(queries), 2
    places, scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, np.float32)
    if n:
        arrays = (queries, np.ascontiguousarray(entries), near, scores, places)
        query_, entry_, near_, scores_, places_ = (faiss.swig_ptr(array) for array in arrays)
        wide = faiss.SearchParametersHNSW(efSearch=max(ef, k))
        n_each = entries.shape[1]
        with _one_thread():
            graph.search_level_0(
                n, query_, k, entry_, near_, scores_, places_, n_each, from_all, wide
            )
    return Nearest(places.astype(np.int32), scores)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let FAISS search in the calling thread: for one query more threads only wait."""
    faiss = _faiss()
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _vectors_of(graph: Any) -> Vectors:
    """Return the vectors of a graph where FAISS has them, one a row."""
    faiss = _faiss()

    rows = faiss.rev_swig_ptr(faiss.downcast_index(graph.storage).get_xb(), graph.ntotal * graph.d)
    return rows.reshape(graph.ntotal, graph.d)


def _links(graph: Any) -> bytes:
    faiss = _faiss()

    return faiss.serialize_index(graph, faiss.IO_FLAG_SKIP_STORAGE).tobytes()


def _with_vectors(links: bytes, vectors: Vectors) -> Any:
    faiss = _faiss()

    try:
        graph = faiss.deserialize_index(np.frombuffer(links, np.uint8))
    except RuntimeError as error:
        raise StorageError("the C-HNSW is damaged: index again") from error
    if graph.ntotal != len(vectors) or (len(vectors) and graph.d != vectors.shape[1]):
        raise StorageError("the C-HNSW is of other rows than these: index again")
    storage = faiss.IndexFlatIP(graph.d)
    if len(vectors):
        storage.add(np.ascontiguousarray(vectors, np.float32))
    storage.this.disown()
    graph.storage, graph.own_fields = storage, True
    return graph


def _ids_hash(ids: Sequence[str]) -> str:
    return make_id("layer", *ids)


def _faiss() -> Any:
    """Return FAISS, whose own types do not tell of all that it has; it is slow to import."""
    import faiss

    return faiss
