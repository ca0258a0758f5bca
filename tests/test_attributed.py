"""Attributed communities worked by hand, kept up with a changing corpus, and asked (ArchRAG)."""

import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import dagster as dg
import numpy as np
import polars as pl
import pytest
from model_server import Fault, ModelServer

from conftest import Engine, build, workspace_of
from graphrag_pipeline.assets import Names, build_tail
from graphrag_pipeline.assets.embeddings import embedding_key
from graphrag_pipeline.assets.structures import structure_keys
from graphrag_pipeline.core.errors import ConfigError, InputError, StorageError
from graphrag_pipeline.core.settings import (
    EmbeddingSettings,
    HierarchySettings,
    Settings,
    load_settings,
)
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.writing.references import Shown, resolve
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.resources import IndexResource
from graphrag_pipeline.store.index_store import set_meta
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.structures.registry import ask_for_clustering, vector_tables
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import ENTITIES
from graphrag_pipeline.systems.archrag import communities as attributed
from graphrag_pipeline.systems.archrag import similarity, structure
from graphrag_pipeline.systems.archrag.clusterings import (
    CLUSTERINGS,
    AttributedNodes,
    augmented,
    links_of,
)
from graphrag_pipeline.systems.archrag.communities import (
    COMMUNITY_VECTORS,
    LevelClusters,
    calinski_harabasz,
    communities_of,
    community_graph,
    update_attributed,
)
from graphrag_pipeline.systems.archrag.index import update_chnsw
from graphrag_pipeline.systems.archrag.similarity import update_similarity

ASKED = {
    "hierarchies": HierarchySettings(attributed=True),
    "embeddings": EmbeddingSettings(dimensions=64),
}
HIERARCHY = {*structure_keys(Settings(**ASKED)), embedding_key("attributed_communities")}
FIRST = ("Alice", "Bob", "Carol", "Dora", "Emil", "Frank")
CLANS = ("Smith", "Jones", "Brown", "Venn", "Dorn", "Fuchs", "Lund", "Berg", "Claude", "Iversen",
         "Orban", "Takacs")  # fmt: skip
TABLES = ("attributed_communities", "attributed_members", "similarity_edges",
          "staging.attributed_clusters", "staging.similarity_nearest",
          "staging.similarity_searched")  # fmt: skip
REPORTS = """
SELECT id, level, context_hash, full_content FROM attributed_communities
WHERE full_content IS NOT NULL ORDER BY id
"""
QUESTION = "What did Alice Venn pay for at the Venn Mill?"


def circle(clan: str, pays: str) -> str:
    """Six people of one name, who meet at a mill, and one who pays somebody elsewhere."""
    names = [f"{first} {clan}" for first in FIRST]
    meetings = [
        f"{name} met {names[(i + 1) % 6]} and {names[(i + 2) % 6]} at the {clan} Mill."
        for i, name in enumerate(names)
    ]
    return " ".join([*meetings, f"Alice {clan} paid Bob {pays}."])


