"""C-HNSW: each layer entered where the one above leads, and what that saves."""

import dataclasses

import faiss
import numpy as np
import pytest

from graphrag_pipeline.core.errors import StorageError
from graphrag_pipeline.systems.archrag.chnsw import (
    SCANNED,
    CommunityHnsw,
    layer_graph,
)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def around(random, centres, n, spread):
    """Vectors around those of the layer above."""
    chosen = centres[random.integers(0, len(centres), n)]
    return unit(chosen + spread * unit(random.standard_normal(chosen.shape)))


def named(layers):
    return [([f"{i}:{n}" for n in range(len(rows))], rows) for i, rows in enumerate(layers)]


@pytest.fixture(scope="module")
def layers():
    random = np.random.default_rng(5)
    vectors = [unit(random.standard_normal((6, 24)))]
    for n in (40, 300, 1500):
        vectors.append(around(random, vectors[-1], n, 0.5))
    return vectors[::-1]


@pytest.fixture(scope="module")
def index(layers):
    return CommunityHnsw.build(named(layers))


@pytest.fixture(scope="module")
def queries(layers):
    return around(np.random.default_rng(6), layers[0], 100, 0.4)


def distances(search):
    """How many distances FAISS measures in a search, and what it finds."""
    stats = faiss.cvar.hnsw_stats
    stats.reset()
    found = search()
    return stats.ndis, found


def recall(found, layers, queries):
    exact = [np.argsort(-(queries @ rows.T), axis=1)[:, : n.places.shape[1]]
             for n, rows in zip(found, layers, strict=True)]  # fmt: skip
    return [
        (nearest.places[:, :, None] == truth[:, None, :]).any(axis=2).sum() / truth.size
        for nearest, truth in zip(found, exact, strict=True)
    ]


def test_every_layer_gives_its_nearest_nodes_with_their_inner_products(index, layers, queries):
    found = index.search(queries, 5)
    assert [n.places.shape for n in found] == [(100, 5)] * 4
    assert min(recall(found, layers, queries)) > 0.98
    for nearest, rows in zip(found, layers, strict=True):
        products = np.take_along_axis(queries @ rows.T, nearest.places, axis=1)
        assert np.allclose(nearest.scores, products, atol=1e-5)
        assert (np.diff(nearest.scores, axis=1) <= 0).all()


def test_a_small_layer_is_compared_whole_and_misses_nothing(index, layers, queries):
    found = index.search(queries, 5, ef=5)
    small = [n for n, rows in enumerate(layers) if len(rows) <= SCANNED]
    assert small == [2, 3]
    assert [recall(found, layers, queries)[n] for n in small] == [1, 1]
    assert (
        distances(lambda: index.search(queries, 5, ef=5))[0]
        < distances(lambda: list(index.downwards(queries, 5, 5, scanned=0)))[0]
    )


def test_a_node_leads_to_its_nearest_in_the_layer_below(index, layers):
    stored = index.stored()
    assert stored[0].down == b""
    for upper in (1, 2, 3):
        down = np.frombuffer(stored[upper].down, np.int32)
        nearest = (layers[upper] @ layers[upper - 1].T).argmax(axis=1)
        assert (down == nearest).mean() > 0.98


def test_to_enter_where_the_layer_above_leads_takes_fewer_distances(index, layers, queries):
    aimless = [np.zeros_like(down) for down in index._down]
    blind = CommunityHnsw(index.ids, index._graphs, aimless)
    with_links, found = distances(lambda: index.search(queries, 5, ef=10))
    without, by_chance = distances(lambda: blind.search(queries, 5, ef=10))
    assert with_links < 0.9 * without
    assert min(*recall(found, layers, queries), *recall(by_chance, layers, queries)) > 0.95


def test_a_node_is_in_one_layer_only(index):
    for ids, graph in zip(index.ids, index._graphs, strict=True):
        assert (faiss.vector_to_array(graph.hnsw.levels) == 1).all()
        assert graph.ntotal == len(ids)


def test_equal_rows_give_equal_bytes_whatever_the_threads_and_come_back_as_they_were(
    index, layers, queries
):
    threads = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(1)
        again = CommunityHnsw.build(named(layers)).stored()
    finally:
        faiss.omp_set_num_threads(threads)
    stored = index.stored()
    assert again == stored
    assert sum(len(layer.links) for layer in stored) < 0.4 * 1e3 * sum(map(len, layers))
    restored = CommunityHnsw.restored(stored, named(layers))
    for one, two in zip(restored.search(queries, 5), index.search(queries, 5), strict=True):
        assert (one.places == two.places).all()
        assert (one.scores == two.scores).all()
    assert restored.stored() == stored


@pytest.mark.parametrize("sizes", [[3, 0, 2], [1], [5, 1], [0], []])
def test_layers_may_be_tiny_or_empty(sizes):
    random = np.random.default_rng(1)
    rows = [unit(random.standard_normal((n, 8))) for n in sizes]
    index = CommunityHnsw.build(named(rows))
    index = CommunityHnsw.restored(index.stored(), named(rows))
    found = index.search(unit(random.standard_normal((2, 8))), 5)
    for n, nearest in zip(sizes, found, strict=True):
        assert sorted(nearest.places[0].tolist()) == [-1] * (5 - n) + list(range(n))


def test_an_index_of_other_rows_or_a_damaged_one_is_refused(index, layers):
    stored, rows = index.stored(), named(layers)
    with pytest.raises(StorageError, match="of other rows"):
        CommunityHnsw.restored(stored, rows[:3])
    with pytest.raises(StorageError, match="of other rows"):
        CommunityHnsw.restored(stored, [(rows[0][0], rows[0][1][1:]), *rows[1:]])
    broken = dataclasses.replace(stored[0], links=stored[0].links[:200])
    with pytest.raises(StorageError, match="damaged"):
        CommunityHnsw.restored([broken, *stored[1:]], rows)


def test_a_layers_graph_is_an_hnsw_of_the_papers_numbers(layers):
    graph = layer_graph(layers[3])
    assert graph.hnsw.nb_neighbors(1) == 32
    assert graph.hnsw.efConstruction == 100
    assert graph.metric_type == faiss.METRIC_INNER_PRODUCT
