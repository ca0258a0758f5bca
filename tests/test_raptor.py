import random
from types import SimpleNamespace

import pytest
from model_server import ModelServer, prompt_filtered

from conftest import Engine, build, workspace_of
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.settings import ChunkSettings, HierarchySettings, Settings
from graphrag_pipeline.llm.estimates import Chunks, Growth
from graphrag_pipeline.planning.estimates import estimate
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.structures.nested_mixtures import NestedMixture
from graphrag_pipeline.structures.registry import ask_for_clustering, vector_tables
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import CHUNKS
from graphrag_pipeline.systems.raptor import structure
from graphrag_pipeline.systems.raptor.structure import RAPTOR, TREE_VECTORS
from graphrag_pipeline.systems.raptor.tree import _Fit, update_tree

ASKED = HierarchySettings(raptor=True, raptor_cluster_tokens=100, summary_tokens=40)
NODES = "SELECT id, layer, text, n_children FROM raptor_nodes ORDER BY ALL"
EDGES = "SELECT * FROM raptor_edges ORDER BY ALL"
BELOW = """
WITH RECURSIVE below AS (
    SELECT child_id FROM raptor_edges WHERE node_id = '{}' UNION
    SELECT e.child_id FROM raptor_edges e JOIN below b ON e.node_id = b.child_id)
SELECT child_id FROM below SEMI JOIN chunks ON chunks.id = child_id
"""
SUBJECTS = [
    "harbour ship cargo crane captain anchor pier tide",
    "violin concert orchestra melody conductor rehearsal sonata stage",
    "vineyard grape harvest cellar barrel bottle cork autumn",
    "telescope planet comet orbit observatory lens night galaxy",
    "surgeon hospital patient clinic nurse fever bandage ward",
    "railway locomotive station signal carriage driver tunnel platform",
]
MARKED = "The zanzibarite smuggler hid a zanzibarite box on the pier behind the cargo crane."

QUESTION = "What did the conductor of the orchestra rehearse?"


def corpus(n=40):
    """Short texts on six subjects, each of two sentences of words of its subject."""
    chance = random.Random(5)
    texts = {}
    for number in range(n):
        words = SUBJECTS[number % len(SUBJECTS)].split()
        said = [chance.sample(words, 5) for _ in range(2)]
        texts[f"{number:02}.txt"] = " ".join(
            f"The {a} of the {b} and one {c} met a {d} near some {e}." for a, b, c, d, e in said
        )
    return texts


def tree(engine):
    """Bring the tree and the vectors around it up to date; return what is told of it."""
    embed_table(engine.workspace, CHUNKS)
    done = update_tree(engine.workspace.store, engine.workspace.vectors, engine.workspace.settings)
    embed_table(engine.workspace, TREE_VECTORS)
    with engine.store.read() as con:
        assert invariants.violations(con, structure.LEADS_TO_CHUNKS) == 0
        assert invariants.violations(con, structure.NODES_HAVE_CHILDREN) == 0
    assert done.failed == done.facts["failed"]
    return SimpleNamespace(**done.facts)


def embed(engine):
    for table in vector_tables(engine.settings):
        embed_table(engine.workspace, table)


def grown(folder, files, **given):
    engine = Engine(folder, Settings(hierarchies=ASKED, home=str(folder / ".graphrag"), **given))
    engine.write(files)
    engine.index()
    return engine


def follow(engine, files):
    engine.write(files)
    engine.index()
    return tree(engine)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    engine = grown(tmp_path_factory.mktemp("raptor"), corpus())
    engine.cluster()
    engine.report()
    given = engine.settings
    embed(engine)
    with pytest.raises(StorageError, match="the RAPTOR tree"):
        publish(workspace_of(engine.log.home, given))
    tree(engine)
    publish(workspace_of(engine.log.home, given))
    return engine