REPORTS_BY_LEVEL = """
SELECT level, count(*) FROM attributed_communities WHERE full_content IS NOT NULL GROUP BY level
"""
FILES = {f"{c}.txt": circle(c, CLANS[(i + 1) % 4 + 4 * (i // 4)]) for i, c in enumerate(CLANS)}
"""Twelve circles, each a community; those of four in turn are linked to each other."""


def follow(engine: Engine, tables=(ENTITIES,)):
    """Bring the hierarchy up to date with the graph; return what is told of it."""
    for table in tables:
        embed_table(engine.workspace, table)
    update_similarity(engine.workspace.store, engine.workspace.vectors)
    done = update_attributed(
        engine.workspace.store, engine.workspace.vectors, engine.workspace.settings
    )
    embed_table(engine.workspace, COMMUNITY_VECTORS)
    index = update_chnsw(engine.workspace.store, engine.workspace.vectors).facts
    reports = dict(engine.rows(REPORTS_BY_LEVEL))
    nodes = [int(number) for number in str(index["nodes"]).split(", ")]
    return (
        SimpleNamespace(**done.facts, failed=done.failed, reports=reports),
        SimpleNamespace(nodes=nodes, built=index["built"]),
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Engine:
    engine = build(tmp_path_factory.mktemp("attributed"), FILES, **ASKED)
    below = [table for table in vector_tables(engine.settings) if table != COMMUNITY_VECTORS]
    engine.done = follow(engine, below)
    publish(engine.workspace)
    return engine


@pytest.fixture
def copied(built, tmp_path) -> Engine:
    """An index of one's own, as :func:`built` was."""
    shutil.copytree(built.inbox.parent, tmp_path, dirs_exist_ok=True)
    return Engine(tmp_path, built.settings)


def by_model(engine: Engine, server: ModelServer, **more) -> Engine:
    """The same index where a model writes reports or answers."""
    sections = {"llm": {"base_url": server.base_url, "max_retries": 0}, **more}
    given = Settings.model_validate({**ASKED, **sections})
    return Engine(engine.inbox.parent, given)


@pytest.fixture(scope="module")
def asking(built):
    with QueryEngine(built.log.home, settings=built.settings) as engine:
        yield engine


def graph_of_four() -> AttributedNodes:
    """a and d are one direction, b lies between these and c; a - b and b - c are linked."""
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1], [1, 0]], np.float32)
    own = pl.DataFrame({"node_id": list("abcd"), "entity_id": list("abcd")})
    return AttributedNodes(
        pl.Series(list("abcd")), vectors, (np.array([0, 1]), np.array([1, 2])), own
    )


def test_like_nodes_are_linked_and_every_edge_weighs_how_alike_its_ends_are():
    nodes = graph_of_four()
    assert similarity.mean_degree(nodes.links) == 1
    assert similarity.least_similarity(nodes.vectors, nodes.links) == pytest.approx(0.74)
    # One more for each node: a and d are each other's, b has d at 0.8, c has none above 0.74.
    assert augmented(nodes).rows() == [(0, 1, 0.8), (0, 3, 1.0), (1, 2, 0.6), (1, 3, 0.8)]


def test_communities_are_linked_where_their_members_are_also_by_likeness():
    nodes = graph_of_four()
    members = pl.DataFrame({"community_id": ["x", "x", "y", "z"], "member_id": list("abcd")})
    found = LevelClusters(members, [], augmented(nodes))
    above = community_graph(nodes, found, np.eye(3, dtype=np.float32))
    assert above.ids.to_list() == ["x", "y", "z"]
    assert [ends.tolist() for ends in above.links] == [[0, 0], [1, 2]]
    assert sorted(above.entities.rows()) == [("x", "a"), ("x", "b"), ("y", "c"), ("z", "d")]


def test_links_alone_weigh_one_each():
    assert links_of(graph_of_four()).rows() == [(0, 1, 1.0), (1, 2, 1.0)]


def test_calinski_harabasz_is_the_papers():
    vectors = np.array([[0, 0], [0, 2], [4, 0], [4, 2]], np.float32)
    # Between: 4 x 2 squared / (2 - 1); within: 4 x 1 / (4 - 2).
    assert calinski_harabasz(vectors, np.array([0, 0, 1, 1])) == pytest.approx(16 / 2)
    assert calinski_harabasz(vectors, np.zeros(4, int)) is None


def test_nearest_entities_follow_a_change_as_if_all_were_searched_again(monkeypatch):
    random = np.random.default_rng(2)
    vectors = similarity.unit(random.standard_normal((60, 8)).astype(np.float32))
    names = pl.DataFrame({"id": [f"{n:02}" for n in range(60)], "text_hash": "x"})
    none = pl.DataFrame(schema={"entity_id": pl.String, "text_hash": pl.String})
    no_pairs = pl.DataFrame(
        schema={"source_id": pl.String, "target_id": pl.String, "similarity": pl.Float64}
    )
    n, near = similarity._nearest(names, none, no_pairs, vectors, 4)
    assert (n, len(near)) == (60, 60 * 7)
    known = similarity._named(names["id"], near)
    stays = [place for place in range(60) if place != 5]
    changed = names[stays].with_columns(
        text_hash=pl.when(pl.col("id") == "09").then(pl.lit("y")).otherwise("text_hash")
    )
    vectors[9] = -vectors[9]
    seen = names.rename({"id": "entity_id"})
    n, followed = similarity._nearest(changed, seen, known, vectors[stays], 4)
    _, fresh = similarity._nearest(changed, none, no_pairs, vectors[stays], 4)
    assert followed.equals(fresh)
    assert 0 < n < 40
    monkeypatch.setattr(similarity, "EXACT_PAIRS", 0)
    _, by_index = similarity._nearest(names, none, no_pairs, vectors, 4)
    _, exact = similarity._nearest(names, none, no_pairs, vectors, 4)
    assert by_index.equals(exact)


def test_circles_are_communities_and_several_circles_one_above(built):
    done, index = built.done
    assert done.reports == {1: 12, 2: 3}
    assert index.nodes == [84, 12, 3]
    assert done.modularity > 0.8
    rows = built.rows(
        """SELECT level, list_sort(list(DISTINCT split_part(e.title, ' ', 2))) AS clans
           FROM attributed_communities c JOIN attributed_entities a ON a.community_id = c.id
           JOIN entities e ON e.id = a.entity_id
           WHERE e.title NOT LIKE '%Mill' GROUP BY level, c.id ORDER BY ALL"""
    )
    assert rows[:12] == [(1, [clan]) for clan in sorted(CLANS)]
    assert {level for level, _ in rows[12:]} == {2}
    assert all(len(clans) > 1 for _, clans in rows[12:])
    assert sorted(clan for _, clans in rows[12:] for clan in clans) == sorted(CLANS)


@pytest.mark.parametrize("by", [name for name in CLUSTERINGS.names() if name != "attributed"])
def test_ablations_cluster_otherwise_and_are_left_again(copied, by):
    def clustered(by: str) -> Engine:
        asked = HierarchySettings(attributed=True, attributed_clustering=by)
        return Engine(copied.inbox.parent, Settings(**{**ASKED, "hierarchies": asked}))

    query = "SELECT community_id, member_id FROM attributed_members ORDER BY ALL"
    before = copied.rows(query)
    engine = clustered(by)
    done, _ = follow(engine)
    sizes = engine.rows("SELECT size FROM attributed_communities WHERE level = 1")
    assert sum(size for (size,) in sizes) == 84
    # Three parts of four circles each: a fifteenth of 28 nodes is two clusters a part.
    n_reports = {"links": 12, "spectral": 6, "spectral_links": 6, "spectral_unweighted": 6}
    assert done.reports[1] == n_reports.get(by, done.reports[1]) > 0
    follow(clustered("attributed"))
    assert copied.rows(query) == before


def test_a_clustering_that_is_not_there_is_told_with_what_brings_it():
    asked = HierarchySettings(attributed=True, attributed_clustering="sorting")
    with pytest.raises(ConfigError, match=r"no clustering 'sorting' .*attributed, links.* install"):
        structure.ATTRIBUTED.version(Settings(hierarchies=asked))


def test_a_last_level_of_few_communities_is_left_out_where_that_is_asked(copied):
    asked = HierarchySettings(attributed=True, attributed_fewest=5)
    engine = Engine(copied.inbox.parent, Settings(**{**ASKED, "hierarchies": asked}))
    done, index = follow(engine)
    assert done.reports == {1: 12}
    assert index.nodes == [84, 12]


def test_the_invariants_hold_and_would_see_an_entity_without_a_community(built):
    kinds = (
        structure.ENTITIES_COVERED_ONCE,
        structure.LEAD_TO_ENTITIES,
        structure.CHNSW_HOLDS_EVERY_NODE,
        structure.SIMILAR_EXIST,
    )
    with built.store.read() as con:
        assert [invariants.violations(con, kind) for kind in kinds] == [0, 0, 0, 0]
        con.execute("BEGIN")
        con.execute(
            """DELETE FROM hierarchy_members WHERE hierarchy = 'attributed' AND entity_id = (
                   SELECT min(entity_id) FROM attributed_entities)"""
        )
        con.execute("UPDATE chnsw SET n_nodes = n_nodes - 1 WHERE layer = 2")
        assert [invariants.violations(con, kind) for kind in kinds] == [2, 0, 1, 0]
        con.execute("ROLLBACK")


def test_a_search_gives_reports_of_each_level_entities_relationships_and_text(asking):
    found = asking.retrieve(QUESTION, method="archrag")
    kinds = [record.kind for record in found.records]
    assert list(dict.fromkeys(kinds)) == ["report", "entity", "relationship", "chunk"]
    levels = [r.attributes["level"] for r in found.records if r.kind == "report"]
    assert levels == [2, 2, 2, 1, 1, 1, 1, 1]
    assert kinds.count("entity") == 5
    assert {r.title for r in found.records if r.kind == "entity"} >= {"Alice Venn", "Venn Mill"}
    best = next(r for r in found.records if r.kind == "report" and r.attributes["level"] == 1)
    assert "Venn Mill" in best.text
    assert sum(record.n_tokens for record in found.records) <= 12_000
    answer = asking.answer(QUESTION, method="archrag")
    assert any("Venn" in citation.text for citation in answer.citations)
    narrow = asking.retrieve(QUESTION, method="archrag", k=1, chunks=0, max_context_tokens=900)
    assert [r.kind for r in narrow.records].count("report") == 2
    assert sum(record.n_tokens for record in narrow.records) <= 900


def test_one_more_document_writes_only_what_it_touches_and_leaves_no_trace_when_it_goes(
    copied, monkeypatch
):
    before = {row[0]: row for row in copied.rows(REPORTS)}
    done, index = follow(copied)
    assert (done.written, done.reused, index.built) == (0, 15, False)
    text = "Gina Smith sold the Smith Mill to Alice Smith and Bob Smith in 1931."
    copied.write({"more.txt": text})
    copied.index()
    done, index = follow(copied)
    after = {row[0]: row for row in copied.rows(REPORTS)}
    lowest = [row for row in before.values() if row[1] == 1]
    assert [row[0] for row in after.values() if row[1] == 1] == [row[0] for row in lowest]
    touched = [row for key, row in after.items() if row != before.get(key)]
    assert done.written == len(touched) < 5
    assert [("Smith" in text, level) for _, level, _, text in touched if level == 1] == [(True, 1)]
    assert index.nodes == [85, 12, 3]
    assert "Gina" in told(copied)

    copied.write({"more.txt": None})
    copied.index()
    follow(copied)
    assert [row for row in copied.rows(REPORTS) if row[1] == 1] == lowest
    assert "Gina" not in told(copied)

    asked = []
    monkeypatch.setattr(
        attributed,
        "communities_of",
        lambda *given, follows, **more: (
            asked.append(follows) or communities_of(*given, follows=follows, **more)
        ),
    )
    ask_for_clustering(copied.workspace.store)
    follow(copied)
    assert set(asked) == {False}


def told(engine: Engine) -> str:
    """All that the tables and the vector table of this hierarchy hold."""
    tables = [str(engine.rows(f"FROM {table}")) for table in TABLES]
    ids = {title: key for key, title in engine.rows("SELECT id, title FROM entities")}
    store = VectorStore(engine.log.home / "vectors")
    name = "attributed_communities"
    snapshot = store.at({name: store.version(name)})
    found = snapshot.fulltext(name, "Gina", 20)["id"].to_pylist()
    texts = [*snapshot.texts(name, found).values()]
    return "".join([*tables, str(texts), ids.get("Gina Smith", "")])


def test_only_what_is_current_is_published_and_switched_off_it_is_gone_from_the_next_release(
    copied,
):
    store, home, given = copied.store, copied.log.home, copied.settings
    first = publish(workspace_of(home, given))
    for key, late in (("similarity_edges", "similarity edges"), ("chnsw", "the C-HNSW")):
        with store.transaction() as con:
            set_meta(con, key, "of something else")
        with pytest.raises(StorageError, match=late):
            publish(workspace_of(home, given))
        follow(copied)
    off = given.model_copy(update={"hierarchies": HierarchySettings()})
    publish(workspace_of(home, off))
    assert [copied.rows(f"SELECT count(*) FROM {table}") for table in TABLES] == [[(0,)]] * 6
    assert copied.rows("SELECT count(*) FROM chnsw") == [(0,)]
    with QueryEngine(home, settings=off) as now, pytest.raises(InputError, match="attributed ="):
        now.retrieve(QUESTION, method="archrag")
    with QueryEngine(home, settings=off, release=first.id) as before:
        assert before.retrieve(QUESTION, method="archrag").records


def clans_in(messages) -> list[str]:
    return sorted(set(re.findall(r"(\w+) Mill", messages[1]["content"])))


class Writer:
    """Writes a report on everything but one community, until it behaves."""

    def __init__(self) -> None:
        self.behaves = False

    def __call__(self, messages) -> str:
        clans = clans_in(messages)
        if clans == ["Venn"] and not self.behaves:
            return "no report today"
        finding = {"summary": "They meet.", "explanation": "They meet often."}
        return json.dumps(
            {"title": "A circle", "summary": f"Of {clans}.", "rating": 5,
             "rating_explanation": "They are few.", "findings": [finding]}
        )  # fmt: skip


def test_a_model_writes_the_reports_once_and_again_only_one_that_failed(copied, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    writer = Writer()
    with ModelServer(writer) as server:
        engine = by_model(copied, server, reports={"writer": "llm"})
        done, index = follow(engine)
        assert (done.failed, index.nodes[1]) == (1, 11)
        assert engine.rows("SELECT attempts FROM attributed_communities WHERE error <> ''") == [
            (1,)
        ]
        asked = len(server.requests)
        writer.behaves = True
        done, index = follow(engine)
        assert (done.failed, index.nodes[1]) == (0, 12)
        again = [clans_in(request.messages) for request in server.requests[asked:]]
        assert done.written == len(again)
        # What stands above may hold other circles once this one is known by its report.
        assert [clans for clans in again if len(clans) == 1] == [["Venn"]]
        asked = len(server.requests)
        follow(engine)
        assert len(server.requests) == asked
    assert engine.rows("SELECT DISTINCT writer, error FROM attributed_communities") == [
        (engine.settings.llm.model, None)
    ]


def points(messages) -> str:
    """A model that scores by section, and tells what it merges."""
    last = messages[-1]["content"]
    if "Write the answer." in messages[0]["content"]:
        return "Alice paid Bob [Data: Entities (999)]."
    if "step by step" in messages[0]["content"]:
        return "Answer: from memory."
    section = last.split("-----")[1]
    score = {"Reports": 0, "Direct answer": 40}.get(section, 90)
    found = [{"description": f"said by {section}", "score": score},
             {"description": f"less by {section}", "score": score // 2}]  # fmt: skip
    return json.dumps({"points": found})


def test_points_of_no_use_are_dropped_and_the_rest_merged_in_order(built, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with ModelServer(points) as server:
        given = by_model(built, server, query={"answers": "llm"}).settings
        with QueryEngine(built.log.home, settings=given) as engine:
            plain = engine.answer(QUESTION, method="archrag")
            direct = engine.answer(QUESTION, method="archrag", own_answer=True)
        merged = [r.text for r in server.requests if "Write the answer." in r.text]
    # A call for each of three layers, and one to merge.
    assert plain.calls == {"map": 3, "reduce": 1}
    assert direct.calls == {"map": 4, "own answer": 1, "reduce": 1}
    assert plain.references_removed == 1
    # A report whose findings name no place cites the chunks that mention most of its entities.
    with QueryEngine(built.log.home, settings=given) as engine:
        found = engine.retrieve(QUESTION, method="archrag").records
        report = next(r for r in found if r.kind == "report")
        bare = replace(report, attributes={**report.attributes, "chunk_ids": []})
        cited = resolve(engine.index, Shown([bare]), [("Reports", bare.number)])
    assert cited
    assert all(place.text and place.document_id for place in cited)
    assert "Reports" not in merged[0].split("=== user")[-1].split("Answer 1,")[1]
    order = ["said by Entities", "less by Entities", "said by Direct answer", "less by Direct"]
    places = [merged[1].find(words) for words in order]
    assert places == sorted(places)
    assert min(places) > 0
    assert "Direct" not in merged[0]


def test_the_ablations_of_a_question_leave_out_what_they_say(built, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with ModelServer(points) as server:
        given = by_model(built, server, query={"answers": "llm"}).settings
        with QueryEngine(built.log.home, settings=given) as engine:
            levels = {
                layers: {
                    record.attributes["level"]
                    for record in engine.retrieve(QUESTION, "archrag", layers=layers).records
                    if record.kind == "report"
                }
                for layers in ("all", "single", "entities")
            }
            answers = {
                layers: engine.answer(QUESTION, "archrag", layers=layers).calls
                for layers in ("single", "entities")
            }
            direct = engine.answer(QUESTION, "archrag", prompting="direct")
    assert levels == {"all": {1, 2}, "single": {1}, "entities": set()}
    assert answers == {"single": {"map": 2, "reduce": 1}, "entities": {"map": 1, "reduce": 1}}
    assert direct.calls == {"answer": 1}
    assert {record.kind for record in direct.retrieval.records} >= {"report", "entity"}


def test_an_answer_of_its_own_that_cannot_be_read_costs_that_part_alone(built, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    unread = Fault(text="Hm.")
    with ModelServer(points) as server:
        server.misbehave(lambda r: unread if "-----Direct answer-----" in r.text else None)
        given = by_model(built, server, query={"answers": "llm"}).settings
        with QueryEngine(built.log.home, settings=given) as engine:
            found = engine.answer(QUESTION, method="archrag", own_answer=True)
    assert [failure.split(":")[0] for failure in found.failures] == ["own answer"]
    assert found.calls == {"map": 5, "own answer": 1, "reduce": 1}
    assert found.text.startswith("Alice paid Bob")


def test_the_assets_run_in_dagster_with_their_checks(copied, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_HOME", str(copied.log.home))
    monkeypatch.setenv("GRAPHRAG_HIERARCHIES__ATTRIBUTED", "true")
    monkeypatch.setenv("GRAPHRAG_EMBEDDINGS__DIMENSIONS", "64")
    text = "Gina Smith sold the Smith Mill to Alice Smith and Bob Smith in 1931."
    copied.write({"more.txt": text})
    copied.index()
    embed_table(copied.workspace, ENTITIES)
    assets = [each for each in build_tail(copied.settings, Names()) if each.keys <= HIERARCHY]
    assert len(assets) == 4
    done = dg.materialize(assets, resources={"index": IndexResource.of(load_settings())})
    checks = {c.check_name: c.passed for c in done.get_asset_check_evaluations()}
    assert checks.pop("every_entity_in_one_community_per_level")
    assert all(checks.values())
    told = {
        event.asset_key.to_user_string(): event.materialization.metadata
        for event in done.get_asset_materialization_events()
    }
    assert told["hierarchies/chnsw"]["nodes"].value == "85, 12, 3"
    assert told["hierarchies/attributed_communities"]["modularity"].value > 0.8
