import math

import numpy as np
import polars as pl
import pytest

from conftest import Engine, build, build_graph, workspace_of
from graphrag_pipeline.core.errors import InputError, StorageError
from graphrag_pipeline.core.settings import EmbeddingSettings, Settings
from graphrag_pipeline.llm.embedders import HashingEmbedder
from graphrag_pipeline.llm.estimates import Chunks, Growth
from graphrag_pipeline.planning.estimates import estimate
from graphrag_pipeline.planning.outdated import look_at_index
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.releases.rollback import rollback
from graphrag_pipeline.store.index_store import set_meta
from graphrag_pipeline.store.vector_store import VectorStore
from graphrag_pipeline.structures.registry import vector_tables
from graphrag_pipeline.structures.synonyms import linking as synonyms
from graphrag_pipeline.structures.synonyms.linking import update_synonyms
from graphrag_pipeline.structures.synonyms.structure import FACT_VECTORS, TITLE_VECTORS
from graphrag_pipeline.structures.updating import embed_table

OPTIONAL = ("facts", "entity_titles")
ASKED = EmbeddingSettings(facts=True, synonyms=True, dimensions=64, synonym_similarity=0.6)
FILES = {
    "bridge.txt": "Orsolya Venn built the Kestrel Bridge in Varna. Mira Dorn praised Orsolya Venn.",
    "dam.txt": "The Kestrel Dam near Varna was built by Mira Dorn. Emil Fuchs paid Mira Dorn.",
    "river.txt": "Kestrel Valley floods in May. Emil Fuchs left Kestrel Valley with Anna Venn.",
}
CHANGE = {
    "dam.txt": "Mira Dornan drew the Kestrel Dam. Anna Venn, Orsolya Venn's aunt, owned it.",
    "river.txt": None,
    "new.txt": "Kestrel Tower stands by Kestrel Bridge. Orsolya Venn lived in Kestrel Tower.",
}
NOTHING = pl.DataFrame(schema={"id": pl.String, "n_tokens": pl.Int64, "text": pl.String})
SYNONYMS = "SELECT * FROM synonym_edges ORDER BY ALL"
FACTS = "SELECT * FROM facts ORDER BY ALL"


def embed(engine, tables=(FACT_VECTORS, TITLE_VECTORS)):
    """Bring vectors and synonyms up to date; return how many rows were embedded or searched."""
    done = {table.name: embed_table(engine.workspace, table).embedded for table in tables}
    least = engine.settings.embeddings.synonym_similarity
    changes = update_synonyms(engine.store, engine.workspace.vectors, least)
    return done | {"synonyms": changes.facts["searched"]}


def held(engine, table):
    """The ids and vectors of a vector table as it is."""
    store = VectorStore(engine.log.home / "vectors")
    ids, vectors = store.at({table: store.version(table)}).matrix(table)
    return ids, vectors.tolist()


def state(engine):
    return [engine.rows(SYNONYMS), engine.rows(FACTS), *(held(engine, name) for name in OPTIONAL)]


def test_facts_and_synonyms_follow_a_changing_corpus_as_if_built_from_nothing(tmp_path):
    engine = build_graph(tmp_path / "followed", FILES, embeddings=ASKED)
    first, before = embed(engine), state(engine)
    assert set(embed(engine).values()) == {0}
    engine.write(CHANGE)
    engine.index()
    changed = embed(engine)
    kept = {name: text for name, text in (FILES | CHANGE).items() if text}
    fresh = build_graph(tmp_path / "fresh", kept, embeddings=ASKED)
    anew = embed(fresh)
    assert state(engine) == state(fresh)
    assert all(0 < changed[name] < anew[name] for name in anew)
    engine.write(FILES | {"new.txt": None})
    engine.index()
    again = embed(engine)
    assert state(engine) == before
    assert all(before[:2])
    assert all(0 < again[name] < first[name] for name in first)


