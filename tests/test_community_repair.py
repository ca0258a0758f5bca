"""Repaired hierarchies, on graphs that grow and shrink."""

import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.core.settings import CommunitySettings
from graphrag_pipeline.graph.clustering import (
    Cluster,
    Clusters,
    Graph,
    build_hierarchy,
    modularity,
)
from graphrag_pipeline.graph.repair import keep_ids, repair

SETTINGS = CommunitySettings(max_cluster_size=5)

pairs = st.sets(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda pair: pair[0] < pair[1]),
    max_size=70,
)


def repair_hierarchy(old, entity_ids, edges, settings):
    """What `repair` makes of clusters, ids and edges in any order, one by one."""
    whole = Graph.of(entity_ids, edges)
    return repair(whole, Clusters.of(old, whole.nodes), settings).listed(whole.nodes)


def graph(chosen, more=()):
    edges = [(f"n{a:02}", f"n{b:02}", 1.0 + (a * b) % 3) for a, b in sorted(chosen)]
    return sorted({node for edge in edges for node in edge[:2]} | set(more)), edges


def groups_graph(n_groups=12, size=9, seed=0):
    """Groups, dense within, in a ring; what stands far away is in no group."""
    rng = random.Random(seed)
    edges = {}
    for g in range(n_groups):
        nodes = [f"{g:02}-{i}" for i in range(size)]
        for i, node in enumerate(nodes):
            edges[tuple(sorted((node, nodes[(i + 1) % size])))] = 1.0
            other = rng.choice(nodes)
            if other != node:
                edges[tuple(sorted((node, other)))] = 1.0
        edges[tuple(sorted((nodes[0], f"{(g + 1) % n_groups:02}-0")))] = 1.0
    return [(a, b, w) for (a, b), w in sorted(edges.items())]


def nodes_of(edges, more=()):
    return sorted({node for edge in edges for node in edge[:2]} | set(more))


def reached(edges, clusters, resolution=1.0):
    graph = Graph.of((), edges)
    return modularity(graph, Clusters.of(clusters, graph.nodes).at(0, len(graph)), resolution)


def assert_is_a_hierarchy(clusters, nodes):
    deepest = max((c.last_level for c in clusters), default=0)
    by_id = {c.id: c for c in clusters}
    assert len(by_id) == len(clusters)
    for level in range(deepest + 1 if nodes else 0):
        standing = [c for c in clusters if c.level <= level <= c.last_level]
        assert sorted(node for c in standing for node in c.members) == nodes
    for c in clusters:
        parts = [part for part in clusters if part.parent_id == c.id]
        assert c.last_level == (c.level if parts else deepest)
        assert not parts or sorted(n for p in parts for n in p.members) == list(c.members)
        assert len(parts) != 1
        assert all(part.level == c.level + 1 for part in parts)


@given(pairs, pairs, st.integers(0, 3))
def test_whatever_happens_every_level_covers_every_entity_once(before, after, n_alone):
    nodes, edges = graph(before)
    old = build_hierarchy(nodes, edges, SETTINGS)
    nodes, edges = graph(after, [f"alone{i}" for i in range(n_alone)])
    repaired = repair_hierarchy(old, nodes, edges, SETTINGS)
    assert_is_a_hierarchy(repaired, nodes)
    connections = nx.Graph([edge[:2] for edge in edges])
    connections.add_nodes_from(nodes)
    for cluster in repaired:
        assert nx.is_connected(connections.subgraph(cluster.members))


@given(pairs, st.sampled_from([0.5, 1.0, 2.0]))
def test_modularity_is_that_of_the_field(chosen, resolution):
    nodes, edges = graph(chosen)
    clusters = build_hierarchy(nodes, edges, SETTINGS)
    if not edges:
        assert reached(edges, clusters) is None
        return
    connections = nx.Graph()
    connections.add_weighted_edges_from(edges)
    roots = [set(c.members) for c in clusters if c.level == 0]
    expected = nx.community.modularity(connections, roots, resolution=resolution)
    assert reached(edges, clusters, resolution) == pytest.approx(expected, abs=1e-9)


@given(pairs, st.integers(2, 8))
def test_nothing_changed_changes_nothing(chosen, max_cluster_size):
    settings = CommunitySettings(max_cluster_size=max_cluster_size)
    nodes, edges = graph(chosen, ["alone"])
    old = build_hierarchy(nodes, edges, settings)
    assert set(repair_hierarchy(old, nodes, edges, settings)) == set(old)


