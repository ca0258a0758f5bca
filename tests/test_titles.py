"""Titles of documents and sections: names of the graph, in questions and in what they lead to."""

from __future__ import annotations

import json

import numpy as np
import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.titles import names_of_title
from graphrag_pipeline.query import METHODS, QueryEngine
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.ppr_search import PprParameters
from graphrag_pipeline.query.operators import coverage


@pytest.mark.parametrize(
    ("title", "keys"),
    [
        ("Mercury (planet)", ["mercury (planet", "mercury"]),
        ("  Marie CURIE ", ["marie curie"]),
        ("水星（惑星）", ["水星(惑星", "水星"]),
        ("The", []),
        ("---", []),
        ("(all)", ["all"]),
        ("Springfield, Illinois", ["springfield, illinois", "springfield"]),
        ("PEP 8: Style Guide", ["pep 8: style guide", "pep 8"]),
        ("Chapter: 8 Lamps", ["chapter: 8 lamps"]),
    ],
)
def test_a_title_is_known_by_each_of_its_forms(title, keys):
    assert names_of_title(title) == keys


FILES = {
    "ferry.md": "# Harbour Ferry\n\nIt crosses twice a day.\n\n## Winter timetable\n\nNone sails "
    "on Mondays.\n\n## See also\n\nThe pier.\n",
    "pier.md": "# North Pier\n\nThe Harbour Ferry calls here.\n\n## See also\n\nThe ferry.\n",
}


def titles(engine) -> set[tuple[str, str, str]]:
    return set(
        engine.rows(
            """SELECT parse_filename(d.uri), t.title, t.kind FROM chunk_titles t
               JOIN chunks c ON c.id = t.chunk_id JOIN documents d ON d.id = c.document_id"""
        )
    )


def test_a_chunk_is_about_its_title_and_the_headings_that_no_other_document_has(engine):
    engine.write(FILES)
    engine.index()
    expected = {
        ("ferry.md", "Harbour Ferry", "document"),
        ("ferry.md", "Winter timetable", "section"),
        ("pier.md", "North Pier", "document"),
    }
    assert titles(engine) == expected
    engine.write({"pier.md": FILES["pier.md"].replace("See also", "Winter timetable")})
    engine.index()
    assert titles(engine) == {
        ("ferry.md", "Harbour Ferry", "document"),
        ("ferry.md", "See also", "section"),
        ("pier.md", "North Pier", "document"),
    }
    engine.write({"ferry.md": None})
    engine.index()
    assert titles(engine) == {
        ("pier.md", "North Pier", "document"),
        ("pier.md", "Winter timetable", "section"),
    }


# In questions


PASSAGES = {
    "Mercury (planet)": "It is the smallest, and the nearest to the Sun.",
    "Bergen, Norway": "Rain falls there on most days of the year.",
    "Café Brandão": "Open since 1907, by the harbour.",
    "The Kestrel Bridge over the River Ouse": "A span of forty metres.",
    "Water": "Water is a liquid.",
    "水星": "太陽に最も近い惑星。",
    "The": "An article.",
}


@pytest.fixture(scope="module")
def titled(tmp_path_factory):
    home = tmp_path_factory.mktemp("titled")
    publish(home, documents=PASSAGES)
    with QueryEngine(home, settings=settings_for(home)) as opened:
        yield opened.index


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("how far is mercury from the sun", ["mercury"]),
        ("Does it rain in BERGEN?", ["bergen"]),
        ("bergen, norway's weather", ["bergen, norway"]),
        ("when did Cafe Brandao's owner open it", ["cafe brandao"]),
        (
            "who built the kestrel bridge over the river ouse?",
            ["the kestrel bridge over the river ouse"],
        ),
        ("who built the bridge over the river", []),
        ("水星はどこですか", ["水星"]),
        ("what is the", []),
        ("", []),
        ("?!", []),
        ("word " * 5000, []),
    ],
)
def test_titles_are_found_in_a_question_in_any_case(titled, question, found):
    assert list(op.titles_in(titled, question)) == found


def test_a_common_word_in_lower_case_is_no_title(titled, monkeypatch):
    assert list(op.titles_in(titled, "what water is")) == ["water"]
    monkeypatch.setattr("graphrag_pipeline.query.operators.titles.RARE", 0)
    assert list(op.titles_in(titled, "what water is")) == []
    assert list(op.titles_in(titled, "what Water is")) == ["water"]


