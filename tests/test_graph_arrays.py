"""The graph as arrays, walks on small graphs worked by hand, and `ppr` against its definition."""

from __future__ import annotations

import threading

import networkx as nx
import numpy as np
import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.query import QueryEngine, open_release
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.graph_arrays import Adjacency, Edges, join_edges


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
    assert graph.ids_of(np.arange(graph.n_nodes)) == sorted(ids[: graph.n_entities]) + sorted(
        ids[graph.n_entities :]
    )
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
    assert graph.specificity[nodes] == pytest.approx([1 / row["n"] for row in mentioned])


def test_weights_go_to_the_nodes_of_known_ids_and_the_best_come_back(engine):
    graph = engine.index.graph
    chunk = graph.ids_of(np.array([graph.n_nodes - 1]))[0]
    spread = graph.weigh_chunks({"unknown": 5.0, chunk: 2.0, make_id("entity", "Scrooge"): 1.0})
    assert spread.nonzero()[0].tolist() == [graph.n_nodes - 1]
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


def test_ppr_is_pagerank_of_its_definition(engine):
    question = "Who was the clerk of Scrooge in London?"
    index = engine.index
    graph = nx.Graph()
    graph.add_nodes_from(row["id"] for row in index.rows("SELECT id FROM entities"))
    graph.add_nodes_from(row["id"] for row in index.rows("SELECT id FROM chunks"))
    mentions = index.rows("SELECT entity_id, chunk_id FROM entity_chunks")
    graph.add_weighted_edges_from((row["entity_id"], row["chunk_id"], 1) for row in mentions)
    facts = index.rows(
        """SELECT r.id, source_id, target_id, coalesce(sum(n_mentions), 1) AS n FROM relationships r
           LEFT JOIN relationship_chunks c ON c.relationship_id = r.id GROUP BY ALL"""
    )
    graph.add_weighted_edges_from((r["source_id"], r["target_id"], int(r["n"])) for r in facts)
    seeds = dict.fromkeys(graph, 0.0)
    for title in ("Scrooge", "London"):
        seeds[make_id("entity", title)] += 1
    stated = index.search_text("relationships", question, 5).to_pylist()
    ends = {row["id"]: (row["source_id"], row["target_id"]) for row in facts}
    for hit in stated:
        for end in ends[hit["id"]]:
            seeds[end] += hit["score"] / stated[0]["score"] / 5
    for entity in {row["entity_id"] for row in mentions}:
        seeds[entity] /= sum(row["entity_id"] == entity for row in mentions)
    similar = index.search_text("chunks", question, 100).to_pylist()
    for hit in similar:
        seeds[hit["id"]] += 0.05 * (hit["score"] / similar[0]["score"]) ** 2
    expected = networkx_pagerank(graph, seeds, 0.5)
    found = engine.retrieve(question, "ppr").records
    chunks = [r["id"] for r in index.rows("SELECT id FROM chunks") if expected[r["id"]] > 1e-9]
    assert len(chunks) > 2
    assert [r.id for r in found] == sorted(chunks, key=lambda key: (-expected[key], key))[:10]
    assert [r.score for r in found] == pytest.approx([expected[r.id] for r in found], abs=1e-5)


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
