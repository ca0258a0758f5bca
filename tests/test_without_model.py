"""Methods of papers where no model embeds: they search by words, and say what they lack."""

import polars as pl
import pytest
from query_fixture import _key, publish, settings_for

from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.systems.archrag import operators as archrag
from graphrag_pipeline.systems.hirag import operators as hirag
from graphrag_pipeline.systems.hirag.writing import ExtractiveClusters
from graphrag_pipeline.systems.raptor import operators as raptor

# In no beginning of a document, which is what the tree's summaries are made of.
DETAIL = "Who carried a horn of plenty?"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    home = tmp_path_factory.mktemp("release")
    with QueryEngine(publish(home), settings=settings_for(home)) as opened:
        yield opened


def test_each_layer_of_archrag_is_searched_by_words(engine):
    question = "Which prize did the Curie family win for radium?"
    entities, *levels = archrag.nearest_in_layers(engine.index, question, 2, 100)
    assert entities == op.nearest(engine.index, "entities", question, 2)
    titles = [
        [record.title for record in op.attributed_report_records(engine.index, level)]
        for level in levels
    ]
    assert titles[0][0].startswith("Marie Curie")
    # What shares no word with the question is no neighbour, however few are left.
    assert len(titles[0]) == 1


def test_a_summary_of_the_tree_is_as_near_as_the_best_chunk_below_it(engine):
    for k in (1, 2):
        nodes = raptor.down_the_tree(engine.index, DETAIL, k)
        records = raptor.tree_records(engine.index, DETAIL, nodes)
        best = next(record for record in records if record.kind == "chunk")
        assert "horn of" in best.text
        summary = next(record for record in records if record.kind == "summary")
        assert summary.score == best.score
        assert summary.text.startswith("Marley was dead")


def test_a_question_without_a_known_word_ends_the_way_down_the_tree_in_order(engine):
    assert set(raptor.down_the_tree(engine.index, "xyzzy", 2).values()) == {0.0}


def test_hirag_says_what_its_index_lacks(engine):
    steps = engine.retrieve(DETAIL, "hirag").steps
    assert "hirag needs real embeddings" in steps[0]
    assert "extraction.passes = 2" in steps[1]


def test_where_no_community_is_found_the_best_entities_are_joined(engine, monkeypatch):
    found = engine.retrieve("Fezziwig and Scrooge", "hirag", mode="bridge")
    assert "no community found" not in " ".join(found.steps)
    monkeypatch.setattr(hirag, "communities_of_layers", lambda *_, **__: {})
    found = engine.retrieve("Fezziwig and Scrooge", "hirag", mode="bridge")
    assert found.steps[-1] == "no community found: the best entities are the key entities"
    ids = {record.attributes["source_id"] for record in found.records if record.kind != "chunk"}
    assert _key("Scrooge") in ids


def test_a_cluster_that_no_model_summarised_is_a_group_named_after_its_central_members():
    def write(*titles):
        rows = [(title, "PERSON", f"{title} is said.") for title in titles]
        members = pl.DataFrame(rows, schema=["title", "type", "description"], orient="row")
        ((entity,),) = (s.entities for s in ExtractiveClusters().write({"key": members}, {}))
        return entity

    group = write("Ann", "Bob", "Cat", "Dan")
    assert (group.title, group.type) == ("Ann / Bob / Cat and others", "GROUP")
    assert group.description.splitlines()[-1] == "Dan is said."
    # A group of groups does not grow with the layers.
    assert write(group.title, "Eve / Fay and others").title == "Ann / Eve and others"


def test_a_link_that_no_model_described_says_no_more_than_it_knows(engine, monkeypatch):
    keys = [_key(title) for title in ("Fezziwig", "Scrooge", "Marie Curie")]
    links = hirag.bridge_relationships(engine.index, keys, 999)
    rows = engine.index.records("SELECT * FROM hirag_relationships", links)
    bare = {key: {**row, "description": ""} for key, row in rows.items()}
    monkeypatch.setattr(type(engine.index), "records", lambda self, sql, ids: bare)
    texts = [r.text for r in hirag.layered_relationship_records(engine.index, links)]
    assert "Scrooge is put together with Christmas and others." in texts
    assert not any("summarises" in text for text in texts)