def test_ppr_finds_a_text_by_the_title_that_it_does_not_say(titled):
    engine_of = titled.traced(titled.trace)
    records = METHODS["ppr"].retrieve(engine_of, "is mercury hot", PprParameters())
    assert [record.title for record in records] == ["Mercury (planet)"]
    records = METHODS["ppr"].retrieve(engine_of, "is mercury hot", PprParameters(titles=False))
    assert records == []


# First what the question calls by its title


SPARSE = {
    "Manaslu": "It was climbed in 1956.",
    "Climbing": "Who climbed first, and when, is told of every mountain in the world.",
    "Mountains": "The mountain that was climbed first in the world was climbed long ago.",
    **{
        f"Season {n}/Weather": f"In week {n} it snowed on those who climbed first." for n in "12345"
    },
}


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    home = tmp_path_factory.mktemp("sparse")
    publish(home, documents=SPARSE)
    with QueryEngine(home, settings=settings_for(home)) as opened:
        yield opened


def test_what_the_question_calls_by_its_title_comes_first(sparse):
    question = "When was the mountain Manaslu climbed first in the world?"
    assert sparse.retrieve(question, "bm25").records[0].title != "Manaslu"
    assert sparse.retrieve(question, "ppr").records[0].title == "Manaslu"


def test_a_title_puts_two_documents_first_and_all_titles_four(sparse):
    index = sparse.index
    ids = chunks_by_title(index)
    ranking = {ids[title]: 1 / place for place, title in enumerate(SPARSE, start=2)}
    graph = index.graph
    titles = {
        title: graph.adjacency("titles").around(int(graph.chunk_nodes([key])[0])).tolist()
        for title, key in ids.items()
    }
    scores = graph.weigh_chunks({ids[f"Season {n}/Weather"]: int(n) / 10 for n in "12345"})
    many = [node for n in "12345" for node in titles[f"Season {n}/Weather"]]
    two = op.titled_first(index, ranking, [many], scores)
    assert list(two)[:3] == [ids["Season 5/Weather"], ids["Season 4/Weather"], ids["Manaslu"]]
    assert two == ranking
    every = [[node] for nodes in titles.values() for node in nodes]
    four = list(op.titled_first(index, ranking, every, scores))
    assert four[:4] == [ids[f"Season {n}/Weather"] for n in "5432"]
    assert four[4:6] == [ids["Manaslu"], ids["Climbing"]]
    assert list(op.titled_first(index, ranking, [], scores)) == list(ranking)