def test_synonyms_are_pairs_of_titles_as_near_as_asked_and_long_enough(tmp_path):
    engine = build_graph(tmp_path, FILES, embeddings=ASKED)
    embed(engine)
    titles = dict(engine.rows("SELECT id, title FROM entities"))
    found = {(titles[a], titles[b]): s for a, b, s in engine.rows(SYNONYMS)}
    # As they are stored: in half precision.
    vectors = {t: np.float16(HashingEmbedder(64).embed([t])[0]) for t in titles.values()}
    expected = {
        (a, b): round(float(np.dot(vectors[a].astype(float), vectors[b].astype(float))), 6)
        for a in vectors
        for b in vectors
        if a != b and np.dot(vectors[a].astype(float), vectors[b].astype(float)) >= 0.6
    }
    assert found == expected
    assert ("Kestrel Bridge", "Kestrel Dam") in found


def test_titles_of_three_letters_or_digits_and_more_are_searched(tmp_path):
    engine = build_graph(tmp_path, FILES, embeddings=ASKED)
    with engine.store.transaction() as con:
        for title in ("Ulm", "B-52", "Al", "U.S.", "9"):
            con.execute(
                "INSERT INTO entities SELECT * REPLACE ($title AS id, $title AS title) "
                "FROM entities LIMIT 1",
                {"title": title},
            )
    embed(engine)
    searched = {id for (id,) in engine.rows("SELECT entity_id FROM staging.synonyms_searched")}
    assert searched >= {"Ulm", "B-52"}
    assert not searched & {"Al", "U.S.", "9"}


def on_an_arc(n):
    """Titles on an arc, all near each other, of which each keeps its nearest."""
    angles = [0.01 * place * (1 + 0.001 * place) for place in range(n)]
    vectors = np.array([[math.cos(a), math.sin(a)] for a in angles], np.float32)
    return pl.DataFrame({"id": [f"{i:03}" for i in range(n)], "title": "x"}), vectors


def test_a_full_entity_that_loses_a_neighbour_gets_the_next_nearest(monkeypatch):
    monkeypatch.setattr(synonyms, "MOST_NEIGHBOURS", 3)
    titles, vectors = on_an_arc(12)
    nothing = pl.DataFrame(schema={"id": pl.String, "title": pl.String})
    none = pl.DataFrame(
        schema={"source_id": pl.String, "target_id": pl.String, "similarity": float}
    )
    n, edges = synonyms._edges(titles, nothing, none, vectors, 0.8)
    assert n == 12
    assert edges.group_by("source_id").len()["len"].to_list() == [3] * 12
    stays = [i for i in range(12) if i != 5]
    left = titles[stays]
    n, followed = synonyms._edges(left, titles, edges, vectors[stays], 0.8)
    _, fresh = synonyms._edges(left, nothing, none, vectors[stays], 0.8)
    assert followed.equals(fresh)
    assert 0 < n < 11
    n, back = synonyms._edges(titles, left, followed, vectors, 0.8)
    assert (n, back.equals(edges)) == (1, True)


def test_many_titles_are_compared_in_windows_that_find_nearly_all_pairs(monkeypatch):
    random = np.random.default_rng(3)
    centres = random.standard_normal((400, 48))
    noise = random.standard_normal((2000, 48)) * random.uniform(0.1, 0.5, (2000, 1))
    vectors = centres[random.integers(0, 400, 2000)] + noise
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    asked = np.arange(0, 2000, 2)
    exact = pl.concat(list(synonyms._near(vectors, asked, 0.8)))
    monkeypatch.setattr(synonyms, "EXACT_PAIRS", 0)
    windows = pl.concat(list(synonyms._near(vectors, asked, 0.8)))
    assert windows.join(exact, on=windows.columns, how="anti").is_empty()
    assert len(windows) > 0.95 * len(exact) > 1000