def test_a_tree_of_summaries_stands_on_all_chunks_and_is_the_same_when_made_again(published):
    engine = published
    layers = engine.rows("SELECT layer, count(*) FROM raptor_nodes GROUP BY layer ORDER BY layer")
    assert [layer for layer, _ in layers] == [1, 2]
    assert 40 > layers[0][1] > layers[1][1] > 0
    assert tree(engine).summarised == 0
    assert all(0 < n <= 45 for (n,) in engine.rows("SELECT n_tokens FROM raptor_nodes"))
    texts = engine.rows(
        "SELECT n.text, string_agg(c.text, ' ') FROM raptor_nodes n JOIN raptor_edges e "
        "ON e.node_id = n.id JOIN chunks c ON c.id = e.child_id GROUP BY n.id, n.text"
    )
    assert all(part in below for said, below in texts for part in said.split(". "))
    before = engine.rows(NODES), engine.rows(EDGES)
    with engine.store.transaction() as con:
        RAPTOR.clear(con)
    assert tree(engine).summarised == sum(n for _, n in layers)
    assert (engine.rows(NODES), engine.rows(EDGES)) == before


@pytest.mark.parametrize("mode", ["collapsed", "tree"])
def test_chunks_and_summaries_are_found_and_cite_the_chunks_below(published, mode):
    with QueryEngine(published.log.home, settings=published.settings) as engine:
        found = engine.retrieve(QUESTION, "raptor", mode=mode, top_k=20)
        short = engine.retrieve(QUESTION, "raptor", mode=mode, max_context_tokens=120)
        answer = engine.answer(QUESTION, "raptor", mode=mode, top_k=20)
    assert {record.kind for record in found.records} == {"chunk", "summary"}
    assert 0 < sum(record.n_tokens for record in short.records) <= 120
    assert "-----Summaries-----" in found.context
    assert len(found.citations) > 1
    chunks = {
        node: {chunk for (chunk,) in published.rows(BELOW.format(node))}
        for node in (record.id for record in found.records if record.kind == "summary")
    }
    for record in found.records:
        if record.kind == "summary":
            assert set(record.attributes["chunk_ids"]) <= chunks[record.id]
            assert len(record.attributes["chunk_ids"]) == min(3, len(chunks[record.id]))
    documents = dict(published.rows("SELECT id, text FROM documents"))
    for citation in (*found.citations, *answer.citations):
        span = documents[citation.document_id][citation.start_char : citation.end_char]
        assert span == citation.text
    assert "orchestra" in answer.text


def test_tree_search_goes_from_what_has_no_summary_to_parts_of_what_was_chosen(published):
    with QueryEngine(published.log.home, settings=published.settings) as engine:
        found = engine.retrieve(QUESTION, "raptor", mode="tree", layer_k=1).records
    parents = {}
    for node, child in published.rows(EDGES):
        parents.setdefault(child, set()).add(node)
    chosen = {record.id for record in found}
    tops = [record.id for record in found if record.id not in parents]
    assert len(tops) == 1
    assert all(parents[key] & chosen for key in chosen - set(tops))
    assert sorted(r.attributes.get("layer", 0) for r in found) == list(range(len(found)))


def test_without_the_setting_the_next_release_has_no_tree_and_the_error_names_it(published):
    home = published.log.home
    off = Settings(home=str(home))
    publish(workspace_of(home, off))
    assert published.rows(NODES) == published.rows(EDGES) == []
    assert published.rows("FROM staging.raptor_fitted") == []
    with (
        QueryEngine(home, settings=off) as engine,
        pytest.raises(InputError, match=r"no RAPTOR tree: set hierarchies\.raptor = true"),
    ):
        engine.retrieve(QUESTION, "raptor")