def test_a_title_that_more_than_four_documents_have_tells_nothing(tmp_path):
    (tmp_path / "docs").mkdir()
    lines = [
        {"title": title, "text": f"Text {n} of it."}
        for title, count in (("Rain Season", 5), ("Dry Season", 4))
        for n in range(count)
    ]
    (tmp_path / "docs" / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    index = Index(tmp_path / "home", Settings())
    index.update(tmp_path / "docs")
    with index.open() as engine:
        titles = op.titles_in(engine.index, "Is the Rain Season longer than the Dry Season?")
        assert set(titles) == {"rain season", "dry season"}
        assert set(op.telling(engine.index, titles)) == {"dry season"}


# Texts that together answer


STEPS = {
    "Brand (play)": "Brand is a play. Its author was 贾宝玉.",
    "Another Brand": "Brand and Brand: a play.",
    "Third Brand": "A play called Brand, a play.",
    "贾宝玉": "贾宝玉 was a citizen of Norway, a country in the north.",
}


def chunks_by_title(index) -> dict[str, str]:
    rows = index.rows("SELECT c.id, d.title FROM chunks c JOIN documents d ON d.id = c.document_id")
    return {row["title"]: row["id"] for row in rows}


def test_the_first_chunks_together_hold_the_question(tmp_path):
    publish(tmp_path, documents=STEPS)
    question = "What country was the author of Brand (play) a citizen of?"
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as opened:
        index = opened.index
        ids = chunks_by_title(index)
        ranking = {
            ids[title]: score
            for title, score in zip(
                ("Brand (play)", "Another Brand", "Third Brand", "贾宝玉"),
                (0.4, 0.22, 0.21, 0.2),
                strict=True,
            )
        }
        ordered = op.covering(index, question, ranking)
        assert set(ordered.items()) == set(ranking.items())
        titles = {key: title for title, key in ids.items()}
        assert [titles[key] for key in ordered] == [
            "Brand (play)",
            "贾宝玉",
            "Another Brand",
            "Third Brand",
        ]
        links = index.graph.links_among([ids["Brand (play)"], ids["贾宝玉"], ids["Third Brand"]])
        assert links.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def chosen(relevance, holds=(), links=()):
    """Return the order of chunks by relevance, terms of equal weight and links (one, two)."""
    n = len(relevance)
    held, linked = np.zeros((n, 2), bool), np.zeros((n, n))
    for place, term in holds:
        held[place, term] = True
    for one, two in links:
        linked[one, two] = linked[two, one] = 1.0
    return coverage._greedy(np.array(relevance), held, np.ones(2), linked)


def test_a_term_that_no_chunk_before_holds_counts_a_half_of_its_share_and_a_link_a_half():
    holds = [(0, 0), (1, 0), (2, 1)]
    assert chosen([1.0, 0.45, 0.15, 0.0]) == [0, 1, 2, 3]
    assert chosen([1.0, 0.45, 0.15, 0.0], holds) == [0, 1, 2, 3]
    assert chosen([1.0, 0.45, 0.3, 0.0], holds) == [0, 2, 1, 3]
    assert chosen([1.0, 0.45, 0.3, 0.0], holds, [(0, 3)]) == [0, 2, 3, 1]


def test_six_chunks_are_chosen_and_the_first_four_of_them_lead_to_others():
    relevance = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    assert chosen(relevance) == [0, 1, 2, 3, 4, 5]
    assert chosen(relevance, links=[(3, 7)]) == [0, 1, 2, 3, 7, 4]
    assert chosen(relevance, links=[(4, 7)]) == [0, 1, 2, 3, 4, 5]


def test_a_word_that_no_text_has_says_nothing_of_what_names_carry(titled):
    words = op.rarity(titled, "Is it the smallest zyzzyva?")
    assert "smallest" in words
    assert "zyzzyva" not in words


def test_of_one_chunk_or_equal_ones_the_order_stays(titled):
    chunks = [row["id"] for row in titled.rows("SELECT id FROM chunks ORDER BY id")]
    assert op.covering(titled, "rain", {}) == {}
    assert op.covering(titled, "rain", {chunks[0]: 0.5}) == {chunks[0]: 0.5}
    assert list(op.covering(titled, "", dict.fromkeys(chunks, 0.5))) == chunks


def test_a_second_question_asks_for_what_the_first_text_leaves_open(tmp_path):
    publish(tmp_path, documents=STEPS)
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as opened:
        index = opened.index
        ids = chunks_by_title(index)
        asked = op.asked_after(index, "Who is the author of Brand?", ids["Brand (play)"])
        assert max(asked.values()) == 1
        bm25 = op.fulltext_search(index, "chunks", "Who is the author of Brand?", 10)
        assert ids["贾宝玉"] not in bm25
        assert ids["贾宝玉"] in asked
        once = opened.retrieve("Who is the author of Brand?", "ppr", second_walk=True)
        assert once.records[0].title == "Brand (play)"


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    home = publish(tmp_path_factory.mktemp("asking"))
    with QueryEngine(home, settings=settings_for(home)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("hipporag", {"titles": True}),
        ("fast_graphrag", {"titles": True}),
        ("bm25", {"covering": True}),
        ("basic", {"covering": True}),
        ("hybrid", {"covering": True}),
        ("local", {"covering": True}),
        ("hipporag", {"covering": True}),
    ],
)
def test_other_methods_use_titles_and_coverage_where_asked(asking, method, given):
    question = "Did Scrooge and Marley partner in a christmas carol?"
    plain = asking.retrieve(question, method)
    found = asking.retrieve(question, method, **given)
    operator = "titles_in" if "titles" in given else "covering"
    assert operator in found.timings
    assert operator not in plain.timings
    assert {r.kind for r in found.records} == {r.kind for r in plain.records}


@pytest.mark.parametrize("method", ["hybrid", "lightrag", "raptor", "hirag"])
def test_a_lexical_embedder_ranks_by_bm25(asking, method):
    timings = asking.retrieve("Who was the clerk of Scrooge?", method).timings
    assert "vector_search" not in timings
    assert {"nearest", "most_similar", "likely"} & set(timings)
