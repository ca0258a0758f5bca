"""Themes without a model: ranked by what documents tell of, called and told as a person would."""

import duckdb
import pytest
from query_fixture import publish, settings_for

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.asked_themes import asked_types
from graphrag_pipeline.query.evidence.themes import is_name, told_well
from graphrag_pipeline.query.results import Record

ASKED = "What are the main themes?"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    home = tmp_path_factory.mktemp("themes")
    publish(home)
    with QueryEngine(home, settings=settings_for(home)) as opened:
        yield opened


def levels(engine, **given):
    found = engine.retrieve(ASKED, "global", **given).records
    ids = {record.attributes["community_id"] for record in found}
    rows = engine.index.rows("SELECT id, level FROM communities")
    return {row["level"] for row in rows if row["id"] in ids}


def test_themes_are_those_of_the_root_unless_a_level_is_asked_for(engine):
    assert levels(engine) == levels(engine, level=0) == {0}
    assert levels(engine, level=1) != {0}


def finding(text, community="c1", place=1, **more):
    attributes = {"community_id": community, "report_id": "r", "start_char": 0, "end_char": 9}
    return Record(
        kind="finding",
        id=f"{community}#{place}",
        number=1,
        title="Added, Fixed",
        text=text,
        score=1.0,
        attributes={**attributes, **more},
    )


@pytest.fixture
def named(engine):
    """A community at the root, and what is key to it."""
    (row,) = engine.index.rows("SELECT id FROM communities WHERE level = 0 ORDER BY size DESC")[:1]
    from graphrag_pipeline.query.operators import about_communities

    names = [name for _, name in about_communities(engine.index, [row["id"]], 5)[row["id"]].names]
    return row["id"], [name for name in names if is_name(name)]


def test_the_sentence_of_a_theme_is_prose_that_names_it(engine, named):
    community, names = named
    told = f"{names[0]} is what {names[1]} told the whole town about in that long winter."
    findings = [
        finding("def f(x): return {x: [y for y in x]} == None", community, 1),
        finding("Well, I mean, you know, we all kind of liked it, and I did, too.", community, 2),
        finding(f"But was it {names[0]}?", community, 3),
        finding(told, community, 4),
    ]
    best = told_well(engine.index, "", findings)[0]
    assert best.text == told
    assert best.title.split(", ") == names[:3]


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("What are the main themes?", 1),
        ("主要主题是什么？", 0),
        ("Was sind die Themen?", 2),
    ],
)
def test_a_theme_is_told_in_the_language_of_the_question(engine, named, question, place):
    community, names = named
    told = [
        f"{names[0]}和{names[1]}在那个漫长的冬天一起讲述了整个城镇的故事，后来又讲述了春天里的港口，以及住在那里的人们和他们的船只的故事。",
        f"{names[0]} is what the whole town told of in that long winter, and then again.",
        f"{names[0]} ist das, wovon die ganze Stadt in dem langen Winter noch erzählt hat.",
    ]
    findings = [finding(text, community, n) for n, text in enumerate(told)]
    assert told_well(engine.index, question, findings)[0].text == told[place]


def test_a_theme_is_told_by_no_sentence_to_a_listener_and_who_speaks_is_not_named(engine, named):
    community, names = named
    told = f"{names[1]} is what the whole town told of in that long winter."
    spoken = (
        f"{names[0].upper()}: All right, so I think that was our talk with {names[1]}, thank you."
    )
    findings = [finding(spoken, community, 1), finding(told, community, 2)]
    assert told_well(engine.index, "", findings)[0].text == told


def test_a_report_quotes_what_is_told_before_what_is_said_to_a_listener(tmp_path):
    spoken = "Yeah, so I think Ida Brandt, you know, met Ole Moen in Bergen, and I liked it."
    told = "In the spring of the flood, Ida Brandt and Ole Moen built the new harbour of Bergen."
    index = Index(tmp_path / "home", Settings())
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text(f"{spoken} {told}")
    index.update(tmp_path / "docs")
    (findings,) = index.sql("SELECT findings FROM community_reports")[1][0]
    assert findings[0]["explanation"] == told


def test_what_a_model_wrote_of_a_theme_stays_as_it_is(engine, named):
    community, _ = named
    findings = [finding("Short.", community, 1, start_char=None), finding("Long.", community, 2)]
    assert told_well(engine.index, "", findings) == findings


