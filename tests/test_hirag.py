"""HiRAG: layers of summary entities, their communities, and the search over them."""

import re
import shutil
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from model_server import Fault, ModelServer
from query_fixture import _key, _summary_key, publish, settings_for

from conftest import build, workspace_of
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.communities import update_communities
from graphrag_pipeline.llm.estimates import Chunks, Growth
from graphrag_pipeline.planning.estimates import estimate
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.releases import invariants
from graphrag_pipeline.releases.publishing import publish as publish_index
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import ask_for_clustering, vector_tables
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import ENTITIES
from graphrag_pipeline.systems.hirag import layers, structure
from graphrag_pipeline.systems.hirag import operators as hirag
from graphrag_pipeline.systems.hirag.communities import (
    LAYERED,
    hirag_communities_current,
    update_hirag_reports,
)
from graphrag_pipeline.systems.hirag.layers import (
    LayerNodes,
    build_layers,
    cluster_sparsity,
    is_settled,
)
from graphrag_pipeline.systems.hirag.structure import ENTITY_VECTORS
from graphrag_pipeline.systems.hirag.tables import update_hirag
from graphrag_pipeline.systems.hirag.writing import Summary, SummaryEntity, SummaryLink

TOPICS = {
    "ship": "sails harbour ropes masts tide anchor keel deck crew cargo port lighthouse fleet",
    "oven": "bakes bread rye flour salt sour dough crust yeast loaf hearth miller wheat",
    "violin": "plays sonata strings bow slow movement concert orchestra tuning pegs varnish",
    "glacier": "moves ice gravel melt water valley moraine crevasse snow summit alpine cold",
}
TABLES = (
    "hirag_entities",
    "hirag_relationships",
    "hirag_layers",
    "hirag_communities",
    "hirag_community_members",
    "hirag_community_reports",
)
SHIP = {"ship sh12": TOPICS["ship"]}


def told(n=12):
    """Entities of four topics, by title, and what is said of each."""
    return {f"{topic} {topic[:2]}{i}": about for topic, about in TOPICS.items() for i in range(n)}


