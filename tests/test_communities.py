import html
import random
import shutil
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from artefacts import copy_of
from hypothesis import given
from hypothesis import strategies as st

from conftest import Engine, build
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import CommunitySettings, Settings
from graphrag_pipeline.graph.clustering import Graph, build_hierarchy, hierarchical_leiden
from graphrag_pipeline.graph.communities import _names, _titles, update_communities
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.structures.registry import ask_for_clustering

SETTINGS = CommunitySettings()


def upstream_name(title):
    return html.unescape(title).upper().strip()


def upstream_edges(relationships):
    """The largest component, each pair once with its last weight, ends in order of the title."""
    pairs = {}
    for source, target, weight in relationships.select("source", "target", "weight").iter_rows():
        pairs[min(source, target), max(source, target)] = weight
    largest = max(nx.connected_components(nx.Graph(pairs.keys())), key=len)
    return [
        (upstream_name(source), upstream_name(target), weight)
        for (source, target), weight in pairs.items()
        if source in largest
    ]


@pytest.mark.shared_data
def test_an_index_made_by_graphrag_has_exactly_these_communities(shared_data):
    folder = shared_data / "carol_index"
    edges = upstream_edges(pl.read_parquet(folder / "relationships.parquet"))
    entities = pl.read_parquet(folder / "entities.parquet", columns=["id", "title"])
    titles = {entity: upstream_name(title) for entity, title in entities.iter_rows()}
    # Relationships name some entities that have no row of their own, so communities lack them.
    known = set(titles.values())
    communities = pl.read_parquet(folder / "communities.parquet", columns=["level", "entity_ids"])
    expected = {
        (level, frozenset(titles[member] for member in members))
        for level, members in communities.iter_rows()
    }
    graph = Graph.of((), edges)
    found = hierarchical_leiden(graph, SETTINGS).listed(graph.nodes)
    assert len(found) == 122
    assert {(c.level, frozenset(c.members) & known) for c in found} == expected


def clustered_graph(seed=0, groups=6, size=8):
    """Groups of nodes, dense within and sparse between, and some far from all others."""
    rng = random.Random(seed)
    edges = {}
    for group in range(groups):
        nodes = [f"{group}-{i}" for i in range(size)]
        for node in nodes:
            for other in rng.sample(nodes, 4):
                if node != other:
                    edges[min(node, other), max(node, other)] = rng.choice([0.5, 1.0, 2.0])
        if group:
            edges[f"{group - 1}-0", f"{group}-1"] = 1.0
    edges["far-0", "far-1"] = 1.0
    return [(source, target, weight) for (source, target), weight in sorted(edges.items())]


EDGES = clustered_graph()
NODES = sorted({node for source, target, _ in EDGES for node in (source, target)} | {"alone"})

graphs = st.sets(
    st.tuples(st.integers(0, 25), st.integers(0, 25)).filter(lambda pair: pair[0] < pair[1]),
    max_size=60,
).map(lambda pairs: [(f"n{a:02}", f"n{b:02}", 1.0 + (a * b) % 3) for a, b in sorted(pairs)])


@given(st.permutations(EDGES), st.permutations(NODES))
def test_the_order_of_rows_never_matters(edges, nodes):
    assert build_hierarchy(nodes, edges, SETTINGS) == build_hierarchy(NODES, EDGES, SETTINGS)


@given(graphs, st.integers(0, 40), st.integers(2, 12))
def test_every_level_covers_every_entity_once(edges, n_more, max_cluster_size):
    nodes = sorted(
        {node for edge in edges for node in edge[:2]} | {f"n{i:02}" for i in range(n_more)}
    )
    settings = CommunitySettings(max_cluster_size=max_cluster_size)
    clusters = build_hierarchy(nodes, edges, settings)
    deepest = max((cluster.level for cluster in clusters), default=0)
    for level in range(deepest + 1 if nodes else 0):
        standing = [c for c in clusters if c.level <= level <= c.last_level]
        assert sorted(node for cluster in standing for node in cluster.members) == nodes
    assert all(cluster.level <= cluster.last_level <= deepest for cluster in clusters)


@given(graphs, st.integers(2, 6))
def test_a_community_is_the_union_of_its_parts(edges, max_cluster_size):
    nodes = sorted({node for edge in edges for node in edge[:2]})
    clusters = build_hierarchy(nodes, edges, CommunitySettings(max_cluster_size=max_cluster_size))
    by_id = {cluster.id: cluster for cluster in clusters}
    assert len(by_id) == len(clusters)
    parts = {}
    for cluster in clusters:
        assert (cluster.parent_id is None) == (cluster.level == 0)
        if cluster.parent_id is not None:
            parts.setdefault(cluster.parent_id, []).extend(cluster.members)
            assert by_id[cluster.parent_id].level == cluster.level - 1
    for parent, members in parts.items():
        assert sorted(members) == list(by_id[parent].members)
        assert by_id[parent].last_level == by_id[parent].level


