"""What ArchRAG's clustering is compared with: each by a graph that can be worked by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from graphrag_evaluation.clusterings import SPECTRAL_LINKS, SPECTRAL_UNWEIGHTED
from graphrag_evaluation.clusterings.codicil import codicil_edges
from graphrag_evaluation.clusterings.flat import common_neighbours
from graphrag_evaluation.clusterings.node2vec import WeightedGraph, _vectors, node2vec_clusters
from graphrag_evaluation.clusterings.scan import scan_clusters
from graphrag_evaluation.clusterings.spectral import spectral_clusters

from graphrag_pipeline.core.errors import ConfigError
from graphrag_pipeline.core.settings import HierarchySettings, Settings
from graphrag_pipeline.systems.archrag.clusterings import (
    AttributedNodes,
    Clustering,
    clustering_of,
)
from graphrag_pipeline.systems.archrag.communities import attributed_version


def test_neighbours_in_common_are_counted_as_by_sets():
    random = np.random.default_rng(5)
    pairs = sorted({tuple(sorted(pair)) for pair in random.integers(0, 40, (300, 2)).tolist()})
    pairs = [(a, b) for a, b in pairs if a != b]
    linked = {
        node: {b if a == node else a for a, b in pairs if node in (a, b)} for node in range(40)
    }
    one, two = np.array(pairs).T
    wanted = [len(linked[a] & linked[b]) for a, b in pairs]
    assert max(wanted) > 3
    assert common_neighbours(40, one, two).tolist() == wanted
    none = np.zeros(0, np.int64)
    assert common_neighbours(3, none, none).tolist() == []


def unweighted(pairs) -> pl.DataFrame:
    schema = {"source": pl.Int64, "target": pl.Int64, "similarity": pl.Float64}
    return pl.DataFrame([(a, b, 0.5) for a, b in pairs], schema, orient="row")


def clique(*nodes: int):
    return [(a, b) for a in nodes for b in nodes if a < b]


def test_scan_leaves_a_hub_and_an_outlier_alone():
    # Eight and eight, all linked; 8 bridges them, 17 hangs on the first. A bridge's end has nine in
    # its neighbourhood, the bridge three: two are shared, 2 / sqrt(27) < 0.5.
    ids = [f"{n:02}" for n in range(18)]
    edges = unweighted([*clique(*range(8)), (7, 8), (8, 9), *clique(*range(9, 17)), (0, 17)])
    found = sorted(cluster.members for cluster in scan_clusters(ids, edges, 15, 0))
    assert found == [tuple(ids[:8]), ("08",), tuple(ids[9:17]), ("17",)]


def test_scan_joins_what_is_like_a_core_to_it_and_starts_no_cluster_from_it():
    # 4 is as like 0 as 2 / sqrt(5 * 2) = 0.63, and has no other neighbour: no core, where three
    # are asked for. 5 and 6 are alike, but two alone are none either.
    edges = unweighted([*clique(0, 1, 2, 3), (0, 4), (5, 6)])
    found = sorted(
        cluster.members for cluster in scan_clusters(list("abcdefg"), edges, 15, 0, mu=3)
    )
    assert found == [tuple("abcde"), ("f",), ("g",)]
    # By the authors of ArchRAG's threshold 4 is not like 0.
    ids, given = list("abcdefg"), {"epsilon": 0.7, "mu": 3.0}
    asked = HierarchySettings(attributed_clustering="scan", attributed_parameters=given)
    clusters = clustering_of(asked).clusters
    assert clusters is not None
    found = sorted(cluster.members for cluster in clusters(ids, edges, 15, 0))
    assert found == [tuple("abcd"), ("e",), ("f",), ("g",)]


def test_p_brings_walks_back_and_q_keeps_them_near():
    # From 0 to 1, which is linked with 0, 2 (a neighbour of 0, too) and 3.
    one, two = np.array([0, 0, 1, 1]), np.array([1, 2, 2, 3])
    for p, q, wanted in ((0.001, 1, 0), (200, 200, 2), (1, 0.002, 3)):
        graph = WeightedGraph(4, one, two, np.ones(4), p, q)
        walks = graph.walks(np.zeros(200, np.int64), np.random.default_rng(1))
        after = walks[walks[:, 1] == 1, 2]
        assert (after == wanted).mean() > 0.97


def test_node2vec_takes_its_parameters_from_the_settings(monkeypatch):
    asked, given = [], {"p": 0.5, "q": 2.0, "dimensions": 3.0}

    def vectors(graph, dimensions, seed):
        asked.append((graph._back, graph._away, dimensions))
        return _vectors(graph, dimensions, seed)

    monkeypatch.setattr("graphrag_evaluation.clusterings.node2vec._vectors", vectors)
    clusters = clustering_of(
        HierarchySettings(attributed_clustering="codicil_node2vec", attributed_parameters=given)
    ).clusters
    assert clusters is not None
    ids = [f"{n:02}" for n in range(24)]
    edges = unweighted([*clique(*range(12)), (11, 12), *clique(*range(12, 24))])
    found = sorted(cluster.members for cluster in clusters(ids, edges, 12, 7))
    assert found == [tuple(ids[:12]), tuple(ids[12:])]
    assert asked == [(2, 0.5, 3)]


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("scan", "scan has no dimensions, it has only epsilon, mu"),
        ("attributed", "attributed has no dimensions, it has none"),
    ],
)
def test_a_parameter_that_a_clustering_does_not_have_is_told(by, said):
    given = {"dimensions": 2.0}
    asked = HierarchySettings(attributed_clustering=by, attributed_parameters=given)
    with pytest.raises(ConfigError, match=said):
        attributed_version(Settings(hierarchies=asked))


def test_parameters_are_part_of_the_version_and_what_is_usual_changes_none():
    def version(**given):
        return attributed_version(Settings(hierarchies=HierarchySettings(**given)))

    scan = {"attributed_clustering": "scan"}
    assert version(**scan, attributed_parameters={"mu": 3.0}) != version(**scan)
    assert version(attributed_fewest=5) != version() == version(attributed_fewest=1)


def test_codicil_keeps_of_each_nodes_edges_the_root_of_their_number(monkeypatch):
    # All are linked, so neighbours say nothing; 0, 1, 2 are alike, and 3, 4. Of four edges two
    # stay: those to the like ones, and of equals the first.
    vectors = np.eye(2, dtype=np.float32)[[0, 0, 0, 1, 1]]
    one, two = np.array(clique(*range(5))).T
    edges = codicil_edges(vectors, (one, two))
    assert edges.select("source", "target").rows() == [
        (0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (3, 4)
    ]  # fmt: skip
    assert edges["similarity"].to_list() == [1, 1, 0, 0, 1, 1]
    # What no link joins is joined where it is alike.
    monkeypatch.setattr("graphrag_evaluation.clusterings.codicil.NEAREST", 1)
    apart = codicil_edges(vectors[[0, 3, 0, 3]], (np.array([0]), np.array([1])))
    assert set(apart.select("source", "target").rows()) == {(0, 1), (0, 2), (1, 3)}
    assert codicil_edges(vectors[:0], (one[:0], two[:0])).is_empty()


def test_node2vec_finds_what_hangs_together_and_draws_the_same_lots_again():
    ids = [f"{n:02}" for n in range(13)]
    edges = unweighted([*clique(*range(6)), (5, 6), *clique(*range(6, 12))])
    clusters = node2vec_clusters(ids, edges, 6, 7)
    found = sorted(cluster.members for cluster in clusters)
    assert found == [tuple(ids[:6]), tuple(ids[6:12]), ("12",)]
    assert node2vec_clusters(ids, edges, 6, 7) == clusters


def test_a_walk_goes_back_on_and_out_as_often_as_p_and_q_say():
    # From 0 to 1: back to 0 (1 / P = 1), on to 2, which is linked with 0 (1), out to 3 (1 / Q = 2).
    one, two = np.array([(0, 1), (0, 2), (1, 2), (1, 3)]).T
    graph = WeightedGraph(4, one, two, np.ones(4))
    start = np.arange(4).repeat(2000)
    walks = graph.walks(start, np.random.default_rng(1))
    edges = {(0, 1), (0, 2), (1, 2), (1, 3)}
    steps = set(zip(walks[:, :-1].ravel().tolist(), walks[:, 1:].ravel().tolist(), strict=True))
    assert {tuple(sorted(step)) for step in steps} == edges
    came = (walks[:, :-2] == 0) & (walks[:, 1:-1] == 1)
    shares = np.bincount(walks[:, 2:][came], minlength=4) / came.sum()
    assert shares == pytest.approx([0.25, 0, 0.25, 0.5], abs=0.01)


def test_spectral_clustering_cuts_where_a_part_hangs_together_least():
    ids = [f"{n:02}" for n in range(13)]
    cliques = [
        (a, b, 0.9) for low in (0, 5) for a in range(low, low + 5) for b in range(a + 1, low + 5)
    ]
    schema = {"source": pl.Int64, "target": pl.Int64, "similarity": pl.Float64}
    edges = pl.DataFrame([*cliques, (4, 5, 0.2), (10, 11, 0.5)], schema, orient="row")
    clusters = spectral_clusters(ids, edges, 5, 1)
    found = sorted(cluster.members for cluster in clusters)
    assert found == [tuple(ids[:5]), tuple(ids[5:10]), ("10", "11"), ("12",)]
    assert [c.id for c in clusters] == [c.id for c in spectral_clusters(ids, edges, 5, 2)]


def test_spectral_clustering_of_links_that_weigh_one_follows_the_links_and_not_likeness():
    # A path of six, of which the first two are unlike the others.
    links = [(n, n + 1) for n in range(5)]
    vectors = np.array([[1, 0]] * 2 + [[0.1, 0.995]] * 4, np.float32)
    ids = pl.Series(list("abcdef"))
    own = pl.DataFrame({"node_id": ids, "entity_id": ids})
    one, two = np.array(links).T
    nodes = AttributedNodes(ids, vectors, (one, two), own)

    def clusters(by: Clustering) -> list[tuple[str, ...]]:
        edges = by.edges(nodes, None)
        made = spectral_clusters(list(ids), edges, 3, 1)
        return sorted(tuple(sorted(cluster.members)) for cluster in made)

    assert set(SPECTRAL_UNWEIGHTED.edges(nodes, None)["similarity"]) == {1.0}
    assert clusters(SPECTRAL_UNWEIGHTED) == [("a", "b", "c"), ("d", "e", "f")]
    assert clusters(SPECTRAL_LINKS) == [("a", "b"), ("c", "d", "e", "f")]
