"""The graph as arrays, walks on small graphs worked by hand, and `ppr` against its definition."""

from __future__ import annotations

import math
import threading

import networkx as nx
import numpy as np
import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query import QueryEngine, open_release
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.memory.graph_arrays import Adjacency, Edges, join_edges
from graphrag_pipeline.query.operators import graph as op_graph


def graph_of(n_nodes: int, *edges: tuple[int, int, float]) -> Adjacency:
    one, two, weight = zip(*edges, strict=True) if edges else ((), (), ())
    ids = np.array([f"{place:03}".encode() for place in range(len(edges))], np.bytes_)
    numbers = (np.array(one, np.int32), np.array(two, np.int32), np.array(weight, np.float32))
    return join_edges(n_nodes, [Edges(*numbers, ids)])


def networkx_pagerank(graph: nx.Graph, seeds: dict, damping: float) -> dict:
    """PageRank by networkx's matrix, for its own function needs SciPy."""
    matrix = nx.google_matrix(graph, alpha=damping, personalization=seeds)
    scores = np.full(len(graph), 1 / len(graph))
    for _ in range(100):
        scores = scores @ matrix
    return dict(zip(graph, scores.tolist(), strict=True))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def engine(home):
    with QueryEngine(home, settings=settings_for(home)) as opened:
        yield opened


# Walks


@pytest.mark.parametrize(
    ("edges", "seeds", "expected"),
    [
        # A path: b = (a + c) / 2, c = b / 4, a = 1/2 + b / 4.
        ([(0, 1, 1), (1, 2, 1)], [1, 0, 0], [7 / 12, 4 / 12, 1 / 12]),
        # By weight: of what a passes on, a quarter goes to b and three to c.
        ([(0, 1, 1), (0, 2, 3)], [5, 0, 0], [2 / 3, 1 / 12, 1 / 4]),
        # A node without edges gives back what it has: to itself and to a, as they are seeded.
        ([(0, 1, 1)], [1, 0, 1], [4 / 9, 2 / 9, 1 / 3]),
    ],
    ids=["path", "weights", "without edges"],
)
def test_pagerank_is_what_one_works_out_by_hand(edges, seeds, expected):
    found = op.personalized_pagerank(graph_of(3, *edges), np.array(seeds), damping=0.5)
    assert found == pytest.approx(expected, abs=1e-6)


def test_pagerank_of_a_large_graph_has_the_same_best_five(monkeypatch):
    chance = np.random.default_rng(3)
    n_nodes, n_edges = 30_000, 150_000
    # Some nodes have many edges, as names have that are often met.
    one = (n_nodes * chance.random(n_edges) ** 3).astype(np.int32)
    two = chance.integers(0, n_nodes, n_edges).astype(np.int32)
    ids = np.array([b"%08d" % place for place in range(n_edges)])
    weight = chance.choice([1, 3], n_edges).astype(np.float32)
    graph = join_edges(n_nodes, [Edges(one, two, weight, ids)])
    recall, off = [], []
    for _ in range(40):
        seeds = np.zeros(n_nodes)
        like = chance.choice(n_nodes, 3000, replace=False)
        seeds[like] = 0.02 * chance.random(3000) ** 2
        seeds[chance.choice(n_nodes, 3)] += chance.random(3)
        monkeypatch.setattr(op_graph, "MOST_EXACT", 10**9)
        exact = op.personalized_pagerank(graph, seeds, damping=0.6)
        monkeypatch.setattr(op_graph, "MOST_EXACT", 1000)
        found = op.personalized_pagerank(graph, seeds, damping=0.6)
        best, expected = np.argsort(-found)[:5], np.argsort(-exact)[:5]
        recall.append(len(np.intersect1d(best, expected)) / 5)
        off.append(np.abs(found - exact).sum())
        assert found.sum() == pytest.approx(1)
    assert np.mean(recall) >= 0.99
    assert max(off) < 0.05


@pytest.mark.parametrize("damping", [0.1, 0.5, 0.85])
def test_pagerank_is_that_of_networkx(damping):
    random = np.random.default_rng(7)
    edges = {tuple(sorted(pair)): 1 + pair[0] % 4 for pair in random.integers(0, 60, (150, 2))}
    given = [(int(a), int(b), float(w)) for (a, b), w in edges.items() if a != b]
    seeds = np.where(random.random(70) < 0.1, random.random(70), 0)
    found = op.personalized_pagerank(graph_of(70, *given), seeds, damping=damping)
    compared = nx.Graph()
    compared.add_nodes_from(range(70))
    compared.add_weighted_edges_from(given)
    expected = networkx_pagerank(compared, dict(enumerate(seeds)), damping)
    assert found == pytest.approx([expected[node] for node in range(70)], abs=2e-6)
    assert found.sum() == pytest.approx(1)