def test_only_current_synonyms_are_published_and_switched_off_only_older_releases_have_them(
    tmp_path,
):
    engine = build(tmp_path, FILES, embeddings=ASKED)
    embed(engine, tables=vector_tables(engine.settings))
    home, off = engine.log.home, Settings(embeddings=EmbeddingSettings(dimensions=64))
    with engine.store.transaction() as con:
        set_meta(con, "synonyms", "of other titles")
    with pytest.raises(StorageError, match="not published: synonyms are behind"):
        publish(engine.workspace)
    embed(engine)
    first = publish(engine.workspace)
    second = publish(workspace_of(home, off))
    assert engine.rows("FROM synonym_edges") == []
    assert engine.rows("FROM staging.synonyms_searched") == []
    with QueryEngine(home, settings=off) as now, pytest.raises(InputError, match="no facts: set"):
        now.retrieve("Who built it?", method="hipporag2")
    with QueryEngine(home, settings=off, release=first.id) as before:
        assert before.retrieve("Who built the Kestrel Dam?", method="hipporag2").records
        assert before.index.rows(SYNONYMS)
    tags = VectorStore(home / "vectors").tags()
    assert "facts" in tags[first.id]
    assert "facts" not in tags[second.id]
    VectorStore(home / "vectors").drop_tags([first.id])
    with engine.store.transaction() as con:
        con.execute(
            "INSERT INTO entities_kept_apart VALUES ('1', '2', 'Anna', 'Ann', 'rule', '', '{}')"
        )
    assert publish(workspace_of(home, off)).created
    spared = {table.name for table in vector_tables(off)}
    assert {folder.stem for folder in (home / "vectors").glob("*.lance")} == spared
    assert not spared & set(OPTIONAL)
    with pytest.raises(StorageError, match="vectors of facts, entity_titles are not there"):
        rollback(engine.workspace, first.id)
    assert embed(engine)["facts"] > 0


@pytest.fixture
def said(tmp_path):
    """What an imported triple, a model and a rule say of the same pair, in one index."""
    engine = Engine(tmp_path, Settings(embeddings=ASKED))
    engine.write({"a.txt": "Anna Berg met Boris Claude. Anna Berg left Boris Claude."})
    engine.update()
    return engine


def test_a_fact_is_a_pair_with_what_a_text_says_of_it(said):
    found = said.rows("SELECT text, n_chunks, n_mentions FROM facts ORDER BY text")
    pair = found[0][0].split(": ")[0]
    assert set(pair.split(", ")) == {"Anna Berg", "Boris Claude"}
    assert found == [
        (f"{pair}: Anna Berg left Boris Claude.", 1, 1),
        (f"{pair}: Anna Berg met Boris Claude.", 1, 1),
    ]
    with said.store.transaction() as con:
        con.execute("UPDATE extractions SET extractor = 'import'")
        con.execute(
            "UPDATE relationship_mentions SET description = upper(description) "
            "WHERE contains(description, 'left')"
        )
        con.execute(
            "INSERT INTO relationship_mentions SELECT * REPLACE (lower(description) AS "
            "description) FROM relationship_mentions WHERE contains(description, 'LEFT')"
        )
        con.execute(
            "INSERT INTO relationship_mentions SELECT * REPLACE ('colleagues' AS "
            "description) FROM relationship_mentions LIMIT 1"
        )
    found = said.rows("SELECT text, n_mentions FROM facts ORDER BY n_mentions DESC, text")
    assert found[0] == ("ANNA BERG LEFT BORIS CLAUDE.", 2)
    assert ("Anna Berg met Boris Claude.", 1) in found
    assert [text for text, _ in found if text.endswith(": colleagues")]


def test_a_plan_counts_what_facts_and_titles_cost_to_embed(said):
    def tokens(**given):
        paid = Settings(embeddings=EmbeddingSettings(embedder="llm", **given))
        (embedding,) = estimate(paid, Growth(grown=Chunks(10, 6000), entities=60))
        with said.store.read() as con:
            kept = look_at_index(con, paid, [], NOTHING, NOTHING, recluster=False).texts
        return embedding.prompt_tokens, len(kept)

    (guessed, known), (with_both, known_both) = tokens(), tokens(facts=True, synonyms=True)
    assert with_both > 1.5 * guessed
    assert known_both == known + 2 + 2
