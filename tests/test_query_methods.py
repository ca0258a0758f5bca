"""The systems of the papers as methods, each on a small graph worked by hand."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import replace

import duckdb
import pytest
from model_server import Fault, ModelServer, server_error
from query_fixture import ENTITIES, FINDINGS, NOT_A_TABLE, publish, settings_for
from query_player import play, shown_numbers, step_of

from graphrag_pipeline import Index
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.home import Home
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import METHODS, QueryEngine, compare, read_method
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.methods.combined_search import by_rule
from graphrag_pipeline.systems.fast_graphrag.method import FastGraphragParameters, seeds
from graphrag_pipeline.systems.lightrag.method import (
    Keywords,
    LightragParameters,
    by_keywords,
    keywords_by_rule,
)

QUESTION = "Who was the clerk of Scrooge?"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def engine(home):
    with QueryEngine(home, settings=settings_for(home)) as opened:
        yield opened


@pytest.fixture
def ask(home):
    """Ask a model that is played, with no call made before."""
    for file in home.glob(f"{Home(home).calls.name}*"):
        file.unlink()

    def answer(server: ModelServer, method: str, question: str = QUESTION, **given):
        llm = {"base_url": server.base_url, "max_retries": 0}
        settings = Settings.model_validate(
            {"home": str(home), "query": {"answers": "llm"}, "llm": llm}
        )
        with QueryEngine(home, settings=settings) as opened:
            return opened.answer(question, method, **given)

    return answer


def titles(records, kind: str = "relationship") -> list[str]:
    return [record.title for record in records if record.kind == kind]


# Edge et al., 4.1: C1 are "sub-communities of C0, if present, otherwise C0 communities projected
# downwards", and so on. "carol" is split once and "scrooge" again; "curie" and "dream" never are.
READ_AT = {
    "C0": {"carol", "curie", "dream"},
    "C1": {"scrooge", "cratchit", "curie", "dream"},
    "C2": {"partners", "places", "cratchit", "curie", "dream"},
    "C3": {"partners", "places", "cratchit", "curie", "dream"},
}


@pytest.mark.parametrize("level", READ_AT)
def test_a_community_that_is_not_split_is_read_at_all_deeper_levels(engine, level):
    method, given = read_method(f"global:level={level}")
    wanted = {make_id("community", name) for name in READ_AT[level]}
    found = engine.retrieve("anything", method, **given).records
    assert {record.attributes["community_id"] for record in found} == wanted
    everyone = {make_id("entity", title): 1.0 for title in ENTITIES if title != NOT_A_TABLE}
    assert set(op.communities_of(engine.index, everyone, given["level"])) == wanted
    told = engine.retrieve("Marie Curie", "local", **given, top_k=1).records
    reports = [r.attributes["community_id"] for r in told if r.kind == "report"]
    assert reports == [make_id("community", "curie")]


@pytest.mark.parametrize("level", READ_AT)
def test_global_search_reads_attributed_communities_where_they_stand(engine, level):
    method, given = read_method(f"global:level={level}:hierarchy=attributed")
    wanted = {make_id("attributed", name) for name in READ_AT[level] & FINDINGS.keys()}
    found = engine.retrieve("anything", method, **given).records
    assert {record.attributes["community_id"] for record in found} == wanted
    themes = engine.retrieve("What are the main themes?", method, **given).records
    assert {record.attributes["community_id"] for record in themes} == wanted
    assert {record.kind for record in themes} == {"finding"}
    reports = op.attributed_reports_at(engine.index, given["level"])
    assert set(reports) == wanted
    assert len(op.attributed_report_records(engine.index, reports)) == len(wanted)


@pytest.mark.parametrize("other", ["dynamic=true", "mode=similarity"])
def test_what_reads_leidens_levels_alone_is_refused_for_attributed_ones(engine, other):
    method, given = read_method(f"global:hierarchy=attributed:{other}")
    with pytest.raises(InputError, match="hierarchy = attributed: has no meaning"):
        engine.retrieve("anything", method, **given)


def test_the_views_of_a_release_tell_where_a_community_stands(home, tmp_path):
    shutil.copy(home / "published.duckdb", tmp_path / "copy.duckdb")
    with duckdb.connect(tmp_path / "copy.duckdb") as con:
        levels = con.sql("SELECT level, community FROM communities_of('Bob Cratchit')").fetchall()
        assert [level for level, _ in levels] == [0, 1, 2]
        assert levels[1][1] == levels[2][1] != levels[0][1]
        tree = con.sql("SELECT community_id, level, last_level FROM community_tree").fetchall()
    for level, names in READ_AT.items():
        wanted = {make_id("community", name) for name in {*names, "alone"}}
        at = min(int(level[1:]), 2)
        assert {key for key, first, last in tree if first <= at <= last} == wanted


@pytest.mark.parametrize("level", ["D1", "C", "-1", "1.0", "²"])
def test_what_is_no_level_is_refused(level):
    with pytest.raises(InputError, match="C0, C1 and so on"):
        read_method(f"global:level={level}")


# Names of methods


def test_methods_have_other_names_too(engine):
    assert engine.retrieve(QUESTION, "fulltext").method == "bm25"


def test_a_method_is_read_with_its_parameters():
    assert read_method("bm25") == ("bm25", {})
    assert read_method("global:level=1:dynamic=true") == ("global", {"level": 1, "dynamic": True})
    assert read_method("global:dynamic=perhaps")[1] == {"dynamic": "perhaps"}
    assert read_method("local:text-share=0.25") == ("local", {"text_share": 0.25})


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("magic", "unknown method 'magic': use one of basic, .*, fulltext$"),
        ("LigthRAG", r"'LigthRAG' \(did you mean lightrag\?\)"),
        ("ppr:top_k=2.5", "top_k = '2.5': must be a whole number"),
        ("bm25:5", r"'bm25:5': write a parameter as METHOD:name=value"),
        ("bm25:top_k=", "write a parameter as METHOD:name=value"),
        ("bm25:top_k=many", "top_k = 'many': must be a whole number"),
        ("local:text_share=half", "text_share = 'half': must be a number"),
    ],
)
def test_what_is_no_method_or_parameter_is_told(spec, complaint):
    with pytest.raises(InputError, match=complaint):
        read_method(spec)


# No retrieval


@pytest.mark.parametrize(("method", "asked"), [("zero_shot", ""), ("cot", "step by step")])
def test_no_retrieval_shows_the_model_the_question_alone(ask, method, asked):
    with ModelServer(lambda _: "Bob Cratchit [Data: Sources (1)].") as server:
        found = ask(server, method)
        (request,) = server.asked()
    assert "<context" not in request.text
    assert "Data:" not in request.text
    assert asked in request.messages[-1]["content"]
    assert (found.text, found.citations, found.references_removed) == ("Bob Cratchit.", (), 1)
    assert (found.generated, found.retrieval.records) == (True, ())


# KG-GraphRAG


def test_triplets_are_taken_step_by_step_from_the_entities_named(engine):
    found = engine.retrieve("Who is Tiny Tim?", "kg_triplets")
    assert titles(found.records) == [
        "Bob Cratchit – Tiny Tim",
        "Scrooge – Bob Cratchit",
    ]
    assert {record.kind for record in found.records} == {"relationship"}
    further = engine.retrieve("Who is Tiny Tim?", "kg_triplets", hops=3).records
    assert titles(further)[:2] == titles(found.records)
    assert {"Scrooge – Marley", "Scrooge – Fezziwig", "Scrooge – London"} == set(
        titles(further)[2:]
    )
    assert titles(engine.retrieve("Who is Tiny Tim?", "kg_triplets", hops=1).records) == [
        "Bob Cratchit – Tiny Tim"
    ]


def test_no_more_triplets_than_the_limit_the_nearest_and_heaviest_first(engine):
    def weight(record) -> float:
        return record.attributes["weight"]

    found = engine.retrieve("Who knew Scrooge?", "kg_triplets", triplets=3).records
    near = engine.retrieve("Who knew Scrooge?", "kg_triplets", hops=1).records
    assert len(near) == 4
    assert list(found) == list(near[:3])
    assert [weight(r) for r in near] == sorted(map(weight, near), reverse=True)


def test_nothing_is_matched_by_similarity(engine):
    assert engine.retrieve("Who was the famous miser?", "kg_triplets").records == ()


def test_triplets_with_text_have_the_chunks_of_these_triplets_and_no_other(engine):
    found = engine.retrieve("Who is Tiny Tim?", "kg_triplets_text", hops=1)
    assert titles(found.records) == ["Bob Cratchit – Tiny Tim"]
    chunks = [record for record in found.records if record.kind == "chunk"]
    assert chunks
    assert all("Bob Cratchit" in chunk.text and "Tiny Tim" in chunk.text for chunk in chunks)
    all_that_do = engine.index.rows(
        "SELECT id FROM chunks WHERE contains(text, 'Bob Cratchit') AND contains(text, 'Tiny Tim')"
    )
    assert {chunk.id for chunk in chunks} == {row["id"] for row in all_that_do}


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Who walked with a crutch?", "no entity of the graph is named"),
        ("Where is the Zebra Quagga?", "the entities named have none"),
    ],
)
def test_where_there_are_no_triplets_their_text_is_that_of_the_best_words(engine, question, why):
    found = engine.retrieve(question, "kg_triplets_text")
    assert found.steps == (f"no triplets: {why}", "chunks by words instead")
    by_words = engine.retrieve(question, "bm25").records
    assert found.records
    assert [record.id for record in found.records] == [record.id for record in by_words]
    bare = engine.retrieve(question, "kg_triplets")
    assert (bare.records, bare.steps) == ((), found.steps[:1])


def test_a_model_names_the_entities_and_their_synonyms(ask):
    with ModelServer(play) as server:
        found = ask(server, "kg_triplets", "Who was the famous miser?", hops=1)
        first, last = (request.messages for request in server.asked())
    assert [step_of(first), step_of(last)] == ["entities", "local"]
    assert "at most 5 people" in first[0]["content"]
    assert found.calls == {"entities": 1, "answer": 1}
    assert found.retrieval.steps == ("entities: bob cratchit, SCROOGE, Nobody",)
    assert set(titles(found.retrieval.records)[:2]) == {
        "Scrooge – Bob Cratchit",
        "Bob Cratchit – Tiny Tim",
    }
    assert len(shown_numbers(last, "Relationships")) == 5
    assert found.citations


def test_more_names_than_asked_for_are_not_looked_up(ask):
    def many(messages):
        names = {"entities": ["Tiny Tim", "Scrooge"], "synonyms": ["Paris"]}
        return json.dumps(names) if step_of(messages) == "entities" else play(messages)

    with ModelServer(many) as server:
        found = ask(server, "kg_triplets", entities=1, synonyms=0, hops=1)
    assert titles(found.retrieval.records) == ["Bob Cratchit – Tiny Tim"]


def test_where_no_names_can_be_read_the_rule_finds_them(ask):
    with ModelServer(play) as server:
        server.misbehave(
            lambda r: Fault(text="never JSON") if step_of(r.messages) == "entities" else None
        )
        found = ask(server, "kg_triplets", "Who is Tiny Tim?")
    assert titles(found.retrieval.records)[0] == "Bob Cratchit – Tiny Tim"
    assert [failure.split(":")[0] for failure in found.failures] == ["entities"]


def test_a_name_within_a_longer_one_is_not_named_apart(engine):
    question = "Was Marie Curie in Paris?"
    both = op.entities_named_in(engine.index, question, 9, apart=True)
    assert len(both) == 2
    tricky = op.entities_named_in(engine.index, "Zebra Quagga, and Zebra", 9, apart=True)
    assert [r.title for r in op.entity_records(engine.index, tricky)] == [NOT_A_TABLE]


def test_titles_are_found_by_former_names_in_the_order_asked(engine, tmp_path):
    import duckdb

    publish(tmp_path)
    con = duckdb.connect(str(tmp_path / "published.duckdb"))
    con.execute(
        "INSERT INTO entity_aliases BY POSITION SELECT 'gone', id, 'Ebenezer', 'Old Scrooge', type,"
        " 'rule', '', 1, '{}' FROM entities WHERE title = 'Scrooge'"
    )
    con.close()
    with QueryEngine(tmp_path, settings=settings_for(tmp_path)) as opened:
        for name in ("ebenezer", "old scrooge"):
            found = op.entities_titled(opened.index, ["IRENE  Joliot-Curie", name, "Scro"])
            records = op.entity_records(opened.index, found)
            assert [record.title for record in records] == ["Irène Joliot-Curie", "Scrooge"]


# Selection and integration


@pytest.mark.parametrize(
    ("question", "reasoning"),
    [
        ("Who was the clerk of Scrooge?", False),
        ("When was Marie Curie born?", False),
        ("How many children had she?", False),
        ("What links Scrooge and Paris?", True),
        ("Why did he change?", True),
        ("What is the birthplace of the mother of Irène Joliot-Curie?", True),
        ("In which city is the school that she attended as the daughter of a baker?", True),
        ("林黛玉是谁?", False),
    ],
)
def test_by_rule_a_question_is_fact_based_or_reasoning_based(engine, question, reasoning):
    assert by_rule(engine.index, question) is reasoning
    found = engine.retrieve(question, "selection")
    other = engine.retrieve(question, "local" if reasoning else "basic")
    assert found.records == other.records
    kind = "reasoning-based: local" if reasoning else "fact-based: basic"
    assert found.steps == (f"{kind} search (by rule)",)


@pytest.mark.parametrize(
    ("category", "method"), [("fact-based", "basic"), ("Reasoning-based", "local")]
)
def test_a_model_selects_the_search(ask, category, method):
    def classify(messages):
        if step_of(messages) == "classify":
            return json.dumps({"category": category})
        return play(messages)

    with ModelServer(classify) as server:
        found = ask(server, "auto", top_k=4)
        expected = ask(server, method, top_k=4)
    assert found.calls == {"classify": 1, "answer": 1}
    assert found.text == expected.text
    assert found.retrieval.records == expected.retrieval.records
    assert found.retrieval.steps == (f"{category.lower()}: {method} search (by model)",)


def test_where_the_model_cannot_classify_the_rule_does(ask):
    with ModelServer(play) as server:
        server.misbehave(lambda r: Fault(text="Hm.") if step_of(r.messages) == "classify" else None)
        found = ask(server, "selection", "Why did Scrooge change?")
    assert found.retrieval.steps == ("reasoning-based: local search (by rule)",)
    assert len(found.failures) == 1


@pytest.mark.parametrize(
    ("question", "method", "options"),
    [
        ("What are the main themes?", "global", {"level": 0}),
        ("Who visited Scrooge?", "ppr", {}),
        ("who wrote a christmas carol", "ppr", {}),
        ("how is it that nothing is ever clear", "bm25", {}),
        ("who visited scrooge", "bm25", {}),
    ],
)
def test_without_a_model_auto_takes_what_suits_the_question(engine, question, method, options):
    found = engine.answer(question, "auto")
    assert found.retrieval.records == engine.retrieve(question, method, **options).records
    assert found.retrieval.steps[0].startswith(f"{method} search (by rule: ")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("What are the main themes?", "the question asks for themes"),
        ("Was sind die wichtigsten Themen?", "the question asks for themes"),
        ("Quels sont les thèmes principaux ?", "the question asks for themes"),
        ("Who said that they die?", "the question names nothing that is in the graph"),
        ("Did Scrooge know Tiny Tim?", "the question names Scrooge, Tiny Tim"),
        ("is scrooge in a christmas carol", "the question names a christmas carol"),
        (
            "Is Scrooge's clerk in A Christmas Carol?",
            "the question names A Christmas Carol, Scrooge",
        ),
        ("who was visited", "the question names nothing that is in the graph"),
    ],
)
def test_auto_says_why_it_took_a_method(engine, question, why):
    (step,) = engine.retrieve(question, "auto").steps
    assert step.endswith(f" search (by rule: {why})")


def test_auto_knows_a_name_that_was_merged_into_another(tmp_path):
    text = "Ida Brandt sailed to Bergen with Ole Moen. Brandt met Ole Moen at the harbour."
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text(text)
    index = Index(tmp_path / "home", Settings())
    index.update(tmp_path / "docs")
    assert index.sql("SELECT title FROM entity_aliases")[1] == [("Brandt",)]
    answer = index.answer("Why was Brandt there?", "auto")
    assert answer.retrieval.steps[0].startswith("ppr search (by rule: ")


def test_integration_has_both_contexts_each_record_once(engine):
    found = engine.retrieve(QUESTION, "integration", top_k=3).records
    text = engine.retrieve(QUESTION, "basic", top_k=3).records
    graph = engine.retrieve(QUESTION, "local", top_k=3).records
    assert list(found[: len(text)]) == list(text)
    assert {r.id for r in found} == {r.id for r in (*text, *graph)}
    assert len({(r.kind, r.id) for r in found}) == len(found)
    assert {r.kind for r in found} > {r.kind for r in text}


# LightRAG


def test_lightrag_takes_relationships_by_the_degrees_of_their_ends_then_weight(engine):
    found = engine.retrieve(
        "Scrooge", "lightrag", mode="local", top_k=1, least_similarity=0.0
    ).records
    assert titles(found, "entity") == ["Scrooge"]
    edges = [record for record in found if record.kind == "relationship"]
    assert edges[0].title == "Scrooge – Bob Cratchit"
    assert [edge.attributes["combined_degree"] for edge in edges] == [6, 5, 5, 5]
    weights = [edge.attributes["weight"] for edge in edges[1:]]
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) > 1


def test_lightrag_keeps_the_order_of_relationships_found_and_takes_their_ends(engine):
    question = "Marie Curie is connected with Paris"
    given = {"mode": "global", "top_k": 3, "least_similarity": 0.0}
    found = by_keywords(
        engine.index, "?", Keywords("Scrooge", question), LightragParameters(**given)
    )
    nearest = op.vector_search(engine.index, "relationships", question, 3)
    edges = [record for record in found if record.kind == "relationship"]
    assert [edge.id for edge in edges] == list(nearest)
    assert edges[0].title == "Marie Curie – Paris"
    assert titles(found, "entity")[:2] == ["Marie Curie", "Paris"]
    assert "Scrooge" not in titles(found, "entity")


def test_lightrag_takes_both_sides_in_turn_local_first(engine):
    keywords = Keywords("Tiny Tim", "Marie Curie is connected with Paris")

    def ids(mode: str, kind: str) -> list[str]:
        p = LightragParameters(mode=mode, top_k=2, least_similarity=0.0)
        return [r.id for r in by_keywords(engine.index, "x", keywords, p) if r.kind == kind]

    for kind in ("entity", "relationship"):
        near, far, both = (ids(mode, kind) for mode in ("local", "global", "hybrid"))
        assert both[:2] == [near[0], far[0]]
        assert set(both) == {*near, *far}
        assert len(both) == len(set(both))


def test_in_turn_takes_one_of_each_as_long_as_there_are_any():
    assert list(op.in_turn({"a": 1, "b": 1}, {}, {"b": 1, "c": 1, "d": 1})) == ["a", "b", "c", "d"]


def test_only_mix_has_the_chunks_nearest_to_the_question(engine):
    def chunks(mode: str, n: int) -> list[str]:
        p = LightragParameters(mode=mode, top_k=1, chunk_top_k=n, least_similarity=0.0)
        keywords = Keywords("贾宝玉", "贾宝玉")
        found = by_keywords(engine.index, "What did Marie Curie discover?", keywords, p)
        return [record.id for record in found if record.kind == "chunk"]

    nearest = op.vector_search(engine.index, "chunks", "What did Marie Curie discover?", 4)
    assert chunks("mix", 4)[0] == next(iter(nearest))
    assert not set(chunks("hybrid", 4)) & set(nearest)
    assert len(chunks("mix", 2)) == 2


def test_half_of_five_chunks_for_each_entity_are_picked_by_similarity(engine):
    question = "Who sent a turkey?"
    p = LightragParameters(mode="local", top_k=1, least_similarity=0.0)
    found = by_keywords(engine.index, question, Keywords("Scrooge", ""), p)
    scrooge = op.entities_titled(engine.index, ["Scrooge"])
    of_scrooge = op.chunks_of(engine.index, scrooge, limit=99)
    nearest = op.most_similar(engine.index, "chunks", question, of_scrooge, 2)
    assert len(of_scrooge) > 2
    assert [record.id for record in found if record.kind == "chunk"] == list(nearest)


def test_lightrag_keeps_each_budget(engine):
    budgets = {"max_entity_tokens": 60, "max_relation_tokens": 80, "max_context_tokens": 400}
    found = engine.retrieve(QUESTION, "lightrag", **budgets).records
    for kind, most in (("entity", 60), ("relationship", 80)):
        part = [record for record in found if record.kind == kind]
        assert 0 < op.tokens_of(engine.index, part) <= most
    everything = engine.retrieve(QUESTION, "lightrag").records
    assert len(everything) > len(found)


def test_budgets_of_parts_are_cut_in_proportion():
    assert op.in_proportion(45_000, [12_500, 12_500, 20_000]) == [12_500, 12_500, 20_000]
    assert op.in_proportion(4_500, [12_500, 12_500, 20_000]) == [1_250, 1_250, 2_000]


@pytest.mark.parametrize("method", ["lightrag", "fast_graphrag"])
def test_a_small_context_still_has_room_for_text(engine, method):
    found = engine.retrieve(QUESTION, method, max_context_tokens=250).records
    assert {record.kind for record in found} == {"entity", "relationship", "chunk"}
    assert op.tokens_of(engine.index, found) <= 250


def test_keywords_by_rule_are_the_names_and_the_whole_question(engine):
    question = "What prize did Marie Curie share in Paris?"
    assert keywords_by_rule(engine.index, question) == Keywords("Marie Curie, Paris", question)
    assert keywords_by_rule(engine.index, "Who?") == Keywords("Who?", "Who?")
    steps = engine.retrieve(QUESTION, "lightrag").steps
    assert steps == (f"low-level keywords: Scrooge; high-level: {QUESTION} (by rule)",)


def test_a_model_finds_the_keywords_in_one_call(ask):
    with ModelServer(play) as server:
        found = ask(server, "lightrag", mode="local", top_k=1, least_similarity=0.0)
    assert found.calls == {"keywords": 1, "answer": 1}
    assert titles(found.retrieval.records, "entity") == ["Scrooge"]
    assert found.retrieval.steps == ("low-level keywords: Scrooge; high-level: prize (by model)",)


def test_an_unknown_mode_names_the_known(engine):
    with pytest.raises(InputError, match="must be one of local, global, hybrid, mix"):
        engine.retrieve(QUESTION, "lightrag", mode="naive")


@pytest.mark.parametrize(
    "odd",
    [
        '{"high_level_keywords": "prize", "low_level_keywords": [7, null, "Scr\\ud800 \\u0000"]}',
        '{"low_level_keywords": ["\'; DROP TABLE entities; --"]}',
        '{"high_level_keywords": [], "low_level_keywords": []}',
    ],
)
def test_odd_words_of_a_model_are_only_searched_for(ask, odd):
    with ModelServer(lambda m: odd if step_of(m) == "keywords" else play(m)) as server:
        found = ask(server, "lightrag")
    assert (found.calls["keywords"], found.failures) == (1, ())
    assert found.retrieval.records


# FastGraphRAG


def test_pagerank_goes_on_from_the_named_entity(engine):
    found = engine.retrieve("林黛玉", "fast_graphrag", generic_similarity=1.0).records
    scores = {record.title: record.score for record in found if record.kind == "entity"}
    start = 0.15 / (1 - 0.85**2)
    assert scores == pytest.approx({"林黛玉": start, "贾宝玉": 0.85 * start}, abs=1e-5)
    (edge,) = (record for record in found if record.kind == "relationship")
    assert edge.score == pytest.approx(1.0, abs=1e-5)
    chunks = [record for record in found if record.kind == "chunk"]
    assert chunks
    assert all(chunk.score == pytest.approx(1.0, abs=1e-5) for chunk in chunks)


def test_pagerank_takes_all_relationships_alike(engine):
    found = engine.retrieve("Scrooge", "fast_graphrag", generic_similarity=1.0).records
    scores = {record.title: record.score for record in found if record.kind == "entity"}
    ends = [scores[title] for title in ("Marley", "Fezziwig", "London")]
    assert ends == pytest.approx([ends[0]] * 3)
    weights = {r.attributes["weight"] for r in found if r.title.startswith("Scrooge – ")}
    assert len(weights) > 1


def test_what_each_entity_or_text_is_matched_with_shares_a_weight_of_one(engine):
    p = FastGraphragParameters()
    (bob,) = op.entities_titled(engine.index, ["Bob Cratchit"])
    assert seeds(engine.index, ["bob cratchit"], [], p) == {bob: 1.0}
    text = "Bob Cratchit is one of the person names"
    cosines = op.vector_search(engine.index, "entities", text, 20)
    scores = {key: (1 + cosine) / 2 for key, cosine in cosines.items() if cosine >= 0}
    assert len(scores) > 5
    expected = {key: score / sum(scores.values()) for key, score in scores.items()}
    generic = seeds(engine.index, [], [text], p)
    assert generic == pytest.approx(expected)
    assert sum(generic.values()) == pytest.approx(1)
    both = seeds(engine.index, ["Bob Cratchit"], [text, text], p)
    assert both == pytest.approx(expected | {bob: 1.0})
    assert next(iter(both)) == bob


def test_entities_are_matched_above_their_thresholds_only(engine):
    name = "person names"
    ((nearest, cosine),) = op.vector_search(engine.index, "entities", name, 1).items()
    assert 0.4 <= cosine < 0.7
    index, p = engine.index, FastGraphragParameters()
    assert seeds(index, [name], [], p) == {nearest: 1.0}
    assert seeds(index, [name], [], replace(p, named_similarity=(1 + cosine) / 2 + 1e-6)) == {}
    ranked = op.vector_search(index, "entities", name, 20)
    least = (1 + sorted(ranked.values())[-3]) / 2 - 1e-6
    kept = {key for key, cosine in ranked.items() if (1 + cosine) / 2 >= least}
    assert set(seeds(index, [], [name], replace(p, generic_similarity=least))) == kept
    assert len(kept) < len(ranked)


def test_where_no_relationship_is_found_the_chunks_are_those_of_the_best_words(engine):
    question = "Who walked with a crutch?"
    found = engine.retrieve(question, "fast_graphrag", generic_similarity=1.0)
    assert {record.kind for record in found.records} == {"chunk"}
    by_words = engine.retrieve(question, "bm25", top_k=8).records
    assert [record.id for record in found.records] == [record.id for record in by_words]
    assert found.steps == (
        "named: none (by rule)",
        "no relationship found: chunks by words",
    )


def test_few_and_weak_entities_relationships_and_chunks_are_left_out(engine):
    few = {"entities": 2, "relationships": 1, "chunks": 1}
    found = engine.retrieve("Scrooge", "fast_graphrag", **few).records
    assert [record.kind for record in found] == ["entity", "entity", "relationship", "chunk"]
    assert titles(found) == ["Scrooge – Bob Cratchit"]
    strong = engine.retrieve("Scrooge", "fast_graphrag", least_score=0.2).records
    assert titles(strong, "entity") == ["Scrooge"]


def test_a_model_names_the_entities_and_what_is_asked_for(ask):
    with ModelServer(play) as server:
        found = ask(server, "fast_graphrag", "Who was the clerk?")
    assert found.calls == {"entities": 1, "answer": 1}
    assert found.retrieval.steps == ("named: Bob Cratchit; generic: clerk (by model)",)
    assert set(titles(found.retrieval.records, "entity")[:2]) == {"Scrooge", "Bob Cratchit"}


def test_what_a_method_tells_on_its_way_is_told_of_a_models_answer_too(ask):
    with ModelServer(play) as server:
        server.misbehave(lambda r: Fault(text="Hm.") if step_of(r.messages) == "named" else None)
        found = ask(server, "fast_graphrag")
    assert found.retrieval.steps == ("named: Scrooge (by rule)",)


# IRCoT


def thinking(*sentences: str):
    """Play a model that reasons in these sentences, then says nothing more."""
    left = list(sentences)

    def say(messages):
        if step_of(messages) == "reason":
            return left.pop(0) if left else ""
        return play(messages)

    return say


def test_ircot_retrieves_for_each_thought_until_it_has_the_answer(ask, engine):
    thought = "Marie Curie discovered polonium."
    say = thinking(f"{thought} And more besides.", "So the answer is: polonium.", "Not asked for.")
    with ModelServer(say) as server:
        found = ask(server, "ircot", top_k=2)
        asked = server.asked()
    assert [step_of(r.messages) for r in asked] == ["reason", "reason", "basic"]
    assert found.calls == {"reason": 2, "answer": 1}
    assert found.retrieval.steps == (thought, "So the answer is: polonium.")
    first, second = (
        [r.id for r in engine.retrieve(text, "bm25", top_k=2).records]
        for text in (QUESTION, thought)
    )
    assert not set(first) & set(second)
    assert [record.id for record in found.retrieval.records] == [*first, *second]
    assert thought in asked[1].text
    assert thought not in asked[0].text
    assert found.citations


def test_ircot_collects_no_more_paragraphs_than_the_limit(ask, engine):
    with ModelServer(
        thinking("Marie Curie discovered polonium.", "Fezziwig gave a ball.")
    ) as server:
        found = ask(server, "ircot", top_k=3, paragraphs=4).retrieval.records
    first = [r.id for r in engine.retrieve(QUESTION, "bm25", top_k=3).records]
    assert [record.id for record in found][:3] == first
    assert len(found) == 4


def test_ircot_ends_after_its_steps_and_where_a_thought_comes_again(ask):
    with ModelServer(thinking("One.", "Two.", "Three.", "Four.")) as server:
        assert ask(server, "ircot", steps=3).retrieval.steps == ("One.", "Two.", "Three.")
    with ModelServer(thinking("One.", "One.", "Three.")) as server:
        assert ask(server, "ircot").retrieval.steps == ("One.",)


def test_ircot_goes_over_any_method(ask, engine):
    with ModelServer(thinking("Tiny Tim was his son.", "So the answer is: Tim.")) as server:
        found = ask(server, "ircot", over="kg_triplets")
        asked = server.asked()
    assert step_of(asked[-1].messages) == "local"
    first, second = (
        titles(engine.retrieve(text, "kg_triplets").records)
        for text in (QUESTION, "Tiny Tim was his son.")
    )
    assert titles(found.retrieval.records) == list(dict.fromkeys([*first, *second]))
    with pytest.raises(InputError, match="over = 'cot': must be one of basic, bm25"):
        engine.retrieve(QUESTION, "ircot", over="cot")


def test_a_step_that_fails_ends_the_reasoning_not_the_answer(ask):
    with ModelServer(thinking("One.")) as server:
        server.misbehave(lambda r: server_error() if step_of(r.messages) == "reason" else None)
        found = ask(server, "ircot")
    assert found.generated
    assert found.failures[0].startswith("reason: ")


# Comparing


def test_methods_are_compared_side_by_side_one_that_fails_too(home):
    specs = ["bm25", " kg_triplets:hops=1 ", "cot"]
    words, triplets, cot = compare(QUESTION, specs, home=home, settings=settings_for(home))
    assert (words.method, triplets.method) == ("bm25", "kg_triplets:hops=1")
    with QueryEngine(home, settings=settings_for(home)) as engine:
        assert words.answer is not None
        assert words.answer.text == engine.answer(QUESTION, "bm25").text
        assert words.to_dict()["parameters"]["top_k"] == 10
        near = engine.retrieve(QUESTION, "kg_triplets", hops=1)
    assert triplets.kinds == {"relationship": len(near.records)}
    assert triplets.context_tokens > sum(record.n_tokens for record in near.records) > 0
    assert "cot needs a language model" in cot.error
    assert cot.to_dict() == {"method": "cot", "error": cot.error}
    assert json.loads(json.dumps(words.to_dict()))["cost"] == 0.0


def test_retrieval_only_makes_no_answer(home):
    found = compare(
        QUESTION, ["cot", "basic"], retrieval_only=True, home=home, settings=settings_for(home)
    )
    assert [each.answer for each in found] == [None, None]
    assert "text" not in found[1].to_dict()
    assert found[1].kinds["chunk"] > 0


def test_a_wrong_parameter_and_failures_alone_end_a_comparison(home):
    options = {"home": home, "settings": settings_for(home)}
    with pytest.raises(InputError, match="top_k = 0: must be"):
        compare(QUESTION, ["basic", "bm25:top_k=0"], **options)
    with pytest.raises(InputError, match=r"cot needs a .*; zero_shot: zero_shot needs"):
        compare(QUESTION, ["cot", "zero_shot"], **options)
    with pytest.raises(InputError, match=r"^cot needs a language model"):
        compare(QUESTION, ["", "cot"], **options)
    with pytest.raises(InputError, match="no method to compare: name some"):
        compare(QUESTION, [" "], **options)
    with pytest.raises(InputError, match="the question is empty"):
        compare(" ", ["cot", "basic"], **options)


def test_where_vectors_know_words_only_local_reads_what_full_text_finds_first(engine):
    question = "Did the clerk of Scrooge carry a crutch to the grave?"
    words = [r.id for r in engine.retrieve(question, "bm25").records]
    text = [r.id for r in engine.retrieve(question, "local").records if r.kind == "chunk"]
    assert len(words) > 3
    assert text[: len(words)] == words


# All of them


def test_no_two_methods_find_the_same(engine):
    questions = (
        "What links Marie Curie and the clerk of Scrooge?",
        "Did the clerk of Scrooge partner with Marley in a christmas carol?",
    )
    found = {}
    for name in METHODS.keys() - {"selection", "auto"}:
        with contextlib.suppress(InputError):
            retrievals = [engine.retrieve(each, name, **_few(name)) for each in questions]
            found[name] = [[(r.kind, r.id) for r in each.records] for each in retrievals]
    assert len(found) > 9
    same = [
        (one, other)
        for one in found
        for other in found
        if one < other and found[one] == found[other]
    ]
    # With vectors that know words only, both searches of hybrid are BM25.
    assert same == [("bm25", "hybrid")]


def _few(name: str) -> dict[str, int]:
    names = {"top_k"} & {field for field in METHODS[name].parameters.__dataclass_fields__}
    return dict.fromkeys(names, 4)


@pytest.mark.parametrize("level", [1, "1", "C1", "c1"])
def test_a_level_is_the_same_however_it_is_written(level):
    values = METHODS["global"].parametrise({"level": level}, Settings())
    assert values.level == 1


def test_a_context_shows_what_type_entities_are_and_what_relationships_weigh(engine):
    found = engine.retrieve(QUESTION, "local")
    context = found.context
    rows = [line for line in context.splitlines() if ",Scrooge" in line]
    assert "id,entity,type,description" in context
    assert "id,relationship,weight,description" in context
    assert any(",Scrooge,PERSON," in row for row in rows)
    edges = [record for record in found.records if record.kind == "relationship"]
    assert edges
    for edge in edges:
        assert f",{edge.title},{edge.attributes['weight']:g}," in context


def test_global_by_similarity_reads_the_nearest_reports_of_the_root(engine):
    def communities(**options):
        found = engine.retrieve("radium and polonium", "global", mode="similarity", **options)
        return [record.attributes["community_id"] for record in found.records]

    roots = {row["id"] for row in op.root_communities(engine.index)}
    assert roots.issuperset(communities())
    (nearest,) = set(communities(reports=1, level=2))
    assert nearest == communities()[0]
    texts = [r.text for r in op.findings_of(engine.index, _reports_of(engine, nearest))]
    assert any("radium" in text for text in texts)
    with pytest.raises(InputError, match="no meaning with mode = similarity"):
        engine.retrieve("radium", "global", mode="similarity", dynamic=True)


def test_a_model_answers_from_the_nearest_reports_in_one_call(ask):
    with ModelServer(play) as server:
        found = ask(server, "global", mode="similarity", reports=2)
    assert found.calls == {"answer": 1}
    assert [record.kind for record in found.retrieval.records] == ["report", "report"]


def _reports_of(engine, community):
    return list(op.reports_of(engine.index, {community: 1.0}))


def test_lightrag_leaves_half_of_its_tokens_to_text(engine):
    question = "How do Scrooge, Bob Cratchit and Marie Curie live?"
    sizes = {"entity": 0, "relationship": 0, "chunk": 0}
    for record in engine.retrieve(question, "lightrag", max_context_tokens=300).records:
        sizes[record.kind] += record.n_tokens
    assert 100 < sizes["entity"] + sizes["relationship"] <= 150
    assert sizes["chunk"] > 0
