"""HippoRAG and HippoRAG 2 on a graph of six names, worked by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from model_server import ModelServer, server_error

from conftest import workspace_of
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import EmbeddingSettings, Settings
from graphrag_pipeline.exchange.importing.extractions import import_extractions
from graphrag_pipeline.graph.communities import update_communities
from graphrag_pipeline.graph.fold import merge_graph
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.operators import best_facts, scaled_search
from graphrag_pipeline.query.operators.facts import texts_of_facts
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.levels import update_reports
from graphrag_pipeline.structures.registry import vector_tables
from graphrag_pipeline.structures.synonyms.linking import update_synonyms
from graphrag_pipeline.structures.updating import embed_table

PASSAGES = {
    "founding": ("Ada Lind founded Orion Works.", [("Ada Lind", "founded", "Orion Works")]),
    "place": ("Orion Works stands in Varna.", [("Orion Works", "stands in", "Varna")]),
    "again": ("In spring Orion Works stands in Varna.", [("Orion Works", "stands in", "Varna")]),
    "sea": ("Varna lies by Gull Bay.", [("Varna", "lies by", "Gull Bay")]),
    "lamp": ("Ada Linden sold lamps to Kora Lund.", [("Ada Linden", "sold to", "Kora Lund")]),
}
ENTITIES = ["Ada Lind", "Orion Works", "Varna", "Gull Bay", "Ada Linden", "Kora Lund"]
SYNONYM = ("Ada Lind", "Ada Linden", 0.9)
NODES = [*ENTITIES, *PASSAGES]
QUESTION = "Who founded Orion Works?"
ASKED = EmbeddingSettings(facts=True, synonyms=True, dimensions=256)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hippo")
    lines = [
        {"document": title, "text": text, "triples": triples}
        for title, (text, triples) in PASSAGES.items()
    ]
    (folder / "found.jsonl").write_text("\n".join(map(json.dumps, lines)))
    given = Settings(home=str(folder), embeddings=ASKED)
    workspace = workspace_of(folder, given)
    import_extractions(folder / "found.jsonl", workspace)
    store = workspace.store
    merge_graph(workspace.store, workspace.settings.graph, workspace.settings.chunks.encoding)
    update_communities(store, given.communities)
    by = ExtractiveWriter(given.reports)
    update_reports(store, given.reports, 0, and_deeper=True, writer=by)
    for table in vector_tables(given):
        embed_table(workspace, table)
    update_synonyms(workspace.store, workspace.vectors, given.embeddings.synonym_similarity)
    with store.transaction() as con:
        con.execute("DELETE FROM synonym_edges")
        for one, two in (SYNONYM[:2], SYNONYM[1::-1]):
            con.execute(
                """INSERT INTO synonym_edges SELECT s.id, t.id, $like FROM entities s, entities t
                   WHERE s.title = $one AND t.title = $two""",
                {"one": one, "two": two, "like": SYNONYM[2]},
            )
    publish(workspace_of(folder, given))
    return folder


@pytest.fixture(scope="module")
def engine(home):
    with QueryEngine(home, settings=Settings(home=str(home), embeddings=ASKED)) as opened:
        yield opened


def asking(home, server):
    """An engine whose answers a model writes."""
    sections = {"query": {"answers": "llm"}, "llm": {"base_url": server.base_url, "max_retries": 0}}
    given = {"home": str(home), "embeddings": ASKED, **sections}
    return QueryEngine(home, settings=Settings.model_validate(given))


def by_hand(edges, seeds, damping):
    """PageRank as the solution of its equation, by node."""
    matrix = np.zeros((len(NODES), len(NODES)))
    for one, two, weight in edges:
        i, j = NODES.index(one), NODES.index(two)
        matrix[i, j] += weight
        matrix[j, i] += weight
    sums = matrix.sum(axis=0)
    walk = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums > 0)
    start = np.array([seeds.get(node, 0.0) for node in NODES])
    start /= start.sum()
    # A walk that is at a node without edges returns to the seeds.
    walk[:, sums == 0] = start[:, None]
    solved = np.linalg.solve(np.eye(len(NODES)) - damping * walk, (1 - damping) * start)
    return dict(zip(NODES, solved.tolist(), strict=True))


FACT_EDGES = [
    ("Ada Lind", "Orion Works", 1),
    ("Orion Works", "Varna", 2),
    ("Varna", "Gull Bay", 1),
    ("Ada Linden", "Kora Lund", 1),
    SYNONYM,
]
MENTIONS = [
    ("founding", "Ada Lind"),
    ("founding", "Orion Works"),
    ("place", "Orion Works"),
    ("place", "Varna"),
    ("again", "Orion Works"),
    ("again", "Varna"),
    ("sea", "Varna"),
    ("sea", "Gull Bay"),
    ("lamp", "Ada Linden"),
    ("lamp", "Kora Lund"),
]
CHUNKS_OF = {name: sum(name == entity for _, entity in MENTIONS) for name in ENTITIES}


def shown(records):
    return {record.title: record.score for record in records}


def facts_of(engine):
    facts = best_facts(engine.index, QUESTION, 5)
    return dict(zip(texts_of_facts(engine.index, facts), (f.score for f in facts), strict=True))


def passages_by_hand(engine, facts):
    """What HippoRAG 2 gives from these facts, as (ends, score) each."""
    weights = {}
    for ends, score in facts:
        for end in ends:
            weights.setdefault(end, []).append(score / CHUNKS_OF[end])
    seeds = {end: sum(given) / len(given) for end, given in weights.items()}
    rows = engine.index.rows(
        "SELECT c.id, d.title FROM chunks c JOIN documents d ON d.id = c.document_id"
    )
    titles = {row["id"]: row["title"] for row in rows}
    near = scaled_search(engine.index, "chunks", QUESTION)
    seeds |= {titles[key]: 0.05 * score for key, score in near.items()}
    edges = [*FACT_EDGES, *((*pair, 1) for pair in MENTIONS)]
    solved = by_hand(edges, seeds, 0.5)
    return {title: solved[title] for title in PASSAGES}


FOUNDED = ("Ada Lind", "Orion Works")
STANDS = ("Orion Works", "Varna")


def test_hipporag2_is_pagerank_from_facts_and_passages(engine):
    facts = facts_of(engine)
    assert facts["Ada Lind founded Orion Works"] == 1
    assert 0 < facts["Orion Works stands in Varna"] < 1
    expected = passages_by_hand(
        engine, [(FOUNDED, 1.0), (STANDS, facts["Orion Works stands in Varna"])]
    )
    found = engine.retrieve(QUESTION, "hipporag2")
    assert shown(found.records) == pytest.approx(expected, abs=2e-6)
    assert list(shown(found.records)) == sorted(expected, key=lambda t: -expected[t])
    assert "not filtered: no model was asked" in found.steps[0]
    assert engine.retrieve(QUESTION, "hipporag2").records == found.records


def test_hipporag2_uses_titles_and_coverage_where_asked(engine):
    timings = engine.retrieve(QUESTION, "hipporag2", titles=True, covering=True).timings
    assert {"titles_in", "covering"} <= set(timings)
    assert {"titles_in", "covering"}.isdisjoint(engine.retrieve(QUESTION, "hipporag2").timings)


def test_hipporag2_without_facts_is_the_nearest_passages(engine):
    question = "In spring?"
    found = engine.retrieve(question, "hipporag2")
    assert found.steps[-1] == "no facts left: passages by similarity"
    near = scaled_search(engine.index, "chunks", question)
    assert [record.id for record in found.records] == list(near)
    assert [record.title for record in found.records] == ["again"]


@pytest.mark.parametrize(
    ("chosen", "kept"), [("[2]", [STANDS]), ("[]", []), ("[1, 2, 9, 0]", [FOUNDED, STANDS])]
)
def test_hipporag2_goes_from_the_facts_that_the_model_keeps(home, engine, chosen, kept):
    asked = []

    def play(messages):
        if "numbered facts" not in messages[0]["content"]:
            return "So it is."
        asked.append(messages[-1]["content"])
        return f'{{"facts": {chosen}}}'

    with ModelServer(play) as server, asking(home, server) as answering:
        found = answering.answer(QUESTION, "hipporag2")
    assert "1. Ada Lind founded Orion Works\n2. Orion Works stands in Varna" in asked[0]
    assert found.calls == {"filter facts": 1, "answer": 1}
    got = shown(found.retrieval.records)
    if kept:
        facts = facts_of(engine)
        scores = {FOUNDED: 1.0, STANDS: facts["Orion Works stands in Varna"]}
        expected = passages_by_hand(engine, [(ends, scores[ends]) for ends in kept])
        assert got == pytest.approx(expected, abs=2e-6)
    else:
        assert set(got) == {"founding", "place", "again"}


def test_hipporag2_keeps_all_facts_where_the_filter_fails_and_says_so(home, engine):
    faults = [server_error()]
    server = ModelServer(lambda messages: "So.", faults=faults)
    with server, asking(home, server) as answering:
        found = answering.answer(QUESTION, "hipporag2")
    assert found.failures[0].startswith("filter facts: ")
    expected = shown(engine.retrieve(QUESTION, "hipporag2").records)
    assert shown(found.retrieval.records) == expected


def test_hipporag_is_pagerank_over_names_from_those_of_the_question(engine):
    question = "What did Ada Lind and Gull Bay have in common?"
    found = engine.retrieve(question, "hipporag")
    assert CHUNKS_OF["Ada Lind"] == CHUNKS_OF["Gull Bay"] == 1
    solved = by_hand(FACT_EDGES, {"Ada Lind": 1.0, "Gull Bay": 1.0}, 0.5)
    expected = dict.fromkeys(PASSAGES, 0.0)
    for passage, name in MENTIONS:
        expected[passage] += solved[name]
    assert shown(found.records) == pytest.approx(expected, abs=2e-6)
    assert found.records[0].title in ("founding", "sea")


def test_hipporag_weighs_names_by_how_few_passages_have_them(engine):
    found = engine.retrieve("Does Orion Works know Kora Lund?", "hipporag")
    seeds = {"Orion Works": 1 / CHUNKS_OF["Orion Works"], "Kora Lund": 1.0}
    solved = by_hand(FACT_EDGES, seeds, 0.5)
    lamp = solved["Ada Linden"] + solved["Kora Lund"]
    assert found.records[0].title == "lamp"
    assert found.records[0].score == pytest.approx(lamp, abs=2e-6)


def test_hipporag_takes_the_names_that_a_model_finds(home, engine):
    def play(messages):
        named = "Name the entities" in messages[0]["content"]
        return json.dumps({"entities": ["Kora Lund"]}) if named else "So."

    with ModelServer(play) as server, asking(home, server) as answering:
        found = answering.answer("who bought lamps?", "hipporag")
    assert found.retrieval.records[0].title == "lamp"
    assert found.calls == {"entities": 1, "answer": 1}


def test_hipporag_without_a_name_is_the_nearest_passages(engine):
    found = engine.retrieve("who sold lamps?", "hipporag")
    assert found.steps == ("names looked for: none", "no entity linked: passages by similarity")
    assert [record.title for record in found.records] == ["lamp"]


def test_what_a_release_lacks_is_called_as_its_setting_is(engine, monkeypatch):
    monkeypatch.setattr(engine.index, "facts", replace(engine.index.facts, vector_versions={}))
    for method, setting in (("hipporag", "synonyms"), ("hipporag2", "facts")):
        with pytest.raises(InputError, match=f"has no {setting}: set embeddings.{setting} = true"):
            engine.retrieve(QUESTION, method)


def test_fast_graphrag_goes_on_between_entities_that_are_the_same_by_their_titles(engine):
    found = engine.retrieve("Kora Lund", "fast_graphrag", generic_similarity=1.0).records
    edges = [(one, two, 1) for one, two, _ in FACT_EDGES]
    assert (*SYNONYM[:2], 1) in edges
    expected = by_hand(edges, {"Kora Lund": 1.0}, 0.85)
    got = {record.title: record.score for record in found if record.kind == "entity"}
    assert got == pytest.approx({title: expected[title] for title in ENTITIES}, abs=2e-6)