def test_pieces_that_are_not_connected_never_share_a_community():
    clusters = build_hierarchy(NODES, EDGES, SETTINGS)
    for cluster in clusters:
        kinds = {node.split("-")[0] in ("far", "alone") and node for node in cluster.members}
        assert len({bool(kind) for kind in kinds}) == 1
    roots = [cluster.members for cluster in clusters if cluster.level == 0]
    assert ("alone",) in roots
    assert ("far-0", "far-1") in roots


def test_a_graph_without_edges_is_one_community_for_each_entity():
    clusters = build_hierarchy(["b", "a"], [], SETTINGS)
    assert [(c.level, c.last_level, c.parent_id, c.members) for c in clusters] == [
        (0, 0, None, ("a",)),
        (0, 0, None, ("b",)),
    ]


def test_a_graph_without_anything_has_no_communities():
    assert build_hierarchy([], [], SETTINGS) == []


def test_one_edge_is_one_community():
    (cluster,) = build_hierarchy(["a", "b"], [("a", "b", 1.0)], SETTINGS)
    assert (cluster.level, cluster.last_level, cluster.members) == (0, 0, ("a", "b"))
    assert cluster.id == make_id("community", 0, "a", "b")


def test_equal_weights_everywhere_cluster_the_same_each_time():
    edges = [(source, target, 1.0) for source, target, _ in EDGES]
    first = build_hierarchy(NODES, edges, SETTINGS)
    assert all(build_hierarchy(NODES, edges[::-1], SETTINGS) == first for _ in range(5))


def test_a_community_larger_than_the_limit_is_split_where_it_can_be():
    clusters = build_hierarchy(NODES, EDGES, CommunitySettings(max_cluster_size=4))
    parents = {cluster.parent_id for cluster in clusters}
    split = [cluster for cluster in clusters if cluster.id in parents]
    assert split
    assert all(len(cluster.members) >= 4 for cluster in split)


STORY = "Alice Smith met Bob Jones in Paris. Bob Jones and Carol Brown work for Acme Corporation. "
OTHER = "Frank Miller saw George Wilson in Berlin. George Wilson left Berlin with Henry Ford. "


def stored(engine):
    return engine.rows("SELECT * EXCLUDE human_readable_id FROM communities ORDER BY ALL")


def test_the_same_documents_have_the_same_communities_in_any_index(tmp_path):
    one = build(tmp_path / "one", {"a.txt": STORY, "b.txt": OTHER})
    two = Engine(tmp_path / "two")
    for files in ({"b.txt": OTHER, "c.txt": STORY}, {"c.txt": None, "a.txt": STORY}):
        two.write(files)
        two.update()
    assert stored(one) == stored(two)
    assert one.cluster().modularity == pytest.approx(two.cluster().modularity)
    members = "FROM community_members ORDER BY ALL"
    assert one.rows(members) == two.rows(members)


def test_a_graph_that_did_not_change_writes_nothing(tmp_path):
    engine = build(tmp_path, {"a.txt": STORY})
    before = engine.store.path.read_bytes()
    changes = engine.cluster()
    assert changes.counts == {}
    assert changes.n_levels == 1
    assert engine.store.path.read_bytes() == before


def test_communities_that_stay_keep_id_and_number_when_others_come(tmp_path):
    engine = build(tmp_path, {"a.txt": "Alice Smith met Bob Jones in Paris."})
    before = dict(engine.rows("SELECT id, human_readable_id FROM communities"))
    engine.write({"b.txt": OTHER})
    engine.update()
    after = dict(engine.rows("SELECT id, human_readable_id FROM communities"))
    assert before.items() <= after.items()
    assert len(after) > len(before)


def test_a_community_is_titled_by_its_members_and_counts_them(tmp_path):
    engine = build(tmp_path, {"a.txt": "Alice Smith met Bob Jones in Paris."})
    rows = engine.rows("SELECT title, size, n_relationships FROM communities")
    assert rows == [("Alice Smith, Bob Jones, Paris", 3, 3)]


def test_of_names_at_the_edge_those_that_texts_say_often_title_a_community():
    told = {"Moe Hall": (3, 9), "Ann Lee": (1, 1), "Jan Berg": (2, 8), "Tom Ray": (1, 6)}
    rows = [(title, *counts, True) for title, counts in told.items()]
    columns = ["title", "degree", "frequency", "named"]
    names = _names(pl.DataFrame(rows, schema=columns, orient="row"))
    star = Graph(names["title"], np.array([0, 0, 0]), np.array([1, 2, 3]), np.ones(3))
    assert _titles(names, np.zeros(4, dtype=np.int64), star) == {0: "Moe Hall, Tom Ray, Jan Berg"}


def test_a_date_titles_no_community_that_has_names():
    rows = [("4 May 1871", 3, 9, None), ("crane", 1, 1, False), ("Jan Berg", 1, 1, True)]
    columns = ["title", "degree", "frequency", "named"]
    names = _names(pl.DataFrame(rows, schema=columns, orient="row"))
    star = Graph(names["title"], np.array([0, 0]), np.array([1, 2]), np.ones(2))
    titles = _titles(names, np.zeros(3, dtype=np.int64), star)
    assert titles == {0: "Jan Berg, crane, 4 May 1871"}


