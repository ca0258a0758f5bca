"""Questions limited to documents: every method shows what rests on these alone."""

from __future__ import annotations

import gc
import json

import duckdb
import pytest

from graphrag_pipeline import Index
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import (
    METHODS,
    MODEL_METHODS,
    QueryEngine,
    compare,
    limited_release,
    read_method,
    release,
)
from graphrag_pipeline.query.limited_release import checked_where, described

OPEN = {
    "harbour.md": "Nadia Fenwright met Orsolya Venn at Harbour House in Osmark. Orsolya Venn wrote "
    "the Osmark Survey of stone. Nadia Fenwright lived in Osmark.",
    "survey.md": "The Osmark Survey praised the Kestrel Bridge. Nadia Fenwright built the Kestrel "
    "Bridge with Leopold Pask. Leopold Pask paid for the Kestrel Bridge.",
}
# What only these say, of names that the open ones have too, and of their own.
SECRET = {
    "letter.md": "Nadia Fenwright sold the Zinnober Ledger to Quillon Ashgrove. Quillon Ashgrove "
    "blackmailed Leopold Pask over the Zinnober Ledger and the Kestrel Bridge.",
    "diary.md": "Quillon Ashgrove owned Thornwick Manor. Orsolya Venn feared Quillon Ashgrove of "
    "Thornwick Manor. Nadia Fenwright burned the Zinnober Ledger in Osmark.",
}
HIDDEN = ("zinnober", "quillon", "ashgrove", "thornwick", "blackmail", "burned", "feared")
QUESTION = "What did Nadia Fenwright do with Quillon Ashgrove, the Zinnober Ledger and the bridge?"
SPECS = [
    *(name for name in METHODS | MODEL_METHODS),
    "raptor:mode=tree",
    "lightrag:mode=global",
    "global:mode=similarity",
    "global:level=0",
    "global:hierarchy=attributed",
    "hirag:hi_index=false",
    "hirag:mode=bridge",
    "ppr:second_walk=true",
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limited")
    documents = folder / "documents"
    documents.mkdir()
    for access, texts in {"open": OPEN, "secret": SECRET}.items():
        for name, text in texts.items():
            head = f"---\naccess: {access}\ntags: [{access}, '{name[:4]}']\nyear: 2031\n---\n"
            (documents / name).write_text(head + text)
    settings = Settings.exactly(
        {
            "home": str(folder / "home"),
            "embeddings": {"facts": True, "synonyms": True, "dimensions": 64},
            "hierarchies": {"raptor": True, "attributed": True, "hirag": True},
            "chunks": {"size": 30, "overlap": 5},
            "graph": {"min_concept_frequency": 1},
        }
    )
    Index(settings).update(documents)
    with QueryEngine(settings=settings) as opened:
        yield opened


@pytest.mark.parametrize("spec", SPECS)
def test_no_method_shows_what_only_other_documents_say(engine, spec):
    name, options = read_method(spec)
    found = engine.retrieve(QUESTION, name, where={"access": "open"}, **options)
    # The steps repeat the question; all else is of the documents.
    shown = json.dumps([found.to_dict()["records"], found.to_dict()["citations"]]).casefold()
    assert [word for word in HIDDEN if word in shown] == []
    if name in METHODS:
        answer = engine.answer(QUESTION, name, where={"access": "open"}, **options)
        assert [word for word in HIDDEN if word in answer.text.casefold()] == []
        titles = {citation.uri.split("/")[-1] for citation in answer.citations if citation.uri}
        assert titles <= OPEN.keys()


@pytest.mark.parametrize("name", ["bm25", "local", "ppr", "lightrag", "hipporag2", "kag", "basic"])
def test_what_the_documents_say_themselves_is_found(engine, name):
    answer = engine.answer("Who built the Kestrel Bridge?", name, where={"access": "open"})
    assert "Nadia Fenwright built the Kestrel Bridge with Leopold Pask" in answer.text
    assert answer.retrieval.steps[0] == "limited to 2 documents: access = 'open'"


def test_the_same_words_are_there_without_the_filter(engine):
    assert "zinnober" in engine.retrieve(QUESTION, "local").context.casefold()
    assert engine.retrieve(QUESTION, "local").steps == ()


@pytest.mark.parametrize("retrieval_only", [False, True])
def test_a_comparison_asks_every_method_of_the_same_documents(engine, retrieval_only):
    found = compare(
        QUESTION,
        ["bm25", "local", "ppr"],
        where={"access": "open"},
        retrieval_only=retrieval_only,
        settings=engine.index.settings,
    )
    shown = json.dumps([each.to_dict() for each in found]).replace(QUESTION, "").casefold()
    assert [word for word in HIDDEN if word in shown] == []
    assert {each.retrieval.steps[0] for each in found if each.retrieval} == {
        "limited to 2 documents: access = 'open'"
    }
    with pytest.raises(InputError, match="no document has access = 'none'"):
        compare(QUESTION, ["bm25"], where={"access": "none"}, settings=engine.index.settings)


def test_an_entity_of_several_documents_says_what_the_kept_ones_say_of_it(engine):
    limited = engine.index.limited(checked_where({"access": "open"}))
    (row,) = limited.rows("SELECT * FROM entities WHERE title = 'Nadia Fenwright'")
    (whole,) = engine.index.rows("SELECT * FROM entities WHERE title = 'Nadia Fenwright'")
    assert row["id"] == whole["id"]
    assert 0 < row["frequency"] < whole["frequency"]
    assert 0 < row["degree"] < whole["degree"]
    assert row["description"]
    assert limited.facts.counts["n_documents"] == 2
    of_her = """SELECT c.size, c.title, r.writer, r.full_content FROM community_members m
                JOIN entities e ON e.id = m.entity_id AND e.title = 'Nadia Fenwright'
                JOIN communities c ON c.id = m.community_id
                JOIN community_reports r ON r.community_id = c.id WHERE m.level = 0"""
    (community,), (before,) = limited.rows(of_her), engine.index.rows(of_her)
    assert community["size"] < before["size"]
    assert (community["writer"], before["writer"]) == ("stand-in", "extractive")
    assert "Nadia Fenwright met Orsolya Venn" in community["full_content"]


def test_a_community_of_kept_documents_alone_keeps_its_report(engine):
    limited = engine.index.limited(checked_where({"access": ["open", "secret"]}))
    for table in ("communities", "community_reports", "entities", "facts", "raptor_nodes"):
        sql = f"SELECT id FROM {table} ORDER BY id"
        assert limited.rows(sql) == engine.index.rows(sql), table


def test_lists_numbers_titles_and_several_keys_are_compared(engine):
    def count(**where):
        return engine.index.limited(checked_where(where)).facts.counts["n_documents"]

    assert count(tags="harb") == 1
    assert count(tags=["harb", "surv", "none"]) == 2
    assert count(year=2031) == 4
    assert count(access="open", tags="surv") == 1
    uri = engine.index.rows("SELECT uri FROM documents ORDER BY uri LIMIT 1")[0]["uri"]
    assert count(uri=uri) == 1
    assert count(**{"access": "open' OR 1=1 --", "tags": "surv"} | {"access": "open"}) == 1


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ({"access": "none"}, "no document has access = 'none'"),
        ({"access": "open' OR '1'='1"}, "no document has"),
        ({"a') OR (true": "x"}, "no document has"),
        ({"access": []}, "must be a name of metadata with 1 to 1,000 values"),
        ({"": "x"}, "must be a name of metadata"),
        ({"access": None}, "must be text, a number, true or false"),
        (7, "where must be a mapping"),
    ],
)
def test_a_filter_that_is_none_or_matches_nothing_is_one_line(engine, where, why):
    with pytest.raises(InputError, match=why.replace("(", r"\(")) as error:
        engine.retrieve("What?", "bm25", where=where)
    assert "\n" not in str(error.value)