def test_a_theme_of_which_only_code_is_quoted_comes_last(engine):
    one, two = [r["id"] for r in engine.index.rows("SELECT id FROM communities ORDER BY size")[-2:]]
    findings = [
        finding("x = {y: [z]} == foo(bar) -> None::baz", one),
        finding("The council of the harbour met in the old customs house.", two),
    ]
    first, last = told_well(engine.index, "", findings)
    assert (first.attributes["community_id"], last.attributes["community_id"]) == (two, one)


@pytest.mark.parametrize("word", ["ADDED", "Fixed", "Note", "x_y", "M-C", "a.txt", "CVE-2026"])
def test_words_of_changelogs_and_programs_name_no_theme(word):
    assert not is_name(word)


@pytest.mark.parametrize("name", ["PKCS3", "AI", "Port Rowan", "Added Value Tax", "北京大学"])
def test_names_name_themes(name):
    assert is_name(name)


def test_what_stands_in_records_and_code_alone_is_no_theme(tmp_path):
    publish(tmp_path)
    settings = settings_for(tmp_path)
    with QueryEngine(tmp_path, settings=settings) as engine:
        before = engine.retrieve(ASKED, "global").records[0].attributes["community_id"]
        file = engine.index.file
    # The chunks that name it more often than any other root are fields of records from here on.
    sql = """
        INSERT INTO blocks SELECT document_id, start_char, start_char + 1, 'field', 'b' FROM chunks
        WHERE id IN (SELECT chunk_id FROM community_members JOIN entity_chunks USING (entity_id)
                     WHERE level = 0 GROUP BY chunk_id
                     HAVING count(*) FILTER (community_id = ?) >= count(*) / 3)"""
    with duckdb.connect(str(file)) as con:
        con.execute(sql, [before])
    with QueryEngine(tmp_path, settings=settings) as engine:
        after = engine.retrieve(ASKED, "global").records
        assert after
        assert before not in {record.attributes["community_id"] for record in after}


BEES = {
    "Hives": "Oskar Lind keeps bees at Tarn. Ida Brandt is a carpenter who built hives for Oskar "
    "Lind. In spring Oskar Lind sold honey to Ida Brandt and to Anna Moen in London.",
    "Fair": "Come on, Oskar Lind! In May Ida Brandt met Anna Moen at the fair of London, and Oskar "
    "Lind won a prize there.",
}


@pytest.fixture(scope="module")
def bees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bees")
    for title, text in BEES.items():
        (folder / f"{title}.txt").write_text(text)
    index = Index(tmp_path_factory.mktemp("home"), Settings())
    index.update(folder)
    with index.open() as opened:
        yield opened


@pytest.mark.parametrize(
    "question", ["Who are the main people?", "Wer sind die wichtigsten Personen?"]
)
def test_who_asks_for_people_gets_the_best_connected_each_with_what_it_is(bees, question):
    answer = bees.answer(question)
    people = ("Oskar Lind", "Ida Brandt", "Anna Moen")
    told = [line[2:] for line in answer.text.split("\n")[2:] if line]
    oskar, said = told[0], {name: [t for t in told if t.startswith(name)] for name in people}
    assert oskar.startswith("Oskar Lind")
    assert "Come on" not in oskar
    assert [len(own) for own in said.values()] == [1, 1, 1]
    assert said["Ida Brandt"][0].startswith("Ida Brandt is a carpenter")
    for citation in answer.citations:
        assert citation.text in BEES[citation.document_title]


def test_places_and_what_a_filter_leaves_are_told_so_too(bees):
    assert "- London: " in bees.answer("Which places are mentioned?").text
    fair = bees.answer("Who are the main people?", where={"title": "Fair"})
    assert {citation.document_title for citation in fair.citations} == {"Fair"}


def test_a_question_that_says_more_of_people_is_none_for_all(bees):
    assert "Oskar Lind keeps bees" in bees.answer("Which people of Tarn keep bees?").text
    assert asked_types("Which people of Tarn keep bees?") == ()
    assert asked_types("What are the main topics?") == ()
    assert asked_types("List all companies") == ("ORGANIZATION",)


def test_where_there_is_nothing_of_a_kind_the_question_is_one_like_others(bees):
    (step, *_) = bees.retrieve("Which events are mentioned?", "auto").steps
    assert "of a kind" not in str(step)
    (step, *_) = bees.retrieve("Which places are mentioned?", "auto").steps
    assert "of a kind: GEO" in str(step)