def test_an_entity_that_changes_only_its_type_is_seen(tmp_path):
    engine = build(tmp_path, {"a.txt": "Alice Smith met Bob Jones in Paris."})
    with engine.store.transaction() as con:
        con.execute("UPDATE entities SET type = 'CONCEPT' WHERE title = 'Bob Jones'")
    assert engine.cluster().counts != {}
    assert engine.rows("SELECT title FROM communities") == [("Alice Smith, Paris, Bob Jones",)]


CORPUS = Path(__file__).parents[1] / "examples" / "corpus"


def sample(n):
    files = sorted(path for path in CORPUS.rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in files[:n]}


def sampled(folder, **given):
    """Return a copy of an index of twelve documents, from now on under these settings."""
    copy_of("sampled", lambda made: build(made, sample(12)), folder)
    return Engine(folder, Settings(**given))


def updates(engine):
    return engine.rows("SELECT how, modularity, drift FROM community_updates ORDER BY updated_at")


def test_communities_are_repaired_as_documents_come_and_go(tmp_path):
    engine = sampled(tmp_path, communities={"max_drift": 0.05})
    before = dict(engine.rows("SELECT id, title FROM communities WHERE size > 1"))
    engine.write({"one.txt": "Nadia Fenwright met Zeno Quillon of the Halcyon Trust."})
    engine.index()
    changes = engine.cluster()
    assert changes.how == "repaired"
    assert 0 <= changes.drift <= engine.settings.communities.max_drift
    after = dict(engine.rows("SELECT id, title FROM communities WHERE size > 1"))
    assert len(before.keys() - after.keys()) <= len(before) // 10
    engine.write({"one.txt": None})
    engine.index()
    assert engine.cluster().how == "repaired"
    gone = engine.rows(
        "SELECT count(*) FROM community_members m ANTI JOIN entities e ON e.id = m.entity_id"
    )
    assert gone == [(0,)]
    assert [how for how, _, _ in updates(engine)] == ["clustered", "repaired", "repaired"]


def test_beyond_the_drift_allowed_the_whole_graph_is_gone_over_again(tmp_path):
    grown = build(tmp_path / "lenient", sample(4))
    grown.write(sample(14))
    grown.index()
    for name in ("strict", "fresh"):
        shutil.copytree(tmp_path / "lenient", tmp_path / name)

    def clustered(name, max_drift):
        settings = CommunitySettings(max_drift=max_drift)
        return update_communities(Engine(tmp_path / name).store, settings)

    repaired = clustered("lenient", 1.0)
    improved = clustered("strict", repaired.drift / 2)
    ask_for_clustering(Engine(tmp_path / "fresh").store)
    fresh = clustered("fresh", 1.0)
    assert (repaired.how, improved.how) == ("repaired", "improved")
    assert improved.modularity > repaired.modularity
    assert improved.modularity > 0.99 * fresh.modularity


def test_clustering_anew_can_be_asked_for_and_keeps_the_ids_of_what_it_finds_again(tmp_path):
    engine = sampled(tmp_path)
    before = stored(engine)
    ask_for_clustering(engine.store)
    assert engine.cluster().how == "clustered"
    assert stored(engine) == before
    assert engine.cluster().how is None


def test_other_settings_cluster_anew(tmp_path):
    engine = sampled(tmp_path)
    finer = CommunitySettings(resolution=3.0)
    assert update_communities(engine.store, finer).how == "clustered"
    assert update_communities(engine.store, finer.model_copy(update={"max_drift": 0.5})).how is None


def test_drift_is_measured_at_the_resolution_that_was_clustered_at(tmp_path):
    engine = sampled(tmp_path, communities={"resolution": 0.4, "max_drift": 0.05})
    assert engine.cluster().how == "clustered"
    engine.write({"one.txt": "Nadia Fenwright met Zeno Quillon of the Halcyon Trust."})
    engine.index()
    changes = engine.cluster()
    assert changes.how == "repaired"
    assert changes.drift > 0
    ask_for_clustering(engine.store)
    assert changes.drift == pytest.approx(1 - changes.modularity / engine.cluster().modularity, 0.1)


def test_relationships_to_which_a_model_gave_no_strength_hold_a_community_together(tmp_path):
    engine = build(tmp_path, {"a.txt": "Alice Smith met Bob Jones in Paris."})
    with engine.store.transaction() as con:
        con.execute("UPDATE extractions SET extractor = 'llm'; UPDATE relationships SET weight = 0")
    ask_for_clustering(engine.store)
    assert engine.cluster().modularity == pytest.approx(0.0)
    assert engine.rows("SELECT size FROM communities") == [(3,)]


def test_communities_clustered_anew_get_reports_though_the_graph_is_as_it_was(tmp_path):
    engine = build(tmp_path, sample(4))
    engine.write(sample(12))
    engine.update()
    before = stored(engine)
    ask_for_clustering(engine.store)
    engine.cluster()
    assert stored(engine) != before
    engine.report()
    with engine.store.read() as con:
        levels = {"first": 0, "last": 9}
        assert invariants.violations(con, invariants.EVERY_COMMUNITY_REPORTED, levels) == 0