def test_folders_patterns_files_of_records_and_ranges_are_met(tmp_path):
    index = tmp_path / "index.duckdb"
    uris = ("in/Harbour/a.md", "in/Harbour_2/b.md", "lists/pumps.mbox#1", "lists/pumps.mbox#2")
    dates = ("2023-12-31", "2024-01-31T09:00:00", "2025-02-01", "5 March 2024")
    with duckdb.connect(index) as con:
        con.execute(
            "CREATE TABLE documents "
            "(id INT, title VARCHAR, uri VARCHAR, source VARCHAR, metadata JSON)"
        )
        con.execute("CREATE TABLE document_labels (document_id INT, labels VARCHAR[])")
        con.execute("INSERT INTO document_labels VALUES (0, ['a', 'b']), (1, ['a']), (1, ['c'])")
        for n, (uri, date) in enumerate(zip(uris, dates, strict=True)):
            sender = f"Ole Brandt {n}, ole@sundport.{'no' if n else 'com'}"
            metadata = json.dumps({"date": date, "n": n, "sender": sender, "rating": n * "*"})
            row = [n, uri, uri.partition("#")[0], metadata]
            con.execute("INSERT INTO documents VALUES (?, 'T', ?, ?, ?)", row)

    def kept(labels=None, **where):
        with duckdb.connect() as con:
            con.execute(f"ATTACH '{index}' AS published (READ_ONLY)")
            sql, parameters = limited_release.matching(checked_where(where), labels, bare=False)
            return sorted(key for (key,) in con.execute(sql, parameters).fetchall())

    assert kept(uri="in/Harbour") == kept(uri="in/Harbour/") == kept(uri="in/Harbour/*") == [0]
    assert kept(uri="in/Harb*") == kept(uri="*.md") == [0, 1]
    assert kept(uri="lists/pumps.mbox") == kept(uri="*.mbox") == kept(uri="lists/*.mbox") == [2, 3]
    assert kept(label="a") == [0]
    assert kept(label=["a", "c"]) == [0, 1]
    assert kept(label=["a", "c"], labels=frozenset("a")) == [0]
    assert kept(label=["b"], labels=frozenset("a")) == []
    assert kept(uri="lists/pumps.mbox#1") == [2]
    assert kept(uri="Harbour") == kept(uri="a.md") == kept(uri="Harbour/a.md") == [0]
    assert kept(uri="pumps.mbox") == kept(uri="lists") == [2, 3]
    assert kept(uri="pumps.mbox#1") == [2]
    assert kept(uri="a.md/") == kept(uri="md") == kept(uri="/Harbour") == kept(uri="in/a.md") == []
    assert kept(uri="in/Harbour%") == kept(uri="in_Harbour/*") == []
    assert kept(sender="*@sundport.no") == kept(sender="*@SUNDPORT.no") == [1, 2, 3]
    assert kept(sender=["ole brandt 0*", "*brandt 2"]) == [0, 2]
    assert kept(sender="*@sundport_no") == []
    assert kept(sender="OLE brandt 1") == kept(sender="Ole Brandt 1") == [1]
    assert kept(label="A") == []
    assert kept(date="2024") == kept(date="2024-01") == kept(date="2024-01-31") == [1]
    assert kept(date="2024-0") == kept(date="202") == kept(date="2023-12-3") == []
    assert kept(rating="**") == [2]
    assert kept(title="t*") == [0, 1, 2, 3]
    assert kept(**{"date>=": "2024-01-01"}) == [1, 2]
    assert kept(**{"date>": "2024-01-01", "date<": "2024-01-31"}) == [1]
    assert kept(**{"date<=": "2024"}) == [0, 1]
    assert kept(**{"n>=": 2}) == [2, 3]
    assert kept(**{"n>=": "2", "uri": "*#2"}) == [3]