def test_a_walk_from_nowhere_and_a_graph_of_nothing_are_nowhere():
    assert not op.personalized_pagerank(graph_of(3, (0, 1, 1)), np.zeros(3), damping=0.5).any()
    alone = op.personalized_pagerank(graph_of(2), np.array([1.0, 0.0]), damping=0.5)
    assert alone.tolist() == [1, 0]
    assert not len(op.personalized_pagerank(graph_of(0), np.zeros(0), damping=0.5))


def test_weights_between_the_same_two_nodes_add_up():
    graph = graph_of(3, (0, 1, 1), (1, 0, 2), (1, 2, 4))
    assert graph.offsets.tolist() == [0, 1, 3, 4]
    assert graph.neighbours.tolist() == [1, 0, 2, 1]
    assert graph.weights.tolist() == [3, 3, 4, 4]
    assert graph.strengths.tolist() == [3, 7, 4]


def test_hops_are_counted_from_the_nearest_and_end_where_asked():
    graph = graph_of(7, (0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 4, 1), (4, 5, 1))
    assert op.k_hop(graph, np.array([0]), 2).tolist() == [0, 1, 2, -1, -1, -1, -1]
    assert op.k_hop(graph, np.array([5, 0]), 9).tolist() == [0, 1, 2, 2, 1, 0, -1]


def test_of_several_shortest_paths_the_lowest_is_taken_and_a_bridge_jumps_where_there_is_none():
    graph = graph_of(8, (0, 3, 1), (3, 5, 1), (0, 2, 9), (2, 5, 9), (0, 1, 1), (1, 4, 1), (6, 7, 1))
    assert op.shortest_path(graph, 0, 5) == [0, 2, 5]
    assert op.shortest_path(graph, 4, 4) == [4]
    assert op.shortest_path(graph, 0, 6) == []
    assert op.bridge(graph, [4, 0, 6, 5]) == [4, 1, 0, 6, 5]
    assert op.bridge(graph, [4, 5, 3]) == [4, 1, 0, 2, 5, 3]
    assert op.bridge(graph, []) == []


# Of a release


def test_the_arrays_of_a_release_hold_its_rows(engine):
    graph, index = engine.index.graph, engine.index
    ids = [row["id"] for table in ("entities", "chunks") for row in index.rows(f"FROM {table}")]
    named = index.rows("SELECT DISTINCT entity_id AS id FROM chunk_titles")
    titles = {row["id"] for row in named} - set(ids)
    assert graph.ids_of(np.arange(graph.n_nodes)) == [
        *sorted(ids[: graph.n_entities]),
        *sorted(ids[graph.n_entities :]),
        *sorted(titles),
    ]
    pairs = graph.edges("relationships")
    found = zip(
        graph.ids_of(pairs.one),
        graph.ids_of(pairs.two),
        pairs.weight.tolist(),
        pairs.ids.tolist(),
        strict=True,
    )
    rows = index.rows("SELECT source_id, target_id, weight, id FROM relationships ORDER BY id")
    assert [(a, b, w, key.decode()) for a, b, w, key in found] == [tuple(r.values()) for r in rows]
    mentioned = index.rows("SELECT entity_id, count(*) AS n FROM entity_chunks GROUP BY entity_id")
    nodes = graph.entity_nodes([row["entity_id"] for row in mentioned])
    assert graph.chunk_counts[nodes].tolist() == [row["n"] for row in mentioned]
    assert graph.specificity("mentions")[nodes] == pytest.approx([1 / r["n"] for r in mentioned])


def test_weights_go_to_the_nodes_of_known_ids_and_the_best_come_back(engine):
    graph = engine.index.graph
    last = graph.n_entities + graph.n_chunks - 1
    chunk = graph.ids_of(np.array([last]))[0]
    spread = graph.weigh_chunks({"unknown": 5.0, chunk: 2.0, make_id("entity", "Scrooge"): 1.0})
    assert spread.nonzero()[0].tolist() == [last]
    assert graph.best_chunks(spread, 3) == {chunk: 2.0}
    assert graph.best_entities(spread, 3) == {}
    pairs = engine.index.rows("SELECT id, source_id, target_id FROM relationships LIMIT 2")
    ends = graph.weigh_ends("facts", {"unknown": 9.0} | {row["id"]: 1.0 for row in pairs})
    joined = [row[name] for row in pairs for name in ("source_id", "target_id")]
    assert ends.sum() == 4
    assert ends[graph.entity_nodes(joined)].tolist() == [joined.count(key) for key in joined]
    tied = np.ones(graph.n_nodes)
    assert list(graph.best_entities(tied, 4)) == graph.ids_of(np.arange(4))