@given(pairs, pairs, st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(before, after, rng):
    old = build_hierarchy(*graph(before), SETTINGS)
    nodes, edges = graph(after)
    first = repair_hierarchy(old, nodes, edges, SETTINGS)
    for rows in (old, nodes, edges):
        rng.shuffle(rows)
    assert repair_hierarchy(old, nodes, edges, SETTINGS) == first


@given(pairs, pairs, pairs)
def test_repairs_follow_repairs(first, second, third):
    old = build_hierarchy(*graph(first), SETTINGS)
    for chosen in (second, third, first):
        nodes, edges = graph(chosen)
        old = repair_hierarchy(old, nodes, edges, SETTINGS)
        assert_is_a_hierarchy(old, nodes)


EDGES = groups_graph()
OLD = build_hierarchy(nodes_of(EDGES), EDGES, SETTINGS)


def changed(old, new):
    before = {c.id: c.members for c in old}
    return {c.id for c in new if before.get(c.id) != c.members}


def test_a_new_entity_joins_its_neighbours_and_others_keep_their_ids():
    more = [*EDGES, ("03-1", "new", 1.0), ("03-2", "new", 1.0)]
    new = repair_hierarchy(OLD, nodes_of(more), more, SETTINGS)
    touched = [c for c in new if c.id in changed(OLD, new)]
    assert touched
    assert all("new" in c.members or any(n.startswith("03") for n in c.members) for c in touched)
    root = next(c for c in new if c.level == 0 and "new" in c.members)
    assert {"03-1", "03-2"} < set(root.members)
    assert root.id in {c.id for c in OLD}


def test_a_new_component_is_clustered_by_itself_and_touches_nothing():
    far = [(f"far{a}", f"far{b}", w) for a, b, w in groups_graph(3, 8, seed=5)]
    new = repair_hierarchy(OLD, nodes_of([*EDGES, *far]), [*EDGES, *far], SETTINGS)
    kept = [c for c in new if not c.members[0].startswith("far")]
    assert {(c.id, c.members, c.parent_id) for c in kept} == {
        (c.id, c.members, c.parent_id) for c in OLD
    }
    roots = [c for c in new if c.level == 0 and c.members[0].startswith("far")]
    assert len(roots) > 1


def test_two_components_that_meet_become_one_community():
    apart = [("a1", "a2", 1.0), ("b1", "b2", 1.0)]
    old = build_hierarchy(nodes_of(apart), apart, SETTINGS)
    met = [*apart, ("a1", "x", 5.0), ("b1", "x", 5.0)]
    new = repair_hierarchy(old, nodes_of(met), met, SETTINGS)
    assert [c.members for c in new if c.level == 0] == [("a1", "a2", "b1", "b2", "x")]


def test_removal_that_cuts_a_community_splits_it_and_the_larger_part_keeps_its_id():
    chain = [(f"c{i}", f"c{i + 1}", 1.0) for i in range(4)]
    old = build_hierarchy(nodes_of(chain), chain, CommunitySettings(resolution=0.01))
    (whole,) = old
    left = [edge for edge in chain if "c1" not in edge[:2]]
    new = repair_hierarchy(old, ["c0", "c2", "c3", "c4"], left, CommunitySettings())
    assert {c.members: c.id == whole.id for c in new} == {
        ("c2", "c3", "c4"): True,
        ("c0",): False,
    }


def test_who_is_cut_off_from_most_of_its_community_joins_its_neighbours():
    def ring(name):
        return [(f"{name}{i}", f"{name}{(i + 1) % 4}", 1.0) for i in range(4)]

    a, b, c, d = (tuple(f"{name}{i}" for i in range(4)) for name in "abcd")
    old = [
        Cluster("root", 0, 0, None, (*a, *b, *c, "cut", *d)),
        Cluster("a", 1, 1, "root", (*a, "cut")),
        *(Cluster(x[0][0], 1, 1, "root", x) for x in (b, c, d)),
    ]
    rings = [edge for name in "abcd" for edge in ring(name)]
    links = [("a0", "d0", 1.0), ("b1", "c1", 1.0), ("b2", "cut", 1.0), ("b3", "cut", 1.0)]
    edges = [*rings, *links]
    new = repair_hierarchy(old, nodes_of(edges), edges, SETTINGS)
    assert {c.id: c.members for c in new if c.level == 1} == {
        "a": a,
        "b": (*b, "cut"),
        "c": c,
        "d": d,
    }


def test_a_community_that_outgrows_the_limit_is_split_within_itself():
    root = next(c for c in OLD if c.level == 0 and "00-0" in c.members)
    anchor = root.members[0]
    more = [*EDGES, *((anchor, f"new{i}", 1.0) for i in range(12)), ("new1", "new2", 1.0)]
    new = repair_hierarchy(OLD, nodes_of(more), more, SETTINGS)
    leaves = [c for c in new if c.id not in {p.parent_id for p in new}]
    assert max(len(c.members) for c in leaves) < 14
    before = {c.id: c.members for c in OLD}
    elsewhere = [c for c in new if c.level == 0 and anchor not in c.members]
    assert elsewhere
    assert all(before[c.id] == c.members for c in elsewhere)


@pytest.mark.parametrize(("limit", "is_divided"), [(10, False), (9, True)])
def test_a_community_that_reaches_the_limit_is_split_only_beyond_it(limit, is_divided):
    settings = CommunitySettings(max_cluster_size=limit)
    old = build_hierarchy(nodes_of(EDGES), EDGES, settings)
    assert sorted(len(c.members) for c in old)[-1] == 9
    more = [*EDGES, ("00-4", "new", 1.0), ("00-5", "new", 1.0)]
    new = repair_hierarchy(old, nodes_of(more), more, settings)
    (grown,) = [c for c in new if c.level == 0 and "new" in c.members]
    assert len(grown.members) == 10
    assert any(c.parent_id == grown.id for c in new) == is_divided


def test_a_community_that_shrinks_below_the_limit_has_no_parts():
    root = next(c for c in OLD if c.level == 0 and c.last_level == 0)
    keep = set(root.members[:3])
    nodes = [n for n in nodes_of(EDGES) if n not in root.members or n in keep]
    edges = [edge for edge in EDGES if set(edge[:2]) <= set(nodes)]
    new = repair_hierarchy(OLD, nodes, edges, SETTINGS)
    small = [c for c in new if set(c.members) <= keep]
    assert small
    assert all(c.level == 0 for c in small)


def test_an_empty_graph_and_an_empty_hierarchy():
    assert repair_hierarchy(OLD, [], [], SETTINGS) == []
    repaired = repair_hierarchy([], nodes_of(EDGES, ["alone"]), EDGES, SETTINGS)
    assert_is_a_hierarchy(repaired, nodes_of(EDGES, ["alone"]))


def test_twenty_small_steps_stay_close_to_a_fresh_clustering():
    rng = random.Random(3)
    everything = nx.planted_partition_graph(40, 20, 0.25, 0.004, seed=7)
    nodes = [f"v{i:03}" for i in everything]
    rng.shuffle(nodes)
    place = {f"v{i:03}": i for i in everything}
    n = len(nodes) * 8 // 10
    step = (len(nodes) - n) // 20

    def upto(count):
        chosen = sorted(nodes[:count])
        ids = {place[node] for node in chosen}
        edges = [
            (f"v{a:03}", f"v{b:03}", 1.0) for a, b in everything.edges if a in ids and b in ids
        ]
        return chosen, sorted(edges)

    clusters = build_hierarchy(*upto(n), CommunitySettings())
    shares = []
    for _ in range(20):
        n += step
        chosen, edges = upto(n)
        before = {c.id: c.members for c in clusters}
        clusters = repair_hierarchy(clusters, chosen, edges, CommunitySettings())
        shares.append(sum(before.get(c.id) != c.members for c in clusters) / len(clusters))
    fresh = reached(edges, build_hierarchy(chosen, edges, CommunitySettings()))
    assert reached(edges, clusters) >= 0.93 * fresh
    assert sorted(shares)[10] < 0.25


@given(pairs, pairs)
def test_a_fresh_clustering_keeps_the_ids_of_what_it_finds_again(before, after):
    old = build_hierarchy(*graph(before), SETTINGS)
    nodes, edges = graph(after)
    new = keep_ids(old, build_hierarchy(nodes, edges, SETTINGS))
    assert_is_a_hierarchy(new, nodes)
    known = {(c.level, c.members): c.id for c in old}
    for c in new:
        if (c.level, c.members) in known:
            assert c.id == known[c.level, c.members]


@pytest.mark.parametrize("size", [8, 9])
def test_an_id_is_kept_by_what_is_mostly_the_same(size):
    members = [f"m{i}" for i in range(size)]
    ring = [(members[i], members[i + 1], 1.0) for i in range(size - 1)]
    old = build_hierarchy(members, ring, CommunitySettings(resolution=0.01))
    more = [*ring, (members[-1], "z", 1.0)]
    new = build_hierarchy([*members, "z"], more, CommunitySettings(resolution=0.01))
    assert [c.id for c in keep_ids(old, new)] == [c.id for c in old]