class Index:
    """An index whose entities are put there by hand, each mentioned by a chunk, those of a kind
    related one after the other."""

    def __init__(self, folder, **given):
        self.settings = Settings(
            home=str(folder),
            **{"embeddings": {"dimensions": 64}, "hierarchies": {"hirag": True}, **given},
        )
        self.home = folder
        self.workspace = Workspace(self.settings)
        self.store = self.workspace.store

    def hold(self, entities):
        """Make these entities, by title with their descriptions, those of the index."""
        ids = {title: make_id("entity", title) for title in entities}
        pairs = [p for p in pairwise(ids) if p[0].split()[0] == p[1].split()[0]]
        rows = [
            (ids[t], n, t, t.split()[0].upper(), f"The {t} {about}.", 1, 2, 12)
            for n, (t, about) in enumerate(entities.items())
        ]
        edges = [
            (
                make_id("r", *p),
                n,
                ids[p[0]],
                ids[p[1]],
                *p,
                f"{p[0]} and {p[1]}",
                1.0,
                0.0,
                4,
                9,
                "",
            )
            for n, p in enumerate(pairs)
        ]
        with self.store.transaction() as con:
            for table in ("entities", "relationships", "entity_chunks"):
                con.execute(f"DELETE FROM {table}")
            con.executemany("INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            marks = ", ".join("?" * 12)
            con.executemany(f"INSERT INTO relationships VALUES ({marks})", edges)
            con.execute("INSERT INTO entity_chunks (entity_id, chunk_id, n_mentions) "
                        "SELECT id, 'chunk', 1 FROM entities")  # fmt: skip
        return self

    def update(self):
        """Bring the layers up to date; return what became of them."""
        embed_table(self.workspace, ENTITIES)
        return update_hirag(self.workspace.store, self.workspace.vectors, self.workspace.settings)

    def layers(self):
        """Return the nodes of each layer, and how many it was fitted to and have changed since."""
        return self.rows(
            """SELECT n_nodes, n_fitted, n_changed FROM hirag_layers
               JOIN staging.hirag_mixtures USING (layer) ORDER BY layer"""
        )

    def copied(self, folder):
        """Return an index like this one in a folder of its own."""
        shutil.copytree(self.home, folder / "copy")
        return Index(folder / "copy")

    def report(self):
        """Bring the communities up to date, and return what became of their reports."""
        update_communities(self.workspace.store, self.workspace.settings.communities, LAYERED)
        return update_hirag_reports(self.workspace.store, self.workspace.settings)

    def rows(self, sql):
        with self.store.read() as con:
            return con.execute(sql).fetchall()

    def held(self):
        """Everything the tables hold but numbers, which are never given again."""
        with self.store.read() as con:
            return [
                con.sql(f"SELECT COLUMNS(c -> c <> 'human_readable_id') FROM {t} ORDER BY ALL").pl()
                for t in TABLES
            ]

    def mentions(self, text):
        """The tables in which a text stands."""
        with self.store.read() as con:
            names = con.execute(
                "SELECT table_schema || '.' || table_name FROM information_schema.tables "
                "WHERE contains(table_name, 'hirag') OR table_name = 'hierarchy_failures'"
            ).fetchall()
            return [t for (t,) in names if text in str(con.execute(f"FROM {t}").fetchall())]


# Layers


def test_cluster_sparsity_is_that_of_equation_17():
    assert cluster_sparsity([1, 1, 1, 1], 4) == 1
    assert cluster_sparsity([4], 4) == 0
    assert cluster_sparsity([2, 2], 4) == pytest.approx(1 - 4 / 12)
    assert cluster_sparsity([3, 3], 4) == pytest.approx(1 - 12 / 12)
    assert is_settled(0.8, 0.84)
    assert is_settled(0.5, 0.625, 0.25)
    assert is_settled(0.5, 0.375, 0.25)
    assert is_settled(0.8, 0.761)
    assert not is_settled(0.8, 0.841)
    assert not is_settled(0.0, 0.01)


def nodes(n):
    rows = [(f"e{i}", f"entity {i}", "PERSON", f"about {i}", 5) for i in range(n)]
    frame = pl.DataFrame(rows, schema=layers.NODES, orient="row")
    themselves = [frozenset([i]) for i in range(n)]
    return LayerNodes(frame, np.eye(n, 8, dtype=np.float32), themselves, themselves)


def by_hand(monkeypatch, *clusterings):
    """Cluster each layer as given, instead of by a mixture."""
    waiting = iter(clusterings)

    def clusters(nodes, kept, most_tokens):
        return layers.Fitted(None, len(nodes), 0), next(waiting)

    monkeypatch.setattr(layers, "_clusters", clusters)


def name_all(clusters):
    named = [" + ".join(sorted(members["title"])) for members in clusters]
    return [Summary(name, (SummaryEntity(name, "TOPIC", "all"),)) for name in named]


def embed(texts):
    return np.zeros((len(texts), 8), np.float32)


def layers_over(base, write=name_all):
    return build_layers(base, write, embed, {}, most_tokens=1000)


def test_building_stops_once_sparsity_changes_by_no_more_than_a_twentieth(monkeypatch):
    # Sparsities by hand: 1 - 4/30 = .867, then of the four above 1 - 2/12 = .833: 3.8 % less.
    by_hand(monkeypatch, [[0, 1], [2, 3], [4], [5]], [[0, 1], [2], [3]])
    found = layers_over(nodes(6))
    assert [round(layer.sparsity, 3) for layer in found.layers] == [0.867, 0.833]
    assert found.entities["layer"].to_list() == [1, 1]
    # Of the four above, one cluster: 0 is 100 % less, so this layer is built, and is the last.
    by_hand(monkeypatch, [[0, 1], [2, 3], [4], [5]], [[0, 1, 2, 3]])
    found = layers_over(nodes(6))
    assert found.entities["layer"].to_list() == [1, 1, 2]
    assert found.entities["size"].to_list() == [2, 2, 6]
    top = found.entities["id"][2]
    passed_up = found.links.filter(pl.col("target_id") == top)["source_id"].to_list()
    assert passed_up == [*found.entities["id"][:2], "e4", "e5"]
    read = found.basis.filter(pl.col("id") == top)["entity_id"].to_list()
    assert read == [f"e{n}" for n in range(6)]


def test_a_member_is_linked_as_the_summary_says_or_else_to_its_first_entity(monkeypatch):
    by_hand(monkeypatch, [[0, 1, 2], [3]], [[0], [1], [2]])
    summary = Summary(
        "x",
        (SummaryEntity("First", "A", "one"), SummaryEntity("Other", "B", "two"),
         SummaryEntity("Baseless", "C", "three")),
        (SummaryLink("ENTITY 1", "other", "because"), SummaryLink("nobody", "Other", "no"),
         SummaryLink("First", "Other", "near")),
    )  # fmt: skip
    found = layers_over(nodes(4), lambda clusters: [summary])
    ids = dict(found.entities.select("title", "id").iter_rows())
    assert sorted(ids) == ["First", "Other"]
    told = {(s, t): d for s, t, _, d, _ in found.links.iter_rows()}
    assert told == {
        ("e1", ids["Other"]): "because",
        (ids["First"], ids["Other"]): "near",
        ("e0", ids["First"]): "",
        ("e2", ids["First"]): "",
    }
    assert dict(found.entities.select("title", "size").iter_rows()) == {"First": 2, "Other": 1}
    # It was written from all of them all the same: a model had read the whole cluster.
    read = set(found.basis.iter_rows())
    assert read == {(ids[title], f"e{n}") for title in ("First", "Other") for n in range(3)}


# The index


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An index whose layers, communities and reports are up to date, and what became of them."""
    index = Index(tmp_path_factory.mktemp("whole")).hold(told())
    return index, index.update(), index.report()


def test_layers_rest_on_text_and_their_communities_cover_them(whole):
    index, done, reported = whole
    assert done.facts["summarised"] == 5
    assert [n for n, _, _ in index.layers()] == [48, 4]
    titles = [t for (t,) in index.rows("SELECT title FROM hirag_entities WHERE layer = 1")]
    assert {title.split()[0] for title in titles} == TOPICS.keys()
    assert index.rows("SELECT layer, n_entities FROM hirag_layers") == [(1, 4), (2, 1)]
    assert index.rows("SELECT size FROM hirag_entities ORDER BY size") == [(12,)] * 4 + [(48,)]
    assert reported.written > 4
    with index.store.read() as con:
        assert invariants.violations(con, structure.ENTITIES_COVERED_ONCE) == 0
        assert invariants.violations(con, structure.EVERY_COMMUNITY_REPORTED) == 0
        n = con.execute("SELECT count(*) FROM hirag_community_members WHERE level = 0").fetchone()
        assert n == (53,)
        assert con.execute("SELECT count(*) FROM communities").fetchone() == (0,)
        for name in ("ENDS_EXIST", "RESTS_ON_TEXT", "SPARSITY_KNOWN"):
            query = getattr(structure, name)
            assert invariants.violations(con, query) == 0
            con.execute("BEGIN")
            con.execute("DELETE FROM hirag_layers WHERE layer = 2")
            con.execute("UPDATE hirag_relationships SET source_id = 'nobody' WHERE layer = 1")
            assert invariants.violations(con, query) > 0
            con.execute("ROLLBACK")


def test_what_changed_nothing_does_nothing_and_from_nothing_comes_the_same(whole, tmp_path):
    index, before = whole[0], whole[0].held()
    assert index.update().facts == {"summarised": 0}
    again = index.report()
    assert (again.written, again.reused) == (0, len(before[-1]))
    other = Index(tmp_path).hold(told())
    other.update()
    assert all(a.equals(b) for a, b in zip(before[:3], other.held()[:3], strict=True))
    assert all(len(rows) for rows in before)


def test_a_new_entity_joins_a_cluster_and_leaves_nothing_when_it_goes(whole, tmp_path):
    index = whole[0].copied(tmp_path)
    first = dict(index.rows("SELECT id, description FROM hirag_entities WHERE layer = 1"))
    index.hold(told() | {"ship Zenobia": TOPICS["ship"]})
    index.update()
    assert index.layers()[0] == (49, 48, 1)
    joined = index.rows("SELECT title FROM hirag_entities WHERE layer = 1 AND size = 13")
    assert [title.split()[0] for (title,) in joined] == ["ship"]
    more = dict(index.rows("SELECT id, description FROM hirag_entities WHERE layer = 1"))
    assert len(first.items() & more.items()) >= 3
    written = index.report()
    assert 0 < written.written < written.reused
    assert "main.hirag_relationships" in index.mentions("Zenobia")
    index.hold(told())
    index.update()
    assert index.layers()[0] == (48, 48, 2)
    index.report()
    assert index.mentions("Zenobia") == []
    assert index.mentions(make_id("entity", "ship Zenobia")) == []


def test_a_layer_of_which_more_than_a_fifth_has_changed_is_clustered_anew(whole, tmp_path):
    index = whole[0].copied(tmp_path)
    comet = "returns dust tail light night orbit telescope sky perihelion"
    index.hold(told() | {f"comet co{n}": comet for n in range(12)})
    index.update()
    assert index.layers()[0] == (60, 60, 0)
    titles = {t.split()[0] for (t,) in index.rows("SELECT title FROM hirag_entities")}
    assert "comet" in titles


def test_clustering_is_asked_for_of_the_layers_and_their_communities_too(whole, tmp_path):
    index = whole[0].copied(tmp_path)
    ask_for_clustering(index.workspace.store)
    index.update()
    assert index.layers()[0] == (48, 48, 0)
    assert (
        update_communities(index.workspace.store, index.workspace.settings.communities, LAYERED).how
        == "clustered"
    )
    assert index.report().written == 0
    assert all(a.equals(b) for a, b in zip(whole[0].held(), index.held(), strict=True))


def test_it_is_published_where_it_is_whole_and_gone_from_the_next_release_once_switched_off(
    tmp_path,
):
    files = {"a.txt": "Orsolya Venn built the Kestrel Dam with Mira Dorn. Mira Dorn left Varna."}
    on = {"embeddings": {"dimensions": 64}, "hierarchies": {"hirag": True}}
    engine = build(tmp_path, files, **on)
    home, given = engine.log.home, engine.settings
    for table in vector_tables(given):
        embed_table(engine.workspace, table)
    update_hirag(engine.workspace.store, engine.workspace.vectors, engine.workspace.settings)
    embed_table(engine.workspace, ENTITY_VECTORS)
    with engine.store.transaction() as con:
        con.execute("INSERT INTO staging.lost_evidence VALUES ('of the graph alone')")
    with pytest.raises(StorageError, match="not published: the communities of hirag are behind"):
        publish_index(engine.workspace)
    update_communities(engine.workspace.store, engine.workspace.settings.communities, LAYERED)
    update_hirag_reports(engine.workspace.store, engine.workspace.settings)
    assert engine.rows("FROM staging.lost_evidence") == [("of the graph alone",)]
    first = publish_index(engine.workspace)
    off = Settings(embeddings={"dimensions": 64})
    publish_index(workspace_of(home, off))
    assert [engine.rows(f"FROM {table}") for table in TABLES] == [[]] * len(TABLES)
    with QueryEngine(home, settings=off) as now, pytest.raises(InputError, match="set hierarchies"):
        now.retrieve("Who?", "hirag")
    with QueryEngine(home, settings=off, release=first.id) as before:
        found = before.retrieve("Who built the Kestrel Dam?", "hirag").records
    assert {r.kind for r in found} == {"report", "entity", "relationship", "chunk"}


# With a model


BY_RULE = "SELECT title FROM hirag_entities WHERE ends_with(title, ' and others')"
REPORT = '{"title": "T", "summary": "S", "rating": 1, "rating_explanation": "", "findings": []}'


def summarise(messages):
    """Play the model: a choir for what is shown, and a fleet for the ships among it."""
    if "summary entities" not in messages[0]["content"]:
        return REPORT
    shown = re.findall(r"^- (.+) \(", messages[-1]["content"], re.M)
    topic, ships = shown[0].split()[0], [name for name in shown if "ship" in name]
    records = [f'("entity"<|>Choir of the {topic}<|>person<|>{len(shown)} that sing)']
    records += ['("entity"<|>The Fleet<|>technology<|>all that sail)'] * bool(ships)
    records += [f'("relationship"<|>{s}<|>The Fleet<|>by the river<|>7)' for s in ships[1:]]
    return "\n##\n".join(records) + "\n<|COMPLETE|>"


def asked(server):
    return [r for r in server.asked() if "summary entities" in r.text]


@pytest.fixture
def paid(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with ModelServer(summarise) as server:
        llm = {"base_url": server.base_url, "retry_seconds": 0.01}
        yield server, Index(tmp_path, reports={"writer": "llm"}, llm=llm).hold(told())


def test_a_model_is_asked_for_each_cluster_once_until_it_can_be_read_or_the_cluster_changes(paid):
    server, index = paid
    server.misbehave(lambda r: Fault(text="no") if "- oven ov0 (" in r.text else None)
    done = index.update()
    assert (len(asked(server)), done.facts["summarised"], done.failed) == (5, 5, 1)
    assert all("organization, person, location, event" in r.text for r in asked(server))
    assert [t.split()[0] for (t,) in index.rows(BY_RULE)] == ["oven"]
    server.misbehave(())
    server.forget()
    assert index.update().failed == 0
    assert len(asked(server)) == 2
    kinds = dict(index.rows("SELECT title, type FROM hirag_entities WHERE layer = 1"))
    assert kinds["Choir of the oven"] == "PERSON"
    assert kinds["The Fleet"] == "TECHNOLOGY"
    found = "FROM hirag_relationships WHERE layer = 1 AND target"
    assert index.rows(f"SELECT count(*), any_value(description) {found} = 'The Fleet'") == [
        (11, "by the river")
    ]
    assert index.rows(f"SELECT source {found} = 'Choir of the ship'") == [("ship sh0",)]
    server.forget()
    index.hold(told() | SHIP)
    more = index.update()
    assert len(asked(server)) == more.facts["summarised"] == 2
    assert any("ship sh12" in r.text for r in asked(server))
    assert len(index.rows("FROM staging.hirag_summaries")) == 5
    assert index.update().facts == {"summarised": 0}
    index.report()
    assert index.rows("SELECT DISTINCT title FROM hirag_community_reports") == [("T",)]
    with index.store.read() as con:
        assert hirag_communities_current(con, index.settings)


def test_a_plan_counts_clusters_and_the_reports_on_communities_of_all_layers():
    grown = Chunks(100, 60_000)
    new = Growth(grown=grown, reports=200)
    more = Growth(grown=Chunks(1, 600), indexed=grown, rows={"hirag_entities": 20}, reports=5)
    paid = {"reports": {"writer": "llm"}, "hierarchies": {"hirag": True}}
    for growth, reports, clusters in ((new, 400, 21), (more, 10, 15)):
        planned = {stage.stage: stage.calls for stage in estimate(Settings(**paid), growth)}
        assert planned == {"community_reports": reports, "hirag_clusters": clusters}


# The search


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    home = tmp_path_factory.mktemp("release")
    with QueryEngine(publish(home), settings=settings_for(home)) as opened:
        yield opened


CHRISTMAS, PHYSICS, TOP = (
    _summary_key(title)
    for title in ("Christmas and others", "Physics and others", "People and others")
)


def test_the_bridge_is_what_relates_the_entities_on_shortest_paths_through_the_layers(search):
    def bridged(*titles):
        found = hirag.bridge_relationships(search.index, [_key(title) for title in titles], 999)
        records = hirag.layered_relationship_records(search.index, found)
        return [(record.title, record.score) for record in records]

    # Degrees: Scrooge 5, Fezziwig 2, Christmas 5, People 2, Physics 4, Marie Curie 4.
    assert bridged("Fezziwig", "Scrooge", "Marie Curie") == [
        ("Scrooge – Christmas and others", 10.0),
        ("Marie Curie – Physics and others", 8.0),
        ("Scrooge – Fezziwig", 7.0),
        ("Fezziwig – Christmas and others", 7.0),
        ("Christmas and others – People and others", 7.0),
        ("Physics and others – People and others", 6.0),
    ]
    # No path leads to the dream, so it is jumped to, and brings what relates its own.
    assert bridged("Fezziwig", "贾宝玉", "林黛玉") == [("贾宝玉 – 林黛玉", 2.0)]


def test_key_entities_are_taken_community_by_community_the_most_similar_first(search):
    ranked = {_key(title): 1.0 for title in ("Paris", "Tiny Tim", "Marie Curie", "Scrooge")}
    found = hirag.communities_of_layers(search.index, ranked, level=0)
    titles = [r.title for r in hirag.layered_report_records(search.index, found)]
    assert [title.split(",")[0] for title in titles] == ["Scrooge", "Marie Curie"]
    keys = hirag.key_entities(search.index, found, ranked, 2)
    assert keys == [_key(t) for t in ("Tiny Tim", "Scrooge", "Paris", "Marie Curie")]
    assert hirag.key_entities(search.index, found, ranked, 1) == [_key("Tiny Tim"), _key("Paris")]
    deeper = hirag.communities_of_layers(search.index, ranked, level=2)
    assert len(deeper) == 5


def test_each_mode_gives_its_part_and_all_give_text(search):
    question = "What links Marie Curie and the clerk of Scrooge?"
    kinds = {
        mode: {r.kind for r in search.retrieve(question, "hirag", mode=mode).records}
        for mode in ("full", "local", "global", "bridge", "nobridge")
    }
    assert kinds == {
        "full": {"report", "entity", "relationship", "chunk"},
        "local": {"entity", "chunk"},
        "global": {"report", "chunk"},
        "bridge": {"relationship", "chunk"},
        "nobridge": {"report", "entity", "chunk"},
    }
    with pytest.raises(InputError, match="must be one of full, local"):
        search.retrieve(question, "hirag", mode="hi")


def test_without_the_hierarchical_index_the_graph_itself_is_searched(search):
    question = "What links Marie Curie and the clerk of Scrooge?"
    flat = search.retrieve(question, "hirag", hi_index=False)
    assert flat.steps == ()
    assert {r.kind for r in flat.records} == {"report", "entity", "relationship", "chunk"}
    assert not any("layer" in record.attributes for record in flat.records)
    own = {row["id"] for row in search.index.rows("SELECT id FROM community_reports")}
    assert own.issuperset(record.id for record in flat.records if record.kind == "report")
    keys = [_key("Fezziwig"), _key("Scrooge"), _key("Marie Curie")]
    bridged = hirag.bridge_relationships(search.index, keys, 999, flat=True)
    records = hirag.layered_relationship_records(search.index, bridged)
    assert [record.title for record in records] == ["Scrooge – Fezziwig"]


def test_entities_of_higher_layers_are_found_too_and_bring_no_text_of_their_own(search):
    found = hirag.entities_of_layers(search.index, "Christmas and others", 3)
    assert CHRISTMAS in found
    (record,) = hirag.layered_entity_records(search.index, {CHRISTMAS: 1.0})
    assert (record.title, record.attributes["layer"]) == ("Christmas and others", 1)
    assert hirag.chunks_by_links(search.index, {CHRISTMAS: 1.0, TOP: 1.0, PHYSICS: 1.0}) == {}


def test_chunks_come_by_entity_and_then_by_how_many_of_its_neighbours_they_mention(search):
    chunks = hirag.chunks_by_links(search.index, {_key("Tiny Tim"): 1.0, _key("Paris"): 0.5})
    records = op.chunk_records(search.index, chunks)
    of_tim = [r for r in records if "Tiny Tim" in r.text]
    assert records[: len(of_tim)] == of_tim
    assert all("Paris" in r.text for r in records[len(of_tim) :])
    near = ["Bob Cratchit" in r.text for r in of_tim]
    assert near == sorted(near, reverse=True)
    assert True in near