def test_the_graph_is_loaded_once_whoever_asks(home):
    with open_release(home, settings=settings_for(home)) as index:
        found, kinds = [], ("facts", "mentions")

        def load() -> None:
            found.append(index.graph.adjacency(*kinds))

        ask = [threading.Thread(target=load) for _ in range(6)]
        for thread in ask:
            thread.start()
        for thread in ask:
            thread.join()
        assert len(found) == 6
        assert {id(one) for one in found} == {id(index.graph.adjacency("mentions", "facts"))}


# ppr


@pytest.mark.parametrize("titles", [True, False])
def test_ppr_is_pagerank_of_its_definition(engine, titles):
    question = "Who was the clerk of Scrooge in a christmas carol?"
    index = engine.index
    graph = nx.Graph()
    graph.add_nodes_from(row["id"] for row in index.rows("SELECT id FROM entities"))
    graph.add_nodes_from(row["id"] for row in index.rows("SELECT id FROM chunks"))
    joined = index.rows("SELECT entity_id, chunk_id, 1 AS weight FROM entity_chunks")
    if titles:
        joined += index.rows("SELECT entity_id, chunk_id, 3 AS weight FROM chunk_titles")
    for row in joined:
        add_weight(graph, row["entity_id"], row["chunk_id"], row["weight"])
    facts = index.rows(
        """SELECT r.id, source_id, target_id, coalesce(sum(n_mentions), 1) AS n FROM relationships r
           LEFT JOIN relationship_chunks c ON c.relationship_id = r.id GROUP BY ALL"""
    )
    for row in facts:
        add_weight(graph, row["source_id"], row["target_id"], row["n"] * (0.3 if titles else 1))
    seeds = dict.fromkeys(graph, 0.0)
    seeds[make_id("entity", "Scrooge")] += 0.02
    if titles:
        seeds[make_id("entity", "a christmas carol")] += 1
    stated = index.search_text("relationships", question, 5).to_pylist()
    ends = {row["id"]: (row["source_id"], row["target_id"]) for row in facts}
    n_chunks = len(index.rows("SELECT id FROM chunks"))
    rarity = {
        term: math.log(1 + (n_chunks - held + 0.5) / (held + 0.5))
        for term in terms(question)
        for held in [len(index.search_text("chunks", term, 100))]
    }
    named = sum(rarity[term] for term in ("scrooge", "christmas", "carol"))
    share = min(1, 2 * named / sum(rarity.values())) if titles else 1
    for hit in stated:
        for end in ends[hit["id"]]:
            seeds[end] += 0.02 * share * hit["score"] / stated[0]["score"] / 5
    pairs = {(row["entity_id"], row["chunk_id"]) for row in joined}
    for entity in {entity for entity, _ in pairs}:
        seeds[entity] /= sum(one == entity for one, _ in pairs)
    similar = index.search_text("chunks", question, 100).to_pylist()
    all_text = sum(hit["score"] ** 2 for hit in similar)
    for hit in similar:
        seeds[hit["id"]] += 0.08 * hit["score"] ** 2 / all_text
    expected = networkx_pagerank(graph, seeds, 0.6)
    found = engine.retrieve(question, "ppr", titles=titles, covering=False).records
    chunks = [r["id"] for r in index.rows("SELECT id FROM chunks") if expected[r["id"]] > 1e-9]
    assert len(chunks) > 2
    assert [r.id for r in found] == sorted(chunks, key=lambda key: (-expected[key], key))[:10]
    assert [r.score for r in found] == pytest.approx([expected[r.id] for r in found], abs=1e-5)


def add_weight(graph: nx.Graph, one: str, two: str, weight: float) -> None:
    known = graph.get_edge_data(one, two, {"weight": 0})["weight"]
    graph.add_edge(one, two, weight=known + float(weight))


def test_ppr_finds_the_text_that_shares_an_entity_and_no_word_with_the_question(tmp_path):
    documents = {
        "1": "Tiny Tim was the son of Bob Cratchit.",
        "2": "Bob Cratchit lived in London.",
        "3": "Marie Curie studied in Paris.",
    }
    publish(tmp_path, documents=documents)
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as opened:
        question = "Which place did Tiny Tim call home?"
        assert [r.title for r in opened.retrieve(question, "bm25").records] == ["1"]
        assert [r.title for r in opened.retrieve(question, "ppr").records] == ["1", "2"]
        assert opened.retrieve("who studied somewhere", "ppr").records[0].title == "3"