def test_a_filter_that_matches_nothing_names_what_there_is_to_who_sees_everything(engine):
    for where, there in (
        ({"uri": "nowhere/*"}, r"; there is uri = '.*'"),
        ({"year>": 2040}, r"no document has year >= '2040': .*; there is year = '2031'"),
        ({"author": "x"}, r"; documents have title, uri, .*access.*year"),
        ({"year": 2031, "access": "nobody"}, r"; there is access = "),
        ({"year": 2031, "author": "x"}, r"; documents have title, uri, .*access.*year"),
        ({"year": 2031, "uri": "no*"}, r"; there is uri = "),
    ):
        with pytest.raises(InputError, match=there):
            engine.retrieve("What?", "bm25", where=where)
    for where, why in (
        ({"year>": "soon"}, "give a number, or a date"),
        ({"year>": "2025-13-01"}, "give a number, or a date"),
        ({"uri": "*a" * 6}, "use fewer"),
    ):
        with pytest.raises(InputError, match=why):
            engine.retrieve("What?", "bm25", where=where)


def test_many_filters_leave_little_behind(engine, monkeypatch):
    monkeypatch.setattr(release, "_LIMITS_REMEMBERED", 2)
    places = "SELECT count(*) AS n FROM duckdb_databases() WHERE database_name LIKE 'limited%'"
    for n in range(4):
        engine.retrieve("bridge", "bm25", where={"access": ["open", f"x{n}"]})
    gc.collect()
    assert 0 < engine.index.rows(places)[0]["n"] <= 3


def test_a_filter_is_told_in_words():
    assert described(checked_where({"b": [2, "x"], "a": True})) == "a = 'true' and b = '2' or 'x'"
