"""Positions: the same for the same graph, communities in discs of their own, near-linear."""

from __future__ import annotations

import time

import numpy as np
import pytest

from graphrag_pipeline.pages.layout import layout_graph


def _graph(n, seed=1):
    """A three-level hierarchy of about eight members a leaf, links mostly within, some alone."""
    rng = np.random.default_rng(seed)
    leaf = rng.permutation(n) // 8
    by_leaf = np.argsort(leaf, kind="stable")
    one = rng.integers(0, n - n // 10, 3 * n)
    far = rng.choice([4, 40, 400, n], 3 * n, p=[0.5, 0.3, 0.15, 0.05])
    two = np.clip(one + (rng.normal(0, 1, 3 * n) * far).astype(int), 0, n - n // 10 - 1)
    alone = np.isin(np.arange(n), by_leaf[n - n // 10 :])
    levels = [np.where(alone, n + np.arange(n), leaf // wide) for wide in (40, 8, 1)]
    return by_leaf[one], by_leaf[two], rng.random(3 * n) + 0.5, np.stack(levels)


@pytest.fixture(scope="module")
def graph():
    return _graph(2000)


@pytest.fixture(scope="module")
def places(graph):
    return layout_graph(2000, *graph)


def _discs(places, communities):
    """Return centre and reach of each community of at least three, by Badoiu and Clarkson."""
    for name in np.unique(communities):
        inside = places[communities == name].astype(float)
        if len(inside) >= 3:
            middle = inside.mean(axis=0)
            for step in range(2, 300):
                far = np.linalg.norm(inside - middle, axis=1).argmax()
                middle = middle + (inside[far] - middle) / step
            yield middle, np.linalg.norm(inside - middle, axis=1).max()


def test_positions_are_in_the_unit_circle_and_apart(places):
    assert places.dtype == np.float32
    assert places.shape == (2000, 2)
    assert np.linalg.norm(places, axis=1).max() == pytest.approx(1, abs=1e-5)
    assert len(np.unique(places.round(5), axis=0)) == 2000


def test_order_of_edges_their_direction_and_names_of_communities_do_not_matter(graph, places):
    one, two, weight, communities = graph
    order = np.random.default_rng(7).permutation(len(one))
    renamed = communities.max() - communities
    again = layout_graph(2000, two[order], one[order], weight[order], renamed)
    np.testing.assert_array_equal(again, places)


def test_communities_do_not_overlap_on_any_level(graph, places):
    for level in graph[3]:
        discs = list(_discs(places, level))
        middles = np.array([middle for middle, _ in discs])
        reach = np.array([radius for _, radius in discs])
        apart = np.linalg.norm(middles[:, None] - middles[None], axis=-1)
        overlap = reach[:, None] + reach[None] > apart * 1.02
        np.fill_diagonal(overlap, False)
        assert len(discs) > 3
        assert not overlap.any()


def test_those_linked_to_nothing_lie_at_the_edge(graph, places):
    linked = np.isin(np.arange(2000), np.append(graph[0], graph[1]))
    from_centre = np.linalg.norm(places, axis=1)
    alone = graph[3][0] >= 2000
    assert alone.sum() == 200
    assert not linked[alone].any()
    assert from_centre[alone].min() > from_centre[~alone].max()


def test_linked_communities_are_nearer_than_others(graph, places):
    one, two, _, communities = graph
    linked = np.linalg.norm(places[one] - places[two], axis=1).mean()
    rng = np.random.default_rng(3)
    others = rng.choice(np.flatnonzero(communities[0] < 2000), (2, 5000))
    assert linked < 0.6 * np.linalg.norm(places[others[0]] - places[others[1]], axis=1).mean()


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_the_smallest_graphs_have_positions(n):
    none = np.zeros((0, n), int)
    for communities in (none, np.zeros((1, n), int), np.arange(n)[None]):
        at = layout_graph(n, [0] * (n > 1), [1] * (n > 1), [1.0] * (n > 1), communities)
        assert at.shape == (n, 2)
        assert np.isfinite(at).all()


def test_an_edge_to_no_node_is_refused():
    with pytest.raises(ValueError, match="outside 0 to 1"):
        layout_graph(2, [0], [2], [1.0], [[0, 0]])


def test_time_grows_with_the_graph_also_without_communities():
    def seconds(n, levels):
        one, two, weight, communities = _graph(n)
        start = time.process_time()
        at = layout_graph(n, one, two, weight, communities[:levels])
        assert len(np.unique(at.round(5), axis=0)) == n
        return time.process_time() - start

    assert seconds(8_000, 3) < 12 * max(seconds(2_000, 3), 0.2)
    assert seconds(4_400, 0) < 12 * max(seconds(1_100, 0), 0.2)