def test_only_clusters_that_changed_are_summarised_and_removed_text_leaves_no_trace(published):
    engine = published
    tree(engine)
    before = engine.rows(NODES)
    first = len(before)
    added = follow(engine, {"more.txt": MARKED})
    assert (added.layers_clustered_anew, added.failed) == (0, 0)
    assert 0 < added.summarised < first / 3
    assert added.reused == len(set(engine.rows(NODES)) & set(before))
    chunk = engine.rows("SELECT id FROM chunks WHERE contains(text, 'zanzibarite')")
    assert chunk[0][0] in {child for _, child in engine.rows(EDGES)}
    with engine.store.transaction() as con:
        con.execute("UPDATE raptor_nodes SET text = 'zanzibarite' FROM raptor_edges "
                    "WHERE node_id = raptor_nodes.id AND child_id = ?", chunk[0])  # fmt: skip
    changed = {"00.txt": corpus()["00.txt"].replace("harbour", "lagoon")}
    assert 0 < follow(engine, {"more.txt": None, **changed}).summarised < first / 2
    traces = "SELECT count(*) FROM {} t WHERE contains(t::VARCHAR, '{}')"
    for table in ("raptor_nodes", "raptor_edges", "staging.raptor_fitted"):
        assert engine.rows(traces.format(table, "zanzibarite")) == [(0,)]
        assert engine.rows(traces.format(table, chunk[0][0])) == [(0,)]
    ask_for_clustering(engine.workspace.store)
    assert tree(engine).layers_clustered_anew > 0


def test_a_layer_is_clustered_anew_once_a_fifth_of_its_rows_came_or_went():
    fit = _Fit(NestedMixture(), 10, frozenset("abcdefghij"))
    assert not fit.outdated("abcdefghijkl")
    assert fit.outdated("abcdefghijklm")
    assert not fit.outdated("abcdefghxy")
    assert fit.outdated("abcdefgxyz")


def test_a_model_summarises_what_changed_and_what_failed_is_tried_again(published, monkeypatch):
    def mind(messages):
        return "A summary of " + messages[-1]["content"][-40:].replace("\n", " ")

    engine, home = published, str(published.log.home)
    one = engine.rows("SELECT text FROM chunks ORDER BY id LIMIT 1")[0][0]
    with ModelServer(mind) as server:
        given = {"reports": {"writer": "llm"}, "llm": {"base_url": server.base_url}}
        monkeypatch.setattr(engine, "settings", Settings(home=home, hierarchies=ASKED, **given))
        refused = [prompt_filtered()]
        server.misbehave(lambda r: refused.pop() if refused and one in r.text else None)
        first = tree(engine)
        assert (first.failed, first.reused) == (1, 0)
        assert first.summarised == len(server.asked()) - 1
        assert all("<text id=" in request.text for request in server.asked())
        server.forget()
        healed = tree(engine)
        assert healed.failed == 0
        assert 0 < healed.summarised == len(server.asked()) < first.summarised / 2
        server.forget()
        assert tree(engine).summarised == 0
        removed = follow(engine, {"07.txt": None})
        assert 0 < removed.summarised == len(server.asked()) < first.summarised / 2
    assert {by for (by,) in engine.rows("SELECT written_by FROM raptor_nodes")} == {"gpt-4.1-mini"}


def test_a_plan_counts_the_summaries_of_a_new_tree_and_those_that_new_chunks_change():
    given = Settings(hierarchies=HierarchySettings(raptor=True), reports={"writer": "llm"})

    def summaries(grown, **known):
        (stage,) = estimate(given, Growth(grown=grown, **known))
        return stage.stage, stage.calls

    assert summaries(Chunks(), indexed=Chunks(3271, 1_174_000)) == ("raptor_tree", 1174)
    assert summaries(Chunks(2, 700), rows={"raptor_nodes": 1179}) == ("raptor_tree", 12)


def test_where_all_texts_are_alike_there_is_no_tree_and_chunks_are_found(tmp_path):
    files = {f"{n}.txt": "Alike." for n in range(12)}
    engine = build(tmp_path, files, hierarchies=ASKED, chunks=ChunkSettings(size=50, overlap=0))
    assert not any(vars(tree(engine)).values())
    embed(engine)
    publish(engine.workspace)
    with QueryEngine(engine.log.home, settings=engine.settings) as query:
        for mode in ("collapsed", "tree"):
            assert query.retrieve("a short text alike", "raptor", mode=mode).records
